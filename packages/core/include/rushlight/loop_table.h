// Where ISA sources put their pointwise loops. A wheel hands them on to register_loop (api.h).
#pragma once
#include "dtype.h"

namespace rl {

// As in op.h, which needs Python; core's kernels/pointwise.h says what a loop may rely on.
using Loop = void (*)(char* const* data, const int64_t* strides, int64_t n, const void* params);

class LoopTable {
 public:
  // Replaces what was there. `op` must be a literal.
  virtual void set(const char* op, DType dtype, Loop loop) = 0;

 protected:
  ~LoopTable() = default;
};

}  // namespace rl
