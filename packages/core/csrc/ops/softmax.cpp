// softmax, log_softmax, their backwards, and logsumexp.
#include "../kernels/softmax.h"

#include "ops.h"

namespace rl {

namespace {

// The tensor as (outer, n, inner) around one dimension of contiguous memory.
struct Split {
  int64_t outer = 1, n = 1, inner = 1;
  Split(const Tensor* t, int64_t dim) {
    for (int d = 0; d < t->ndim; ++d) (d < dim ? outer : d == dim ? n : inner) *= t->sizes[d];
  }
};

void compute(Softmax op, const Call& c, Tensor* x, Tensor* grad, Tensor* out, const Split& s) {
  if (c.device.type != kCPU || !out->numel) return;
  Unlocked unlocked(x->numel > kUnlockAbove / 8);
  run_softmax(op, x->dtype, x->data, grad ? grad->data : nullptr, out->data, s.outer, s.n, s.inner);
}

// (self, dim, dtype)
template <Softmax op>
PyObject* softmax_kernel(Call& c) {
  Tensor* self = c.args[0].tensor;
  const DType dtype = c.args[2].kind == Kind::DType ? c.args[2].dtype : self->dtype;
  if (!is_floating(dtype))
    fail(PyExc_NotImplementedError, "\"%s\" not implemented for '%s'",
         op == Softmax::Softmax ? "softmax_kernel_impl" : "log_softmax_lastdim_kernel_impl", legacy_name(dtype));
  const int64_t dim = wrap_dim(c.op->name, c.args[1].to_int(), self->ndim);
  Ref<Tensor> out = empty(self->ndim, self->sizes, dtype, self->device);
  if (c.device.type == kMeta) return out.release_object();
  Ref<Tensor> in = to_dtype(self, dtype);
  in = contiguous(in.get());
  compute(op, c, in.get(), nullptr, out.get(), Split(in.get(), dim));
  return out.release_object();
}

// (grad_output, output, dim)
template <Softmax op>
PyObject* backward_kernel(Call& c) {
  Tensor* output = c.args[1].tensor;
  const int64_t dim = wrap_dim(c.op->name, c.args[2].to_int(), output->ndim);
  if (!is_floating(output->dtype) || c.args[0].tensor->dtype != output->dtype ||
      c.args[0].tensor->numel != output->numel)
    fail(PyExc_RuntimeError, "%s: gradient and output must be floating tensors of one dtype and shape, got %s and %s",
         c.op->name, describe(c.args[0].tensor).c_str(), describe(output).c_str());
  Ref<Tensor> out = empty(output->ndim, output->sizes, output->dtype, output->device);
  if (c.device.type == kMeta) return out.release_object();
  Ref<Tensor> grad = contiguous(c.args[0].tensor), in = contiguous(output);
  compute(op, c, in.get(), grad.get(), out.get(), Split(in.get(), dim));
  return out.release_object();
}

// logsumexp(self, dim, keepdim)
PyObject* logsumexp_kernel(Call& c) {
  Tensor* self = c.args[0].tensor;
  const DType dtype = is_inexact(self->dtype) ? self->dtype : g_default_dtype;
  const uint64_t mask = dim_mask(c.op->name, c.args[1], self->ndim);
  // Kept dimensions first, reduced ones last; where those are neighbours the memory stays as it is.
  Dims order(0), permuted(0), strides(0), sizes(0);
  for (int reduced = 0; reduced < 2; ++reduced) {
    for (int d = 0; d < self->ndim; ++d)
      if ((mask >> d & 1) == static_cast<uint64_t>(reduced)) order.push(d);
  }
  int first = -1, last = -1, count = 0;
  for (int d = 0; d < self->ndim; ++d) {
    if (mask >> d & 1) {
      if (first < 0) first = d;
      last = d;
      ++count;
      if (c.args[2].to_bool()) sizes.push(1);
    } else {
      sizes.push(self->sizes[d]);
    }
  }
  Ref<Tensor> out = empty(sizes.n, sizes.v, dtype, self->device);
  if (c.device.type == kMeta) return out.release_object();
  Ref<Tensor> in = to_dtype(self, dtype);
  Split split(in.get(), 0);
  if (count == 0) {
    split = {in.get(), -1};
    in = contiguous(in.get());
  } else if (last - first + 1 == count) {
    in = contiguous(in.get());
    split.outer = split.n = split.inner = 1;
    for (int d = 0; d < in->ndim; ++d) (d < first ? split.outer : d <= last ? split.n : split.inner) *= in->sizes[d];
  } else {
    for (int d = 0; d < order.n; ++d) {
      permuted.push(in->sizes[order[d]]);
      strides.push(in->strides[order[d]]);
    }
    in = view(in.get(), permuted.n, permuted.v, strides.v, in->offset);
    in = contiguous(in.get());
    split.outer = out->numel;
    split.n = out->numel ? in->numel / out->numel : 0;
    split.inner = 1;
  }
  compute(Softmax::LogSumExp, c, in.get(), nullptr, out.get(), split);
  return out.release_object();
}

}  // namespace

void register_softmax_ops() {
  static const Native natives[] = {
      {"softmax.int", softmax_kernel<Softmax::Softmax>, kOnCpuAndMeta},
      {"log_softmax.int", softmax_kernel<Softmax::LogSoftmax>, kOnCpuAndMeta},
      {"_softmax_backward", backward_kernel<Softmax::SoftmaxBackward>, kOnCpuAndMeta},
      {"_log_softmax_backward", backward_kernel<Softmax::LogSoftmaxBackward>, kOnCpuAndMeta},
      {"logsumexp", logsumexp_kernel, kOnCpuAndMeta}};
  register_natives(natives, sizeof natives / sizeof *natives);
}

}  // namespace rl
