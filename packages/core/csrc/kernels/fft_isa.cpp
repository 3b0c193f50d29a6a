// Passes of the Stockham transform, which sorts as it goes; the loops are those of FFTPACK (Swarztrauber, 1982).
#include <algorithm>
#include <type_traits>
#include <utility>

#include "fft.h"
#include "rushlight/vecmath.h"

namespace rl {
namespace RL_ISA {
namespace {

// One signal a lane: V is a vector of them, or T for a signal alone.
template <class T>
struct LanesOf;
template <>
struct LanesOf<float> {
  typedef float type __attribute__((vector_size(kFftBytes)));
};
template <>
struct LanesOf<double> {
  typedef double type __attribute__((vector_size(kFftBytes)));
};

template <class V>
struct Point {
  V re, im;
};

template <class V>
RL_INLINE Point<V> operator+(const Point<V>& a, const Point<V>& b) {
  return {a.re + b.re, a.im + b.im};
}
template <class V>
RL_INLINE Point<V> operator-(const Point<V>& a, const Point<V>& b) {
  return {a.re - b.re, a.im - b.im};
}
template <class V, class T>
RL_INLINE Point<V> scaled(const Point<V>& a, T by) {
  return {a.re * by, a.im * by};
}
template <class V, class T>
RL_INLINE Point<V> turned(const Point<V>& a, const T* w) {
  return {a.re * w[0] - a.im * w[1], a.re * w[1] + a.im * w[0]};
}
template <class V>
RL_INLINE Point<V> times(const Point<V>& a, const Point<V>& b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class V>
RL_INLINE Point<V> times_i(const Point<V>& a) {
  return {-a.im, a.re};
}
template <class V>
RL_INLINE Point<V> over_i(const Point<V>& a) {
  return {a.im, -a.re};
}

// Points that lie `step` apart.
template <class V>
struct Points {
  Point<V>* at;
  int64_t step;
};

// From (l1, p, ido) to (p, l1, ido): a transform of p points for all l1 and ido, then the twiddles of ido.
template <class V, class T>
struct Pass {
  int64_t ido, l1;
  Points<V> from, to;
  const T* twiddles;  // or null: all are 1
  int64_t turn;       // from the twiddles of one of ido to those of the next

  struct Place {
    const Point<V>* x;
    Point<V>* y;
    const T* w;
    int64_t x_next, y_next;
    const Point<V>& in(int j) const { return x[j * x_next]; }
    [[gnu::always_inline]] void out(int j, const Point<V>& value) const {
      y[j * y_next] = w == nullptr || j == 0 ? value : turned(value, w + 2 * (j - 1));
    }
  };

  template <class F>
  [[gnu::always_inline]] void each(int p, F f) const {
    Place at{from.at, to.at, twiddles, ido * from.step, ido * l1 * to.step};
    for (int64_t k = 0; k < l1; ++k, at.x += (p - 1) * at.x_next, at.w = twiddles)
      for (int64_t i = 0; i < ido; ++i, at.x += from.step, at.y += to.step) {
        f(at);
        if (twiddles != nullptr) at.w += turn;
      }
  }

  void two() const {
    each(2, [](const Place& at) __attribute__((always_inline)) {
      const Point<V> a = at.in(0), b = at.in(1);
      at.out(0, a + b);
      at.out(1, a - b);
    });
  }

  void three() const {
    constexpr T kSin = T(0.86602540378443864676);
    each(3, [](const Place& at) __attribute__((always_inline)) {
      const Point<V> a = at.in(0), b = at.in(1), c = at.in(2);
      const Point<V> sum = b + c, middle = a - scaled(sum, T(0.5)), turn = over_i(scaled(b - c, kSin));
      at.out(0, a + sum);
      at.out(1, middle + turn);
      at.out(2, middle - turn);
    });
  }

  void four() const {
    each(4, [](const Place& at) __attribute__((always_inline)) {
      const Point<V> a = at.in(0), b = at.in(1), c = at.in(2), d = at.in(3);
      const Point<V> even = a + c, odd = b + d, other = a - c, turn = over_i(b - d);
      at.out(0, even + odd);
      at.out(1, other + turn);
      at.out(2, even - odd);
      at.out(3, other - turn);
    });
  }

  void five() const {
    constexpr T c1 = T(0.30901699437494742410), s1 = T(0.95105651629515357212);
    constexpr T c2 = T(-0.80901699437494742410), s2 = T(0.58778525229247312917);
    each(5, [](const Place& at) __attribute__((always_inline)) {
      const Point<V> a = at.in(0), b = at.in(1), c = at.in(2), d = at.in(3), e = at.in(4);
      const Point<V> be = b + e, cd = c + d, b_e = b - e, c_d = c - d;
      const Point<V> first = a + scaled(be, c1) + scaled(cd, c2), second = a + scaled(be, c2) + scaled(cd, c1);
      const Point<V> first_turn = over_i(scaled(b_e, s1) + scaled(c_d, s2)),
                     second_turn = over_i(scaled(b_e, s2) - scaled(c_d, s1));
      at.out(0, a + be + cd);
      at.out(1, first + first_turn);
      at.out(2, second + second_turn);
      at.out(3, second - second_turn);
      at.out(4, first - first_turn);
    });
  }

  // Any odd p, by its definition, for pairs of outputs that are each other's mirror image.
  void odd(int p, const T* roots) const {
    each(p, [=](const Place& at) {
      const Point<V> a = at.in(0);
      Point<V> total = a;
      for (int q = 1; q < p; ++q) total = total + at.in(q);
      at.out(0, total);
      for (int j = 1; 2 * j < p; ++j) {
        Point<V> straight = a, turn = {V{} * T(0), V{} * T(0)};
        for (int q = 1, angle = j; 2 * q < p; ++q, angle = angle + j < p ? angle + j : angle + j - p) {
          const Point<V>&b = at.in(q), &c = at.in(p - q);
          straight = straight + scaled(b + c, roots[2 * angle]);
          turn = turn + scaled(b - c, roots[2 * angle + 1]);
        }
        turn = over_i(turn);
        at.out(j, straight + turn);
        at.out(p - j, straight - turn);
      }
    });
  }
};

// How far the passes of a plan have come.
template <class T>
struct Cursor {
  const int* factor;
  const T *twiddles, *roots;
};

// `count` passes over n points by way of x and y. Of every `every` neighbouring twiddles of a pass they use one.
template <class V, class T>
void run_passes(Cursor<T>& at, int count, int64_t n, Points<V> from, Points<V> to, Point<V>* x, Point<V>* y,
                int64_t every = 1, int64_t first = 0) {
  for (int64_t l1 = 1; count > 0; --count) {
    const int p = *at.factor++;
    const int64_t ido = n / (l1 * p), turn = 2 * (p - 1);
    const T* twiddles = ido * every == 1 ? nullptr : at.twiddles + turn * first;
    const Pass<V, T> pass{ido, l1, from, count == 1 ? to : Points<V>{x, 1}, twiddles, turn * every};
    switch (p) {
      case 2: pass.two(); break;
      case 3: pass.three(); break;
      case 4: pass.four(); break;
      case 5: pass.five(); break;
      default: pass.odd(p, at.roots); at.roots += 2 * p;
    }
    at.twiddles += turn * ido * every;
    l1 *= p;
    from = {x, 1};
    std::swap(x, y);
  }
}

constexpr int64_t kNearBytes = 32768;  // that the nearest cache holds

// The transform of plan.n points in `a`; the result is there or in `b`, which is returned. Where both are more than the
// nearest cache holds, `local` takes what lies between the first passes over a few points, and between the others.
template <class V, class T>
Point<V>* smooth(const FftPlan<T>& plan, Point<V>* a, Point<V>* b, Point<V>* local) {
  const Cursor<T> start{plan.factors, plan.twiddles, plan.roots};
  Cursor<T> at = start;
  const int64_t n = plan.n, rows = plan.rows, columns = n / rows;
  if (rows == 1 || n * static_cast<int64_t>(sizeof(Point<V>)) <= kNearBytes) {
    Point<V>* end = plan.count % 2 == 0 ? a : b;
    run_passes(at, plan.count, n, {a, 1}, {end, 1}, b, a);
    return end;
  }
  Point<V>*x = local, *y = local + std::max(rows, columns);
  for (int64_t i = 0; i < columns; ++i) {
    at = start;
    run_passes(at, plan.head, rows, {a + i, columns}, {b + i, columns}, x, y, columns, i);
  }
  const Cursor<T> middle = at;
  for (int64_t i = 0; i < rows; ++i) {
    at = middle;
    run_passes(at, plan.count - plan.head, columns, {b + i * columns, 1}, {a + i, rows}, x, y);
  }
  return a;
}

// Bluestein (1970): a transform of any size is a convolution with a chirp, here by transforms of a smooth size.
template <class V, class T>
Point<V>* transform(const FftPlan<T>& plan, Point<V>* a, Point<V>* b, Point<V>* local) {
  if (plan.chirp == nullptr) return smooth(plan, a, b, local);
  const int64_t n = plan.n, m = plan.chirp->n;
  Point<V>*x = b, *y = b + m;  // `a` has n points, b twice m
  for (int64_t i = 0; i < n; ++i) x[i] = turned(a[i], plan.chirps + 2 * i);
  for (int64_t i = n; i < m; ++i) x[i] = {V{} * T(0), V{} * T(0)};
  Point<V>* spectrum = smooth(*plan.chirp, x, y, local);
  Point<V>* free = spectrum == x ? y : x;
  for (int64_t i = 0; i < m; ++i) {  // the inverse transform is the transform with the parts exchanged
    const Point<V> product = turned(spectrum[i], plan.spectrum + 2 * i);
    spectrum[i] = {product.im, product.re};
  }
  Point<V>* result = smooth(*plan.chirp, spectrum, free, local);
  for (int64_t i = 0; i < n; ++i) a[i] = turned(Point<V>{result[i].im, result[i].re}, plan.chirps + 2 * i);
  return a;
}

// ---- From memory to lanes and back

using Floats = LanesOf<float>::type;
using Doubles = LanesOf<double>::type;

// Pairs in two vectors to their parts, and back.
RL_INLINE Point<Floats> apart(Floats a, Floats b) {
  return {__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30),
          __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)};
}
RL_INLINE Point<Doubles> apart(Doubles a, Doubles b) {
  return {__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14),
          __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)};
}
RL_INLINE Point<Floats> paired(Floats re, Floats im) {
  return {__builtin_shufflevector(re, im, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
          __builtin_shufflevector(re, im, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)};
}
RL_INLINE Point<Doubles> paired(Doubles re, Doubles im) {
  return {__builtin_shufflevector(re, im, 0, 8, 1, 9, 2, 10, 3, 11),
          __builtin_shufflevector(re, im, 4, 12, 5, 13, 6, 14, 7, 15)};
}

// Cells of 4, 8 and 16 bytes, a vector of which is exchanged with others as numbers of these types.
template <class T, int kParts>
struct Cell {
  T part[kParts];
};
template <class C>
constexpr int kCells = kFftBytes / sizeof(C);  // in a vector
template <class C>
using Carrier = std::conditional_t<sizeof(C) == 4, Floats, Doubles>;

template <class C>
RL_INLINE Point<Carrier<C>> interleaved(Carrier<C> a, Carrier<C> b) {
  if constexpr (sizeof(C) == 16) {
    return {__builtin_shufflevector(a, b, 0, 1, 8, 9, 2, 3, 10, 11),
            __builtin_shufflevector(a, b, 4, 5, 12, 13, 6, 7, 14, 15)};
  } else {
    return paired(a, b);
  }
}

// Transposes a square of cells: every step is a perfect shuffle of the rows.
template <class C, int kStep = 1>
RL_INLINE void transpose(Carrier<C>* rows) {
  constexpr int kSize = kCells<C>;
  if constexpr (kStep < kSize) {
    Carrier<C> next[kSize];
#pragma GCC unroll 8
    for (int i = 0; i < kSize / 2; ++i) {
      const Point<Carrier<C>> both = interleaved<C>(rows[i], rows[i + kSize / 2]);
      next[2 * i] = both.re;
      next[2 * i + 1] = both.im;
    }
    transpose<C, 2 * kStep>(next);
    __builtin_memcpy(rows, next, sizeof next);
  }
}

// Other instruction sets would take these shuffles apart.
#if defined(__AVX512F__)
constexpr bool kTransposes = true;
#else
constexpr bool kTransposes = false;
#endif

// Calls f(k, lanes), where lanes[part][lane], for all elements of all lines.
template <class T, int kLanes, int kParts, class F>
RL_INLINE void read_lines(const FftLines<T>& lines, int64_t n, F f) {
  using C = Cell<T, kParts>;
  constexpr int kBlock = kCells<C>;  // elements of a line that are moved at once
  const C* in = reinterpret_cast<const C*>(lines.in);
  bool neighbours = lines.count == kLanes;
  for (int l = 1; l < lines.count; ++l) neighbours &= lines.in_at[l] == lines.in_at[0] + l;
  if (neighbours) {
    for (int64_t k = 0; k < n; ++k) f(k, in + lines.in_at[0] + k * lines.in_stride);
    return;
  }
  alignas(64) C block[kBlock][kLanes];
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t m = n - first < kBlock ? n - first : kBlock;
    const auto line = [&](int l) { return in + lines.in_at[l < lines.count ? l : 0] + first * lines.in_stride; };
    if (kTransposes && kLanes > 1 && m == kBlock && lines.in_stride == 1) {
      for (int l = 0; l < kLanes; l += kBlock) {
        Carrier<C> rows[kBlock];
        for (int i = 0; i < kBlock; ++i) __builtin_memcpy(&rows[i], line(l + i), sizeof rows[i]);
        transpose<C>(rows);
        for (int i = 0; i < kBlock; ++i) __builtin_memcpy(&block[i][l], &rows[i], sizeof rows[i]);
      }
    } else {
      for (int l = 0; l < kLanes; ++l) {
        for (int64_t k = 0; k < m; ++k) block[k][l] = line(l)[k * lines.in_stride];
      }
    }
    for (int64_t k = 0; k < m; ++k) f(first + k, block[k]);
  }
}

// f(k, lanes) fills lanes[lane].part for every element k.
template <class T, int kLanes, int kParts, class F>
RL_INLINE void write_lines(const FftLines<T>& lines, int64_t n, F f) {
  using C = Cell<T, kParts>;
  constexpr int kBlock = kCells<C>;
  C* out = reinterpret_cast<C*>(lines.out);
  bool neighbours = lines.count == kLanes;
  for (int l = 1; l < lines.count; ++l) neighbours &= lines.out_at[l] == lines.out_at[0] + l;
  if (neighbours) {
    for (int64_t k = 0; k < n; ++k) f(k, out + lines.out_at[0] + k * lines.out_stride);
    return;
  }
  alignas(64) C block[kBlock][kLanes];
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t m = n - first < kBlock ? n - first : kBlock;
    const auto line = [&](int l) { return out + lines.out_at[l] + first * lines.out_stride; };
    for (int64_t k = 0; k < m; ++k) f(first + k, block[k]);
    if (kTransposes && kLanes > 1 && m == kBlock && lines.out_stride == 1) {
      for (int l = 0; l < lines.count; l += kBlock) {
        Carrier<C> rows[kBlock];
        for (int i = 0; i < kBlock; ++i) __builtin_memcpy(&rows[i], &block[i][l], sizeof rows[i]);
        transpose<C>(rows);
        for (int i = 0; i < kBlock && l + i < lines.count; ++i) __builtin_memcpy(line(l + i), &rows[i], sizeof rows[i]);
      }
    } else {
      for (int l = 0; l < lines.count; ++l) {
        for (int64_t k = 0; k < m; ++k) line(l)[k * lines.out_stride] = block[k][l];
      }
    }
  }
}

template <class V, class T, int kLanes>
struct Transform {
  using P = Point<V>;
  using Pair = Cell<T, 2>;
  using One = Cell<T, 1>;
  const FftPlan<T>& plan;
  const FftLines<T>& lines;
  P *local, *a, *b;  // of the passes; n points; and twice the points that the plan works with
  static constexpr int kL = kLanes;

  RL_INLINE P load(const Pair* from, bool exchanged) {
    P p;
    if constexpr (kL == 1) {
      p = {from->part[0], from->part[1]};
    } else {
      V both[2];
      __builtin_memcpy(both, from, sizeof both);
      p = apart(both[0], both[1]);
    }
    return exchanged ? P{p.im, p.re} : p;
  }
  RL_INLINE void store(P p, Pair* to, bool exchanged) {
    if (exchanged) p = {p.im, p.re};
    if constexpr (kL != 1) p = paired(p.re, p.im);
    __builtin_memcpy(to, &p, sizeof p);
  }
  RL_INLINE V load(const One* from) {
    V v;
    __builtin_memcpy(&v, from, sizeof v);
    return v;
  }

  void complex() const {
    const bool backward = lines.kind == Fft::Backward;
    read_lines<T, kL, 2>(lines, lines.n, [&](int64_t k, const Pair* from) { a[k] = load(from, backward); });
    const P* result = transform(plan, a, b, local);
    const T scale = lines.scale;
    write_lines<T, kL, 2>(lines, lines.n, [&](int64_t k, Pair* to) {
      P p = scaled(result[k], scale);
      if (lines.factors != nullptr) {
        P w[2];
        __builtin_memcpy(w, lines.factors + k % kFftFine * 2 * kL, sizeof *w);
        __builtin_memcpy(w + 1, lines.factors + (kFftFine + k / kFftFine) * 2 * kL, sizeof *w);
        p = times(p, times(w[0], w[1]));
      }
      store(p, to, backward);
    });
  }

  // Pairs of neighbours of a real signal are one complex number each.
  void from_real() const {
    const int64_t n = lines.n, half = n / 2;
    const bool even = n % 2 == 0;
    read_lines<T, kL, 1>(lines, n, [&](int64_t k, const One* from) {
      if (!even) {
        a[k] = {load(from), V{} * T(0)};
      } else if (k % 2 == 0) {
        a[k / 2].re = load(from);
      } else {
        a[k / 2].im = load(from);
      }
    });
    const P* z = transform(plan, a, b, local);
    const T scale = lines.scale;
    const auto value = [&](int64_t k) -> P {  // k <= n / 2
      if (!even) return scaled(z[k], scale);
      const P &x = z[k == half ? 0 : k], &y = z[k == 0 ? 0 : half - k];
      const P mirrored = {y.re, -y.im};
      const P turn = over_i(turned(x - mirrored, lines.turns + 2 * k));
      return scaled(x + mirrored + turn, T(0.5) * scale);
    };
    const bool whole = lines.kind == Fft::RealWhole;
    write_lines<T, kL, 2>(lines, whole ? n : half + 1, [&](int64_t k, Pair* to) {
      P p = value(k <= half ? k : n - k);
      if (k > half) p.im = -p.im;
      store(p, to, false);
    });
  }

  void to_real() const {
    const int64_t n = lines.n, half = n / 2;
    const bool even = n % 2 == 0;
    P* x = b + (plan.chirp != nullptr ? 2 * plan.chirp->n : plan.n);  // behind what the plan uses
    read_lines<T, kL, 2>(lines, half + 1, [&](int64_t k, const Pair* from) { x[k] = load(from, false); });
    x[0].im = V{} * T(0);
    if (even) x[half].im = V{} * T(0);
    for (int64_t k = 0; k < plan.n; ++k) {
      P p;
      if (even) {
        const P mirrored = {x[half - k].re, -x[half - k].im};
        const P difference = x[k] - mirrored;
        const T back[2] = {lines.turns[2 * k], -lines.turns[2 * k + 1]};
        p = x[k] + mirrored + times_i(turned(difference, back));
      } else {
        p = k <= half ? x[k] : P{x[n - k].re, -x[n - k].im};
      }
      a[k] = {p.im, p.re};  // backward
    }
    const P* z = transform(plan, a, b, local);
    const T scale = lines.scale;
    write_lines<T, kL, 1>(lines, n, [&](int64_t k, One* to) {
      const V v = (!even ? z[k].im : k % 2 == 0 ? z[k / 2].im : z[k / 2].re) * scale;
      __builtin_memcpy(to, &v, sizeof v);
    });
  }

  void run() const {
    switch (lines.kind) {
      case Fft::Forward:
      case Fft::Backward: return complex();
      case Fft::RealHalf:
      case Fft::RealWhole: return from_real();
      case Fft::ToReal: return to_real();
    }
  }
};

template <class T>
void run(const FftPlan<T>& plan, const FftLines<T>& lines, void* scratch) {
  using V = typename LanesOf<T>::type;
  const int64_t near = fft_near(plan);
  if (lines.count == 1 && lines.factors == nullptr) {
    auto* points = static_cast<Point<T>*>(scratch);
    return Transform<T, T, 1>{plan, lines, points, points + near, points + near + plan.n}.run();
  }
  auto* points = static_cast<Point<V>*>(scratch);
  Transform<V, T, kFftBytes / sizeof(T)>{plan, lines, points, points + near, points + near + plan.n}.run();
}

}  // namespace

void fill_fft(FftTable& table) {
  table.floats.run = run<float>;
  table.doubles.run = run<double>;
}

}  // namespace RL_ISA
}  // namespace rl
