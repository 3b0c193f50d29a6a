// Kernels of resampling, grids and windows of images.
#include "bind.h"
#include "kernels/image.h"
#include "kernels/window.h"

namespace rl {
namespace {

PyObject* fail(const Call& c, const char* rule) {
  PyErr_Format(PyExc_RuntimeError, "%s: %s.", c.op->name, rule);
  return nullptr;
}

const int64_t* ints(const Owned& t) { return reinterpret_cast<const int64_t*>(t.data()); }

int64_t product(const int64_t* sizes, int begin, int end) {
  int64_t total = 1;
  for (int d = begin; d < end; ++d) total *= sizes[d];
  return total;
}

// -- along lines

// What resample and its adjoint share: `in` and `out` are the sizes of the dimension on the two sides.
struct Lines {
  Owned places, weights;
  Resample r;

  // False with an exception where the arguments do not fit.
  bool read(Call& c, int dim, int64_t in) {
    const Tensor *input = c.args[0].tensor, *by = c.args[2].tensor;
    Tensor* at = c.args[1].tensor;
    if (at->dtype != DType::Int64 || at->ndim != 2 || by->ndim != 2 || by->sizes[0] != at->sizes[0] ||
        by->sizes[1] != at->sizes[1] || at->sizes[1] == 0) {
      return fail(c, "places and weights are two matrices of one shape, places of int64") != nullptr;
    }
    places = contiguous(at), weights = contiguous(c.args[2].tensor);
    if (!places || !weights) return false;
    for (int64_t i = 0; i < places->numel; ++i) {
      if (ints(places)[i] < 0 || ints(places)[i] >= in) return fail(c, "a place is out of range") != nullptr;
    }
    r = {product(input->sizes, 0, dim),
         in,
         at->sizes[0],
         product(input->sizes, dim + 1, input->ndim),
         at->sizes[1],
         ints(places),
         weights.data()};
    return true;
  }
};

int dimension(const Call& c) {
  const int64_t dim = c.args[3].to_int(), ndim = c.args[0].tensor->ndim;
  return dim < -ndim || dim >= ndim ? -1 : static_cast<int>(dim < 0 ? dim + ndim : dim);
}

// nn::resample(input, places, weights, dim) and nn::resample_adjoint(input, places, weights, dim, size)
template <bool adjoint>
PyObject* resample_kernel(Call& c) {
  Tensor* input = c.args[0].tensor;
  const int dim = dimension(c);
  if (!is_native(input) || dim < 0 || c.args[2].tensor->dtype != input->dtype) return run_composite(c);
  const int64_t size = adjoint ? c.args[4].to_int() : 0, own = input->sizes[dim];
  if (size < 0) return fail(c, "size must not be negative");
  Lines lines;
  if (!lines.read(c, dim, adjoint ? size : own)) return nullptr;
  if (adjoint && own != lines.r.out) return fail(c, "places do not fit the input");
  int64_t sizes[kMaxRank];
  for (int d = 0; d < input->ndim; ++d) sizes[d] = input->sizes[d];
  sizes[dim] = adjoint ? size : lines.r.out;
  const Owned x = contiguous(input);
  Owned y = empty(input->ndim, sizes, input->dtype);
  if (!x || !y) return nullptr;
  const auto run = [&] {
    if (adjoint) return resample_adjoint(y->dtype, lines.r, x.data(), y.data());
    image_kernels().resample[type_index(y->dtype)](lines.r, x.data(), y.data());
  };
  if (y->numel != 0 && !run_unlocked(x->numel + y->numel, run)) return nullptr;
  return y.release();
}

// -- at the places of a grid

// False without an exception where the portable definition serves.
bool read_grid(const Call& c, int first, GridShape* s) {
  const Tensor *input = c.args[first].tensor, *grid = c.args[first + 1].tensor;
  const int n = input->ndim - 2;
  const int64_t mode = c.args[first + 2].to_int(), padding = c.args[first + 3].to_int();
  if (!is_native(input) || grid->dtype != input->dtype || (n != 2 && n != 3) || grid->ndim < 2 ||
      grid->sizes[0] != input->sizes[0] || grid->sizes[grid->ndim - 1] != n || mode < 0 || mode > 2 || padding < 0 ||
      padding > 2 || (n == 3 && mode == 2)) {
    return false;
  }
  *s = {input->sizes[0],
        input->sizes[1],
        product(grid->sizes, 1, grid->ndim - 1),
        n,
        {1, 1, 1},
        static_cast<GridMode>(mode),
        static_cast<GridPadding>(padding),
        c.args[first + 4].to_bool()};
  for (int d = 0; d < n; ++d) s->size[d] = input->sizes[2 + d];
  const int64_t plane = product(input->sizes, 2, input->ndim);
  return plane > 0 && plane < INT32_MAX;  // flat positions are of 32 bits
}

// nn::grid_sample(input, grid, mode, padding, align_corners)
PyObject* grid_sample_kernel(Call& c) {
  GridShape s;
  if (is_half(c.args[0].tensor) && is_half(c.args[1].tensor)) return run_wide(c);
  if (!read_grid(c, 0, &s)) return run_composite(c);
  const Tensor* places = c.args[1].tensor;
  int64_t sizes[kMaxRank] = {s.batch, s.channels};
  for (int d = 1; d < places->ndim - 1; ++d) sizes[d + 1] = places->sizes[d];
  const Owned x = contiguous(c.args[0].tensor), grid = contiguous(c.args[1].tensor);
  Owned y = empty(places->ndim, sizes, x->dtype);
  if (!x || !grid || !y) return nullptr;
  const auto run = image_kernels().grid[type_index(x->dtype)];
  if (y->numel != 0 && !run_unlocked(x->numel + y->numel, [&] { run(s, x.data(), grid.data(), y.data()); }))
    return nullptr;
  return y.release();
}

// nn::grid_sample_backward(output_grad, input, grid, mode, padding, align_corners, of_input, of_grid)
PyObject* grid_sample_backward_kernel(Call& c) {
  GridShape s;
  const Tensor *dy = c.args[0].tensor, *input = c.args[1].tensor;
  if (is_half(dy) && is_half(input)) return run_wide(c);
  if (!read_grid(c, 1, &s) || dy->dtype != input->dtype) return run_composite(c);
  if (dy->numel != s.batch * s.channels * s.points) return fail(c, "output_grad does not fit");
  const Owned grad = contiguous(c.args[0].tensor), x = contiguous(c.args[1].tensor),
              grid = contiguous(c.args[2].tensor);
  Owned dx = c.args[6].to_bool() ? empty_like(input) : Owned();
  Owned dgrid = c.args[7].to_bool() ? empty_like(c.args[2].tensor) : Owned();
  if (!grad || !x || !grid || PyErr_Occurred()) return nullptr;
  const int type = type_index(x->dtype);
  if (!run_unlocked(x->numel + dy->numel, [&] {
        if (dx) image_kernels().grid_backward_input[type](s, grid.data(), grad.data(), dx.data());
        if (dgrid) image_kernels().grid_backward_grid[type](s, x.data(), grid.data(), grad.data(), dgrid.data());
      })) {
    return nullptr;
  }
  return tuple_of({&dx, &dgrid});
}

// -- windows

bool is_sizes(const Arg& a, int n, int64_t least) {
  if (a.kind != Kind::Ints || a.count != n) return false;
  for (int i = 0; i < n; ++i) {
    if (a.ints[i] < least || a.ints[i] > int64_t{1} << 30) return false;
  }
  return true;
}

// The windows of images of `sizes`, from the arguments kernel_size, stride, padding, dilation, count.
bool read_windows(const Call& c, int first, const int64_t* sizes, int ndim, PoolShape* s) {
  const int n = c.args[first].count;
  if (c.args[first].kind != Kind::Ints || n < 1 || n > 3 || ndim < n + 1) return false;
  for (int i = 0; i < 5; ++i) {
    if (!is_sizes(c.args[first + i], n, i == 2 ? 0 : 1)) return false;
  }
  *s = {product(sizes, 0, ndim - n), {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}};
  for (int i = 0; i < n; ++i) {
    const int d = 3 - n + i;
    s->in[d] = sizes[ndim - n + i];
    s->kernel[d] = c.args[first].ints[i], s->stride[d] = c.args[first + 1].ints[i];
    s->padding[d] = c.args[first + 2].ints[i], s->dilation[d] = c.args[first + 3].ints[i];
    s->out[d] = c.args[first + 4].ints[i];
    const int64_t reach = (s->out[d] - 1) * s->stride[d] + (s->kernel[d] - 1) * s->dilation[d] + 1;
    if (reach > s->in[d] + 2 * s->padding[d]) return false;
  }
  return true;
}

// nn::unfold_windows(input, kernel_size, stride, padding, dilation, count)
PyObject* unfold_kernel(Call& c) {
  Tensor* input = c.args[0].tensor;
  PoolShape s;
  if (is_half(input)) return run_wide(c);
  if (!is_native(input)) return run_composite(c);
  if (!read_windows(c, 1, input->sizes, input->ndim, &s))
    return fail(c, "the windows do not fit the input, or are absurdly large");
  const int lead = input->ndim - c.args[1].count - 1;  // dimensions before the channels
  int64_t sizes[kMaxRank];
  for (int d = 0; d < lead; ++d) sizes[d] = input->sizes[d];
  sizes[lead] = input->sizes[lead] * product(s.kernel, 0, 3), sizes[lead + 1] = product(s.out, 0, 3);
  const Owned x = contiguous(input);
  Owned y = empty(lead + 2, sizes, input->dtype);
  if (!x || !y || !run_unlocked(y->numel, [&] { unfold(x->dtype, s, x.data(), y.data()); })) return nullptr;
  return y.release();
}

// nn::fold_windows(input, size, kernel_size, stride, padding, dilation, count)
PyObject* fold_kernel(Call& c) {
  Tensor* input = c.args[0].tensor;
  const Arg& size = c.args[1];
  PoolShape s;
  if (is_half(input)) return run_wide(c);
  if (!is_native(input)) return run_composite(c);
  if (size.kind != Kind::Ints || !is_sizes(size, size.count, 0) || !read_windows(c, 2, size.ints, size.count, &s) ||
      input->numel != s.planes * product(s.kernel, 0, 3) * product(s.out, 0, 3)) {
    return fail(c, "the windows do not fit the size, or are absurdly large");
  }
  const Owned dy = contiguous(input);
  Owned dx = empty(size.count, size.ints, input->dtype);
  if (!dy || !dx || !run_unlocked(dy->numel, [&] { fold(dy->dtype, s, dy.data(), dx.data()); })) return nullptr;
  return dx.release();
}

// nn::max_regions(input, begin, end, count)
PyObject* max_regions_kernel(Call& c) {
  Tensor *input = c.args[0].tensor, *low = c.args[1].tensor, *high = c.args[2].tensor;
  const Arg& count = c.args[3];
  const int n = count.count;
  if (is_half(input)) return run_wide(c);
  if (!is_native(input)) return run_composite(c);
  if (n < 1 || n > 3 || !is_sizes(count, n, 0) || input->ndim < n) return fail(c, "expected one to three sizes");
  PoolShape s{1, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}};
  s.planes = product(input->sizes, 0, input->ndim - n);
  int64_t sizes[kMaxRank], bounds = 0;
  for (int d = 0; d < input->ndim - n; ++d) sizes[d] = input->sizes[d];
  for (int i = 0; i < n; ++i) {
    s.in[3 - n + i] = input->sizes[input->ndim - n + i];
    sizes[input->ndim - n + i] = s.out[3 - n + i] = count.ints[i];
    bounds += count.ints[i];
  }
  for (const Tensor* t : {low, high}) {
    if (t->dtype != DType::Int64 || t->ndim != 2 || t->sizes[1] != bounds || t->sizes[0] != low->sizes[0] ||
        (t->sizes[0] != 1 && t->sizes[0] != s.planes)) {
      return fail(c, "the bounds do not fit the sizes");
    }
  }
  const Owned x = contiguous(input), begins = contiguous(low), ends = contiguous(high);
  Owned y = empty(input->ndim, sizes, input->dtype), index = empty(input->ndim, sizes, DType::Int64);
  if (!x || !begins || !ends || !y || !index) return nullptr;
  if (y->numel == 0) return tuple_of({&y, &index});
  for (int64_t i = 0; i < begins->numel; ++i) {
    int64_t column = i % bounds;
    int d = 3 - n;
    while (column >= s.out[d]) column -= s.out[d++];
    if (ints(begins)[i] < 0 || ints(begins)[i] >= ints(ends)[i] || ints(ends)[i] > s.in[d])
      return fail(c, "a region is empty or outside the input");
  }
  const int64_t stride = begins->sizes[0] == 1 ? 0 : begins->sizes[1];
  if (!run_unlocked(x->numel, [&] {
        max_regions(x->dtype, s, n, ints(begins), ints(ends), stride, x.data(), y.data(),
                    reinterpret_cast<int64_t*>(index.data()));
      })) {
    return nullptr;
  }
  return tuple_of({&y, &index});
}

// -- channels as pixels

// pixel_shuffle(input, upscale_factor) and pixel_unshuffle(input, downscale_factor)
template <bool back>
PyObject* pixel_shuffle_kernel(Call& c) {
  Tensor* input = c.args[0].tensor;
  const int64_t r = c.args[1].to_int();
  const int n = input->ndim;
  if (n < 3 || r < 1 || r > 1 << 15) return run_composite(c);
  int64_t sizes[kMaxRank];
  for (int d = 0; d < n; ++d) sizes[d] = input->sizes[d];
  int64_t &channels = sizes[n - 3], &height = sizes[n - 2], &width = sizes[n - 1];
  if (back ? height % r != 0 || width % r != 0 : channels % (r * r) != 0) return run_composite(c);
  if (back) {
    channels *= r * r, height /= r, width /= r;
  } else {
    channels /= r * r, height *= r, width *= r;
  }
  const Owned x = contiguous(input);
  Owned y = empty(n, sizes, input->dtype);
  if (!x || !y) return nullptr;
  const int64_t* small = back ? sizes : input->sizes;
  const int64_t* few = back ? input->sizes : sizes;
  const PixelShape s{product(few, 0, n - 2), r, small[n - 2], small[n - 1], itemsize(x->dtype)};
  if (y->numel != 0 && !run_unlocked(y->numel, [&] { pixel_shuffle(s, back, x.data(), y.data()); })) return nullptr;
  return y.release();
}

}  // namespace

bool register_image() {
  return api->register_kernel("pixel_shuffle", "cpu", pixel_shuffle_kernel<false>) == 0 &&
         api->register_kernel("pixel_unshuffle", "cpu", pixel_shuffle_kernel<true>) == 0 &&
         api->register_kernel("nn::resample", "cpu", resample_kernel<false>) == 0 &&
         api->register_kernel("nn::resample_adjoint", "cpu", resample_kernel<true>) == 0 &&
         api->register_kernel("nn::grid_sample", "cpu", grid_sample_kernel) == 0 &&
         api->register_kernel("nn::grid_sample_backward", "cpu", grid_sample_backward_kernel) == 0 &&
         api->register_kernel("nn::unfold_windows", "cpu", unfold_kernel) == 0 &&
         api->register_kernel("nn::fold_windows", "cpu", fold_kernel) == 0 &&
         api->register_kernel("nn::max_regions", "cpu", max_regions_kernel) == 0;
}

}  // namespace rl
