// Eigenvalues and eigenvectors of any matrix: balanced, reduced to Hessenberg form, brought to Schur form by QR
// iterations with early deflation, and solved for the vectors of the triangle that is left.
#pragma once
#include <array>

#include "condensed.h"
#include "schur.h"

namespace rl {

const SchurTable& schur_table();
template <class T>
const SchurKernels<T, Real<T>>& schur_kernels() {
  if constexpr (std::is_same_v<T, float>) return schur_table().s;
  if constexpr (std::is_same_v<T, double>) return schur_table().d;
  if constexpr (std::is_same_v<T, std::complex<float>>) return schur_table().c;
  if constexpr (std::is_same_v<T, std::complex<double>>) return schur_table().z;
}

// A = Q H Q^H of the rows and columns [lo, hi) of a matrix that is triangular beyond them. H takes the place of A, and
// below its diagonals lie the reflectors of Q, as LAPACK's gehrd leaves them.
template <class T>
void hessenberg(int64_t n, int64_t lo, int64_t hi, T* a, int64_t lda, T* tau) {
  Turned<T> u(hi), x(hi), next(hi);
  std::vector<T> y(static_cast<size_t>(n)), g(y), v(y), c(y);
  std::vector<Turned<T>> sums(static_cast<size_t>(api->num_threads()), Turned<T>(hi));
  const auto update = [&](int64_t j) {
    const T y_j = conj(y[static_cast<size_t>(j)]), v_j = conj(v[static_cast<size_t>(j)]);
    for (int64_t k = 0; k < hi; ++k) a[j * lda + k] -= u[k] * y_j + x[k] * v_j;
  };
  for (int64_t i = lo; i + 1 < hi; ++i) {
    T* column = a + i * lda;
    update(i);
    const int64_t first = i + 1, rest = n - first;
    const Reflector<T> h = reflect(hi - first, column + first);
    tau[i] = h.tau;
    column[first] = h.beta;
    for (int64_t k = std::max(lo, i - 1); k < first; ++k) next.set(k, T(0));
    next.set(first, T(1));
    for (int64_t k = first + 1; k < hi; ++k) next.set(k, column[k]);
    for (int64_t k = first; k < hi; ++k) c[static_cast<size_t>(k)] = next[k];
    const int64_t pieces = sweep_pieces<T>(hi * rest);
    over_pieces(pieces, rest, false, [&](int64_t piece, int64_t begin, int64_t end) {
      Turned<T>& z = sums[static_cast<size_t>(piece)];
      z.clear(0);
      sweeps<T>().similar(hi, begin, end, a + first * lda, lda, hi, u.data(), y.data() + first, x.data(),
                          v.data() + first, next.data(), c.data() + first, g.data() + first, z.data());
    });
    T product(0);
    for (int64_t k = first; k < hi; ++k) product += conj(g[static_cast<size_t>(k)]) * next[k];
    product *= conj(h.tau);
    for (int64_t k = 0; k < hi; ++k) {
      T sum(0);
      for (int64_t piece = 0; piece < pieces; ++piece) sum += sums[static_cast<size_t>(piece)].sum(k);
      x.set(k, h.tau * (sum - product * next[k]));
    }
    for (int64_t k = first; k < n; ++k) y[static_cast<size_t>(k)] = h.tau * g[static_cast<size_t>(k)];
    v = c;
    u.swap(next);
  }
  if (hi - lo > 1)
    for (int64_t j = hi - 1; j < n; ++j) update(j);
}

// The leading dimension of a matrix of n rows whose columns are read to three elements past the last one and do not
// fall on the same lines of the cache.
template <class T>
int64_t padded(int64_t n) {
  const int64_t line = std::max<int64_t>(1, 64 / static_cast<int64_t>(sizeof(T)));
  const int64_t lines = (n + 3) / line + 1;
  return (lines % 8 ? lines : lines + 1) * line;
}

// The rotation (c, s) that makes (a, b; c, d) triangular, or where its eigenvalues are no real numbers, gives it equal
// numbers on the diagonal and b c < 0: Bai and Demmel, "On swapping diagonal blocks in real Schur form" (1993).
template <class R>
std::pair<R, R> standard_form(R& a, R& b, R& c, R& d) {
  if (c == 0) return {R(1), R(0)};
  if (b == 0) {
    std::swap(a, d);
    b = -std::exchange(c, R(0));
    return {R(0), R(1)};
  }
  const auto opposite = [&] { return std::signbit(b) != std::signbit(c); };
  R difference = a - d, half = difference / 2;
  if (difference == 0 && opposite()) return {R(1), R(0)};
  const R most = std::max(std::abs(b), std::abs(c)),
          least = std::min(std::abs(b), std::abs(c)) * (opposite() ? R(-1) : R(1));
  const R scale = std::max(std::abs(half), most), discriminant = half / scale * half + most / scale * least;
  if (discriminant >= 4 * std::numeric_limits<R>::epsilon()) {
    const R z = half + std::copysign(std::sqrt(scale) * std::sqrt(discriminant), half), length = std::hypot(c, z);
    const std::pair<R, R> rotation(z / length, c / length);
    a = d + z, d -= most / z * least;
    b -= std::exchange(c, R(0));
    return rotation;
  }
  const R sum = b + c, length = std::hypot(sum, difference);
  R cosine = std::sqrt((1 + std::abs(sum) / length) / 2), sine = -(half / (length * cosine)) * std::copysign(R(1), sum);
  const R a1 = a * cosine + b * sine, b1 = b * cosine - a * sine, c1 = c * cosine + d * sine,
          d1 = d * cosine - c * sine;
  a = a1 * cosine + c1 * sine, b = b1 * cosine + d1 * sine, c = c1 * cosine - a1 * sine, d = d1 * cosine - b1 * sine;
  a = d = (a + d) / 2;
  if (c == 0) return {cosine, sine};
  if (b == 0) {
    b = -std::exchange(c, R(0));
    return {-sine, cosine};
  }
  if (opposite()) return {cosine, sine};
  const R root_b = std::sqrt(std::abs(b)), root_c = std::sqrt(std::abs(c)),
          to_values = std::copysign(root_b * root_c, c);
  const R inverse = 1 / std::sqrt(std::abs(b + c)), cosine2 = root_b * inverse, sine2 = root_c * inverse;
  a += to_values, d -= to_values;
  b -= std::exchange(c, R(0));
  return {cosine * cosine2 - sine * sine2, cosine * sine2 + sine * cosine2};
}

// The QR iteration on a Hessenberg matrix H (n, n) with padded columns. All of H becomes the Schur form where `whole`,
// else only the diagonal blocks are right. Z, unless null, is multiplied by the vectors from the right.
template <class T>
class SchurForm {
  using R = Real<T>;
  using C = std::complex<R>;

 public:
  SchurForm(int64_t n, T* h, int64_t ld, int64_t rows_of_z, T* z, int64_t ldz, bool whole)
      : n_(n), h_(h), ld_(ld), m_(rows_of_z), z_(z), ldz_(ldz), whole_(whole) {}

  // Reduces the rows and columns [lo, hi); the number of leading rows that are not triangular, or 0.
  int64_t reduce(int64_t lo, int64_t hi) {
    int64_t stalls = 0, left = 30 * std::max<int64_t>(10, hi - lo);
    std::vector<C> shifts;
    for (; hi > lo && left > 0; --left) {
      const int64_t begin = split(lo, hi);
      if (hi - begin <= kSmall) {
        if (!reduce_small(begin, hi)) return hi;
        hi = begin, stalls = 0;
        continue;
      }
      const int64_t order = hi - begin, window = window_of(order, stalls);
      const int64_t deflated = deflate(begin, hi, window, shifts);
      hi -= deflated;
      stalls = deflated ? 0 : stalls + 1;
      if (deflated && 100 * deflated > kNibble * window) continue;
      if (hi - begin <= kSmall) continue;
      if (stalls && stalls % 6 == 0) exceptional_shifts(hi, shifts_of(order), shifts);
      sweep_all(begin, hi, shifts);
    }
    return hi > lo ? hi : 0;
  }

  C value(int64_t k) const {
    if constexpr (kComplex<T>) {
      return at(k, k);
    } else {
      if (k + 1 < n_ && at(k + 1, k) != 0) return C(at(k, k), imaginary(k));
      if (k > 0 && at(k, k - 1) != 0) return C(at(k, k), -imaginary(k - 1));
      return at(k, k);
    }
  }

 private:
  static constexpr R kEps = std::numeric_limits<R>::epsilon(), kLeast = std::numeric_limits<R>::min();
  static constexpr int64_t kSmall = 100;                   // the largest order of the plain iteration
  static constexpr int64_t kNibble = 14;                   // per cent of a window that, deflated, are worth another
  static constexpr int64_t kChain = kComplex<T> ? 16 : 8;  // bulges

  T& at(int64_t i, int64_t j) const { return h_[j * ld_ + i]; }
  static R size(T x) {
    if constexpr (kComplex<T>)
      return std::abs(x.real()) + std::abs(x.imag());
    else
      return std::abs(x);
  }
  R imaginary(int64_t k) const { return std::sqrt(size(at(k, k + 1))) * std::sqrt(size(at(k + 1, k))); }
  R nothing() const { return kLeast * (static_cast<R>(n_) / kEps); }

  static int64_t shifts_of(int64_t order) {
    const double n = static_cast<double>(order);
    return order < 150    ? 10
           : order < 590  ? std::max<int64_t>(10, std::lround(n / std::round(std::log2(n)))) / 2 * 2
           : order < 3000 ? 64
                          : 128;
  }
  static int64_t window_of(int64_t order, int64_t stalls) {
    int64_t window = order < 500 ? shifts_of(order) : 3 * shifts_of(order) / 2;
    if (stalls >= 5) window *= 2;
    return std::min(window, (order - 1) / 3);
  }

  // Whether H[k, k - 1] may be taken for 0: Ahues and Tisseur, "A new deflation criterion for the QR algorithm" (1997).
  bool negligible(int64_t k, int64_t lo, int64_t hi) const {
    const R below = size(at(k, k - 1));
    if (below <= nothing()) return true;
    R scale = size(at(k - 1, k - 1)) + size(at(k, k));
    if (scale == 0) {
      if (k - 2 >= lo) scale += size(at(k - 1, k - 2));
      if (k + 1 < hi) scale += size(at(k + 1, k));
    }
    if (below > kEps * scale) return false;
    const R above = size(at(k - 1, k)), difference = size(at(k - 1, k - 1) - at(k, k)), diagonal = size(at(k, k));
    const R most = std::max(below, above), least = std::min(below, above), larger = std::max(diagonal, difference),
            smaller = std::min(diagonal, difference), sum = larger + most;
    return least * (most / sum) <= std::max(nothing(), kEps * (smaller * (larger / sum)));
  }
  // The first row of the block that ends with row hi - 1.
  int64_t split(int64_t lo, int64_t hi) const {
    for (int64_t k = hi - 1; k > lo; --k)
      if (negligible(k, lo, hi)) {
        at(k, k - 1) = T(0);
        return k;
      }
    return lo;
  }

  int64_t first_row(int64_t lo) const { return whole_ ? 0 : lo; }
  int64_t columns(int64_t hi) const { return whole_ ? n_ : hi; }

  // ---- the plain iteration: one bulge

  bool reduce_small(int64_t lo, int64_t hi) {
    const int64_t limit = 30 * std::max<int64_t>(10, hi - lo);
    int64_t since = 0;
    for (int64_t i = 0; hi > lo; ++i) {
      if (i > limit) return false;
      const int64_t begin = split(lo, hi);
      if (hi - begin < kBulge<T>) {
        if (hi - begin == 2) standardize(begin);
        hi = begin, since = 0;
        continue;
      }
      const std::array<R, kBulgeShifts> shifts = next_shifts(begin, hi, ++since);
      const Chain chain{begin, hi, 1, 0, hi - begin - 1, begin, hi};
      reflections_.resize(static_cast<size_t>((hi - begin) * kReflection));
      schur_kernels<T>().chase(chain, shifts.data(), first_row(begin), columns(hi), h_, ld_, reflections_.data());
      if (z_) schur_kernels<T>().reflect_right(chain, reflections_.data(), m_, z_, ldz_);
    }
    return true;
  }

  // The eigenvalues of the last two rows or, where these have not helped, what LAPACK's lahqr takes.
  std::array<R, kBulgeShifts> next_shifts(int64_t lo, int64_t hi, int64_t since) const {
    const int64_t k = hi - 1;
    T a = at(k - 1, k - 1), b = at(k - 1, k), c = at(k, k - 1), d = at(k, k);
    if (since % 20 == 10) {  // at the top
      const R s = size(at(lo + 1, lo)) + (hi - lo > 2 ? size(at(lo + 2, lo + 1)) : R(0));
      a = d = T(R(0.75) * s) + at(lo, lo), b = T(R(-0.4375) * s), c = T(s);
    } else if (since % 20 == 0) {
      const R s = size(at(k, k - 1)) + size(at(k - 1, k - 2 >= lo ? k - 2 : k - 1));
      a = d = T(R(0.75) * s) + at(k, k), b = T(R(-0.4375) * s), c = T(s);
    }
    if constexpr (kComplex<T>) {
      if (since % 10 == 0) return {a.real(), a.imag(), 0, 0};
      const auto [first, second] = values_of(a, b, c, d);
      const C shift = std::abs(first - d) <= std::abs(second - d) ? first : second;
      return {shift.real(), shift.imag(), 0, 0};
    } else {
      auto [first, second] = values_of(a, b, c, d);
      if (first.imag() == 0) first = second = std::abs(first - d) <= std::abs(second - d) ? first : second;
      return {first.real(), first.imag(), second.real(), second.imag()};
    }
  }
  static std::pair<C, C> values_of(T a, T b, T c, T d) {
    const R scale = size(a) + size(b) + size(c) + size(d);
    if (scale == 0) return {C(0), C(0)};
    a /= scale, b /= scale, c /= scale, d /= scale;
    const T half = (a - d) / R(2);
    const C middle = (a + d) / R(2), root = std::sqrt(C(half * half + b * c));
    return {(middle + root) * scale, (middle - root) * scale};
  }

  // Two real rows that hold two real eigenvalues or a conjugate pair, in LAPACK's form.
  void standardize(int64_t k) {
    if constexpr (!kComplex<T>) {
      const auto [cosine, sine] = standard_form(at(k, k), at(k, k + 1), at(k + 1, k), at(k + 1, k + 1));
      const auto rotate = [c = cosine, s = sine](T* x, T* y, int64_t count, int64_t step) {
        for (int64_t i = 0; i < count; ++i, x += step, y += step) {
          const T kept = c * *x + s * *y;
          *y = c * *y - s * *x;
          *x = kept;
        }
      };
      if (whole_) {
        if (k + 2 < n_) rotate(&at(k, k + 2), &at(k + 1, k + 2), n_ - k - 2, ld_);
        rotate(&at(0, k), &at(0, k + 1), k, 1);
      }
      if (z_) rotate(z_ + k * ldz_, z_ + (k + 1) * ldz_, m_, 1);
    }
  }

  // ---- many bulges

  void exceptional_shifts(int64_t hi, int64_t count, std::vector<C>& shifts) const {
    shifts.clear();
    for (int64_t k = hi - 1; static_cast<int64_t>(shifts.size()) < count; k -= 2) {
      const R s = size(at(k, k - 1)) + size(at(k - 1, k - 2));
      const T middle = T(R(0.75) * s) + at(k, k);
      const auto [first, second] = values_of(middle, T(R(-0.4375) * s), T(s), middle);
      shifts.push_back(first), shifts.push_back(second);
    }
  }

  void sweep_all(int64_t lo, int64_t hi, const std::vector<C>& shifts) {
    std::vector<R> bulges;
    const auto add = [&](C first, C second) {
      for (const R part : {first.real(), first.imag(), second.real(), second.imag()}) bulges.push_back(part);
    };
    if constexpr (kComplex<T>) {
      for (const C shift : shifts) add(shift, C(0));
    } else {  // conjugate pairs lie together; real ones are paired as they come
      std::vector<R> real;
      for (size_t i = 0; i < shifts.size(); ++i)
        if (shifts[i].imag() == 0)
          real.push_back(shifts[i].real());
        else if (shifts[i].imag() > 0)
          add(shifts[i], std::conj(shifts[i]));
      for (size_t i = 0; i + 1 < real.size(); i += 2) add(real[i], real[i + 1]);
      if (bulges.empty() && !real.empty()) add(real[0], real[0]);
    }
    const auto count = static_cast<int64_t>(bulges.size()) / kBulgeShifts;
    const int64_t chains = (count + kChain - 1) / kChain;
    for (int64_t i = 0; i < chains; ++i) {
      const int64_t begin = count * i / chains, end = count * (i + 1) / chains;
      sweep(lo, hi, end - begin, bulges.data() + begin * kBulgeShifts);
    }
  }

  void sweep(int64_t lo, int64_t hi, int64_t bulges, const R* shifts) {
    const auto& kernels = schur_kernels<T>();
    const int64_t span = kBulge<T> * bulges, times = hi - lo - 1 + span - kBulge<T>, step = kSpans - span + 1;
    reflections_.resize(static_cast<size_t>(bulges * step * kReflection));
    for (int64_t time = 0; time < times; time += step) {
      const int64_t end = std::min(time + step, times);
      const int64_t first = std::max(lo, lo + time - kBulge<T> * (bulges - 1));
      const int64_t last = std::min(hi, lo + end - 1 + kBulge<T>);
      const Chain chain{lo, hi, bulges, time, end, first, last};
      R* const reflections = reflections_.data();
      kernels.chase(chain, shifts, first, last, h_, ld_, reflections);
      const int64_t top = first_row(lo), above = first - top, right = columns(hi) - last, below = z_ ? m_ : 0;
      over_lines(right + above + below, last - first, [=](int64_t begin, int64_t end) {
        const auto part = [&](int64_t from, int64_t count, auto&& body) {
          const int64_t a = std::max(begin, from), b = std::min(end, from + count);
          if (a < b) body(a - from, b - a);
        };
        part(0, right, [&](int64_t at, int64_t count) {
          schur_kernels<T>().reflect_left(chain, reflections, count, h_ + (last + at) * ld_, ld_);
        });
        part(right, above, [&](int64_t at, int64_t count) {
          schur_kernels<T>().reflect_right(chain, reflections, count, h_ + top + at, ld_);
        });
        part(right + above, below, [&](int64_t at, int64_t count) {
          schur_kernels<T>().reflect_right(chain, reflections, count, z_ + at, ldz_);
        });
      });
    }
  }
  // body(begin, end) over rows and columns of `length` elements, on as many threads as that is worth.
  template <class F>
  static void over_lines(int64_t lines, int64_t length, const F& body) {
    constexpr int64_t kWorthSharing = kComplex<T> ? 4000 : 8000;
    const int64_t pieces = std::max<int64_t>(1, std::min<int64_t>(api->num_threads(), lines * length / kWorthSharing));
    over_pieces(pieces, [&](int64_t i) { body(lines * i / pieces, lines * (i + 1) / pieces); });
  }

  // ---- early deflation: Braman, Byers and Mathias, "The multishift QR algorithm. Part II" (2002)

  // Eigenvalues of the last rows that are those of H take their place; the others are the next shifts. The number of
  // rows that are done.
  int64_t deflate(int64_t lo, int64_t hi, int64_t window, std::vector<C>& shifts) {
    const int64_t top = hi - window, order = window + 1, ld = padded<T>(order);
    T spike = top > lo ? at(top, top - 1) : T(0);
    // The window with the column on its left, which becomes a spike, and a row above.
    std::vector<T> copy(static_cast<size_t>(ld * order + 4)), v(static_cast<size_t>(window * window)), tau(v);
    T* t = copy.data() + ld + 1;
    for (int64_t j = 0; j < window; ++j) {
      std::copy_n(&at(top, top + j), std::min(j + 2, window), t + j * ld);
      v[static_cast<size_t>(j * (window + 1))] = T(1);
    }
    SchurForm form(window, t, ld, window, v.data(), window, true);
    const int64_t failed = form.reduce_small(0, window) ? 0 : form.split_point();
    const auto tip = [&](int64_t k) { return size(spike * v[static_cast<size_t>(k * window)]); };
    int64_t kept = window;
    for (int64_t to = failed; to < kept;) {
      const bool pair = !kComplex<T> && kept > 1 && form.at(kept - 1, kept - 2) != T(0);
      R scale = size(form.at(kept - 1, kept - 1));
      if (pair) scale += std::sqrt(size(form.at(kept - 1, kept - 2))) * std::sqrt(size(form.at(kept - 2, kept - 1)));
      if (scale == 0) scale = size(spike);
      const R most = pair ? std::max(tip(kept - 1), tip(kept - 2)) : tip(kept - 1);
      if (most <= std::max(nothing(), kEps * scale)) {
        kept -= pair ? 2 : 1;
      } else {
        int moved = as_int(to) + 1;
        exchange(window, t, ld, v.data(), as_int(kept), moved);
        to = moved - 1 + (pair ? 2 : 1);
      }
    }
    if (!kept) spike = T(0);
    shifts.clear();
    for (int64_t k = failed; k < kept; ++k) shifts.push_back(form.value(k));
    if (shifts.empty())
      for (int64_t k = 0; k < window; ++k) shifts.push_back(form.value(k));
    if (kept == window && spike != T(0)) return 0;
    for (int64_t k = 0; k < kept; ++k)
      copy[static_cast<size_t>(k + 1)] = spike * conj(v[static_cast<size_t>(k * window)]);
    if (kept > 1 && spike != T(0)) {
      hessenberg(order, 0, kept + 1, copy.data(), ld, tau.data());
      std::vector<T> q(static_cast<size_t>(kept * kept)), product(static_cast<size_t>(window * kept));
      Unitary<T>(kept, kept, copy.data() + 1, ld, tau.data()).columns(kept, kept, q.data(), kept);
      multiply<T>(window, kept, kept, 1, {v.data(), window}, {q.data(), kept}, 0, {product.data(), window});
      std::copy(product.begin(), product.end(), v.begin());
    }
    for (int64_t j = 0; j < window; ++j)
      for (int64_t i = 0; i < window; ++i) at(top + i, top + j) = i > j + 1 ? T(0) : t[j * ld + i];
    if (top > lo) at(top, top - 1) = kept ? copy[1] : T(0);
    apply_window(lo, hi, top, v);
    return window - kept;
  }
  // Of a Schur form that failed: where it is triangular from.
  int64_t split_point() const {
    for (int64_t k = n_ - 1; k > 0; --k)
      if (at(k, k - 1) != T(0) && (kComplex<T> || k < 2 || at(k - 1, k - 2) != T(0))) return k + 1;
    return 0;
  }
  void exchange(int64_t n, T* t, int64_t ld, T* v, int from, int& to) const {
    char update = 'V';
    int order = as_int(n), ld_t = as_int(ld), ld_v = order, info = 0;
    if constexpr (kComplex<T>) {
      lapack<T>.trexc(&update, &order, t, &ld_t, v, &ld_v, &from, &to, &info);
    } else {
      std::vector<T> work(static_cast<size_t>(n));
      lapack<T>.trexc(&update, &order, t, &ld_t, v, &ld_v, &from, &to, work.data(), &info);
    }
  }
  // The rest of H, and Z, times the vectors of a window.
  void apply_window(int64_t lo, int64_t hi, int64_t top, std::vector<T>& v) {
    const int64_t window = hi - top, first = first_row(lo), right = columns(hi) - hi;
    const auto from_right = [&](int64_t m, T* x, int64_t ld) {
      Memory<T> copy(static_cast<size_t>(m * window));
      multiply<T>(m, window, window, 1, {x, ld}, {v.data(), window}, 0, {copy.data(), m});
      for (int64_t j = 0; j < window; ++j) std::copy_n(copy.data() + j * m, m, x + j * ld);
    };
    if (top > first) from_right(top - first, &at(first, top), ld_);
    if (z_) from_right(m_, z_ + top * ldz_, ldz_);
    if (!right) return;
    conjugate(window, window, v.data(), window);
    Memory<T> copy(static_cast<size_t>(window * right));
    multiply<T>(window, right, window, 1, Matrix<T>(v.data(), window).transposed(), {&at(top, hi), ld_}, 0,
                {copy.data(), window});
    for (int64_t j = 0; j < right; ++j) std::copy_n(copy.data() + j * window, window, &at(top, hi + j));
  }

  int64_t n_;
  T* h_;
  int64_t ld_, m_;
  T* z_;
  int64_t ldz_;
  bool whole_;
  std::vector<R> reflections_;
};

// Similarity by a permutation and a diagonal matrix, LAPACK's gebal: it isolates eigenvalues and makes rows and columns
// about equal.
template <class T>
class Balance {
  using R = Real<T>;

 public:
  // The largest part of A is about 1, before and after.
  Balance(int64_t n, T* a, int64_t lda) : lo(0), hi(n) {
    if (is_balanced(n, a, lda)) return;
    const auto times = [&](R factor) { std::transform(a, a + n * lda, a, [=](T x) { return x * factor; }); };
    const R room = std::ldexp(R(1), std::numeric_limits<R>::max_exponent / 2);  // for small elements
    times(room);
    char job = 'B';
    int order = as_int(n), ld = as_int(lda), low = 1, high = order, info = 0;
    scale_.resize(static_cast<size_t>(n));
    lapack<T>.gebal(&job, &order, a, &ld, &low, &high, scale_.data(), &info);
    lo = low - 1, hi = high;
    const R back = unit_scale(n * lda, a);
    times(back);
    factor_ = room * back;
  }
  // What a value of the balanced matrix is for the matrix.
  std::complex<R> undo(std::complex<R> value) const { return value / factor_; }
  // What a vector of the balanced matrix is for the matrix.
  template <class C>
  void undo(C* v) const {
    const auto n = static_cast<int64_t>(scale_.size());
    if (!n) return;
    for (int64_t i = lo; i < hi; ++i) v[i] *= scale_[static_cast<size_t>(i)];
    const auto swap = [&](int64_t i) { std::swap(v[i], v[static_cast<int64_t>(scale_[static_cast<size_t>(i)]) - 1]); };
    for (int64_t i = lo; i-- > 0;) swap(i);
    for (int64_t i = hi; i < n; ++i) swap(i);
  }

  int64_t lo, hi;

 private:
  // Whether no row is 0 beside the diagonal, nor any column, nor a row twice as large as its column.
  static bool is_balanced(int64_t n, const T* a, int64_t lda) {
    constexpr R kTiny = std::numeric_limits<R>::min() / std::numeric_limits<R>::epsilon();
    std::vector<R> rows(static_cast<size_t>(n)), columns(rows);
    for (int64_t j = 0; j < n; ++j) {
      R sum(0);
      for (int64_t i = 0; i < n; ++i) {
        const R square = i == j ? R(0) : std::norm(a[j * lda + i]);
        rows[static_cast<size_t>(i)] += square;
        sum += square;
      }
      columns[static_cast<size_t>(j)] = sum;
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      const R row = rows[i], column = columns[i];
      if (!(row > kTiny && column > kTiny && row < 4 * column && column < 4 * row)) return false;
    }
    return true;
  }

  std::vector<R> scale_;
  R factor_ = 1;
};

// A vector of length 1 whose largest element is real, unless the vector is real.
template <class R>
void normalize(int64_t n, std::complex<R>* v, bool is_real) {
  R most(0);
  double squares(0);
  for (int64_t i = 0; i < n; ++i) most = std::max(most, std::max(std::abs(v[i].real()), std::abs(v[i].imag())));
  if (most == 0) return;
  const R scale = std::ldexp(R(1), std::clamp(-std::ilogb(most), -std::numeric_limits<R>::max_exponent + 2,
                                              std::numeric_limits<R>::max_exponent - 2));
  R largest(-1);
  int64_t at = 0;
  for (int64_t i = 0; i < n; ++i) {
    const R re = v[i].real() * scale, im = v[i].imag() * scale, square = re * re + im * im;
    v[i] = {re, im};
    squares += static_cast<double>(square);
    if (square > largest) largest = square, at = i;
  }
  const R length = static_cast<R>(std::sqrt(squares));
  R c(1 / length), s(0);
  if (!is_real) {
    const R size = std::sqrt(largest) * length;
    c = v[at].real() / size, s = -v[at].imag() / size;
  }
  for (int64_t i = 0; i < n; ++i) {
    const R re = v[i].real(), im = v[i].imag();
    v[i] = {re * c - im * s, re * s + im * c};
  }
  if (!is_real) v[at] = v[at].real();
}

// A real Schur form as a triangle of complex numbers: every pair of rows with a conjugate pair of values is turned by
// (alpha, i beta; i beta, alpha).
template <class R>
struct Turn {
  int64_t row;
  R alpha, beta;
};
template <class R>
std::vector<Turn<R>> complex_triangle(int64_t n, const R* t, int64_t ld, std::complex<R>* to) {
  using C = std::complex<R>;
  std::vector<Turn<R>> turns;
  for (int64_t k = 0; k + 1 < n; ++k) {
    const R above = t[(k + 1) * ld + k], below = t[k * ld + k + 1];
    if (below == 0) continue;
    const R a = std::sqrt(std::abs(above)), b = std::sqrt(std::abs(below)), length = std::hypot(a, b);
    turns.push_back({k, std::copysign(a, above) / length, b / length});
  }
  for (int64_t j = 0; j < n; ++j) {
    const int64_t end = std::min(j + 2, n);
    for (int64_t i = 0; i < end; ++i) to[j * n + i] = t[j * ld + i];
  }
  for (const Turn<R>& turn : turns)  // from the right, where all is real still
    for (int64_t i = 0; i < turn.row + 2; ++i) {
      C &x = to[turn.row * n + i], &y = to[(turn.row + 1) * n + i];
      const R first = x.real(), second = y.real();
      x = C(turn.alpha * first, turn.beta * second);
      y = C(turn.alpha * second, turn.beta * first);
    }
  for (int64_t j = 0; j < n; ++j)
    for (const Turn<R>& turn : turns) {
      if (turn.row > j) break;
      C &x = to[j * n + turn.row], &y = to[j * n + turn.row + 1];
      const C first = x, second = y;
      const auto times_i = [](C c) { return C(-c.imag(), c.real()); };
      x = turn.alpha * first - turn.beta * times_i(second);
      y = turn.alpha * second - turn.beta * times_i(first);
    }
  return turns;
}

// The vectors of H in Schur form, which the columns of Z take to those of the matrix. W are its eigenvalues.
template <class T>
void eigenvectors(int64_t n, T* h, int64_t ld, T* z, const std::complex<Real<T>>* w, const Balance<T>& balance,
                  std::complex<Real<T>>* v) {
  using R = Real<T>;
  using C = std::complex<R>;
  Memory<C> copy(kComplex<T> ? 0 : static_cast<size_t>(n * n));
  const C* triangle = copy.data();
  int64_t ld_triangle = n;
  std::vector<Turn<R>> turns;
  if constexpr (kComplex<T>)
    triangle = h, ld_triangle = ld;
  else
    turns = complex_triangle(n, h, ld, copy.data());
  std::vector<int64_t> columns;  // of a conjugate pair the first
  for (int64_t j = 0; j < n; ++j)
    if (kComplex<T> || w[j].imag() >= 0) columns.push_back(j);
  const int64_t lanes = schur_kernels<T>().lanes, count = static_cast<int64_t>(columns.size());
  const R smallest = std::numeric_limits<R>::min() * (static_cast<R>(n) / std::numeric_limits<R>::epsilon());
  const int64_t panels = (count + lanes - 1) / lanes;
  constexpr double kWorthSharing = 4e4;
  const bool shared = static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n) > kWorthSharing;
  const auto panel = [&](int64_t p) {
    const int64_t first = p * lanes, width = std::min(lanes, count - first);
    std::vector<int64_t> values(static_cast<size_t>(lanes), columns[static_cast<size_t>(first + width - 1)]);
    std::copy_n(columns.begin() + first, width, values.begin());
    const int64_t rows = std::min(values.back() + 2, n);
    Memory<R> x(static_cast<size_t>(rows * 2 * lanes));
    std::fill(x.end() - 2 * lanes, x.end(), R(0));
    schur_kernels<T>().vectors(triangle, ld_triangle, smallest, values.data(), x.data());
    if constexpr (kComplex<T>) {
      Memory<C> numbers(static_cast<size_t>(rows * lanes));
      for (int64_t k = 0; k < rows; ++k)
        for (int64_t l = 0; l < lanes; ++l)
          numbers[static_cast<size_t>(k * lanes + l)] =
              C(x[static_cast<size_t>(2 * k * lanes + l)], x[static_cast<size_t>((2 * k + 1) * lanes + l)]);
      multiply<C>(n, width, values.back() + 1, 1, {z, ld}, {numbers.data(), lanes, 1}, 0, {v + first * n, n});
    } else {
      for (const Turn<R>& turn : turns) {
        if (turn.row + 1 >= rows) break;
        R *re = x.data() + 2 * turn.row * lanes, *im = re + lanes, *re2 = im + lanes, *im2 = re2 + lanes;
        for (int64_t l = 0; l < lanes; ++l) {
          const C a(re[l], im[l]), b(re2[l], im2[l]);
          re[l] = turn.alpha * a.real() - turn.beta * b.imag(), im[l] = turn.alpha * a.imag() + turn.beta * b.real();
          re2[l] = turn.alpha * b.real() - turn.beta * a.imag(), im2[l] = turn.alpha * b.imag() + turn.beta * a.real();
        }
      }
      Memory<R> parts(static_cast<size_t>(n * 2 * lanes));
      multiply<R>(n, 2 * lanes, rows, 1, {z, ld}, {x.data(), 2 * lanes, 1}, 0, {parts.data(), n});
      for (int64_t l = 0; l < width; ++l) {
        const int64_t j = values[static_cast<size_t>(l)];
        const R *re = parts.data() + l * n, *im = re + lanes * n;
        for (int64_t i = 0; i < n; ++i) v[j * n + i] = C(re[i], w[j].imag() == 0 ? R(0) : im[i]);
      }
    }
    for (int64_t l = 0; l < width; ++l) {
      const int64_t j = values[static_cast<size_t>(l)];
      const bool pair = !kComplex<T> && w[j].imag() > 0;
      C* column = v + j * n;
      balance.undo(column);
      normalize(n, column, !kComplex<T> && !pair);
      if (pair) std::transform(column, column + n, column + n, [](C c) { return std::conj(c); });
    }
  };
  if (shared)
    over_pieces(panels, panel);
  else
    for (int64_t p = 0; p < panels; ++p) panel(p);
}

// Eigenvalues w and, unless v is null, vectors, by columns, of a (n, n) with padded columns, whose largest part is
// about 1 and which is overwritten. info is that of LAPACK's geev.
template <class T>
int eigen(int64_t n, T* a, std::complex<Real<T>>* w, std::complex<Real<T>>* v) {
  const int64_t ld = padded<T>(n);
  const Balance<T> balance(n, a, ld);
  const int64_t lo = balance.lo, hi = balance.hi, order = std::max<int64_t>(hi - lo - 1, 0);
  std::vector<T> tau(static_cast<size_t>(n));
  if (order) hessenberg(n, lo, hi, a, ld, tau.data());
  Memory<T> z(v ? static_cast<size_t>(ld * n) : 0);
  if (v) {
    std::fill(z.begin(), z.end(), T(0));
    for (int64_t j = 0; j < n; ++j) z[static_cast<size_t>(j * (ld + 1))] = T(1);
    if (order)
      Unitary<T>(order, order, a + lo * ld + lo + 1, ld, tau.data() + lo)
          .columns(order, order, z.data() + (lo + 1) * (ld + 1), ld);
  }
  for (int64_t j = 0; j < n; ++j) std::fill(a + j * ld + std::min(j + 2, n), a + (j + 1) * ld, T(0));
  SchurForm<T> form(n, a, ld, n, v ? z.data() : nullptr, ld, v);
  const int64_t failed = form.reduce(lo, hi);
  if (failed) return as_int(failed);
  for (int64_t j = 0; j < n; ++j) w[j] = form.value(j);
  if (v) eigenvectors(n, a, ld, z.data(), w, balance, v);
  for (int64_t j = 0; j < n; ++j) w[j] = balance.undo(w[j]);
  return 0;
}

}  // namespace rl
