// The length of a vector of two elements: magnitudes are the same bits in abs, sgn and the norms of complex tensors.
#pragma once

#include "rushlight/vecmath.h"

namespace rl {
namespace RL_ISA {
namespace {

template <class T>
RL_INLINE T hypot(T a, T b) {
  using R = vm::Real<T>;
  const T x = vm::abs(a), y = vm::abs(b);
  const T high = x > y ? x : y, low = x > y ? y : x;
  // Powers of two keep the squares within range.
  const T big = sizeof(T) == 4 ? T(0x1p60) : T(0x1p500), factor = sizeof(T) == 4 ? T(0x1p90) : T(0x1p700);
  const T up = high > big ? 1 / factor : high < 1 / big ? factor : T(1);
  const T u = high * up, v = low * up;
  const T y0 = vm::sqrt(vm::madd(u, u, v * v)) / up;
  const T number = vm::isnan(a) | vm::isnan(b) ? a + b : y0;
  return (x == R::kInf) | (y == R::kInf) ? R::kInf : number;
}

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
