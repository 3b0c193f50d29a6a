// Rows of numbers copied by vectors: include in an ISA source only (see isa.h).
#pragma once

#include "rushlight/simd.h"

namespace rl {
namespace RL_ISA {
namespace {

template <class T>
inline void copy_row(T* to, const T* from, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) store(to + i, load(from + i));
  if (i < n) store(to + i, load(from + i, n - i), n - i);
}
template <class T>
inline void zero_row(T* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = T(0);
}

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
