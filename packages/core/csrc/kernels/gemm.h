// Matrix products on raw pointers: C = relu?(alpha * A @ B + beta * C + bias), batched, with any strides.
#pragma once

#include <cstdint>

#include "rushlight/gemm.h"
#include "rushlight/isa.h"

namespace rl {

// Runs on the thread pool; the result does not depend on the number of threads. False: no kernel for the dtype (bool).
// Half types accumulate in float32, integers wrap around.
bool gemm(DType dtype, const GemmArgs& g);

// At least `bytes` of memory of the calling thread, aligned to a page, valid until its next call.
void* gemm_scratch(int64_t bytes);

struct GemmTable {
  void (*fn[kNumDTypes])(const GemmArgs&);
};

}  // namespace rl

RL_ISA_DECLARE(fill_gemm, GemmTable)
