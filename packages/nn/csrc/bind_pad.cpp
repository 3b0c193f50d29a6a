// Kernels of nn::pad_around and its adjoint.
#include "bind.h"
#include "kernels/pad.h"

namespace rl {
namespace {

// The geometry of `padding`, (before, after) from the last dimension on, around a tensor of these sizes; false where it
// does not fit. `out` gets the sizes of the result.
bool read_pad(const int64_t* sizes, int ndim, const Arg& padding, int64_t mode, Pad* s, int64_t* out) {
  constexpr int64_t limit = int64_t{1} << 48;  // keeps sums from overflowing
  if (padding.kind != Kind::Ints || padding.count % 2 != 0 || padding.count / 2 > ndim || mode < 0 || mode > 3)
    return false;
  s->mode = static_cast<PadMode>(mode);
  int first = ndim, last = -1;  // dimensions that change
  PadLine line[Pad::kMostLines];
  for (int d = 0; d < ndim; ++d) {
    const int i = 2 * (ndim - 1 - d);
    const int64_t before = i < padding.count ? padding.ints[i] : 0, after = i < padding.count ? padding.ints[i + 1] : 0;
    if (before < -limit || before > limit || after < -limit || after > limit || sizes[d] > limit) return false;
    line[d] = PadLine(sizes[d], before, after);
    const bool constant = s->mode == PadMode::Constant, reflect = s->mode == PadMode::Reflect;
    const bool changes = before != 0 || after != 0,
               empty = s->mode == PadMode::Circular && line[d].begin == line[d].end && line[d].out > 0;
    if (line[d].out < 0 || (constant && sizes[d] + (before < 0 ? before : 0) + (after < 0 ? after : 0) < 0) ||
        (changes && !constant && (sizes[d] == 0 || empty)) ||
        (changes && reflect && (before >= sizes[d] || after >= sizes[d]))) {
      return false;
    }
    out[d] = line[d].out;
    if (changes) first = first < d ? first : d, last = d;
  }
  if (last < 0) first = last = ndim - 1;
  s->outer = s->inner = 1;
  for (int d = 0; d < first; ++d) s->outer *= sizes[d];
  for (int d = last + 1; d < ndim; ++d) s->inner *= sizes[d];
  s->lines = last - first + 1;
  for (int d = first; d <= last; ++d) s->line[d - first] = line[d];
  return true;
}

// nn::pad_around(self, pad, mode, value)
PyObject* pad_kernel(Call& c) {
  Tensor* input = c.args[0].tensor;
  const Arg& value = c.args[3];
  Pad s;
  int64_t sizes[Pad::kMostLines];
  constexpr int64_t exact = int64_t{1} << 53;  // integers that a double holds
  if ((value.kind == Kind::Int && (value.i > exact || value.i < -exact)) || input->ndim == 0 ||
      input->ndim > Pad::kMostLines || !read_pad(input->sizes, input->ndim, c.args[1], c.args[2].to_int(), &s, sizes)) {
    return run_composite(c);
  }
  bool grows = false;  // else the value is not used and need not fit the dtype
  for (int i = 0; i < c.args[1].count; ++i) grows |= c.args[1].ints[i] > 0;
  const double real = grows ? value.to_double() : 0, imaginary = grows && value.kind == Kind::Complex ? value.imag : 0;
  const Owned x = contiguous(input), fill(api->from_number(real, imaginary, value.kind, input->dtype, {kCPU, -1}));
  Owned y = empty(input->ndim, sizes, input->dtype);
  if (!x || !fill || !y) return nullptr;
  if (y->numel != 0 &&
      !run_unlocked(y->numel, [&] { pad(s, itemsize(input->dtype), x.data(), fill.data(), y.data()); })) {
    return nullptr;
  }
  return y.release();
}

// nn::pad_around_adjoint(grad, size, pad, mode)
PyObject* pad_adjoint_kernel(Call& c) {
  Tensor* grad = c.args[0].tensor;
  const Arg& size = c.args[1];
  Pad s;
  int64_t sizes[Pad::kMostLines];
  bool fits = is_native(grad) && size.kind == Kind::Ints && size.count == grad->ndim && grad->ndim > 0 &&
              grad->ndim <= Pad::kMostLines &&
              read_pad(size.ints, size.count, c.args[2], c.args[3].to_int(), &s, sizes);
  for (int d = 0; fits && d < grad->ndim; ++d) fits = sizes[d] == grad->sizes[d] && size.ints[d] >= 0;
  if (!fits) return run_composite(c);
  const Owned dy = contiguous(grad);
  Owned dx = empty(size.count, size.ints, grad->dtype);
  if (!dy || !dx) return nullptr;
  if (dx->numel != 0 && !run_unlocked(grad->numel, [&] { pad_adjoint(grad->dtype, s, dy.data(), dx.data()); })) {
    return nullptr;
  }
  return dx.release();
}

}  // namespace

bool register_pad() {
  return api->register_kernel("nn::pad_around", "cpu", pad_kernel) == 0 &&
         api->register_kernel("nn::pad_around_adjoint", "cpu", pad_adjoint_kernel) == 0;
}

}  // namespace rl
