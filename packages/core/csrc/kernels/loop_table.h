// Where the ISA sources put their pointwise loops.
#pragma once
#include "pointwise.h"
#include "rushlight/isa.h"

namespace rl {

class LoopTable {
 public:
  // Replaces what was there. `op` must be a literal.
  virtual void set(const char* op, DType dtype, Loop loop) = 0;

 protected:
  ~LoopTable() = default;
};

}  // namespace rl

RL_ISA_DECLARE(fill_arithmetic, LoopTable)
RL_ISA_DECLARE(fill_compare, LoopTable)
RL_ISA_DECLARE(fill_math, LoopTable)
RL_ISA_DECLARE(fill_activation, LoopTable)

namespace rl {
void fill_complex(LoopTable& table);  // elementary functions, which call the C library
}
