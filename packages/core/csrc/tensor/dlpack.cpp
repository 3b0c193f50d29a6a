// DLPack both ways: __dlpack__, __dlpack_device__, from_dlpack. Tensors of other devices go through their backend's
// array.
#include <algorithm>
#include <cstring>

#include "../ops/view.h"

namespace rl {

namespace {

// The structures of DLPack 1.0 (https://dmlc.github.io/dlpack), whose layout is fixed.
struct DLDevice {
  int32_t type, id;
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* manager;
  void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  struct {
    uint32_t major, minor;
  } version;
  void* manager;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  DLTensor tensor;
};
enum : int32_t { kDLCPU = 1, kDLCUDAHost = 3 };
enum : uint8_t { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBfloat = 4, kDLComplex = 5, kDLBool = 6 };
constexpr uint64_t kReadOnly = 1, kCopied = 2;

DLDataType dl_type(DType t) {
  uint8_t code = t == DType::Bool       ? kDLBool
                 : t == DType::UInt8    ? kDLUInt
                 : t == DType::BFloat16 ? kDLBfloat
                 : is_integral(t)       ? kDLInt
                 : is_complex(t)        ? kDLComplex
                                        : kDLFloat;
  return {code, static_cast<uint8_t>(itemsize(t) * 8), 1};
}

DType dtype_of(DLDataType t) {
  for (int i = 0; i < kNumDTypes && t.lanes == 1; ++i) {
    DLDataType ours = dl_type(static_cast<DType>(i));
    if (ours.code == t.code && ours.bits == t.bits) return static_cast<DType>(i);
  }
  fail(PyExc_BufferError, "from_dlpack: no dtype for elements of code %d, %d bits and %d lanes. Convert them first.",
       t.code, t.bits, t.lanes);
}

// ---- out

// What an exported tensor keeps alive, with its shape behind it.
struct Export {
  union {
    DLManagedTensor plain;
    DLManagedTensorVersioned versioned;
  };
  PyObject* tensor;
  int64_t dims[2 * kMaxRank];
};

void release_export(void* manager) {
  auto* e = static_cast<Export*>(manager);
  PyGILState_STATE gil = PyGILState_Ensure();
  Py_DECREF(e->tensor);
  PyGILState_Release(gil);
  delete e;
}

constexpr const char *kPlain = "dltensor", *kVersioned = "dltensor_versioned";

// A capsule that nobody consumed still owns its tensor.
void destroy_capsule(PyObject* capsule) {
  for (const char* name : {kPlain, kVersioned}) {
    if (!PyCapsule_IsValid(capsule, name)) continue;
    void* p = PyCapsule_GetPointer(capsule, name);
    if (name == kPlain) {
      auto* m = static_cast<DLManagedTensor*>(p);
      if (m->deleter) m->deleter(m);
    } else {
      auto* m = static_cast<DLManagedTensorVersioned*>(p);
      if (m->deleter) m->deleter(m);
    }
  }
}

PyObject* export_tensor(Tensor* t, bool versioned, bool copied) {
  if (!versioned && t->storage->read_only)
    fail(PyExc_BufferError,
         "__dlpack__: the memory is read-only, which needs a consumer of DLPack 1.0. clone() the tensor first.");
  auto* e = new Export{};
  e->tensor = Py_NewRef(object(t));
  DLTensor& d = versioned ? e->versioned.tensor : e->plain.tensor;
  d.data = t->data;
  d.device = {kDLCPU, 0};
  d.ndim = t->ndim;
  d.dtype = dl_type(t->dtype);
  d.shape = e->dims;
  d.strides = e->dims + t->ndim;
  std::copy_n(t->sizes, t->ndim, d.shape);
  std::copy_n(t->strides, t->ndim, d.strides);
  d.byte_offset = 0;
  PyObject* capsule;
  if (versioned) {
    e->versioned.version = {1, 0};
    e->versioned.manager = e;
    e->versioned.deleter = [](DLManagedTensorVersioned* m) { release_export(m->manager); };
    e->versioned.flags = (t->storage->read_only ? kReadOnly : 0u) | (copied ? kCopied : 0u);
    capsule = PyCapsule_New(&e->versioned, kVersioned, destroy_capsule);
  } else {
    e->plain.manager = e;
    e->plain.deleter = [](DLManagedTensor* m) { release_export(m->manager); };
    capsule = PyCapsule_New(&e->plain, kPlain, destroy_capsule);
  }
  if (!capsule) release_export(e);
  return capsule;
}

// __dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)
PyObject* m_dlpack(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    static const char* names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", const_cast<char**>(names), &stream, &version,
                                     &device, &copy))
      return nullptr;
    Tensor* t = as_tensor(self);
    if (requires_grad(t)) fail(PyExc_BufferError, "Can't export tensors that require gradient, use tensor.detach()");
    if (t->flags & kLayout)
      fail(PyExc_BufferError, "Can't export tensors with layout other than torch.strided, use tensor.to_dense()");
    if (t->device.type == kMeta) fail(PyExc_BufferError, "__dlpack__: a meta tensor has no memory to share");
    if (!t->is_cpu()) {
      Ref<> method = Ref<>::check(PyObject_GetAttrString(Ref<>(array_of(t)).get(), "__dlpack__"));
      return PyObject_Call(method.get(), args, kwargs);
    }
    bool none = stream == Py_None || (PyLong_Check(stream) && PyLong_AsLong(stream) == -1);
    PyErr_Clear();
    if (!none) fail(PyExc_BufferError, "__dlpack__: stream must be None or -1 for a CPU tensor");
    int type = kDLCPU, id = 0;
    if (device != Py_None && !PyArg_ParseTuple(device, "ii", &type, &id)) return nullptr;
    if (type != kDLCPU)
      fail(PyExc_BufferError,
           "__dlpack__: dl_device=(%d, %d) is another device than the tensor's, the CPU. Move the tensor first.", type,
           id);
    long major = 0;
    if (version != Py_None) {
      Ref<> first = Ref<>::check(PySequence_GetItem(version, 0));
      major = PyLong_AsLong(first.get());
      if (major == -1 && PyErr_Occurred()) return nullptr;
    }
    // Consumers that know no negative strides crash on them: PyTorch does.
    bool backwards = std::any_of(t->strides, t->strides + t->ndim, [](int64_t stride) { return stride < 0; });
    if (backwards && copy == Py_False)
      fail(PyExc_BufferError, "__dlpack__: a tensor of negative strides cannot be shared, but copy=False. Pass None.");
    bool copies = copy == Py_True || backwards;
    Ref<Tensor> source = Ref<Tensor>::borrow(t);
    if (copies) {
      source = empty(t->ndim, t->sizes, t->dtype, t->device);
      copy_into(source.get(), t);
    }
    return export_tensor(source.get(), major >= 1, copies);
  });
}

PyObject* m_dlpack_device(PyObject* self, PyObject*) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    Tensor* t = as_tensor(self);
    if (t->is_cpu()) return Py_BuildValue("(ii)", kDLCPU, 0);
    if (t->device.type == kMeta) fail(PyExc_BufferError, "__dlpack_device__: a meta tensor has no memory to share");
    return PyObject_CallMethod(Ref<>(array_of(t)).get(), "__dlpack_device__", nullptr);
  });
}

// ---- in

// Tells the producer that its memory is not used any more.
template <class Managed>
void release_import(PyObject* owner) {
  auto* m = static_cast<Managed*>(PyCapsule_GetPointer(owner, "rushlight.dlpack"));
  if (m->deleter) m->deleter(m);
}

template <class Managed>
Ref<Tensor> import_tensor(PyObject* capsule, Managed* m, const char* used) {
  const DLTensor& d = m->tensor;
  if (d.device.type != kDLCPU && d.device.type != kDLCUDAHost)
    fail(PyExc_BufferError, "from_dlpack: the memory is on DLPack device type %d, whose backend has no from_dlpack",
         d.device.type);
  if (d.ndim < 0 || d.ndim > kMaxRank)
    fail(PyExc_BufferError, "from_dlpack: tensors have at most %d dimensions, got %d", kMaxRank, d.ndim);
  DType dtype = dtype_of(d.dtype);
  int64_t size = itemsize(dtype), low = 0, high = 1;
  Ref<Tensor> t(new_tensor(dtype, {kCPU, -1}, d.ndim));
  int64_t numel = checked_numel(d.ndim, d.shape);
  int64_t step = 1;
  for (int i = d.ndim - 1; i >= 0; --i) {
    t->sizes[i] = d.shape[i];
    t->strides[i] = d.strides ? d.strides[i] : step;
    step *= std::max<int64_t>(d.shape[i], 1);
    if (numel) (t->strides[i] < 0 ? low : high) += t->strides[i] * (d.shape[i] - 1);
  }
  char* data = static_cast<char*>(d.data) + d.byte_offset;
  if (numel && reinterpret_cast<uintptr_t>(data) % itemsize(real_of(dtype)))
    fail(PyExc_BufferError, "from_dlpack: the memory is not aligned to the element size of %s. Copy it first.",
         name(dtype));
  // From here on the memory is ours to give back.
  Ref<> owner = Ref<>::check(PyCapsule_New(m, "rushlight.dlpack", release_import<Managed>));
  if (PyCapsule_SetName(capsule, used) < 0) throw PythonError();
  t->storage =
      foreign_storage(numel ? data + low * size : nullptr, numel ? (high - low) * size : 0, {kCPU, -1}, owner.get());
  t->offset = -low;
  if (!numel) t->offset = 0;
  finish(t.get());
  return t;
}

Ref<Tensor> from_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kVersioned)) {
    auto* m = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, kVersioned));
    if (m->version.major != 1)
      fail(PyExc_BufferError, "from_dlpack: DLPack version %u.%u is not understood, 1.x and older are.",
           m->version.major, m->version.minor);
    Ref<Tensor> t = import_tensor(capsule, m, "used_dltensor_versioned");
    t->storage->read_only = m->flags & kReadOnly;
    return t;
  }
  if (!PyCapsule_IsValid(capsule, kPlain))
    fail(PyExc_RuntimeError,
         "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might "
         "have already constructed a tensor from it once.");
  return import_tensor(capsule, static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kPlain)), "used_dltensor");
}

// The device type whose backend imports from that DLPack device, or -1.
int backend_for(int dl_type) {
  constexpr int kDLCUDA = 2, kDLROCM = 10;
  return dl_type == kDLCUDA || dl_type == kDLROCM ? find_device_type("cuda") : -1;
}

}  // namespace

Ref<Tensor> tensor_from_dlpack(PyObject* source) {
  if (PyCapsule_CheckExact(source)) return from_capsule(source);
  Ref<> place(PyObject_CallMethod(source, "__dlpack_device__", nullptr));
  if (!place) {
    PyErr_Clear();
    fail(PyExc_AttributeError, "from_dlpack: expected an object with __dlpack__ and __dlpack_device__, got %s",
         Py_TYPE(source)->tp_name);
  }
  int type, id;
  if (!PyArg_ParseTuple(place.get(), "ii", &type, &id)) throw PythonError();
  int backend = backend_for(type);
  if (backend >= 0) {
    Ref<> xp = Ref<>::check(PyObject_GetAttrString(backend_of(static_cast<uint8_t>(backend)), "xp"));
    Ref<> array = Ref<>::check(PyObject_CallMethod(xp.get(), "from_dlpack", "O", source));
    return from_backend_array(array.get(), {static_cast<uint8_t>(backend), static_cast<int8_t>(id)});
  }
  Ref<> method = Ref<>::check(PyObject_GetAttrString(source, "__dlpack__")), none = Ref<>::check(PyTuple_New(0));
  Ref<> newest = Ref<>::check(Py_BuildValue("{s:(ii)}", "max_version", 1, 0));
  Ref<> capsule(PyObject_Call(method.get(), none.get(), newest.get()));
  if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {  // a producer from before versions
    PyErr_Clear();
    capsule = Ref<>(PyObject_CallNoArgs(method.get()));
  }
  if (!capsule) throw PythonError();
  return from_capsule(capsule.get());
}

namespace {

// from_dlpack(ext_tensor, *, device=None, copy=None)
PyObject* from_dlpack(PyObject*, PyObject* args, PyObject* kwargs) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    static const char* names[] = {"ext_tensor", "device", "copy", nullptr};
    PyObject *source, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OO:from_dlpack", const_cast<char**>(names), &source, &device,
                                     &copy))
      return nullptr;
    Ref<Tensor> t = tensor_from_dlpack(source);
    Device wanted = t->device;
    if (device != Py_None) {
      if (!device_from_object(device, &wanted))
        fail(PyExc_TypeError, "from_dlpack(): argument 'device' must be torch.device, not %s",
             Py_TYPE(device)->tp_name);
      wanted = resolve(wanted);
    }
    if (wanted != t->device) {
      if (copy == Py_False)
        fail(PyExc_ValueError, "from_dlpack: moving to %s needs a copy, but copy=False", device_text(wanted).c_str());
      Ref<Tensor> moved = empty(t->ndim, t->sizes, t->dtype, wanted);
      copy_into(moved.get(), t.get());
      return moved.release_object();
    }
    return (copy == Py_True ? clone(t.get()) : t).release_object();
  });
}

#define FAST(f) reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f))
PyMethodDef functions[] = {{"from_dlpack", FAST(from_dlpack), METH_VARARGS | METH_KEYWORDS,
                            "from_dlpack(ext_tensor, *, device=None, copy=None)\n--\n\n"
                            "A tensor over the memory of an object that speaks DLPack, or of a DLPack capsule."},
                           {}};
PyMethodDef methods[] = {
    {"__dlpack__", FAST(m_dlpack), METH_VARARGS | METH_KEYWORDS, "A DLPack capsule of the tensor."},
    {"__dlpack_device__", m_dlpack_device, METH_NOARGS, "The DLPack device type and index."}};

}  // namespace

void init_dlpack(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError();
  for (PyMethodDef& def : methods)
    add_tensor_attribute(def.ml_name, Ref<>::check(PyDescr_NewMethod(g_tensor_type, &def)).get());
}

}  // namespace rl
