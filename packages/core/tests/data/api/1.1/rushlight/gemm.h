// What a matrix product takes: C = relu?(alpha * A @ B + beta * C + bias), batched, with any strides.
#pragma once
#include "dtype.h"

namespace rl {

// A factor in every form that an element type may need.
struct GemmScalar {
  double re = 1, im = 0;
  int64_t i = 1;
};

// Strides are in elements; those of A, B and bias may be zero or negative. C must not overlap an input or itself.
struct GemmArgs {
  int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;  // (m, k)
  int64_t a_row = 0, a_col = 0;
  const void* b = nullptr;  // (k, n)
  int64_t b_row = 0, b_col = 0;
  void* c = nullptr;  // (m, n)
  int64_t c_row = 0, c_col = 0;
  GemmScalar alpha, beta = {0, 0, 0};  // with beta 0, C is not read
  const void* bias = nullptr;          // (m, n) by its strides: (0, 1) is one value per column
  int64_t bias_row = 0, bias_col = 0;
  bool relu = false;
  // Batch dimensions, outermost first, and the strides of A, B and C along them.
  int batch_ndim = 0;
  const int64_t* batch_sizes = nullptr;
  const int64_t *a_batch = nullptr, *b_batch = nullptr, *c_batch = nullptr;
};

}  // namespace rl
