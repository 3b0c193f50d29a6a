// Where the ISA source of casts and copies puts its loops.
#pragma once
#include "pointwise.h"
#include "rushlight/isa.h"

namespace rl {

struct CastTable {
  Loop loops[kNumDTypes][kNumDTypes] = {};  // [from][to]
  Loop reverse[17] = {};                    // dense elements of a size from others that lie in the opposite order
  // dst[j][i] = src[i][j] for dense rows of elements of a size; what is from row to row in bytes.
  void (*transpose[17])(const char* src, int64_t src_row, int64_t rows, int64_t cols, char* dst, int64_t dst_row) = {};
};

}  // namespace rl

RL_ISA_DECLARE(fill_casts, CastTable)
