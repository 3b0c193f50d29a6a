// Convolutions by kernels of 3 x 3 with stride one through Winograd's F(4 x 4, 3 x 3): a tile of 4 x 4 outputs takes 36
// multiplications instead of 144.
#pragma once

#include <cstdint>

#include "rushlight/isa.h"

namespace rl {

constexpr int64_t kWinogradSide = 4;  // of a tile of outputs

// out[m][y][x] = bias[m] + sum over c, i, j of w[m][c][i][j] * in[c][y + i - padding[0]][x + j - padding[1]], for every
// image of the batch and every group.
struct WinogradConv {
  int64_t batch, groups, channels, rows;  // channels and rows of one group
  int64_t in_size[2], out_size[2], padding[2];
  const void* in;                      // (batch, groups, channels, *in_size), contiguous
  const void* weight;                  // 3 x 3 numbers for each (group, row, channel), `rows * channels * 9` a group
  int64_t weight_row, weight_channel;  // elements from one row, or channel, to the next
  bool turned;                         // the 3 x 3 numbers are read from the last to the first
  const void* bias;                    // (groups, rows), or null
  void* out;                           // (batch, groups, rows, *out_size), contiguous
};

// The products of transformed numbers overflow sooner than those of the numbers themselves, and one that is not finite
// spreads over its tile: the functions return false where a result is not finite, and another way has to be taken.
struct WinogradTable {
  bool (*forward[2])(const WinogradConv&);  // float32, float64
  // The gradient of the weights, contiguous (groups, rows, channels, 3, 3); `out` is the gradient of the output.
  bool (*weight[2])(const WinogradConv&, void* dw);
};

}  // namespace rl

RL_ISA_DECLARE(fill_winograd, WinogradTable)
