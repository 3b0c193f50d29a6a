#include "bind.h"

#include <vector>

namespace rl {

PyObject* run_composite(Call& c) {
  if (c.op->composite == nullptr) {
    PyErr_Format(PyExc_NotImplementedError, "%s: no kernel for this dtype. Convert to float32 or float64.", c.op->name);
    return nullptr;
  }
  Owned args(PyTuple_New(c.op->nparams));
  if (!args) return nullptr;
  for (int i = 0; i < c.op->nparams; ++i) {
    PyObject* value = api->arg_to_object(c.args[i]);
    if (value == nullptr) return nullptr;
    PyTuple_SET_ITEM(args.get(), i, value);
  }
  return PyObject_CallObject(c.op->composite, args.get());
}

PyObject* run_wide(Call& c) {
  std::vector<Arg> args(c.args, c.args + c.op->nparams);
  std::vector<Owned> held;
  DType dtype = DType::Float32;
  for (Arg& a : args) {
    if (!a.is_tensor() || !is_half(a.tensor)) continue;
    dtype = a.tensor->dtype;
    held.emplace_back(api->to_dtype(a.tensor, DType::Float32));
    if (!held.back()) return nullptr;
    a.tensor = held.back().tensor();
  }
  Call wide = c;
  wide.args = args.data();
  Owned result(c.op->kernels[kCPU](wide));
  const auto narrow = [&](PyObject* part) {
    const bool is_wide =
        PyObject_TypeCheck(part, api->tensor_type) && reinterpret_cast<Tensor*>(part)->dtype == DType::Float32;
    return is_wide ? api->to_dtype(reinterpret_cast<Tensor*>(part), dtype) : Py_NewRef(part);
  };
  if (!result || !PyTuple_Check(result.get())) return result ? narrow(result.get()) : nullptr;
  Owned parts(PyTuple_New(PyTuple_GET_SIZE(result.get())));
  for (Py_ssize_t i = 0; parts && i < PyTuple_GET_SIZE(result.get()); ++i) {
    PyObject* part = narrow(PyTuple_GET_ITEM(result.get(), i));
    if (part == nullptr) return nullptr;
    PyTuple_SET_ITEM(parts.get(), i, part);
  }
  return parts.release();
}

PyObject* tuple_of(std::initializer_list<Owned*> items) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(items.size()));
  if (tuple == nullptr) return nullptr;
  Py_ssize_t i = 0;
  for (Owned* item : items) PyTuple_SET_ITEM(tuple, i++, *item ? item->release() : Py_NewRef(Py_None));
  return tuple;
}

namespace {

bool read_int(PyObject* object, int64_t* value) {
  if (!PyLong_Check(object) || PyBool_Check(object)) return false;
  *value = PyLong_AsLongLong(object);
  if (*value == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  return true;
}

}  // namespace

bool read_sizes(const Arg& a, int n, int64_t* sizes) {
  int64_t one;
  if (a.kind == Kind::Int) {
    one = a.i;
  } else if (a.kind == Kind::Ints && (a.count == n || a.count == 1)) {
    for (int i = 0; i < n; ++i) sizes[i] = a.ints[a.count == 1 ? 0 : i];
    return true;
  } else if (a.kind != Kind::Object) {
    return false;
  } else if (!read_int(a.object, &one)) {
    if (!PyTuple_Check(a.object) && !PyList_Check(a.object)) return false;
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(a.object);
    if (count != n && count != 1) return false;
    for (int i = 0; i < n; ++i) {
      if (!read_int(PySequence_Fast_GET_ITEM(a.object, count == 1 ? 0 : i), &sizes[i])) return false;
    }
    return true;
  }
  for (int i = 0; i < n; ++i) sizes[i] = one;
  return true;
}

}  // namespace rl
