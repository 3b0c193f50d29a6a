// Losses of single elements as pointwise loops.
#pragma once

#include "rushlight/isa.h"
#include "rushlight/loop_table.h"

RL_ISA_DECLARE(fill_loss, LoopTable)
