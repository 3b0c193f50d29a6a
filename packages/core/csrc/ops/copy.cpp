// Copies, conversions, fills and single elements.
#include "../kernels/copy.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "blocking.h"
#include "ops.h"

namespace rl {

namespace {

template <class T>
void put(void* to, T v) {
  std::memcpy(to, &v, sizeof v);
}

// Through the cast loop from float64 or complex128, so that every conversion rounds in one place.
void store_inexact(double re, double im, DType dtype, void* to) {
  double pair[2] = {re, im};
  DType from = is_complex(dtype) ? DType::Complex128 : DType::Float64;
  char* data[2] = {static_cast<char*>(to), reinterpret_cast<char*>(pair)};
  int64_t strides[2] = {0, 0};
  find_cast(from, dtype)(data, strides, 1, nullptr);
}

}  // namespace

bool fits(double number, DType integers) {
  const double range = std::ldexp(1.0, static_cast<int>(itemsize(integers)) * 8 - (integers != DType::UInt8));
  return number >= (integers == DType::UInt8 ? 0 : -range) && number <= range - 1 && number < range;
}

void store_number(const Arg& n, DType dtype, void* to) {
  if (n.kind == Kind::Complex && !is_complex(dtype)) {
    if (n.imag != 0) fail(PyExc_RuntimeError, "value cannot be converted to type %s without overflow", name(dtype));
    return store_number(arg(n.d), dtype, to);
  }
  if (is_integral(dtype)) {
    if (n.kind == Kind::Float) {
      if (!fits(n.d, dtype))
        fail(PyExc_RuntimeError, "value cannot be converted to type %s without overflow", name(dtype));
      return store_number(arg(static_cast<int64_t>(n.d)), dtype, to);
    }
    int64_t v = n.i;
    int bits = static_cast<int>(itemsize(dtype)) * 8;
    if (bits < 64) {
      // Unsigned dtypes take negative numbers by their bit pattern.
      int64_t high = dtype == DType::UInt8 ? 255 : (int64_t{1} << (bits - 1)) - 1;
      int64_t low = dtype == DType::UInt8 ? -255 : -high - 1;
      if (v < low || v > high)
        fail(PyExc_RuntimeError, "value cannot be converted to type %s without overflow, got %lld", name(dtype),
             static_cast<long long>(v));
    }
    std::memcpy(to, &v, itemsize(dtype));
    return;
  }
  if (dtype == DType::Bool) return put<uint8_t>(to, n.to_bool());
  if (dtype == DType::Float32) return put(to, static_cast<float>(n.to_double()));
  if (dtype == DType::Float64) return put(to, n.to_double());
  store_inexact(n.to_double(), n.kind == Kind::Complex ? n.imag : 0, dtype, to);
}

void store_limit(DType dtype, bool highest, void* to) {
  if (is_integral(dtype)) {
    int bits = static_cast<int>(itemsize(dtype)) * 8;
    int64_t v;
    if (dtype == DType::UInt8)
      v = highest ? 255 : 0;
    else
      v = highest ? static_cast<int64_t>(~uint64_t{0} >> (65 - bits))
                  : -static_cast<int64_t>(~uint64_t{0} >> (65 - bits)) - 1;
    std::memcpy(to, &v, itemsize(dtype));
  } else if (dtype == DType::Bool) {
    put<uint8_t>(to, highest);
  } else {
    double inf = std::numeric_limits<double>::infinity();
    store_inexact(highest ? inf : -inf, 0, dtype, to);
  }
}

void fill(Tensor* t, const Arg& number) {
  Value v;
  store_number(number, t->dtype, &v);
  if (!t->numel || t->device.type == kMeta) return;
  if (!t->is_cpu()) {
    Ref<Tensor> host = from_number(number, t->dtype, {kCPU, -1});
    copy_into(t, host.get());
    return;
  }
  int64_t size = itemsize(t->dtype);
  if (t->contiguous() && t->numel <= 8) {
    for (int64_t i = 0; i < t->numel; ++i) std::memcpy(t->data + i * size, &v, size);
    return;
  }
  int64_t strides[kMaxRank];
  for (int d = 0; d < t->ndim; ++d) strides[d] = t->strides[d] * size;
  Unlocked unlocked(t->numel > kUnlockAbove);
  fill_strided(t->data, static_cast<int>(size), t->ndim, t->sizes, strides, &v);
}

static void copy_on_cpu(Tensor* to, const Tensor* from) {
  int64_t ts = itemsize(to->dtype), fs = itemsize(from->dtype);
  if (to->contiguous() && from->contiguous() && to->numel == from->numel && to->dtype == from->dtype &&
      to->nbytes() <= 4096) {
    std::memcpy(to->data, from->data, to->nbytes());
    return;
  }
  int64_t to_strides[kMaxRank], from_strides[kMaxRank];
  int shift = to->ndim - from->ndim;
  for (int d = 0; d < to->ndim; ++d) {
    to_strides[d] = to->strides[d] * ts;
    from_strides[d] =
        d < shift || (from->sizes[d - shift] == 1 && to->sizes[d] != 1) ? 0 : from->strides[d - shift] * fs;
  }
  Unlocked unlocked(to->numel > kUnlockAbove);
  copy_strided(to->dtype, to->data, to_strides, from->dtype, from->data, from_strides, to->ndim, to->sizes);
}

// The elements of a tensor of another device in an ndarray, which a backend may get wrong.
static Ref<Tensor> to_host(Tensor* from) {
  Ref<> array(array_of(from));
  Ref<> host = backend_call(from->device.type, "to_host", "(O)", array.get());
  Ref<Tensor> t = from_backend_array(host.get(), {kCPU, -1});
  if (t->dtype != from->dtype || t->ndim != from->ndim || !std::equal(t->sizes, t->sizes + t->ndim, from->sizes))
    fail(PyExc_RuntimeError,
         "%s: to_host() must return an ndarray of shape %s and dtype %s, got shape %s and dtype %s.",
         device_origin(from->device.type).c_str(), shape_text(from).c_str(), name(from->dtype),
         shape_text(t.get()).c_str(), name(t->dtype));
  return t;
}

static thread_local bool t_non_blocking = false;

NonBlocking::NonBlocking(bool on) : before_(std::exchange(t_non_blocking, on)) {}
NonBlocking::~NonBlocking() { t_non_blocking = before_; }

void copy_into(Tensor* to, const Tensor* from_) {
  auto* from = const_cast<Tensor*>(from_);
  require_strided(from, "a copy in memory");
  int shift = to->ndim - from->ndim;
  bool fits = shift >= 0;
  for (int d = 0; fits && d < from->ndim; ++d) fits = from->sizes[d] == to->sizes[d + shift] || from->sizes[d] == 1;
  if (!fits) {
    // Leading ones of the source may go.
    int extra = -shift;
    bool ones = shift < 0;
    for (int d = 0; ones && d < extra; ++d) ones = from->sizes[d] == 1;
    if (ones) {
      Ref<Tensor> v = view(from, to->ndim, from->sizes + extra, from->strides + extra, from->offset);
      return copy_into(to, v.get());
    }
    fail(PyExc_RuntimeError,
         "The expanded size of the tensor (%lld) must match the existing size (%lld): copy of shape %s into shape %s",
         static_cast<long long>(to->ndim ? to->sizes[to->ndim - 1] : 1),
         static_cast<long long>(from->ndim ? from->sizes[from->ndim - 1] : 1), shape_text(from).c_str(),
         shape_text(to).c_str());
  }
  if (to->storage->read_only)
    fail(PyExc_RuntimeError,
         "copy: the tensor's memory is read-only (it came from a read-only array). clone() it first.");
  if (to->device.type == kMeta || !to->numel) return;
  if (from->device.type == kMeta) fail(PyExc_NotImplementedError, "Cannot copy out of meta tensor; no data!");
  if (to->is_cpu() && from->is_cpu()) {
    if (to->storage == from->storage || (to->storage->alias || from->storage->alias)) {
      Overlap o = overlap(to, from);
      if (o == Overlap::Full && to->dtype == from->dtype) return;
      if (o != Overlap::None) {
        Ref<Tensor> apart = clone(from);
        copy_on_cpu(to, apart.get());
        return;
      }
    }
    copy_on_cpu(to, from);
    return;
  }
  // At least one side is another device: through arrays of that device.
  if (to->is_cpu()) {
    Ref<Tensor> t = to_host(from);
    copy_on_cpu(to, t.get());
    return;
  }
  const uint8_t type = to->device.type;
  Ref<> source;
  const int index = to->device.index;
  if (from->device == to->device) {
    source = Ref<>(array_of(from));
  } else if (from->device.type == type) {
    Ref<> array(array_of(from));
    source = backend_call(type, "transfer", "(Oi)", array.get(), index);
  } else {
    Ref<> host(array_of(from->is_cpu() ? from : to_host(from).get()));
    source = backend_call(type, t_non_blocking ? "from_host_later" : "from_host", "(Oi)", host.get(), index);
  }
  if (from->dtype != to->dtype) source = backend_call(type, "cast", "(Os)", source.get(), name(to->dtype));
  Ref<> target(array_of(to));
  backend_call(type, "copy", "(OO)", target.get(), source.get());
}

Ref<Tensor> contiguous(Tensor* t) {
  if (t->contiguous()) return Ref<Tensor>::borrow(t);
  Ref<Tensor> r = empty_like(t, t->dtype);
  copy_into(r.get(), t);
  return r;
}

Ref<Tensor> to_dtype(Tensor* t, DType d) {
  if (t->dtype == d) return Ref<Tensor>::borrow(t);
  Ref<Tensor> r = empty_preserving(t, d);
  copy_into(r.get(), t);
  return r;
}

Ref<Tensor> clone(const Tensor* t) {
  Ref<Tensor> r = empty_preserving(t, t->dtype);
  copy_into(r.get(), t);
  return r;
}

// ---- single elements

PyObject* item_object(const char* p, DType d) {
  auto as = [&](auto v) {
    std::memcpy(&v, p, sizeof v);
    return v;
  };
  switch (d) {
    case DType::UInt8: return PyLong_FromLong(as(uint8_t{}));
    case DType::Int8: return PyLong_FromLong(as(int8_t{}));
    case DType::Int16: return PyLong_FromLong(as(int16_t{}));
    case DType::Int32: return PyLong_FromLong(as(int32_t{}));
    case DType::Int64: return PyLong_FromLongLong(as(int64_t{}));
    case DType::Bool: return PyBool_FromLong(as(uint8_t{}));
    case DType::Float32: return PyFloat_FromDouble(as(float{}));
    case DType::Float64: return PyFloat_FromDouble(as(double{}));
    case DType::Complex64:
    case DType::Complex128:
    case DType::Float16:
    case DType::BFloat16: {
      double pair[2];
      char* data[2] = {reinterpret_cast<char*>(pair), const_cast<char*>(p)};
      int64_t strides[2] = {0, 0};
      find_cast(d, is_complex(d) ? DType::Complex128 : DType::Float64)(data, strides, 1, nullptr);
      return is_complex(d) ? PyComplex_FromDoubles(pair[0], pair[1]) : PyFloat_FromDouble(pair[0]);
    }
  }
  return nullptr;
}

Arg item(const Tensor* t) {
  if (t->numel != 1)
    fail(PyExc_RuntimeError, "a Tensor with %lld elements cannot be converted to Scalar",
         static_cast<long long>(t->numel));
  Ref<Tensor> host;
  if (t->flags & kLayout) {
    static OpHandle to_dense("_to_dense");
    Arg args[2] = {arg(const_cast<Tensor*>(t)), arg(true)};
    host = call_tensor(to_dense.get(), args, 2);
    return item(host.get());
  }
  if (!t->is_cpu()) {
    if (t->device.type == kMeta) fail(PyExc_RuntimeError, "Tensor.item() cannot be called on meta tensors");
    host = empty(t->ndim, t->sizes, t->dtype, {kCPU, -1});
    copy_into(host.get(), t);
    t = host.get();
  }
  Ref<> o = Ref<>::check(item_object(t->data, t->dtype));
  Arg a;
  number_from_object(o.get(), &a);
  return a;
}

// ---- ops

static PyObject* clone_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  Ref<Tensor> r = empty_formatted(t, t->dtype, t->device, memory_format_from(c.args[1], MemoryFormat::Preserve));
  copy_into(r.get(), t);
  return r.release_object();
}

static PyObject* copy_kernel(Call& c) {
  NonBlocking copies(c.args[2].to_bool());
  const Tensor *to = c.args[0].tensor, *from = c.args[1].tensor;
  if (from->ndim > to->ndim)
    fail(PyExc_RuntimeError, "output with shape %s doesn't match the broadcast shape %s (copy_)",
         shape_text(to).c_str(), shape_text(from).c_str());
  copy_into(c.args[0].tensor, from);
  return Py_NewRef(object(c.args[0].tensor));
}

static PyObject* fill_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  const Arg& value = c.args[1];
  if (value.is_tensor()) {
    if (value.tensor->ndim)
      fail(PyExc_RuntimeError, "fill_ only supports 0-dimension value tensor but got tensor with %d dimensions.",
           value.tensor->ndim);
    copy_into(t, value.tensor);
  } else {
    fill(t, value);
  }
  return Py_NewRef(object(t));
}

static PyObject* zero_kernel(Call& c) {
  fill(c.args[0].tensor, arg(int64_t{0}));
  return Py_NewRef(object(c.args[0].tensor));
}

static PyObject* cast_kernel(Call& c) {
  Ref<Tensor> r = empty_preserving(c.args[0].tensor, c.args[1].dtype);
  copy_into(r.get(), c.args[0].tensor);
  return r.release_object();
}

static PyObject* move_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  Ref<Tensor> r = empty(t->ndim, t->sizes, t->dtype, resolve(c.args[1].device));
  copy_into(r.get(), t);
  return r.release_object();
}

void register_copy_ops() {
  static const Native natives[] = {{"clone", clone_kernel, true},       {"copy_", copy_kernel, true},
                                   {"fill_", fill_kernel, true},        {"zero_", zero_kernel, true},
                                   {"fill_.Tensor", fill_kernel, true}, {"_cast", cast_kernel, true},
                                   {"_move", move_kernel, true}};
  register_natives(natives, sizeof natives / sizeof *natives);
}

}  // namespace rl
