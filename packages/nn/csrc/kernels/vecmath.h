// Elementary functions of vectors that the kernels of this wheel share: include in an ISA source only (see isa.h).
#pragma once

#include "rushlight/simd.h"

namespace rl {
namespace RL_ISA {
namespace {

// The first lanes, as many as there are: cheaper where that is all of them.
template <class T>
inline Vec<T> get(const T* p, int64_t count) {
  return count == kLanes<T> ? load(p) : load(p, count);
}
template <class T>
inline void put(T* p, Vec<T> v, int64_t count) {
  count == kLanes<T> ? store(p, v) : store(p, v, count);
}

// e^x = power * (1 + rest), for |x| small enough that the power of two is a normal number: x = n ln(2) + r with
// |r| <= ln(2) / 2, and e^r - 1 by its Taylor series to the precision of T.
template <class T>
struct ExpParts {
  Vec<T> power, rest;
};
template <class T>
RL_INLINE inline ExpParts<T> exp_parts(Vec<T> x) {
  constexpr bool single = sizeof(T) == 4;
  using Ints = Vec<IntOf<T>>;
  const Vec<T> shifter =
      splat(single ? T(12582912) : T(6755399441055744));  // 1.5 * 2^(mantissa bits): adding it rounds
  const Vec<T> shifted = x * T(1.4426950408889634) + shifter, n = shifted - shifter;
  const Vec<T> r = (x - n * (single ? T(0.693359375) : T(0.6931471803691238))) -
                   n * (single ? T(-2.12194440e-4) : T(1.9082149292705877e-10));
  constexpr int degree = single ? 7 : 13;
  T factorial = 1;
  for (int i = 2; i <= degree; ++i) factorial *= static_cast<T>(i);
  Vec<T> e = splat(T(1) / factorial);
  for (int i = degree; i > 2; --i) {
    factorial /= static_cast<T>(i);
    e = e * r + T(1) / factorial;
  }
  const Ints exponent = reinterpret_cast<Ints>(shifted) - reinterpret_cast<Ints>(shifter);
  const Ints power = reinterpret_cast<Ints>(splat(T(1))) + (exponent << (single ? 23 : 52));
  return {reinterpret_cast<Vec<T>>(power), e * (r * r) + r};
}

// e^x of x <= 0; 0 where that is not a normal number.
template <class T>
RL_INLINE inline Vec<T> exp_negative(Vec<T> x) {
  constexpr T lowest = sizeof(T) == 4 ? T(-87) : T(-708);
  const auto vanishes = x < lowest;
  const ExpParts<T> e = exp_parts<T>(vanishes ? splat(lowest) : x);
  const Vec<T> value = vanishes ? Vec<T>{} : e.power * e.rest + e.power;
  return x == x ? value : x;
}

template <class T>
RL_INLINE inline Vec<T> absolute(Vec<T> x) {
  return x < T(0) ? -x : x;
}

template <class T>
RL_INLINE inline Vec<T> sigmoid(Vec<T> x) {
  const Vec<T> e = exp_negative<T>(-absolute<T>(x));
  return (x < T(0) ? e : splat(T(1))) / (e + T(1));
}

// p / (p + 2) with p = e^2|x| - 1, and the sign of x.
template <class T>
RL_INLINE inline Vec<T> tanh(Vec<T> x) {
  const Vec<T> a = absolute<T>(x);
  const ExpParts<T> e = exp_parts<T>(a > T(22) ? splat(T(44)) : a + a);
  const Vec<T> p = e.power * e.rest + (e.power - T(1)), t = p / (p + T(2));
  return x < T(0) ? -t : t;
}

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
