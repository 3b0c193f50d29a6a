// Elementary functions of float and double.
#include "hypot.h"
#include "loop_table.h"
#include "rushlight/loop.h"
#include "rushlight/vecmath.h"

#if defined(__AVX512F__)
#include "tabled.h"
#define RL_BY_TABLE(fn) tabled::add(ops, #fn, [](auto x) { return tabled::fn(x); })
#endif

namespace rl {
namespace RL_ISA {
namespace {

#define RL_FORMULA(fn) [](auto x) { return vm::fn(x); }

// The C library, where the argument is too large for our own reduction.
RL_INLINE float slow_sin(float x) { return static_cast<float>(::sin(static_cast<double>(x))); }
RL_INLINE double slow_sin(double x) { return ::sin(x); }
RL_INLINE float slow_cos(float x) { return static_cast<float>(::cos(static_cast<double>(x))); }
RL_INLINE double slow_cos(double x) { return ::cos(x); }
RL_INLINE float slow_tan(float x) { return static_cast<float>(::tan(static_cast<double>(x))); }
RL_INLINE double slow_tan(double x) { return ::tan(x); }

// From the distance to the nearest integer, which is exact: no digit is lost however large x is.
template <class T>
RL_INLINE T sinc(T x) {
  const T whole = vm::rint(x), half = T(0.5) * whole, angle = T(M_PI) * (x - whole);
  const T sine = vm::sin(half == vm::rint(half) ? angle : -angle);
  return x == 0 ? T(1) : sine / (T(M_PI) * x);
}

template <class T>
RL_INLINE T reciprocal_sqrt(T x) {
  return 1 / vm::sqrt(x);
}

template <class T>
RL_INLINE T logaddexp(T a, T b) {
  const T high = a > b ? a : b, low = a > b ? b : a;
  const T sum = high + vm::log1p(vm::exp(low - high));
  return vm::isnan(a) | vm::isnan(b) ? a + b : (a == b) & (vm::abs(a) == vm::Real<T>::kInf) ? a : sum;
}
template <class T>
RL_INLINE T logaddexp2(T a, T b) {
  const T high = a > b ? a : b, low = a > b ? b : a;
  const T sum = high + vm::log1p(vm::exp2(low - high)) * T(1.44269504088896340736);
  return vm::isnan(a) | vm::isnan(b) ? a + b : (a == b) & (vm::abs(a) == vm::Real<T>::kInf) ? a : sum;
}

// x = mantissa 2^exponent with a mantissa in ±[1/2, 1); zero, infinities and NaN are their own mantissa.
template <class T>
struct Parts {
  T mantissa, exponent;
};
template <class T>
RL_INLINE Parts<T> parts_of(T x) {
  using R = vm::Real<T>;
  using U = vm::UInt<T>;
  constexpr U kExponents = (U(2 * R::kBias + 1)) << R::kMantissa, kHalf = U(R::kBias - 1) << R::kMantissa;
  const T a = vm::abs(x);
  const bool subnormal = a < R::kMin, number = (a != 0) & (a < R::kInf);
  const U b = vm::bits(subnormal ? x * (R::kInt * 4) : x);
  const T biased = vm::from_bits<T>(((b & kExponents) >> R::kMantissa) | vm::bits(R::kInt)) - R::kInt;
  const T exponent = biased - (subnormal ? T(R::kBias - 1 + R::kMantissa + 2) : T(R::kBias - 1));
  return {number ? vm::from_bits<T>((b & ~kExponents) | kHalf) : x, number ? exponent : T(0)};
}

template <class T>
RL_INLINE T xlogy(T x, T y) {
  return vm::isnan(y) ? y : x == 0 ? T(0) : x * vm::log(y);
}

template <class T>
RL_INLINE T lerp(T a, T b, T weight) {
  // From the nearer end, so that weights 0 and 1 are exact.
  const T d = b - a;
  return vm::abs(weight) < T(0.5) ? vm::madd(weight, d, a) : b - d * (1 - weight);
}

template <class T>
RL_INLINE T round_decimals(T x, const void* params) {
  constexpr int64_t kEnough = 400;  // 10^400 is infinite in every dtype
  const int64_t decimals = *static_cast<const int64_t*>(params);
  T ten = 1;
  for (int64_t k = 0; k < kEnough && (decimals < 0 ? -k > decimals : k < decimals); ++k) ten *= 10;
  return decimals < 0 ? vm::rint(x / ten) * ten : vm::rint(x * ten) / ten;
}

// ---- Powers with one scalar side ----

struct Power {
  template <class T>
  T operator()(T x, T y) const {
    return vm::pow(x, y);
  }
};

// The exponents that have a cheaper formula, chosen once per call.
enum class Exponent { One, Two, Three, Half, MinusHalf, MinusOne, MinusTwo, Other };

RL_INLINE Exponent classify(double e) {
  return e == 1      ? Exponent::One
         : e == 2    ? Exponent::Two
         : e == 3    ? Exponent::Three
         : e == 0.5  ? Exponent::Half
         : e == -0.5 ? Exponent::MinusHalf
         : e == -1   ? Exponent::MinusOne
         : e == -2   ? Exponent::MinusTwo
                     : Exponent::Other;
}

template <Exponent kExponent>
struct FixedPower {
  template <class T>
  T operator()(T x) const {
    switch (kExponent) {
      case Exponent::Two: return x * x;
      case Exponent::Three: return x * x * x;
      case Exponent::Half: return vm::sqrt(x);
      case Exponent::MinusHalf: return reciprocal_sqrt(x);
      case Exponent::MinusOne: return 1 / x;
      case Exponent::MinusTwo: return 1 / (x * x);
      default: return x;
    }
  }
};

template <class T, Exponent kExponent>
constexpr Dense fixed_power() {
  return KernelOf<FixedPower<kExponent>, NoGuard, 0, T, T>::blocks;
}

template <class T, Cell kCell>
void pow_scalar(char* const* data, const int64_t* strides, int64_t n, const void* params) {
  using K = KernelOf<Power, NoGuard, 0, T, T, T>;
  constexpr Dense kFixed[] = {fixed_power<T, Exponent::One>(),       fixed_power<T, Exponent::Two>(),
                              fixed_power<T, Exponent::Three>(),     fixed_power<T, Exponent::Half>(),
                              fixed_power<T, Exponent::MinusHalf>(), fixed_power<T, Exponent::MinusOne>(),
                              fixed_power<T, Exponent::MinusTwo>()};
  const Exponent exponent = classify(*static_cast<const T*>(params));
  if (exponent != Exponent::Other) {
    const Plan plan{kFixed[static_cast<int>(exponent)], K::kBlock, 1, {kCell, kCell}};
    return run_plan(plan, data, strides, n, nullptr);
  }
  static constexpr Plan kPlan{K::blocks, K::kBlock, 2, {kCell, kCell, cell_of<T>()}};
  char* const operands[] = {data[0], data[1], static_cast<char*>(const_cast<void*>(params))};
  const int64_t steps[] = {strides[0], strides[1], 0};
  run_plan(kPlan, operands, steps, n, nullptr);
}

template <class T, Cell kCell>
void rpow_scalar(char* const* data, const int64_t* strides, int64_t n, const void* params) {
  using K = KernelOf<Power, NoGuard, 0, T, T, T>;
  static constexpr Plan kPlan{K::blocks, K::kBlock, 2, {kCell, cell_of<T>(), kCell}};
  char* const operands[] = {data[0], static_cast<char*>(const_cast<void*>(params)), data[1]};
  const int64_t steps[] = {strides[0], 0, strides[1]};
  run_plan(kPlan, operands, steps, n, nullptr);
}

void fill_powers(LoopTable& table, Registrar& ops) {
  ops.binary<Floats>("pow", Power());
  ops.binary<Floats>("pow_by_self", [](auto x, auto y) {
    const auto power = vm::pow(x, y - 1);
    return (power == 0) | (y == 0) ? decltype(x)(0) : power * y;
  });
  ops.binary<Floats>("pow_by_exponent", [](auto x, auto y) {
    const auto power = vm::pow(x, y);
    return (power == 0) | ((x == 0) & (y == 0)) ? decltype(x)(0) : power * vm::log(x);
  });
  table.set("pow_scalar", DType::Float16, pow_scalar<float, Cell::Half>);
  table.set("pow_scalar", DType::BFloat16, pow_scalar<float, Cell::BHalf>);
  table.set("pow_scalar", DType::Float32, pow_scalar<float, Cell::Bytes4>);
  table.set("pow_scalar", DType::Float64, pow_scalar<double, Cell::Bytes8>);
  table.set("rpow_scalar", DType::Float16, rpow_scalar<float, Cell::Half>);
  table.set("rpow_scalar", DType::BFloat16, rpow_scalar<float, Cell::BHalf>);
  table.set("rpow_scalar", DType::Float32, rpow_scalar<float, Cell::Bytes4>);
  table.set("rpow_scalar", DType::Float64, rpow_scalar<double, Cell::Bytes8>);
}

// ---- Everything else ----

void fill_roots(Registrar& ops) {
#if defined(__AVX512F__)
  RL_BY_TABLE(sqrt);
  RL_BY_TABLE(rsqrt);
#else
  ops.unary<Floats>("sqrt", RL_FORMULA(sqrt));
  ops.unary<Floats>("rsqrt", [](auto x) { return reciprocal_sqrt(x); });
#endif
  ops.unary<Floats>("reciprocal", [](auto x) { return 1 / x; });
  ops.binary<Floats>("hypot", [](auto a, auto b) { return hypot(a, b); });
  ops.binary<Floats>("direction", [](auto a, auto b) { return direction(a, b).cosine; });
  ops.binary<Floats>("inversion", [](auto a, auto b) { return direction(a, b).over_length; });
  ops.unary<Complexes>("abs", [](auto z) { return hypot(z.re, z.im); });
  ops.unary<Complexes>("angle", [](auto z) { return vm::atan2(z.im, z.re); });
  ops.unary<Complexes>("sgn", [](auto z) {
    const auto size = hypot(z.re, z.im), by = size == 0 ? decltype(size)(1) : size;
    return decltype(z)(z.re / by, z.im / by);
  });
  ops.unary<Floats>("_frexp_mantissa", [](auto x) { return parts_of(x).mantissa; });
  ops.unary<Floats>("_frexp_exponent", [](auto x) { return parts_of(x).exponent; });
  ops.unary<Floats>("deg2rad", [](auto x) { return x * decltype(x)(M_PI / 180); });
  ops.unary<Floats>("rad2deg", [](auto x) { return x * decltype(x)(180 / M_PI); });
  ops.add<1, kRaw, Floats>("round_decimals", [](auto x, const void* p) { return round_decimals(x, p); });
  ops.ternary<Floats>("lerp", [](auto a, auto b, auto w) { return lerp(a, b, w); });
  ops.add<2, 1, Floats>("lerp_scalar", [](auto a, auto b, const auto* p) { return lerp(a, b, p[0]); });
}

void fill_tabled(Registrar& ops) {
#if defined(__AVX512F__)
  RL_BY_TABLE(exp);
  RL_BY_TABLE(exp2);
  RL_BY_TABLE(log);
  RL_BY_TABLE(erf);
  RL_BY_TABLE(sigmoid);
  ops.unary<Floats>("tanh", RL_FORMULA(tanh));
  tabled::add_floats(ops, "tanh", [](auto x) { return tabled::tanh(x); });
#else
  ops.guarded<1, vm::Exponentiable, Floats>("exp", [](auto x) { return vm::exp<0, true>(x); }, RL_FORMULA(exp));
  ops.unary<Floats>("exp2", RL_FORMULA(exp2));
  ops.guarded<1, vm::Normality, Floats>("log", [](auto x) { return vm::log<true>(x); }, RL_FORMULA(log));
  ops.unary<Floats>("erf", RL_FORMULA(erf));
  ops.unary<Floats>("tanh", RL_FORMULA(tanh));
  ops.guarded<1, vm::Exponentiable, Floats>(
      "sigmoid", [](auto x) { return vm::sigmoid<true>(x); }, RL_FORMULA(sigmoid));
#endif
}

void fill_exponentials(Registrar& ops) {
  ops.binary<Floats>("ldexp", [](auto x, auto exponent) { return x * vm::exp2(exponent); });
  ops.unary<Floats>("expm1", RL_FORMULA(expm1));
  ops.unary<Floats>("sinh", RL_FORMULA(sinh));
  ops.unary<Floats>("cosh", RL_FORMULA(cosh));
}

void fill_logarithms(Registrar& ops) {
  ops.guarded<1, vm::Normality, Floats>("log2", [](auto x) { return vm::log2<true>(x); }, RL_FORMULA(log2));
  ops.guarded<1, vm::Normality, Floats>("log10", [](auto x) { return vm::log10<true>(x); }, RL_FORMULA(log10));
  ops.unary<Floats>("log1p", RL_FORMULA(log1p));
  ops.unary<Floats>("asinh", RL_FORMULA(asinh));
  ops.unary<Floats>("acosh", RL_FORMULA(acosh));
  ops.unary<Floats>("atanh", RL_FORMULA(atanh));
  ops.binary<Floats>("logaddexp", [](auto a, auto b) { return logaddexp(a, b); });
  ops.binary<Floats>("logaddexp2", [](auto a, auto b) { return logaddexp2(a, b); });
  ops.binary<Floats>("xlogy", [](auto x, auto y) { return xlogy(x, y); });
}

void fill_trigonometry(Registrar& ops) {
  ops.guarded<1, vm::Reducible, Floats>("sin", RL_FORMULA(sin), [](auto x) { return slow_sin(x); });
  ops.guarded<1, vm::Reducible, Floats>("cos", RL_FORMULA(cos), [](auto x) { return slow_cos(x); });
  ops.guarded<1, vm::Reducible, Floats>("tan", RL_FORMULA(tan), [](auto x) { return slow_tan(x); });
  ops.unary<Floats>("sinc", [](auto x) { return sinc(x); });
  ops.unary<Floats>("asin", RL_FORMULA(asin));
  ops.unary<Floats>("acos", RL_FORMULA(acos));
  ops.unary<Floats>("atan", RL_FORMULA(atan));
  ops.binary<Floats>("atan2", [](auto y, auto x) { return vm::atan2(y, x); });
}

}  // namespace

void fill_math(LoopTable& table) {
  Registrar ops(table);
  fill_roots(ops);
  fill_tabled(ops);
  fill_exponentials(ops);
  fill_logarithms(ops);
  fill_trigonometry(ops);
  fill_powers(table, ops);
}

}  // namespace RL_ISA
}  // namespace rl
