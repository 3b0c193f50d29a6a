// See the header. Reflections are I - v t^T with v = (1, v1, v2) in real matrices, kept as v1, v2 and t, and rotations
// (c, s; -conj(s), c) in complex ones, kept as c and s.
#include "schur.h"

#include "numbers.h"

namespace rl {
namespace RL_ISA {
namespace {

template <class R>
R size_of(R x) {
  return x < 0 ? -x : x;
}

template <int P>
constexpr int64_t kRows = P == 1 ? 3 : 2;  // kBulge

// ---- one reflection

// A power of two that brings numbers of a size to where their squares and products of squares are normal numbers.
inline double safe_factor(double size) {
  double factor = 1;
  while (size * factor < 0x1p-200 && factor < 0x1p900) factor *= 0x1p300;
  while (size * factor > 0x1p200) factor *= 0x1p-300;
  return factor;
}

// The reflection that takes x to a multiple of its first element, which it returns.
template <class R, int P>
Number<R, P> make_reflection(const Number<R, P> (&x)[3], R* to) {
  const double x0 = x[0].re, x1 = x[1].re, x2 = P == 1 ? x[2].re : x[0].im, x3 = P == 1 ? 0 : x[1].im;
  const double size = size_of(x0) + size_of(x1) + size_of(x2) + size_of(x3);
  const double factor = size > 0x1p-200 && size < 0x1p200 ? 1 : safe_factor(size);
  const double a = x0 * factor, b = x1 * factor, c = x2 * factor, d = x3 * factor;
  if constexpr (P == 1) {
    const double squares = b * b + c * c;
    if (squares == 0) {
      for (int i = 0; i < 5; ++i) to[i] = 0;
      return x[0];
    }
    const double length = __builtin_sqrt(a * a + squares), beta = a > 0 ? -length : length;
    const double scale = 1 / (a - beta), tau = (beta - a) / beta, v1 = b * scale, v2 = c * scale;
    to[0] = static_cast<R>(v1), to[1] = static_cast<R>(v2);
    to[2] = static_cast<R>(tau), to[3] = static_cast<R>(tau * v1), to[4] = static_cast<R>(tau * v2);
    return {static_cast<R>(beta / factor), 0};
  } else {  // (a, c) and (b, d)
    const double first = a * a + c * c, all = first + (b * b + d * d);
    if (all == 0 || first < all * 0x1p-200) {  // x0 is nothing beside x1
      to[0] = all == 0, to[1] = all != 0, to[2] = 0;
      return x[all != 0];
    }
    const double product = 1 / __builtin_sqrt(first * all), stretch = all * product;
    to[0] = static_cast<R>(first * product);
    to[1] = static_cast<R>((a * b + c * d) * product), to[2] = static_cast<R>((c * b - a * d) * product);
    return {static_cast<R>(x0 * stretch), static_cast<R>(x2 * stretch)};
  }
}

// The first column of the product of H less each of the shifts of a bulge, up to a factor; H starts at its block.
template <class R, int P>
void start_bulge(const R* h, int64_t ld, const R* shifts, Number<R, P> (&x)[3]) {
  if constexpr (P == 2) {
    x[0] = Number<R, P>::at(h) - Number<R, P>::at(shifts);
    x[1] = Number<R, P>::at(h + P);
  } else {
    const R h00 = h[0], h10 = h[1], h01 = h[ld], h11 = h[ld + 1], h21 = h[ld + 2];
    const R re1 = shifts[0], im1 = shifts[1], re2 = shifts[2], im2 = shifts[3];
    const R size = size_of(h00 - re2) + size_of(im2) + size_of(h10);
    if (size == 0) {
      for (auto& e : x) e = {0, 0};
      return;
    }
    const R part = h10 / size;
    x[0].re = part * h01 + (h00 - re1) * ((h00 - re2) / size) - im1 * (im2 / size);
    x[1].re = part * (h00 + h11 - re1 - re2);
    x[2].re = part * h21;
  }
}

// Four numbers, the rows that a reflection from the left has in a column.
template <class R>
struct Four {
  typedef R type __attribute__((vector_size(4 * sizeof(R))));
};

template <class R, int P>
RL_INLINE inline void reflect_columns(const R* of, bool last, int64_t n, R* x, int64_t ld) {
  using V = typename Four<R>::type;
  if (P == 1 && last) {  // of two rows
    for (int64_t j = 0; j < n; ++j, x += ld) {
      const R w = of[2] * x[0] + of[3] * x[1];
      x[0] -= w;
      x[1] -= w * of[0];
    }
    return;
  }
  V part[4];
  if constexpr (P == 1) {
    const V v{1, of[0], of[1], 0};
    for (int i = 0; i < 3; ++i) part[i] = v * of[2 + i];
    part[3] = V{};
  } else {
    const R c = of[0], re = of[1], im = of[2];
    part[0] = V{c, 0, -re, im};
    part[1] = V{0, c, -im, -re};
    part[2] = V{re, im, c, 0};
    part[3] = V{-im, re, 0, c};
  }
  for (int64_t j = 0; j < n; ++j, x += ld) {
    V e;
    std::memcpy(&e, x, sizeof(e));
    if constexpr (P == 1)
      e = e - part[0] * x[0] - part[1] * x[1] - part[2] * x[2];
    else
      e = (part[0] * x[0] + part[1] * x[1]) + (part[2] * x[2] + part[3] * x[3]);
    std::memcpy(x, &e, sizeof(e));
  }
}

// The numbers of a reflection in vectors. From the left, columns become rows, and s its conjugate.
template <class R, int P>
struct Spread {
  Vec<R> f[5];
  RL_INLINE Spread(const R* of, bool left) {
    repeat<5>([&](auto i) RL_INLINE { f[i.value] = splat(of[i.value]); });
    if (P == 2 && left) f[2] = -f[2];
  }
  // Parts of the columns x0, x1 and x2, the last of which does not exist in the last real reflection.
  RL_INLINE void three(Vec<R>& x0, Vec<R>& x1, Vec<R>& x2) const {
    const Vec<R> w = x0 * f[2] + x1 * f[3] + x2 * f[4];
    x0 -= w;
    x1 -= w * f[0];
    x2 -= w * f[1];
  }
  RL_INLINE void two(Vec<R>& x0, Vec<R>& x1) const {
    if constexpr (P == 1) {
      const Vec<R> w = x0 * f[2] + x1 * f[3];
      x0 -= w;
      x1 -= w * f[0];
    } else {
      const Vec<R> i0 = turned<R>(x0), i1 = turned<R>(x1), y0 = x0 * f[0] + x1 * f[1] - i1 * f[2];
      x1 = x1 * f[0] - x0 * f[1] - i0 * f[2];
      x0 = y0;
    }
  }
};

template <class R, int P>
RL_INLINE inline void reflect_rows(const R* of, bool last, int64_t m, R* x, int64_t ld) {
  const Spread<R, P> spread(of, false);
  by_vectors<R>(0, m * P, [&](int64_t i, auto lanes) RL_INLINE {
    R* p = x + i;
    Vec<R> x0 = lanes.get(p), x1 = lanes.get(p + ld);
    if (P == 2 || last) {
      spread.two(x0, x1);
    } else {
      Vec<R> x2 = lanes.get(p + 2 * ld);
      spread.three(x0, x1, x2);
      lanes.put(p + 2 * ld, x2);
    }
    lanes.put(p, x0);
    lanes.put(p + ld, x1);
  });
}

// ---- a chain

template <class R, int P, class T>
void chase(const Chain& chain, const R* shifts, int64_t row, int64_t columns, T* matrix, int64_t lda, R* reflections) {
  using N = Number<R, P>;
  auto* h = reinterpret_cast<R*>(matrix);
  const int64_t ld = lda * P, lo = chain.lo, hi = chain.hi;
  for (int64_t t = chain.begin; t < chain.end; ++t)
    for (int64_t b = 0; b < chain.bulges; ++b) {
      const int64_t p = lo + t - b * kRows<P>;
      if (p < lo) break;
      if (p >= hi - 1) continue;
      const bool last = P == 2 || p + 2 == hi;
      R* to = reflections + (b * (chain.end - chain.begin) + t - chain.begin) * kReflection;
      R* before = h + (p - 1) * ld + p * P;
      N x[3] = {};
      if (p == lo)
        start_bulge<R, P>(h + lo * (ld + P), ld, shifts + b * kBulgeShifts, x);
      else
        for (int i = 0; i < (last ? 2 : 3); ++i) x[i] = N::at(before + i * P);
      const N first = make_reflection<R, P>(x, to);
      if (p > lo) {
        first.to(before);
        for (int i = 1; i < (last ? 2 : 3); ++i) N{0, 0}.to(before + i * P);
      }
      reflect_columns<R, P>(to, last, columns - p, h + p * (ld + P), ld);
      reflect_rows<R, P>(to, last, least(p + kRows<P> + 1, hi) - row, h + p * ld + row * P, ld);
    }
}

// The reflections of one bulge, of N vectors of each column.
template <class R, int P, int N, class Lanes>
RL_INLINE inline void roll(const R* of, int64_t count, bool ends, bool left, R* x, int64_t ld, Lanes lanes) {
  Vec<R> x0[N], x1[N], x2[N];
  const auto get = [&](int64_t column, Vec<R>* to) RL_INLINE {
    repeat<N>([&](auto j) RL_INLINE { to[j.value] = lanes.get(x + column * ld + j.value * kLanes<R>); });
  };
  const auto put = [&](int64_t column, const Vec<R>* from) RL_INLINE {
    repeat<N>([&](auto j) RL_INLINE { lanes.put(x + column * ld + j.value * kLanes<R>, from[j.value]); });
  };
  get(0, x0);
  if constexpr (P == 2) {
    for (int64_t i = 0; i < count; ++i) {
      const Spread<R, P> spread(of + i * kReflection, left);
      get(i + 1, x1);
      repeat<N>([&](auto j) RL_INLINE { spread.two(x0[j.value], x1[j.value]); });
      put(i, x0);
      repeat<N>([&](auto j) RL_INLINE { x0[j.value] = x1[j.value]; });
    }
    put(count, x0);
  } else {
    get(1, x1);
    const int64_t full = count - ends;
    for (int64_t i = 0; i < full; ++i) {
      const Spread<R, P> spread(of + i * kReflection, left);
      get(i + 2, x2);
      repeat<N>([&](auto j) RL_INLINE { spread.three(x0[j.value], x1[j.value], x2[j.value]); });
      put(i, x0);
      repeat<N>([&](auto j) RL_INLINE { x0[j.value] = x1[j.value], x1[j.value] = x2[j.value]; });
    }
    if (ends) {
      const Spread<R, P> spread(of + full * kReflection, left);
      repeat<N>([&](auto j) RL_INLINE { spread.two(x0[j.value], x1[j.value]); });
    }
    put(full, x0);
    put(full + 1, x1);
  }
}

// Those of all bulges; x is at the column `first`.
template <class R, int P, int N, class Lanes>
[[gnu::noinline]] void roll_all(const Chain& chain, const R* reflections, bool left, int64_t first, R* x, int64_t ld,
                                Lanes lanes) {
  for (int64_t b = 0; b < chain.bulges; ++b) {
    const int64_t delay = b * kRows<P>, start = most(chain.begin, delay);
    const int64_t stop = least(chain.end, delay + chain.hi - chain.lo - 1);
    if (start >= stop) continue;
    const R* of = reflections + (b * (chain.end - chain.begin) + start - chain.begin) * kReflection;
    roll<R, P, N>(of, stop - start, stop == delay + chain.hi - chain.lo - 1, left,
                  x + (chain.lo + start - delay - first) * ld, ld, lanes);
  }
}

constexpr int kTile = 4;  // vectors of a column

template <class R, int P, class T>
void reflect_right(const Chain& chain, const R* reflections, int64_t m, T* matrix, int64_t lda) {
  constexpr int64_t kTall = kTile * kLanes<R>;
  auto* x = reinterpret_cast<R*>(matrix);
  const int64_t ld = lda * P, n = m * P;
  int64_t i = 0;
  for (; i + kTall <= n; i += kTall) roll_all<R, P, kTile>(chain, reflections, false, 0, x + i, ld, Whole{});
  for (; i + kLanes<R> <= n; i += kLanes<R>) roll_all<R, P, 1>(chain, reflections, false, 0, x + i, ld, Whole{});
  if (i < n) roll_all<R, P, 1>(chain, reflections, false, 0, x + i, ld, Part{n - i});
}

template <class R, int P, class T>
void reflect_left(const Chain& chain, const R* reflections, int64_t n, T* matrix, int64_t lda) {
  constexpr int64_t kWide = kTile * kLanes<R>, kColumns = kWide / P;
  alignas(64) R rows[kSpans * kWide];
  const int64_t first = chain.first, height = chain.last - first;
  T *x = matrix + first, *of_rows = reinterpret_cast<T*>(rows);
  for (int64_t j = 0; j < n; j += kColumns) {
    const int64_t width = least(kColumns, n - j);
    if (width < kColumns)
      for (int64_t i = 0; i < height * kWide; ++i) rows[i] = 0;
    transpose_elements<R, P>(width, height, x + j * lda, lda, of_rows, kColumns);
    roll_all<R, P, kTile>(chain, reflections, true, first, rows, kWide, Whole{});
    transpose_elements<R, P>(height, width, of_rows, kColumns, x + j * lda, lda);
  }
}

// ---- eigenvectors of a triangular matrix

constexpr int kVectors = 2;  // of lanes, each an eigenvector
template <class R>
constexpr R kHuge = sizeof(R) == 8 ? R(0x1p960) : R(0x1p64f);  // products and sums of such numbers are finite

template <class R>
struct Lanes2 {
  Vec<R> re[kVectors], im[kVectors];
};

template <class R, class C>
void vectors(const C* matrix, int64_t lda, R smallest, const int64_t* values, R* x) {
  constexpr int64_t kLine = kVectors * kLanes<R>, kStep = 2 * kLine;
  constexpr R kEps = sizeof(R) == 8 ? R(0x1p-52) : R(0x1p-23f);
  const auto* t = reinterpret_cast<const R*>(matrix);
  const int64_t ld = 2 * lda, top = values[kLine - 1];
  R of_value[4][kLine];  // the value, the least difference from it, the row
  for (int64_t i = 0; i < kLine; ++i) {
    const R* value = t + values[i] * (ld + 2);
    const R least_difference = kEps * (size_of(value[0]) + size_of(value[1]));
    of_value[0][i] = value[0], of_value[1][i] = value[1];
    of_value[2][i] = least_difference > smallest ? least_difference : smallest;
    of_value[3][i] = static_cast<R>(values[i]);
  }
  Vec<R> value_re[kVectors], value_im[kVectors], closest[kVectors], row[kVectors];
  repeat<kVectors>([&](auto j) RL_INLINE {
    constexpr int at = j.value * kLanes<R>;
    value_re[j.value] = load(&of_value[0][at]), value_im[j.value] = load(&of_value[1][at]);
    closest[j.value] = load(&of_value[2][at]), row[j.value] = load(&of_value[3][at]);
  });
  constexpr int kRowsAtOnce = 4;
  for (int64_t end = top + 1; end > 0;) {
    const int64_t begin = most(end - kRowsAtOnce, 0);
    Vec<R> re[kRowsAtOnce][kVectors] = {}, im[kRowsAtOnce][kVectors] = {};  // of the sums of T x
    const auto add = [&](auto i, const R* e, const Lanes2<R>& of_x) RL_INLINE {
      const Vec<R> e_re = splat(e[0]), e_im = splat(e[1]);
      repeat<kVectors>([&](auto j) RL_INLINE {
        re[i.value][j.value] += e_re * of_x.re[j.value];
        im[i.value][j.value] += e_re * of_x.im[j.value];
        re[i.value][j.value] -= e_im * of_x.im[j.value];
        im[i.value][j.value] += e_im * of_x.re[j.value];
      });
    };
    const auto line = [&](int64_t k) RL_INLINE {
      Lanes2<R> l;
      repeat<kVectors>([&](auto j) RL_INLINE {
        l.re[j.value] = load(x + k * kStep + j.value * kLanes<R>);
        l.im[j.value] = load(x + k * kStep + kLine + j.value * kLanes<R>);
      });
      return l;
    };
    if (end - begin == kRowsAtOnce)
      for (int64_t k = end; k <= top; ++k) {
        const Lanes2<R> l = line(k);
        repeat<kRowsAtOnce>([&](auto i) RL_INLINE { add(i, t + k * ld + 2 * (begin + i.value), l); });
      }
    else
      for (int64_t k = end; k <= top; ++k) {
        const Lanes2<R> l = line(k);
        repeat<kRowsAtOnce>([&](auto i) RL_INLINE {
          if (i.value < end - begin) add(i, t + k * ld + 2 * (begin + i.value), l);
        });
      }
    repeat<kRowsAtOnce>([&](auto reversed) RL_INLINE {
      constexpr int r = kRowsAtOnce - 1 - reversed.value;
      if (r >= end - begin) return;
      const int64_t i = begin + r;
      const R* diagonal = t + i * (ld + 2);
      const Vec<R> here = splat(static_cast<R>(i));
      Vec<R> d_re[kVectors], d_im[kVectors], d_size[kVectors], much{};
      repeat<kVectors>([&](auto j) RL_INLINE {
        d_re[j.value] = splat(diagonal[0]) - value_re[j.value];
        d_im[j.value] = splat(diagonal[1]) - value_im[j.value];
        const Vec<R> a = d_re[j.value] < 0 ? -d_re[j.value] : d_re[j.value];
        const Vec<R> b = d_im[j.value] < 0 ? -d_im[j.value] : d_im[j.value];
        const auto near = a + b < closest[j.value];
        d_re[j.value] = near ? closest[j.value] : d_re[j.value];
        d_im[j.value] = near ? Vec<R>{} : d_im[j.value];
        d_size[j.value] = near ? closest[j.value] : a > b ? a : b;
        const Vec<R> re_size = re[r][j.value] < 0 ? -re[r][j.value] : re[r][j.value];
        const Vec<R> im_size = im[r][j.value] < 0 ? -im[r][j.value] : im[r][j.value];
        const Vec<R> size = re_size > im_size ? re_size : im_size;
        much += (here < row[j.value]) & (size > d_size[j.value] * kHuge<R>) ? splat(R(1)) : Vec<R>{};
      });
      if (sum_lanes<R>(much) > 0) {  // these vectors become smaller
        alignas(64) R factor[kLine], sums[2][kLine], sizes[kLine];
        repeat<kVectors>([&](auto j) RL_INLINE {
          store(sums[0] + j.value * kLanes<R>, re[r][j.value]);
          store(sums[1] + j.value * kLanes<R>, im[r][j.value]);
          store(sizes + j.value * kLanes<R>, d_size[j.value]);
        });
        for (int64_t l = 0; l < kLine; ++l) {
          const R a = size_of(sums[0][l]), b = size_of(sums[1][l]), size = a > b ? a : b;
          const bool large = i < values[l] && size > sizes[l] * kHuge<R>;
          factor[l] = large ? sizes[l] * kHuge<R> / size : R(1);
        }
        for (int64_t k = i + 1; k <= top; ++k)
          for (int64_t l = 0; l < kLine; ++l) x[k * kStep + l] *= factor[l], x[k * kStep + kLine + l] *= factor[l];
        repeat<kVectors>([&](auto j) RL_INLINE {
          const Vec<R> f = load(factor + j.value * kLanes<R>);
          repeat<kRowsAtOnce>([&](auto q) RL_INLINE { re[q.value][j.value] *= f, im[q.value][j.value] *= f; });
        });
      }
      Lanes2<R> solution;
      repeat<kVectors>([&](auto j) RL_INLINE {
        const Vec<R> inverse = R(1) / d_size[j.value];
        const Vec<R> a = d_re[j.value] * inverse, b = d_im[j.value] * inverse, length = a * a + b * b;
        const Vec<R> p = re[r][j.value], q = im[r][j.value];
        // -(p + iq) / (a + ib), in an order in which nothing overflows
        const Vec<R> s_re = -(p * a + q * b) / length, s_im = -(q * a - p * b) / length;
        const auto above = here < row[j.value];
        const Vec<R> one = here == row[j.value] ? splat(R(1)) : Vec<R>{};
        solution.re[j.value] = above ? s_re / d_size[j.value] : one;
        solution.im[j.value] = above ? s_im / d_size[j.value] : Vec<R>{};
        store(x + i * kStep + j.value * kLanes<R>, solution.re[j.value]);
        store(x + i * kStep + kLine + j.value * kLanes<R>, solution.im[j.value]);
      });
      repeat<r>([&](auto q) RL_INLINE { add(q, t + i * ld + 2 * (begin + q.value), solution); });
    });
    end = begin;
  }
}

template <class R, int P, class K>
void fill(K& k) {
  k.chase = chase<R, P>;
  k.reflect_right = reflect_right<R, P>;
  k.reflect_left = reflect_left<R, P>;
  k.lanes = kVectors * kLanes<R>;
  k.vectors = vectors<R>;
}

}  // namespace

void fill_schur(SchurTable& table) {
  fill<float, 1>(table.s);
  fill<double, 1>(table.d);
  fill<float, 2>(table.c);
  fill<double, 2>(table.z);
}

}  // namespace RL_ISA
}  // namespace rl
