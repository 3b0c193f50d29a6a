// Runs a pointwise loop over n-dimensional strided operands.
#pragma once
#include <cstdint>

#include "pointwise.h"

namespace rl {

inline constexpr int kMaxOperands = 8;
inline constexpr int kMaxDims = 64;

// Operand 0 is the output. `strides[k]` holds the byte strides of operand k, one per dimension (0 where it broadcasts).
// Merges dimensions, walks memory in the output's order and splits large work over threads.
// Requires ndim <= kMaxDims and nops <= kMaxOperands.
//
// `sizes` may hold the bytes of an element of each operand: rows too short to be worth a call are then packed together.
void run_pointwise(Loop loop, int ndim, const int64_t* shape, int nops, char* const* data,
                   const int64_t* const* strides, const void* params, const int64_t* sizes = nullptr);

}  // namespace rl
