// Backend arrays: an ndarray over a CPU tensor's memory, a backend's own array over its buffers, and the way back.
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL rushlight_numpy_api
#include <numpy/arrayobject.h>

#include "tensor.h"

namespace rl {

static int import_numpy() {
  import_array1(-1);
  return 0;
}

void init_numpy() {
  if (import_numpy() < 0) throw PythonError();
}

static int npy_type(DType t) {
  static const int types[kNumDTypes] = {NPY_UINT8, NPY_INT8,    NPY_INT16,   NPY_INT32,     NPY_INT64,      NPY_HALF,
                                        -1,        NPY_FLOAT32, NPY_FLOAT64, NPY_COMPLEX64, NPY_COMPLEX128, NPY_BOOL};
  return types[static_cast<int>(t)];
}

// ml_dtypes is imported when a bfloat16 array is first asked for.
static PyObject* bfloat16_descr() {
  static PyObject* descr = nullptr;
  if (!descr) {
    Ref<> module = Ref<>::check(PyImport_ImportModule("ml_dtypes"));
    Ref<> type = Ref<>::check(PyObject_GetAttrString(module.get(), "bfloat16"));
    PyArray_Descr* d = nullptr;
    if (!PyArray_DescrConverter(type.get(), &d)) throw PythonError();
    descr = reinterpret_cast<PyObject*>(d);
  }
  return descr;
}

PyObject* numpy_descr(DType t) {
  if (t == DType::BFloat16) return Py_NewRef(bfloat16_descr());
  return reinterpret_cast<PyObject*>(PyArray_DescrFromType(npy_type(t)));
}

bool dtype_from_numpy(PyObject* o, DType* out) {
  auto* d = reinterpret_cast<PyArray_Descr*>(o);
  if (PyArray_ISNBO(d->byteorder)) {
    for (int i = 0; i < kNumDTypes; ++i) {
      auto t = static_cast<DType>(i);
      int n = npy_type(t);
      if (n >= 0 && (d->type_num == n || (PyTypeNum_ISINTEGER(d->type_num) && PyTypeNum_ISINTEGER(n) &&
                                          PyArray_EquivTypenums(d->type_num, n)))) {
        *out = t;
        return true;
      }
    }
    if (PyTypeNum_ISUSERDEF(d->type_num)) {
      Ref<> name(PyObject_GetAttrString(o, "name"));
      if (name && PyUnicode_Check(name.get()) && PyUnicode_CompareWithASCIIString(name.get(), "bfloat16") == 0) {
        *out = DType::BFloat16;
        return true;
      }
      PyErr_Clear();
    }
  }
  return false;
}

static Ref<> byte_tuple(int n, const int64_t* values, int64_t scale) {
  Ref<> tuple = Ref<>::check(PyTuple_New(n));
  for (int i = 0; i < n; ++i) PyTuple_SET_ITEM(tuple.get(), i, PyLong_FromLongLong(values[i] * scale));
  return tuple;
}

PyObject* array_of(Tensor* t) {
  if (t->array) return Py_NewRef(t->array);
  require_strided(t, "numpy");
  if (t->device.type == kMeta)
    fail(PyExc_NotImplementedError,
         "Cannot copy out of meta tensor; no data! Make the tensor on a device that has memory.");
  int64_t size = itemsize(t->dtype);
  if (!t->is_cpu()) {
    Ref<> shape = byte_tuple(t->ndim, t->sizes, 1), strides = byte_tuple(t->ndim, t->strides, size);
    t->array = backend_call(t->device.type, "view", "(OsOOL)", t->storage->owner, name(t->dtype), shape.get(),
                            strides.get(), static_cast<long long>(t->offset * size))
                   .release();
    return Py_NewRef(t->array);
  }
  npy_intp shape[kMaxRank], strides[kMaxRank];
  for (int d = 0; d < t->ndim; ++d) {
    shape[d] = t->sizes[d];
    strides[d] = t->strides[d] * size;
  }
  auto* descr = reinterpret_cast<PyArray_Descr*>(Ref<>::check(numpy_descr(t->dtype)).release());
  int flags = t->storage->read_only ? 0 : NPY_ARRAY_WRITEABLE;
  PyObject* array = PyArray_NewFromDescr(&PyArray_Type, descr, t->ndim, shape, strides, t->data, flags, nullptr);
  if (!array) throw PythonError();
  // The array keeps the memory alive through a capsule on the storage, not through the tensor: no cycle.
  PyObject* keeper = PyCapsule_New(t->storage, "rushlight.storage", [](PyObject* c) {
    release(static_cast<Storage*>(PyCapsule_GetPointer(c, "rushlight.storage")));
  });
  if (!keeper) {
    Py_DECREF(array);
    throw PythonError();
  }
  retain(t->storage);
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), keeper) < 0) {
    Py_DECREF(array);
    throw PythonError();
  }
  return array;
}

Ref<Tensor> from_ndarray(PyObject* o) {
  if (!PyArray_Check(o)) fail(PyExc_TypeError, "expected np.ndarray (got %s)", Py_TYPE(o)->tp_name);
  auto* a = reinterpret_cast<PyArrayObject*>(o);
  DType dtype;
  if (PyArray_ISBYTESWAPPED(a))
    fail(PyExc_ValueError,
         "given numpy array has byte order different from the native byte order. Conversion between byte orders is "
         "currently not supported. Convert it with array.astype(array.dtype.newbyteorder('=')).");
  if (!dtype_from_numpy(reinterpret_cast<PyObject*>(PyArray_DESCR(a)), &dtype)) {
    Ref<> text(PyObject_Str(reinterpret_cast<PyObject*>(PyArray_DESCR(a))));
    fail(PyExc_TypeError,
         "can't convert np.ndarray of type %s. The only supported types are: float64, float32, float16, bfloat16, "
         "complex64, complex128, int64, int32, int16, int8, uint8, and bool.",
         text ? PyUnicode_AsUTF8(text.get()) : "?");
  }
  int ndim = PyArray_NDIM(a);
  int64_t size = itemsize(dtype);
  Ref<Tensor> t(new_tensor(dtype, {kCPU, -1}, ndim));
  const char* low = PyArray_BYTES(a);
  const char* high = low + (PyArray_SIZE(a) ? size : 0);
  for (int d = 0; d < ndim; ++d) {
    int64_t stride = PyArray_STRIDE(a, d), n = PyArray_DIM(a, d);
    if (stride % size)
      fail(PyExc_ValueError,
           "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the "
           "memory.");
    t->sizes[d] = n;
    t->strides[d] = stride / size;
    if (PyArray_SIZE(a)) (stride < 0 ? low : high) += stride * (n - 1);
  }
  if (reinterpret_cast<uintptr_t>(PyArray_BYTES(a)) % itemsize(real_of(dtype)))
    fail(PyExc_ValueError,
         "given numpy array is not aligned to its element size. Copy the numpy array to reallocate the memory.");
  t->storage = foreign_storage(const_cast<char*>(low), high - low, {kCPU, -1}, o);
  t->storage->read_only = !PyArray_ISWRITEABLE(a);
  t->offset = (PyArray_BYTES(a) - low) / size;
  finish(t.get());
  return t;
}

Ref<Tensor> from_backend_array(PyObject* array, Device device) {
  if (device.type == kCPU) {
    Ref<> a(PyArray_FromAny(array, nullptr, 0, 0, 0, nullptr));
    if (!a) throw PythonError();
    Ref<Tensor> t = from_ndarray(a.get());
    if (!t->numel) {  // NumPy's strides of empty arrays are all zero
      set_contiguous_strides(t.get());
      finish(t.get());
    }
    return t;
  }
  // wrap(array) -> (buffer, dtype name, shape, byte strides, byte offset)
  Ref<> parts = backend_call(device.type, "wrap", "(O)", array);
  PyObject *buffer, *shape, *strides;
  const char* dtype_name;
  long long offset;
  auto refuse = [&](PyObject* kind, const char* fault) {
    fail(kind, "%s: wrap() must return (buffer, dtype name, shape, strides, offset), %s; it was given an array of %s.",
         device_origin(device.type).c_str(), fault, Py_TYPE(array)->tp_name);
  };
  if (!PyTuple_Check(parts.get()) || !PyArg_ParseTuple(parts.get(), "OsO!O!L", &buffer, &dtype_name, &PyTuple_Type,
                                                       &shape, &PyTuple_Type, &strides, &offset)) {
    PyErr_Clear();
    Ref<> text(PyObject_Repr(parts.get()));
    refuse(PyExc_TypeError, ("got " + std::string(text ? PyUnicode_AsUTF8(text.get()) : "?").substr(0, 100)).c_str());
  }
  int i = 0;
  while (i < kNumDTypes && std::string(name(static_cast<DType>(i))) != dtype_name) ++i;
  if (i == kNumDTypes) refuse(PyExc_TypeError, ("got the unknown dtype '" + std::string(dtype_name) + "'").c_str());
  auto dtype = static_cast<DType>(i);
  Py_ssize_t ndim = PyTuple_GET_SIZE(shape);
  if (PyTuple_GET_SIZE(strides) != ndim || ndim > kMaxRank)
    refuse(PyExc_ValueError, "with as many strides as sizes and at most 64 of each");
  int64_t size = itemsize(dtype);
  Ref<Tensor> t(new_tensor(dtype, device, static_cast<int>(ndim)));
  int64_t reach = offset + size;
  bool fits = offset >= 0 && offset % size == 0;
  for (Py_ssize_t d = 0; d < ndim; ++d) {
    int64_t n = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, d)), stride = PyLong_AsLongLong(PyTuple_GET_ITEM(strides, d));
    if (PyErr_Occurred()) throw PythonError();
    int64_t step;
    fits = fits && n >= 0 && stride >= 0 && stride % size == 0 &&
           !__builtin_mul_overflow(std::max<int64_t>(n - 1, 0), stride, &step) &&
           !__builtin_add_overflow(reach, step, &reach);
    t->sizes[d] = n;
    t->strides[d] = stride / size;
  }
  if (!fits) refuse(PyExc_ValueError, "in bytes, no size, stride or offset negative, strides of whole elements");
  t->offset = offset / size;
  t->storage = foreign_storage(nullptr, reach, device, buffer);
  finish(t.get());
  return t;
}

}  // namespace rl
