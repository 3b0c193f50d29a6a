// Special functions of one variable.
#include <rushlight/loop.h>

#include "kernels.h"
#include "segments.h"

namespace rl {
namespace RL_ISA {
namespace {

// ---- Error function and the normal distribution ----

template <class T>
RL_INLINE double erfcx_positive(double x) {
  const Place p = place<32, 4>(x);
  const double y = on_segment(kErfcx<T>, p.position, p.u);
  return p.far ? y * p.u : y;
}

// exp(-x^2 / kDivisor), with the square to twice the precision. |x| < 100.
template <int kDivisor>
RL_INLINE double exp_minus_square(double x) {
  const Sum2 square = product2(x, x);
  const double e = vm::exp(-square.hi / kDivisor), rest = square.lo / kDivisor;
  return e - e * rest;
}

// Passes NaN on, and keeps the square of infinity away.
RL_INLINE double at_most(double x, double limit) { return x > limit ? limit : x; }

template <class T>
RL_INLINE double erfc(double x) {
  const double a = vm::abs(x), bounded = at_most(a, 40);
  const double y = exp_minus_square<1>(bounded) * erfcx_positive<T>(bounded);
  return x < 0 ? 2 - y : y;
}

template <class T>
RL_INLINE double erfcx(double x) {
  const double a = vm::abs(x), y = erfcx_positive<T>(a);
  const Sum2 square = product2(at_most(a, 40), at_most(a, 40));
  const double e = vm::exp<1>(square.hi);
  const double negative = e + (e < kInf ? e * square.lo : 0) - y;
  return x < 0 ? negative : y;
}

template <class T>
RL_INLINE double log_erfc(double x) {
  const double far = vm::log(erfcx_positive<T>(vm::abs(x))) - x * x;
  return x > 0.5 ? far : vm::log1p(-vm::erf(x));
}

template <class T>
RL_INLINE double log_erfcx(double x) {
  return x > 0.5 ? vm::log(erfcx_positive<T>(vm::abs(x))) : x * x + vm::log1p(-vm::erf(x));
}

template <class T>
RL_INLINE double ndtr(double x) {
  const double a = vm::abs(x), bounded = at_most(a, 60);
  const double y = 0.5 * exp_minus_square<2>(bounded) * erfcx_positive<T>(bounded / kSqrt2);
  return x > 0 ? 1 - y : y;
}

template <class T>
RL_INLINE double log_ndtr(double x) {
  const double a = vm::abs(x), scaled = 0.5 * erfcx_positive<T>(a / kSqrt2);
  const double tail = exp_minus_square<2>(at_most(a, 60)) * scaled;
  const bool far = x < -1;
  const double y = vm::log1p(far ? scaled - 1 : x < 0 ? tail - 1 : -tail);
  return far ? vm::log(scaled) - 0.5 * x * x : y;
}

// x with erf(x) = y, given y and the distance of |y| from 1.
template <class T>
RL_INLINE double erf_inverse(double y, double rest) {
  const double z = y * y;
  const bool middle = z < 0.75;
  const double r = vm::sqrt(-vm::log(rest));
  const double tail_position = r < 5 ? 12 + (r - 1) * 4 : 28 + (r - 5) * 0.5;
  const double v = on_segment(kErfinv<T>, middle ? z * 16 : tail_position, middle ? z : r);
  const double tail = rest > 0 ? v : rest == 0 ? kInf : kNan;
  return middle ? y * v : vm::copysign(tail, y);
}

template <class T>
RL_INLINE double erfinv(double x) {
  const double y = erf_inverse<T>(x, 1 - vm::abs(x));
  return vm::isnan(x) ? x : y;
}

template <class T>
RL_INLINE double erfcinv(double x) {
  const double y = erf_inverse<T>(1 - x, x < 1 ? x : 2 - x);
  return vm::isnan(x) ? x : y;
}

template <class T>
RL_INLINE double ndtri(double p) {
  const double y = kSqrt2 * erf_inverse<T>(2 * p - 1, 2 * (p < 0.5 ? p : 1 - p));
  return vm::isnan(p) ? p : y;
}

// ---- Bessel functions ----

template <class T>
RL_INLINE double i0e(double x) {
  const Place p = place<16, 8>(vm::abs(x));
  const double y = on_segment(kI0e<T>, p.position, p.u);
  return p.far ? y * vm::sqrt(p.u) : y;
}

template <class T>
RL_INLINE double i1e(double x) {
  const Place p = place<16, 8>(vm::abs(x));
  const double y = on_segment(kI1e<T>, p.position, p.u);
  return p.far ? vm::copysign(y * vm::sqrt(p.u), x) : y * x;
}

// The exponential alone overflows before the product does.
template <class T>
RL_INLINE double i0(double x) {
  return vm::exp<-16>(vm::abs(x)) * i0e<T>(at_most(vm::abs(x), 1000)) * 0x1p16;
}
template <class T>
RL_INLINE double i1(double x) {
  const double bounded = vm::copysign(at_most(vm::abs(x), 1000), x);
  return vm::exp<-16>(vm::abs(x)) * i1e<T>(bounded) * 0x1p16;
}

// DLMF 10.31: below 1 the series with its logarithm; beyond, in 1/x, divided by `decay` = exp(-x).
template <class T, bool kScaled>
RL_INLINE double k0(double x) {
  const double z = x * x, y = 1 / x;
  const double near = on_segment(kK0Small<T>, 0, z) - vm::log(x) * on_segment(kI0Small<T>, 0, z);
  const double far = on_segment(kK0e<T>, y * 16, y) * vm::sqrt(y);
  if (kScaled) return x < 1 ? near * vm::exp(x) : far;
  return x < 1 ? near : far * vm::exp(-x);
}
template <class T, bool kScaled>
RL_INLINE double k1(double x) {
  const double z = x * x, y = 1 / x;
  const double series = y + x * (on_segment(kK1Small<T>, 0, z) + vm::log(x) * on_segment(kI1Small<T>, 0, z));
  const double near = x == 0 ? kInf : series;
  const double far = on_segment(kK1e<T>, y * 16, y) * vm::sqrt(y);
  if (kScaled) return x < 1 ? near * vm::exp(x) : far;
  return x < 1 ? near : far * vm::exp(-x);
}

// DLMF 10.17.3: P, Q / x and sqrt(1 / (pi x)) (sin x, cos x), the phases resolved into sums.
struct Hankel {
  double p, q, sum, difference;
};
template <class T, int kOrder, bool kHuge>
RL_INLINE Hankel hankel(double x, double y) {
  const SinCos t = sin_cos<kHuge>(x);
  const double amplitude = vm::sqrt(y / kPi);
  const auto& p = kOrder == 0 ? kP0<T> : kP1<T>;
  const double scale = y * 16;
  double q;
  if constexpr (kOrder == 0) {
    q = on_segment(kQ0<T>, scale, y);
  } else {
    q = on_segment(kQ1<T>, scale, y);
  }
  return {on_segment(p, scale, y), q * y, amplitude * (t.sin + t.cos), amplitude * (t.sin - t.cos)};
}

template <class T, bool kHuge = false>
RL_INLINE double j0(double x) {
  const double a = vm::abs(x), y = 1 / a;
  const Hankel h = hankel<T, 0, kHuge>(a, y);
  const double far = a == kInf ? 0 : h.p * h.sum - h.q * h.difference;
  return a < 8 ? on_segment(kJ0<T>, a * 2, a) : far;
}
template <class T, bool kHuge = false>
RL_INLINE double j1(double x) {
  const double a = vm::abs(x), y = 1 / a;
  const Hankel h = hankel<T, 1, kHuge>(a, y);
  const double far = a == kInf ? 0 : h.p * h.difference + h.q * h.sum;
  return a < 8 ? x * on_segment(kJ1<T>, a * 2, a) : x < 0 ? -far : far;
}
template <class T, bool kHuge = false>
RL_INLINE double y0(double x) {
  const double y = 1 / x;
  const Hankel h = hankel<T, 0, kHuge>(x, y);
  const double far = x == kInf ? 0 : h.p * h.difference + h.q * h.sum;
  const double near = 2 / kPi * vm::log(x) * on_segment(kJ0<T>, x * 2, x) + on_segment(kY0<T>, x * 2, x);
  return x < 8 ? near : far;
}
template <class T, bool kHuge = false>
RL_INLINE double y1(double x) {
  const double y = 1 / x;
  const Hankel h = hankel<T, 1, kHuge>(x, y);
  const double far = x == kInf ? 0 : h.q * h.difference - h.p * h.sum;
  const double regular = x * (2 / kPi * vm::log(x) * on_segment(kJ1<T>, x * 2, x) + on_segment(kY1<T>, x * 2, x));
  const double near = x == 0 ? -kInf : x > 0 ? regular - 2 / kPi * y : kNan;
  return x < 8 ? near : far;
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

// Ai, or Ai' for kDerivative 1. DLMF 9.7.5, 9.7.6, 9.7.9, 9.7.10 beyond the table.
template <class T, int kDerivative, bool kHuge = false>
RL_INLINE double airy(double x) {
  const bool positive = x > 0;
  const double a = positive ? at_most(x, 128) : at_most(-x, 1e200), far = a < 4 ? 4 : a;
  const Sum2 z = airy_phase(far);
  const double y = 1 / z.hi, root = vm::sqrt(vm::sqrt(far)), scale = kDerivative ? root : 1 / root;
  const double e = vm::exp(-z.hi);
  const SinCos t = sin_cos<kHuge>(z.hi);
  const double s = (t.sin + t.cos * z.lo) / kSqrt2, c = (t.cos - t.sin * z.lo) / kSqrt2;
  double near, decay, p, q;
  if constexpr (kDerivative == 0) {
    near = on_segment(kAiry0<T>, (x + 8) * 4, x), decay = on_segment(kAiryDecay0<T>, y * 32, y);
    p = on_segment(kAiryP0<T>, y / 0.0332, y), q = on_segment(kAiryQ0<T>, y / 0.0332, y);
  } else {
    near = on_segment(kAiry1<T>, (x + 8) * 4, x), decay = on_segment(kAiryDecay1<T>, y * 32, y);
    p = on_segment(kAiryP1<T>, y / 0.0332, y), q = on_segment(kAiryQ1<T>, y / 0.0332, y);
  }
  const double waves = kDerivative ? p * (s - c) - q * y * (s + c) : p * (s + c) - q * y * (c - s);
  const double beyond = positive ? decay * (e - e * z.lo) * scale : waves * scale;
  return (x >= -8) & (x < 4) ? near : x == -kInf ? (kDerivative ? kNan : 0) : beyond;
}

struct AiryReducible : vm::Magnitude {
  template <class T>
  static vm::UInt<T> limit() {
    return bits_as<vm::UInt<T>>(T(1e4));
  }
};

// ---- Gamma function ----

// DLMF 5.5.1 and 5.5.3 bring every x to [0.5, inf); 5.11.1 beyond 8.
template <class T>
RL_INLINE double gammaln(double x) {
  const bool reflected = x < 0.5;
  const double w = reflected ? 1 - (x > 0 ? -x : x) : x;
  const double less1 = reflected ? vm::abs(x) : x - 1, less2 = less1 - 1;
  const Place p = place<1, 2>(w);
  const double position = p.far ? 35 + p.position : w < 2 ? (w - 0.5) * 8 : 12 + (w - 2) * 4;
  const double v = on_segment(kGammaln<T>, position, p.u);
  const double stirling = (w - 0.5) * (vm::log(w) - 1) + (0.41893853320467274178 + v * p.u);
  const double core = p.far ? stirling : less1 * less2 * v;
  const double outer = vm::log(x > 0 ? x : vm::abs(vm::sin(kPi * fraction(x))) / kPi);
  const double y = reflected ? (x > 0 ? core : -core) - outer : core;
  return vm::abs(x) == kInf ? kInf : y;
}

constexpr double kDigammaRoot = 1.46163214496836234, kDigammaRootRest = 9.549995429965697715183e-17;

template <class T>
RL_INLINE double digamma(double x) {
  const bool below = x < 1, negative = x < 0;
  const double w = negative ? 1 - x : below ? x + 1 : x;
  const Place p = place<1, 2>(w);
  const double position = p.far ? 31 + p.position : w < 2 ? (w - 1) * 8 : 8 + (w - 2) * 4;
  const double v = on_segment(kDigamma<T>, position, p.u);
  const double far = vm::log(w) - p.u * (0.5 - v * p.u);
  const double core = p.far ? far : ((w - kDigammaRoot) - kDigammaRootRest) * v;
  const double f = fraction(x), angle = kPi * f;
  const double cotangent = f == 0 ? kNan : kPi * vm::cos(angle) / vm::sin(angle);
  const double y = negative ? core - cotangent : below ? core - 1 / x : core;
  return x == 0 ? vm::copysign(kInf, -x) : x == -kInf ? kNan : y;
}

template <class T>
RL_INLINE double trigamma(double x) {
  const bool below = x < 1, negative = x < 0;
  const double w = negative ? 1 - x : below ? x + 1 : x;
  const Place p = place<1, 2>(w);
  const double position = p.far ? 31 + p.position : w < 2 ? (w - 1) * 8 : 8 + (w - 2) * 4;
  const double v = on_segment(kTrigamma<T>, position, p.u);
  const double core = p.far ? v * p.u : v;
  const double s = kPi / vm::sin(kPi * fraction(x));
  const double y = negative ? s * s - core : below ? core + 1 / (x * x) : core;
  return x == -kInf ? kNan : y;
}

// ---- Elementary ----

template <class T>
RL_INLINE T entr(T x) {
  const T y = -x * vm::log(x);
  return x > 0 ? y : x == 0 ? T(0) : x < 0 ? -vm::Real<T>::kInf : x;
}

template <class T>
RL_INLINE T xlog1py(T x, T y) {
  return vm::isnan(y) ? y : x == 0 ? T(0) : x * vm::log1p(y);
}

#define RL_IN_DOUBLE(...) [](auto x) { return static_cast<decltype(x)>(__VA_ARGS__(static_cast<double>(x))); }
#define RL_OF(fn, ...) RL_IN_DOUBLE(fn<decltype(x), ##__VA_ARGS__>)

void fill_normal(Registrar& ops) {
  ops.unary<Floats>("special::erfc", RL_OF(erfc));
  ops.unary<Floats>("special::erfcx", RL_OF(erfcx));
  ops.unary<Floats>("special::logerfc", RL_OF(log_erfc));
  ops.unary<Floats>("special::logerfcx", RL_OF(log_erfcx));
  ops.unary<Floats>("special::ndtr", RL_OF(ndtr));
  ops.unary<Floats>("special::log_ndtr", RL_OF(log_ndtr));
  ops.unary<Floats>("special::erfinv", RL_OF(erfinv));
  ops.unary<Floats>("special::erfcinv", RL_OF(erfcinv));
  ops.unary<Floats>("special::ndtri", RL_OF(ndtri));
}

void fill_bessel(Registrar& ops) {
  const auto order0 = RL_OF(i0);
  ops.unary<Floats>("special::i0", order0);
  ops.unary<Floats>("special::modified_bessel_i0", order0);
  const auto order1 = RL_OF(i1);
  ops.unary<Floats>("special::i1", order1);
  ops.unary<Floats>("special::modified_bessel_i1", order1);
  ops.unary<Floats>("special::i0e", RL_OF(i0e));
  ops.unary<Floats>("special::i1e", RL_OF(i1e));
  ops.unary<Floats>("special::modified_bessel_k0", RL_OF(k0, false));
  ops.unary<Floats>("special::modified_bessel_k1", RL_OF(k1, false));
  ops.unary<Floats>("special::scaled_modified_bessel_k0", RL_OF(k0, true));
  ops.unary<Floats>("special::scaled_modified_bessel_k1", RL_OF(k1, true));
  ops.guarded<1, vm::Reducible, Floats>("special::bessel_j0", RL_OF(j0), RL_OF(j0, true));
  ops.guarded<1, vm::Reducible, Floats>("special::bessel_j1", RL_OF(j1), RL_OF(j1, true));
  ops.guarded<1, vm::Reducible, Floats>("special::bessel_y0", RL_OF(y0), RL_OF(y0, true));
  ops.guarded<1, vm::Reducible, Floats>("special::bessel_y1", RL_OF(y1), RL_OF(y1, true));
  ops.guarded<1, vm::Reducible, Floats>("special::spherical_bessel_j0", RL_OF(spherical_j0), RL_OF(spherical_j0, true));
  ops.guarded<1, AiryReducible, Floats>("special::airy_ai", RL_OF(airy, 0), RL_OF(airy, 0, true));
  ops.guarded<1, AiryReducible, Floats>("special::_airy_ai_prime", RL_OF(airy, 1), RL_OF(airy, 1, true));
}

void fill_gamma(Registrar& ops) {
  ops.unary<Floats>("special::gammaln", RL_OF(gammaln));
  const auto psi = RL_OF(digamma);
  ops.unary<Floats>("special::digamma", psi);
  ops.unary<Floats>("special::psi", psi);
  ops.unary<Floats>("special::_trigamma", RL_OF(trigamma));
}

void fill_elementary(Registrar& ops) {
  ops.unary<Floats>("special::entr", [](auto x) { return entr(x); });
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
