// Images resampled along lines and at the places of a grid; contiguous float32 or float64.
#pragma once

#include <cstdint>

#include "rushlight/dtype.h"
#include "rushlight/isa.h"

namespace rl {

// x is (outer, in, inner), y is (outer, out, inner); row j of y has `taps` places in x and their weights.
struct Resample {
  int64_t outer, in, out, inner, taps;
  const int64_t* places;  // (out, taps), in [0, in)
  const void* weights;    // (out, taps)
};

enum class GridMode : uint8_t { Linear, Nearest, Cubic };
enum class GridPadding : uint8_t { Zeros, Border, Reflection };

// Images (batch, channels, *size) and `points` places for each, of n coordinates, the last dimension's first.
struct GridShape {
  int64_t batch, channels, points;
  int n;
  int64_t size[3];
  GridMode mode;
  GridPadding padding;
  bool align_corners;
};

struct ImageTable {
  // y[o, j, i] = sum over k of weights[j, k] * x[o, places[j, k], i]
  void (*resample[2])(const Resample&, const void* x, void* y);
  void (*grid[2])(const GridShape&, const void* x, const void* grid, void* y);
  void (*grid_backward_input[2])(const GridShape&, const void* grid, const void* dy, void* dx);
  void (*grid_backward_grid[2])(const GridShape&, const void* x, const void* grid, const void* dy, void* dgrid);
};

const ImageTable& image_kernels();

// dx[o, places[j, k], i] += weights[j, k] * dy[o, j, i], from zero: a resampling by the transposed table.
void resample_adjoint(DType dtype, const Resample& r, const void* dy, void* dx);

}  // namespace rl

RL_ISA_DECLARE(fill_image, ImageTable)
