// The reduction family: dimensions, dtypes and shapes, then one call of the driver in kernels/reduce.h.
#include "../kernels/reduce.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "../kernels/copy.h"
#include "ops.h"

namespace rl {

static uint64_t all_dims(int ndim) { return ndim == 64 ? ~uint64_t{0} : (uint64_t{1} << ndim) - 1; }

uint64_t dim_mask(const char* op, const Arg& dim, int ndim, bool empty_is_all) {
  if (dim.none() || (dim.kind == Kind::Ints && dim.count == 0)) return dim.none() || empty_is_all ? all_dims(ndim) : 0;
  const int64_t* dims = dim.kind == Kind::Ints ? dim.ints : &dim.i;
  const int count = dim.kind == Kind::Ints ? dim.count : 1;
  uint64_t mask = 0;
  for (int i = 0; i < count; ++i) {
    const uint64_t bit = uint64_t{1} << wrap_dim(op, dims[i], ndim);
    if (mask & bit)
      fail(PyExc_RuntimeError, "dim %lld appears multiple times in the list of dims",
           static_cast<long long>(wrap_dim(op, dims[i], ndim)));
    mask |= bit;
  }
  return mask & all_dims(ndim);  // dimension 0 of a 0-d tensor is none
}

namespace {

struct Shape {
  int ndim = 0;
  int64_t sizes[kMaxRank];
  int64_t reduced = 1;  // elements that become one
};

Shape reduced_shape(const Tensor* t, uint64_t mask, bool keepdim) {
  Shape s;
  for (int d = 0; d < t->ndim; ++d) {
    if (!(mask >> d & 1)) {
      s.sizes[s.ndim++] = t->sizes[d];
    } else {
      s.reduced *= t->sizes[d];
      if (keepdim) s.sizes[s.ndim++] = 1;
    }
  }
  return s;
}

Ref<Tensor> make(const Shape& s, DType dtype, Device device) { return empty(s.ndim, s.sizes, dtype, device); }

[[noreturn]] void not_implemented(const Call& c, DType dtype) {
  fail(PyExc_NotImplementedError, "\"%s\" not implemented for '%s'", c.op->name, legacy_name(dtype));
}

const ReduceKernel& kernel_for(const Call& c, Reduce op, DType dtype) {
  const ReduceKernel& k = find_reduce(op, dtype);
  if (k.acc_size == 0) not_implemented(c, dtype);
  return k;
}

// Reduces memory of `dtype` with the geometry of `t` (strides are those of t's elements) to contiguous `out`.
void reduce_memory(const ReduceKernel& kernel, const char* in, const Tensor* t, uint64_t mask, char* out,
                   const ReduceParams& params) {
  const int64_t size = itemsize(t->dtype);
  Unlocked unlocked(t->numel > kUnlockAbove);
  if (t->contiguous() && mask == all_dims(t->ndim)) return run_reduce(kernel, in, 1, &t->numel, &size, 1, out, params);
  int64_t strides[kMaxRank];
  for (int d = 0; d < t->ndim; ++d) strides[d] = t->strides[d] * size;
  run_reduce(kernel, in, t->ndim, t->sizes, strides, mask, out, params);
}

void reduce_into(const Call& c, Reduce op, const Tensor* t, uint64_t mask, Tensor* out,
                 const ReduceParams& params = {}) {
  const ReduceKernel& kernel = kernel_for(c, op, t->dtype);
  if (c.device.type == kCPU && out->numel) reduce_memory(kernel, t->data, t, mask, out->data, params);
}

Ref<Tensor> with_dtype(const Call& c, Tensor* t, DType dtype) {
  if (t->dtype == dtype) return Ref<Tensor>::borrow(t);
  return c.device.type == kMeta ? empty(t->ndim, t->sizes, dtype, t->device) : to_dtype(t, dtype);
}

bool is_integer_or_bool(DType d) { return !is_inexact(d); }

// ---- sums: (self, dim, keepdim, *, dtype)

enum class Sum { Plain, Mean, Nan };

template <Sum kind>
PyObject* sum_kernel(Call& c) {
  Tensor* self = c.args[0].tensor;
  const bool given = c.args[3].kind == Kind::DType;
  DType out_dtype = given ? c.args[3].dtype : self->dtype;
  if (kind == Sum::Mean && !is_inexact(out_dtype))
    fail(PyExc_RuntimeError,
         "mean(): could not infer output dtype. %s dtype must be either a floating point or complex dtype. Got: %s",
         given ? "Optional" : "Input", legacy_name(out_dtype));
  if (kind == Sum::Nan && is_complex(self->dtype))
    fail(PyExc_RuntimeError, "nansum on CPU does not support complex inputs");
  if (!given && is_integer_or_bool(out_dtype)) out_dtype = DType::Int64;
  // Integers and bool are summed in int64 as they are; every other conversion comes first.
  Ref<Tensor> in = is_integer_or_bool(self->dtype) && out_dtype == DType::Int64 ? Ref<Tensor>::borrow(self)
                                                                                : with_dtype(c, self, out_dtype);
  const uint64_t mask = dim_mask(c.op->name, c.args[1], in->ndim);
  const Shape shape = reduced_shape(in.get(), mask, c.args[2].to_bool());
  const bool narrow = is_integer_or_bool(out_dtype) && out_dtype != DType::Int64;
  Ref<Tensor> out = make(shape, narrow ? DType::Int64 : out_dtype, in->device);
  ReduceParams params;
  if (kind == Sum::Mean) params.divisor = static_cast<double>(shape.reduced);
  reduce_into(c, kind == Sum::Nan && is_inexact(in->dtype) ? Reduce::NanSum : Reduce::Sum, in.get(), mask, out.get(),
              params);
  return narrow ? with_dtype(c, out.get(), out_dtype).release_object() : out.release_object();
}

// prod(self, dim, keepdim, *, dtype)
PyObject* prod_kernel(Call& c) {
  Tensor* self = c.args[0].tensor;
  const DType out_dtype = c.args[3].kind == Kind::DType     ? c.args[3].dtype
                          : is_integer_or_bool(self->dtype) ? DType::Int64
                                                            : self->dtype;
  Ref<Tensor> in = is_integer_or_bool(self->dtype) && out_dtype == DType::Int64 ? Ref<Tensor>::borrow(self)
                                                                                : with_dtype(c, self, out_dtype);
  const uint64_t mask = dim_mask(c.op->name, c.args[1], in->ndim);
  const bool narrow = is_integer_or_bool(out_dtype) && out_dtype != DType::Int64;
  Ref<Tensor> out =
      make(reduced_shape(in.get(), mask, c.args[2].to_bool()), narrow ? DType::Int64 : out_dtype, in->device);
  reduce_into(c, Reduce::Prod, in.get(), mask, out.get());
  return narrow ? with_dtype(c, out.get(), out_dtype).release_object() : out.release_object();
}

// ---- extremes

void check_not_empty(const char* op, const Tensor* t, uint64_t mask, PyObject* error_for_all) {
  if (t->numel) return;
  if (mask == all_dims(t->ndim) && t->ndim != 1)
    fail(error_for_all,
         "%s(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
         "'dim' argument.",
         op);
  for (int d = 0; d < t->ndim; ++d)
    if ((mask >> d & 1) && !t->sizes[d])
      fail(PyExc_IndexError, "%s(): Expected reduction dim %d to have non-zero size.", op, d);
}

// amax, amin: (self, dim, keepdim); max, min: (self)
template <Reduce op>
PyObject* extreme_kernel(Call& c) {
  Tensor* self = c.args[0].tensor;
  const char* name = c.op->name;
  const Arg all;
  const Arg& dim = c.op->nparams > 1 ? c.args[1] : all;
  const uint64_t mask = dim_mask(name, dim, self->ndim);
  if (!self->numel && (dim.none() || dim.count == 0))
    fail(PyExc_RuntimeError,
         "%s(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
         "'dim' argument.",
         name);
  check_not_empty(name, self, mask, PyExc_RuntimeError);
  Ref<Tensor> out =
      make(reduced_shape(self, mask, c.op->nparams > 2 && c.args[2].to_bool()), self->dtype, self->device);
  reduce_into(c, op, self, mask, out.get());
  return out.release_object();
}

// argmax, argmin: (self, dim, keepdim)
template <Reduce op>
PyObject* arg_kernel(Call& c) {
  Tensor* self = c.args[0].tensor;
  const char* name = c.op->name;
  if (is_complex(self->dtype)) fail(PyExc_RuntimeError, "%s(): does not support complex input", name);
  if (self->dtype == DType::Bool) fail(PyExc_RuntimeError, "%s(): does not support bool input", name);
  if (!self->numel && c.args[1].none())
    fail(PyExc_IndexError, "%s(): Expected reduction dim to be specified for input.numel() == 0.", name);
  const uint64_t mask = dim_mask(name, c.args[1], self->ndim);
  check_not_empty(name, self, mask, PyExc_IndexError);
  Ref<Tensor> out = make(reduced_shape(self, mask, c.args[2].to_bool()), DType::Int64, self->device);
  Ref<Tensor> in = c.args[1].none() && c.device.type == kCPU ? contiguous(self) : Ref<Tensor>::borrow(self);
  reduce_into(c, op, in.get(), mask, out.get());
  return out.release_object();
}

// max.dim, min.dim: (self, dim, keepdim) -> (values, indices)
template <Reduce op>
PyObject* extreme_dim_kernel(Call& c) {
  Tensor* self = c.args[0].tensor;
  const char* name = op == Reduce::ArgMax ? "max" : "min";
  if (is_complex(self->dtype)) fail(PyExc_RuntimeError, "%s(): does not support complex input", name);
  const uint64_t mask = dim_mask(name, c.args[1], self->ndim);
  check_not_empty(name, self, mask, PyExc_IndexError);
  const Shape shape = reduced_shape(self, mask, c.args[2].to_bool());
  Ref<Tensor> out[] = {make(shape, self->dtype, self->device), make(shape, DType::Int64, self->device)};
  ReduceParams params;
  params.second = out[0]->data;
  reduce_into(c, op, self, mask, out[1].get(), params);
  return results(c.op, out, 2);
}

// aminmax(self, *, dim, keepdim) -> (min, max)
PyObject* aminmax_kernel(Call& c) {
  Tensor* self = c.args[0].tensor;
  const uint64_t mask = dim_mask("aminmax", c.args[1], self->ndim);
  const Shape shape = reduced_shape(self, mask, c.args[2].to_bool());
  if (!shape.reduced && !c.args[1].none())
    fail(PyExc_IndexError, "aminmax(): Expected reduction dim %lld to have non-zero size.",
         static_cast<long long>(c.args[1].i));
  if (!shape.reduced)
    fail(PyExc_RuntimeError,
         "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.");
  Ref<Tensor> out[] = {make(shape, self->dtype, self->device), make(shape, self->dtype, self->device)};
  reduce_into(c, Reduce::Amin, self, mask, out[0].get());
  reduce_into(c, Reduce::Amax, self, mask, out[1].get());
  return results(c.op, out, 2);
}

// ---- truth: (self, dim, keepdim)

template <Reduce op>
PyObject* truth_kernel(Call& c) {
  Tensor* self = c.args[0].tensor;
  const uint64_t mask = dim_mask(c.op->name, c.args[1], self->ndim, false);
  const DType dtype = self->dtype == DType::UInt8 ? DType::UInt8 : DType::Bool;  // uint8 was PyTorch's first bool
  Ref<Tensor> out = make(reduced_shape(self, mask, c.args[2].to_bool()), dtype, self->device);
  reduce_into(c, op, self, mask, out.get());
  return out.release_object();
}

// count_nonzero(self, dim)
PyObject* count_nonzero_kernel(Call& c) {
  Tensor* self = c.args[0].tensor;
  const uint64_t mask = dim_mask(c.op->name, c.args[1], self->ndim);
  Ref<Tensor> out = make(reduced_shape(self, mask, false), DType::Int64, self->device);
  reduce_into(c, Reduce::CountNonzero, self, mask, out.get());
  return out.release_object();
}

// ---- variance

// The variance of a complex tensor is that of its real part plus that of its imaginary part.
void complex_var(const Tensor* t, uint64_t mask, Tensor* out, Tensor* mean, const ReduceParams& params) {
  const DType real = real_of(t->dtype);
  const ReduceKernel& kernel = find_reduce(Reduce::Var, real);
  const int64_t size = itemsize(real);
  Ref<Tensor> imaginary = empty_like(out, real), part_mean = empty_like(out, real);
  ReduceParams part = params;
  part.second = part_mean->data;
  for (int k = 0; k < 2; ++k) {
    Tensor* target = k == 0 ? out : imaginary.get();
    reduce_memory(kernel, t->data + k * size, t, mask, target->data, part);
    if (!mean) continue;
    const int64_t from = size, to = 2 * size;
    copy_strided(real, mean->data + k * size, &to, real, part_mean->data, &from, 1, &out->numel);
  }
  const auto combine = [&](auto* a, const auto* b) {
    for (int64_t i = 0; i < out->numel; ++i) a[i] = params.square_root ? std::hypot(a[i], b[i]) : a[i] + b[i];
  };
  if (real == DType::Float32)
    combine(reinterpret_cast<float*>(out->data), reinterpret_cast<const float*>(imaginary->data));
  else
    combine(reinterpret_cast<double*>(out->data), reinterpret_cast<const double*>(imaginary->data));
}

// (self, dim, unbiased, keepdim), (self, unbiased) and (self, dim, *, correction, keepdim)
template <bool kRoot, bool kMean>
PyObject* var_kernel(Call& c) {
  Tensor* self = c.args[0].tensor;
  if (!is_inexact(self->dtype))
    fail(PyExc_RuntimeError, "%s only support floating point and complex dtypes",
         kMean ? (kRoot ? "std_mean and var_mean" : "var_mean and std_mean") : "std and var");
  const bool by_correction = c.op->nparams == 4 && !std::strcmp(c.op->params[2].name, "correction");
  const Arg all;
  const Arg& dim = c.op->nparams == 2 ? all : c.args[1];
  ReduceParams params;
  params.square_root = kRoot;
  if (by_correction) {
    params.correction = c.args[2].none() ? 1 : c.args[2].to_double();
  } else {
    params.correction = c.args[c.op->nparams == 2 ? 1 : 2].to_bool() ? 1 : 0;
  }
  const uint64_t mask = dim_mask(c.op->name, dim, self->ndim);
  const Shape shape = reduced_shape(self, mask, c.op->nparams == 4 && c.args[3].to_bool());
  Ref<Tensor> out[2] = {make(shape, real_of(self->dtype), self->device)};
  if (kMean) out[1] = make(shape, self->dtype, self->device);
  if (c.device.type == kCPU && out[0]->numel) {
    if (is_complex(self->dtype)) {
      complex_var(self, mask, out[0].get(), out[1].get(), params);
    } else {
      params.second = kMean ? out[1]->data : nullptr;
      reduce_into(c, Reduce::Var, self, mask, out[0].get(), params);
    }
  }
  if (!kMean) return out[0].release_object();
  return results(c.op, out, 2);
}

// ---- norms: (self, ord, dim, keepdim, *, dtype)

// Squares of doubles overflow and underflow long before their norm does: there it is taken again, of the input times a
// power of two.
void rescue_range(const Call& c, Tensor* in, uint64_t mask, Tensor* out) {
  constexpr double kLeast = 0x1p-480, kMost = std::numeric_limits<double>::max();
  double least = 0, most = 0;  // NaN where there is one
  reduce_memory(find_reduce(Reduce::Amin, DType::Float64), out->data, out, all_dims(out->ndim),
                reinterpret_cast<char*>(&least), {});
  reduce_memory(find_reduce(Reduce::Amax, DType::Float64), out->data, out, all_dims(out->ndim),
                reinterpret_cast<char*>(&most), {});
  if (least >= kLeast && most <= kMost) return;
  auto* norms = reinterpret_cast<double*>(out->data);
  const auto rescue = [&](double scale, bool (*left_range)(double)) {
    if (std::none_of(norms, norms + out->numel, left_range)) return;
    Ref<Tensor> scaled = clone(in), again = empty_like(out, DType::Float64);
    auto* values = reinterpret_cast<double*>(scaled->data);
    const int64_t count = scaled->nbytes() / static_cast<int64_t>(sizeof(double));
    for (int64_t i = 0; i < count; ++i) values[i] *= scale;
    reduce_into(c, Reduce::Norm2, scaled.get(), mask, again.get());
    for (int64_t i = 0; i < out->numel; ++i)
      if (left_range(norms[i])) norms[i] = reinterpret_cast<const double*>(again->data)[i] / scale;
  };
  rescue(0x1p-600, [](double norm) { return norm > kMost; });
  rescue(0x1p+600, [](double norm) { return norm < kLeast; });
}

// So do powers: there the norm is taken of the elements over the largest.
void rescue_powers(const Call& c, Tensor* in, uint64_t mask, Tensor* out, const ReduceParams& params) {
  auto* norms = reinterpret_cast<double*>(out->data);
  const auto left_range = [&](double norm) {
    const double power = std::pow(norm, params.p);
    return !(power > 0x1p-960 && power < 0x1p+960);
  };
  if (std::none_of(norms, norms + out->numel, left_range)) return;
  Ref<Tensor> most = make(reduced_shape(in, mask, true), DType::Float64, in->device);
  Ref<Tensor> again = empty_like(out, DType::Float64);
  reduce_into(c, Reduce::NormInf, in, mask, most.get());
  Arg quotient[] = {arg(in), arg(most.get())};
  Ref<> scaled = call(find_op("div.Tensor"), quotient, 2);
  reduce_into(c, Reduce::NormP, as_tensor(scaled.get()), mask, again.get(), params);
  for (int64_t i = 0; i < out->numel; ++i) {
    const double size = reinterpret_cast<const double*>(most->data)[i];
    if (left_range(norms[i]) && size > 0 && std::isfinite(size))
      norms[i] = reinterpret_cast<const double*>(again->data)[i] * size;
  }
}

PyObject* vector_norm_kernel(Call& c) {
  Tensor* self = c.args[0].tensor;
  const double p = c.args[1].to_double();
  const DType dtype = c.args[4].kind == Kind::DType ? c.args[4].dtype : self->dtype;
  if (!is_inexact(self->dtype))
    fail(PyExc_RuntimeError, "linalg.vector_norm: Expected a floating point or complex tensor as input. Got %s",
         legacy_name(self->dtype));
  if (!is_inexact(dtype))
    fail(PyExc_RuntimeError, "linalg.vector_norm: dtype should be floating point or complex. Got %s",
         legacy_name(dtype));
  if (is_complex(dtype) != is_complex(self->dtype))
    fail(PyExc_RuntimeError, "linalg.vector_norm: dtype should be %s for %s inputs. Got %s",
         is_complex(self->dtype) ? "complex" : "real", is_complex(self->dtype) ? "complex" : "real",
         legacy_name(dtype));
  const uint64_t mask = dim_mask("linalg.vector_norm", c.args[2], self->ndim);
  const Shape shape = reduced_shape(self, mask, c.args[3].to_bool());
  if (!shape.reduced && (p < 0 || std::isinf(p)))
    fail(PyExc_RuntimeError,
         "linalg.vector_norm cannot compute the %g norm on an empty tensor because the operation does not have an "
         "identity",
         p);
  Ref<Tensor> in = with_dtype(c, self, dtype);
  Ref<Tensor> out = make(shape, real_of(dtype), in->device);
  ReduceParams params;
  params.p = p;
  if (p == 0) {
    Ref<Tensor> counts = make(shape, DType::Int64, in->device);
    reduce_into(c, Reduce::CountNonzero, in.get(), mask, counts.get());
    return with_dtype(c, counts.get(), out->dtype).release_object();
  }
  const Reduce op = p == 2           ? Reduce::Norm2
                    : p == 1         ? Reduce::Norm1
                    : !std::isinf(p) ? Reduce::NormP
                    : p > 0          ? Reduce::NormInf
                                     : Reduce::NormMinusInf;
  reduce_into(c, op, in.get(), mask, out.get(), params);
  if (op == Reduce::Norm2 && out->dtype == DType::Float64 && c.device.type == kCPU)
    rescue_range(c, in.get(), mask, out.get());
  if (op == Reduce::NormP && p > 0 && out->dtype == DType::Float64 && c.device.type == kCPU)
    rescue_powers(c, in.get(), mask, out.get(), params);
  return out.release_object();
}

}  // namespace

void register_reduction_ops() {
  static const Native natives[] = {{"sum", sum_kernel<Sum::Plain>, kOnCpuAndMeta},
                                   {"mean", sum_kernel<Sum::Mean>, kOnCpuAndMeta},
                                   {"nansum", sum_kernel<Sum::Nan>, kOnCpuAndMeta},
                                   {"prod", prod_kernel, kOnCpuAndMeta},
                                   {"amax", extreme_kernel<Reduce::Amax>, kOnCpuAndMeta},
                                   {"amin", extreme_kernel<Reduce::Amin>, kOnCpuAndMeta},
                                   {"max", extreme_kernel<Reduce::Amax>, kOnCpuAndMeta},
                                   {"min", extreme_kernel<Reduce::Amin>, kOnCpuAndMeta},
                                   {"argmax", arg_kernel<Reduce::ArgMax>, kOnCpuAndMeta},
                                   {"argmin", arg_kernel<Reduce::ArgMin>, kOnCpuAndMeta},
                                   {"max.dim", extreme_dim_kernel<Reduce::ArgMax>, kOnCpuAndMeta},
                                   {"min.dim", extreme_dim_kernel<Reduce::ArgMin>, kOnCpuAndMeta},
                                   {"aminmax", aminmax_kernel, kOnCpuAndMeta},
                                   {"any", truth_kernel<Reduce::Any>, kOnCpuAndMeta},
                                   {"all", truth_kernel<Reduce::All>, kOnCpuAndMeta},
                                   {"count_nonzero", count_nonzero_kernel, kOnCpuAndMeta},
                                   {"var", var_kernel<false, false>, kOnCpuAndMeta},
                                   {"var.dim", var_kernel<false, false>, kOnCpuAndMeta},
                                   {"var.correction", var_kernel<false, false>, kOnCpuAndMeta},
                                   {"std", var_kernel<true, false>, kOnCpuAndMeta},
                                   {"std.dim", var_kernel<true, false>, kOnCpuAndMeta},
                                   {"std.correction", var_kernel<true, false>, kOnCpuAndMeta},
                                   {"var_mean", var_kernel<false, true>, kOnCpuAndMeta},
                                   {"var_mean.dim", var_kernel<false, true>, kOnCpuAndMeta},
                                   {"var_mean.correction", var_kernel<false, true>, kOnCpuAndMeta},
                                   {"std_mean", var_kernel<true, true>, kOnCpuAndMeta},
                                   {"std_mean.dim", var_kernel<true, true>, kOnCpuAndMeta},
                                   {"std_mean.correction", var_kernel<true, true>, kOnCpuAndMeta},
                                   {"linalg_vector_norm", vector_norm_kernel, kOnCpuAndMeta}};
  register_natives(natives, sizeof natives / sizeof *natives);
}

}  // namespace rl
