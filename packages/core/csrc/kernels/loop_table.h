// Where the ISA sources of core put their pointwise loops.
#pragma once
#include "rushlight/isa.h"
#include "rushlight/loop_table.h"

RL_ISA_DECLARE(fill_arithmetic, LoopTable)
RL_ISA_DECLARE(fill_compare, LoopTable)
RL_ISA_DECLARE(fill_math, LoopTable)
RL_ISA_DECLARE(fill_activation, LoopTable)

namespace rl {
void fill_complex(LoopTable& table);  // elementary functions, which call the C library
}
