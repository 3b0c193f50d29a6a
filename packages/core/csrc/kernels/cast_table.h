// Where the ISA source of casts puts its loops.
#pragma once
#include "rushlight/isa.h"
#include "pointwise.h"

namespace rl {

struct CastTable {
  Loop loops[kNumDTypes][kNumDTypes] = {};  // [from][to]
};

}  // namespace rl

RL_ISA_DECLARE(fill_casts, CastTable)
