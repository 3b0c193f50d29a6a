// Arithmetic of all dtypes: sums, products, quotients, powers of integers, bits.
#include <limits>

#include "complex.h"
#include "loop_table.h"
#include "rushlight/loop.h"
#include "rushlight/vecmath.h"

namespace rl {
namespace RL_ISA {
namespace {

// Integers wrap around: computed unsigned, and wide enough that C++ does not promote to int.
template <class T>
using Wrap = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;

template <class T>
RL_INLINE T plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<Wrap<T>>(a) + static_cast<Wrap<T>>(b));
  } else {
    return a + b;
  }
}
template <class T>
RL_INLINE T minus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<Wrap<T>>(a) - static_cast<Wrap<T>>(b));
  } else {
    return a - b;
  }
}
template <class T>
RL_INLINE T times(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<Wrap<T>>(a) * static_cast<Wrap<T>>(b));
  } else {
    return a * b;
  }
}
// a + b * c
template <class T>
RL_INLINE T plus_product(T a, T b, T c) {
  if constexpr (std::is_floating_point_v<T>) {
    return vm::madd(b, c, a);
  } else {
    return plus(a, times(b, c));
  }
}

template <class T>
RL_INLINE T negate(T x) {
  return minus(T(0), x);
}

// ---- Integer division ----

// Tells the caller through `params` of a zero divisor.
template <class T>
RL_INLINE bool divides(T divisor, const void* params) {
  if (__builtin_expect(divisor != 0, 1)) return true;
  if (params != nullptr) __atomic_store_n(static_cast<int*>(const_cast<void*>(params)), 1, __ATOMIC_RELAXED);
  return false;
}

template <class T>
RL_INLINE T quotient(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return negate(a);  // the smallest integer / -1 traps
  }
  return static_cast<T>(a / b);
}
template <class T>
RL_INLINE T rest(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
  }
  return static_cast<T>(a % b);
}
template <class T>
RL_INLINE bool floors(T a, T b) {
  return std::is_signed_v<T> && (a < 0) != (b < 0) && rest(a, b) != 0;
}

template <class T>
RL_INLINE T int_pow(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
  }
  T result = 1;
  for (std::make_unsigned_t<T> e = exponent; e != 0; e >>= 1) {
    if (e & 1) result = times(result, base);
    base = times(base, base);
  }
  return result;
}

// ---- Common divisors: Stein's algorithm, whose steps are shifts and subtractions ----

RL_INLINE int trailing_zeros(uint32_t x) { return __builtin_ctz(x); }
RL_INLINE int trailing_zeros(uint64_t x) { return __builtin_ctzll(x); }

template <class T>
RL_INLINE Wrap<T> magnitude(T x) {
  if constexpr (std::is_signed_v<T>) {
    if (x < 0) return Wrap<T>(0) - static_cast<Wrap<T>>(x);
  }
  return static_cast<Wrap<T>>(x);
}

template <class U>
RL_INLINE U gcd_of(U a, U b) {
  if (a == 0 || b == 0) return a | b;
  const int twos = trailing_zeros(a | b);
  a >>= trailing_zeros(a);
  do {
    b >>= trailing_zeros(b);
    const U low = a < b ? a : b;
    b = a < b ? b - a : a - b;
    a = low;
  } while (b != 0);
  return a << twos;
}

template <class T>
RL_INLINE T lcm_of(T a, T b) {
  const Wrap<T> x = magnitude(a), y = magnitude(b), divisor = gcd_of(x, y);
  return divisor == 0 ? T(0) : static_cast<T>(x / divisor * y);
}

// ---- Neighbours: the bits of a floating number, without the sign, count from zero upwards ----

template <class Bits, Bits kInf>
RL_INLINE Bits next_after(Bits x, Bits y) {
  constexpr Bits kSign = std::numeric_limits<Bits>::min(), kRest = std::numeric_limits<Bits>::max();
  const Bits size_x = x & kRest, size_y = y & kRest;
  const Bits from = x < 0 ? -size_x : size_x, to = y < 0 ? -size_y : size_y;
  const Bits next = from + (from < to ? 1 : -1);
  const Bits moved = next == 0 ? x & kSign : next < 0 ? static_cast<Bits>(-next) | kSign : next;
  const Bits number = from == to ? y : moved;
  return size_x > kInf ? x : size_y > kInf ? y : number;
}

// ---- Floating division, as Python defines it (floatobject.c) ----

// Exact where |a / b| is small: the product below is not rounded, and the quotient is off by one at most.
template <class T>
RL_INLINE T fmod_near(T a, T b) {
  const T x = vm::abs(a), y = vm::abs(b);
  T r = vm::madd(-vm::trunc(x / y), y, x);
  r = r < 0 ? r + y : r;
  r = r >= y ? r - y : r;
  return vm::copysign(r, a);
}
RL_INLINE float fmod_far(float a, float b) { return ::fmodf(a, b); }
RL_INLINE double fmod_far(double a, double b) { return ::fmod(a, b); }

template <class T>
RL_INLINE T remainder_of(T mod, T b) {
  return (mod != 0) & ((b < 0) != (mod < 0)) ? mod + b : mod;
}
template <class T>
RL_INLINE T floor_divide_of(T mod, T a, T b) {
  const T div = (a - mod) / b - ((mod != 0) & ((b < 0) != (mod < 0)) ? T(1) : T(0));
  const T floored = vm::floor(div);
  const T nearest = div - floored > T(0.5) ? floored + 1 : floored;
  const T finite = div != 0 ? nearest : vm::copysign(T(0), a / b);
  return b == 0 ? a / b : finite;
}

// ---- add and sub: most calls have alpha 1 ----

template <class Plain, class Scaled, class P>
void run_alpha(char* const* data, const int64_t* strides, int64_t n, const void* params) {
  const bool scaled = params != nullptr && !(*static_cast<const P*>(params) == P(1));
  (scaled ? Scaled::run : Plain::run)(data, strides, n, params);
}
template <class Plain, class Scaled, Cell kCell>
void run_alpha_half(char* const* data, const int64_t* strides, int64_t n, const void* params) {
  const bool scaled = params != nullptr && *static_cast<const float*>(params) != 1;
  (scaled ? Scaled::template run_half<kCell> : Plain::template run_half<kCell>)(data, strides, n, params);
}

template <class... T, class F, class G>
void add_alpha(LoopTable& table, const char* op, Types<T...>, F, G) {
  (
      [&] {
        using Plain = HotKernelOf<F, T>;
        using Scaled = KernelOf<G, NoGuard, 1, T, T, T>;
        table.set(op, dtype_of<T>(), run_alpha<Plain, Scaled, T>);
        if constexpr (std::is_same_v<T, float>) {
          table.set(op, DType::Float16, run_alpha_half<Plain, Scaled, Cell::Half>);
          table.set(op, DType::BFloat16, run_alpha_half<Plain, Scaled, Cell::BHalf>);
        }
      }(),
      ...);
}

void fill_sums(LoopTable& table, Registrar& ops) {
  const auto plain_add = [](auto a, auto b) { return plus(a, b); };
  const auto plain_sub = [](auto a, auto b) { return minus(a, b); };
  const auto scaled_add = [](auto a, auto b, const auto* p) { return plus_product(a, b, p[0]); };
  const auto scaled_sub = [](auto a, auto b, const auto* p) { return plus_product(a, b, negate(p[0])); };
  using Numbers = Types<uint8_t, int8_t, int16_t, int32_t, int64_t, float, double, Complex<float>, Complex<double>>;
  add_alpha(table, "add", Numbers(), plain_add, scaled_add);
  add_alpha(table, "sub", Numbers(), plain_sub, scaled_sub);
  add_alpha(
      table, "add", Bools(), [](bool a, bool b) { return a | b; },
      [](bool a, bool b, const bool* p) { return a | (b & p[0]); });

  const auto product = [](auto a, auto b) { return times(a, b); };
  const auto quotient = [](auto a, auto b) { return a / b; };
  ops.hot<Ints, Floats, Complexes>("mul", product);
  ops.beside_float<0>("mul:number,half", product);
  ops.beside_float<1>("mul:half,number", product);
  ops.hot<Bools>("mul", [](bool a, bool b) { return a & b; });
  ops.hot<Floats, Complexes>("div", quotient);
  ops.beside_float<0>("div:number,half", quotient);
  ops.beside_float<1>("div:half,number", quotient);
  ops.unary<Ints, Floats, Complexes>("neg", [](auto x) {
    if constexpr (std::is_integral_v<decltype(x)>) {
      return negate(x);
    } else {
      return -x;
    }
  });
  // The sign of a half is a bit, which needs no float.
  const auto negated = [](uint16_t x) { return static_cast<uint16_t>(x ^ 0x8000); };
  for (DType half : {DType::Float16, DType::BFloat16})
    table.set("neg", half, KernelOf<decltype(negated), NoGuard, 0, uint16_t, uint16_t>::run);
  ops.unary<Ints, Floats, Complexes>("square", [](auto x) { return times(x, x); });
  ops.add<3, 1, Ints, Floats, Complexes>(
      "addcmul", [](auto a, auto b, auto c, const auto* p) { return plus_product(a, times(p[0], b), c); });
  ops.add<3, 1, Floats, Complexes>("addcdiv", [](auto a, auto b, auto c, const auto* p) { return a + p[0] * b / c; });
}

void fill_integer_division(Registrar& ops) {
  ops.add<2, kRaw, Ints>(
      "div_trunc", [](auto a, auto b, const void* zero) { return divides(b, zero) ? quotient(a, b) : decltype(a)(0); });
  ops.add<2, kRaw, Ints>("div_floor", [](auto a, auto b, const void* zero) {
    using T = decltype(a);
    return divides(b, zero) ? minus(quotient(a, b), T(floors(a, b))) : T(0);
  });
  ops.add<2, kRaw, Ints>(
      "fmod", [](auto a, auto b, const void* zero) { return divides(b, zero) ? rest(a, b) : decltype(a)(0); });
  ops.add<2, kRaw, Ints>("remainder", [](auto a, auto b, const void* zero) {
    using T = decltype(a);
    return divides(b, zero) ? plus(rest(a, b), floors(a, b) ? b : T(0)) : T(0);
  });
  ops.binary<Ints>("pow", [](auto a, auto b) { return int_pow(a, b); });
  ops.add<1, 1, Ints>("pow_scalar", [](auto a, const auto* p) { return int_pow(a, p[0]); });
  ops.add<1, 1, Ints>("rpow_scalar", [](auto a, const auto* p) { return int_pow(p[0], a); });
}

struct FarApart {
  template <class T>
  vm::UInt<T> operator()(T a, T b) const {
#if defined(__FMA__) || defined(__aarch64__)
    return vm::bits(vm::abs(a / b + (b - b)));  // the difference is NaN where b is infinite
#else
    return limit<T>();
#endif
  }
  template <class T>
  static vm::UInt<T> limit() {
    return bits_as<vm::UInt<T>>(vm::Real<T>::kInt / 4);
  }
};

void fill_floating_division(Registrar& ops) {
  const auto truncated = [](auto a, auto b) { return vm::trunc(a / b); };
  ops.binary<Floats>("div_trunc", truncated);
  ops.beside_float<1>("div_trunc:half,number", truncated);
  ops.guarded<2, FarApart, Floats>(
      "fmod", [](auto a, auto b) { return fmod_near(a, b); }, [](auto a, auto b) { return fmod_far(a, b); });
  ops.guarded<2, FarApart, Floats>(
      "remainder", [](auto a, auto b) { return remainder_of(fmod_near(a, b), b); },
      [](auto a, auto b) { return remainder_of(fmod_far(a, b), b); });
  const auto floored_near = [](auto a, auto b) { return floor_divide_of(fmod_near(a, b), a, b); };
  const auto floored_far = [](auto a, auto b) { return floor_divide_of(fmod_far(a, b), a, b); };
  ops.guarded<2, FarApart, Floats>("div_floor", floored_near, floored_far);
  using IsFar = Guard<FarApart, decltype(floored_far)>;
  ops.beside_float<1, IsFar>("div_floor:half,number", floored_near);
}

void fill_divisors(Registrar& ops) {
  ops.binary<Ints>("gcd", [](auto a, auto b) { return static_cast<decltype(a)>(gcd_of(magnitude(a), magnitude(b))); });
  ops.binary<Ints>("lcm", [](auto a, auto b) { return lcm_of(a, b); });
}

template <class Bits, Bits kInf>
void add_next_after(LoopTable& table, DType dtype) {
  const auto formula = [](Bits x, Bits y) { return static_cast<Bits>(next_after<Bits, kInf>(x, y)); };
  table.set("nextafter", dtype, KernelOf<decltype(formula), NoGuard, 0, Bits, Bits, Bits>::run);
}

void fill_neighbours(LoopTable& table) {
  add_next_after<int16_t, 0x7c00>(table, DType::Float16);
  add_next_after<int16_t, 0x7f80>(table, DType::BFloat16);
  add_next_after<int32_t, 0x7f800000>(table, DType::Float32);
  add_next_after<int64_t, 0x7ff0000000000000>(table, DType::Float64);
}

void fill_bits(Registrar& ops) {
  ops.binary<Ints, Bools>("bitwise_and", [](auto a, auto b) { return static_cast<decltype(a)>(a & b); });
  ops.binary<Ints, Bools>("bitwise_or", [](auto a, auto b) { return static_cast<decltype(a)>(a | b); });
  ops.binary<Ints, Bools>("bitwise_xor", [](auto a, auto b) { return static_cast<decltype(a)>(a ^ b); });
  ops.unary<Ints>("bitwise_not", [](auto x) { return static_cast<decltype(x)>(~x); });
  ops.unary<Bools>("bitwise_not", [](bool x) { return !x; });
  // A shift by less than 0 or by the width or more shifts everything out.
  ops.binary<Ints>("bitwise_left_shift", [](auto a, auto b) {
    using T = decltype(a);
    constexpr int kWidth = sizeof(T) * 8;
    const bool inside = (b >= T(0)) & (b < T(kWidth));
    return static_cast<T>(inside ? static_cast<Wrap<T>>(a) << (b & (kWidth - 1)) : 0);
  });
  ops.binary<Ints>("bitwise_right_shift", [](auto a, auto b) {
    using T = decltype(a);
    constexpr int kWidth = sizeof(T) * 8;
    const bool inside = (b >= T(0)) & (b < T(kWidth));
    return static_cast<T>(inside ? a >> (b & (kWidth - 1)) : a < T(0) ? -1 : 0);
  });
}

}  // namespace

void fill_arithmetic(LoopTable& table) {
  Registrar ops(table);
  fill_sums(table, ops);
  fill_integer_division(ops);
  fill_floating_division(ops);
  fill_divisors(ops);
  fill_neighbours(table);
  fill_bits(ops);
}

}  // namespace RL_ISA
}  // namespace rl
