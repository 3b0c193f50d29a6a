// A large matrix in condensed form, tridiagonal or bidiagonal, whose eigenvalues and singular values LAPACK finds.
// Every column is reduced as soon as the step before it is applied, in one pass over memory on all threads.
#pragma once
#include <limits>
#include <optional>

#include "blocked.h"

namespace rl {

constexpr int64_t kCondensedFrom = 32;  // the least order of a large matrix

// A vector and, where it is complex, i times it behind it: see sweeps.h.
template <class T>
class Turned {
 public:
  explicit Turned(int64_t n) : n_(n), data_(static_cast<size_t>(n * kParts)) {}
  T* data() { return data_.data(); }
  T& operator[](int64_t i) { return data_[static_cast<size_t>(i)]; }
  void set(int64_t i, T x) {
    (*this)[i] = x;
    if constexpr (kComplex<T>) (*this)[n_ + i] = T(-x.imag(), x.real());
  }
  // The number that element i of a sum stands for.
  T sum(int64_t i) {
    T x = (*this)[i];
    if constexpr (kComplex<T>) x += T(-(*this)[n_ + i].imag(), (*this)[n_ + i].real());
    return x;
  }
  void clear(int64_t from) {
    for (int p = 0; p < kParts; ++p) std::fill(data_.begin() + p * n_ + from, data_.begin() + (p + 1) * n_, T(0));
  }
  void swap(Turned& other) { data_.swap(other.data_); }

 private:
  static constexpr int kParts = kComplex<T> ? 2 : 1;
  int64_t n_;
  std::vector<T> data_;
};

// A vector of n elements less its first is taken for 0 below this, squared: beside a matrix of size 1 it is nothing,
// and its products would lose digits.
template <class R>
constexpr R kNothing =
    std::numeric_limits<R>::min() / (std::numeric_limits<R>::epsilon() * std::numeric_limits<R>::epsilon());

template <class T>
struct Reflector {
  T tau;
  Real<T> beta;
  bool scaled;  // whether v is (x - beta e1) / (x[0] - beta), not e1
};

// H = I - tau v v^H with H^H x = beta e1: LAPACK's larfg. v without its leading 1 takes the place of x[1:].
template <class T>
Reflector<T> reflect(int64_t n, T* x) {
  using R = Real<T>;
  const R squares = sweeps<T>().squares(n - 1, x + 1);
  const bool scaled = !(squares < kNothing<R>);
  if (!scaled) std::fill(x + 1, x + n, T(0));
  const T alpha = x[0];
  R imaginary(0);
  if constexpr (kComplex<T>) imaginary = alpha.imag();
  if (!scaled && imaginary * imaginary < kNothing<R>) return {T(0), real(alpha), false};
  const R length = std::hypot(std::abs(alpha), scaled ? std::sqrt(squares) : R(0));
  const R beta = real(alpha) > 0 ? -length : length;
  if (scaled) {
    const T factor = T(1) / (alpha - beta);
    for (int64_t i = 1; i < n; ++i) x[i] *= factor;
  }
  return {(beta - alpha) / beta, beta, scaled};
}

// body(piece, begin, end) over `pieces` parts of n columns, of equal area in a square or a lower triangle.
template <class F>
void over_pieces(int64_t pieces, int64_t n, bool triangle, F&& body) {
  const auto bound = [=](int64_t i) {
    const double share = static_cast<double>(i) / static_cast<double>(pieces);
    return i == pieces
               ? n
               : static_cast<int64_t>(static_cast<double>(n) * (triangle ? 1 - std::sqrt(1 - share) : share)) / 4 * 4;
  };
  over_pieces(pieces, [&](int64_t i) { body(i, bound(i), bound(i + 1)); });
}

// How many threads a sweep of so many elements is worth.
template <class T>
int64_t sweep_pieces(int64_t elements) {
  constexpr int64_t kWorthSharing = kComplex<T> ? 6000 : 12000;
  return std::max<int64_t>(1, std::min<int64_t>(api->num_threads(), elements / kWorthSharing));
}

// A = Q T Q^H of the lower triangle of A: d and e are the diagonals of T. Column i of A holds below d[i] the reflector
// i of Q, a 1 first, as LAPACK's hetrd leaves them.
template <class T>
void tridiagonalize(int64_t n, T* a, int64_t lda, Real<T>* d, Real<T>* e, T* tau) {
  Turned<T> v(n), w(n), x(n);
  std::vector<Turned<T>> sums(static_cast<size_t>(api->num_threads()), Turned<T>(n));
  for (int64_t i = 0; i < n; ++i) {
    T* column = a + i * lda;
    const T w_i = conj(w[i]), v_i = conj(v[i]);
    for (int64_t k = i; k < n; ++k) column[k] -= v[k] * w_i + w[k] * v_i;
    d[i] = real(column[i]);
    const int64_t first = i + 1, rest = n - first;
    if (!rest) break;
    const Reflector<T> h = reflect(rest, column + first);
    tau[i] = h.tau, e[i] = h.beta;
    x.set(first, T(1));
    for (int64_t k = first + 1; k < n; ++k) x.set(k, column[k]);
    const int64_t pieces = sweep_pieces<T>(rest * rest / 2);
    over_pieces(pieces, rest, true, [&](int64_t piece, int64_t begin, int64_t end) {
      Turned<T>& y = sums[static_cast<size_t>(piece)];
      y.clear(first);
      sweeps<T>().hermitian(rest, begin, end, a + first * (lda + 1), lda, n, v.data() + first, w.data() + first,
                            x.data() + first, y.data() + first);
    });
    T product(0);
    for (int64_t k = first; k < n; ++k) {
      T sum(0);
      for (int64_t piece = 0; piece < pieces; ++piece) sum += sums[static_cast<size_t>(piece)].sum(k);
      w[k] = h.tau * sum;
      product += conj(w[k]) * x[k];
    }
    const T half = h.tau * product / Real<T>(2);
    for (int64_t k = first; k < n; ++k) w.set(k, w[k] - half * x[k]);
    v.swap(x);
  }
}

// A = Q B P^H of (m, n), m >= n: d and e are the diagonal of B and the one above it. Column i of A holds below d[i] the
// reflector i of Q; column i of p (n, n), from row i + 1 on, that of P, a 1 first in both.
template <class T>
void bidiagonalize(int64_t m, int64_t n, T* a, int64_t lda, Real<T>* d, Real<T>* e, T* tau_q, T* p, T* tau_p) {
  Turned<T> u(m), x(m), next(m);
  std::vector<T> y(static_cast<size_t>(n)), g(y), c(y), v(y);
  std::vector<Turned<T>> sums(static_cast<size_t>(api->num_threads()), Turned<T>(m));
  for (int64_t i = 0; i < n; ++i) {
    T* column = a + i * lda;
    const auto at = static_cast<size_t>(i);
    const T y_i = conj(y[at]), v_i = conj(v[at]);
    for (int64_t k = i; k < m; ++k) column[k] -= u[k] * y_i + x[k] * v_i;
    const Reflector<T> h = reflect(m - i, column + i);
    tau_q[i] = h.tau, d[i] = h.beta;
    const int64_t first = i + 1, rest = n - first;
    if (!rest) break;
    next.set(i, T(1));
    for (int64_t k = first; k < m; ++k) next.set(k, column[k]);
    const int64_t pieces = sweep_pieces<T>((m - i) * rest);
    over_pieces(pieces, rest, false, [&](int64_t piece, int64_t begin, int64_t end) {
      Turned<T>& z = sums[static_cast<size_t>(piece)];
      z.clear(i);
      sweeps<T>().general(m - i, begin, end, a + first * lda + i, lda, m, u.data() + i, y.data() + first, x.data() + i,
                          v.data() + first, next.data() + i, &h.tau, g.data() + first, c.data() + first, z.data() + i);
    });
    y.swap(g);
    T product(0);  // y^H c
    for (int64_t k = first; k < n; ++k) product += conj(y[static_cast<size_t>(k)]) * c[static_cast<size_t>(k)];
    const T c_first = c[static_cast<size_t>(first)];
    const Reflector<T> row = reflect(rest, c.data() + first);
    tau_p[i] = row.tau, e[i] = row.beta;
    v.swap(c);
    std::copy(v.begin() + first, v.end(), p + i * n + first);
    v[static_cast<size_t>(first)] = T(1);
    u.swap(next);
    // x = tau A v for what is now A - u y^H, from A c and A e1: Howell et al., "Cache efficient bidiagonalization using
    // BLAS 2.5 operators" (2008).
    const T y_first = conj(y[static_cast<size_t>(first)]);
    const T factor = row.scaled ? row.tau / (c_first - row.beta) : row.tau;
    const T of_z = row.scaled ? T(1) : T(0), of_first = row.scaled ? T(-row.beta) : T(1);
    const T* next_column = a + first * lda;
    for (int64_t k = first; k < m; ++k) {
      T sum(0);
      for (int64_t piece = 0; piece < pieces; ++piece) sum += sums[static_cast<size_t>(piece)].sum(k);
      x.set(k, factor * (of_z * (sum - u[k] * product) + of_first * (next_column[k] - u[k] * y_first)));
    }
  }
}

// A power of two that brings the largest part of n elements to 1; 1 where they are all 0.
template <class T>
Real<T> unit_scale(int64_t n, const T* x) {
  using R = Real<T>;
  const R largest = sweeps<T>().largest(n, x);
  if (largest == 0) return R(1);
  return std::ldexp(R(1), std::clamp(-std::ilogb(largest), -std::numeric_limits<R>::max_exponent + 2,
                                     std::numeric_limits<R>::max_exponent - 2));
}

// Eigenvalues d, ascending, of the tridiagonal matrix of d and e, and unless z is null, the vectors in the leading (n,
// n) of it; info is that of LAPACK's stedc.
template <class R>
int tridiagonal_eigh(int64_t n, R* d, R* e, R* z, int64_t ldz) {
  char job = z ? 'I' : 'N';
  int order = as_int(n), ld = leading(ldz), size = as_int(z ? 1 + 4 * n + n * n : 1),
      int_size = as_int(z ? 3 + 5 * n : 1);
  int info = 0;
  Memory<R> work(static_cast<size_t>(size));
  std::vector<int> int_work(static_cast<size_t>(int_size));
  condensed<R>.stedc(&job, &order, d, e, z, &ld, work.data(), &size, int_work.data(), &int_size, &info);
  return info;
}

// The last step of divide and conquer, on all threads: Gu and Eisenstat, "A divide-and-conquer algorithm for the
// symmetric tridiagonal eigenproblem" (1995). The vectors of both halves of q (n, n) become those of the whole, and
// d its eigenvalues, in any order.
template <class R>
int merge_halves(int64_t n, int64_t half, R* d, R* q, R rho) {
  const auto size = [](int64_t count) { return static_cast<size_t>(count); };
  std::vector<R> z(size(n)), lambda(size(n)), w(size(n)), exact(size(n), R(1));
  std::vector<int> sorted(size(n)), groups(size(n)), work(size(2 * n)), counts(size(std::max<int64_t>(n, 4)));
  Memory<R> halves(size(n * n));
  for (int64_t j = 0; j < n; ++j) {
    z[size(j)] = q[j * n + (j < half ? half - 1 : half)];
    sorted[size(j)] = as_int(j < half ? j + 1 : j - half + 1);
  }
  int order = as_int(n), cut = as_int(half), left = 0, info = 0;
  condensed<R>.laed2(&left, &order, &cut, d, q, &order, sorted.data(), &rho, z.data(), lambda.data(), w.data(),
                     halves.data(), work.data(), groups.data(), work.data() + n, counts.data(), &info);
  if (info || !left) return info;
  const int64_t k = left;
  Memory<R> delta(size(k * k)), s(size(k * k));  // delta (i, j): lambda i less root j
  std::vector<int> infos(size(k));
  over_parts(k, k * 128, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      int roots = left, index = as_int(j + 1);
      R factor = rho;
      condensed<R>.laed4(&roots, &index, lambda.data(), w.data(), delta.data() + j * k, &factor, d + j,
                         &infos[size(j)]);
    }
  });
  for (const int code : infos)
    if (code) return code;
  // The roots are exact for another vector w: with it the vectors are orthogonal.
  over_parts(k > 2 ? k : 0, k * 64, [&](int64_t begin, int64_t end) {
    const auto take = [&](int64_t j, int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i)
        exact[size(i)] *= delta[size(j * k + i)] / (lambda[size(i)] - lambda[size(j)]);
    };
    for (int64_t j = 0; j < k; ++j) {
      take(j, begin, std::clamp(j, begin, end));
      take(j, std::clamp(j + 1, begin, end), end);
    }
    for (int64_t i = begin; i < end; ++i)
      exact[size(i)] = std::copysign(std::sqrt(-exact[size(i)] * delta[size(i * k + i)]), w[size(i)]);
  });
  over_parts(k, k * 64, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      R *column = delta.data() + j * k, length(1);
      if (k > 2) {  // else these are the vectors
        for (int64_t i = 0; i < k; ++i) column[i] = exact[size(i)] / column[i];
        length = std::sqrt(sweeps<R>().squares(k, column));
      }
      for (int64_t i = 0; i < k; ++i) s[size(j * k + i)] = column[groups[size(i)] - 1] / length;
    }
  });
  // Columns of the first half, of both, and of the second.
  const int64_t first = counts[0] + counts[1], second = counts[1] + counts[2], rest = n - half;
  for (int64_t j = 0; j < k; ++j) std::fill_n(q + j * n, n, R(0));
  multiply<R>(half, k, first, 1, {halves.data(), half}, {s.data(), k}, 0, {q, n});
  multiply<R>(rest, k, second, 1, {halves.data() + half * first, rest}, {s.data() + counts[0], k}, 0, {q + half, n});
  return 0;
}

// Vectors of a tridiagonal matrix, whose element type may be complex, by columns of z (n, n).
template <class R, class T>
int tridiagonal_vectors(int64_t n, R* d, R* e, T* z) {
  constexpr int64_t kMergedFrom = 64;  // the order from which two threads are worth it
  Memory<R> q(static_cast<size_t>(n * n));
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  if (n < kMergedFrom) {
    if (const int info = tridiagonal_eigh(n, d, e, q.data(), n)) return info;
  } else {
    const int64_t half = n / 2;
    const R rho = e[half - 1];
    d[half - 1] -= std::abs(rho), d[half] -= std::abs(rho);
    std::fill(q.begin(), q.end(), R(0));
    int infos[2];
    over_pieces(2, [&](int64_t i) {
      const int64_t at = i * half;
      infos[i] = tridiagonal_eigh(i ? n - half : half, d + at, e + at, q.data() + at * (n + 1), n);
    });
    if (infos[0] || infos[1]) return infos[0] ? infos[0] : infos[1];
    if (const int info = merge_halves(n, half, d, q.data(), rho)) return info;
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return d[a] < d[b]; });
    std::sort(d, d + n);
  }
  for (int64_t j = 0; j < n; ++j) {
    const R* from = q.data() + order[static_cast<size_t>(j)] * n;
    std::copy(from, from + n, z + j * n);
  }
  return 0;
}

// Eigenvalues, ascending, of the Hermitian matrix whose lower triangle a (n, n) holds, and in z unless it is null the
// vectors. a is overwritten. info is that of LAPACK's stedc.
template <class T>
int large_eigh(int64_t n, T* a, Real<T>* values, T* z) {
  using R = Real<T>;
  const R scale = unit_scale(n * n, a);
  std::transform(a, a + n * n, a, [=](T x) { return x * scale; });
  std::vector<R> e(static_cast<size_t>(n));
  std::vector<T> tau(static_cast<size_t>(n));
  tridiagonalize(n, a, n, values, e.data(), tau.data());
  const int info =
      z ? tridiagonal_vectors(n, values, e.data(), z) : tridiagonal_eigh<R>(n, values, e.data(), nullptr, n);
  for (int64_t i = 0; i < n; ++i) values[i] /= scale;
  if (info || !z) return info;
  Unitary<T>(n - 1, n - 1, a + 1, n, tau.data()).apply(false, n, z + 1, n);
  return 0;
}

// Singular values, descending, of a (m, n), m >= n, which is overwritten. Unless v is null, U (m, width) for a width of
// n or m and V (n, n), by columns. info is that of LAPACK's bdsdc.
template <class T>
int large_svd(int64_t m, int64_t n, T* a, Real<T>* s, T* u, int64_t width, T* v) {
  using R = Real<T>;
  const R scale = unit_scale(m * n, a);
  std::transform(a, a + m * n, a, [=](T x) { return x * scale; });
  const bool tall = 2 * m > 3 * n;  // as R of a QR decomposition, which is n by n
  Memory<T> tau(static_cast<size_t>(3 * n)), triangle;
  T *tau_q = tau.data() + n, *tau_p = tau_q + n, *b = a;
  int64_t height = m;
  std::optional<Unitary<T>> q;
  if (tall) {
    q = factor_qr(m, n, a, m, tau.data());
    triangle.assign(static_cast<size_t>(n * n), T(0));
    for (int64_t j = 0; j < n; ++j) std::copy_n(a + j * m, j + 1, triangle.data() + j * n);
    b = triangle.data(), height = n;
  }
  Memory<R> e(static_cast<size_t>(n)), vectors(v ? static_cast<size_t>(2 * n * n) : 0);
  Memory<T> p(static_cast<size_t>(n * n));
  bidiagonalize(height, n, b, height, s, e.data(), tau_q, p.data(), tau_p);
  char upper = 'U', job = v ? 'I' : 'N';
  int order = as_int(n), info = 0;
  Memory<R> work(static_cast<size_t>(v ? 3 * n * n + 4 * n : 4 * n));
  std::vector<int> int_work(static_cast<size_t>(8 * n));
  R *u_b = vectors.data(), *vt_b = u_b + (v ? n * n : 0);
  condensed<R>.bdsdc(&upper, &job, &order, s, e.data(), u_b, &order, vt_b, &order, nullptr, nullptr, work.data(),
                     int_work.data(), &info);
  for (int64_t i = 0; i < n; ++i) s[i] /= scale;
  if (info || !v) return info;
  for (int64_t j = 0; j < width; ++j) {
    std::fill(u + j * m, u + (j + 1) * m, T(0));
    if (j < n)
      std::copy_n(u_b + j * n, n, u + j * m);
    else
      u[j * (m + 1)] = T(1);
  }
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < n; ++i) v[j * n + i] = vt_b[i * n + j];
  Unitary<T>(height, n, b, height, tau_q).apply(false, tall ? n : width, u, m);
  if (q) q->apply(false, width, u, m);
  Unitary<T>(n - 1, n - 1, p.data() + 1, n, tau_p).apply(false, n, v + 1, n);
  return 0;
}

}  // namespace rl
