// The pointwise family: promotion, broadcasting, allocation, then one loop.
#include "../kernels/pointwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "../kernels/copy.h"
#include "../kernels/iterator.h"
#include "ops.h"

namespace rl {

namespace {

constexpr int kMaxInputs = 4;
constexpr int64_t kSmall = 2048;  // elements below which the iterator's work would show

struct Plan {
  const OpRecord* op;
  int n = 0;      // inputs
  int first = 0;  // the first one that takes part in promotion
  Arg* in[kMaxInputs];
  DType compute;   // of the inputs, in the loop
  DType computed;  // of what the loop writes
  DType output;    // of the result
  int wide = -1;   // the input that a half loop takes as float32
  int ndim = 0;
  int64_t sizes[kMaxRank];
};

// An op with native loops is not defined for the dtypes that have none, on any device.
bool has_loops(const OpRecord* op) {
  auto* loops = static_cast<Loop*>(op->loops);
  return std::any_of(loops, loops + kNumDTypes, [](Loop loop) { return loop != nullptr; });
}

Loop loop_of(const Plan& p) { return static_cast<Loop*>(p.op->loops)[static_cast<int>(p.compute)]; }

Loop wide_loop_of(const Plan& p, int wide) { return p.op->number_loops[wide][p.compute == DType::BFloat16]; }

// A product or quotient of a half and a number, or a 0-d tensor on the CPU in second place, is rounded once.
void plan_wide_number(Plan& p) {
  if ((p.compute != DType::Float16 && p.compute != DType::BFloat16) || p.n != 2) return;
  for (int i = 0; i < p.n; ++i) {
    const Tensor* t = p.in[i]->is_tensor() ? p.in[i]->tensor : nullptr;
    if ((!t || (i == 1 && t->ndim == 0 && t->is_cpu() && t->dtype != p.compute)) && wide_loop_of(p, i)) p.wide = i;
  }
}

void plan_dtypes(Plan& p, const Call& c) {
  auto how = static_cast<Promote>(p.op->promote);
  int first = p.first = how == Promote::Where ? 1 : 0;
  const Tensor* t0 = p.in[first]->is_tensor() ? p.in[first]->tensor : nullptr;
  bool uniform = t0 && !(t0->flags & kWrapped);
  for (int i = first + 1; uniform && i < p.n; ++i)
    uniform = p.in[i]->is_tensor() && p.in[i]->tensor->dtype == t0->dtype && !(p.in[i]->tensor->flags & kWrapped);
  DType common;
  if ((uniform && how != Promote::Scalars) || (how == Promote::None && t0)) {
    common = t0->dtype;
  } else {
    Promotion promotion;
    for (int i = first; i < p.n; ++i) p.in[i]->is_tensor() ? promotion.add(p.in[i]->tensor) : promotion.add(*p.in[i]);
    if (how == Promote::Scalars)
      for (int i = 0; i < p.op->nparams; ++i)
        if (p.op->params[i].type == ParamType::Scalar && !c.args[i].none()) promotion.add(c.args[i]);
    common = promotion.result();
  }
  bool to_float = how == Promote::Float || how == Promote::FloatReal;
  bool to_real = how == Promote::Real || how == Promote::FloatReal;
  if (to_float && !is_inexact(common)) common = g_default_dtype;
  auto result_of = [&](DType compute) {
    return how == Promote::Bool ? DType::Bool : to_real ? real_of(compute) : compute;
  };
  p.compute = common;
  p.output = result_of(common);
  // Loops that exist for float32 serve the half types, rounded once.
  if ((common == DType::Float16 || common == DType::BFloat16) && !loop_of(p)) {
    p.compute = DType::Float32;
    if (!loop_of(p)) p.compute = common;
  }
  p.computed = result_of(p.compute);
  plan_wide_number(p);
}

// A loop, since for the few sizes of a tensor a call of memcmp takes longer.
bool same_sizes(const Tensor* t, int ndim, const int64_t* sizes) {
  if (t->ndim != ndim) return false;
  for (int d = 0; d < ndim; ++d)
    if (t->sizes[d] != sizes[d]) return false;
  return true;
}

void plan_shape(Plan& p) {
  const Tensor* widest = nullptr;
  bool same = true;
  for (int i = 0; i < p.n; ++i) {
    if (!p.in[i]->is_tensor()) continue;
    const Tensor* t = p.in[i]->tensor;
    if (widest && !same_sizes(t, widest->ndim, widest->sizes)) same = false;
    if (!widest || t->ndim > widest->ndim) widest = t;
  }
  p.ndim = widest ? widest->ndim : 0;
  for (int d = 0; d < p.ndim; ++d) p.sizes[d] = widest->sizes[d];
  if (same) return;
  for (int i = 0; i < p.n; ++i) {
    if (!p.in[i]->is_tensor()) continue;
    const Tensor* t = p.in[i]->tensor;
    int shift = p.ndim - t->ndim;
    for (int d = 0; d < t->ndim; ++d) {
      int64_t& size = p.sizes[d + shift];
      if (t->sizes[d] == size || t->sizes[d] == 1) continue;
      if (size != 1)
        fail(PyExc_RuntimeError,
             "The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton dimension %d (%s: "
             "got shapes %s and %s)",
             static_cast<long long>(size), static_cast<long long>(t->sizes[d]), d + shift, p.op->name,
             shape_text(p.ndim, p.sizes).c_str(), shape_text(t).c_str());
      size = t->sizes[d];
    }
  }
}

void byte_strides(const Tensor* t, int ndim, const int64_t* sizes, int64_t* out) {
  int shift = ndim - t->ndim;
  int64_t size = itemsize(t->dtype);
  for (int d = 0; d < shift; ++d) out[d] = 0;
  for (int d = 0; d < t->ndim; ++d)
    out[d + shift] = t->sizes[d] == 1 && sizes[d + shift] != 1 ? 0 : t->strides[d] * size;
}

// The scalar parameters of a loop, in the layout that kernels/pointwise.h documents.
struct Params {
  alignas(16) unsigned char bytes[64];
  int flag = 0;  // integer division by zero
  const void* pointer = nullptr;
};

[[noreturn]] void not_implemented(const Plan& p) {
  fail(PyExc_NotImplementedError, "\"%s\" not implemented for '%s'", p.op->name, legacy_name(p.compute));
}

// Chooses the loop and lays out its parameters. Ops whose parameters select a variant are listed here.
Loop choose(Plan& p, const Call& c, Params& params) {
  Loop loop = p.wide < 0 ? loop_of(p) : wide_loop_of(p, p.wide);
  if (p.op->nparams == p.n) {
    if (!loop) not_implemented(p);
    params.pointer = &params.flag;
    return loop;
  }
  DType scalar = p.compute == DType::Float16 || p.compute == DType::BFloat16 ? DType::Float32 : p.compute;
  int64_t step = itemsize(scalar), at = 0;
  for (int i = 0; i < p.op->nparams; ++i) {
    const Param& param = p.op->params[i];
    const Arg& a = c.args[i];
    if (param.type == ParamType::Tensor) continue;
    if (param.type == ParamType::Str) continue;  // rounding_mode and the like: the record chose the op by it
    if (param.type == ParamType::Int) {
      std::memcpy(params.bytes + at, &a.i, sizeof(int64_t));
      at += 8;
      continue;
    }
    if (a.none())
      store_limit(scalar, !std::strcmp(param.name, "max"), params.bytes + at);  // an absent bound does not bind
    else
      store_number(a, scalar, params.bytes + at);
    at += step;
  }
  if (!loop) not_implemented(p);
  params.pointer = params.bytes;
  return loop;
}

// A kernel of a plugin has computed something else.
[[noreturn]] void refuse_result(const Plan& p, const Call& c, const Tensor* result) {
  fail(PyExc_RuntimeError, "%s: the kernel for %s must return shape %s and dtype %s, got shape %s and dtype %s.",
       p.op->name, device_origin(c.device.type).c_str(), shape_text(p.ndim, p.sizes).c_str(), name(p.output),
       shape_text(result).c_str(), name(result->dtype));
}

// What no native loop computes: the array kernel sees promoted inputs, its result is brought to the output dtype.
PyObject* on_backend(Plan& p, Call& c, Tensor* target) {
  std::vector<Ref<Tensor>> held;
  Arg args[kMaxParams];
  std::copy(c.args, c.args + p.op->nparams, args);
  for (int i = p.first; i < p.n; ++i) {
    Arg& a = args[p.in[i] - c.args];
    if (!a.is_tensor()) continue;  // numbers stay numbers
    held.push_back(to_dtype(a.tensor, p.compute));
    a.tensor = held.back().get();
  }
  Call below = c;
  below.args = args;
  below.out = nullptr;
  below.inplace = false;
  Ref<> result = Ref<>::check(p.op->array_kernel ? run_array_kernel(below, p.op) : without_kernel(below));
  Tensor* r = as_tensor(result.get());
  if (!same_sizes(r, p.ndim, p.sizes)) refuse_result(p, c, r);
  Ref<Tensor> typed = to_dtype(r, p.output);
  if (!target) return typed.release_object();
  copy_into(target, typed.get());
  return Py_NewRef(object(target));
}

void check_condition(const Plan& p) {
  const Arg& a = *p.in[0];
  if (!a.is_tensor() || a.tensor->dtype != DType::Bool)
    fail(PyExc_RuntimeError, "%s expected condition to be a boolean tensor, but got a tensor with dtype %s",
         short_name(p.op).c_str(), a.is_tensor() ? legacy_name(a.tensor->dtype) : "number");
}

void refuse_bool(const Plan& p) {
  int bools = 0;
  for (int i = 0; i < p.n; ++i)
    bools += p.in[i]->is_tensor() ? p.in[i]->tensor->dtype == DType::Bool : p.in[i]->kind == Kind::Bool;
  if (!bools) return;
  if (bools == 2)
    fail(PyExc_RuntimeError,
         "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
         "operator instead.");
  fail(PyExc_RuntimeError,
       "%s a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator "
       "instead.",
       p.n == 1 ? "Negation, the `-` operator, on" : "Subtraction, the `-` operator, with");
}

void refuse_several_dtypes(const Plan& p) {
  for (int i = 1; i < p.n; ++i)
    if (p.in[0]->is_tensor() && p.in[i]->is_tensor() && p.in[i]->tensor->dtype != p.in[0]->tensor->dtype)
      fail(PyExc_RuntimeError,
           "%s is not yet implemented for tensors with different dtypes, got %s and %s. Convert one with .to(dtype).",
           short_name(p.op).c_str(), name(p.in[0]->tensor->dtype), name(p.in[i]->tensor->dtype));
}

void refuse_integer_quotient(const Plan& p) {
  for (int i = p.n - 2; i < p.n; ++i)
    if (!p.in[i]->is_tensor() || is_inexact(p.in[i]->tensor->dtype)) return;
  fail(PyExc_RuntimeError,
       "Integer division with %s is not supported, got tensor1=%s and tensor2=%s. Convert one to "
       "a floating-point dtype.",
       short_name(p.op).c_str(), name(p.in[p.n - 2]->tensor->dtype), name(p.in[p.n - 1]->tensor->dtype));
}

// The factor of the second of two inputs has to be of a kind that their dtype holds.
void check_factor(const Plan& p, const Arg& alpha) {
  if (alpha.kind == Kind::Bool && p.compute != DType::Bool)
    fail(PyExc_RuntimeError, "Boolean alpha only supported for Boolean results.");
  if (alpha.kind == Kind::Float && !is_inexact(p.compute))
    fail(PyExc_RuntimeError, "For integral input tensors, argument alpha must not be a floating point number.");
  if (alpha.kind == Kind::Complex && !is_complex(p.compute))
    fail(PyExc_RuntimeError, "For non-complex input tensors, argument alpha must not be a complex number.");
}

Plan make_plan(Call& c) {
  Plan p;
  p.op = static_cast<const OpRecord*>(c.op);
  const Arg *alpha = nullptr, *exponent = nullptr;
  for (int i = 0; i < p.op->nparams; ++i) {
    const Param& param = p.op->params[i];
    const Arg& a = c.args[i];
    if (param.type == ParamType::Tensor && !a.none()) p.in[p.n++] = &c.args[i];
    if (param.type != ParamType::Scalar) continue;
    if (a.kind != Kind::Int && !std::strcmp(param.name, "alpha")) alpha = &a;
    if (a.kind == Kind::Int && a.i < 0 && !std::strcmp(param.name, "exponent")) exponent = &a;
  }
  switch (static_cast<Promote>(p.op->promote)) {
    case Promote::Where: check_condition(p); break;
    case Promote::Minus: refuse_bool(p); break;
    case Promote::Equal: refuse_several_dtypes(p); break;
    case Promote::Quotient: refuse_integer_quotient(p); break;
    default: break;
  }
  plan_dtypes(p, c);
  if (alpha && p.n == 2) check_factor(p, *alpha);
  if (exponent && is_integral(p.compute))
    fail(PyExc_RuntimeError, "Integers to negative integer powers are not allowed. Convert the base to float.");
  plan_shape(p);
  return p;
}

// Refuses targets that the result does not fit, or whose memory the write would corrupt. out= is resized.
void check_target(const Plan& p, const Call& c, Tensor* target) {
  check_target_dtype(p.op, p.output, target->dtype);
  if (c.inplace) {
    if (!same_sizes(target, p.ndim, p.sizes))
      fail(PyExc_RuntimeError, "output with shape %s doesn't match the broadcast shape %s", shape_text(target).c_str(),
           shape_text(p.ndim, p.sizes).c_str());
  } else {
    if (target->device != c.device)
      fail(PyExc_RuntimeError,
           "Expected all tensors to be on the same device, but found at least two devices, %s and %s! (%s, out=)",
           device_text(c.device).c_str(), device_text(target->device).c_str(), p.op->name);
    resize_out(p.op, target, p.ndim, p.sizes);
  }
  check_writable(p.op, target);
  for (int i = 0; i < p.n; ++i) {
    if (!p.in[i]->is_tensor() || p.in[i]->tensor == target || p.in[i]->tensor->storage != target->storage) continue;
    if (overlap(target, p.in[i]->tensor) == Overlap::Partial)
      fail(PyExc_RuntimeError,
           "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
           "memory location. "
           "Please clone() the tensor before performing the operation. (%s)",
           p.op->name);
  }
}

// A fresh result; its memory takes the order of the first input that has its shape.
Ref<Tensor> make_result(const Plan& p, const Call& c, DType dtype) {
  for (int i = 0; i < p.n; ++i) {
    const Tensor* t = p.in[i]->is_tensor() ? p.in[i]->tensor : nullptr;
    if (!t || !same_sizes(t, p.ndim, p.sizes)) continue;
    if (t->contiguous() || t->device != c.device) break;
    return empty_preserving(t, dtype);
  }
  return empty(p.ndim, p.sizes, dtype, c.device);
}

// Inputs of another dtype are converted first; numbers become one stored value with stride 0.
void run_on_cpu(const Plan& p, Tensor* out, Loop loop, Params& params) {
  Ref<Tensor> held[kMaxInputs];
  const Tensor* inputs[kMaxInputs] = {};  // null: a number
  Value numbers[kMaxInputs];
  char* data[kMaxInputs + 1] = {out->data};
  bool flat = out->contiguous();
  int64_t flat_strides[kMaxInputs + 1] = {itemsize(out->dtype)};
  int64_t item_sizes[kMaxInputs + 1] = {itemsize(out->dtype)};
  for (int i = 0; i < p.n; ++i) {
    Arg& a = *p.in[i];
    DType want = i < p.first ? DType::Bool : i == p.wide ? DType::Float32 : p.compute;
    item_sizes[i + 1] = itemsize(want);
    if (!a.is_tensor()) {
      if (is_integral(want) && a.kind == Kind::Int && !p.first)
        numbers[i].i = a.i;  // wraps around, as the cast of a tensor would
      else
        store_number(a, want, &numbers[i]);
      data[i + 1] = reinterpret_cast<char*>(&numbers[i]);
      flat_strides[i + 1] = 0;
      continue;
    }
    Tensor* t = a.tensor;
    if (t->dtype != want) {
      held[i] = to_dtype(t, want);
      t = held[i].get();
    }
    inputs[i] = t;
    data[i + 1] = t->data;
    if (t->contiguous() && t->numel == out->numel)
      flat_strides[i + 1] = itemsize(want);
    else if (t->numel == 1)
      flat_strides[i + 1] = 0;
    else
      flat = false;
  }
  Unlocked unlocked(out->numel > kUnlockAbove);
  if (flat && out->numel <= kSmall) return loop(data, flat_strides, out->numel, params.pointer);
  int64_t all[kMaxInputs + 1][kMaxRank];
  const int64_t* strides[kMaxInputs + 1];
  for (int i = 0; i <= p.n; ++i) strides[i] = flat ? &flat_strides[i] : all[i];
  if (flat) return run_pointwise(loop, 1, &out->numel, p.n + 1, data, strides, params.pointer);
  byte_strides(out, p.ndim, p.sizes, all[0]);
  for (int i = 0; i < p.n; ++i) {
    if (inputs[i])
      byte_strides(inputs[i], p.ndim, p.sizes, all[i + 1]);
    else
      std::fill_n(all[i + 1], p.ndim, 0);
  }
  run_pointwise(loop, p.ndim, p.sizes, p.n + 1, data, strides, params.pointer, item_sizes);
}

}  // namespace

void check_pointwise_result(Call& c, const Tensor* result) {
  if (c.op->family != Family::Pointwise) return;
  Plan p = make_plan(c);
  if (result->dtype != p.output || !same_sizes(result, p.ndim, p.sizes)) refuse_result(p, c, result);
}

PyObject* pointwise_impl(Call& c) {
  Plan p = make_plan(c);
  Tensor* target = c.inplace ? c.args[0].tensor : reinterpret_cast<Tensor*>(c.out);
  if (target) check_target(p, c, target);

  bool only_array = p.op->array_kernel && !loop_of(p);
  if (only_array && has_loops(p.op)) not_implemented(p);
  if (c.device.type != kMeta && (c.device.type != kCPU || only_array)) return on_backend(p, c, target);
  Params params;
  Loop loop = only_array ? nullptr : choose(p, c, params);
  if (c.device.type == kMeta) return target ? Py_NewRef(object(target)) : make_result(p, c, p.output).release_object();

  // Written in place where the dtypes agree, else computed apart and converted.
  bool direct = target && target->dtype == p.computed;
  Ref<Tensor> result = direct ? Ref<Tensor>::borrow(target) : make_result(p, c, p.computed);
  if (result->numel) run_on_cpu(p, result.get(), loop, params);
  if (params.flag)
    fail(PyExc_RuntimeError, "ZeroDivisionError (%s: an integer divisor is 0). Divide floats, or mask the zeros.",
         p.op->name);
  if (target && !direct) {
    copy_into(target, result.get());
    return Py_NewRef(object(target));
  }
  return p.computed == p.output || target ? result.release_object() : to_dtype(result.get(), p.output).release_object();
}

}  // namespace rl
