// The length of a vector of two elements: magnitudes are the same bits in abs, sgn and the norms of complex tensors.
#pragma once

#include "rushlight/vecmath.h"

namespace rl {
namespace RL_ISA {
namespace {

// What brings the greater of two magnitudes to where squares are within range: a power of two.
template <class T>
RL_INLINE T scale_of(T high) {
  const T big = sizeof(T) == 4 ? T(0x1p60) : T(0x1p500), factor = sizeof(T) == 4 ? T(0x1p90) : T(0x1p700);
  return high > big ? 1 / factor : high < 1 / big ? factor : T(1);
}

template <class T>
RL_INLINE T hypot(T a, T b) {
  using R = vm::Real<T>;
  const T x = vm::abs(a), y = vm::abs(b);
  const T high = x > y ? x : y, low = x > y ? y : x;
  const T up = scale_of(high);
  const T u = high * up, v = low * up;
  const T y0 = vm::sqrt(vm::madd(u, u, v * v)) / up;
  const T number = vm::isnan(a) | vm::isnan(b) ? a + b : y0;
  return (x == R::kInf) | (y == R::kInf) ? R::kInf : number;
}

// The first coordinate of the direction of (a, b), and that over the length of the vector.
template <class T>
struct Direction {
  T cosine, over_length;
};
template <class T>
RL_INLINE Direction<T> direction(T a, T b) {
  using R = vm::Real<T>;
  const bool far = (vm::abs(a) == R::kInf) | (vm::abs(b) == R::kInf);
  const T one = vm::copysign(T(1), a), other = vm::abs(b) == R::kInf ? T(1) : b * 0;
  const T x = far ? (vm::abs(a) == R::kInf ? one : a * 0) : a, y = far ? other : vm::abs(b);
  const T size = vm::abs(x), high = size > y ? size : y, up = scale_of(high);
  const T u = x * up, v = y * up, length = vm::sqrt(vm::madd(u, u, v * v));
  const T cosine = length == 0 ? u : u / length;
  return {cosine, far ? cosine * 0 : length == 0 ? u : cosine / length * up};
}

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
