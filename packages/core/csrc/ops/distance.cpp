// Distances between all rows of two batches of matrices; what the loops want is checked here, the rest by the record.
#include "../kernels/distance.h"

#include <algorithm>
#include <cmath>

#include "../parallel.h"
#include "ops.h"

namespace rl {

namespace {

constexpr int64_t kGrain = 16384;  // differences that are worth a thread

const DistanceTable& table() {
  static const DistanceTable table = [] {
    DistanceTable filled;
    RL_ISA_CALL(fill_distances, filled);
    return filled;
  }();
  return table;
}

int norm_of(double p) {
  return static_cast<int>(p == 0          ? Norm::Count
                          : p == 1        ? Norm::One
                          : p == 2        ? Norm::Two
                          : std::isinf(p) ? Norm::Largest
                                          : Norm::Other);
}

void check(const Call& c, std::initializer_list<const Tensor*> tensors, bool fit) {
  const Tensor* first = *tensors.begin();
  for (const Tensor* t : tensors)
    fit = fit && t->ndim == 3 && t->dtype == first->dtype && t->sizes[0] == first->sizes[0];
  if (!fit || (first->dtype != DType::Float32 && first->dtype != DType::Float64))
    fail(PyExc_RuntimeError, "%s: takes batches of matrices of float32 or float64 that fit each other, got %s and %s.",
         c.op->name, describe(*tensors.begin()).c_str(), describe(*(tensors.begin() + 1)).c_str());
}

// Calls f(loops, zero, begin, end) over rows of all batches.
template <class F>
void over_rows(DType dtype, int64_t rows, int64_t work, F&& f) {
  Unlocked unlocked(rows * work > kGrain);
  parallel_for(0, rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, work)), [&](int64_t begin, int64_t end) {
    if (dtype == DType::Float32)
      f(table().floats, float{}, begin, end);
    else
      f(table().doubles, double{}, begin, end);
  });
}

// (x1 (B, P, M), x2 transposed (B, M, R), p) -> (B, P, R)
PyObject* distances_kernel(Call& c) {
  Tensor *x1 = c.args[0].tensor, *x2 = c.args[1].tensor;
  check(c, {x1, x2}, x1->ndim == 3 && x2->ndim == 3 && x1->sizes[2] == x2->sizes[1]);
  const int64_t rows = x1->sizes[1], m = x1->sizes[2], columns = x2->sizes[2], batch = x1->sizes[0];
  const int64_t sizes[] = {batch, rows, columns};
  Ref<Tensor> out = empty(3, sizes, x1->dtype, c.device);
  if (c.device.type == kMeta) return out.release_object();
  const Ref<Tensor> a = contiguous(x1), b = contiguous(x2);
  const double p = c.args[2].to_double();
  over_rows(x1->dtype, batch * rows, m * columns, [&](auto& loops, auto zero, int64_t begin, int64_t end) {
    using T = decltype(zero);
    for (int64_t i = begin; i < end; ++i)
      loops.distances[norm_of(p)](reinterpret_cast<const T*>(a->data) + i * m,
                                  reinterpret_cast<const T*>(b->data) + i / rows * m * columns,
                                  reinterpret_cast<T*>(out->data) + i * columns, columns, m, static_cast<T>(p));
  });
  return out.release_object();
}

// (grad (B, P, R), x1 (B, P, M), x2 (B, R, M), p, distances (B, P, R)) -> the gradient of x1
PyObject* gradient_kernel(Call& c) {
  Tensor *grad = c.args[0].tensor, *x1 = c.args[1].tensor, *x2 = c.args[2].tensor, *result = c.args[4].tensor;
  check(c, {x1, x2, grad, result},
        x1->ndim == 3 && x2->ndim == 3 && grad->ndim == 3 && x1->sizes[2] == x2->sizes[2] &&
            grad->sizes[1] == x1->sizes[1] && grad->sizes[2] == x2->sizes[1] && result->ndim == 3 &&
            std::equal(grad->sizes, grad->sizes + 3, result->sizes));
  Ref<Tensor> out = empty(3, x1->sizes, x1->dtype, c.device);
  if (c.device.type == kMeta) return out.release_object();
  const int64_t rows = x1->sizes[1], m = x1->sizes[2], others = x2->sizes[1];
  const Ref<Tensor> a = contiguous(x1), b = contiguous(x2), weights = contiguous(grad), distances = contiguous(result);
  const double p = c.args[3].to_double();
  over_rows(x1->dtype, x1->sizes[0] * rows, m * others, [&](auto& loops, auto zero, int64_t begin, int64_t end) {
    using T = decltype(zero);
    for (int64_t i = begin; i < end; ++i)
      loops.gradient[norm_of(p)](reinterpret_cast<const T*>(a->data) + i * m,
                                 reinterpret_cast<const T*>(b->data) + i / rows * others * m,
                                 reinterpret_cast<const T*>(weights->data) + i * others,
                                 reinterpret_cast<const T*>(distances->data) + i * others,
                                 reinterpret_cast<T*>(out->data) + i * m, others, m, static_cast<T>(p));
  });
  return out.release_object();
}

}  // namespace

void register_distance_ops() {
  static const Native natives[] = {{"_cdist_loops", distances_kernel, kOnCpuAndMeta},
                                   {"_cdist_loops_backward", gradient_kernel, kOnCpuAndMeta}};
  register_natives(natives, sizeof natives / sizeof *natives);
}

}  // namespace rl
