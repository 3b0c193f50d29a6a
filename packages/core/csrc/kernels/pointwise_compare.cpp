// Comparisons, predicates, extrema, selections and the other ops that move or sort values without rounding them.
#include "complex.h"
#include "loop_table.h"
#include "rushlight/loop.h"
#include "rushlight/vecmath.h"

namespace rl {
namespace RL_ISA {
namespace {

template <class T>
inline constexpr bool kIsFloat = std::is_floating_point_v<T>;

template <class T>
RL_INLINE bool is_true(T x) {
  return x != T(0);
}

template <class T>
RL_INLINE bool is_nan(T x) {
  if constexpr (kIsFloat<T>) {
    return x != x;
  } else {
    return false;
  }
}

// NaN if either is.
template <class T>
RL_INLINE T maximum(T a, T b) {
  return (a > b) | is_nan(a) ? a : b;
}
template <class T>
RL_INLINE T minimum(T a, T b) {
  return (a < b) | is_nan(a) ? a : b;
}

// A NaN among x and the bounds comes through; -0 within the bounds keeps its sign.
template <class T>
RL_INLINE T clamp(T x, T low, T high) {
  const T raised = !(x >= low) ? low : x;
  const T y = !(raised <= high) & !is_nan(raised) ? high : raised;
  return is_nan(x) ? x : y;
}

template <class T>
RL_INLINE T sign(T x) {
  return static_cast<T>(static_cast<T>(x > T(0)) - static_cast<T>(x < T(0)));
}

// `-> bool` where & and | would give an int, which is stored with the type of the inputs.
void fill_comparisons(Registrar& ops) {
  ops.hot<Ints, Floats, Bools>("eq", [](auto a, auto b) { return a == b; });
  ops.hot<Ints, Floats, Bools>("ne", [](auto a, auto b) { return a != b; });
  ops.binary<Complexes>("eq", [](auto a, auto b) { return a == b; });
  ops.binary<Complexes>("ne", [](auto a, auto b) { return a != b; });
  ops.hot<Ints, Floats, Bools>("lt", "gt", [](auto a, auto b) { return a < b; });
  ops.hot<Ints, Floats, Bools>("le", "ge", [](auto a, auto b) { return a <= b; });

  ops.binary<Ints, Floats, Complexes, Bools>("logical_and",
                                             [](auto a, auto b) -> bool { return is_true(a) & is_true(b); });
  ops.binary<Ints, Floats, Complexes, Bools>("logical_or",
                                             [](auto a, auto b) -> bool { return is_true(a) | is_true(b); });
  ops.binary<Ints, Floats, Complexes, Bools>("logical_xor", [](auto a, auto b) { return is_true(a) != is_true(b); });
  ops.unary<Ints, Floats, Complexes, Bools>("logical_not", [](auto x) { return !is_true(x); });
}

void fill_predicates(Registrar& ops) {
  ops.unary<Floats>("isnan", [](auto x) { return x != x; });
  ops.unary<Floats>("isinf", [](auto x) { return vm::abs(x) == vm::Real<decltype(x)>::kInf; });
  ops.unary<Floats>("isfinite", [](auto x) { return vm::abs(x) < vm::Real<decltype(x)>::kInf; });
  ops.unary<Floats>("isposinf", [](auto x) { return x == vm::Real<decltype(x)>::kInf; });
  ops.unary<Floats>("isneginf", [](auto x) { return x == -vm::Real<decltype(x)>::kInf; });
  ops.unary<Floats>("signbit", [](auto x) { return vm::signbit(x); });
  ops.unary<Complexes>("isnan", [](auto x) -> bool { return is_nan(x.re) | is_nan(x.im); });
  ops.unary<Complexes>("isinf", [](auto x) -> bool {
    constexpr auto kInf = vm::Real<decltype(x.re)>::kInf;
    return (vm::abs(x.re) == kInf) | (vm::abs(x.im) == kInf);
  });
  ops.unary<Complexes>("isfinite", [](auto x) -> bool {
    constexpr auto kInf = vm::Real<decltype(x.re)>::kInf;
    return (vm::abs(x.re) < kInf) & (vm::abs(x.im) < kInf);
  });
  ops.unary<Ints, Bools>("isnan", [](auto) { return false; });
  ops.unary<Ints, Bools>("isinf", [](auto) { return false; });
  ops.unary<Ints, Bools>("isfinite", [](auto) { return true; });
  ops.unary<Ints, Bools>("isposinf", [](auto) { return false; });
  ops.unary<Ints, Bools>("isneginf", [](auto) { return false; });
  ops.unary<Ints, Bools>("signbit", [](auto x) { return x < decltype(x)(0); });
}

void fill_extrema(Registrar& ops) {
  ops.hot<Ints, Floats>("maximum", [](auto a, auto b) { return maximum(a, b); });
  ops.hot<Ints, Floats>("minimum", [](auto a, auto b) { return minimum(a, b); });
  ops.binary<Floats>("fmax", [](auto a, auto b) { return (a >= b) | is_nan(b) ? a : b; });
  ops.binary<Floats>("fmin", [](auto a, auto b) { return (a <= b) | is_nan(b) ? a : b; });
  ops.binary<Ints>("fmax", [](auto a, auto b) { return maximum(a, b); });
  ops.binary<Ints>("fmin", [](auto a, auto b) { return minimum(a, b); });
  for (const char* op : {"maximum", "fmax"}) ops.binary<Bools>(op, [](bool a, bool b) { return a | b; });
  for (const char* op : {"minimum", "fmin"}) ops.binary<Bools>(op, [](bool a, bool b) { return a & b; });

  for (const char* op : {"clamp", "hardtanh"}) {
    ops.add<1, 2, Ints, Floats>(op, [](auto x, const auto* p) { return clamp(x, p[0], p[1]); });
  }
  ops.ternary<Ints, Floats>("clamp_tensor", [](auto x, auto low, auto high) { return clamp(x, low, high); });
}

void fill_signs(LoopTable& table, Registrar& ops) {
  ops.unary<Ints>("abs", [](auto x) {
    using T = decltype(x);
    return static_cast<T>(x < T(0) ? std::make_unsigned_t<T>(0) - static_cast<std::make_unsigned_t<T>>(x) : x);
  });
  ops.unary<Floats>("abs", [](auto x) { return vm::abs(x); });
  // The sign of a half is a bit, which needs no float.
  const auto positive = [](uint16_t x) { return static_cast<uint16_t>(x & 0x7fff); };
  for (DType half : {DType::Float16, DType::BFloat16})
    table.set("abs", half, KernelOf<decltype(positive), NoGuard, 0, uint16_t, uint16_t>::run);
  for (const char* op : {"sign", "sgn"}) {
    ops.unary<Ints, Floats>(op, [](auto x) { return sign(x); });
    ops.unary<Bools>(op, [](bool x) { return x; });
  }
  ops.binary<Floats>("copysign", [](auto a, auto b) { return vm::copysign(a, b); });
  ops.binary<Ints, Floats>("heaviside", [](auto x, auto at_zero) {
    using T = decltype(x);
    return x == T(0) ? at_zero : static_cast<T>(x > T(0));
  });
  ops.binary<Bools>("heaviside", [](bool x, bool at_zero) { return x | at_zero; });
  ops.unary<Floats>("angle", [](auto x) {
    using T = decltype(x);
    return is_nan(x) ? x : x < 0 ? T(M_PI) : T(0);
  });
  ops.unary<Types<Complex<double>>>("conj", [](auto x) { return decltype(x)(x.re, -x.im); });
  const auto conjugate = [](uint64_t x) { return x ^ uint64_t{1} << 63; };  // the sign of the upper half
  table.set("conj", DType::Complex64, KernelOf<decltype(conjugate), NoGuard, 0, uint64_t, uint64_t>::run);
  ops.unary<Complexes>("real", [](auto x) { return x.re; });
  ops.unary<Complexes>("imag", [](auto x) { return x.im; });
}

// Selections copy bits, so types of one size share a loop.
template <class T, class Bits, class F, class G>
void select(Registrar& ops, F where, G fill) {
  ops.kernel<Kernel<F, NoGuard, Bits, 0, Bits, bool, Bits, Bits>, T>("where");
  ops.kernel<Kernel<G, NoGuard, Bits, 1, Bits, Bits, bool>, T>("masked_fill");
}

struct Bits128 {
  uint64_t low, high;
};

void fill_selections(Registrar& ops) {
  const auto where = [](bool condition, auto a, auto b) { return condition ? a : b; };
  const auto fill = [](auto x, bool mask, const auto* p) { return mask ? p[0] : x; };
  select<uint8_t, uint8_t>(ops, where, fill);
  select<int8_t, uint8_t>(ops, where, fill);
  select<bool, uint8_t>(ops, where, fill);
  select<int16_t, uint16_t>(ops, where, fill);
  select<int32_t, uint32_t>(ops, where, fill);
  select<int64_t, uint64_t>(ops, where, fill);
  select<float, float>(ops, where, fill);
  select<double, uint64_t>(ops, where, fill);
  select<Complex<float>, uint64_t>(ops, where, fill);
  select<Complex<double>, Bits128>(ops, where, fill);
}

void fill_rounding(Registrar& ops) {
  ops.unary<Floats>("floor", [](auto x) { return vm::floor(x); });
  ops.unary<Floats>("ceil", [](auto x) { return vm::ceil(x); });
  ops.unary<Floats>("round", [](auto x) { return vm::rint(x); });
  ops.unary<Floats>("trunc", [](auto x) { return vm::trunc(x); });
  ops.unary<Floats>("frac", [](auto x) { return x - vm::trunc(x); });
  for (const char* op : {"floor", "ceil", "round", "trunc"}) ops.unary<Ints>(op, [](auto x) { return x; });
  ops.add<1, 3, Floats>("nan_to_num", [](auto x, const auto* p) {
    constexpr auto kInf = vm::Real<decltype(x)>::kInf;
    return is_nan(x) ? p[0] : x == kInf ? p[1] : x == -kInf ? p[2] : x;
  });
  for (const char* op : {"nan_to_num", "positive"}) ops.unary<Ints, Bools>(op, [](auto x) { return x; });
  ops.unary<Floats, Complexes>("positive", [](auto x) { return x; });
}

}  // namespace

void fill_compare(LoopTable& table) {
  Registrar ops(table);
  fill_comparisons(ops);
  fill_predicates(ops);
  fill_extrema(ops);
  fill_signs(table, ops);
  fill_selections(ops);
  fill_rounding(ops);
}

}  // namespace RL_ISA
}  // namespace rl
