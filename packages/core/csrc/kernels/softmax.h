// Softmax and its kin along the middle dimension of contiguous (outer, n, inner) memory.
#pragma once
#include <cstdint>

#include "rushlight/dtype.h"
#include "rushlight/isa.h"

namespace rl {

enum class Softmax : uint8_t {
  Softmax,             // exp(x - max) / sum
  LogSoftmax,          // x - max - log(sum)
  LogSumExp,           // max + log(sum), to (outer, inner)
  SoftmaxBackward,     // (grad - sum(grad * x)) * x, of x = softmax
  LogSoftmaxBackward,  // grad - exp(x) * sum(grad), of x = log_softmax
};
constexpr int kNumSoftmax = 5;

// m columns of n elements that are `stride` elements apart; m <= kSoftmaxColumns, or m = 1 and stride = 1 for a row.
template <class T>
using SoftmaxLoop = void (*)(const T* x, const T* grad, T* out, int64_t n, int64_t stride, int64_t m);
constexpr int64_t kSoftmaxColumns = 64;

// n dense elements to floats and back.
struct HalfCasts {
  void (*widen)(const void* in, float* out, int64_t n);
  void (*narrow)(const float* in, void* out, int64_t n);
};

struct SoftmaxTable {
  SoftmaxLoop<float> floats[kNumSoftmax];
  SoftmaxLoop<double> doubles[kNumSoftmax];
  HalfCasts halves, bhalves;
};

// Floating dtypes, and complex ones for LogSumExp; half types compute in float32. `grad` is read by the backward ones
// only. `out` may be `x` or `grad`.
void run_softmax(Softmax op, DType dtype, const void* x, const void* grad, void* out, int64_t outer, int64_t n,
                 int64_t inner);

}  // namespace rl

RL_ISA_DECLARE(fill_softmax, SoftmaxTable)
