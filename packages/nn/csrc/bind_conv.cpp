// Kernels of the convolution ops, and the short way from conv1d, conv2d and conv3d to them.
#include "bind.h"
#include "kernels/conv.h"

namespace rl {
namespace {

bool fail(const Call& c, const char* rule) {
  PyErr_Format(PyExc_RuntimeError, "%s: %s.", c.op->name, rule);
  return false;
}

// The geometry of a convolution of `image` (N, C, *) by `weight` (out, C / groups, *) to an output of size `out`, or to
// the one that follows where `out` is null. False with an exception if they do not fit.
bool read_shape(const Call& c, const int64_t* image, int ndim, const int64_t* weight, int weight_ndim,
                const Arg& stride, const Arg& padding, const Arg& dilation, int64_t groups, const int64_t* out,
                ConvShape* s) {
  const int n = ndim - 2;
  if (n < 1 || n > 3 || weight_ndim != ndim) return fail(c, "expected 3-, 4- or 5-dimensional tensors");
  for (const Arg* a : {&stride, &padding, &dilation}) {
    if (a->kind != Kind::Ints || a->count != n)
      return fail(c, "stride, padding and dilation need one number per dimension");
  }
  if (groups < 1 || image[1] % groups != 0 || weight[0] % groups != 0 || weight[1] != image[1] / groups) {
    return fail(c, "channels, weight and groups do not fit");
  }
  *s = {image[0],  groups,    image[1] / groups, weight[0] / groups, {1, 1, 1},
        {1, 1, 1}, {1, 1, 1}, {1, 1, 1},         {0, 0, 0},          {1, 1, 1}};
  for (int i = 0; i < n; ++i) {
    const int d = 3 - n + i;
    s->in[d] = image[2 + i];
    s->kernel[d] = weight[2 + i];
    s->stride[d] = stride.ints[i];
    s->padding[d] = padding.ints[i];
    s->dilation[d] = dilation.ints[i];
    constexpr int64_t limit = int64_t{1} << 40;  // keeps what follows from overflowing
    if (s->stride[d] < 1 || s->padding[d] < 0 || s->dilation[d] < 1 || s->kernel[d] < 1 || s->stride[d] > limit ||
        s->padding[d] > limit || s->dilation[d] > limit / s->kernel[d]) {
      return fail(c, "stride, dilation and kernel must be positive, padding not negative, and none absurdly large");
    }
    const int64_t space = s->in[d] + 2 * s->padding[d] - s->dilation[d] * (s->kernel[d] - 1) - 1;
    if (space < 0) return fail(c, "Kernel size can't be greater than actual input size");
    s->out[d] = space / s->stride[d] + 1;
    if (out != nullptr && out[2 + i] != s->out[d]) return fail(c, "the size of the output does not fit");
  }
  return true;
}

// Float32 stand-ins for half types: the op runs on them, the result is converted back.
PyObject* in_float32(Call& c) {
  Arg args[9];
  Owned held[9];
  DType dtype = DType::Float32;
  for (int i = 0; i < c.op->nparams; ++i) {
    args[i] = c.args[i];
    if (!args[i].is_tensor()) continue;
    dtype = args[i].tensor->dtype;
    held[i] = Owned(api->to_dtype(args[i].tensor, DType::Float32));
    if (!held[i]) return nullptr;
    args[i].tensor = held[i].tensor();
  }
  Call wide = c;
  wide.args = args;
  const Owned result(c.op->kernels[kCPU](wide));
  return result ? api->to_dtype(result.tensor(), dtype) : nullptr;
}

// How a call with these two tensors runs: natively, in float32, or by the portable definition.
enum class Way { Native, Wide, Composite };
Way way_of(const Tensor* a, const Tensor* b, const Tensor* bias) {
  if (a->dtype != b->dtype || (bias != nullptr && bias->dtype != a->dtype)) return Way::Composite;
  if (is_native(a)) return Way::Native;
  return a->dtype == DType::Float16 || a->dtype == DType::BFloat16 ? Way::Wide : Way::Composite;
}

int64_t work(const ConvShape& s) {
  return s.batch * s.groups * s.out_channels * s.out[0] * s.out[1] * s.out[2] * s.in_channels * s.kernel[1] *
         s.kernel[2];
}

bool bias_fits(const Call& c, const Tensor* bias, int64_t channels) {
  return bias == nullptr || (bias->ndim == 1 && bias->sizes[0] == channels) ||
         fail(c, "bias needs one number per channel");
}

// nn::conv_forward(input, weight, bias, stride, padding, dilation, groups)
PyObject* conv_forward_kernel(Call& c) {
  Tensor *input = c.args[0].tensor, *weight = c.args[1].tensor, *bias = tensor_or_null(c.args[2]);
  const Way way = way_of(input, weight, bias);
  if (way != Way::Native) return way == Way::Wide ? in_float32(c) : run_composite(c);
  ConvShape s;
  if (!read_shape(c, input->sizes, input->ndim, weight->sizes, weight->ndim, c.args[3], c.args[4], c.args[5],
                  c.args[6].to_int(), nullptr, &s) ||
      !bias_fits(c, bias, s.groups * s.out_channels)) {
    return nullptr;
  }
  int64_t sizes[5] = {input->sizes[0], weight->sizes[0]};
  for (int d = 2; d < input->ndim; ++d) sizes[d] = s.out[d + 3 - input->ndim];
  const Owned x = contiguous(input), w = contiguous(weight), b = contiguous_or_none(c.args[2]);
  Owned y = empty(input->ndim, sizes, input->dtype);
  if (!x || !w || !y || (bias != nullptr && !b)) return nullptr;
  if (y->numel != 0 &&
      !run_unlocked(work(s), [&] { conv_forward(input->dtype, s, x.data(), w.data(), b.data(), y.data()); })) {
    return nullptr;
  }
  return y.release();
}

// nn::conv_input(input, weight, bias, size, stride, padding, dilation, groups): the image of that size from which the
// convolution would have made `input`, summed over windows.
PyObject* conv_input_kernel(Call& c) {
  Tensor *input = c.args[0].tensor, *weight = c.args[1].tensor, *bias = tensor_or_null(c.args[2]);
  const Way way = way_of(input, weight, bias);
  if (way != Way::Native) return way == Way::Wide ? in_float32(c) : run_composite(c);
  const Arg& size = c.args[3];
  ConvShape s;
  if (size.kind != Kind::Ints || size.count != input->ndim)
    return fail(c, "size needs one number per dimension"), nullptr;
  for (int d = 0; d < size.count; ++d) {
    if (size.ints[d] < 0) return fail(c, "sizes must not be negative"), nullptr;
  }
  if (!read_shape(c, size.ints, size.count, weight->sizes, weight->ndim, c.args[4], c.args[5], c.args[6],
                  c.args[7].to_int(), input->sizes, &s)) {
    return nullptr;
  }
  if (input->sizes[0] != s.batch || input->sizes[1] != weight->sizes[0]) {
    return fail(c, "batch and channels of the input do not fit"), nullptr;
  }
  if (!bias_fits(c, bias, s.groups * s.in_channels)) return nullptr;
  const Owned dy = contiguous(input), w = contiguous(weight), b = contiguous_or_none(c.args[2]);
  Owned dx = empty(size.count, size.ints, input->dtype);
  if (!dy || !w || !dx || (bias != nullptr && !b)) return nullptr;
  if (dx->numel != 0 &&
      !run_unlocked(work(s), [&] { conv_backward_input(input->dtype, s, dy.data(), w.data(), b.data(), dx.data()); })) {
    return nullptr;
  }
  return dx.release();
}

// nn::conv_weight(output_grad, input, size, stride, padding, dilation, groups)
PyObject* conv_weight_kernel(Call& c) {
  Tensor *grad = c.args[0].tensor, *input = c.args[1].tensor;
  const Way way = way_of(grad, input, nullptr);
  if (way != Way::Native) return way == Way::Wide ? in_float32(c) : run_composite(c);
  const Arg& size = c.args[2];
  ConvShape s;
  if (size.kind != Kind::Ints || size.count != input->ndim || grad->ndim != input->ndim) {
    return fail(c, "size and output_grad need the dimensions of the input"), nullptr;
  }
  if (!read_shape(c, input->sizes, input->ndim, size.ints, size.count, c.args[3], c.args[4], c.args[5],
                  c.args[6].to_int(), grad->sizes, &s)) {
    return nullptr;
  }
  if (grad->sizes[0] != s.batch || grad->sizes[1] != size.ints[0]) {
    return fail(c, "batch and channels of output_grad do not fit"), nullptr;
  }
  const Owned x = contiguous(input), dy = contiguous(grad);
  Owned dw = empty(size.count, size.ints, input->dtype);
  if (!x || !dy || !dw) return nullptr;
  if (dw->numel != 0 &&
      !run_unlocked(work(s), [&] { conv_backward_weight(input->dtype, s, x.data(), dy.data(), dw.data()); })) {
    return nullptr;
  }
  return dw.release();
}

// nn::channel_sum(input): (N, C, *) to (C,)
PyObject* channel_sum_kernel(Call& c) {
  Tensor* input = c.args[0].tensor;
  if (!is_native(input) || input->ndim < 2) return run_composite(c);
  ConvShape s{input->sizes[0], 1, 0, input->sizes[1], {}, {1, 1, 1}, {}, {}, {}, {}};
  for (int d = 2; d < input->ndim; ++d) s.out[2] *= input->sizes[d];
  const Owned dy = contiguous(input);
  Owned db = empty(1, input->sizes + 1, input->dtype);
  if (!dy || !db) return nullptr;
  if (!run_unlocked(input->numel, [&] { conv_backward_bias(input->dtype, s, dy.data(), db.data()); })) return nullptr;
  return db.release();
}

// conv1d, conv2d, conv3d(input, weight, bias, stride, padding, dilation, groups): what is plain goes straight to
// nn::conv_forward; the portable definition serves the rest, and finds the words for what is wrong.
PyObject* conv_kernel(Call& c) {
  static const Op* forward = api->find_op("nn::conv_forward");
  const int n = c.op->name[4] - '0';
  Tensor *input = c.args[0].tensor, *weight = c.args[1].tensor;
  int64_t sizes[3][3];
  if (input->ndim != n + 2 || weight->ndim != n + 2 || !read_sizes(c.args[3], n, sizes[0]) ||
      !read_sizes(c.args[4], n, sizes[1]) || !read_sizes(c.args[5], n, sizes[2])) {
    return run_composite(c);
  }
  const int64_t groups = c.args[6].to_int();
  const Tensor* bias = tensor_or_null(c.args[2]);
  bool plain =
      groups >= 1 && weight->sizes[0] % groups == 0 && input->sizes[1] == weight->sizes[1] * groups &&
      input->dtype == weight->dtype &&
      (bias == nullptr || (bias->ndim == 1 && bias->sizes[0] == weight->sizes[0] && bias->dtype == input->dtype));
  for (int d = 0; plain && d < n; ++d) {
    plain = sizes[0][d] > 0 && sizes[1][d] >= 0 && sizes[1][d] < 1 << 30 && sizes[2][d] > 0 && sizes[2][d] < 1 << 30 &&
            input->sizes[2 + d] + 2 * sizes[1][d] > sizes[2][d] * (weight->sizes[2 + d] - 1);
  }
  if (!plain) return run_composite(c);
  Arg args[7] = {c.args[0], c.args[1], c.args[2], arg(sizes[0], n), arg(sizes[1], n), arg(sizes[2], n), c.args[6]};
  return api->call(forward, args, 7);
}

}  // namespace

bool register_conv() {
  return api->register_kernel("nn::conv_forward", "cpu", conv_forward_kernel) == 0 &&
         api->register_kernel("nn::conv_input", "cpu", conv_input_kernel) == 0 &&
         api->register_kernel("nn::conv_weight", "cpu", conv_weight_kernel) == 0 &&
         api->register_kernel("nn::channel_sum", "cpu", channel_sum_kernel) == 0 &&
         api->register_kernel("conv1d", "cpu", conv_kernel) == 0 &&
         api->register_kernel("conv2d", "cpu", conv_kernel) == 0 &&
         api->register_kernel("conv3d", "cpu", conv_kernel) == 0;
}

}  // namespace rl
