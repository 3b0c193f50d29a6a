// The Python face of Tensor: slots, attributes and the few methods that are not operators.
#include <Python.h>
#include <structmember.h>

#include <cstring>

#include "../ops/ops.h"
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL rushlight_numpy_api
#define NO_IMPORT_ARRAY
#include <numpy/arrayobject.h>

namespace rl {

Tensor* allocate_tensor(PyTypeObject* type);
extern const int kTensorSize;
void destroy_tensor(PyObject* self);

namespace {

// What Python gives to C++ once: set with _C.set_hook(name, callable).
struct Hooks {
  PyObject* repr = nullptr;        // Tensor -> str
  PyObject* legacy_new = nullptr;  // Tensor(...) -> Tensor
  PyObject* reduce = nullptr;      // Tensor -> what pickle wants
} g_hooks;

Tensor* self_of(PyObject* o) { return reinterpret_cast<Tensor*>(o); }

// ---- lifecycle

int traverse(PyObject* self, visitproc visit, void* arg) {
  Tensor* t = self_of(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(t->grad_fn);
  Py_VISIT(t->autograd);
  Py_VISIT(t->base);
  Py_VISIT(t->array);
  Py_VISIT(t->dict);
  // A storage's owner may lead back here (an ndarray subclass with attributes); only its last user may say so.
  if (t->storage && t->storage->refs == 1) Py_VISIT(t->storage->owner);
  return 0;
}

int clear(PyObject* self) {
  Tensor* t = self_of(self);
  Py_CLEAR(t->autograd);
  Py_CLEAR(t->grad_fn);
  Py_CLEAR(t->array);
  Py_CLEAR(t->dict);
  return 0;
}

// Whether calls with objects of the subclass go through its __torch_function__.
bool overrides(PyTypeObject* type) {
  Ref<> override_fn(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__torch_function__"));
  if (!override_fn) throw PythonError();
  static PyObject* disabled = PyUnicode_InternFromString("_rushlight_disabled");
  Ref<> off(PyObject_GetAttr(override_fn.get(), disabled));
  if (!off) PyErr_Clear();
  return !off;
}

// Puts `like`'s memory and geometry into a new object of the subclass.
Ref<Tensor> as_subclass(PyTypeObject* type, Tensor* t) {
  Ref<Tensor> r(allocate_tensor(type));
  r->dtype = t->dtype;
  r->device = t->device;
  r->strides = r->dims + kInlineDims;
  r->offset = t->offset;
  r->storage = retain(t->storage);
  set_geometry(r.get(), t->ndim, t->sizes, t->strides, t->offset);
  r->flags |= t->flags & (kInference | kLayout);
  if (overrides(type)) r->flags |= kOverride;
  return r;
}

PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  if (!g_hooks.legacy_new)
    return PyErr_Format(PyExc_TypeError, "Tensor() cannot be made before rushlight is imported"), nullptr;
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    Ref<> t = Ref<>::check(PyObject_Call(g_hooks.legacy_new, args, kwargs));
    if (type == g_tensor_type) return t.release();
    return as_subclass(type, as_tensor(t.get())).release_object();
  });
}

int tensor_init(PyObject*, PyObject*, PyObject*) { return 0; }

// ---- attributes

int setattro(PyObject* self, PyObject* name, PyObject* value) {
  if (PyObject_GenericSetAttr(self, name, value) < 0) return -1;
  if (self_of(self)->dict && !PyObject_GC_IsTracked(self)) PyObject_GC_Track(self);
  return 0;
}

PyObject* get_shape(PyObject* self, void*) {
  return guard<PyObject*>(nullptr, [&] { return size_object(self_of(self)->ndim, self_of(self)->sizes); });
}
PyObject* get_dtype(PyObject* self, void*) { return Py_NewRef(dtype_object(self_of(self)->dtype)); }
PyObject* get_device(PyObject* self, void*) {
  return guard<PyObject*>(nullptr, [&] { return device_object(self_of(self)->device); });
}
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLong(self_of(self)->ndim); }
PyObject* get_itemsize(PyObject* self, void*) { return PyLong_FromLongLong(itemsize(self_of(self)->dtype)); }
PyObject* get_nbytes(PyObject* self, void*) {
  return guard<PyObject*>(nullptr, [&] {
    if (self_of(self)->flags & kLayout)
      fail(PyExc_RuntimeError,
           "nbytes is not defined for sparse tensors. If you want the size of the constituent tensors, add the nbytes "
           "of "
           "the indices and values. If you want the size of the equivalent dense tensor, multiply numel() by "
           "element_size().");
    return PyLong_FromLongLong(self_of(self)->nbytes());
  });
}
PyObject* get_requires_grad(PyObject* self, void*) { return PyBool_FromLong(requires_grad(self_of(self))); }
int set_requires_grad(PyObject* self, PyObject* value, void*) {
  // The autograd wheel replaces this attribute; asking for one of its names loads it.
  Ref<> fn(PyObject_GetAttrString(self, "requires_grad_"));
  if (!fn) return -1;
  Ref<> r(PyObject_CallFunctionObjArgs(fn.get(), value, nullptr));
  return r ? 0 : -1;
}
PyObject* get_base(PyObject* self, void*) {
  Tensor* b = self_of(self)->base;
  return Py_NewRef(b ? object(b) : Py_None);
}
PyObject* get_attributes(PyObject* self, void*) {
  PyObject* dict = self_of(self)->dict;
  return Py_NewRef(dict && PyDict_GET_SIZE(dict) ? dict : Py_None);
}
PyObject* get_version(PyObject* self, void*) {
  if (!(self_of(self)->flags & kInference)) return PyLong_FromUnsignedLong(self_of(self)->storage->version);
  PyErr_SetString(PyExc_RuntimeError,
                  "Inference tensors do not track version counter. clone() it outside of inference_mode.");
  return nullptr;
}
template <uint8_t type>
PyObject* get_is_type(PyObject* self, void*) {
  return PyBool_FromLong(self_of(self)->device.type == type);
}
PyObject* get_is_cuda(PyObject* self, void*) {
  return PyBool_FromLong(!std::strcmp(device_type_name(self_of(self)->device.type), "cuda"));
}
template <int which>
PyObject* get_is_layout(PyObject* self, void*) {
  return guard<PyObject*>(nullptr, [&] {
    static PyObject* layouts[2] = {};  // borrowed: the module keeps them
    if (!(self_of(self)->flags & kLayout)) return Py_NewRef(Py_False);
    if (!layouts[which]) {
      Ref<> module = Ref<>::check(PyImport_ImportModule("rushlight._C"));
      layouts[which] = PyObject_GetAttrString(module.get(), which ? "sparse_csr" : "sparse_coo");
      if (!layouts[which]) throw PythonError();
    }
    Ref<> layout(layout_of(self_of(self)));
    return PyBool_FromLong(layout.get() == layouts[which]);
  });
}
PyObject* get_false(PyObject*, void*) { return Py_NewRef(Py_False); }
PyObject* get_data(PyObject* self, void*) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    Ref<Tensor> r = detach(self_of(self));
    Storage* own = alias_storage(r->storage);
    release(r->storage);
    r->storage = own;
    return r.release_object();
  });
}
int set_data(PyObject* self, PyObject* value, void*) {
  return guard<int>(-1, [&] {
    if (!value || !is_tensor(value))
      fail(PyExc_TypeError, "data: must be set to a Tensor, not %s", value ? Py_TYPE(value)->tp_name : "deleted");
    Tensor *t = self_of(self), *v = as_tensor(value);
    if ((t->flags ^ v->flags) & kLayout)
      fail(PyExc_RuntimeError,
           "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type: "
           "one of them is strided, the other is not.");
    Storage* own = alias_storage(v->storage);
    release(t->storage);
    t->storage = own;
    t->dtype = v->dtype;
    t->device = v->device;
    set_geometry(t, v->ndim, v->sizes, v->strides, v->offset);
    return 0;
  });
}

PyObject* get_class(PyObject* self, void*) { return Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(self))); }
int set_class(PyObject* self, PyObject* type, void*) {
  return guard<int>(-1, [&] {
    static PyObject* plain = _PyType_Lookup(&PyBaseObject_Type, PyUnicode_InternFromString("__class__"));
    if (Py_TYPE(plain)->tp_descr_set(plain, self, type) < 0) throw PythonError();
    self_of(self)->flags &= ~kOverride;
    if (Py_TYPE(self) != g_tensor_type && overrides(Py_TYPE(self))) self_of(self)->flags |= kOverride;
    return 0;
  });
}

PyGetSetDef getset[] = {
    {"__class__", get_class, set_class, nullptr, nullptr},
    {"shape", get_shape, nullptr, "The size of each dimension, a Size.", nullptr},
    {"dtype", get_dtype, nullptr, "The type of the elements.", nullptr},
    {"device", get_device, nullptr, "Where the memory is.", nullptr},
    {"ndim", get_ndim, nullptr, "The number of dimensions.", nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes per element.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Bytes of all elements.", nullptr},
    {"requires_grad", get_requires_grad, set_requires_grad, "Whether gradients are recorded for it.", nullptr},
    {"data", get_data, set_data, "The same memory without history and with a version counter of its own.", nullptr},
    {"_base", get_base, nullptr, "The tensor of which this is a view, or None.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {"_attributes", get_attributes, nullptr, "Its own attributes, None where it has none.", nullptr},
    {"_version", get_version, nullptr, "How often the memory was written in place.", nullptr},
    {"is_cpu", get_is_type<kCPU>, nullptr, "True on the CPU.", nullptr},
    {"is_meta", get_is_type<kMeta>, nullptr, "True for tensors without memory.", nullptr},
    {"is_cuda", get_is_cuda, nullptr, "True on a CUDA device.", nullptr},
    {"is_sparse", get_is_layout<0>, nullptr, "True where the layout is sparse_coo.", nullptr},
    {"is_sparse_csr", get_is_layout<1>, nullptr, "True where the layout is sparse_csr.", nullptr},
    {"is_quantized", get_false, nullptr, "False.", nullptr},
    {"is_mkldnn", get_false, nullptr, "False.", nullptr},
    {"is_nested", get_false, nullptr, "False.", nullptr},
    {}};

// ---- methods

PyObject* m_size(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    Tensor* t = self_of(self);
    Py_ssize_t given = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    if (given > 1) fail(PyExc_TypeError, "size() takes at most 1 argument (dim), got %zd", given);
    if (!given || args[0] == Py_None) return size_object(t->ndim, t->sizes);
    int64_t d = PyLong_AsLongLong(args[0]);
    if (d == -1 && PyErr_Occurred()) return nullptr;
    if (!t->ndim)
      fail(PyExc_IndexError, "Dimension specified as %lld but tensor has no dimensions", static_cast<long long>(d));
    return PyLong_FromLongLong(t->sizes[wrap_dim("size", d, t->ndim)]);
  });
}
PyObject* m_stride(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    Tensor* t = self_of(self);
    Py_ssize_t given = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    if (given > 1) fail(PyExc_TypeError, "stride() takes at most 1 argument (dim), got %zd", given);
    if (given && args[0] != Py_None) {
      int64_t d = PyLong_AsLongLong(args[0]);
      if (d == -1 && PyErr_Occurred()) return nullptr;
      if (!t->ndim)
        fail(PyExc_IndexError, "Dimension specified as %lld but tensor has no dimensions", static_cast<long long>(d));
      return PyLong_FromLongLong(t->strides[wrap_dim("stride", d, t->ndim)]);
    }
    PyObject* tuple = PyTuple_New(t->ndim);
    for (int i = 0; tuple && i < t->ndim; ++i) PyTuple_SET_ITEM(tuple, i, PyLong_FromLongLong(t->strides[i]));
    return tuple;
  });
}
PyObject* m_dim(PyObject* self, PyObject*) { return PyLong_FromLong(self_of(self)->ndim); }
PyObject* m_numel(PyObject* self, PyObject*) { return PyLong_FromLongLong(self_of(self)->numel); }
PyObject* m_storage_offset(PyObject* self, PyObject*) { return PyLong_FromLongLong(self_of(self)->offset); }
PyObject* m_element_size(PyObject* self, PyObject*) { return get_itemsize(self, nullptr); }
PyObject* m_data_ptr(PyObject* self, PyObject*) {
  return guard<PyObject*>(nullptr, [&] {
    if (self_of(self)->flags & kLayout)
      fail(PyExc_RuntimeError, "Cannot access data pointer of Tensor that doesn't have storage");
    return PyLong_FromVoidPtr(self_of(self)->data);
  });
}
PyObject* m_untyped_storage(PyObject* self, PyObject*) {
  return guard<PyObject*>(nullptr, [&] {
    if (self_of(self)->flags & kLayout)
      fail(PyExc_NotImplementedError,
           "Cannot access storage of a tensor that is not strided. Take its parts' storages.");
    return storage_object(self_of(self)->storage);
  });
}
PyObject* m_is_set_to(PyObject* self, PyObject* other) {
  return guard<PyObject*>(nullptr, [&] {
    if (!is_tensor(other))
      fail(PyExc_TypeError, "is_set_to(): argument 'tensor' must be Tensor, not %s", Py_TYPE(other)->tp_name);
    Tensor *a = self_of(self), *b = self_of(other);
    return PyBool_FromLong(root_of(a->storage) == root_of(b->storage) && same_geometry(a, b));
  });
}
PyObject* m_is_floating(PyObject* self, PyObject*) { return PyBool_FromLong(is_floating(self_of(self)->dtype)); }
PyObject* m_is_complex(PyObject* self, PyObject*) { return PyBool_FromLong(is_complex(self_of(self)->dtype)); }
PyObject* m_is_signed(PyObject* self, PyObject*) {
  return PyBool_FromLong(self_of(self)->dtype != DType::UInt8 && self_of(self)->dtype != DType::Bool);
}
PyObject* m_is_inference(PyObject* self, PyObject*) { return PyBool_FromLong(self_of(self)->flags & kInference); }
PyObject* m_is_view(PyObject* self, PyObject*) { return PyBool_FromLong(self_of(self)->base != nullptr); }
PyObject* m_item(PyObject* self, PyObject*) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    Tensor* t = self_of(self);
    if (t->numel == 1 && t->is_cpu() && !(t->flags & kLayout)) return item_object(t->data, t->dtype);
    return arg_to_object(item(t));
  });
}

// The one element as a Python number; a complex one with an imaginary part is none that float and int take.
Ref<> python_number(PyObject* self, const char* type) {
  if (self_of(self)->numel != 1)
    fail(PyExc_ValueError, "only one element tensors can be converted to Python scalars, got shape %s",
         shape_text(self_of(self)).c_str());
  Ref<> o = Ref<>::check(m_item(self, nullptr));
  if (!type || !PyComplex_Check(o.get())) return o;
  if (PyComplex_ImagAsDouble(o.get()) != 0)
    fail(PyExc_RuntimeError, "value cannot be converted to type %s without overflow. Take its real part or abs().",
         type);
  return Ref<>::check(PyFloat_FromDouble(PyComplex_RealAsDouble(o.get())));
}
PyObject* m_complex(PyObject* self, PyObject*) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    Ref<> number = python_number(self, nullptr);
    Py_complex v = PyComplex_AsCComplex(number.get());
    return PyErr_Occurred() ? nullptr : PyComplex_FromCComplex(v);
  });
}

PyObject* nested_list(const Tensor* t, int dim, const char* at) {
  if (dim == t->ndim) return item_object(at, t->dtype);
  PyObject* list = PyList_New(t->sizes[dim]);
  if (!list) throw PythonError();
  int64_t step = t->strides[dim] * itemsize(t->dtype);
  for (int64_t i = 0; i < t->sizes[dim]; ++i) {
    PyObject* v = nested_list(t, dim + 1, at + i * step);
    if (!v) {
      Py_DECREF(list);
      throw PythonError();
    }
    PyList_SET_ITEM(list, i, v);
  }
  return list;
}

Ref<Tensor> on_host(Tensor* t) {
  if (t->is_cpu()) return Ref<Tensor>::borrow(t);
  Ref<Tensor> host = empty(t->ndim, t->sizes, t->dtype, {kCPU, -1});
  copy_into(host.get(), t);
  return host;
}

PyObject* m_tolist(PyObject* self, PyObject*) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    require_strided(self_of(self), "a list");
    Ref<Tensor> t = on_host(self_of(self));
    return nested_list(t.get(), 0, t->data);
  });
}

PyObject* m_numpy(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    static const char* names[] = {"force", nullptr};
    int force = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$p:numpy", const_cast<char**>(names), &force)) return nullptr;
    Tensor* t = self_of(self);
    require_strided(t, "numpy");
    if (t->device.type == kMeta || (!t->is_cpu() && !force))
      fail(PyExc_TypeError,
           "can't convert %s device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
           device_text(t->device).c_str());
    if (requires_grad(t) && !force)
      fail(PyExc_RuntimeError, "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
    if (t->dtype == DType::BFloat16 && !force)
      fail(PyExc_TypeError,
           "Got unsupported ScalarType BFloat16. Convert it with .float() first, or pass force=True for an ml_dtypes "
           "array.");
    return array_of(on_host(t).get());
  });
}

PyObject* m_array(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    static const char* names[] = {"dtype", "copy", nullptr};
    PyObject *dtype = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", const_cast<char**>(names), &dtype, &copy))
      return nullptr;
    Ref<> empty_args = Ref<>::check(PyTuple_New(0));
    Ref<> array = Ref<>::check(m_numpy(self, empty_args.get(), nullptr));
    PyArray_Descr* descr = nullptr;
    if (!PyArray_DescrConverter2(dtype, &descr)) return nullptr;
    bool converts = descr && !PyArray_EquivTypes(descr, PyArray_DESCR(reinterpret_cast<PyArrayObject*>(array.get())));
    if (converts && copy == Py_False) {
      Py_DECREF(descr);
      fail(PyExc_ValueError,
           "Unable to avoid copy while creating an array as requested: the dtype differs. Pass "
           "copy=None.");
    }
    // PyArray_FromArray steals the descriptor, null keeps the dtype.
    return PyArray_FromArray(reinterpret_cast<PyArrayObject*>(array.get()), descr,
                             NPY_ARRAY_FORCECAST | (copy == Py_True ? NPY_ARRAY_ENSURECOPY : 0));
  });
}

PyObject* m_backend_array(PyObject* self, PyObject*) {
  return guard<PyObject*>(nullptr, [&] { return array_of(self_of(self)); });
}

PyObject* m_as_subclass(PyObject* self, PyObject* type) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    if (!PyType_Check(type) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), g_tensor_type))
      fail(PyExc_TypeError, "as_subclass: cls must be a type that inherits from Tensor");
    Ref<Tensor> r = as_subclass(reinterpret_cast<PyTypeObject*>(type), self_of(self));
    r->flags |= self_of(self)->flags & kRequiresGrad;
    r->grad_fn = Py_XNewRef(self_of(self)->grad_fn);
    r->output_nr = self_of(self)->output_nr;
    return r.release_object();
  });
}

// _make_subclass(cls, data, require_grad=False): a leaf of a subclass over data's memory (Parameter).
PyObject* m_make_subclass(PyObject*, PyObject* args, PyObject* kwargs) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    static const char* names[] = {"cls", "data", "require_grad", nullptr};
    PyObject *type, *data;
    int require = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!|p:_make_subclass", const_cast<char**>(names), &PyType_Type,
                                     &type, g_tensor_type, &data, &require))
      return nullptr;
    if (!PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), g_tensor_type))
      fail(PyExc_TypeError, "_make_subclass: cls must be a type that inherits from Tensor");
    Ref<Tensor> r = as_subclass(reinterpret_cast<PyTypeObject*>(type), as_tensor(data));
    if (require && PyObject_SetAttrString(r.object(), "requires_grad", Py_True) < 0) return nullptr;
    return r.release_object();
  });
}

PyObject* m_reduce(PyObject* self, PyObject* protocol) {
  return PyObject_CallFunctionObjArgs(g_hooks.reduce, self, protocol, nullptr);
}
PyObject* m_false(PyObject*, PyObject*) { Py_RETURN_FALSE; }
PyObject* m_format(PyObject* self, PyObject* spec) {
  Tensor* t = self_of(self);
  const bool number = t->numel == 1 && !t->ndim && Py_TYPE(self) == g_tensor_type;
  if (!number && PyUnicode_GetLength(spec) > 0)
    return PyErr_Format(PyExc_TypeError, "unsupported format string passed to %s.__format__", Py_TYPE(self)->tp_name);
  Ref<> o(number ? m_item(self, nullptr) : PyObject_Str(self));
  return o ? PyObject_Format(o.get(), spec) : nullptr;
}

#define FAST(f) reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f))
PyMethodDef methods[] = {
    {"size", FAST(m_size), METH_FASTCALL | METH_KEYWORDS, "The Size, or the size of one dimension."},
    {"stride", FAST(m_stride), METH_FASTCALL | METH_KEYWORDS, "The strides in elements, or that of one dimension."},
    {"dim", m_dim, METH_NOARGS, "The number of dimensions."},
    {"ndimension", m_dim, METH_NOARGS, "The number of dimensions."},
    {"numel", m_numel, METH_NOARGS, "The number of elements."},
    {"nelement", m_numel, METH_NOARGS, "The number of elements."},
    {"storage_offset", m_storage_offset, METH_NOARGS,
     "Elements between the start of the storage and the first element."},
    {"element_size", m_element_size, METH_NOARGS, "Bytes per element."},
    {"data_ptr", m_data_ptr, METH_NOARGS, "The address of the first element."},
    {"untyped_storage", m_untyped_storage, METH_NOARGS, "The UntypedStorage that holds the elements."},
    {"is_set_to", m_is_set_to, METH_O, "Whether both tensors are the same elements of the same storage."},
    {"is_floating_point", m_is_floating, METH_NOARGS, "True for a floating-point dtype."},
    {"is_complex", m_is_complex, METH_NOARGS, "True for a complex dtype."},
    {"is_signed", m_is_signed, METH_NOARGS, "True for a signed dtype."},
    {"is_conj", m_false, METH_NOARGS, "False: conjugates are computed at once."},
    {"is_neg", m_false, METH_NOARGS, "False: negatives are computed at once."},
    {"is_inference", m_is_inference, METH_NOARGS, "True when made in inference mode."},
    {"_is_view", m_is_view, METH_NOARGS, "True for a view of another tensor."},
    {"item", m_item, METH_NOARGS, "The one element as a Python number."},
    {"tolist", m_tolist, METH_NOARGS, "Nested lists of Python numbers."},
    {"numpy", FAST(m_numpy), METH_VARARGS | METH_KEYWORDS, "An ndarray over the same memory."},
    {"__complex__", m_complex, METH_NOARGS, "The one element as a complex number."},
    {"__array__", FAST(m_array), METH_VARARGS | METH_KEYWORDS, "An ndarray over the same memory."},
    {"_array", m_backend_array, METH_NOARGS, "The backend's array over the same memory."},
    {"as_subclass", m_as_subclass, METH_O, "The same tensor as an instance of a subclass."},
    {"_make_subclass", FAST(m_make_subclass), METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "A leaf of a subclass over a tensor's memory."},
    {"__reduce_ex__", m_reduce, METH_O, nullptr},
    {"__format__", m_format, METH_O, nullptr},
    {}};

// ---- number protocol

struct Slot {
  Operator* plain = nullptr;
  Operator* inplace = nullptr;
};
Slot g_add, g_sub, g_mul, g_div, g_floor_div, g_remainder, g_pow, g_matmul, g_and, g_or, g_xor, g_shl, g_shr;
Slot g_neg, g_pos, g_abs, g_invert;
Slot g_compare[6];  // by Py_LT … Py_GE

struct Binding {
  const char* op;
  Slot* slot;
};
const Binding kBindings[] = {{"add", &g_add},
                             {"sub", &g_sub},
                             {"mul", &g_mul},
                             {"div", &g_div},
                             {"floor_divide", &g_floor_div},
                             {"remainder", &g_remainder},
                             {"pow", &g_pow},
                             {"matmul", &g_matmul},
                             {"bitwise_and", &g_and},
                             {"bitwise_or", &g_or},
                             {"bitwise_xor", &g_xor},
                             {"bitwise_left_shift", &g_shl},
                             {"bitwise_right_shift", &g_shr},
                             {"neg", &g_neg},
                             {"positive", &g_pos},
                             {"abs", &g_abs},
                             {"bitwise_not", &g_invert},
                             {"lt", &g_compare[Py_LT]},
                             {"le", &g_compare[Py_LE]},
                             {"eq", &g_compare[Py_EQ]},
                             {"ne", &g_compare[Py_NE]},
                             {"gt", &g_compare[Py_GT]},
                             {"ge", &g_compare[Py_GE]}};

// One operand; false: not something that tensors take (the other operand's type may).
bool operand(PyObject* o, Arg* a) {
  if (is_tensor(o)) {
    a->kind = Kind::Tensor;
    a->tensor = as_tensor(o);
    return true;
  }
  return number_from_object(o, a);
}

// A tensor and an ndarray, in either order, compute as NumPy's operator `fn` does; the result is a tensor.
template <class F>
PyObject* with_ndarray(PyObject* a, PyObject* b, F&& fn) {
  if (!PyArray_Check(a) && !PyArray_Check(b)) return Py_NewRef(Py_NotImplemented);
  auto array = [](PyObject* o) {
    return is_tensor(o) ? Ref<>::check(PyObject_CallMethod(o, "numpy", nullptr)) : Ref<>::borrow(o);
  };
  Ref<> result = Ref<>::check(fn(array(a).get(), array(b).get()));
  return from_ndarray(Ref<>::check(PyArray_FROM_O(result.get())).get()).release_object();
}

// `fn`: the same operator of any two objects; null: in place.
PyObject* binary(const Slot& slot, PyObject* a, PyObject* b, binaryfunc fn) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    bool inplace = !fn;
    Operator* o = inplace ? slot.inplace : slot.plain;
    if (!o) return Py_NewRef(Py_NotImplemented);
    const OpRecord* op = (*o->overloads)[0];
    Arg args[4];
    if (op->nparams > 4 || !operand(a, &args[0]) || !operand(b, &args[1]))
      return fn ? with_ndarray(a, b, fn) : Py_NewRef(Py_NotImplemented);
    for (int i = 2; i < op->nparams; ++i) args[i] = op->params[i].default_value;
    Call c{op, args, 0, {kCPU, -1}, inplace, 0, nullptr, reinterpret_cast<PyObject*>(o)};
    complete(c);
    return dispatch(c);
  });
}

PyObject* through_operator(Operator* o, PyObject* a, PyObject* b, binaryfunc fn) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    Arg probe;
    if (!o) return Py_NewRef(Py_NotImplemented);
    if (!operand(a, &probe) || !operand(b, &probe)) return fn ? with_ndarray(a, b, fn) : Py_NewRef(Py_NotImplemented);
    PyObject* args[2] = {a, b};
    return call_operator(o, args, 2, nullptr);
  });
}

PyObject* unary(const Slot& slot, PyObject* a) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    if (!slot.plain) return Py_NewRef(Py_NotImplemented);
    return call_operator(slot.plain, &a, 1, nullptr);
  });
}

#define BINARY(fn, slot, number)                                                     \
  PyObject* nb_##fn(PyObject* a, PyObject* b) { return binary(slot, a, b, number); } \
  PyObject* nb_i##fn(PyObject* a, PyObject* b) { return binary(slot, a, b, nullptr); }
BINARY(add, g_add, PyNumber_Add)
BINARY(sub, g_sub, PyNumber_Subtract)
BINARY(mul, g_mul, PyNumber_Multiply)
BINARY(div, g_div, PyNumber_TrueDivide)
BINARY(floordiv, g_floor_div, PyNumber_FloorDivide)
BINARY(mod, g_remainder, PyNumber_Remainder)
BINARY(and, g_and, PyNumber_And)
BINARY(or, g_or, PyNumber_Or)
BINARY(xor, g_xor, PyNumber_Xor)
BINARY(shl, g_shl, PyNumber_Lshift)
BINARY(shr, g_shr, PyNumber_Rshift)
#undef BINARY
PyObject* nb_matmul(PyObject* a, PyObject* b) {
  if (is_tensor(a) && is_tensor(b)) return binary(g_matmul, a, b, PyNumber_MatrixMultiply);
  return guard<PyObject*>(nullptr, [&] { return with_ndarray(a, b, PyNumber_MatrixMultiply); });
}
PyObject* nb_pow(PyObject* a, PyObject* b, PyObject*) {
  return through_operator(g_pow.plain, a, b, [](PyObject* x, PyObject* y) { return PyNumber_Power(x, y, Py_None); });
}
PyObject* nb_ipow(PyObject* a, PyObject* b, PyObject*) { return through_operator(g_pow.inplace, a, b, nullptr); }
PyObject* nb_neg(PyObject* a) { return unary(g_neg, a); }
PyObject* nb_pos(PyObject* a) { return unary(g_pos, a); }
PyObject* nb_abs(PyObject* a) { return unary(g_abs, a); }
PyObject* nb_invert(PyObject* a) {
  if (is_tensor(a) && is_inexact(as_tensor(a)->dtype)) {
    PyErr_SetString(PyExc_TypeError, "~ (operator.invert) is only implemented on integer and Boolean-type tensors");
    return nullptr;
  }
  return unary(g_invert, a);
}

template <int op>
PyObject* compare_as(PyObject* a, PyObject* b) {
  return PyObject_RichCompare(a, b, op);
}

PyObject* compare(PyObject* a, PyObject* b, int op) {
  static constexpr binaryfunc fns[] = {compare_as<Py_LT>, compare_as<Py_LE>, compare_as<Py_EQ>,
                                       compare_as<Py_NE>, compare_as<Py_GT>, compare_as<Py_GE>};
  return binary(g_compare[op], a, b, fns[op]);
}

int nb_bool(PyObject* self) {
  return guard<int>(-1, [&] {
    Tensor* t = self_of(self);
    if (t->numel != 1)
      fail(PyExc_RuntimeError, t->numel ? "Boolean value of Tensor with more than one value is ambiguous"
                                        : "Boolean value of Tensor with no values is ambiguous");
    if (t->is_cpu() && !(t->flags & kLayout)) {
      const char* p = t->data;
      for (int64_t i = 0, n = itemsize(t->dtype); is_integral(t->dtype) || t->dtype == DType::Bool ? i < n : false; ++i)
        if (p[i]) return 1;
      if (is_integral(t->dtype) || t->dtype == DType::Bool) return 0;
    }
    return static_cast<int>(item(t).to_bool());
  });
}
PyObject* nb_float(PyObject* self) {
  return guard<PyObject*>(nullptr, [&] { return PyNumber_Float(python_number(self, "double").get()); });
}
PyObject* nb_int(PyObject* self) {
  return guard<PyObject*>(nullptr, [&] { return PyNumber_Long(python_number(self, "int64_t").get()); });
}
PyObject* nb_index(PyObject* self) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    if (self_of(self)->numel != 1 || is_inexact(self_of(self)->dtype))
      fail(PyExc_TypeError, "only integer tensors of a single element can be converted to an index");
    Ref<> o = Ref<>::check(m_item(self, nullptr));
    return PyNumber_Index(o.get());
  });
}

// ---- containers

Py_ssize_t length(PyObject* self) {
  Tensor* t = self_of(self);
  if (!t->ndim) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
  }
  return t->sizes[0];
}
PyObject* subscript(PyObject* self, PyObject* key) {
  return guard<PyObject*>(nullptr, [&] { return get_item(self_of(self), key); });
}
int ass_subscript(PyObject* self, PyObject* key, PyObject* value) {
  return guard<int>(-1, [&] {
    if (!value) fail(PyExc_TypeError, "Tensor does not support deleting items");
    set_item(self_of(self), key, value);
    return 0;
  });
}
PyObject* iter(PyObject* self) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    if (!self_of(self)->ndim) fail(PyExc_TypeError, "iteration over a 0-d tensor");
    bool override = self_of(self)->flags & kOverride;  // the parts are of the subclass then
    Ref<> parts = Ref<>::check(override ? PyObject_CallMethod(self, "unbind", nullptr) : unbind(self_of(self), 0));
    return PyObject_GetIter(parts.get());
  });
}
int contains(PyObject* self, PyObject* element) {
  Arg probe;
  if (!is_tensor(element) && !guard<bool>(false, [&] { return number_from_object(element, &probe); })) {
    if (!PyErr_Occurred())
      PyErr_Format(PyExc_RuntimeError, "Tensor.__contains__ only supports Tensor or scalar, but you passed in a %s.",
                   Py_TYPE(element)->tp_name);
    return -1;
  }
  Ref<> same(compare(self, element, Py_EQ));
  if (!same) return -1;
  Ref<> any(PyObject_CallMethod(same.get(), "any", nullptr));
  return any ? PyObject_IsTrue(any.get()) : -1;
}

// The buffer protocol is that of the ndarray over the same memory.
int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  return guard<int>(-1, [&] {
    Tensor* t = self_of(self);
    if (!t->is_cpu() || requires_grad(t))
      fail(PyExc_BufferError, "the memory of a tensor %s is no buffer. Call %s first.",
           t->is_cpu() ? "that requires a gradient" : "of another device", t->is_cpu() ? "detach()" : "cpu()");
    return PyObject_GetBuffer(Ref<>::check(array_of(t)).get(), view, flags);
  });
}

PyObject* repr(PyObject* self) {
  if (!g_hooks.repr) return PyUnicode_FromString("tensor(...)");
  return PyObject_CallOneArg(g_hooks.repr, self);
}
Py_hash_t hash(PyObject* self) { return _Py_HashPointer(self); }

PyMemberDef members[] = {{"__dictoffset__", T_PYSSIZET, offsetof(Tensor, dict), READONLY, nullptr},
                         {"__weaklistoffset__", T_PYSSIZET, offsetof(Tensor, weakrefs), READONLY, nullptr},
                         {}};
#define SLOT(name, fn) {Py_##name, reinterpret_cast<void*>(fn)}
PyType_Slot slots[] = {SLOT(tp_new, tensor_new),
                       SLOT(tp_init, tensor_init),
                       SLOT(tp_dealloc, destroy_tensor),
                       SLOT(tp_traverse, traverse),
                       SLOT(tp_clear, clear),
                       SLOT(tp_setattro, setattro),
                       SLOT(tp_getset, getset),
                       SLOT(tp_methods, methods),
                       SLOT(tp_members, members),
                       SLOT(tp_repr, repr),
                       SLOT(tp_hash, hash),
                       SLOT(tp_richcompare, compare),
                       SLOT(tp_iter, iter),
                       SLOT(nb_add, nb_add),
                       SLOT(nb_subtract, nb_sub),
                       SLOT(nb_multiply, nb_mul),
                       SLOT(nb_true_divide, nb_div),
                       SLOT(nb_floor_divide, nb_floordiv),
                       SLOT(nb_remainder, nb_mod),
                       SLOT(nb_power, nb_pow),
                       SLOT(nb_matrix_multiply, nb_matmul),
                       SLOT(nb_and, nb_and),
                       SLOT(nb_or, nb_or),
                       SLOT(nb_xor, nb_xor),
                       SLOT(nb_lshift, nb_shl),
                       SLOT(nb_rshift, nb_shr),
                       SLOT(nb_inplace_add, nb_iadd),
                       SLOT(nb_inplace_subtract, nb_isub),
                       SLOT(nb_inplace_multiply, nb_imul),
                       SLOT(nb_inplace_true_divide, nb_idiv),
                       SLOT(nb_inplace_floor_divide, nb_ifloordiv),
                       SLOT(nb_inplace_remainder, nb_imod),
                       SLOT(nb_inplace_power, nb_ipow),
                       SLOT(nb_inplace_and, nb_iand),
                       SLOT(nb_inplace_or, nb_ior),
                       SLOT(nb_inplace_xor, nb_ixor),
                       SLOT(nb_inplace_lshift, nb_ishl),
                       SLOT(nb_inplace_rshift, nb_ishr),
                       SLOT(nb_negative, nb_neg),
                       SLOT(nb_positive, nb_pos),
                       SLOT(nb_absolute, nb_abs),
                       SLOT(nb_invert, nb_invert),
                       SLOT(nb_bool, nb_bool),
                       SLOT(nb_float, nb_float),
                       SLOT(nb_int, nb_int),
                       SLOT(nb_index, nb_index),
                       SLOT(mp_length, length),
                       SLOT(mp_subscript, subscript),
                       SLOT(mp_ass_subscript, ass_subscript),
                       SLOT(sq_length, length),
                       SLOT(sq_contains, contains),
                       SLOT(bf_getbuffer, get_buffer),
                       {Py_tp_doc, const_cast<char*>("An n-dimensional array of one dtype on one device.")},
                       {}};
PyType_Spec spec = {"rushlight.Tensor", kTensorSize, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                    slots};

}  // namespace

void bind_slot(Operator* o) {
  const char* text = PyUnicode_AsUTF8(o->name);
  for (auto& b : kBindings) {
    if (!o->inplace && !std::strcmp(text, b.op)) b.slot->plain = o;
    if (o->inplace && !std::strncmp(text, b.op, std::strlen(b.op)) && !std::strcmp(text + std::strlen(b.op), "_"))
      b.slot->inplace = o;
  }
}

void set_tensor_hook(const char* name, PyObject* fn) {
  PyObject** slot = !std::strcmp(name, "repr")         ? &g_hooks.repr
                    : !std::strcmp(name, "legacy_new") ? &g_hooks.legacy_new
                    : !std::strcmp(name, "reduce")     ? &g_hooks.reduce
                                                       : nullptr;
  if (!slot)
    fail(PyExc_ValueError,
         "set_hook: unknown hook '%s', known are find_device_type, legacy_new, open_backend, reduce, repr", name);
  Py_INCREF(fn);
  Py_XSETREF(*slot, fn);
}

void add_tensor_attribute(const char* attribute, PyObject* descriptor) {
  if (PyObject_SetAttrString(reinterpret_cast<PyObject*>(g_tensor_type), attribute, descriptor) < 0)
    throw PythonError();
}

void init_tensor_type(PyObject* module) {
  g_tensor_type = reinterpret_cast<PyTypeObject*>(Ref<>::check(PyType_FromSpec(&spec)).release());
  PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(g_tensor_type));
}

}  // namespace rl
