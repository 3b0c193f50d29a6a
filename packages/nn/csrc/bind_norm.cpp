// Kernels of normalisation.
#include "bind.h"
#include "kernels/norm.h"

namespace rl {
namespace {

PyObject* fail(const Call& c, const char* rule) {
  PyErr_Format(PyExc_RuntimeError, "%s: %s.", c.op->name, rule);
  return nullptr;
}

// Whether an optional argument is absent, or has the dtype and the number of elements.
bool fits(const Arg& a, DType dtype, int64_t numel) {
  return !a.is_tensor() || (a.tensor->dtype == dtype && a.tensor->numel == numel);
}

struct Channels {
  int64_t outer, channels, inner;
  explicit Channels(const Tensor* t) : outer(t->sizes[0]), channels(t->sizes[1]), inner(1) {
    for (int d = 2; d < t->ndim; ++d) inner *= t->sizes[d];
  }
};

// nn::channel_norm(input, weight, bias, running_mean, running_var, training, momentum, eps): the result, and for the
// gradient the mean and 1 / sqrt(var + eps) of each channel.
PyObject* batch_norm_kernel(Call& c) {
  Tensor* input = c.args[0].tensor;
  if (!is_native(input) || input->ndim < 2 || input->numel == 0) return run_composite(c);
  const Channels size(input);
  for (int i = 1; i < 5; ++i) {
    if (!fits(c.args[i], input->dtype, size.channels)) return run_composite(c);
  }
  const bool training = c.args[5].to_bool();
  Tensor *running_mean = tensor_or_null(c.args[3]), *running_var = tensor_or_null(c.args[4]);
  if (!training && (running_mean == nullptr || running_var == nullptr)) {
    return fail(c, "Expected running_mean and running_var to be defined when training=False");
  }
  for (Tensor* t : {running_mean, running_var}) {
    if (training && t != nullptr && (!t->contiguous() || t->storage->read_only)) return run_composite(c);
  }
  const Owned x = contiguous(input), weight = contiguous_or_none(c.args[1]), bias = contiguous_or_none(c.args[2]);
  const Owned mean_in = contiguous_or_none(c.args[3]), var_in = contiguous_or_none(c.args[4]);
  Owned y = empty_like(input), mean = empty(1, &size.channels, input->dtype),
        scale = empty(1, &size.channels, input->dtype);
  if (!x || !y || !mean || !scale || PyErr_Occurred()) return nullptr;
  const BatchNorm b{size.outer,
                    size.channels,
                    size.inner,
                    x.data(),
                    weight.data(),
                    bias.data(),
                    y.data(),
                    mean.data(),
                    scale.data(),
                    mean_in.data(),
                    var_in.data(),
                    training,
                    c.args[6].to_double(),
                    c.args[7].to_double()};
  if (!run_unlocked(input->numel, [&] { norm_kernels().batch_norm[type_index(input->dtype)](b); })) return nullptr;
  if (training) {
    for (Tensor* t : {running_mean, running_var}) {
      if (t != nullptr) ++t->storage->version;
    }
  }
  return tuple_of({&y, &mean, &scale});
}

// nn::channel_norm_backward(output_grad, input, weight, mean, scale, training)
PyObject* batch_norm_backward_kernel(Call& c) {
  Tensor *grad = c.args[0].tensor, *input = c.args[1].tensor, *mean = c.args[3].tensor, *scale = c.args[4].tensor;
  if (!is_native(input) || input->ndim < 2 || input->numel == 0 || grad->dtype != input->dtype) return run_composite(c);
  if (grad->numel != input->numel) return fail(c, "output_grad and input do not fit");
  const Channels size(input);
  for (int i = 2; i < 5; ++i) {
    if (!fits(c.args[i], input->dtype, size.channels)) return run_composite(c);
  }
  const Owned dy = contiguous(grad), x = contiguous(input), weight = contiguous_or_none(c.args[2]);
  const Owned means = contiguous(mean), scales = contiguous(scale);
  Owned dx = empty_like(input), dweight = empty(1, &size.channels, input->dtype),
        dbias = empty(1, &size.channels, input->dtype);
  if (!dy || !x || !means || !scales || !dx || !dweight || !dbias || PyErr_Occurred()) return nullptr;
  const BatchNormBackward b{size.outer,   size.channels, size.inner, x.data(),       dy.data(),    weight.data(),
                            means.data(), scales.data(), dx.data(),  dweight.data(), dbias.data(), c.args[5].to_bool()};
  if (!run_unlocked(input->numel, [&] { norm_kernels().batch_norm_backward[type_index(input->dtype)](b); }))
    return nullptr;
  return tuple_of({&dx, &dweight, &dbias});
}

// How the rows of an input and its weights lie; false where length, period and repeat do not divide it.
bool read_rows(const Tensor* input, const Arg& length, const Arg& period, const Arg& repeat, RowNorm* r) {
  r->length = length.to_int(), r->period = period.to_int(), r->repeat = repeat.to_int();
  if (r->length < 1 || r->period < 1 || r->repeat < 1 || input->numel % r->length != 0 || r->length % r->repeat != 0)
    return false;
  r->rows = input->numel / r->length;
  return r->rows % r->period == 0;
}

// nn::row_norm(input, weight, bias, length, period, repeat, eps, centred)
PyObject* row_norm_kernel(Call& c) {
  Tensor* input = c.args[0].tensor;
  if (!is_native(input) || input->numel == 0) return run_composite(c);
  RowNorm r{};
  if (!read_rows(input, c.args[3], c.args[4], c.args[5], &r))
    return fail(c, "length, period and repeat do not fit the input");
  const int64_t weights = r.length / r.repeat * r.period;
  if (!fits(c.args[1], input->dtype, weights) || !fits(c.args[2], input->dtype, weights)) return run_composite(c);
  const Owned x = contiguous(input), weight = contiguous_or_none(c.args[1]), bias = contiguous_or_none(c.args[2]);
  Owned y = empty_like(input), mean = empty(1, &r.rows, input->dtype), scale = empty(1, &r.rows, input->dtype);
  if (!x || !y || !mean || !scale || PyErr_Occurred()) return nullptr;
  r.x = x.data(), r.weight = weight.data(), r.bias = bias.data(), r.y = y.data(), r.mean = mean.data(),
  r.scale = scale.data();
  r.eps = c.args[6].to_double(), r.centred = c.args[7].to_bool();
  if (!run_unlocked(input->numel, [&] { norm_kernels().row_norm[type_index(input->dtype)](r); })) return nullptr;
  return tuple_of({&y, &mean, &scale});
}

// nn::row_norm_backward(output_grad, input, weight, mean, scale, length, period, repeat, centred)
PyObject* row_norm_backward_kernel(Call& c) {
  Tensor *grad = c.args[0].tensor, *input = c.args[1].tensor, *weight = tensor_or_null(c.args[2]);
  RowNorm r{};
  if (!is_native(input) || grad->dtype != input->dtype || input->numel == 0) return run_composite(c);
  if (grad->numel != input->numel || !read_rows(input, c.args[5], c.args[6], c.args[7], &r)) {
    return fail(c, "output_grad, input, length, period and repeat do not fit");
  }
  const int64_t weights = r.length / r.repeat * r.period;
  if (!fits(c.args[2], input->dtype, weights) || !fits(c.args[3], input->dtype, r.rows) ||
      !fits(c.args[4], input->dtype, r.rows)) {
    return run_composite(c);
  }
  const Owned dy = contiguous(grad), x = contiguous(input), w = contiguous_or_none(c.args[2]);
  const Owned mean = contiguous(c.args[3].tensor), scale = contiguous(c.args[4].tensor);
  Owned dx = empty_like(input), dweight, dbias;
  if (weight != nullptr) dweight = empty_like(weight);
  dbias = weight != nullptr ? empty_like(weight) : empty(1, &weights, input->dtype);
  if (!dy || !x || !mean || !scale || !dx || !dbias || PyErr_Occurred()) return nullptr;
  const RowNormBackward b{r.rows,         r.length,     r.period,           r.repeat,     x.data(),
                          dy.data(),      w.data(),     mean.data(),        scale.data(), dx.data(),
                          dweight.data(), dbias.data(), c.args[8].to_bool()};
  if (!run_unlocked(input->numel, [&] { norm_kernels().row_norm_backward[type_index(input->dtype)](b); }))
    return nullptr;
  return tuple_of({&dx, &dweight, &dbias});
}

// The first of the tuple that `op` returns.
PyObject* first_of(const Op* op, Arg* args, int n) {
  const Owned all(api->call(op, args, n));
  return all ? Py_NewRef(PyTuple_GET_ITEM(all.get(), 0)) : nullptr;
}

// batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled)
PyObject* batch_norm_call(Call& c) {
  static const Op* channel_norm = api->find_op("nn::channel_norm");
  const Tensor* input = c.args[0].tensor;
  bool plain = input->ndim >= 2 && is_native(input);
  for (int i = 1; plain && i < 5; ++i) plain = fits(c.args[i], input->dtype, input->sizes[1]);
  return plain ? first_of(channel_norm, c.args, 8) : run_composite(c);
}

// layer_norm(input, normalized_shape, weight, bias, eps, cudnn_enable)
PyObject* layer_norm_call(Call& c) {
  static const Op* row_norm = api->find_op("nn::row_norm");
  const Tensor* input = c.args[0].tensor;
  const Arg& shape = c.args[1];
  bool plain = is_native(input) && shape.kind == Kind::Ints && shape.count > 0 && shape.count <= input->ndim;
  int64_t length = 1;
  const auto same = [&](const Tensor* t) {
    bool equal = t->ndim >= shape.count && t->dtype == input->dtype;
    for (int d = 0; equal && d < shape.count; ++d) equal = t->sizes[t->ndim - shape.count + d] == shape.ints[d];
    return equal;
  };
  plain = plain && same(input);
  for (int i = 2; plain && i < 4; ++i)
    plain = !c.args[i].is_tensor() || (c.args[i].tensor->ndim == shape.count && same(c.args[i].tensor));
  if (!plain) return run_composite(c);
  for (int d = 0; d < shape.count; ++d) length *= shape.ints[d];
  Arg args[] = {c.args[0], c.args[2], c.args[3], arg(length), arg(int64_t{1}), arg(int64_t{1}), c.args[4], arg(true)};
  return first_of(row_norm, args, 8);
}

}  // namespace

bool register_norm() {
  return api->register_kernel("batch_norm", "cpu", batch_norm_call) == 0 &&
         api->register_kernel("layer_norm", "cpu", layer_norm_call) == 0 &&
         api->register_kernel("nn::channel_norm", "cpu", batch_norm_kernel) == 0 &&
         api->register_kernel("nn::channel_norm_backward", "cpu", batch_norm_backward_kernel) == 0 &&
         api->register_kernel("nn::row_norm", "cpu", row_norm_kernel) == 0 &&
         api->register_kernel("nn::row_norm_backward", "cpu", row_norm_backward_kernel) == 0;
}

}  // namespace rl
