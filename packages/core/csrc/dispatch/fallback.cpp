// Where a device has no kernel for an operator: an error, or the CPU stands in, if the backend says `fallback = True`.
#include <unordered_set>

#include "dispatch.h"

namespace rl {

namespace {

bool allows_fallback(uint8_t type) {
  if (type == kCPU || type == kMeta) return false;
  Ref<> allowed = Ref<>::check(PyObject_GetAttrString(backend_of(type), "fallback"));
  return PyObject_IsTrue(allowed.get()) == 1;
}

void warn_once(const Call& c) {
  static auto* warned = new std::unordered_set<const Op*>[kMaxDeviceTypes];
  if (!warned[c.device.type].insert(c.op).second) return;
  if (PyErr_WarnFormat(PyExc_UserWarning, 1,
                       "%s: device type '%s' has no kernel for it, the CPU stands in through a copy each way.",
                       c.op->name, device_type_name(c.device.type)) < 0)
    throw PythonError();
}

Ref<Tensor> moved(const Tensor* t, Device device) {
  Ref<Tensor> r = empty(t->ndim, t->sizes, t->dtype, device);
  copy_into(r.get(), t);
  return r;
}

Ref<> moved(PyObject* result, Device device) {
  if (is_tensor(result)) return Ref<>(moved(as_tensor(result), device).release_object());
  if (!PyTuple_Check(result)) return Ref<>(Py_NewRef(result));
  Ref<> items = Ref<>::check(PyTuple_New(PyTuple_GET_SIZE(result)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result); ++i)
    PyTuple_SET_ITEM(items.get(), i, moved(PyTuple_GET_ITEM(result, i), device).release());
  if (Py_TYPE(result) == &PyTuple_Type) return items;
  return Ref<>::check(PyObject_CallOneArg(reinterpret_cast<PyObject*>(Py_TYPE(result)), items.get()));  // a named tuple
}

}  // namespace

PyObject* without_kernel(Call& c) {
  if (!allows_fallback(c.device.type))
    fail(PyExc_NotImplementedError,
         "%s: no kernel for device type '%s', got a call on %s. A plugin gives one through "
         "rushlight_register_kernels('%s').",
         c.op->name, device_type_name(c.device.type), device_text(c.device).c_str(), device_type_name(c.device.type));
  warn_once(c);
  constexpr Device host{kCPU, -1};
  std::vector<Ref<Tensor>> held;
  auto to_host = [&](Tensor* t) {
    if (!t || t->is_cpu()) return t;
    held.push_back(moved(t, host));
    return held.back().get();
  };
  Arg args[kMaxParams];
  std::vector<std::vector<Tensor*>> lists;
  for (int i = 0; i < c.op->nparams; ++i) {
    Arg& a = args[i] = c.args[i];
    if (a.kind == Kind::Tensor) {
      a.tensor = to_host(a.tensor);
    } else if (a.kind == Kind::Tensors) {
      std::vector<Tensor*> list;
      for (int k = 0; k < a.count; ++k) list.push_back(to_host(a.tensors[k]));
      lists.push_back(std::move(list));
      a.tensors = lists.back().data();
    } else if (a.kind == Kind::Device) {
      a.device = host;
    }
  }
  Call below = c;
  below.args = args;
  below.device = host;
  below.out = nullptr;
  below.inplace = false;
  Ref<> result = Ref<>::check(run(below));
  if (c.op->inplace_only) {
    for (int i = 0; i < c.op->nparams; ++i) {
      const Arg &a = c.args[i], &b = args[i];
      if (!c.op->params[i].is_write) continue;
      if (a.is_tensor()) copy_into(a.tensor, b.tensor);
      if (a.kind == Kind::Tensors)
        for (int k = 0; k < a.count; ++k)
          if (a.tensors[k]) copy_into(a.tensors[k], b.tensors[k]);
    }
    return c.args[0].is_tensor() ? Py_NewRef(object(c.args[0].tensor)) : moved(result.get(), c.device).release();
  }
  return moved(result.get(), c.device).release();
}

}  // namespace rl
