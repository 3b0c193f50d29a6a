// Special functions of one variable.
#include <rushlight/loop.h>

#include <iterator>

#include "kernels.h"
#include "octaves.h"
#include "segments.h"

namespace rl {
namespace RL_ISA {
namespace {

// Passes NaN on, and keeps the square of infinity away.
template <class T>
RL_INLINE T at_most(T x, T limit) {
  return x > limit ? limit : x;
}

// ---- Error function and the normal distribution ----

// exp(x^2) erfc(x) for x >= 0, the quotient by 1/x beyond 8.
struct ErfcxTable {
  template <class T>
  static constexpr const auto& table() {
    return kErfcx<T>;
  }
  static RL_MEMBER Place place(double x) { return place_of<12, 4>(vm::abs(x)); }
  static RL_MEMBER double value(double x, double u, double v) { return x >= 8 ? v * u : v; }
};

// exp(-x^2 / kDivisor), with the square to twice the precision, for |x| < 100; a float's square is exact.
template <class T, int kDivisor>
RL_INLINE double exp_minus_square(double x) {
  if constexpr (sizeof(T) == 4) {
    const double bounded = at_most(x, 16.0 * kDivisor);  // whose result is no float any more
    return vm::exp<0, true>(-bounded * bounded / kDivisor);
  }
  const Sum2 square = product2(x, x);
  vm::Exp<double> e = vm::exp_reduced(vm::between(-square.hi / kDivisor, -760.0, 0.0));
  e.q = vm::madd(1 + e.r + e.q, -square.lo / kDivisor, e.q);
  return vm::scale(vm::exp_fraction(e), e.n);
}

#if defined(__AVX512F__)
// For 0 <= a < 32: erfc(r + d) = erfc(r) + erfc'(r) d s at the closest r of a grid, where s is the integral of
// exp(-2 r d u) exp(-d^2 u^2) over u from 0 to 1, and the second factor three terms of its series.
RL_INLINE __m512d erfc_from_grid(__m512d a) {
  using namespace octaves;
  const __m512d shift = filled(0x1.8p45, a), shifted = a + shift, r = shifted - shift, d = a - r;
  const __m512i row = _mm512_and_si512(bits(shifted), _mm512_set1_epi64(std::size(kErfcGrid[0]) - 1));
  const __m512d value = _mm512_i64gather_pd(row, kErfcGrid[0], 8), slope = _mm512_i64gather_pd(row, kErfcGrid[1], 8);
  const __m512d w = r * d, square = d * d;
  const auto series = [&](const double* c, int degree) __attribute__((always_inline)) {
    __m512d y = filled(c[degree], w);
#pragma GCC unroll 16
    for (int k = degree - 1; k >= 0; --k) y = madd(y, w, filled(c[k], w));
    return y;
  };
  const __m512d rest = madd(square, series(kErfcSteps[2], 3), -series(kErfcSteps[1], 6));
  return madd(-slope * d, madd(square, rest, series(kErfcSteps[0], 9)), value);
}
#endif

struct Erfc : ErfcxTable {
  template <class T>
  static RL_MEMBER double finish(double x, double u, double v) {
    const double a = vm::abs(x);
    const double y = exp_minus_square<T, 1>(at_most(a, 40.0)) * value(a, u, v);
    return x < 0 ? 2 - y : y;
  }
#if defined(__AVX512F__)
  template <class T, class V>
  static RL_MEMBER auto quick(V x, const void*, V& result) {
    using namespace octaves;
    const V a = smaller(filled(T(sizeof(T) == 8 ? 27.3 : 10.5), x), abs(x));
    V y;
    if constexpr (sizeof(T) == 8) {
      y = erfc_from_grid(a);
    } else {
      const V square = a * a, scaled = on_part(kErfcxOctavesSingle, row_of<3>(a + 2), a);
      y = times_exp_minus<T>(scaled, square, madd(a, a, -square));
    }
    result = select(negative(x), 2 - y, y);
    return negative(x) & 0;
  }
#endif
};

// grad * scale * exp(-rate x^2), the slope of the functions here and of their inverses.
template <class T>
RL_INLINE T gaussian_backward(T grad, T x, T scale, T rate) {
  using R = vm::Real<T>;
  const T a = at_most(vm::abs(x), T(64)), square = a * a, lost = vm::madd(a, a, -square);
  vm::Exp<T> e = vm::exp_reduced(vm::between(-rate * square, R::kExpLow, R::kExpHigh + 1));
  e.q = vm::madd(1 + e.r + e.q, -rate * lost, e.q);
  return grad * scale * vm::scale(vm::exp_fraction(e), e.n);
}

struct Erfcx : ErfcxTable {
  template <class T>
  static RL_MEMBER double finish(double x, double u, double v) {
    const double a = vm::abs(x), y = value(a, u, v);
    const Sum2 square = product2(at_most(a, 40.0), at_most(a, 40.0));
    const double e = vm::exp<1>(square.hi);
    const double negative = e + (e < kInf ? e * square.lo : 0) - y;
    return x < 0 ? negative : y;
  }
};

struct LogErfc : ErfcxTable {
  template <class T>
  static RL_MEMBER double finish(double x, double u, double v) {
    const double far = vm::log(value(vm::abs(x), u, v)) - x * x;
    return x > 0.5 ? far : vm::log1p(-vm::erf(x));
  }
};

struct LogErfcx : ErfcxTable {
  template <class T>
  static RL_MEMBER double finish(double x, double u, double v) {
    return x > 0.5 ? vm::log(value(vm::abs(x), u, v)) : x * x + vm::log1p(-vm::erf(x));
  }
};

struct NdtrTable : ErfcxTable {
  static RL_MEMBER Place place(double x) { return ErfcxTable::place(x / kSqrt2); }
  static RL_MEMBER double value(double a, double u, double v) { return ErfcxTable::value(a / kSqrt2, u, v); }
};

struct Ndtr : NdtrTable {
  template <class T>
  static RL_MEMBER double finish(double x, double u, double v) {
    const double a = vm::abs(x), y = 0.5 * exp_minus_square<T, 2>(at_most(a, 60.0)) * value(a, u, v);
    return x > 0 ? 1 - y : y;
  }
#if defined(__AVX512F__)
  template <class T, class V>
  static RL_MEMBER auto quick(V x, const void*, V& result) {
    using namespace octaves;
    const V a = smaller(filled(T(sizeof(T) == 8 ? 29.9 : 15), x), abs(x)), square = a * a;
    const V scaled = on_part(kNdtrOctaves<T>, row_of<sizeof(T) == 8 ? 2 : 3>(a + 2), a);
    const V y = times_exp_minus<T>(scaled, square / 2, madd(a, a, -square) / 2);
    result = select(negative(x), y, 1 - y);
    return not_at_least(x, T(-29.9));
  }
#endif
};

struct LogNdtr : NdtrTable {
  template <class T>
  static RL_MEMBER double finish(double x, double u, double v) {
    const double a = vm::abs(x), scaled = 0.5 * value(a, u, v);
    const double tail = exp_minus_square<T, 2>(at_most(a, 60.0)) * scaled;
    const bool far = x < -1;
    const double y = vm::log1p(far ? scaled - 1 : x < 0 ? tail - 1 : -tail);
    return far ? vm::log(scaled) - 0.5 * x * x : y;
  }
};

// x with erf(x) = y: of y^2, and in the tails of sqrt(-log(1 - |y|)).
struct ErfInverse {
  template <class T>
  static constexpr const auto& table() {
    return kErfinv<T>;
  }
  // `rest` is the distance of |y| from 1.
  static RL_MEMBER Place locate(double y, double rest) {
    const double z = y * y, r = vm::sqrt(-vm::log(rest));
    const bool middle = z < 0.5;
    const double tail = r < 5 ? 8 + (r - 1) * 3 : 20 + (r - 5) * 0.5;
    return {middle ? z : r, middle ? z * 16 : tail, !middle};
  }
  static RL_MEMBER double inverse(double y, double rest, double v) {
    const double tail = rest > 0 ? v : rest == 0 ? kInf : kNan;
    return y * y < 0.5 ? y * v : vm::copysign(tail, y);
  }
};

struct Erfinv : ErfInverse {
  static RL_MEMBER Place place(double x) { return locate(x, 1 - vm::abs(x)); }
  template <class T>
  static RL_MEMBER double finish(double x, double, double v) {
    return vm::isnan(x) ? x : inverse(x, 1 - vm::abs(x), v);
  }
#if defined(__AVX512F__)
  template <class T, class V>
  static RL_MEMBER auto quick(V x, const void*, V& result) {
    using namespace octaves;
    const V rest = smaller(filled(T(sizeof(T) == 8 ? 1 - 0x1p-53 : 1 - 0x1p-24), x), 1 - abs(x));
    result = x * on_part(kErfinvOctaves<T>, row_of<1>(rest), rest);
    return not_at_least(rest, T(sizeof(T) == 8 ? 0x1p-8 : 0x1p-16));
  }
#endif
};

struct Erfcinv : ErfInverse {
  static RL_MEMBER double rest(double x) { return x < 1 ? x : 2 - x; }
  static RL_MEMBER Place place(double x) { return locate(1 - x, rest(x)); }
  template <class T>
  static RL_MEMBER double finish(double x, double, double v) {
    return vm::isnan(x) ? x : inverse(1 - x, rest(x), v);
  }
};

struct Ndtri : ErfInverse {
  static RL_MEMBER double rest(double p) { return 2 * (p < 0.5 ? p : 1 - p); }
  static RL_MEMBER Place place(double p) { return locate(2 * p - 1, rest(p)); }
  template <class T>
  static RL_MEMBER double finish(double p, double, double v) {
    return vm::isnan(p) ? p : kSqrt2 * inverse(2 * p - 1, rest(p), v);
  }
};

// ---- Bessel functions ----

struct I0e {
  template <class T>
  static constexpr const auto& table() {
    return kI0e<T>;
  }
  static RL_MEMBER Place place(double x) { return place_of<8, 8>(vm::abs(x)); }
  template <class T>
  static RL_MEMBER double finish(double x, double u, double v) {
    return vm::abs(x) >= 8 ? v * vm::sqrt(u) : v;
  }
};

struct I1e {
  template <class T>
  static constexpr const auto& table() {
    return kI1e<T>;
  }
  static RL_MEMBER Place place(double x) { return place_of<8, 8>(vm::abs(x)); }
  template <class T>
  static RL_MEMBER double finish(double x, double u, double v) {
    return vm::abs(x) >= 8 ? vm::copysign(v * vm::sqrt(u), x) : v * x;
  }
};

// The exponential alone overflows before the product does.
template <class Scaled>
struct Unscaled : Scaled {
  template <class T>
  static RL_MEMBER double finish(double x, double u, double v) {
    const double bounded = vm::copysign(at_most(vm::abs(x), 1000.0), x);
    return vm::exp<-16>(vm::abs(x)) * Scaled::template finish<T>(bounded, u > 0 ? u : 0x1p-10, v) * 0x1p16;
  }
};

// DLMF 10.31: below 1 the series with its logarithm; beyond, in 1/x.
struct KTable {
  static RL_MEMBER Place place(double x) { return {1 / x, 16 / x, false}; }
};

template <bool kScaled>
struct K0 : KTable {
  template <class T>
  static constexpr const auto& table() {
    return kK0e<T>;
  }
  template <class T>
  static RL_MEMBER double finish(double x, double y, double v) {
    const double z = x * x;
    const double near = on_segment(kK0Small<T>, 0, z) - vm::log(x) * on_segment(kI0Small<T>, 0, z);
    const double far = v * vm::sqrt(y);
    if (kScaled) return x < 1 ? near * vm::exp(x) : far;
    return x < 1 ? near : far * vm::exp(-x);
  }
};

template <bool kScaled>
struct K1 : KTable {
  template <class T>
  static constexpr const auto& table() {
    return kK1e<T>;
  }
  template <class T>
  static RL_MEMBER double finish(double x, double y, double v) {
    const double z = x * x;
    const double series = y + x * (on_segment(kK1Small<T>, 0, z) + vm::log(x) * on_segment(kI1Small<T>, 0, z));
    const double near = x == 0 ? kInf : series;
    const double far = v * vm::sqrt(y);
    if (kScaled) return x < 1 ? near * vm::exp(x) : far;
    return x < 1 ? near : far * vm::exp(-x);
  }
};

// DLMF 10.18: the modulus, and the phase beside x - pi / 4, or 3 pi / 4 for order 1.
template <class T, int kOrder, bool kHuge>
RL_INLINE SinCos waves(double x) {
  const double y = 1 / x;
  const double modulus = kOrder == 0 ? on_segment(kModulus0<T>, 0, y) : on_segment(kModulus1<T>, 0, y);
  const double phase = kOrder == 0 ? on_segment(kPhase0<T>, 0, y) : on_segment(kPhase1<T>, 0, y);
  const SinCos t = sin_cos_less_eighth<kHuge>(x, phase * y);
  const double amplitude = x == kInf ? 0 : modulus / vm::sqrt(x);
  return {amplitude == 0 ? 0 : amplitude * t.sin, amplitude == 0 ? 0 : amplitude * t.cos};
}

struct JTable {
  static RL_MEMBER Place place(double x) { return {vm::abs(x), vm::abs(x) * 2, false}; }
};

struct J0 : JTable {
  template <class T>
  static constexpr const auto& table() {
    return kJ0<T>;
  }
  template <class T, bool kHuge = false>
  static RL_MEMBER double finish(double, double a, double v) {
    return a < 8 ? v : waves<T, 0, kHuge>(a).cos;
  }
};

struct J1 : JTable {
  template <class T>
  static constexpr const auto& table() {
    return kJ1<T>;
  }
  template <class T, bool kHuge = false>
  static RL_MEMBER double finish(double x, double a, double v) {
    return a < 8 ? x * v : vm::copysign(1.0, x) * waves<T, 1, kHuge>(a).sin;
  }
};

template <class T, bool kHuge = false>
RL_INLINE double y0(double x) {
  const double v = on_segment(kY0<T>, x * 2, x);
  const double near = 2 / kPi * vm::log(x) * on_segment(kJ0<T>, x * 2, x) + v, far = waves<T, 0, kHuge>(x).sin;
  return x < 2 ? near : x < 8 ? v : far;
}
template <class T, bool kHuge = false>
RL_INLINE double y1(double x) {
  const double v = on_segment(kY1<T>, x * 2, x);
  const double regular = x * (2 / kPi * vm::log(x) * on_segment(kJ1<T>, x * 2, x) + v);
  const double near = x == 0 ? -kInf : x > 0 ? regular - 2 / kPi / x : kNan, far = -waves<T, 1, kHuge>(x).cos;
  return x < 2 ? near : x < 8 ? v : far;
}

template <class T, bool kHuge = false>
RL_INLINE double spherical_j0(double x) {
  const double s = kHuge ? ::sin(x) : vm::sin(x);
  return x == 0 ? 1 : vm::abs(x) == kInf ? 0 : s / x;
}

// ---- Airy function ----

// z = 2/3 x^(3/2) = hi + lo, where hi has bits to spare.
RL_INLINE Sum2 airy_phase(double x) {
  const double s = vm::sqrt(x);
  const Sum2 square = product2(s, s), p = product2(x, s);
  const double root_rest = ((x - square.hi) - square.lo) / (2 * s);
  const double hi = vm::from_bits<double>(vm::bits(p.hi * (2.0 / 3)) & ~uint64_t{7});
  return {hi, ((p.hi - 1.5 * hi) + p.lo + x * root_rest) * (2.0 / 3)};
}

// Ai, or Ai' for kDerivative 1. DLMF 9.7.5, 9.7.6 and 9.8 beyond the table.
template <class T, int kDerivative, bool kHuge = false>
RL_INLINE double airy(double x) {
  const bool positive = x > 0;
  const double a = positive ? at_most(x, 128.0) : at_most(-x, 1e150), far = a < 4 ? 4 : a;
  Sum2 z = airy_phase(far);
  z.lo = vm::abs(z.lo) < 1 ? z.lo : 0;  // of huge phases no digit is known
  const double y = 1 / z.hi, root = vm::sqrt(vm::sqrt(far));
  double near, decay, modulus, phase;
  if constexpr (kDerivative == 0) {
    near = on_segment(kAiry0<T>, (x + 8) * 4, x), decay = on_segment(kAiryDecay0<T>, y * 32, y);
    modulus = on_segment(kAiryModulus0<T>, y / 0.0332, y), phase = on_segment(kAiryPhase0<T>, y / 0.0332, y);
  } else {
    near = on_segment(kAiry1<T>, (x + 8) * 4, x), decay = on_segment(kAiryDecay1<T>, y * 32, y);
    modulus = on_segment(kAiryModulus1<T>, y / 0.0332, y), phase = on_segment(kAiryPhase1<T>, y / 0.0332, y);
  }
  const SinCos t = sin_cos_less_eighth<kHuge>(z.hi, phase * y + z.lo);
  const double amplitude = positive ? decay : modulus, wave = kDerivative ? t.sin : t.cos;
  vm::Exp<double> e = vm::exp_reduced(vm::between(-z.hi, -800.0, 0.0));
  e.q = vm::madd(1 + e.r + e.q, -z.lo, e.q);
  const double factor = positive ? vm::scale(vm::exp_fraction(e), e.n) : wave;
  const double beyond = kDerivative ? amplitude * root * factor : amplitude / root * factor;
  return (x >= -8) & (x < 4) ? near : x == -kInf ? (kDerivative ? kNan : 0) : beyond;
}

struct AiryReducible : vm::Magnitude {
  template <class T>
  static vm::UInt<T> limit() {
    return bits_as<vm::UInt<T>>(T(1e4));
  }
};

// ---- Gamma function ----

// What positive arguments need: no reflection.
struct Positive {
  template <class T>
  vm::UInt<T> operator()(T x) const {
    return vm::bits(x);
  }
  template <class T>
  static vm::UInt<T> limit() {
    return vm::Real<T>::kSign;
  }
};

// DLMF 5.5.1 and 5.5.3 bring every x to [0.5, inf); 5.11.1 beyond 8.
struct Gammaln {
  template <class T>
  static constexpr const auto& table() {
    return kGammaln<T>;
  }
  static RL_MEMBER double argument(double x) { return x < 0.5 ? 1 + vm::abs(x) : x; }
  static RL_MEMBER Place place(double x) {
    const double w = argument(x);
    const Place p = place_of<1, 2>(w);
    return {p.u, p.far ? 29 + p.position : w < 2 ? (w - 0.5) * 8 : 12 + (w - 2) * 3, p.far};
  }
  template <class T, bool kAny = false>
  static RL_MEMBER double finish(double x, double u, double v) {
    const bool reflected = x < 0.5;
    const double w = argument(x), less1 = reflected ? vm::abs(x) : x - 1, less2 = less1 - 1;
    const double sine = kAny ? vm::abs(vm::sin(kPi * fraction(x))) / kPi : 0;
    const double outer = vm::log(!kAny || x > 0 ? x : sine), log_w = kAny ? vm::log(w) : outer;
    const double stirling = (w - 0.5) * (log_w - 1) + (0.41893853320467274178 + v * u);
    const double core = w >= 8 ? stirling : less1 * less2 * v;
    const double y = reflected ? (!kAny || x > 0 ? core : -core) - outer : core;
    return vm::abs(x) == kInf ? kInf : y;
  }
};

// Reflection and recurrence of both derivatives bring x to [1, inf).
struct PsiTable {
  static RL_MEMBER double argument(double x) { return x < 0 ? 1 - x : x < 1 ? x + 1 : x; }
  static RL_MEMBER Place place(double x) {
    const double w = argument(x);
    const Place p = place_of<1, 2>(w);
    return {p.u, p.far ? 27 + p.position : w < 2 ? (w - 1) * 8 : 8 + (w - 2) * (20.0 / 6), p.far};
  }
};

constexpr double kDigammaRoot = 1.46163214496836234, kDigammaRootRest = 9.549995429965697715183e-17;

struct Digamma : PsiTable {
  template <class T>
  static constexpr const auto& table() {
    return kDigamma<T>;
  }
  template <class T, bool kAny = false>
  static RL_MEMBER double finish(double x, double u, double v) {
    const double w = argument(x);
    const double far = vm::log(w) - u * (0.5 - v * u);
    const double core = w >= 8 ? far : ((w - kDigammaRoot) - kDigammaRootRest) * v;
    const double raised = x < 1 ? core - 1 / x : core;
    if constexpr (!kAny) return raised;
    const double f = fraction(x);
    // core + f rest - 1 / f, with what each step loses.
    const double inverse = 1 / f;
    const Sum2 product = product2(f, on_segment(kCotangentRest<T>, 0, f * f)), one = product2(f, inverse);
    const double sum = core + product.hi, part = sum - core;
    const double lost = (core - (sum - part)) + (product.hi - part) + product.lo;
    const double reflected = (sum - inverse) + (lost - ((1 - one.hi) - one.lo) * inverse);
    const double y = x < 0 ? f == 0 ? kNan : vm::abs(f) < 0x1p-900 ? -inverse : reflected : raised;
    return x == 0 ? vm::copysign(kInf, -x) : x == -kInf ? kNan : y;
  }
};

struct Trigamma : PsiTable {
  template <class T>
  static constexpr const auto& table() {
    return kTrigamma<T>;
  }
  template <class T, bool kAny = false>
  static RL_MEMBER double finish(double x, double u, double v) {
    const double core = argument(x) >= 8 ? v * u : v;
    const double raised = x < 1 ? core + 1 / (x * x) : core;
    if constexpr (!kAny) return raised;
    const double s = kPi / vm::sin(kPi * fraction(x));
    const double y = x < 0 ? s * s - core : raised;
    return x == -kInf ? kNan : y;
  }
};

// ---- Elementary ----

// With what the sum of a logarithm's parts loses.
template <class T>
RL_INLINE T entr(T x) {
  using R = vm::Real<T>;
  const vm::Log<T> a = vm::log_reduced(x);
  const T whole = a.e * R::kLn2Hi, tail = vm::log_tail(a.f) + a.e * R::kLn2Lo;
  const T part = a.f - (T(0.5) * a.f * a.f - tail), log = whole + part;
  const T lost = (whole - log) + part;
  const T y = x < R::kInf ? vm::madd(-x, log, -x * lost) : -x;
  return x > 0 ? y : x == 0 ? T(0) : x < 0 ? -R::kInf : x;
}

// The parameter is eps, minus infinity where it is absent. 2 x - 1 is exact around 1/2, where the result is 0.
template <class T>
struct Logit {
  struct Formula {
    RL_MEMBER T operator()(T x, const T* eps) const {
      const T low = x < *eps ? *eps : x, z = low > 1 - *eps ? 1 - *eps : low;
      return z < T(0.25) ? vm::log(z / (1 - z)) : vm::log1p((2 * z - 1) / (1 - z));
    }
  };
#if defined(__AVX512F__)
  template <class, class V>
  static RL_MEMBER auto quick(V x, const void* params, V& result) {
    using namespace octaves;
    const V eps = filled(*static_cast<const T*>(params), x), half = filled(T(0.5), x);
    const V z = smaller(1 - eps, larger(eps, x)), rest = smaller(z, 1 - z);
    V slope, lost;
    on_part(kLogitOctaves<T>, row_of<1>(rest), rest, slope, lost);
    const V less = z - half, missing = z - (less + half);
    result = madd(less, slope, madd(less, lost, missing * slope));
    return not_at_least(rest, T(sizeof(T) == 8 ? 0x1p-9 : 0x1p-17));
  }
#endif
};

template <class T>
RL_INLINE T xlog1py(T x, T y) {
  return vm::isnan(y) ? y : x == 0 ? T(0) : x * vm::log1p(y);
}

#define RL_IN_DOUBLE(...) [](auto x) { return static_cast<decltype(x)>(__VA_ARGS__(static_cast<double>(x))); }
#define RL_OF(fn, ...) RL_IN_DOUBLE(fn<decltype(x), ##__VA_ARGS__>)

// F::quick with AVX-512, elsewhere Slow.
template <class F, class Slow, class T>
void add_quick(Registrar& ops, const char* op) {
#if defined(__AVX512F__)
  ops.kernel<octaves::Quick<F, T, Slow>, T>(op);
#else
  ops.kernel<Slow, T>(op);
#endif
}
template <class F>
void add_quick(Registrar& ops, const char* op) {
  add_quick<F, Segmented<F, Any, float>, float>(ops, op);
  add_quick<F, Segmented<F, Any, double>, double>(ops, op);
}
template <class T>
void add_logit(Registrar& ops) {
  add_quick<Logit<T>, Kernel<typename Logit<T>::Formula, NoGuard, T, 1, T, T>, T>(ops, "special::logit");
}

void fill_normal(Registrar& ops) {
  add_quick<Erfc>(ops, "special::erfc");
  add_segmented<Erfcx>(ops, "special::erfcx");
  add_segmented<LogErfc>(ops, "special::logerfc");
  add_segmented<LogErfcx>(ops, "special::logerfcx");
  add_quick<Ndtr>(ops, "special::ndtr");
  add_segmented<LogNdtr>(ops, "special::log_ndtr");
  add_quick<Erfinv>(ops, "special::erfinv");
  add_segmented<Erfcinv>(ops, "special::erfcinv");
  add_segmented<Ndtri>(ops, "special::ndtri");
  ops.add<2, 2, Floats>("special::_gaussian_backward",
                        [](auto grad, auto x, const auto* p) { return gaussian_backward(grad, x, p[0], p[1]); });
}

void fill_bessel(Registrar& ops) {
  add_segmented<I0e>(ops, "special::i0e");
  add_segmented<I1e>(ops, "special::i1e");
  add_segmented<Unscaled<I0e>>(ops, "special::i0");
  add_segmented<Unscaled<I0e>>(ops, "special::modified_bessel_i0");
  add_segmented<Unscaled<I1e>>(ops, "special::i1");
  add_segmented<Unscaled<I1e>>(ops, "special::modified_bessel_i1");
  add_segmented<K0<false>>(ops, "special::modified_bessel_k0");
  add_segmented<K1<false>>(ops, "special::modified_bessel_k1");
  add_segmented<K0<true>>(ops, "special::scaled_modified_bessel_k0");
  add_segmented<K1<true>>(ops, "special::scaled_modified_bessel_k1");
  add_segmented<J0, vm::Reducible>(ops, "special::bessel_j0");
  add_segmented<J1, vm::Reducible>(ops, "special::bessel_j1");
  ops.guarded<1, vm::Reducible, Floats>("special::bessel_y0", RL_OF(y0), RL_OF(y0, true));
  ops.guarded<1, vm::Reducible, Floats>("special::bessel_y1", RL_OF(y1), RL_OF(y1, true));
  ops.guarded<1, vm::Reducible, Floats>("special::spherical_bessel_j0", RL_OF(spherical_j0), RL_OF(spherical_j0, true));
  ops.guarded<1, AiryReducible, Floats>("special::airy_ai", RL_OF(airy, 0), RL_OF(airy, 0, true));
  ops.guarded<1, AiryReducible, Floats>("special::_airy_ai_prime", RL_OF(airy, 1), RL_OF(airy, 1, true));
}

void fill_gamma(Registrar& ops) {
  add_segmented<Gammaln, Positive>(ops, "special::gammaln");
  add_segmented<Digamma, Positive>(ops, "special::digamma");
  add_segmented<Digamma, Positive>(ops, "special::psi");
  add_segmented<Trigamma, Positive>(ops, "special::_trigamma");
}

void fill_elementary(Registrar& ops) {
  ops.unary<Floats>("special::entr", [](auto x) { return entr(x); });
  add_logit<float>(ops);
  add_logit<double>(ops);
  ops.add<2, 1, Floats>("special::_logit_backward", [](auto grad, auto x, const auto* p) {
    // An absent eps is minus infinity.
    const auto low = p[0] > 0 ? p[0] : 0, outside = p[0] >= 0 ? decltype(x)(0) : vm::Real<decltype(x)>::kNan;
    return (x >= low) & (x <= 1 - low) ? grad / (x * (1 - x)) : outside;
  });
  ops.binary<Floats>("special::xlog1py.Tensor", [](auto x, auto y) { return xlog1py(x, y); });
}

}  // namespace

void fill_unary(LoopTable& table) {
  Registrar ops(table);
  fill_normal(ops);
  fill_bessel(ops);
  fill_gamma(ops);
  fill_elementary(ops);
}

}  // namespace RL_ISA
}  // namespace rl
