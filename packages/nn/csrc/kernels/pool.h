// Pooling of contiguous (planes, D, H, W) images in float32 or float64; one and two dimensions have leading ones.
#pragma once

#include <cstdint>

#include "rushlight/dtype.h"
#include "rushlight/isa.h"

namespace rl {

struct PoolShape {
  int64_t planes;
  int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
};

// The divisor of a mean: the size of the window inside the padded image, inside the image, or a given number.
enum class PoolDivisor : uint8_t { Padded, Inside, Given };

struct PoolTable {
  // y = the maximum of each window, the last NaN wins; index = its flat position in the plane.
  void (*max[2])(const PoolShape&, const void* x, void* y, int64_t* index);
  void (*mean[2])(const PoolShape&, PoolDivisor, int64_t divisor, const void* x, void* y);
};

void max_pool(DType dtype, const PoolShape& s, const void* x, void* y, int64_t* index);
// dx[index] += dy, plane by plane; every index lies in the plane.
void max_pool_backward(DType dtype, int64_t planes, int64_t in, int64_t out, const void* dy, const int64_t* index,
                       void* dx);
void avg_pool(DType dtype, const PoolShape& s, PoolDivisor kind, int64_t divisor, const void* x, void* y);
void avg_pool_backward(DType dtype, const PoolShape& s, PoolDivisor kind, int64_t divisor, const void* dy, void* dx);
// Windows of nearly equal size that tile the image; only planes, in and out of the shape count.
void adaptive_avg_pool(DType dtype, const PoolShape& s, const void* x, void* y);
void adaptive_avg_pool_backward(DType dtype, const PoolShape& s, const void* dy, void* dx);

}  // namespace rl

RL_ISA_DECLARE(fill_pool, PoolTable)
