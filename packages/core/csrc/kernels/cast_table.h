// Where the ISA source of casts and copies puts its loops.
#pragma once
#include "copy.h"
#include "pointwise.h"
#include "rushlight/isa.h"

namespace rl {

struct CastTable {
  Loop loops[kNumDTypes][kNumDTypes] = {};  // [from][to]
  Loop reverse[17] = {};                    // dense elements of a size from others that lie in the opposite order
  Loop repeat[17] = {};                     // the element at `params`, by its size
  Transpose transpose[17] = {};             // by the size of an element
};

}  // namespace rl

RL_ISA_DECLARE(fill_casts, CastTable)
