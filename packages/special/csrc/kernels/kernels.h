// What the ISA sources export.
#pragma once
#include <rushlight/isa.h>
#include <rushlight/loop_table.h>

RL_ISA_DECLARE(fill_gammainc, LoopTable)
RL_ISA_DECLARE(fill_harmonic, LoopTable)
RL_ISA_DECLARE(fill_polynomial, LoopTable)
RL_ISA_DECLARE(fill_unary, LoopTable)
RL_ISA_DECLARE(fill_zeta, LoopTable)
