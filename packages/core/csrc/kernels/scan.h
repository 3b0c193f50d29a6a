// Running sums, products and extremes along the middle dimension of contiguous (outer, n, inner) memory.
#pragma once
#include <cstdint>

#include "rushlight/dtype.h"

namespace rl {

enum class Scan : uint8_t {
  Sum,
  ReverseSum,
  Prod,  // every dtype but bool; floating ones accumulate in double
  Max,
  Min,        // every dtype but complex; NaN stays, of equals the last; `indices` too
  LogSumExp,  // floating and complex dtypes
};

// False: there is no kernel for the dtype. `out` may be `x`.
bool run_scan(Scan op, DType dtype, const void* x, void* out, int64_t* indices, int64_t outer, int64_t n,
              int64_t inner);

}  // namespace rl
