// Elementary functions of complex numbers. They call the C library, so one build serves every instruction set.
#include "complex.h"
#include "rushlight/vecmath.h"

namespace rl {
namespace RL_ISA {
namespace {

__extension__ using CFloat = _Complex float;
__extension__ using CDouble = _Complex double;

// fn of the C library for both types.
#define RL_LIBRARY(fn)                                                              \
  RL_INLINE Complex<float> fn(Complex<float> z) {                                   \
    return bits_as<Complex<float>>(CFloat(__builtin_c##fn##f(bits_as<CFloat>(z)))); \
  }                                                                                 \
  RL_INLINE Complex<double> fn(Complex<double> z) {                                 \
    return bits_as<Complex<double>>(CDouble(__builtin_c##fn(bits_as<CDouble>(z)))); \
  }
RL_LIBRARY(sqrt)
RL_LIBRARY(exp)
RL_LIBRARY(log)
RL_LIBRARY(sin)
RL_LIBRARY(cos)
RL_LIBRARY(tan)
RL_LIBRARY(asin)
RL_LIBRARY(acos)
RL_LIBRARY(atan)
RL_LIBRARY(sinh)
RL_LIBRARY(cosh)
RL_LIBRARY(tanh)
RL_LIBRARY(asinh)
RL_LIBRARY(acosh)
RL_LIBRARY(atanh)
#undef RL_LIBRARY

RL_INLINE float abs(Complex<float> z) { return ::hypotf(z.re, z.im); }
RL_INLINE double abs(Complex<double> z) { return ::hypot(z.re, z.im); }

template <class T>
RL_INLINE Complex<T> scaled(Complex<T> z, double factor) {
  return {z.re * T(factor), z.im * T(factor)};
}

template <class T>
RL_INLINE Complex<T> expm1(Complex<T> z) {
  if (z.im == 0) return {static_cast<T>(::expm1(static_cast<double>(z.re))), z.im};
  if (std::isinf(z.re)) return exp(z) - Complex<T>(1);
  const double x = z.re, y = z.im, s = ::sin(0.5 * y);
  const double e = ::expm1(x);
  return {static_cast<T>(e * ::cos(y) - 2 * s * s), static_cast<T>((e + 1) * ::sin(y))};
}

template <class T>
RL_INLINE Complex<T> log1p(Complex<T> z) {
  if (!(abs(z) < T(0.5))) return log(Complex<T>{1 + z.re, z.im});
  const double x = z.re, y = z.im;
  return {static_cast<T>(0.5 * ::log1p(x * (2 + x) + y * y)), static_cast<T>(::atan2(y, 1 + x))};
}

template <class T>
RL_INLINE Complex<T> sigmoid(Complex<T> z) {
  return Complex<T>(1) / (Complex<T>(1) + exp(-z));
}

template <class T>
RL_INLINE Complex<T> pow(Complex<T> z, Complex<T> w) {
  if (w == Complex<T>(0)) return Complex<T>(1);
  if (w == Complex<T>(2)) return z * z;
  if (z == Complex<T>(0) && w.re > 0) return Complex<T>(0);
  return exp(w * log(z));
}

template <class T>
RL_INLINE Complex<T> sinc(Complex<T> z) {
  const Complex<T> angle = scaled(z, M_PI);
  return z == Complex<T>(0) ? Complex<T>(1) : sin(angle) / angle;
}

template <class T>
RL_INLINE Complex<T> logaddexp(Complex<T> a, Complex<T> b) {
  const bool first = a.re > b.re;
  const Complex<T> high = first ? a : b, low = first ? b : a;
  return a == b ? a + Complex<T>(T(M_LN2)) : high + log1p(exp(low - high));
}

template <class T>
RL_INLINE Complex<T> lerp(Complex<T> a, Complex<T> b, Complex<T> weight) {
  return abs(weight) < T(0.5) ? a + weight * (b - a) : b - (b - a) * (Complex<T>(1) - weight);
}

template <class T>
RL_INLINE Complex<T> conj(Complex<T> z) {
  return {z.re, -z.im};
}

template <class T>
RL_INLINE T finite_part(T x, T nan, T high, T low) {
  constexpr T kInf = vm::Real<T>::kInf;
  return x != x ? nan : x == kInf ? high : x == -kInf ? low : x;
}

#define RL_FORMULA(fn) [](auto z) { return fn(z); }

void fill_elementary(Registrar& ops) {
  ops.unary<Complexes>("sqrt", RL_FORMULA(sqrt));
  ops.unary<Complexes>("exp", RL_FORMULA(exp));
  ops.unary<Complexes>("log", RL_FORMULA(log));
  ops.unary<Complexes>("sin", RL_FORMULA(sin));
  ops.unary<Complexes>("cos", RL_FORMULA(cos));
  ops.unary<Complexes>("tan", RL_FORMULA(tan));
  ops.unary<Complexes>("asin", RL_FORMULA(asin));
  ops.unary<Complexes>("acos", RL_FORMULA(acos));
  ops.unary<Complexes>("atan", RL_FORMULA(atan));
  ops.unary<Complexes>("sinh", RL_FORMULA(sinh));
  ops.unary<Complexes>("cosh", RL_FORMULA(cosh));
  ops.unary<Complexes>("tanh", RL_FORMULA(tanh));
  ops.unary<Complexes>("asinh", RL_FORMULA(asinh));
  ops.unary<Complexes>("acosh", RL_FORMULA(acosh));
  ops.unary<Complexes>("atanh", RL_FORMULA(atanh));
  ops.unary<Complexes>("expm1", RL_FORMULA(expm1));
  ops.unary<Complexes>("log1p", RL_FORMULA(log1p));
  ops.unary<Complexes>("exp2", [](auto z) { return exp(scaled(z, M_LN2)); });
  ops.unary<Complexes>("log2", [](auto z) { return scaled(log(z), M_LOG2E); });
  ops.unary<Complexes>("log10", [](auto z) { return scaled(log(z), M_LOG10E); });
  ops.unary<Complexes>("sigmoid", RL_FORMULA(sigmoid));
  ops.unary<Complexes>("silu", [](auto z) { return z * sigmoid(z); });
  ops.unary<Complexes>("sinc", RL_FORMULA(sinc));
  ops.unary<Complexes>("reciprocal", [](auto z) { return decltype(z)(1) / z; });
  ops.unary<Complexes>("rsqrt", [](auto z) { return decltype(z)(1) / sqrt(z); });
}

}  // namespace

}  // namespace RL_ISA

void fill_complex(LoopTable& table) {
  using namespace RL_ISA;
  Registrar ops(table);
  fill_elementary(ops);
  ops.binary<Complexes>("pow", [](auto z, auto w) { return RL_ISA::pow(z, w); });
  ops.binary<Complexes>("pow_by_self", [](auto z, auto w) {
    using C = decltype(z);
    const C power = RL_ISA::pow(z, w - C(1));
    return power == C(0) || w == C(0) ? C(0) : power * w;
  });
  ops.binary<Complexes>("pow_by_exponent", [](auto z, auto w) {
    using C = decltype(z);
    const C power = RL_ISA::pow(z, w);
    return power == C(0) || (z == C(0) && w == C(0)) ? C(0) : power * log(z);
  });
  ops.add<1, 1, Complexes>("pow_scalar", [](auto z, const auto* p) { return RL_ISA::pow(z, p[0]); });
  ops.add<1, 1, Complexes>("rpow_scalar", [](auto z, const auto* p) { return RL_ISA::pow(p[0], z); });
  ops.binary<Complexes>("ldexp", [](auto z, auto exponent) { return z * exp(scaled(exponent, M_LN2)); });
  ops.binary<Complexes>("logaddexp", [](auto a, auto b) { return logaddexp(a, b); });
  ops.ternary<Complexes>("lerp", [](auto a, auto b, auto w) { return lerp(a, b, w); });
  ops.add<2, 1, Complexes>("lerp_scalar", [](auto a, auto b, const auto* p) { return lerp(a, b, p[0]); });
  ops.add<1, 3, Complexes>("nan_to_num", [](auto z, const auto* p) {
    return decltype(z)(finite_part(z.re, p[0].re, p[1].re, p[2].re), finite_part(z.im, p[0].re, p[1].re, p[2].re));
  });
  ops.unary<Complexes>("one_minus_square", [](auto z) { return (decltype(z)(1) - z) * (decltype(z)(1) + z); });
  // 1 - z^2 and 1 + z^2 in factors, which neither overflow nor lose the sides of the cuts.
  ops.binary<Complexes>("asin_backward", [](auto grad, auto z) {
    using C = decltype(z);
    return grad / conj(sqrt(C(1 - z.re, -z.im)) * sqrt(C(1 + z.re, z.im)));
  });
  ops.binary<Complexes>("atan_backward", [](auto grad, auto z) {
    using C = decltype(z);
    return grad / C(1 - z.im, -z.re) / C(1 + z.im, z.re);
  });
  ops.binary<Complexes>("asinh_backward", [](auto grad, auto z) {
    using C = decltype(z);
    return grad / conj(sqrt(C(1 - z.im, z.re)) * sqrt(C(1 + z.im, -z.re)));
  });
  ops.binary<Complexes>("tanh_backward", [](auto grad, auto y) { return grad * conj(decltype(y)(1) - y * y); });
  ops.binary<Complexes>("sigmoid_backward", [](auto grad, auto y) { return grad * conj((decltype(y)(1) - y) * y); });
}

}  // namespace rl
