#include "iterator.h"

#include <chrono>

#include "../parallel.h"
#include "nest.h"

namespace rl {

Nest::Nest(int dims, const int64_t* sizes, int operands, const int64_t* const* steps) : nops(operands) {
  for (int d = dims - 1; d >= 0; --d) {
    numel *= sizes[d];
    if (sizes[d] == 1) continue;
    // Insertion, innermost first. Operands that broadcast along a dimension have no opinion.
    const auto belongs_inside = [&](int other) {
      for (int k = 0; k < nops; ++k) {
        const int64_t a = steps[k][d] < 0 ? -steps[k][d] : steps[k][d];
        const int64_t b = strides[other][k] < 0 ? -strides[other][k] : strides[other][k];
        if (a != b && a != 0 && b != 0) return a < b;
      }
      return false;
    };
    int at = ndim++;
    for (; at > 0 && belongs_inside(at - 1); --at) {
      shape[at] = shape[at - 1];
      for (int k = 0; k < nops; ++k) strides[at][k] = strides[at - 1][k];
    }
    shape[at] = sizes[d];
    for (int k = 0; k < nops; ++k) strides[at][k] = steps[k][d];
  }
  if (ndim == 0) {
    ndim = 1;
    shape[0] = 1;
    for (int k = 0; k < nops; ++k) strides[0][k] = 0;
  }
  int last = 0;
  for (int d = 1; d < ndim; ++d) {
    bool merges = true;
    for (int k = 0; k < nops; ++k) merges &= strides[d][k] == strides[last][k] * shape[last];
    if (merges) {
      shape[last] *= shape[d];
    } else {
      ++last;
      shape[last] = shape[d];
      for (int k = 0; k < nops; ++k) strides[last][k] = strides[d][k];
    }
  }
  ndim = last + 1;
}

namespace {

// Below this many elements not even the dearest loop is worth a second thread.
constexpr int64_t kSmall = 8192;
constexpr int64_t kProbe = 2048;
constexpr double kThreadNanoseconds = 25000;

int64_t nanoseconds() {
  using namespace std::chrono;
  return duration_cast<std::chrono::nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

void run_range(Loop loop, const Nest& nest, char* const* data, const void* params, int64_t begin, int64_t end) {
  nest.walk(data, begin, end, [&](char* const* at, int64_t count) { loop(at, nest.strides[0], count, params); });
}

}  // namespace

void run_pointwise(Loop loop, int ndim, const int64_t* shape, int nops, char* const* data,
                   const int64_t* const* strides, const void* params) {
  if (ndim <= 1 && (ndim == 0 || shape[0] < kSmall)) {
    int64_t steps[kMaxOperands];
    for (int k = 0; k < nops; ++k) steps[k] = ndim == 0 ? 0 : strides[k][0];
    return loop(data, steps, ndim == 0 ? 1 : shape[0], params);
  }
  const Nest nest(ndim, shape, nops, strides);
  if (nest.numel < kSmall || num_threads() == 1 || in_parallel_region()) {
    if (nest.numel == 0) return;
    if (nest.ndim == 1) return loop(data, nest.strides[0], nest.numel, params);
    return run_range(loop, nest, data, params, 0, nest.numel);
  }
  // The loops differ a hundredfold in cost: the first elements tell how much work a thread should take.
  const int64_t start = nanoseconds();
  run_range(loop, nest, data, params, 0, kProbe);
  const double cost = static_cast<double>(nanoseconds() - start + 1) / kProbe;
  const int64_t rest = nest.numel - kProbe;
  const int64_t worth = static_cast<int64_t>(kThreadNanoseconds / cost) & -kProbe;
  const int64_t grain = rest * cost < 2 * kThreadNanoseconds ? rest : worth < kSmall ? kSmall : worth;
  parallel_for(0, rest, grain,
               [&](int64_t begin, int64_t end) { run_range(loop, nest, data, params, begin + kProbe, end + kProbe); });
}

}  // namespace rl
