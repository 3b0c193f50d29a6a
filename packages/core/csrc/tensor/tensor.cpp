#include "tensor.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "../dispatch/dispatch.h"

namespace rl {

PyTypeObject* g_tensor_type = nullptr;
DType g_default_dtype = DType::Float32;
thread_local Device g_default_device{kCPU, -1};

// ---- allocation

namespace {

constexpr int kFreeTensors = 128;
Tensor* g_free[kFreeTensors];
int g_nfree = 0;

// All live tensors form a ring, so that memory that moves takes its tensors along.
struct Linked : Tensor {
  Linked *next, *prev;
};
struct Ring {
  Linked head;
  Ring() { head.next = head.prev = &head; }
} g_live;

void link(Tensor* t) {
  auto* l = static_cast<Linked*>(t);
  l->prev = &g_live.head;
  l->next = g_live.head.next;
  l->next->prev = g_live.head.next = l;
}

void unlink(Tensor* t) {
  auto* l = static_cast<Linked*>(t);
  l->next->prev = l->prev;
  l->prev->next = l->next;
}

}  // namespace

extern const int kTensorSize;
const int kTensorSize = sizeof(Linked);  // of the Python object

void follow(Storage* root, int64_t users) {
  for (Linked* t = g_live.head.next; users && t != &g_live.head; t = t->next) {
    if (!t->storage || root_of(t->storage) != root) continue;
    for (Storage* s = t->storage; s != root; s = s->alias) {
      s->data = root->data;
      s->nbytes = root->nbytes;
      s->read_only = root->read_only;
      Py_XINCREF(root->owner);
      Py_XSETREF(s->owner, root->owner);
    }
    Py_CLEAR(t->array);
    finish(t);
    if (t->storage == root) --users;
  }
}

Tensor* allocate_tensor(PyTypeObject* type) {
  Tensor* t;
  if (type == g_tensor_type && g_nfree) {
    t = g_free[--g_nfree];
    Py_INCREF(type);
    _Py_NewReference(object(t));
  } else {
    t = type == g_tensor_type ? PyObject_GC_New(Tensor, type) : reinterpret_cast<Tensor*>(type->tp_alloc(type, 0));
    if (!t) throw PythonError();
  }
  t->storage = nullptr;
  t->data = nullptr;
  t->flags = 0;
  t->output_nr = 0;
  t->grad_fn = t->autograd = t->array = t->dict = t->weakrefs = nullptr;
  t->base = nullptr;
  t->sizes = t->dims;
  t->ndim = 0;
  link(t);
  return t;
}

static void free_geometry(Tensor* t) {
  if (t->sizes != t->dims) PyMem_Free(t->sizes);
}

static void reserve_geometry(Tensor* t, int ndim) {
  if (ndim > kMaxRank)
    fail(PyExc_RuntimeError, "tensors have at most %d dimensions, got %d. Reshape to fewer.", kMaxRank, ndim);
  if (ndim <= kInlineDims) {
    t->sizes = t->dims;
    t->strides = t->dims + kInlineDims;
  } else {
    t->sizes = static_cast<int64_t*>(PyMem_Malloc(sizeof(int64_t) * 2 * ndim));
    if (!t->sizes) {
      t->sizes = t->dims;
      throw std::bad_alloc();
    }
    t->strides = t->sizes + ndim;
  }
  t->ndim = static_cast<uint8_t>(ndim);
}

Tensor* new_tensor(DType dtype, Device device, int ndim) {
  Tensor* t = allocate_tensor(g_tensor_type);
  Ref<Tensor> hold(t);
  t->dtype = dtype;
  t->device = device;
  t->offset = 0;
  if (thread_word() & kInferenceMode) t->flags = kInference;
  reserve_geometry(t, ndim);
  return hold.release();
}

void destroy_tensor(PyObject* self) {
  auto* t = as_tensor(self);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  unlink(t);
  if (t->weakrefs) PyObject_ClearWeakRefs(self);
  Py_CLEAR(t->array);
  Py_CLEAR(t->dict);
  Py_CLEAR(t->autograd);
  Py_CLEAR(t->grad_fn);
  Py_CLEAR(t->base);
  release(t->storage);
  free_geometry(t);
  if (type == g_tensor_type && g_nfree < kFreeTensors)
    g_free[g_nfree++] = t;
  else
    type->tp_free(self);
  Py_DECREF(type);
}

// ---- geometry

void set_contiguous_strides(Tensor* t) {
  int64_t step = 1;
  for (int d = t->ndim - 1; d >= 0; --d) {
    t->strides[d] = step;
    step *= std::max<int64_t>(t->sizes[d], 1);
  }
}

void finish(Tensor* t) {
  int64_t numel = 1;
  for (int d = 0; d < t->ndim; ++d) numel *= t->sizes[d];
  bool contiguous = true;
  if (numel) {
    int64_t expected = 1;
    for (int d = t->ndim - 1; d >= 0; --d) {
      if (t->sizes[d] == 1) continue;
      if (t->strides[d] != expected) {
        contiguous = false;
        break;
      }
      expected *= t->sizes[d];
    }
  }
  t->numel = numel;
  t->flags = contiguous ? t->flags | kContiguous : t->flags & ~kContiguous;
  void* data = t->storage ? t->storage->data : nullptr;
  t->data = data ? static_cast<char*>(data) + t->offset * itemsize(t->dtype) : nullptr;
}

void set_geometry(Tensor* t, int ndim, const int64_t* sizes, const int64_t* strides, int64_t offset) {
  Dims keep_sizes(ndim, sizes), keep_strides(ndim, strides);  // the arguments may be the tensor's own
  free_geometry(t);
  reserve_geometry(t, ndim);
  std::copy_n(keep_sizes.v, ndim, t->sizes);
  std::copy_n(keep_strides.v, ndim, t->strides);
  t->offset = offset;
  Py_CLEAR(t->array);
  finish(t);
}

int64_t checked_numel(int ndim, const int64_t* sizes) {
  int64_t n = 1;
  bool zero = false;
  for (int d = 0; d < ndim; ++d) {
    if (sizes[d] < 0)
      fail(PyExc_RuntimeError, "Trying to create tensor with negative dimension %lld: %s. Sizes must be >= 0.",
           static_cast<long long>(sizes[d]), shape_text(ndim, sizes).c_str());
    if (sizes[d] == 0) zero = true;
  }
  if (zero) return 0;
  for (int d = 0; d < ndim; ++d)
    if (__builtin_mul_overflow(n, sizes[d], &n))
      fail(PyExc_RuntimeError, "numel: integer multiplication overflow, got sizes=%s. Ask for fewer elements.",
           shape_text(ndim, sizes).c_str());
  return n;
}

static int64_t checked_nbytes(int64_t numel, DType dtype, int ndim, const int64_t* sizes) {
  int64_t nbytes;
  if (__builtin_mul_overflow(numel, itemsize(dtype), &nbytes) || nbytes > INT64_MAX / 2)
    fail(PyExc_RuntimeError, "Storage size calculation overflowed with sizes=%s of %s. Ask for fewer elements.",
         shape_text(ndim, sizes).c_str(), name(dtype));
  return nbytes;
}

Ref<Tensor> empty(int ndim, const int64_t* sizes, DType dtype, Device device) {
  int64_t numel = checked_numel(ndim, sizes);
  int64_t nbytes = checked_nbytes(numel, dtype, ndim, sizes);
  Ref<Tensor> t(new_tensor(dtype, device, ndim));
  int64_t step = 1;
  for (int d = ndim - 1; d >= 0; --d) {
    t->sizes[d] = sizes[d];
    t->strides[d] = step;
    step *= std::max<int64_t>(sizes[d], 1);
  }
  t->storage = new_storage(nbytes, device);
  t->numel = numel;
  t->flags |= kContiguous;
  t->data = static_cast<char*>(t->storage->data);
  return t;
}

int64_t extent_of(int ndim, const int64_t* sizes, const int64_t* strides) {
  int64_t extent = 1;
  for (int d = 0; d < ndim; ++d) {
    if (sizes[d] == 0) return 0;
    int64_t reach;
    if (strides[d] < 0)
      fail(PyExc_RuntimeError, "Negative strides are not supported at the moment, got strides: %s",
           shape_text(ndim, strides).c_str());
    if (__builtin_mul_overflow(sizes[d] - 1, strides[d], &reach) || __builtin_add_overflow(extent, reach, &extent))
      fail(PyExc_RuntimeError, "Storage size calculation overflowed with sizes=%s and strides=%s",
           shape_text(ndim, sizes).c_str(), shape_text(ndim, strides).c_str());
  }
  return extent;
}

Ref<Tensor> empty_strided(int ndim, const int64_t* sizes, const int64_t* strides, DType dtype, Device device) {
  checked_numel(ndim, sizes);
  int64_t nbytes = checked_nbytes(extent_of(ndim, sizes, strides), dtype, ndim, sizes);
  Ref<Tensor> t(new_tensor(dtype, device, ndim));
  std::copy_n(sizes, ndim, t->sizes);
  std::copy_n(strides, ndim, t->strides);
  t->storage = new_storage(nbytes, device);
  finish(t.get());
  return t;
}

Ref<Tensor> empty_preserving(const Tensor* t, DType dtype) {
  if (t->contiguous() || t->numel <= 1) return empty(t->ndim, t->sizes, dtype, t->device);
  // Dense and not overlapping: keep the order of the strides. Otherwise (gaps, expanded) row-major.
  int order[kMaxRank];
  std::iota(order, order + t->ndim, 0);
  std::stable_sort(order, order + t->ndim, [&](int a, int b) { return t->strides[a] > t->strides[b]; });
  Dims strides(t->ndim);
  int64_t step = 1;
  bool dense = true;
  for (int i = t->ndim - 1; i >= 0; --i) {
    int d = order[i];
    strides[d] = step;
    if (t->sizes[d] != 1 && t->strides[d] != step) dense = false;
    step *= t->sizes[d];
  }
  if (!dense) {  // keep the order all the same when no two elements share memory
    for (int d = 0; d < t->ndim; ++d)
      if (t->sizes[d] > 1 && t->strides[d] == 0) return empty(t->ndim, t->sizes, dtype, t->device);
  }
  return empty_strided(t->ndim, t->sizes, strides.v, dtype, t->device);
}

Ref<Tensor> full(int ndim, const int64_t* sizes, DType dtype, Device device, const Arg& number) {
  Ref<Tensor> t = empty(ndim, sizes, dtype, device);
  fill(t.get(), number);
  return t;
}

Ref<Tensor> from_number(const Arg& number, DType dtype, Device device) {
  return full(0, nullptr, dtype, device, number);
}

// ---- views

static Ref<Tensor> share(Tensor* t, int ndim, const int64_t* sizes, const int64_t* strides, int64_t offset) {
  Ref<Tensor> v(new_tensor(t->dtype, t->device, ndim));
  std::copy_n(sizes, ndim, v->sizes);
  std::copy_n(strides, ndim, v->strides);
  v->offset = offset;
  v->storage = retain(t->storage);
  v->flags = t->flags & (kInference | kLayout);  // whatever the mode: a view is what its base is
  finish(v.get());
  return v;
}

Ref<Tensor> view(Tensor* t, int ndim, const int64_t* sizes, const int64_t* strides, int64_t offset) {
  Ref<Tensor> v = share(t, ndim, sizes, strides, offset);
  v->base = t->base ? t->base : t;
  Py_INCREF(object(v->base));
  v->flags |= kView;
  if (thread_word() & kNoGrad) {
    v->flags |= kNoGradView;
    v->output_nr = t->storage->version;
  }
  return v;
}

Ref<Tensor> alias(Tensor* t) { return view(t, t->ndim, t->sizes, t->strides, t->offset); }

Ref<Tensor> detach(Tensor* t) { return share(t, t->ndim, t->sizes, t->strides, t->offset); }

// ---- questions

bool has_internal_overlap(const Tensor* t) {
  if (t->contiguous() || t->numel < 2) return false;
  int order[kMaxRank], n = 0;
  for (int d = 0; d < t->ndim; ++d)
    if (t->sizes[d] > 1) {
      if (t->strides[d] == 0) return true;
      order[n++] = d;
    }
  std::sort(order, order + n, [&](int a, int b) { return std::abs(t->strides[a]) < std::abs(t->strides[b]); });
  int64_t reach = 0;
  bool nested = true;
  for (int i = 0; i < n; ++i) {
    int64_t step = std::abs(t->strides[order[i]]);
    if (step <= reach) nested = false;
    reach += step * (t->sizes[order[i]] - 1);
  }
  if (nested) return false;
  // Strides that interleave may still never meet: look at every element.
  std::vector<bool> seen(reach + 1);
  Dims index(t->ndim);
  int64_t low = 0;
  for (int d = 0; d < t->ndim; ++d)
    if (t->strides[d] < 0) low += t->strides[d] * (t->sizes[d] - 1);
  int64_t at = -low;
  for (int64_t i = 0; i < t->numel; ++i) {
    if (seen[at]) return true;
    seen[at] = true;
    for (int d = t->ndim - 1; d >= 0; --d) {
      at += t->strides[d];
      if (++index[d] < t->sizes[d]) break;
      at -= t->strides[d] * t->sizes[d];
      index[d] = 0;
    }
  }
  return false;
}

bool same_geometry(const Tensor* a, const Tensor* b) {
  return a->ndim == b->ndim && a->offset == b->offset && std::equal(a->sizes, a->sizes + a->ndim, b->sizes) &&
         std::equal(a->strides, a->strides + a->ndim, b->strides);
}

Overlap overlap(const Tensor* a, const Tensor* b) {
  if (a == b) return Overlap::Full;
  if (!a->numel || !b->numel) return Overlap::None;
  if (!a->data || !b->data) {
    if (a->storage != b->storage) return Overlap::None;
  }
  auto range = [](const Tensor* t, const char*& low, const char*& high) {
    int64_t size = itemsize(t->dtype);
    low = t->data ? t->data : reinterpret_cast<const char*>(t->offset * size);
    high = low + size;
    for (int d = 0; d < t->ndim; ++d) {
      int64_t reach = (t->sizes[d] - 1) * t->strides[d] * size;
      (reach < 0 ? low : high) += reach;
    }
  };
  const char *la, *ha, *lb, *hb;
  range(a, la, ha);
  range(b, lb, hb);
  if (ha <= lb || hb <= la) return Overlap::None;
  if (la == lb && a->dtype == b->dtype && a->ndim == b->ndim && std::equal(a->sizes, a->sizes + a->ndim, b->sizes) &&
      std::equal(a->strides, a->strides + a->ndim, b->strides))
    return Overlap::Full;
  // Ranges that touch: dense ones certainly share elements. Interleaved ones (columns of one matrix) may not.
  if (a->contiguous() && b->contiguous()) return Overlap::Partial;
  int64_t step = 0;
  for (const Tensor* t : {a, b})
    for (int d = 0; d < t->ndim; ++d)
      if (t->sizes[d] > 1) step = std::gcd(step, std::abs(t->strides[d]) * itemsize(t->dtype));
  int64_t gap = std::abs(la - lb);
  if (step > 0 && gap % step >= itemsize(lb < la ? b->dtype : a->dtype) &&
      step - gap % step >= itemsize(lb < la ? a->dtype : b->dtype))
    return Overlap::None;
  return Overlap::Partial;
}

int64_t wrap_dim(const char* op, int64_t dim, int64_t ndim) {
  int64_t n = std::max<int64_t>(ndim, 1);
  if (dim < -n || dim >= n)
    fail(PyExc_IndexError,
         "Dimension out of range (expected to be in range of [%lld, %lld], but got %lld): %s of a tensor with %lld "
         "dimensions.",
         static_cast<long long>(-n), static_cast<long long>(n - 1), static_cast<long long>(dim), op,
         static_cast<long long>(ndim));
  return dim < 0 ? dim + n : dim;
}

std::string shape_text(int ndim, const int64_t* sizes) {
  std::string s = "[";
  for (int d = 0; d < ndim; ++d) {
    if (d) s += ", ";
    s += std::to_string(sizes[d]);
  }
  return s + "]";
}

std::string device_text(Device d) {
  std::string s = device_type_name(d.type);
  if (d.index >= 0) s += ":" + std::to_string(d.index);
  return s;
}

std::string describe(const Tensor* t) {
  return std::string(name(t->dtype)) + shape_text(t) + " on " + device_text(t->device);
}

const char* legacy_name(DType t) {
  static const char* names[kNumDTypes] = {"Byte",     "Char",  "Short",  "Int",          "Long",          "Half",
                                          "BFloat16", "Float", "Double", "ComplexFloat", "ComplexDouble", "Bool"};
  return names[static_cast<int>(t)];
}

}  // namespace rl
