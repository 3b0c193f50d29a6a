// Memory formats and layouts: the Python objects, and the strides that they stand for.
#include <algorithm>
#include <cstring>

#include "ops.h"

namespace rl {

namespace {

struct NamedObject {
  PyObject_HEAD const char* name;
  int value;
};
PyTypeObject *g_format_type = nullptr, *g_layout_type = nullptr;
PyObject* g_formats[4];

PyObject* repr(PyObject* self) { return PyUnicode_FromFormat("torch.%s", reinterpret_cast<NamedObject*>(self)->name); }
PyObject* reduce(PyObject* self, PyObject*) { return PyUnicode_FromString(reinterpret_cast<NamedObject*>(self)->name); }
PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {}};
PyType_Slot slots[] = {{Py_tp_repr, reinterpret_cast<void*>(repr)}, {Py_tp_methods, methods}, {}};
PyType_Spec format_spec = {"rushlight.memory_format", sizeof(NamedObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
PyType_Spec layout_spec = {"rushlight.layout", sizeof(NamedObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

PyObject* add(PyObject* module, PyTypeObject* type, const char* name, int value) {
  auto* o = PyObject_New(NamedObject, type);
  if (!o) throw PythonError();
  o->name = name;
  o->value = value;
  PyModule_AddObjectRef(module, name, reinterpret_cast<PyObject*>(o));
  return reinterpret_cast<PyObject*>(o);
}

// new_layout(name): a further one; it lives as long as the process
PyObject* new_layout(PyObject*, PyObject* name) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    const char* text = PyUnicode_AsUTF8(name);
    if (!text) return nullptr;
    auto* o = PyObject_New(NamedObject, g_layout_type);
    if (!o) throw PythonError();
    o->name = PyUnicode_AsUTF8(Py_NewRef(name));
    o->value = -1;
    return reinterpret_cast<PyObject*>(o);
  });
}
PyMethodDef new_layout_def = {"new_layout", new_layout, METH_O, nullptr};

int rank_of(MemoryFormat f) { return f == MemoryFormat::ChannelsLast ? 4 : 5; }

// Strides with the channels (dimension 1) innermost.
void channels_last_strides(int ndim, const int64_t* sizes, int64_t* strides) {
  int64_t step = 1;
  auto place = [&](int d) {
    strides[d] = step;
    step *= std::max<int64_t>(sizes[d], 1);
  };
  place(1);
  for (int d = ndim - 1; d > 1; --d) place(d);
  place(0);
}

PyObject* m_is_contiguous(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    Py_ssize_t given = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    if (!given) return PyBool_FromLong(as_tensor(self)->contiguous());
    if (given > 1 || n || PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "memory_format"))
      fail(PyExc_TypeError, "is_contiguous() takes one keyword argument, memory_format");
    Arg a;
    a.kind = Kind::Object;
    a.object = args[0];
    return PyBool_FromLong(is_contiguous(as_tensor(self), memory_format_from(a, MemoryFormat::Contiguous)));
  });
}
PyMethodDef is_contiguous_def = {
    "is_contiguous", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(m_is_contiguous)),
    METH_FASTCALL | METH_KEYWORDS, "True when the elements lie in memory in the order of the format, without gaps."};

}  // namespace

Arg memory_format_arg(MemoryFormat f) {
  Arg a;
  a.kind = Kind::Object;
  a.object = g_formats[static_cast<int>(f)];
  return a;
}

MemoryFormat memory_format_from(const Arg& a, MemoryFormat otherwise) {
  if (a.none()) return otherwise;
  if (a.kind != Kind::Object || Py_TYPE(a.object) != g_format_type)
    fail(PyExc_TypeError, "memory_format must be torch.memory_format, not %s",
         a.kind == Kind::Object ? Py_TYPE(a.object)->tp_name : "a number");
  return static_cast<MemoryFormat>(reinterpret_cast<NamedObject*>(a.object)->value);
}

bool is_contiguous(const Tensor* t, MemoryFormat f) {
  if (f == MemoryFormat::Contiguous) return t->contiguous();
  if (f == MemoryFormat::Preserve)
    fail(PyExc_RuntimeError, "preserve memory format is unsupported by the contiguous operator");
  if (t->ndim != rank_of(f)) return false;
  int64_t strides[5];
  channels_last_strides(t->ndim, t->sizes, strides);
  for (int d = 0; d < t->ndim; ++d)
    if (t->sizes[d] > 1 && t->strides[d] != strides[d]) return false;
  return true;
}

Ref<Tensor> empty_formatted(const Tensor* like, DType dtype, Device device, MemoryFormat f) {
  if (f == MemoryFormat::Preserve) {
    if (device == like->device) return empty_preserving(like, dtype);
    return empty(like->ndim, like->sizes, dtype, device);
  }
  return empty_formatted(like->ndim, like->sizes, dtype, device, f);
}

Ref<Tensor> empty_formatted(int ndim, const int64_t* sizes, DType dtype, Device device, MemoryFormat f) {
  if (f == MemoryFormat::Contiguous) return empty(ndim, sizes, dtype, device);
  if (ndim != rank_of(f))
    fail(PyExc_RuntimeError, "required rank %d tensor to use channels_last format, got a tensor of shape %s",
         rank_of(f), shape_text(ndim, sizes).c_str());
  int64_t strides[5];
  channels_last_strides(ndim, sizes, strides);
  return empty_strided(ndim, sizes, strides, dtype, device);
}

void init_memory_format(PyObject* module) {
  g_format_type = reinterpret_cast<PyTypeObject*>(Ref<>::check(PyType_FromSpec(&format_spec)).release());
  g_layout_type = reinterpret_cast<PyTypeObject*>(Ref<>::check(PyType_FromSpec(&layout_spec)).release());
  PyModule_AddObjectRef(module, "memory_format", reinterpret_cast<PyObject*>(g_format_type));
  PyModule_AddObjectRef(module, "layout", reinterpret_cast<PyObject*>(g_layout_type));
  const char* formats[] = {"preserve_format", "contiguous_format", "channels_last", "channels_last_3d"};
  for (int i = 0; i < 4; ++i) g_formats[i] = add(module, g_format_type, formats[i], i);
  int i = 0;
  for (const char* name : {"strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"})
    add(module, g_layout_type, name, i++);
  PyModule_AddObject(module, "new_layout", Ref<>::check(PyCFunction_New(&new_layout_def, nullptr)).release());
  add_tensor_attribute("is_contiguous", Ref<>::check(PyDescr_NewMethod(g_tensor_type, &is_contiguous_def)).get());
}

}  // namespace rl
