// Windows of contiguous (planes, D, H, W) images in float32 or float64, copied, summed and maximised.
#pragma once

#include "pool.h"

namespace rl {

// y (planes, taps of the kernel, windows) = the elements of each window, zeros outside the image.
void unfold(DType dtype, const PoolShape& s, const void* x, void* y);
// Its adjoint: dx = the sum of windows that overlap.
void fold(DType dtype, const PoolShape& s, const void* dy, void* dx);

// The maximum of each region, the last NaN wins, and its flat position in the plane. Only planes, in and out of the
// shape count; a row of bounds has those of the last n dimensions one after the other, and rows are `stride` apart.
void max_regions(DType dtype, const PoolShape& s, int n, const int64_t* begin, const int64_t* end, int64_t stride,
                 const void* x, void* y, int64_t* index);

// Blocks of factor x factor planes (height, width) as one plane with the elements of a block side by side, or with
// `back` such planes as blocks; of any element size that a tensor has.
struct PixelShape {
  int64_t blocks, factor, height, width, itemsize;
};
void pixel_shuffle(const PixelShape& s, bool back, const void* x, void* y);

}  // namespace rl
