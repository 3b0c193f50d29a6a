// Reductions of n-dimensional strided memory over any set of dimensions to contiguous outputs. Raw pointers, no GIL.
//
// The elements of one output are combined in a binary tree over blocks that only the geometry decides, so the result
// has the same bits whatever the number of threads.
#pragma once
#include <cstdint>

#include "rushlight/dtype.h"
#include "rushlight/isa.h"

namespace rl {

enum class Reduce : uint8_t {
  Sum,
  NanSum,
  Prod,
  Amax,
  Amin,
  Any,
  All,
  CountNonzero,
  Norm1,
  Norm2,
  NormInf,
  NormMinusInf,
  NormP,
  Var,
  ArgMax,
  ArgMin,
};
constexpr int kNumReduce = 16;

struct ReduceParams {
  double divisor = 1;        // Sum, NanSum of inexact dtypes: n makes a mean
  double p = 2;              // NormP: the exponent
  double correction = 1;     // Var
  bool square_root = false;  // Var: the standard deviation instead
  char* second = nullptr;    // Var: the mean. ArgMax, ArgMin: the value. In the dtype of the input; null: not wanted
  int64_t count = 0;         // set by run_reduce: elements per output
};

// One kernel, for one Reduce and one input dtype. It combines dense blocks of a few wide types; the driver knows
// dimensions and threads, and loads what is not dense or not wide through a buffer. An accumulator of m outputs is
// m * acc_size bytes.
struct ReduceKernel {
  int32_t acc_size = 0;     // 0: there is no kernel
  int32_t wide_size = 0;    // bytes of a loaded element
  DType in{}, out{};        // of the input and `second`, of the first output
  bool direct = false;      // dense memory needs no loading
  bool positional = false;  // `start`, the index of the first element along the reduced dimension, matters
  uint8_t cost = 1;         // of one element, in about 0.2 ns
  void (*load)(const char* in, int64_t stride, int64_t n, void* out) = nullptr;
  // Both overwrite `acc`; n = 0 gives the identity. n is at most kReduceRow, or kReduceRows rows `row_stride` bytes
  // apart.
  void (*row)(const void* v, int64_t n, int64_t start, void* acc, const ReduceParams&) = nullptr;
  // `rows` rows of n <= kReduceRow elements, to as many accumulators. Null: `row` of each does.
  void (*rows)(const void* v, int64_t rows, int64_t row_stride, int64_t n, void* acc, const ReduceParams&) = nullptr;
  void (*columns)(const void* v, int64_t n, int64_t row_stride, int64_t m, int64_t start, void* acc,
                  const ReduceParams&) = nullptr;
  void (*merge)(void* acc, const void* later, int64_t m) = nullptr;
  void (*finish)(const void* acc, int64_t m, char* out, char* second, const ReduceParams&) = nullptr;  // contiguous
};
constexpr int64_t kReduceRow = 4096;  // elements of a block along a row
constexpr int64_t kReduceRows = 128;  // rows of a block of columns

struct ReduceTable {
  ReduceKernel kernels[kNumReduce][kNumDTypes];
};

// The kernel for inputs of dtype `in`; its acc_size is 0 where PyTorch has none either:
//   Sum, Prod              all; integers and bool give int64, half types compute in float32
//   NanSum, Norm*          inexact dtypes (Norm* of complex gives the real dtype); NanSum not complex
//   Amax, Amin, Arg*       all but complex; NaN wins, and the first of equals
//   Any, All, CountNonzero all; give bool, bool and int64
//   Var                    floating dtypes
// ArgMax and ArgMin write the int64 index, and the value to `second`. They take one reduced dimension, or all
// dimensions of a contiguous input (the index is then the flat one).
const ReduceKernel& find_reduce(Reduce op, DType in);

// Reduces dimension d where bit d of `reduced` is set; strides in bytes. `out` is contiguous over the kept dimensions.
void run_reduce(const ReduceKernel& kernel, const char* in, int ndim, const int64_t* shape, const int64_t* strides,
                uint64_t reduced, char* out, const ReduceParams& params);

}  // namespace rl

RL_ISA_DECLARE(fill_reduce, ReduceTable)
