// Kernels of losses.
#include <algorithm>

#include "bind.h"
#include "kernels/loss.h"
#include "kernels/norm.h"

namespace rl {
namespace {

PyObject* fail(const Call& c, const char* rule) {
  PyErr_Format(PyExc_RuntimeError, "%s: %s.", c.op->name, rule);
  return nullptr;
}

// Scores (N, C, *) or (C,) and class numbers (N, *) or ().
struct Scores {
  int64_t outer = 1, classes, inner = 1;
  explicit Scores(const Tensor* t) : classes(t->sizes[t->ndim > 1]) {
    if (t->ndim > 1) outer = t->sizes[0];
    for (int d = 2; d < t->ndim; ++d) inner *= t->sizes[d];
  }
};

bool fits(const Tensor* input, const Tensor* target, const Tensor* weight) {
  if (!is_native(input) || input->ndim < 1 || target->dtype != DType::Int64) return false;
  const Scores s(input);
  return s.classes > 0 && target->numel == s.outer * s.inner &&
         (weight == nullptr || (weight->dtype == input->dtype && weight->numel == s.classes));
}

// The sum in 16 lanes.
template <class T>
double sum(const void* data, int64_t n) {
  const T* x = static_cast<const T*>(data);
  double lane[16] = {}, total = 0;
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (int64_t j = 0; j < 16; ++j) lane[j] += static_cast<double>(x[i + j]);
  }
  for (; i < n; ++i) total += static_cast<double>(x[i]);
  for (double x : lane) total += x;
  return total;
}
double sum(const Owned& t) { return (t->dtype == DType::Float64 ? sum<double> : sum<float>)(t.data(), t->numel); }

// Where the second half of a tensor begins.
char* half_of(const Owned& t) { return t.data() + t->numel / 2 * (t->dtype == DType::Float64 ? 8 : 4); }

Owned number(double value, DType dtype) {
  Owned t = empty(0, nullptr, dtype);
  if (!t) return t;
  if (dtype == DType::Float64) {
    *reinterpret_cast<double*>(t.data()) = value;
  } else {
    *reinterpret_cast<float*>(t.data()) = static_cast<float>(value);
  }
  return t;
}

// nn::class_loss(input, target, weight, reduction, ignore_index, label_smoothing): the loss, and for the gradient the
// greatest scores with the logarithms of the sums of exponentials less those, and the sum of the targets' weights.
PyObject* class_loss_kernel(Call& c) {
  Tensor *input = c.args[0].tensor, *target = c.args[1].tensor;
  if (!fits(input, target, tensor_or_null(c.args[2]))) return run_composite(c);
  const Scores s(input);
  const int64_t reduction = c.args[3].to_int(), ignore_index = c.args[4].to_int();
  const Owned x = contiguous(input), classes = contiguous(target), weight = contiguous_or_none(c.args[2]);
  int64_t pairs[kMaxRank + 1] = {2};
  std::copy_n(target->sizes, target->ndim, pairs + 1);
  Owned loss = empty(target->ndim, target->sizes, input->dtype),
        normalizers = empty(target->ndim + 1, pairs, input->dtype);
  const Owned factor = empty(target->ndim, target->sizes, input->dtype);
  if (!x || !classes || !loss || !normalizers || !factor || PyErr_Occurred()) return nullptr;
  const int64_t* at = reinterpret_cast<const int64_t*>(classes.data());
  for (int64_t i = 0; i < target->numel; ++i) {
    if ((at[i] < 0 || at[i] >= s.classes) && at[i] != ignore_index) {
      PyErr_Format(PyExc_IndexError, "Target %lld is out of bounds.", static_cast<long long>(at[i]));
      return nullptr;
    }
  }
  const CrossEntropy g{s.outer,
                       s.classes,
                       s.inner,
                       x.data(),
                       weight.data(),
                       at,
                       ignore_index,
                       c.args[5].to_double(),
                       loss.data(),
                       normalizers.data(),
                       half_of(normalizers),
                       factor.data()};
  if (target->numel != 0 &&
      !run_unlocked(input->numel, [&] { norm_kernels().cross_entropy[type_index(input->dtype)](g); }))
    return nullptr;
  const double divisor = reduction == 1 ? sum(factor) : 1;
  Owned total = number(divisor, input->dtype);
  if (reduction != 0) loss = number(sum(loss) / divisor, input->dtype);
  if (!total || !loss) return nullptr;
  return tuple_of({&loss, &normalizers, &total});
}

// nn::class_loss_backward(output_grad, input, target, weight, normalizers, total, reduction, ignore_index,
// label_smoothing)
PyObject* class_loss_backward_kernel(Call& c) {
  Tensor *grad = c.args[0].tensor, *input = c.args[1].tensor, *target = c.args[2].tensor, *total = c.args[5].tensor;
  if (!fits(input, target, tensor_or_null(c.args[3])) || grad->dtype != input->dtype) return run_composite(c);
  if (grad->numel != (c.args[6].to_int() == 0 ? target->numel : 1) || total->numel != 1 ||
      total->dtype != input->dtype || c.args[4].tensor->dtype != input->dtype ||
      c.args[4].tensor->numel != 2 * target->numel) {
    return fail(c, "the arguments do not fit");
  }
  const Scores s(input);
  const Owned dloss = contiguous(grad), x = contiguous(input), classes = contiguous(target),
              weight = contiguous_or_none(c.args[3]);
  const Owned normalizers = contiguous(c.args[4].tensor);
  Owned dx = empty_like(input);
  if (!dloss || !x || !classes || !normalizers || !dx || PyErr_Occurred()) return nullptr;
  const double divisor = input->dtype == DType::Float64 ? *reinterpret_cast<double*>(total->data)
                                                        : static_cast<double>(*reinterpret_cast<float*>(total->data));
  const int64_t ignore_index = c.args[7].to_int(), *at = reinterpret_cast<const int64_t*>(classes.data());
  for (int64_t i = 0; i < target->numel; ++i) {  // it may have been written to since
    if ((at[i] < 0 || at[i] >= s.classes) && at[i] != ignore_index) return fail(c, "target is out of bounds");
  }
  const CrossEntropyBackward g{s.outer,
                               s.classes,
                               s.inner,
                               x.data(),
                               weight.data(),
                               normalizers.data(),
                               half_of(normalizers),
                               at,
                               ignore_index,
                               c.args[8].to_double(),
                               dloss.data(),
                               grad->numel == 1 && target->numel != 1 ? 0 : 1,
                               divisor,
                               dx.data()};
  if (target->numel != 0 &&
      !run_unlocked(input->numel, [&] { norm_kernels().cross_entropy_backward[type_index(input->dtype)](g); })) {
    return nullptr;
  }
  return dx.release();
}

// nn::cross_entropy_loss(self, target, weight, reduction, ignore_index, label_smoothing)
PyObject* cross_entropy_call(Call& c) {
  static const Op* class_loss = api->find_op("nn::class_loss");
  const Tensor *input = c.args[0].tensor, *target = c.args[1].tensor;
  const double smoothing = c.args[5].to_double();
  bool plain = input->ndim >= 2 && target->ndim == input->ndim - 1 && target->sizes[0] == input->sizes[0] &&
               smoothing >= 0 && smoothing <= 1 && fits(input, target, tensor_or_null(c.args[2]));
  for (int d = 1; plain && d < target->ndim; ++d) plain = target->sizes[d] == input->sizes[d + 1];
  if (!plain) return run_composite(c);
  const Owned all(api->call(class_loss, c.args, 6));
  return all ? Py_NewRef(PyTuple_GET_ITEM(all.get(), 0)) : nullptr;
}

// Hands loops on to core.
class Loops final : public LoopTable {
 public:
  void set(const char* op, DType dtype, Loop loop) override { done = done && api->register_loop(op, dtype, loop) == 0; }
  bool done = true;
};

bool register_loops() {
  Loops loops;
  RL_ISA_CALL(fill_loss, loops);
  return loops.done;
}

}  // namespace

bool register_loss() {
  return register_loops() && api->register_kernel("nn::cross_entropy_loss", "cpu", cross_entropy_call) == 0 &&
         api->register_kernel("nn::class_loss", "cpu", class_loss_kernel) == 0 &&
         api->register_kernel("nn::class_loss_backward", "cpu", class_loss_backward_kernel) == 0;
}

}  // namespace rl
