// `Size`: the tuple of a tensor's dimensions.
#include "tensor.h"

namespace rl {

namespace {

PyTypeObject* g_size_type = nullptr;

PyObject* wrap(PyObject* tuple) {  // steals
  if (!tuple || !PyTuple_CheckExact(tuple)) return tuple;
  Py_ssize_t n = PyTuple_GET_SIZE(tuple);
  PyObject* self = g_size_type->tp_alloc(g_size_type, n);
  if (self)
    for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(self, i, Py_NewRef(PyTuple_GET_ITEM(tuple, i)));
  Py_DECREF(tuple);
  return self;
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject* self = PyTuple_Type.tp_new(type, args, kwargs);
  if (!self) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
    PyObject* item = PyTuple_GET_ITEM(self, i);
    if (PyLong_Check(item)) continue;
    PyObject* index = PyNumber_Index(item);
    if (!index) {
      PyErr_Format(PyExc_TypeError, "torch.Size() takes an iterable of 'int' (item %zd is '%s')", i,
                   Py_TYPE(item)->tp_name);
      Py_DECREF(self);
      return nullptr;
    }
    Py_DECREF(item);
    PyTuple_SET_ITEM(self, i, index);
  }
  return self;
}

PyObject* repr(PyObject* self) {
  std::string s = "torch.Size([";
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
    Ref<> text(PyObject_Repr(PyTuple_GET_ITEM(self, i)));
    if (!text) return nullptr;
    if (i) s += ", ";
    s += PyUnicode_AsUTF8(text.get());
  }
  return PyUnicode_FromString((s + "])").c_str());
}

PyObject* numel(PyObject* self, PyObject*) {
  Ref<> n(PyLong_FromLong(1));
  for (Py_ssize_t i = 0; n && i < PyTuple_GET_SIZE(self); ++i)
    n = Ref<>(PyNumber_Multiply(n.get(), PyTuple_GET_ITEM(self, i)));
  return n.release();
}

PyObject* concat(PyObject* a, PyObject* b) { return wrap(PyTuple_Type.tp_as_sequence->sq_concat(a, b)); }
PyObject* repeat(PyObject* a, Py_ssize_t n) { return wrap(PyTuple_Type.tp_as_sequence->sq_repeat(a, n)); }
PyObject* subscript(PyObject* a, PyObject* key) { return wrap(PyTuple_Type.tp_as_mapping->mp_subscript(a, key)); }
PyObject* reduce(PyObject* self, PyObject*) { return Py_BuildValue("O(N)", g_size_type, PySequence_Tuple(self)); }

PyMethodDef methods[] = {{"numel", numel, METH_NOARGS, "The number of elements of a tensor of this size."},
                         {"__reduce__", reduce, METH_NOARGS, nullptr},
                         {}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make)},
                       {Py_tp_repr, reinterpret_cast<void*>(repr)},
                       {Py_sq_concat, reinterpret_cast<void*>(concat)},
                       {Py_sq_repeat, reinterpret_cast<void*>(repeat)},
                       {Py_mp_subscript, reinterpret_cast<void*>(subscript)},
                       {Py_tp_methods, methods},
                       {Py_tp_doc, const_cast<char*>("The size of a tensor: a tuple of ints.")},
                       {}};
PyType_Spec spec = {"rushlight.Size", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_TUPLE_SUBCLASS, slots};

}  // namespace

PyObject* size_object(int n, const int64_t* values) {
  PyObject* self = g_size_type->tp_alloc(g_size_type, n);
  if (!self) throw PythonError();
  for (int i = 0; i < n; ++i) {
    PyObject* v = PyLong_FromLongLong(values[i]);
    if (!v) {
      Py_DECREF(self);
      throw PythonError();
    }
    PyTuple_SET_ITEM(self, i, v);
  }
  return self;
}

void init_size_type(PyObject* module) {
  Ref<> bases = Ref<>::check(PyTuple_Pack(1, &PyTuple_Type));
  g_size_type = reinterpret_cast<PyTypeObject*>(Ref<>::check(PyType_FromSpecWithBases(&spec, bases.get())).release());
  PyModule_AddObjectRef(module, "Size", reinterpret_cast<PyObject*>(g_size_type));
}

}  // namespace rl
