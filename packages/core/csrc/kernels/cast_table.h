// Where the ISA source of casts puts its loops.
#pragma once
#include "pointwise.h"
#include "rushlight/isa.h"

namespace rl {

struct CastTable {
  Loop loops[kNumDTypes][kNumDTypes] = {};  // [from][to]
};

}  // namespace rl

RL_ISA_DECLARE(fill_casts, CastTable)
