// Inside core: making tensors, views and storages, and asking things of them.
#pragma once
#define RL_CORE
#include <string>
#include <vector>

#include "../error.h"
#include "rushlight/api.h"

namespace rl {

extern PyTypeObject* g_tensor_type;

inline PyObject* object(Tensor* t) { return reinterpret_cast<PyObject*>(t); }
inline bool is_tensor(PyObject* o) {
  return Py_TYPE(o) == g_tensor_type || PyType_IsSubtype(Py_TYPE(o), g_tensor_type);
}
inline Tensor* as_tensor(PyObject* o) { return reinterpret_cast<Tensor*>(o); }

// ---- storages
Storage* new_storage(int64_t nbytes, Device device);  // from the allocator, or the backend
Storage* foreign_storage(void* data, int64_t nbytes, Device device, PyObject* owner);  // takes a reference to owner
Storage* alias_storage(Storage*);  // same memory, own version counter
void release(Storage*) noexcept;
inline Storage* retain(Storage* s) {
  ++s->refs;
  return s;
}
inline Storage* root_of(Storage* s) {  // the storage of which it is an alias, in the end
  while (s->alias) s = s->alias;
  return s;
}
// A storage (no alias) gets the memory of another one, which it keeps; tensors and aliases over it follow. What it had
// stays where anything but one tensor uses the storage, since an array or a buffer may still read it.
void move_storage(Storage* to, Storage* memory);
// New elements are arbitrary. Smaller ones keep their memory, which tensors may still reach.
void resize_storage(Storage*, int64_t nbytes);
bool resizable(const Storage*);                  // false: the memory is another's
PyObject* storage_object(Storage*);              // new reference: the one UntypedStorage of a storage
bool storage_from_object(PyObject*, Storage**);  // borrowed; false: not an UntypedStorage

// ---- tensors; all throw rl::Error
// A tensor without storage whose sizes and strides are still to be filled in; finish() completes it.
Tensor* new_tensor(DType, Device, int ndim);
void set_contiguous_strides(Tensor*);
void finish(Tensor*);  // numel, contiguity and data pointer from sizes, strides, offset and storage
void set_geometry(Tensor*, int ndim, const int64_t* sizes, const int64_t* strides, int64_t offset);
int64_t extent_of(int ndim, const int64_t* sizes, const int64_t* strides);  // elements from the first to the last
// Gives all tensors and aliases over a storage its address and size, newest first, until `users` are found.
void follow(Storage* root, int64_t users);

Ref<Tensor> empty(int ndim, const int64_t* sizes, DType, Device);
inline Ref<Tensor> empty_like(const Tensor* t, DType d) { return empty(t->ndim, t->sizes, d, t->device); }
Ref<Tensor> empty_strided(int ndim, const int64_t* sizes, const int64_t* strides, DType, Device);
// Dense, in the order of memory of `t` where `t` is dense itself (PyTorch's preserve_format).
Ref<Tensor> empty_preserving(const Tensor* t, DType);
Ref<Tensor> full(int ndim, const int64_t* sizes, DType, Device, const Arg& number);
Ref<Tensor> from_number(const Arg& number, DType, Device);

// A view of `t`: shares its storage and remembers what it is a view of. `offset` counts from the start of the storage.
Ref<Tensor> view(Tensor* t, int ndim, const int64_t* sizes, const int64_t* strides, int64_t offset);
Ref<Tensor> alias(Tensor* t);   // the same geometry, as a view
Ref<Tensor> detach(Tensor* t);  // the same geometry, no history, not a view; shares the version counter

// ---- layouts: a tensor that is not strided has no memory, but a Python object whose `layout` says what it is
Ref<Tensor> make_with_payload(PyObject* payload, int ndim, const int64_t* sizes, DType, Device);
PyObject* payload_of(const Tensor*);                 // borrowed
void set_payload(const Tensor*, PyObject* payload);  // also of all that share the storage, as detach() does
PyObject* layout_of(const Tensor*);                  // new reference
PyObject* strided_layout();                          // borrowed
void init_layout(PyObject* module);
// TypeError, where memory is asked for: "can't convert Sparse layout tensor to <what>".
void require_strided(const Tensor*, const char* what);

// ---- questions
bool has_internal_overlap(const Tensor*);
bool same_geometry(const Tensor*, const Tensor*);
enum class Overlap { None, Full, Partial };
Overlap overlap(const Tensor*, const Tensor*);
int64_t checked_numel(int ndim, const int64_t* sizes);        // throws on negative sizes and overflow
int64_t wrap_dim(const char* op, int64_t dim, int64_t ndim);  // IndexError when out of range; 0-d counts as 1-d
std::string shape_text(int ndim, const int64_t* sizes);       // "[2, 3]"
inline std::string shape_text(const Tensor* t) { return shape_text(t->ndim, t->sizes); }
std::string device_text(Device);
std::string describe(const Tensor*);  // "float32[2, 3] on cpu"
const char* legacy_name(DType);       // "Float", "ComplexDouble" … as PyTorch's messages have it

// ---- copies and conversions (ops/copy.cpp)
void copy_into(Tensor* to, const Tensor* from);  // broadcasts, converts, moves between devices
Ref<Tensor> contiguous(Tensor*);
Ref<Tensor> to_dtype(Tensor*, DType);
Ref<Tensor> clone(const Tensor*);
void fill(Tensor*, const Arg& number);
Arg item(const Tensor*);                         // the one element; RuntimeError when there is not exactly one
PyObject* item_object(const char* data, DType);  // a Python number

// ---- backend arrays (tensor/array.cpp)
PyObject* array_of(Tensor*);                // new reference; ndarray on the CPU, else the backend's
Ref<Tensor> from_ndarray(PyObject* array);  // shares memory
Ref<Tensor> from_backend_array(PyObject* array, Device);
bool dtype_from_numpy(PyObject* descr, DType*);
PyObject* numpy_descr(DType);  // new reference
void init_numpy();

// ---- Python types of this folder
void init_tensor_type(PyObject* module);
void init_dtype_type(PyObject* module);
void init_device_type(PyObject* module);
void init_size_type(PyObject* module);
void init_storage_type(PyObject* module);

PyObject* dtype_object(DType);  // borrowed
bool dtype_from_object(PyObject*,
                       DType*);  // false: not a dtype (no exception); Python's float, int, bool, complex count
PyObject* size_object(int n, const int64_t* values);
PyObject* device_object(Device);
bool device_from_object(PyObject*, Device*);  // str, device or int; throws on unknown ones; false: another type
Device resolve(Device);                       // gives an absent index its value
// `origin` is who brings it, for errors: "plugin 'toy' (rushlight-toy 1.0)".
uint8_t register_device_type(const char* name, const char* origin = "");
int find_device_type(const char* name);  // -1: not registered
const char* device_type_name(uint8_t type);
std::string device_origin(uint8_t type);  // "device type 'toy' of plugin 'toy' (rushlight-toy 1.0)"
PyObject* backend_of(uint8_t type);       // borrowed; opens the backend at the first use
// A method of the backend; an exception gets a note that says whose method it is.
Ref<> backend_call(uint8_t type, const char* method, const char* format, ...);
void note_origin(uint8_t type);  // to the exception that is set
void add_tensor_attribute(const char* name, PyObject* descriptor);

extern DType g_default_dtype;
extern thread_local Device g_default_device;

// Small growable list of dimensions, on the stack for usual ranks.
struct Dims {
  int64_t inline_[8];
  std::vector<int64_t> heap_;
  int64_t* v = inline_;
  int n = 0;
  explicit Dims(int n = 0) { resize(n); }
  Dims(int n, const int64_t* from) {
    resize(n);
    for (int i = 0; i < n; ++i) v[i] = from[i];
  }
  Dims(const Dims&) = delete;
  Dims& operator=(const Dims&) = delete;
  void resize(int m) {
    if (m > 8) {
      std::vector<int64_t> old(v, v + n);
      heap_.assign(m, 0);
      for (int i = 0; i < n && i < m; ++i) heap_[i] = old[i];
      v = heap_.data();
    }
    for (int i = n; i < m; ++i) v[i] = 0;
    n = m;
  }
  void push(int64_t x) {
    resize(n + 1);
    v[n - 1] = x;
  }
  int64_t& operator[](int i) { return v[i]; }
  int64_t operator[](int i) const { return v[i]; }
};

}  // namespace rl
