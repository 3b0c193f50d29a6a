// Orthogonal polynomials by their recurrences (DLMF 18.9), in double, blocks of elements side by side.
#include <rushlight/loop.h>
#include <rushlight/simd.h>

#include "kernels.h"
#include "segments.h"

namespace rl {
namespace RL_ISA {
namespace {

constexpr int kBlock = 128;

// Up to here Chebyshev's polynomials are summed, beyond they are trigonometric. The others are NaN beyond kMaxDegree.
constexpr double kChebyshevSums = 1024, kMaxDegree = 1 << 20;

enum class Kind { T, U, V, W, ShiftedT, ShiftedU, ShiftedV, ShiftedW, H, He, L, P };

constexpr bool is_chebyshev(Kind k) { return k < Kind::H; }
constexpr bool is_shifted(Kind k) { return k >= Kind::ShiftedT && k < Kind::H; }
constexpr Kind unshifted(Kind k) { return is_shifted(k) ? Kind(int(k) - int(Kind::ShiftedT)) : k; }

using V = Vec<double>;

// x y + z, rounded once where there is an instruction for it.
RL_MEMBER V fused(V x, V y, V z) {
#if defined(__AVX512F__)
  return _mm512_fmadd_pd(x, y, z);
#elif defined(__FMA__) && defined(__AVX2__)
  return _mm256_fmadd_pd(x, y, z);
#elif defined(__aarch64__)
  return vfmaq_f64(z, x, y);
#else
  return x * y + z;
#endif
}
// x y - product, exact where `product` is x y rounded.
RL_MEMBER V lost_by(V product, V x, V y) {
#if defined(__FMA__) || defined(__aarch64__)
  return fused(x, y, -product);
#else
  typedef int64_t Bits __attribute__((vector_size(kVecBytes)));
  const auto high = [](V v) { return (V)((Bits)v & (Bits{} + int64_t{-0x8000000})); };
  const V xh = high(x), xl = x - xh, yh = high(y), yl = y - yh;
  return ((xh * yh - product) + xh * yl + xl * yh) + xl * yl;
#endif
}

// What a recurrence loses by rounding grows with the degree; for results in double it is carried along in `lo`.
struct Pair {
  V hi, lo;
  RL_MEMBER Pair(V high, V low = V{}) : hi(high), lo(low) {}
  RL_MEMBER Pair(double x) : hi(splat(x)), lo{} {}
};
RL_MEMBER Pair operator*(Pair x, Pair y) {
  const V p = x.hi * y.hi;
  return {p, fused(x.lo, y.hi, fused(x.hi, y.lo, lost_by(p, x.hi, y.hi)))};
}
RL_MEMBER Pair operator-(Pair x, Pair y) {
  const V difference = x.hi - y.hi, part = difference - x.hi;
  return {difference, ((x.hi - (difference - part)) - (y.hi + part)) + (x.lo - y.lo)};
}
RL_MEMBER Pair twice(Pair x) { return {x.hi + x.hi, x.lo + x.lo}; }
RL_MEMBER V twice(V x) { return x + x; }

// Where `hi` is infinite, `lo` is NaN.
RL_MEMBER V rounded(Pair x) {
  const V sum = x.hi + x.lo;
  return sum == sum ? sum : x.hi;
}
RL_MEMBER V rounded(V x) { return x; }

template <class X>
RL_MEMBER X quotient(X x, double k);
template <>
RL_MEMBER V quotient(V x, double k) {
  return x / splat(k);
}
template <>
RL_MEMBER Pair quotient(Pair x, double k) {
  const double inverse = 1 / k, product = inverse * k;
  const double lost = product2(inverse, k).lo;
  return x * Pair(splat(inverse), splat(((1 - product) - lost) * inverse));
}

// X: V, or a pair of them.
template <Kind kKind, class X>
RL_MEMBER X first_degree(X x) {
  const X one(splat(1.0)), minus(splat(-1.0));
  switch (unshifted(kKind)) {
    case Kind::U:
    case Kind::H: return twice(x);
    case Kind::V: return twice(x) - one;
    case Kind::W: return twice(x) - minus;
    case Kind::L: return one - x;
    default: return x;
  }
}

// The degree k + 1 of those of degree k and k - 1.
template <Kind kKind, class X>
RL_MEMBER X next_degree(X x, double k, X now, X before) {
  const X degree(splat(k)), odd(splat(2 * k + 1));
  if constexpr (is_chebyshev(kKind)) return twice(x) * now - before;
  if constexpr (kKind == Kind::H) return twice(x * now - degree * before);
  if constexpr (kKind == Kind::He) return x * now - degree * before;
  if constexpr (kKind == Kind::L) return quotient((odd - x) * now - degree * before, k + 1);
  return quotient(odd * x * now - degree * before, k + 1);
}

// DLMF 18.5.1 to 18.5.4, and hyperbolic beyond [-1, 1].
template <Kind kKind>
double chebyshev_closed(double x, double n) {
  constexpr Kind kind = unshifted(kKind);
  const double sign = x < 0 && ::fmod(n, 2) != 0 ? -1 : 1, a = ::fabs(x);
  if (a == 1) {
    const bool grows = kind == Kind::U || kind == (x < 0 ? Kind::V : Kind::W);
    return sign * (!grows ? 1 : kind == Kind::U ? n + 1 : 2 * n + 1);
  }
  if (a < 1) {
    const double t = ::acos(x);
    switch (kind) {
      case Kind::T: return ::cos(n * t);
      case Kind::U: return ::sin((n + 1) * t) / ::sin(t);
      case Kind::V: return ::cos((n + 0.5) * t) / ::cos(0.5 * t);
      default: return ::sin((n + 0.5) * t) / ::sin(0.5 * t);
    }
  }
  const double t = ::acosh(a);
  const bool sinh_like = kind == (x < 0 ? Kind::V : Kind::W);
  switch (kind) {
    case Kind::T: return sign * ::cosh(n * t);
    case Kind::U: return sign * ::sinh((n + 1) * t) / ::sinh(t);
    default:
      return sign * (sinh_like ? ::sinh((n + 0.5) * t) / ::sinh(0.5 * t) : ::cosh((n + 0.5) * t) / ::cosh(0.5 * t));
  }
}

constexpr double highest_sum(Kind k) { return is_chebyshev(k) ? kChebyshevSums : kMaxDegree; }

// float is computed in double, double in pairs.
template <class T>
using Computed = std::conditional_t<sizeof(T) == 8, Pair, V>;

template <Kind kKind, class X>
RL_MEMBER X argument_of(V point) {
  return is_shifted(kKind) ? twice(X(point)) - X(splat(1.0)) : X(point);
}

template <Kind kKind, class X>
RL_MEMBER V of_degree(V point, double n) {
  if (!(n >= 1)) return splat(n == 0 ? 1.0 : n < 0 ? 0.0 : kNan);
  const X argument = argument_of<kKind, X>(point);
  X before(splat(1.0)), now = first_degree<kKind>(argument);
  for (double k = 1; k < n; ++k) {
    const X following = next_degree<kKind>(argument, k, now, before);
    before = now;
    now = following;
  }
  return rounded(now);
}

// All of one degree, at most highest_sum.
template <Kind kKind, class T>
void line(T* out, const T* points, double n, int64_t count) {
  constexpr size_t kBytes = kLanes<double> * sizeof(T);  // sizeof(Cells) as a template's argument is that of T
  typedef T Cells __attribute__((vector_size(kBytes)));
  const auto vector = [&](int64_t i, auto size) {
    Cells cells{};
    std::memcpy(&cells, points + i, size);
    cells = __builtin_convertvector(of_degree<kKind, Computed<T>>(__builtin_convertvector(cells, V), n), Cells);
    std::memcpy(out + i, &cells, size);
  };
  int64_t i = 0;
  for (; i + kLanes<double> <= count; i += kLanes<double>) vector(i, std::integral_constant<size_t, kBytes>());
  if (i < count) vector(i, static_cast<size_t>(count - i) * sizeof(T));
}

// Up to the highest degree, each taken where it is asked for.
template <Kind kKind, class X>
void sums(double* out, const double* x, const double* n, double highest) {
  for (int64_t i = 0; i < kBlock; i += kLanes<double>) {
    const V degree = load(n + i), one = splat(1.0);
    const X argument = argument_of<kKind, X>(load(x + i));
    X before(one), now = first_degree<kKind>(argument);
    V result = degree == 0 ? one : degree == 1 ? rounded(now) : degree < 0 ? V{} : splat(kNan);
    for (double k = 1; k < highest; ++k) {
      const X following = next_degree<kKind>(argument, k, now, before);
      before = now;
      now = following;
      result = degree == k + 1 ? rounded(now) : result;
    }
    store(out + i, result);
  }
}

template <Kind kKind, class T>
void block(T* out, const T* points, const T* degrees, int64_t count) {
  constexpr double kSums = highest_sum(kKind);
  double x[kBlock] = {}, n[kBlock] = {}, result[kBlock], highest = 0;
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    x[i] = points[i];
    n[i] = vm::trunc(static_cast<double>(degrees[i]));
  }
  for (int64_t i = 0; i < count; ++i) highest = n[i] > highest && n[i] <= kSums ? n[i] : highest;
  sums<kKind, Computed<T>>(result, x, n, highest);
  for (int64_t i = 0; is_chebyshev(kKind) && i < count; ++i) {
    if (n[i] > kSums) result[i] = chebyshev_closed<kKind>(is_shifted(kKind) ? 2 * x[i] - 1 : x[i], n[i]);
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(result[i]);
}

template <Kind kKind, class T>
void dense(char* out, const char* const* in, int64_t n, const void*) {
  for (int64_t i = 0; i < n; i += kBlock) {
    block<kKind, T>(reinterpret_cast<T*>(out) + i, reinterpret_cast<const T*>(in[0]) + i,
                    reinterpret_cast<const T*>(in[1]) + i, n - i < kBlock ? n - i : kBlock);
  }
}

template <Kind kKind, class T>
void run(char* const* data, const int64_t* strides, int64_t n, const void* params) {
  const int64_t size = sizeof(T);
  const double degree = vm::trunc(static_cast<double>(*reinterpret_cast<const T*>(data[2])));
  if (strides[0] == size && strides[1] == size && strides[2] == 0 && !(degree > highest_sum(kKind)))
    return line<kKind>(reinterpret_cast<T*>(data[0]), reinterpret_cast<const T*>(data[1]), degree, n);
  static constexpr Plan kPlan{dense<kKind, T>, 1, 2, {cell_of<T>(), cell_of<T>(), cell_of<T>()}};
  run_plan(kPlan, data, strides, n, params);
}

template <Kind kKind>
void add(LoopTable& table, const char* op) {
  table.set(op, DType::Float32, run<kKind, float>);
  table.set(op, DType::Float64, run<kKind, double>);
}

}  // namespace

void fill_polynomial(LoopTable& table) {
  add<Kind::T>(table, "special::chebyshev_polynomial_t");
  add<Kind::U>(table, "special::chebyshev_polynomial_u");
  add<Kind::V>(table, "special::chebyshev_polynomial_v");
  add<Kind::W>(table, "special::chebyshev_polynomial_w");
  add<Kind::ShiftedT>(table, "special::shifted_chebyshev_polynomial_t");
  add<Kind::ShiftedU>(table, "special::shifted_chebyshev_polynomial_u");
  add<Kind::ShiftedV>(table, "special::shifted_chebyshev_polynomial_v");
  add<Kind::ShiftedW>(table, "special::shifted_chebyshev_polynomial_w");
  add<Kind::H>(table, "special::hermite_polynomial_h");
  add<Kind::He>(table, "special::hermite_polynomial_he");
  add<Kind::L>(table, "special::laguerre_polynomial_l");
  add<Kind::P>(table, "special::legendre_polynomial_p");
}

}  // namespace RL_ISA
}  // namespace rl
