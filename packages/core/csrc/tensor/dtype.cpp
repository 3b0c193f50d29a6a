// The Python type `dtype`, its twelve values, and NumPy's descriptions of them.
#include <cstring>

#include "tensor.h"

namespace rl {

namespace {

struct DTypeObject {
  PyObject_HEAD DType value;
};

PyTypeObject* g_dtype_type = nullptr;
PyObject* g_dtypes[kNumDTypes];

DType value_of(PyObject* o) { return reinterpret_cast<DTypeObject*>(o)->value; }

PyObject* repr(PyObject* self) { return PyUnicode_FromFormat("torch.%s", name(value_of(self))); }
PyObject* get_itemsize(PyObject* self, void*) { return PyLong_FromLongLong(itemsize(value_of(self))); }
PyObject* get_is_floating(PyObject* self, void*) { return PyBool_FromLong(is_floating(value_of(self))); }
PyObject* get_is_complex(PyObject* self, void*) { return PyBool_FromLong(is_complex(value_of(self))); }
PyObject* get_is_signed(PyObject* self, void*) {
  return PyBool_FromLong(value_of(self) != DType::UInt8 && value_of(self) != DType::Bool);
}
PyObject* to_real(PyObject* self, PyObject*) { return Py_NewRef(g_dtypes[static_cast<int>(real_of(value_of(self)))]); }
PyObject* to_complex(PyObject* self, PyObject*) {
  return Py_NewRef(g_dtypes[static_cast<int>(complex_of(value_of(self)))]);
}
PyObject* reduce(PyObject* self, PyObject*) { return PyUnicode_FromString(name(value_of(self))); }

PyGetSetDef getset[] = {
    {"itemsize", get_itemsize, nullptr, "Bytes per element.", nullptr},
    {"is_floating_point", get_is_floating, nullptr, "True for float16, bfloat16, float32 and float64.", nullptr},
    {"is_complex", get_is_complex, nullptr, "True for complex64 and complex128.", nullptr},
    {"is_signed", get_is_signed, nullptr, "False for uint8 and bool.", nullptr},
    {}};
PyMethodDef methods[] = {{"to_real", to_real, METH_NOARGS, "The dtype of the real part."},
                         {"to_complex", to_complex, METH_NOARGS, "The complex dtype whose parts have this dtype."},
                         {"__reduce__", reduce, METH_NOARGS, nullptr},
                         {}};
PyType_Slot slots[] = {{Py_tp_repr, reinterpret_cast<void*>(repr)},
                       {Py_tp_getset, getset},
                       {Py_tp_methods, methods},
                       {Py_tp_doc, const_cast<char*>("The type of a tensor's elements.")},
                       {}};
PyType_Spec spec = {"rushlight.dtype", sizeof(DTypeObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                    slots};

}  // namespace

PyObject* dtype_object(DType t) { return g_dtypes[static_cast<int>(t)]; }

bool dtype_from_object(PyObject* o, DType* out) {
  if (Py_TYPE(o) == g_dtype_type) {
    *out = value_of(o);
    return true;
  }
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) return *out = DType::Float64, true;
  if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) return *out = DType::Int64, true;
  if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) return *out = DType::Bool, true;
  if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) return *out = DType::Complex128, true;
  return false;
}

void init_dtype_type(PyObject* module) {
  g_dtype_type = reinterpret_cast<PyTypeObject*>(Ref<>::check(PyType_FromSpec(&spec)).release());
  PyModule_AddObjectRef(module, "dtype", reinterpret_cast<PyObject*>(g_dtype_type));
  for (int i = 0; i < kNumDTypes; ++i) {
    auto* o = PyObject_New(DTypeObject, g_dtype_type);
    if (!o) throw PythonError();
    o->value = static_cast<DType>(i);
    g_dtypes[i] = reinterpret_cast<PyObject*>(o);
    PyModule_AddObjectRef(module, name(o->value), g_dtypes[i]);
  }
}

}  // namespace rl
