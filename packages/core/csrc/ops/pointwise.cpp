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

struct Plan {
  const OpRecord* op;
  int n = 0;                    // inputs
  Arg* in[kMaxInputs];
  DType compute, output;
  int ndim = 0;
  int64_t sizes[kMaxRank];
};

void plan_dtypes(Plan& p, const Call& c) {
  auto how = static_cast<Promote>(p.op->promote);
  int first = how == Promote::Where ? 1 : 0;
  const Tensor* t0 = p.in[first]->is_tensor() ? p.in[first]->tensor : nullptr;
  bool uniform = t0 && !(t0->flags & kWrapped);
  for (int i = first + 1; uniform && i < p.n; ++i) uniform = p.in[i]->is_tensor() && p.in[i]->tensor->dtype == t0->dtype && !(p.in[i]->tensor->flags & kWrapped);
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
  if (how == Promote::Float && !is_inexact(common)) common = g_default_dtype;
  p.compute = common;
  p.output = how == Promote::Bool ? DType::Bool : how == Promote::Real ? real_of(common) : common;
}

void plan_shape(Plan& p) {
  const Tensor* widest = nullptr;
  bool same = true;
  for (int i = 0; i < p.n; ++i) {
    if (!p.in[i]->is_tensor()) continue;
    const Tensor* t = p.in[i]->tensor;
    if (widest && !(t->ndim == widest->ndim && std::equal(t->sizes, t->sizes + t->ndim, widest->sizes))) same = false;
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
             "The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton dimension %d (%s: got shapes %s and %s)",
             static_cast<long long>(size), static_cast<long long>(t->sizes[d]), d + shift, p.op->name, shape_text(p.ndim, p.sizes).c_str(), shape_text(t).c_str());
      size = t->sizes[d];
    }
  }
}

void byte_strides(const Tensor* t, int ndim, const int64_t* sizes, int64_t* out) {
  int shift = ndim - t->ndim;
  int64_t size = itemsize(t->dtype);
  for (int d = 0; d < shift; ++d) out[d] = 0;
  for (int d = 0; d < t->ndim; ++d) out[d + shift] = t->sizes[d] == 1 && sizes[d + shift] != 1 ? 0 : t->strides[d] * size;
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
  auto* loops = static_cast<Loop*>(p.op->loops);
  Loop loop = loops[static_cast<int>(p.compute)];
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

Ref<Tensor> cast_input(Arg& a, DType to, Tensor* like) {
  if (a.is_tensor()) return a.tensor->dtype == to ? Ref<Tensor>::borrow(a.tensor) : to_dtype(a.tensor, to);
  return from_number(a, to, like->device);
}

// What no native loop computes: the array kernel sees promoted inputs, its result is brought to the output dtype.
PyObject* on_backend(Plan& p, Call& c, Tensor* target) {
  std::vector<Ref<Tensor>> held;
  Arg args[kMaxParams];
  std::copy(c.args, c.args + p.op->nparams, args);
  Tensor like{};
  like.device = c.device;
  int first = static_cast<Promote>(p.op->promote) == Promote::Where ? 1 : 0;
  for (int i = first; i < p.n; ++i) {
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
  Ref<Tensor> typed = to_dtype(r, p.output);
  if (!target) return typed.release_object();
  copy_into(target, typed.get());
  return Py_NewRef(object(target));
}

}  // namespace

PyObject* pointwise_impl(Call& c) {
  Plan p;
  p.op = static_cast<const OpRecord*>(c.op);
  for (int i = 0; i < p.op->nparams; ++i)
    if (p.op->params[i].type == ParamType::Tensor && !c.args[i].none()) p.in[p.n++] = &c.args[i];
  plan_dtypes(p, c);
  plan_shape(p);
  bool only_array = p.op->array_kernel && !static_cast<Loop*>(p.op->loops)[static_cast<int>(p.compute)];
  bool by_array = c.device.type != kMeta && (c.device.type != kCPU || only_array);

  // The target: a fresh tensor, or what the call writes to.
  Tensor* target = c.inplace ? c.args[0].tensor : reinterpret_cast<Tensor*>(c.out);
  Ref<Tensor> result;
  bool through_copy = false;
  if (target) {
    if (!can_cast(p.output, target->dtype))
      fail(PyExc_RuntimeError, "result type %s can't be cast to the desired output type %s", legacy_name(p.output), legacy_name(target->dtype));
    if (c.inplace) {
      if (target->ndim != p.ndim || !std::equal(p.sizes, p.sizes + p.ndim, target->sizes))
        fail(PyExc_RuntimeError, "output with shape %s doesn't match the broadcast shape %s", shape_text(target).c_str(), shape_text(p.ndim, p.sizes).c_str());
    } else {
      if (target->device != c.device)
        fail(PyExc_RuntimeError, "Expected all tensors to be on the same device, but found at least two devices, %s and %s! (%s, out=)",
             device_text(c.device).c_str(), device_text(target->device).c_str(), p.op->name);
      resize_out(p.op, target, p.ndim, p.sizes);
    }
    check_writable(p.op, target);
    for (int i = 0; i < p.n; ++i) {
      if (!p.in[i]->is_tensor() || p.in[i]->tensor == target || p.in[i]->tensor->storage != target->storage) continue;
      Overlap o = overlap(target, p.in[i]->tensor);
      if (o == Overlap::Partial)
        fail(PyExc_RuntimeError,
             "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. "
             "Please clone() the tensor before performing the operation. (%s)", p.op->name);
    }
    through_copy = target->dtype != p.output;
  }
  if (!target || through_copy) {
    if (by_array) return on_backend(p, c, target);
    // The result takes the memory order of the inputs where they agree.
    const Tensor* model = nullptr;
    for (int i = 0; i < p.n; ++i)
      if (p.in[i]->is_tensor() && p.in[i]->tensor->ndim == p.ndim && std::equal(p.sizes, p.sizes + p.ndim, p.in[i]->tensor->sizes)) {
        model = p.in[i]->tensor;
        break;
      }
    if (model && !model->contiguous() && !through_copy) {
      Device d = model->device;
      result = empty_preserving(model, p.output);
      if (d != c.device) result = empty(p.ndim, p.sizes, p.output, c.device);
    } else {
      result = empty(p.ndim, p.sizes, p.output, c.device);
    }
  } else {
    if (by_array) return on_backend(p, c, target);
    result = Ref<Tensor>::borrow(target);
  }
  Tensor* out = result.get();
  Params params;
  Loop loop = only_array ? nullptr : choose(p, c, params);
  if (c.device.type == kMeta) return target ? Py_NewRef(object(target)) : result.release_object();

  if (out->numel) {
    // Inputs of another dtype are converted first; numbers become one stored value with stride 0.
    Ref<Tensor> held[kMaxInputs];
    Value numbers[kMaxInputs];
    char* data[kMaxInputs + 1] = {out->data};
    bool flat = out->contiguous();
    int64_t flat_strides[kMaxInputs + 1] = {itemsize(out->dtype)};
    int first = static_cast<Promote>(p.op->promote) == Promote::Where ? 1 : 0;
    for (int i = 0; i < p.n; ++i) {
      Arg& a = *p.in[i];
      DType want = i < first ? DType::Bool : p.compute;
      if (!a.is_tensor()) {
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
      data[i + 1] = t->data;
      if (t->contiguous() && t->numel == out->numel)
        flat_strides[i + 1] = itemsize(want);
      else if (t->numel == 1)
        flat_strides[i + 1] = 0;
      else
        flat = false;
    }
    {
      Unlocked unlocked(out->numel > kUnlockAbove);
      if (flat) {
        if (out->numel <= 2048) {
          loop(data, flat_strides, out->numel, params.pointer);
        } else {
          const int64_t* strides[kMaxInputs + 1];
          for (int i = 0; i <= p.n; ++i) strides[i] = &flat_strides[i];
          run_pointwise(loop, 1, &out->numel, p.n + 1, data, strides, params.pointer);
        }
      } else {
        int64_t all[kMaxInputs + 1][kMaxRank];
        const int64_t* strides[kMaxInputs + 1];
        byte_strides(out, p.ndim, p.sizes, all[0]);
        strides[0] = all[0];
        for (int i = 0; i < p.n; ++i) {
          strides[i + 1] = all[i + 1];
          if (p.in[i]->is_tensor())
            byte_strides(held[i] ? held[i].get() : p.in[i]->tensor, p.ndim, p.sizes, all[i + 1]);
          else
            std::fill_n(all[i + 1], p.ndim, 0);
        }
        run_pointwise(loop, p.ndim, p.sizes, p.n + 1, data, strides, params.pointer);
      }
    }
    if (params.flag) fail(PyExc_RuntimeError, "ZeroDivisionError (%s: an integer divisor is 0). Divide floats, or mask the zeros.", p.op->name);
  }
  if (through_copy) {
    copy_into(target, out);
    return Py_NewRef(object(target));
  }
  return result.release_object();
}

}  // namespace rl
