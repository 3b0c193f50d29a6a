// The three Fourier transforms that all others are made of, a dimension at a time.
#include "../kernels/fft.h"

#include <cmath>

#include "ops.h"

namespace rl {

namespace {

// The scale of a transform of n points: 1, 1 / sqrt(n) or 1 / n.
double scale_of(const Call& c, int64_t n) {
  const int64_t how = c.args[2].to_int();
  if (how < 0 || how > 2)
    fail(PyExc_RuntimeError, "Unsupported normalization mode %lld (fft: 0, 1 or 2)", static_cast<long long>(how));
  return how == 0 ? 1 : how == 1 ? 1 / std::sqrt(static_cast<double>(n)) : 1 / static_cast<double>(n);
}

int dim_of(const Call& c, int k) {
  return static_cast<int>(wrap_dim(c.op->name, c.args[1].ints[k], c.args[0].tensor->ndim));
}

void check_points(const Call& c, int64_t n) {
  if (n < 1)
    fail(PyExc_RuntimeError, "Invalid number of data points (%lld) specified (%s)", static_cast<long long>(n),
         c.op->name);
}

// Along one dimension of contiguous tensors, whose signal has n points.
void along(const Call& c, Fft kind, const Tensor* in, Tensor* out, int d, int64_t n) {
  check_points(c, n);
  const double scale = scale_of(c, n);
  if (!out->numel || c.device.type == kMeta) return;
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < in->ndim; ++i)
    if (i != d) (i < d ? outer : inner) *= in->sizes[i];
  Unlocked unlocked(outer * n * inner > kUnlockAbove / 16);
  run_fft(kind, real_of(in->dtype), in->data, out->data, outer, n, inner, scale);
}

Ref<Tensor> shaped_like(const Tensor* t, DType dtype, int d, int64_t n) {
  Dims sizes(t->ndim, t->sizes);
  sizes[d] = n;
  return empty(sizes.n, sizes.v, dtype, t->device);
}

void check_input(const Call& c, bool fits) {
  if (!fits || !c.args[1].count || !c.args[0].tensor->ndim)
    fail(PyExc_RuntimeError, "%s: the dtype does not fit, or there is no dimension, got %s.", c.op->name,
         describe(c.args[0].tensor).c_str());
}

// The first `count` dimensions, complex to complex, in the memory of `in` where that is the call's own.
Ref<Tensor> over_dims(const Call& c, Ref<Tensor> in, int count, bool forward, bool own) {
  for (int k = 0; k < count; ++k) {
    const int d = dim_of(c, k);
    Ref<Tensor> out = own ? in : shaped_like(in.get(), in->dtype, d, in->sizes[d]);
    along(c, forward ? Fft::Forward : Fft::Backward, in.get(), out.get(), d, in->sizes[d]);
    in = std::move(out);
    own = true;
  }
  return in;
}

// (self, dim, normalization, forward)
PyObject* c2c_kernel(Call& c) {
  Tensor* self = c.args[0].tensor;
  if (!c.args[1].count) {
    Ref<Tensor> out = empty(self->ndim, self->sizes, self->dtype, self->device);
    copy_into(out.get(), self);
    return out.release_object();
  }
  check_input(c, is_complex(self->dtype));
  const Ref<Tensor> in = c.device.type == kMeta ? Ref<Tensor>::borrow(self) : contiguous(self);
  return over_dims(c, in, c.args[1].count, c.args[3].to_bool(), false).release_object();
}

// (self, dim, normalization, onesided)
PyObject* r2c_kernel(Call& c) {
  Tensor* self = c.args[0].tensor;
  check_input(c, self->dtype == DType::Float32 || self->dtype == DType::Float64);
  const int last = c.args[1].count - 1, d = dim_of(c, last);
  const bool half = c.args[3].to_bool();
  const int64_t n = self->sizes[d];
  Ref<Tensor> out = shaped_like(self, complex_of(self->dtype), d, half ? n / 2 + 1 : n);
  const Ref<Tensor> in = c.device.type == kMeta ? Ref<Tensor>::borrow(self) : contiguous(self);
  along(c, half ? Fft::RealHalf : Fft::RealWhole, in.get(), out.get(), d, n);
  return over_dims(c, std::move(out), last, true, true).release_object();
}

// (self, dim, normalization, last_dim_size)
PyObject* c2r_kernel(Call& c) {
  Tensor* self = c.args[0].tensor;
  check_input(c, is_complex(self->dtype));
  const int last = c.args[1].count - 1, d = dim_of(c, last);
  const int64_t n = c.args[3].to_int();
  check_points(c, n);
  if (self->sizes[d] != n / 2 + 1)
    fail(PyExc_RuntimeError, "%s: a signal of %lld points has %lld frequencies, got %lld.", c.op->name,
         static_cast<long long>(n), static_cast<long long>(n / 2 + 1), static_cast<long long>(self->sizes[d]));
  Ref<Tensor> in = c.device.type == kMeta ? Ref<Tensor>::borrow(self) : contiguous(self);
  in = over_dims(c, in, last, false, false);
  Ref<Tensor> out = shaped_like(self, real_of(self->dtype), d, n);
  along(c, Fft::ToReal, in.get(), out.get(), d, n);
  return out.release_object();
}

}  // namespace

void register_fft_ops() {
  static const Native natives[] = {{"_fft_c2c", c2c_kernel, kOnCpuAndMeta},
                                   {"_fft_r2c", r2c_kernel, kOnCpuAndMeta},
                                   {"_fft_c2r", c2r_kernel, kOnCpuAndMeta}};
  register_natives(natives, sizeof natives / sizeof *natives);
}

}  // namespace rl
