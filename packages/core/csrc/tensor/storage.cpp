#include <algorithm>
#include <cstring>

#include "../allocator.h"
#include "../crc32.h"
#include "tensor.h"

namespace rl {

namespace {

// A storage and the memory it owns are one block: the header, then the data on the next cache line.
struct Block : Storage {
  int64_t own_bytes;  // after the header
  PyObject* object;   // borrowed: its UntypedStorage while there is one
};
constexpr int64_t kHeader = 64;
static_assert(sizeof(Block) <= kHeader, "the storage header must fit its cache line");

constexpr const char* kMoved =
    "rushlight.moved";  // the owner of memory that came by move_storage: capsule on a Storage

Block* block_of(const Storage* s) { return static_cast<Block*>(const_cast<Storage*>(s)); }

Storage* make_storage(int64_t own_bytes, Device device) {
  auto* s = static_cast<Block*>(allocate(kHeader + own_bytes));
  s->refs = 1;
  s->data = nullptr;
  s->nbytes = 0;
  s->owner = nullptr;
  s->alias = nullptr;
  s->version = 0;
  s->device = device;
  s->read_only = false;
  s->own_bytes = own_bytes;
  s->object = nullptr;
  return s;
}

// What uses a storage beside its UntypedStorage; arrays and aliases count as well as tensors.
int64_t users_of(const Storage* s) { return s->refs - (block_of(s)->object ? 1 : 0); }

bool was_moved(const Storage* s) { return s->owner && PyCapsule_IsValid(s->owner, kMoved); }

// The storage whose memory this one uses.
const Storage* memory_of(const Storage* s) {
  return was_moved(s) ? static_cast<Storage*>(PyCapsule_GetPointer(s->owner, kMoved)) : s;
}

void release_moved(PyObject* capsule) {
  Py_XDECREF(static_cast<PyObject*>(PyCapsule_GetContext(capsule)));
  release(static_cast<Storage*>(PyCapsule_GetPointer(capsule, kMoved)));
}

}  // namespace

Storage* new_storage(int64_t nbytes, Device device) {
  if (device.type == kCPU) {
    Storage* s = make_storage(nbytes, device);
    s->nbytes = nbytes;
    s->data = reinterpret_cast<char*>(s) + kHeader;
    return s;
  }
  Ref<> buffer;
  if (device.type != kMeta)
    buffer =
        backend_call(device.type, "allocate", "(Li)", static_cast<long long>(nbytes), static_cast<int>(device.index));
  Storage* s = make_storage(0, device);
  s->nbytes = nbytes;
  s->owner = buffer.release();
  return s;
}

Storage* foreign_storage(void* data, int64_t nbytes, Device device, PyObject* owner) {
  Storage* s = make_storage(0, device);
  s->nbytes = nbytes;
  s->data = data;
  s->owner = Py_NewRef(owner);
  return s;
}

Storage* alias_storage(Storage* of) {
  Storage* s = make_storage(0, of->device);
  s->nbytes = of->nbytes;
  s->data = of->data;
  s->read_only = of->read_only;
  s->owner = Py_XNewRef(of->owner);
  s->alias = retain(of);
  return s;
}

void release(Storage* s) noexcept {
  if (!s || --s->refs) return;
  Py_XDECREF(s->owner);
  if (s->alias) release(s->alias);
  deallocate(s, kHeader + block_of(s)->own_bytes);
}

bool resizable(const Storage* s) {
  const Storage* m = memory_of(s);
  return m->device.type == kMeta || (m->device.type == kCPU && !m->owner);
}

void move_storage(Storage* to, Storage* memory) {
  PyObject* moved = PyCapsule_New(memory, kMoved, release_moved);
  if (!moved) throw PythonError();
  retain(memory);
  bool seen = to->refs > 1 || block_of(to)->object;  // the object may have lent its memory as a buffer
  if (seen && to->owner) PyCapsule_SetContext(moved, Py_NewRef(to->owner));
  Py_XSETREF(to->owner, moved);
  to->data = memory->data;
  to->nbytes = memory->nbytes;
  to->read_only = memory->read_only;
  follow(to, users_of(to));
}

void resize_storage(Storage* s, int64_t nbytes) {
  if (!resizable(s)) fail(PyExc_RuntimeError, "Trying to resize storage that is not resizable");
  if (s->device.type != kMeta && nbytes > block_of(memory_of(s))->own_bytes) {
    Storage* grown = new_storage(nbytes, s->device);
    std::memcpy(grown->data, s->data, static_cast<size_t>(s->nbytes));
    move_storage(s, grown);
    return release(grown);
  }
  s->nbytes = nbytes;
  follow(s, users_of(s));
}

// ---- UntypedStorage: what Python sees of a storage

namespace {

struct StorageObject {
  PyObject_HEAD Storage* storage;
};
PyTypeObject* g_base_type = nullptr;

// The Python class, in rushlight.storage, which is imported when it is first needed.
PyTypeObject* untyped_type() {
  static PyTypeObject* type = nullptr;
  if (!type) {
    Ref<> module = Ref<>::check(PyImport_ImportModule("rushlight.storage"));
    type =
        reinterpret_cast<PyTypeObject*>(Ref<>::check(PyObject_GetAttrString(module.get(), "UntypedStorage")).release());
  }
  return type;
}

Storage* storage_of(PyObject* o) { return reinterpret_cast<StorageObject*>(o)->storage; }

// Takes over the reference to the storage.
PyObject* wrap(PyTypeObject* type, Storage* s) {
  PyObject* o = type->tp_alloc(type, 0);
  if (!o) {
    release(s);
    throw PythonError();
  }
  reinterpret_cast<StorageObject*>(o)->storage = s;
  block_of(s)->object = o;
  return o;
}

int64_t checked_size(PyObject* size) {
  int64_t n = PyLong_AsLongLong(size);
  if (n == -1 && PyErr_Occurred()) throw PythonError();
  if (n < 0 || n > INT64_MAX / 2)
    fail(PyExc_RuntimeError, "UntypedStorage: a size must be from 0 to 2^62 bytes, got size=%lld.",
         static_cast<long long>(n));
  return n;
}

// StorageBase(size=0, device=None)
PyObject* storage_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    static const char* names[] = {"size", "device", nullptr};
    PyObject *size = nullptr, *device = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:UntypedStorage", const_cast<char**>(names), &size, &device))
      return nullptr;
    Device d{kCPU, -1};
    if (device != Py_None && !device_from_object(device, &d))
      fail(PyExc_TypeError, "UntypedStorage: device must be a device or its name, got %s", Py_TYPE(device)->tp_name);
    return wrap(type, new_storage(size ? checked_size(size) : 0, resolve(d)));
  });
}

void storage_dealloc(PyObject* self) {
  Storage* s = storage_of(self);
  if (s && block_of(s)->object == self) block_of(s)->object = nullptr;
  release(s);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// _from_buffer(buffer): the memory of an object with the buffer protocol, which stays its owner.
PyObject* storage_from_buffer(PyObject* type, PyObject* source) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    Ref<> memory = Ref<>::check(PyMemoryView_FromObject(source));
    Py_buffer* b = PyMemoryView_GET_BUFFER(memory.get());
    if (!PyBuffer_IsContiguous(b, 'C')) fail(PyExc_ValueError, "UntypedStorage: the buffer must be contiguous");
    Storage* s = foreign_storage(b->buf, b->len, {kCPU, -1}, memory.get());
    s->read_only = b->readonly;
    return wrap(reinterpret_cast<PyTypeObject*>(type), s);
  });
}

void take_ints(PyObject* o, const char* name, Dims& out) {
  Ref<> items(PySequence_Fast(o, name));
  if (!items) throw PythonError();
  Py_ssize_t n = PySequence_Fast_GET_SIZE(items.get());
  if (n > kMaxRank) fail(PyExc_RuntimeError, "tensors have at most %d dimensions, got %zd.", kMaxRank, n);
  out.resize(static_cast<int>(n));
  for (int i = 0; i < out.n; ++i) {
    out[i] = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(items.get(), i));
    if (out[i] == -1 && PyErr_Occurred()) throw PythonError();
  }
}

// _tensor(dtype, offset=0, size=None, stride=None): a tensor over the memory, by default 1-d of all whole elements.
PyObject* storage_tensor(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    DType dtype;
    if ((n != 1 && n != 4) || !dtype_from_object(args[0], &dtype))
      fail(PyExc_TypeError, "UntypedStorage._tensor takes a dtype, and perhaps offset, size and stride");
    Storage* s = storage_of(self);
    Dims size(1), stride(1);
    size[0] = s->nbytes / itemsize(dtype);
    stride[0] = 1;
    int64_t offset = 0, end;
    if (n == 4) {
      offset = PyLong_AsLongLong(args[1]);
      if (offset == -1 && PyErr_Occurred()) return nullptr;
      take_ints(args[2], "size must be a sequence of int", size);
      take_ints(args[3], "stride must be a sequence of int", stride);
      if (size.n != stride.n)
        fail(PyExc_RuntimeError, "mismatch in length of strides and shape: size=%s, stride=%s",
             shape_text(size.n, size.v).c_str(), shape_text(stride.n, stride.v).c_str());
      if (offset < 0) fail(PyExc_RuntimeError, "Tensor: invalid storage offset %lld", static_cast<long long>(offset));
      checked_numel(size.n, size.v);
      int64_t extent = extent_of(size.n, size.v, stride.v);
      if (__builtin_add_overflow(extent, offset, &end) || end > INT64_MAX / 16 ||
          (extent && end * itemsize(dtype) > s->nbytes))
        fail(PyExc_RuntimeError,
             "setStorage: sizes %s, strides %s, storage offset %lld, and itemsize %lld are out of bounds for storage "
             "of size %lld",
             shape_text(size.n, size.v).c_str(), shape_text(stride.n, stride.v).c_str(), static_cast<long long>(offset),
             static_cast<long long>(itemsize(dtype)), static_cast<long long>(s->nbytes));
    }
    Ref<Tensor> t(new_tensor(dtype, s->device, size.n));
    std::copy_n(size.v, size.n, t->sizes);
    std::copy_n(stride.v, stride.n, t->strides);
    t->offset = offset;
    t->storage = retain(s);
    finish(t.get());
    return t.release_object();
  });
}

PyObject* storage_resize(PyObject* self, PyObject* size) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    resize_storage(storage_of(self), checked_size(size));
    return Py_NewRef(self);
  });
}

// _move(other): the memory of another storage, for this one and all tensors over it.
PyObject* storage_move(PyObject* self, PyObject* other) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    Storage* memory;
    if (!storage_from_object(other, &memory) || memory == storage_of(self))
      fail(PyExc_TypeError, "UntypedStorage: expected another storage, got %s", Py_TYPE(other)->tp_name);
    Storage* s = storage_of(self);
    if (memory->nbytes < std::max(s->nbytes, block_of(memory_of(s))->own_bytes))
      fail(PyExc_RuntimeError, "UntypedStorage: tensors may reach beyond %lld bytes. Move before shrinking.",
           static_cast<long long>(memory->nbytes));
    move_storage(s, memory);
    return Py_NewRef(self);
  });
}

Ref<Tensor> all_bytes(Storage* s) {
  Ref<Tensor> t(new_tensor(DType::UInt8, s->device, 1));
  t->sizes[0] = s->nbytes;
  t->strides[0] = 1;
  t->storage = retain(s);
  finish(t.get());
  return t;
}

PyObject* storage_clone(PyObject* self, PyObject*) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    Storage* s = storage_of(self);
    Ref<> copy(wrap(Py_TYPE(self), new_storage(s->nbytes, s->device)));
    if (s->device.type != kMeta) copy_into(all_bytes(storage_of(copy.get())).get(), all_bytes(s).get());
    return copy.release();
  });
}

PyObject* storage_nbytes(PyObject* self, PyObject*) { return PyLong_FromLongLong(storage_of(self)->nbytes); }
PyObject* storage_data_ptr(PyObject* self, PyObject*) { return PyLong_FromVoidPtr(storage_of(self)->data); }
PyObject* storage_resizable(PyObject* self, PyObject*) { return PyBool_FromLong(resizable(storage_of(self))); }
Py_ssize_t storage_length(PyObject* self) { return storage_of(self)->nbytes; }
PyObject* storage_cdata(PyObject* self, void*) { return PyLong_FromVoidPtr(storage_of(self)); }
PyObject* storage_device(PyObject* self, void*) {
  return guard<PyObject*>(nullptr, [&] { return device_object(storage_of(self)->device); });
}
PyObject* storage_owner(PyObject* self, void*) {
  PyObject* owner = memory_of(storage_of(self))->owner;
  return Py_NewRef(owner ? owner : Py_None);
}
int storage_buffer(PyObject* self, Py_buffer* view, int flags) {
  Storage* s = storage_of(self);
  if (s->device.type != kCPU) {
    PyErr_Format(PyExc_BufferError, "UntypedStorage: only memory of the CPU is a buffer, got device=%s.",
                 device_type_name(s->device.type));
    return -1;
  }
  return PyBuffer_FillInfo(view, self, s->data, s->nbytes, s->read_only, flags);
}

// crc32(buffer) -> int
PyObject* checksum(PyObject*, PyObject* source) {
  Py_buffer b;
  if (PyObject_GetBuffer(source, &b, PyBUF_SIMPLE) < 0) return nullptr;
  uint32_t crc;
  Py_BEGIN_ALLOW_THREADS crc = crc32(0, b.buf, static_cast<size_t>(b.len));
  Py_END_ALLOW_THREADS PyBuffer_Release(&b);
  return PyLong_FromUnsignedLong(crc);
}

#define FAST(f) reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f))
PyMethodDef functions[] = {{"crc32", checksum, METH_O, nullptr}, {}};
PyMethodDef methods[] = {
    {"_from_buffer", storage_from_buffer, METH_O | METH_CLASS, nullptr},
    {"_tensor", FAST(storage_tensor), METH_FASTCALL, nullptr},
    {"_move", storage_move, METH_O, nullptr},
    {"clone", storage_clone, METH_NOARGS, "A storage with a copy of the bytes."},
    {"nbytes", storage_nbytes, METH_NOARGS, "The size in bytes."},
    {"size", storage_nbytes, METH_NOARGS, "The size in bytes."},
    {"data_ptr", storage_data_ptr, METH_NOARGS, "The address of the memory."},
    {"resizable", storage_resizable, METH_NOARGS, "Whether `resize_` works: not on foreign memory."},
    {"resize_", storage_resize, METH_O,
     "Changes the size in bytes; tensors over the storage follow, new bytes are arbitrary."},
    {}};
PyGetSetDef getset[] = {{"_cdata", storage_cdata, nullptr, nullptr, nullptr},
                        {"_owner", storage_owner, nullptr, nullptr, nullptr},
                        {"device", storage_device, nullptr, "Where the memory is.", nullptr},
                        {}};
#define SLOT(name, fn) {Py_##name, reinterpret_cast<void*>(fn)}
PyType_Slot slots[] = {SLOT(tp_new, storage_new),
                       SLOT(tp_dealloc, storage_dealloc),
                       SLOT(tp_methods, methods),
                       SLOT(tp_getset, getset),
                       SLOT(mp_length, storage_length),
                       SLOT(bf_getbuffer, storage_buffer),
                       {Py_tp_doc, const_cast<char*>("Memory that tensors share.")},
                       {}};
PyType_Spec spec = {"rushlight._C.StorageBase", sizeof(StorageObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                    slots};

}  // namespace

PyObject* storage_object(Storage* s) {
  s = root_of(s);
  if (PyObject* o = block_of(s)->object) return Py_NewRef(o);
  PyTypeObject* type = untyped_type();
  return wrap(type, retain(s));
}

bool storage_from_object(PyObject* o, Storage** s) {
  if (!PyObject_TypeCheck(o, g_base_type)) return false;
  *s = storage_of(o);
  return true;
}

void init_storage_type(PyObject* module) {
  g_base_type = reinterpret_cast<PyTypeObject*>(Ref<>::check(PyType_FromSpec(&spec)).release());
  PyModule_AddObjectRef(module, "StorageBase", reinterpret_cast<PyObject*>(g_base_type));
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError();
}

}  // namespace rl
