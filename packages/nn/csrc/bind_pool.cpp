// Kernels of the pooling ops.
#include "bind.h"
#include "kernels/pool.h"

namespace rl {
namespace {

PyObject* fail(const Call& c, const char* rule) {
  PyErr_Format(PyExc_RuntimeError, "%s: %s.", c.op->name, rule);
  return nullptr;
}

bool is_sizes(const Arg& a, int n, int64_t least) {
  if (a.kind != Kind::Ints || a.count != n) return false;
  for (int i = 0; i < n; ++i) {
    if (a.ints[i] < least || a.ints[i] > int64_t{1} << 40) return false;
  }
  return true;
}

// The planes of a tensor whose last n dimensions are an image; sizes of fewer than three dimensions get leading ones.
PoolShape planes_of(const int64_t* sizes, int ndim, int n) {
  PoolShape s{1, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}};
  for (int d = 0; d < ndim - n; ++d) s.planes *= sizes[d];
  for (int i = 0; i < n; ++i) s.in[3 - n + i] = sizes[ndim - n + i];
  return s;
}

// The windows of a pooling; `count` is what the caller says comes out. Null where they do not fit.
bool read_windows(const Arg& kernel, const Arg& stride, const Arg& padding, const Arg* dilation, const Arg& count,
                  int n, PoolShape* s) {
  if (!is_sizes(kernel, n, 1) || !is_sizes(stride, n, 1) || !is_sizes(padding, n, 0) || !is_sizes(count, n, 1) ||
      (dilation != nullptr && !is_sizes(*dilation, n, 1))) {
    return false;
  }
  for (int i = 0; i < n; ++i) {
    const int d = 3 - n + i;
    s->kernel[d] = kernel.ints[i], s->stride[d] = stride.ints[i], s->padding[d] = padding.ints[i],
    s->out[d] = count.ints[i];
    if (dilation != nullptr) s->dilation[d] = dilation->ints[i];
    // Every window begins before the end of the image, as the shape rule of pooling has it.
    if ((s->out[d] - 1) > (s->in[d] + s->padding[d] - 1) / s->stride[d] ||
        s->padding[d] >= s->kernel[d] * s->dilation[d])
      return false;
  }
  return true;
}

Owned with_image(const Tensor* t, int n, const int64_t* image, DType dtype) {
  int64_t sizes[kMaxRank];
  for (int d = 0; d < t->ndim; ++d) sizes[d] = d < t->ndim - n ? t->sizes[d] : image[d - (t->ndim - n)];
  return empty(t->ndim, sizes, dtype);
}

// nn::max_pool(input, kernel_size, stride, padding, dilation, count)
PyObject* max_pool_kernel(Call& c) {
  Tensor* input = c.args[0].tensor;
  const int n = c.args[1].count;
  if (!is_native(input)) return run_composite(c);
  if (n < 1 || n > 3 || input->ndim < n) return fail(c, "expected windows of one to three dimensions");
  PoolShape s = planes_of(input->sizes, input->ndim, n);
  if (!read_windows(c.args[1], c.args[2], c.args[3], &c.args[4], c.args[5], n, &s))
    return fail(c, "the windows do not fit the input");
  const Owned x = contiguous(input);
  Owned y = with_image(input, n, c.args[5].ints, input->dtype),
        index = with_image(input, n, c.args[5].ints, DType::Int64);
  if (!x || !y || !index) return nullptr;
  if (!run_unlocked(input->numel,
                    [&] { max_pool(input->dtype, s, x.data(), y.data(), reinterpret_cast<int64_t*>(index.data())); })) {
    return nullptr;
  }
  return tuple_of({&y, &index});
}

// nn::max_unpool(input, indices, size, window): adds each element to the place its index names.
PyObject* max_unpool_kernel(Call& c) {
  Tensor *input = c.args[0].tensor, *indices = c.args[1].tensor;
  const Arg& size = c.args[2];
  const int n = c.args[3].count;
  if (!is_native(input) || indices->dtype != DType::Int64) return run_composite(c);
  bool fits = n >= 1 && n <= input->ndim && size.kind == Kind::Ints && size.count == input->ndim &&
              indices->ndim == input->ndim;
  int64_t planes = 1, in = 1, out = 1;
  for (int d = 0; fits && d < input->ndim; ++d) {
    fits = indices->sizes[d] == input->sizes[d] && size.ints[d] >= 0 &&
           (d >= input->ndim - n || size.ints[d] == input->sizes[d]);
    (d < input->ndim - n ? planes : out) *= input->sizes[d];
    if (d >= input->ndim - n) in *= size.ints[d];
  }
  if (!fits) return fail(c, "input, indices and size do not fit");
  const Owned dy = contiguous(input), index = contiguous(indices);
  Owned dx = empty(size.count, size.ints, input->dtype);
  if (!dy || !index || !dx) return nullptr;
  const int64_t* at = reinterpret_cast<const int64_t*>(index.data());
  for (int64_t i = 0; i < index->numel; ++i) {
    if (at[i] < 0 || at[i] >= in) {
      PyErr_Format(PyExc_IndexError, "%s: found an invalid index %lld, the image has %lld elements.", c.op->name,
                   static_cast<long long>(at[i]), static_cast<long long>(in));
      return nullptr;
    }
  }
  if (!run_unlocked(dx->numel, [&] { max_pool_backward(input->dtype, planes, in, out, dy.data(), at, dx.data()); }))
    return nullptr;
  return dx.release();
}

PoolDivisor divisor_kind(bool include_pad, int64_t divisor) {
  return divisor != 0 ? PoolDivisor::Given : include_pad ? PoolDivisor::Padded : PoolDivisor::Inside;
}

// nn::avg_pool(input, kernel_size, stride, padding, count, count_include_pad, divisor)
PyObject* avg_pool_kernel(Call& c) {
  Tensor* input = c.args[0].tensor;
  const int n = c.args[1].count;
  if (!is_native(input)) return run_composite(c);
  if (n < 1 || n > 3 || input->ndim < n) return fail(c, "expected windows of one to three dimensions");
  PoolShape s = planes_of(input->sizes, input->ndim, n);
  if (!read_windows(c.args[1], c.args[2], c.args[3], nullptr, c.args[4], n, &s))
    return fail(c, "the windows do not fit the input");
  const int64_t divisor = c.args[6].to_int();
  const PoolDivisor kind = divisor_kind(c.args[5].to_bool(), divisor);
  const Owned x = contiguous(input);
  Owned y = with_image(input, n, c.args[4].ints, input->dtype);
  if (!x || !y) return nullptr;
  if (!run_unlocked(input->numel, [&] { avg_pool(input->dtype, s, kind, divisor, x.data(), y.data()); }))
    return nullptr;
  return y.release();
}

// nn::avg_unpool(input, size, kernel_size, stride, padding, count, count_include_pad, divisor)
PyObject* avg_unpool_kernel(Call& c) {
  Tensor* input = c.args[0].tensor;
  const Arg &size = c.args[1], &count = c.args[5];
  const int n = c.args[2].count;
  if (!is_native(input)) return run_composite(c);
  if (n < 1 || n > 3 || size.kind != Kind::Ints || size.count != input->ndim || input->ndim < n || count.count != n) {
    return fail(c, "expected windows of one to three dimensions");
  }
  for (int d = 0; d < input->ndim; ++d) {
    const int i = d - (input->ndim - n);
    if (size.ints[d] < 0 || input->sizes[d] != (i < 0 ? size.ints[d] : count.ints[i]))
      return fail(c, "input and size do not fit");
  }
  PoolShape s = planes_of(size.ints, size.count, n);
  if (!read_windows(c.args[2], c.args[3], c.args[4], nullptr, count, n, &s))
    return fail(c, "the windows do not fit the size");
  const int64_t divisor = c.args[7].to_int();
  const PoolDivisor kind = divisor_kind(c.args[6].to_bool(), divisor);
  const Owned dy = contiguous(input);
  Owned dx = empty(size.count, size.ints, input->dtype);
  if (!dy || !dx) return nullptr;
  if (!run_unlocked(dx->numel, [&] { avg_pool_backward(input->dtype, s, kind, divisor, dy.data(), dx.data()); }))
    return nullptr;
  return dx.release();
}

// nn::adaptive_pool(input, output_size) and nn::adaptive_unpool(input, size, output_size)
PyObject* adaptive_pool_kernel(Call& c) {
  Tensor* input = c.args[0].tensor;
  const Arg& out = c.args[1];
  if (!is_native(input)) return run_composite(c);
  if (out.count < 1 || out.count > 3 || input->ndim < out.count || !is_sizes(out, out.count, 0))
    return fail(c, "expected one to three sizes");
  PoolShape s = planes_of(input->sizes, input->ndim, out.count);
  for (int i = 0; i < out.count; ++i) s.out[3 - out.count + i] = out.ints[i];
  const Owned x = contiguous(input);
  Owned y = with_image(input, out.count, out.ints, input->dtype);
  if (!x || !y) return nullptr;
  if (y->numel != 0 && !run_unlocked(input->numel, [&] { adaptive_avg_pool(input->dtype, s, x.data(), y.data()); }))
    return nullptr;
  return y.release();
}

PyObject* adaptive_unpool_kernel(Call& c) {
  Tensor* input = c.args[0].tensor;
  const Arg &size = c.args[1], &out = c.args[2];
  if (!is_native(input)) return run_composite(c);
  if (out.count < 1 || out.count > 3 || input->ndim < out.count || size.count != input->ndim ||
      !is_sizes(size, input->ndim, 0)) {
    return fail(c, "expected one to three sizes");
  }
  for (int d = 0; d < input->ndim; ++d) {
    const int i = d - (input->ndim - out.count);
    if (input->sizes[d] != (i < 0 ? size.ints[d] : out.ints[i])) return fail(c, "input and size do not fit");
  }
  PoolShape s = planes_of(size.ints, size.count, out.count);
  for (int i = 0; i < out.count; ++i) s.out[3 - out.count + i] = out.ints[i];
  const Owned dy = contiguous(input);
  Owned dx = empty(size.count, size.ints, input->dtype);
  if (!dy || !dx) return nullptr;
  if (dx->numel != 0 &&
      !run_unlocked(dx->numel, [&] { adaptive_avg_pool_backward(input->dtype, s, dy.data(), dx.data()); }))
    return nullptr;
  return dx.release();
}

// None, or what stands for it: an empty sequence.
bool is_none(const Arg& a) {
  if (a.kind == Kind::Ints) return a.count == 0;
  if (a.kind != Kind::Object) return a.none();
  return a.object == Py_None ||
         ((PyTuple_Check(a.object) || PyList_Check(a.object)) && PySequence_Fast_GET_SIZE(a.object) == 0);
}

// Windows as users give them.
struct Windows {
  int64_t kernel[3], stride[3], padding[3], dilation[3], count[3];

  // False where they are not plain; then the portable definition serves, which finds the words for what is wrong.
  bool read(const Call& c, int n, const Arg* dilation_arg, bool ceil_mode) {
    const Tensor* input = c.args[0].tensor;
    if (ceil_mode || (input->ndim != n + 1 && input->ndim != n + 2) || !read_sizes(c.args[1], n, kernel) ||
        !read_sizes(is_none(c.args[2]) ? c.args[1] : c.args[2], n, stride) || !read_sizes(c.args[3], n, padding)) {
      return false;
    }
    for (int64_t& d : dilation) d = 1;
    if (dilation_arg != nullptr && !read_sizes(*dilation_arg, n, dilation)) return false;
    for (int d = 0; d < n; ++d) {
      constexpr int64_t limit = 1 << 30;
      if (kernel[d] < 1 || stride[d] < 1 || dilation[d] < 1 || padding[d] < 0 || kernel[d] > limit ||
          dilation[d] > limit || padding[d] > ((kernel[d] - 1) * dilation[d] + 1) / 2) {
        return false;
      }
      const int64_t size = input->sizes[input->ndim - n + d],
                    space = size + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1;
      if (space < 0 || size == 0) return false;
      count[d] = space / stride[d] + 1;
    }
    return input->sizes[input->ndim - n - 1] != 0;
  }
};

// max_pool{1,2,3}d and nn::max_pool{1,2,3}d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
PyObject* max_pool_call(Call& c, int n, bool with_indices) {
  static const Op* max_pool = api->find_op("nn::max_pool");
  Windows w;
  if (!w.read(c, n, &c.args[4], c.args[5].to_bool())) return run_composite(c);
  Arg args[6] = {c.args[0], arg(w.kernel, n), arg(w.stride, n), arg(w.padding, n), arg(w.dilation, n), arg(w.count, n)};
  Owned both(api->call(max_pool, args, 6));
  return with_indices || !both ? both.release() : Py_NewRef(PyTuple_GET_ITEM(both.get(), 0));
}

// avg_pool1d, nn::avg_pool2d and nn::avg_pool3d(input, kernel_size, stride, padding, ceil_mode, count_include_pad,
// divisor_override), the last without one dimension
template <int n>
PyObject* avg_pool_nd(Call& c) {
  static const Op* avg_pool = api->find_op("nn::avg_pool");
  Windows w;
  if (!w.read(c, n, nullptr, c.args[4].to_bool()) || (n > 1 && !c.args[6].none())) return run_composite(c);
  Arg args[7] = {c.args[0],       arg(w.kernel, n), arg(w.stride, n), arg(w.padding, n),
                 arg(w.count, n), c.args[5],        arg(int64_t{0})};
  return api->call(avg_pool, args, 7);
}

template <int n, bool with_indices>
PyObject* max_pool_nd(Call& c) {
  return max_pool_call(c, n, with_indices);
}

}  // namespace

bool register_pool() {
  return api->register_kernel("max_pool1d", "cpu", max_pool_nd<1, false>) == 0 &&
         api->register_kernel("max_pool2d", "cpu", max_pool_nd<2, false>) == 0 &&
         api->register_kernel("max_pool3d", "cpu", max_pool_nd<3, false>) == 0 &&
         api->register_kernel("avg_pool1d", "cpu", avg_pool_nd<1>) == 0 &&
         api->register_kernel("nn::avg_pool2d", "cpu", avg_pool_nd<2>) == 0 &&
         api->register_kernel("nn::avg_pool3d", "cpu", avg_pool_nd<3>) == 0 &&
         api->register_kernel("nn::max_pool1d_with_indices", "cpu", max_pool_nd<1, true>) == 0 &&
         api->register_kernel("nn::max_pool2d_with_indices", "cpu", max_pool_nd<2, true>) == 0 &&
         api->register_kernel("nn::max_pool3d_with_indices", "cpu", max_pool_nd<3, true>) == 0 &&
         api->register_kernel("nn::max_pool", "cpu", max_pool_kernel) == 0 &&
         api->register_kernel("nn::max_unpool", "cpu", max_unpool_kernel) == 0 &&
         api->register_kernel("nn::avg_pool", "cpu", avg_pool_kernel) == 0 &&
         api->register_kernel("nn::avg_unpool", "cpu", avg_unpool_kernel) == 0 &&
         api->register_kernel("nn::adaptive_pool", "cpu", adaptive_pool_kernel) == 0 &&
         api->register_kernel("nn::adaptive_unpool", "cpu", adaptive_unpool_kernel) == 0;
}

}  // namespace rl
