// Elements of P real parts are taken as P real ones: see the note on turned vectors in the header.
#include "sweeps.h"

#include "numbers.h"

namespace rl {
namespace RL_ISA {
namespace {

template <class R>
R sum_of_squares(int64_t n, const R* x) {
  Vec<R> sum{};
  by_vectors<R>(0, n, [&](int64_t i, auto lanes) RL_INLINE {
    const Vec<R> e = lanes.get(x + i);
    sum += e * e;
  });
  return sum_lanes<R>(sum);
}

template <class R, int P, class T>
R largest(int64_t n, const T* x) {
  Vec<R> most{}, zero{};  // unless an element is infinite or NaN
  by_vectors<R>(0, n * P, [&](int64_t i, auto lanes) RL_INLINE {
    const Vec<R> e = lanes.get(reinterpret_cast<const R*>(x) + i), size = e < 0 ? -e : e;
    most = size > most ? size : most;
    zero += e * R(0);
  });
  R result = sum_lanes<R>(zero);
  for (int i = 0; i < kLanes<R>; ++i) result = most[i] > result ? most[i] : result;
  return result;
}

template <class R, int P, class T>
R squares(int64_t n, const T* x) {
  return sum_of_squares(n * P, reinterpret_cast<const R*>(x));
}

// ---- products

// Real parts of B (k, n), each column P rows of them, and lines of A (m, k).
template <class R, int P>
struct Parts {
  const R* data;
  int64_t ld;
  R at(int i, int64_t p) const { return data[i / P * ld + p * P + i % P]; }
};
template <class R>
struct Lines {
  const R* data;
  int64_t ld;
  Vec<R> vec(int64_t p, int j) const { return load(data + p * ld + j * kLanes<R>); }
  Vec<R> last_vec(int64_t p, int j, int64_t n) const { return load(data + p * ld + j * kLanes<R>, n); }
};

// C columns of N vectors, of whose last one `last` lanes exist.
template <class R, int P, int C, int N>
[[gnu::noinline]] void subtract_tile(int64_t k, Lines<R> a, Parts<R, P> b, R* c, int64_t ldc, int64_t last) {
  Vec<R> sums[P * C * N];
  multiply<R, P * C, N>(k, b, a, last, sums);
  repeat<C * N>([&](auto x) RL_INLINE {
    constexpr int i = x.value / N, j = x.value % N;
    Vec<R> sum = sums[P * i * N + j];
    if constexpr (P == 2) sum += turned<R>(sums[(P * i + P - 1) * N + j]);
    R* to = c + i * ldc + j * kLanes<R>;
    if constexpr (j + 1 < N)
      store(to, load(to) - sum);
    else
      store(to, load(to, last) - sum, last);
  });
}
template <class R, int P, int N, int Most>
void run_subtract_tile(int columns, int64_t k, Lines<R> a, Parts<R, P> b, R* c, int64_t ldc, int64_t last) {
  if constexpr (Most > 1)
    if (columns < Most) return run_subtract_tile<R, P, N, Most - 1>(columns, k, a, b, c, ldc, last);
  subtract_tile<R, P, Most, N>(k, a, b, c, ldc, last);
}

template <class R, int P, class T>
void subtract(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc) {
  constexpr int kMost = kFloatRows / P;
  constexpr int64_t kHeight = 2 * kLanes<R>;
  const auto *of_a = reinterpret_cast<const R*>(a), *of_b = reinterpret_cast<const R*>(b);
  auto* of_c = reinterpret_cast<R*>(c);
  const int64_t tiles = parts(n, kMost);
  for (int64_t i = 0; i < m * P; i += kHeight) {
    const int64_t height = least(m * P - i, kHeight);
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t j = n * t / tiles, columns = n * (t + 1) / tiles - j;
      const Lines<R> lines{of_a + i, lda * P};
      const Parts<R, P> block{of_b + j * ldb * P, ldb * P};
      R* to = of_c + j * ldc * P + i;
      if (height > kLanes<R>)
        run_subtract_tile<R, P, 2, kMost>(static_cast<int>(columns), k, lines, block, to, ldc * P, height - kLanes<R>);
      else
        run_subtract_tile<R, P, 1, kMost>(static_cast<int>(columns), k, lines, block, to, ldc * P, height);
    }
  }
}

// ---- Hermitian matrices

template <class R, int P, int C>
void hermitian_columns(int64_t n, R* a, int64_t lda, int64_t stride, const R* v, const R* w, const R* x, R* y) {
  using N = Number<R, P>;
  Factor<R, P> of_v[C], of_w[C], of_x[C];
  Vec<R> dots[C][P] = {};
  R* column[C];
  repeat<C>([&](auto q) RL_INLINE {
    constexpr int at = q.value * P;
    column[q.value] = a + q.value * lda;
    of_v[q.value] = Factor<R, P>(N::at(v + at).conj());
    of_w[q.value] = Factor<R, P>(N::at(w + at).conj());
    of_x[q.value] = Factor<R, P>(N::at(x + at));
  });
  for (int q = 0; q < C; ++q)  // the triangle on the diagonal
    for (int r = q; r < C; ++r) {
      R* e = column[q] + r * P;
      N value = N::at(e) - N::at(v + r * P) * N::at(w + q * P).conj() - N::at(w + r * P) * N::at(v + q * P).conj();
      if (q == r) value.im = 0;
      value.to(e);
      (N::at(y + r * P) + value * N::at(x + q * P)).to(y + r * P);
      if (q != r) (N::at(y + q * P) + value.conj() * N::at(x + r * P)).to(y + q * P);
    }
  by_vectors<R>(C * P, n * P, [&](int64_t i, auto lanes) RL_INLINE {
    Vec<R> v_i[P], w_i[P], x_i[P], y_i[P];
    repeat<P>([&](auto p) RL_INLINE {
      const int64_t at = p.value * stride + i;
      v_i[p.value] = lanes.get(v + at), w_i[p.value] = lanes.get(w + at);
      x_i[p.value] = lanes.get(x + at), y_i[p.value] = lanes.get(y + at);
    });
    repeat<C>([&](auto q) RL_INLINE {
      Vec<R> e = lanes.get(column[q.value] + i);
      repeat<P>([&](auto p) RL_INLINE {
        e -= v_i[p.value] * of_w[q.value].part[p.value];
        e -= w_i[p.value] * of_v[q.value].part[p.value];
      });
      lanes.put(column[q.value] + i, e);
      repeat<P>([&](auto p) RL_INLINE {
        y_i[p.value] += e * of_x[q.value].part[p.value];
        dots[q.value][p.value] += e * x_i[p.value];
      });
    });
    repeat<P>([&](auto p) RL_INLINE { lanes.put(y + p.value * stride + i, y_i[p.value]); });
  });
  for (int q = 0; q < C; ++q) (N::at(y + q * P) + adjoint_dot<R, P>(dots[q])).to(y + q * P);
}

template <class R, int P, class T>
void hermitian(int64_t n, int64_t begin, int64_t end, T* a, int64_t lda, int64_t stride, const T* v, const T* w,
               const T* x, T* y) {
  constexpr int kAtOnce = P == 1 ? 4 : 2;
  const auto columns = [&](int64_t j, auto count) {
    const auto at = [&](const T* p) { return reinterpret_cast<const R*>(p) + j * P; };
    hermitian_columns<R, P, decltype(count)::value>(n - j, reinterpret_cast<R*>(a) + j * (lda + 1) * P, lda * P,
                                                    stride * P, at(v), at(w), at(x), reinterpret_cast<R*>(y) + j * P);
  };
  for (; begin + kAtOnce <= end; begin += kAtOnce) columns(begin, Constant<kAtOnce>{});
  for (; begin < end; ++begin) columns(begin, Constant<1>{});
}

// ---- any matrices

template <class R, int P, int C>
void general_columns(int64_t m, R* a, int64_t lda, int64_t stride, const R* u, const R* y, const R* x, const R* v,
                     const R* next, const R* tau, R* g, R* c, R* z) {
  using N = Number<R, P>;
  Factor<R, P> of_y[C], of_v[C], of_c[C];
  Vec<R> dots[C][P] = {};
  R* column[C];
  repeat<C>([&](auto q) RL_INLINE {
    column[q.value] = a + q.value * lda;
    of_y[q.value] = Factor<R, P>(N::at(y + q.value * P).conj());
    of_v[q.value] = Factor<R, P>(N::at(v + q.value * P).conj());
  });
  by_vectors<R>(0, m * P, [&](int64_t i, auto lanes) RL_INLINE {
    Vec<R> u_i[P], x_i[P], next_i[P];
    repeat<P>([&](auto p) RL_INLINE {
      const int64_t at = p.value * stride + i;
      u_i[p.value] = lanes.get(u + at), x_i[p.value] = lanes.get(x + at), next_i[p.value] = lanes.get(next + at);
    });
    repeat<C>([&](auto q) RL_INLINE {
      Vec<R> e = lanes.get(column[q.value] + i);
      repeat<P>([&](auto p) RL_INLINE {
        e -= u_i[p.value] * of_y[q.value].part[p.value];
        e -= x_i[p.value] * of_v[q.value].part[p.value];
      });
      lanes.put(column[q.value] + i, e);
      repeat<P>([&](auto p) RL_INLINE { dots[q.value][p.value] += e * next_i[p.value]; });
    });
  });
  repeat<C>([&](auto q) RL_INLINE {
    const N g_q = N::at(tau) * adjoint_dot<R, P>(dots[q.value]), c_q = N::at(column[q.value]).conj() - g_q;
    g_q.to(g + q.value * P);
    c_q.to(c + q.value * P);
    of_c[q.value] = Factor<R, P>(c_q);
  });
  by_vectors<R>(0, m * P, [&](int64_t i, auto lanes) RL_INLINE {
    Vec<R> z_i[P];
    repeat<P>([&](auto p) RL_INLINE { z_i[p.value] = lanes.get(z + p.value * stride + i); });
    repeat<C>([&](auto q) RL_INLINE {
      const Vec<R> e = lanes.get(column[q.value] + i);
      repeat<P>([&](auto p) RL_INLINE { z_i[p.value] += e * of_c[q.value].part[p.value]; });
    });
    repeat<P>([&](auto p) RL_INLINE { lanes.put(z + p.value * stride + i, z_i[p.value]); });
  });
}

template <class R, int P, class T>
void general(int64_t m, int64_t begin, int64_t end, T* a, int64_t lda, int64_t stride, const T* u, const T* y,
             const T* x, const T* v, const T* next, const T* tau, T* g, T* c, T* z) {
  const auto real = [](auto* p) {
    return reinterpret_cast<std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(p)>>, const R*, R*>>(p);
  };
  constexpr int kAtOnce = P == 1 ? 4 : 2;
  const auto columns = [&](int64_t j, auto count) {
    general_columns<R, P, decltype(count)::value>(m, real(a + j * lda), lda * P, stride * P, real(u), real(y + j),
                                                  real(x), real(v + j), real(next), real(tau), real(g + j), real(c + j),
                                                  real(z));
  };
  for (; begin + kAtOnce <= end; begin += kAtOnce) columns(begin, Constant<kAtOnce>{});
  for (; begin < end; ++begin) columns(begin, Constant<1>{});
}

// ---- similar matrices

template <class R, int P, int C>
void similar_columns(int64_t m, R* a, int64_t lda, int64_t stride, const R* u, const R* y, const R* x, const R* v,
                     const R* next, const R* c, R* g, R* z) {
  using N = Number<R, P>;
  Factor<R, P> of_y[C], of_v[C], of_c[C];
  Vec<R> dots[C][P] = {};
  repeat<C>([&](auto q) RL_INLINE {
    constexpr int at = q.value * P;
    of_y[q.value] = Factor<R, P>(N::at(y + at).conj());
    of_v[q.value] = Factor<R, P>(N::at(v + at).conj());
    of_c[q.value] = Factor<R, P>(N::at(c + at));
  });
  by_vectors<R>(0, m * P, [&](int64_t i, auto lanes) RL_INLINE {
    Vec<R> u_i[P], x_i[P], next_i[P], z_i[P];
    repeat<P>([&](auto p) RL_INLINE {
      const int64_t at = p.value * stride + i;
      u_i[p.value] = lanes.get(u + at), x_i[p.value] = lanes.get(x + at);
      next_i[p.value] = lanes.get(next + at), z_i[p.value] = lanes.get(z + at);
    });
    repeat<C>([&](auto q) RL_INLINE {
      Vec<R> e = lanes.get(a + q.value * lda + i);
      repeat<P>([&](auto p) RL_INLINE {
        e -= u_i[p.value] * of_y[q.value].part[p.value];
        e -= x_i[p.value] * of_v[q.value].part[p.value];
      });
      lanes.put(a + q.value * lda + i, e);
      repeat<P>([&](auto p) RL_INLINE {
        dots[q.value][p.value] += e * next_i[p.value];
        z_i[p.value] += e * of_c[q.value].part[p.value];
      });
    });
    repeat<P>([&](auto p) RL_INLINE { lanes.put(z + p.value * stride + i, z_i[p.value]); });
  });
  repeat<C>([&](auto q) RL_INLINE { adjoint_dot<R, P>(dots[q.value]).to(g + q.value * P); });
}

template <class R, int P, class T>
void similar(int64_t m, int64_t begin, int64_t end, T* a, int64_t lda, int64_t stride, const T* u, const T* y,
             const T* x, const T* v, const T* next, const T* c, T* g, T* z) {
  const auto real = [](auto* p) {
    return reinterpret_cast<std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(p)>>, const R*, R*>>(p);
  };
  constexpr int kAtOnce = P == 1 ? 4 : 2;
  const auto columns = [&](int64_t j, auto count) {
    similar_columns<R, P, decltype(count)::value>(m, real(a + j * lda), lda * P, stride * P, real(u), real(y + j),
                                                  real(x), real(v + j), real(next), real(c + j), real(g + j), real(z));
  };
  for (; begin + kAtOnce <= end; begin += kAtOnce) columns(begin, Constant<kAtOnce>{});
  for (; begin < end; ++begin) columns(begin, Constant<1>{});
}

// ---- LU and Cholesky of a panel, left-looking: a column takes all that is due from those before it in one pass

template <class R, int P>
Vec<R> sizes_of(Vec<R> x) {  // LAPACK's measure of pivots
  const Vec<R> size = x < 0 ? -x : x;
  if constexpr (P == 1)
    return size;
  else {
    const Vec<R> other = turned<R>(size);
    return size + (other < 0 ? -other : other);
  }
}
template <class R, int P>
R size_of(const R* x) {
  const auto size = [](R part) { return part < 0 ? -part : part; };
  return P == 1 ? size(x[0]) : size(x[0]) + size(x[P - 1]);
}

// Rows [begin, m) of a column less `Depth` columns times numbers that are `step` apart; the size of the largest.
template <class R, int P, int Depth>
R eliminate(int64_t begin, int64_t m, const R* a, int64_t ld, const R* numbers, int64_t step, R* column) {
  Factor<R, P> x[Depth + 1];
  repeat<Depth>([&](auto j) RL_INLINE { x[j.value] = Factor<R, P>(Number<R, P>::at(numbers + j.value * step)); });
  Vec<R> largest = splat(R(-1));
  by_vectors<R>(begin * P, m * P, [&](int64_t i, auto lanes) RL_INLINE {
    Vec<R> sums[P] = {};
    repeat<Depth>([&](auto j) RL_INLINE {
      const Vec<R> e = lanes.get(a + j.value * ld + i);
      repeat<P>([&](auto p) RL_INLINE { sums[p.value] += e * x[j.value].part[p.value]; });
    });
    Vec<R> e = lanes.get(column + i) - sums[0];
    if constexpr (P == 2) e -= turned<R>(sums[P - 1]);
    lanes.put(column + i, e);
    const Vec<R> size = sizes_of<R, P>(e);
    largest = size > largest ? size : largest;
  });
  R most = -1;
  for (int i = 0; i < kLanes<R>; ++i) most = largest[i] > most ? largest[i] : most;
  return most;
}

// n elements divided by a number, by its inverse where that does not overflow.
template <class R, int P>
void divide(int64_t n, R* x, Number<R, P> by) {
  constexpr R tiny = sizeof(R) == 8 ? R(2.2250738585072014e-308) : R(1.17549435e-38);
  R parts[P];
  by.to(parts);
  if (!(size_of<R, P>(parts) >= tiny)) {
    for (int64_t i = 0; i < n; ++i) (Number<R, P>::at(x + i * P) / by).to(x + i * P);
    return;
  }
  const Factor<R, P> factor(Number<R, P>{1, 0} / by);
  by_vectors<R>(0, n * P, [&](int64_t i, auto lanes) RL_INLINE {
    const Vec<R> e = lanes.get(x + i);
    Vec<R> scaled = e * factor.part[0];
    if constexpr (P == 2) scaled += turned<R>(e) * factor.part[P - 1];
    lanes.put(x + i, scaled);
  });
}

template <class R, int P, class T>
int lu(int64_t m, int64_t n, T* matrix, int64_t lda, int* pivots) {
  using N = Number<R, P>;
  auto* a = reinterpret_cast<R*>(matrix);
  const int64_t ld = lda * P;
  int info = 0;
  for (int64_t k = 0; k < n; ++k) {
    R* column = a + k * ld;
    const int64_t depth = least(k, m);
    for (int64_t i = 1; i < depth; ++i) {
      N sum = N::at(column + i * P);
      for (int64_t j = 0; j < i; ++j) sum = sum - N::at(a + j * ld + i * P) * N::at(column + j * P);
      sum.to(column + i * P);
    }
    R most = -1;
    repeat<kPanelColumns>([&](auto d) RL_INLINE {
      if (depth == d.value) most = eliminate<R, P, d.value>(depth, m, a, ld, column, P, column);
    });
    if (k >= m) continue;
    int64_t pivot = k;
    for (int64_t i = k; i < m; ++i) {
      if (size_of<R, P>(column + i * P) == most) {
        pivot = i;
        break;
      }
    }
    pivots[k] = static_cast<int>(pivot + 1);
    if (pivot != k)
      for (int64_t j = 0; j < n; ++j)
        for (int p = 0; p < P; ++p) {
          R *x = a + j * ld + k * P + p, *y = a + j * ld + pivot * P + p, kept = *x;
          *x = *y;
          *y = kept;
        }
    const N diagonal = N::at(column + k * P);
    if (diagonal.re == 0 && diagonal.im == 0)
      info = info ? info : static_cast<int>(k + 1);
    else
      divide<R, P>(m - k - 1, column + (k + 1) * P, diagonal);
  }
  return info;
}

template <class R, int P, class T>
int cholesky(int64_t m, int64_t n, T* matrix, int64_t lda) {
  using N = Number<R, P>;
  auto* a = reinterpret_cast<R*>(matrix);
  const int64_t ld = lda * P;
  int info = 0;
  for (int64_t k = 0; k < n; ++k) {
    R numbers[kPanelColumns * P], *column = a + k * ld;
    for (int64_t j = 0; j < k; ++j) N::at(a + j * ld + k * P).conj().to(numbers + j * P);
    repeat<kPanelColumns>([&](auto d) RL_INLINE {
      if (k == d.value) eliminate<R, P, d.value>(k, m, a, ld, numbers, P, column);
    });
    const R diagonal = column[k * P];
    if (!(diagonal > 0) && !info) info = static_cast<int>(k + 1);
    const N root{square_root(diagonal), 0};
    root.to(column + k * P);
    divide<R, P>(m - k - 1, column + (k + 1) * P, root);
  }
  return info;
}

// ---- QR of a panel

// C columns less v tau (v^H column).
template <class R, int P, int C>
void reflect_columns(int64_t m, const R* v, Number<R, P> tau, R* a, int64_t ld) {
  Vec<R> dots[C][P] = {};
  Factor<R, P> factor[C];
  by_vectors<R>(0, m * P, [&](int64_t i, auto lanes) RL_INLINE {
    const Vec<R> v_i = lanes.get(v + i), turned_i = P == 2 ? turned<R>(v_i) : v_i;
    repeat<C>([&](auto c) RL_INLINE {
      const Vec<R> e = lanes.get(a + c.value * ld + i);
      dots[c.value][0] += e * v_i;
      if constexpr (P == 2) dots[c.value][P - 1] += e * turned_i;
    });
  });
  repeat<C>([&](auto c) RL_INLINE {
    const Number<R, P> dot{sum_lanes<R>(dots[c.value][0]), P == 2 ? sum_lanes<R>(dots[c.value][P - 1]) : R(0)};
    factor[c.value] = Factor<R, P>(tau * dot);
  });
  by_vectors<R>(0, m * P, [&](int64_t i, auto lanes) RL_INLINE {
    const Vec<R> v_i = lanes.get(v + i), turned_i = P == 2 ? turned<R>(v_i) : v_i;
    repeat<C>([&](auto c) RL_INLINE {
      Vec<R> e = lanes.get(a + c.value * ld + i) - v_i * factor[c.value].part[0];
      if constexpr (P == 2) e -= turned_i * factor[c.value].part[P - 1];
      lanes.put(a + c.value * ld + i, e);
    });
  });
}

// A power of two by which squares of n numbers neither overflow nor vanish, unless the numbers are 0 beside the
// largest.
template <class R>
R safe_factor(int64_t n, const R* x) {
  constexpr R kStep = sizeof(R) == 8 ? R(0x1p300) : R(0x1p40f);
  R largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const R size = x[i] < 0 ? -x[i] : x[i];
    largest = size > largest ? size : largest;
  }
  R factor = 1;
  for (int step = 0; step < 3 && largest > 0 && largest * factor < 1 / kStep; ++step) factor *= kStep;
  for (int step = 0; step < 3 && largest * factor > kStep; ++step) factor /= kStep;
  return factor;
}

template <class R, int P, class T>
void qr(int64_t m, int64_t n, T* matrix, int64_t lda, T* scales) {
  using N = Number<R, P>;
  constexpr R kSmall = sizeof(R) == 8 ? R(0x1p-900) : R(0x1p-80f), kLarge = 1 / kSmall;
  auto *a = reinterpret_cast<R*>(matrix), *tau = reinterpret_cast<R*>(scales);
  const int64_t ld = lda * P;
  for (int64_t k = 0; k < least(m, n); ++k) {
    R *head = a + k * (ld + P), *below = head + P, *next = head + ld;
    const int64_t height = m - k, rest = (height - 1) * P;
    R squares = sum_of_squares(rest, below), factor = 1;
    if (!(squares > kSmall && squares < kLarge)) {
      factor = safe_factor(height * P, head);
      for (int64_t i = 0; i < height * P; ++i) head[i] *= factor;
      squares = sum_of_squares(rest, below);
    }
    const N alpha = N::at(head);
    if (squares == 0 && (P == 1 || alpha.im == 0)) {
      N{0, 0}.to(tau + k * P);
      for (int64_t i = 0; i < height * P; ++i) head[i] /= factor;
      continue;
    }
    const R length = square_root(alpha.re * alpha.re + alpha.im * alpha.im + squares);
    const R beta = alpha.re > 0 ? -length : length;
    const N scale{(beta - alpha.re) / beta, -alpha.im / beta};
    divide<R, P>(height - 1, below, N{alpha.re - beta, alpha.im});
    scale.to(tau + k * P);
    N{1, 0}.to(head);
    repeat<kPanelColumns>([&](auto c) RL_INLINE {
      if constexpr (c.value > 0)
        if (n - k - 1 == c.value) reflect_columns<R, P, c.value>(height, head, scale.conj(), next, ld);
    });
    N{beta / factor, 0}.to(head);
  }
}

template <class R, int P, class K>
void fill(K& k) {
  k.lu = lu<R, P>;
  k.cholesky = cholesky<R, P>;
  k.qr = qr<R, P>;
  k.largest = largest<R, P>;
  k.squares = squares<R, P>;
  k.subtract = subtract<R, P>;
  k.transpose = transpose_elements<R, P>;
  k.hermitian = hermitian<R, P>;
  k.general = general<R, P>;
  k.similar = similar<R, P>;
}

}  // namespace

void fill_sweeps(SweepTable& table) {
  fill<float, 1>(table.s);
  fill<double, 1>(table.d);
  fill<float, 2>(table.c);
  fill<double, 2>(table.z);
}

}  // namespace RL_ISA
}  // namespace rl
