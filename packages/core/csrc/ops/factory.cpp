// Tensors from nothing: empty, full and their kin; arange, linspace, eye.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "../determinism.h"
#include "../kernels/copy.h"
#include "../parallel.h"
#include "ops.h"

namespace rl {

namespace {

DType dtype_or(const Arg& a, DType otherwise) { return a.kind == Kind::DType ? a.dtype : otherwise; }

const Arg& param(const Call& c, const char* name) {
  for (int i = 0; i < c.op->nparams; ++i)
    if (!std::strcmp(c.op->params[i].name, name)) return c.args[i];
  static const Arg none;
  return none;
}

// What `layout=` asks for where that is not strided memory, which `zero` says to be of zeros; else null.
PyObject* of_layout(const Call& c, const Arg& dtype, int ndim, const int64_t* sizes, DType otherwise, bool zero) {
  const Arg& layout = (&dtype)[1];  // every factory has them side by side
  if (layout.kind != Kind::Object || layout.object == strided_layout()) return nullptr;
  if (!zero) fail(PyExc_RuntimeError, "full(...) is not implemented for sparse layout: %s. Use zeros.", c.op->name);
  Ref<> module = Ref<>::check(PyImport_ImportModule("rushlight.sparse"));
  Ref<> size(size_object(ndim, sizes)), device(device_object(c.device));
  return Ref<>::check(PyObject_CallMethod(module.get(), "empty_of_layout", "OOOO", layout.object, size.get(),
                                          dtype_object(dtype_or(dtype, otherwise)), device.get()))
      .release();
}

}  // namespace

void fill_unknown(Tensor* t) {
  if (is_inexact(t->dtype)) return fill(t, arg(std::numeric_limits<double>::quiet_NaN()));
  Value largest{};
  store_limit(t->dtype, true, &largest);
  int64_t bits = 0;
  std::memcpy(&bits, largest.bytes, static_cast<size_t>(itemsize(t->dtype)));
  fill(t, arg(bits));
}

namespace {

// The tensor, whose memory holds a known value where determinism asks for one.
PyObject* uninitialized(Ref<Tensor> t) {
  if (g_determinism.on && g_determinism.fills_memory) fill_unknown(t.get());
  return t.release_object();
}

PyObject* empty_kernel(Call& c) {
  const Arg& dtype = param(c, "dtype");
  if (PyObject* r = of_layout(c, dtype, c.args[0].count, c.args[0].ints, g_default_dtype, true)) return r;
  DType d = dtype_or(dtype, g_default_dtype);
  MemoryFormat format = memory_format_from(param(c, "memory_format"), MemoryFormat::Contiguous);
  if (format == MemoryFormat::Contiguous) return uninitialized(empty(c.args[0].count, c.args[0].ints, d, c.device));
  Ref<Tensor> shape = empty(c.args[0].count, c.args[0].ints, d, {kMeta, -1});
  return uninitialized(empty_formatted(shape.get(), d, c.device, format));
}

template <int value>
PyObject* constant_kernel(Call& c) {
  const Arg& dtype = param(c, "dtype");
  if (PyObject* r = of_layout(c, dtype, c.args[0].count, c.args[0].ints, g_default_dtype, !value)) return r;
  return full(c.args[0].count, c.args[0].ints, dtype_or(dtype, g_default_dtype), c.device, arg(int64_t{value}))
      .release_object();
}

PyObject* full_kernel(Call& c) {
  DType d = dtype_or(param(c, "dtype"), number_dtype(c.args[1]));
  return full(c.args[0].count, c.args[0].ints, d, c.device, c.args[1]).release_object();
}

Ref<Tensor> like(const Call& c) {
  Tensor* t = c.args[0].tensor;
  return empty_formatted(t, dtype_or(param(c, "dtype"), t->dtype), c.device,
                         memory_format_from(param(c, "memory_format"), MemoryFormat::Preserve));
}

PyObject* like_of_layout(const Call& c, bool zero) {
  const Tensor* t = c.args[0].tensor;
  return of_layout(c, param(c, "dtype"), t->ndim, t->sizes, t->dtype, zero);
}

PyObject* empty_like_kernel(Call& c) {
  if (PyObject* r = like_of_layout(c, true)) return r;
  return uninitialized(like(c));
}

template <int value>
PyObject* constant_like_kernel(Call& c) {
  if (PyObject* r = like_of_layout(c, !value)) return r;
  Ref<Tensor> r = like(c);
  fill(r.get(), arg(int64_t{value}));
  return r.release_object();
}

PyObject* full_like_kernel(Call& c) {
  if (PyObject* r = like_of_layout(c, false)) return r;
  Ref<Tensor> r = like(c);
  fill(r.get(), c.args[1]);
  return r.release_object();
}

// new_zeros(self, size, …) and its kin: dtype and device of the tensor unless given.
PyObject* new_empty_kernel(Call& c) {
  return uninitialized(
      empty(c.args[1].count, c.args[1].ints, dtype_or(param(c, "dtype"), c.args[0].tensor->dtype), c.device));
}

template <int value>
PyObject* new_constant_kernel(Call& c) {
  return full(c.args[1].count, c.args[1].ints, dtype_or(param(c, "dtype"), c.args[0].tensor->dtype), c.device,
              arg(int64_t{value}))
      .release_object();
}

PyObject* new_full_kernel(Call& c) {
  return full(c.args[1].count, c.args[1].ints, dtype_or(param(c, "dtype"), c.args[0].tensor->dtype), c.device,
              c.args[2])
      .release_object();
}

PyObject* new_empty_strided_kernel(Call& c) {
  Arg args[3] = {c.args[1], c.args[2]};
  if (args[0].count != args[1].count)
    fail(PyExc_RuntimeError,
         "new_empty_strided: dimensionality of sizes (%d) must match dimensionality of strides (%d)", args[0].count,
         args[1].count);
  return uninitialized(empty_strided(args[0].count, args[0].ints, args[1].ints,
                                     dtype_or(param(c, "dtype"), c.args[0].tensor->dtype), c.device));
}

PyObject* empty_strided_kernel(Call& c) {
  if (c.args[0].count != c.args[1].count)
    fail(PyExc_RuntimeError, "empty_strided: sizes and strides must have as many entries, got size=%s and stride=%s",
         shape_text(c.args[0].count, c.args[0].ints).c_str(), shape_text(c.args[1].count, c.args[1].ints).c_str());
  return uninitialized(empty_strided(c.args[0].count, c.args[0].ints, c.args[1].ints,
                                     dtype_or(param(c, "dtype"), g_default_dtype), c.device));
}

// Kernels that fill host memory; other devices get a copy of it.
template <class F>
PyObject* filled(const Call& c, int64_t n, DType d, F&& fill_host) {
  Ref<Tensor> r = empty(1, &n, d, c.device.type == kMeta ? c.device : Device{kCPU, -1});
  if (r->data && n) fill_host(r->data);
  if (r->device == c.device) return r.release_object();
  Ref<Tensor> moved = empty(1, &n, d, c.device);
  copy_into(moved.get(), r.get());
  return moved.release_object();
}

PyObject* arange_kernel(Call& c) {
  const Arg &start = param(c, "start"), &end = param(c, "end"), &step = param(c, "step");
  Arg from = start.none() ? arg(int64_t{0}) : start, by = step.none() ? arg(int64_t{1}) : step;
  for (const Arg* a : {static_cast<const Arg*>(&from), &end, static_cast<const Arg*>(&by)})
    if (a->kind == Kind::Complex) fail(PyExc_RuntimeError, "arange: complex bounds have no order. Give real numbers.");
  bool integral = from.kind != Kind::Float && end.kind != Kind::Float && by.kind != Kind::Float;
  DType d = dtype_or(param(c, "dtype"), integral ? DType::Int64 : g_default_dtype);
  if (d == DType::Bool || is_complex(d))
    fail(PyExc_NotImplementedError, "\"arange_cpu\" not implemented for '%s'", legacy_name(d));
  double a = from.to_double(), b = end.to_double(), s = by.to_double();
  if (s == 0) fail(PyExc_RuntimeError, "step must be nonzero");
  if (is_integral(d) && by.to_int() == 0)
    fail(PyExc_ValueError, "step must be nonzero, got step=%g for dtype %s", s, name(d));
  if (!std::isfinite(a) || !std::isfinite(b)) fail(PyExc_RuntimeError, "unsupported range: %g -> %g", a, b);
  if ((s > 0) != (b >= a) && a != b)
    fail(PyExc_RuntimeError, "upper bound and lower bound inconsistent with step sign, got start=%g, end=%g, step=%g",
         a, b, s);
  double size;
  if (integral || d == DType::Int64) {  // PyTorch takes the integer parts of floating bounds for int64 alone
    int64_t range = end.to_int() - from.to_int(), step_int = by.to_int();
    size = static_cast<double>(range / step_int + (range % step_int != 0));
  } else {
    size = std::ceil((b - a) / s);
  }
  if (!(size >= 0 && size < 9e18))
    fail(PyExc_RuntimeError, "invalid size, possible overflow? got start=%g, end=%g, step=%g", a, b, s);
  auto n = static_cast<int64_t>(size);
  checked_numel(1, &n);
  return filled(c, n, d, [&](char* data) {
    Unlocked unlocked(n > kUnlockAbove);
    if (is_integral(d))
      fill_arange(d, data, n, from.to_int(), by.to_int());
    else
      fill_arange(d, data, n, a, s);
  });
}

// The real and the imaginary parts of a complex range are two ranges.
void fill_complex_linspace(DType d, char* data, int64_t n, const Arg& start, const Arg& end) {
  const DType real = real_of(d);
  const int64_t size = itemsize(real);
  const auto imaginary = [](const Arg& a) { return a.kind == Kind::Complex ? a.imag : 0.0; };
  const Ref<Tensor> part = empty(1, &n, real, {kCPU, -1});
  for (int k = 0; k < 2; ++k) {
    fill_linspace(real, part->data, n, k ? imaginary(start) : start.to_double(), k ? imaginary(end) : end.to_double());
    for (int64_t i = 0; i < n; ++i) std::memcpy(data + (2 * i + k) * size, part->data + i * size, size);
  }
}

PyObject* linspace_kernel(Call& c) {
  const Arg &start = c.args[0], &end = c.args[1];
  int64_t n = c.args[2].i;
  if (n < 0)
    fail(PyExc_RuntimeError, "number of steps must be non-negative, got steps=%lld", static_cast<long long>(n));
  const bool complex = start.kind == Kind::Complex || end.kind == Kind::Complex;
  DType d = dtype_or(param(c, "dtype"), complex ? complex_of(g_default_dtype) : g_default_dtype);
  if (complex && !is_complex(d))
    fail(PyExc_RuntimeError,
         "torch.linspace(): inferred dtype %s can't be safely cast to passed dtype %s. Give a complex dtype.",
         legacy_name(complex_of(g_default_dtype)), legacy_name(d));
  if (d == DType::Bool) fail(PyExc_NotImplementedError, "\"linspace_cpu\" not implemented for '%s'", legacy_name(d));
  return filled(c, n, d, [&](char* data) {
    if (is_complex(d))
      fill_complex_linspace(d, data, n, start, end);
    else if (is_integral(d))  // as in PyTorch both ends are whole numbers first, so that the last one is reached
      fill_linspace(d, data, n, std::trunc(start.to_double()), std::trunc(end.to_double()));
    else
      fill_linspace(d, data, n, start.to_double(), end.to_double());
  });
}

PyObject* eye_kernel(Call& c) {
  int64_t n = c.args[0].i, m = c.args[1].none() ? n : c.args[1].i;
  if (n < 0 || m < 0)
    fail(PyExc_RuntimeError, "%s must be greater or equal to 0, got %lld", n < 0 ? "n" : "m",
         static_cast<long long>(n < 0 ? n : m));
  int64_t sizes[2] = {n, m};
  Ref<Tensor> r = full(2, sizes, dtype_or(param(c, "dtype"), g_default_dtype), c.device, arg(int64_t{0}));
  int64_t k = std::min(n, m), stride = m + 1;
  if (k) {
    Ref<Tensor> diagonal = view(r.get(), 1, &k, &stride, 0);
    fill(diagonal.get(), arg(int64_t{1}));
  }
  return r.release_object();
}

__extension__ using Wide = __int128;

// Elements in the first `rows` rows of a matrix that lie on or below a diagonal.
Wide below(Wide rows, Wide columns, Wide diagonal) {
  const Wide first = std::clamp<Wide>(-diagonal, 0, rows), full = std::clamp<Wide>(columns - diagonal - 1, first, rows);
  return (full - first) * (first + full + 1 + 2 * diagonal) / 2 + (rows - full) * columns;
}

// tril_indices, triu_indices (row, col, offset, *, ...)
template <bool lower>
PyObject* triangle_indices_kernel(Call& c) {
  const int64_t rows = c.args[0].i, columns = c.args[1].i, offset = c.args[2].i;
  if (rows < 0 || columns < 0)
    fail(PyExc_RuntimeError, "%s must be non-negative, got%lld", rows < 0 ? "row" : "col",
         static_cast<long long>(rows < 0 ? rows : columns));
  const auto before = [=](int64_t row) {
    return lower ? below(row, columns, offset) : Wide{row} * columns - below(row, columns, Wide{offset} - 1);
  };
  if (before(rows) > std::numeric_limits<int64_t>::max())
    fail(PyExc_RuntimeError, "%s: the number of elements overflows 64 bits, got row=%lld and col=%lld.", c.op->name,
         static_cast<long long>(rows), static_cast<long long>(columns));
  const int64_t n = static_cast<int64_t>(before(rows)), sizes[] = {2, n};
  const DType dtype = dtype_or(param(c, "dtype"), DType::Int64);
  if (c.device.type == kMeta) return empty(2, sizes, dtype, c.device).release_object();
  Ref<Tensor> r = empty(2, sizes, DType::Int64, {kCPU, -1});
  if (n) {
    // Of the rows that have elements.
    const int64_t first = static_cast<int64_t>(lower ? std::clamp<Wide>(-Wide{offset}, 0, rows) : 0);
    const int64_t last = static_cast<int64_t>(lower ? rows : std::clamp<Wide>(Wide{columns} - offset, 0, rows));
    auto* places = reinterpret_cast<int64_t*>(r->data);
    Unlocked unlocked(n > kUnlockAbove);
    parallel_for(first, last, kUnlockAbove / columns + 1, [&](int64_t begin, int64_t end) {
      int64_t at = static_cast<int64_t>(before(begin));
      for (int64_t i = begin; i < end; ++i) {
        const auto edge = static_cast<int64_t>(std::clamp<Wide>(Wide{i} + offset + lower, 0, columns));
        for (int64_t j = lower ? 0 : edge, stop = lower ? edge : columns; j < stop; ++j, ++at) {
          places[at] = i;
          places[n + at] = j;
        }
      }
    });
  }
  r = to_dtype(r.get(), dtype);
  if (r->device == c.device) return r.release_object();
  Ref<Tensor> moved = empty(2, sizes, dtype, c.device);
  copy_into(moved.get(), r.get());
  return moved.release_object();
}

}  // namespace

void register_factory_ops() {
  static const Native natives[] = {{"empty", empty_kernel, true},
                                   {"zeros", constant_kernel<0>, true},
                                   {"ones", constant_kernel<1>, true},
                                   {"full", full_kernel, true},
                                   {"empty_like", empty_like_kernel, true},
                                   {"zeros_like", constant_like_kernel<0>, true},
                                   {"ones_like", constant_like_kernel<1>, true},
                                   {"full_like", full_like_kernel, true},
                                   {"empty_strided", empty_strided_kernel, true},
                                   {"arange", arange_kernel, true},
                                   {"arange.start", arange_kernel, true},
                                   {"arange.start_step", arange_kernel, true},
                                   {"new_empty", new_empty_kernel, true},
                                   {"new_zeros", new_constant_kernel<0>, true},
                                   {"new_ones", new_constant_kernel<1>, true},
                                   {"new_full", new_full_kernel, true},
                                   {"new_empty_strided", new_empty_strided_kernel, true},
                                   {"linspace", linspace_kernel, true},
                                   {"eye", eye_kernel, true},
                                   {"tril_indices", triangle_indices_kernel<true>, true},
                                   {"triu_indices", triangle_indices_kernel<false>, true}};
  register_natives(natives, sizeof natives / sizeof *natives);
}

}  // namespace rl
