// to() and its kin: composites that return the tensor itself where nothing changes.
#include "blocking.h"
#include "view.h"

namespace rl {

namespace {

OpHandle op_cast("_cast"), op_move("_move"), op_clone("clone");

Ref<Tensor> cast(Tensor* t, DType dtype) {
  Arg args[2] = {arg(t)};
  args[1].kind = Kind::DType;
  args[1].dtype = dtype;
  return call_tensor(op_cast.get(), args, 2);
}

Ref<Tensor> cloned(Tensor* t, MemoryFormat format) {
  Arg args[2] = {arg(t), memory_format_arg(format)};
  return call_tensor(op_clone.get(), args, 2);
}

PyObject* converted(Tensor* t, DType dtype, Device device, bool copy, const Arg& format) {
  MemoryFormat f = memory_format_from(format, MemoryFormat::Preserve);
  Ref<Tensor> r = Ref<Tensor>::borrow(t);
  if (dtype != t->dtype) r = cast(t, dtype);
  if (device != t->device) {
    Arg args[2] = {arg(r.get())};
    args[1].kind = Kind::Device;
    args[1].device = device;
    r = call_tensor(op_move.get(), args, 2);
  }
  bool ordered = f == MemoryFormat::Preserve || is_contiguous(r.get(), f);
  if (!ordered || (copy && r.get() == t)) r = cloned(r.get(), f);
  return r.release_object();
}

// to.dtype(self, dtype, non_blocking, copy, *, memory_format)
PyObject* to_dtype_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  return converted(t, c.args[1].dtype, t->device, c.args[3].to_bool(), c.args[4]);
}

// to.device(self, device, dtype, non_blocking, copy, *, memory_format)
PyObject* to_device_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  NonBlocking copies(c.args[3].to_bool());
  return converted(t, c.args[2].none() ? t->dtype : c.args[2].dtype,
                   c.args[1].none() ? t->device : resolve(c.args[1].device), c.args[4].to_bool(), c.args[5]);
}

// to.other(self, other, non_blocking, copy, *, memory_format)
PyObject* to_other_kernel(Call& c) {
  NonBlocking copies(c.args[2].to_bool());
  return converted(c.args[0].tensor, c.args[1].tensor->dtype, c.args[1].tensor->device, c.args[3].to_bool(), c.args[4]);
}

// float(self, *, memory_format) …
template <DType dtype>
PyObject* named_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  if (t->dtype == dtype && c.args[1].none()) return Py_NewRef(object(t));
  return converted(t, dtype, t->device, false, c.args[1]);
}

PyObject* type_as_kernel(Call& c) {
  return converted(c.args[0].tensor, c.args[1].tensor->dtype, c.args[1].tensor->device, false, Arg());
}

PyObject* contiguous_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  MemoryFormat f = memory_format_from(c.args[1], MemoryFormat::Contiguous);
  if (is_contiguous(t, f)) return Py_NewRef(object(t));
  return cloned(t, f).release_object();
}

}  // namespace

void register_convert_ops() {
  static const Native natives[] = {
      {"to.dtype", to_dtype_kernel, kOnEveryDevice},
      {"to.device", to_device_kernel, kOnEveryDevice},
      {"to.other", to_other_kernel, kOnEveryDevice},
      {"type_as", type_as_kernel, kOnEveryDevice},
      {"contiguous", contiguous_kernel, kOnEveryDevice},
      {"float", named_kernel<DType::Float32>, kOnEveryDevice},
      {"double", named_kernel<DType::Float64>, kOnEveryDevice},
      {"half", named_kernel<DType::Float16>, kOnEveryDevice},
      {"bfloat16", named_kernel<DType::BFloat16>, kOnEveryDevice},
      {"int", named_kernel<DType::Int32>, kOnEveryDevice},
      {"long", named_kernel<DType::Int64>, kOnEveryDevice},
      {"short", named_kernel<DType::Int16>, kOnEveryDevice},
      {"char", named_kernel<DType::Int8>, kOnEveryDevice},
      {"byte", named_kernel<DType::UInt8>, kOnEveryDevice},
      {"bool", named_kernel<DType::Bool>, kOnEveryDevice},
      {"cfloat", named_kernel<DType::Complex64>, kOnEveryDevice},
      {"cdouble", named_kernel<DType::Complex128>, kOnEveryDevice},
  };
  register_natives(natives, sizeof natives / sizeof *natives);
}

}  // namespace rl
