// Tensors from Python data: tensor(), as_tensor(), frombuffer().
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL rushlight_numpy_api
#define NO_IMPORT_ARRAY
#include <Python.h>
#include <numpy/arrayobject.h>

#include <cmath>
#include <cstring>

#include "view.h"

namespace rl {

namespace {

using ll = long long;

OpHandle op_cast("_cast"), op_move("_move");

bool is_numpy(PyObject* o) { return PyArray_Check(o) && PyArray_NDIM(reinterpret_cast<PyArrayObject*>(o)) > 0; }

// Things with items: not text, not a tensor of one element, not a NumPy scalar.
bool is_nested(PyObject* o) {
  if (PyList_Check(o) || PyTuple_Check(o)) return true;
  if (PyFloat_Check(o) || PyLong_Check(o) || PyUnicode_Check(o) || PyBytes_Check(o) || is_tensor(o) || PyDict_Check(o))
    return false;
  return PySequence_Check(o) && !PyArray_IsScalar(o, Generic) && !(PyArray_Check(o) && !is_numpy(o));
}

// ---- what is there: shape and dtype

class Scan {
 public:
  int ndim = 0;
  int64_t sizes[kMaxRank];
  int dtype = 0;  // DType + 1; 0: nothing seen

  explicit Scan(PyObject* o) {
    shape(o);
    walk(o, 0);
  }

 private:
  void push(int64_t n, PyObject* o) {
    if (ndim == kMaxRank) fail(PyExc_ValueError, "too many dimensions '%s'", Py_TYPE(o)->tp_name);
    sizes[ndim++] = n;
  }
  void shape(PyObject* o) {
    Ref<> hold = Ref<>::borrow(o);
    while (is_nested(hold.get())) {
      if (is_numpy(hold.get())) {
        auto* a = reinterpret_cast<PyArrayObject*>(hold.get());
        for (int d = 0; d < PyArray_NDIM(a); ++d) push(PyArray_DIM(a, d), hold.get());
        return;
      }
      Py_ssize_t n = PySequence_Size(hold.get());
      if (n < 0) throw PythonError();
      push(n, hold.get());
      if (!n) return;
      hold = Ref<>::check(PySequence_GetItem(hold.get(), 0));
    }
    if (PyUnicode_Check(hold.get()) || PyBytes_Check(hold.get())) {
      if (!ndim) fail(PyExc_TypeError, "new(): invalid data type '%s'", Py_TYPE(hold.get())->tp_name);
      fail(PyExc_ValueError, "too many dimensions '%s'", Py_TYPE(hold.get())->tp_name);
    }
  }
  void see(DType t) {
    dtype = dtype ? 1 + static_cast<int>(promote(static_cast<DType>(dtype - 1), t)) : 1 + static_cast<int>(t);
  }
  void scalar(PyObject* o) {
    if (PyFloat_CheckExact(o)) return see(g_default_dtype);
    if (PyBool_Check(o)) return see(DType::Bool);
    if (PyLong_Check(o)) return see(DType::Int64);
    if (is_tensor(o)) {
      if (as_tensor(o)->numel != 1)
        fail(PyExc_ValueError, "only one element tensors can be converted to Python scalars, got %s",
             describe(as_tensor(o)).c_str());
      return see(as_tensor(o)->dtype);
    }
    if (PyArray_CheckScalar(o)) {  // NumPy scalars and 0-d arrays
      Ref<> descr(PyArray_CheckAnyScalarExact(o) || PyArray_IsScalar(o, Generic)
                      ? reinterpret_cast<PyObject*>(PyArray_DescrFromScalar(o))
                      : Py_NewRef(reinterpret_cast<PyObject*>(PyArray_DESCR(reinterpret_cast<PyArrayObject*>(o)))));
      DType t;
      if (descr && dtype_from_numpy(descr.get(), &t)) return see(t);
      fail(PyExc_TypeError, "can't convert a NumPy scalar of type %s to a tensor element", Py_TYPE(o)->tp_name);
    }
    if (PyFloat_Check(o)) return see(g_default_dtype);
    if (PyComplex_Check(o)) return see(complex_of(g_default_dtype));
    fail(PyExc_RuntimeError, "Could not infer dtype of %s", Py_TYPE(o)->tp_name);
  }
  void walk(PyObject* o, int dim) {
    if (dim == ndim) {
      if (is_nested(o))
        fail(PyExc_TypeError,
             "'%s' object cannot be interpreted as an integer: the other items at its depth are numbers",
             Py_TYPE(o)->tp_name);
      return scalar(o);
    }
    if (!is_nested(o))
      fail(PyExc_TypeError, "not a sequence: expected a sequence of length %lld at dim %d (got %s)",
           static_cast<ll>(sizes[dim]), dim, Py_TYPE(o)->tp_name);
    if (is_numpy(o)) {
      auto* a = reinterpret_cast<PyArrayObject*>(o);
      bool fits = dim + PyArray_NDIM(a) == ndim;
      for (int d = 0; fits && d < PyArray_NDIM(a); ++d) check_length(PyArray_DIM(a, d), dim + d);
      if (!fits)
        fail(PyExc_ValueError, "expected sequence of %d dimensions at dim %d (got %d)", ndim - dim, dim,
             PyArray_NDIM(a));
      DType t;
      if (!dtype_from_numpy(reinterpret_cast<PyObject*>(PyArray_DESCR(a)), &t)) from_ndarray(o);  // raises
      return see(t);
    }
    Ref<> fast = Ref<>::check(PySequence_Fast(o, "not a sequence"));
    Py_ssize_t n = PySequence_Fast_GET_SIZE(fast.get());
    check_length(n, dim);
    PyObject** items = PySequence_Fast_ITEMS(fast.get());
    if (dim + 1 == ndim && n && PyFloat_CheckExact(items[0])) {  // the usual list of floats
      Py_ssize_t i = 0;
      while (i < n && PyFloat_CheckExact(items[i])) ++i;
      see(g_default_dtype);
      for (; i < n; ++i) walk(items[i], dim + 1);
      return;
    }
    for (Py_ssize_t i = 0; i < n; ++i) walk(items[i], dim + 1);
  }
  void check_length(int64_t n, int dim) {
    if (n != sizes[dim])
      fail(PyExc_ValueError, "expected sequence of length %lld at dim %d (got %lld)", static_cast<ll>(sizes[dim]), dim,
           static_cast<ll>(n));
  }
};

// ---- values

[[noreturn]] void overflows(DType t) {
  fail(PyExc_RuntimeError, "value cannot be converted to type %s without overflow",
       t == DType::Int64 ? "int64_t" : name(t));
}

int64_t integer_value(PyObject* o, DType t) {
  if (PyLong_Check(o)) {
    int overflow;
    int64_t v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow) fail(PyExc_ValueError, "Overflow when unpacking long long: a Python int beyond 64 bits.");
    return v;
  }
  if (is_tensor(o)) return item(as_tensor(o)).to_int();
  if (!PyFloat_Check(o)) {
    Ref<> index(PyNumber_Index(o));
    if (index) return integer_value(index.get(), t);
    PyErr_Clear();
  }
  double d = PyFloat_AsDouble(o);
  if (d == -1 && PyErr_Occurred()) throw PythonError();
  if (!fits(d, t)) overflows(t);
  return static_cast<int64_t>(d);
}

void store_integer(int64_t v, DType t, char* to) {
  int bits = static_cast<int>(itemsize(t)) * 8;
  if (bits < 64) {
    // Unsigned dtypes take negative numbers by their bit pattern.
    int64_t high = t == DType::UInt8 ? 255 : (int64_t{1} << (bits - 1)) - 1, low = t == DType::UInt8 ? -255 : -high - 1;
    if (v < low || v > high) overflows(t);
  }
  std::memcpy(to, &v, itemsize(t));
}

void store(PyObject* o, DType t, char* to) {
  if (is_integral(t)) return store_integer(integer_value(o, t), t, to);
  if (t == DType::Bool) {
    int v = PyObject_IsTrue(o);
    if (v < 0) throw PythonError();
    *to = static_cast<char>(v);
    return;
  }
  if (is_complex(t)) {
    Arg a;
    if (is_tensor(o)) {
      a = item(as_tensor(o));
    } else {
      Py_complex v = PyComplex_AsCComplex(o);
      if (v.real == -1 && PyErr_Occurred()) throw PythonError();
      a.kind = Kind::Complex;
      a.d = v.real;
      a.imag = v.imag;
    }
    return store_number(a, t, to);
  }
  double v = PyFloat_AsDouble(o);
  if (v == -1 && PyErr_Occurred()) throw PythonError();
  if (t == DType::Float32) {
    auto f = static_cast<float>(v);
    std::memcpy(to, &f, 4);
  } else if (t == DType::Float64) {
    std::memcpy(to, &v, 8);
  } else {
    store_number(arg(v), t, to);
  }
}

class Filler {
 public:
  Filler(Tensor* t, const Scan& scan) : t_(t), scan_(scan) {}
  void fill(PyObject* o, int dim, char* to) {
    if (dim == scan_.ndim) return store(o, t_->dtype, to);
    if (is_numpy(o)) {
      Ref<Tensor> part = from_ndarray(o);
      Ref<Tensor> target =
          view(t_, scan_.ndim - dim, t_->sizes + dim, t_->strides + dim, (to - t_->data) / itemsize(t_->dtype));
      if (part->ndim != target->ndim) changed();
      copy_into(target.get(), part.get());
      return;
    }
    Ref<> fast = Ref<>::check(PySequence_Fast(o, "not a sequence"));
    Py_ssize_t n = PySequence_Fast_GET_SIZE(fast.get());
    if (n != scan_.sizes[dim]) changed();
    int64_t step = t_->strides[dim] * itemsize(t_->dtype);
    for (Py_ssize_t i = 0; i < n; ++i, to += step) {
      if (PySequence_Fast_GET_SIZE(fast.get()) != n) changed();
      PyObject* v = PySequence_Fast_GET_ITEM(fast.get(), i);
      if (dim + 1 == scan_.ndim && PyFloat_CheckExact(v) && t_->dtype == DType::Float32) {
        auto f = static_cast<float>(PyFloat_AS_DOUBLE(v));
        std::memcpy(to, &f, 4);
      } else {
        Ref<> hold = Ref<>::borrow(v);
        fill(v, dim + 1, to);
      }
    }
  }

 private:
  [[noreturn]] static void changed() { fail(PyExc_ValueError, "tensor: the data changed its size while it was read"); }
  Tensor* t_;
  const Scan& scan_;
};

struct Options {
  bool has_dtype = false, has_device = false, requires_grad = false, pin_memory = false;
  DType dtype{};
  Device device{kCPU, -1};
  PyObject* copy = Py_None;
  Device place() const { return has_device ? resolve(device) : resolve(g_default_device); }
};

// A tensor over an array-like's memory where that is possible (arrays, __array__, __array_interface__), else null.
Ref<Tensor> from_array_like(PyObject* o) {
  if (PyArray_Check(o)) return from_ndarray(o);
  if (PyList_Check(o) || PyTuple_Check(o) || PyFloat_Check(o) || PyLong_Check(o) || PyArray_IsScalar(o, Generic))
    return {};
  for (const char* protocol : {"__array_interface__", "__array__"}) {
    if (!PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)), protocol)) continue;
    Ref<> array(PyArray_FROM_O(o));
    if (!array) throw PythonError();
    if (PyArray_Check(array.get()) &&
        PyArray_DESCR(reinterpret_cast<PyArrayObject*>(array.get()))->type_num != NPY_OBJECT)
      return from_ndarray(array.get());
  }
  return {};
}

Ref<Tensor> fresh(PyObject* data, const Options& o) {
  Ref<Tensor> t;
  if (is_tensor(data)) {
    t = detach(as_tensor(data));
    static OpHandle op_clone("clone");
    Arg a = arg(t.get());
    t = t->flags & kLayout ? call_tensor(op_clone.get(), &a, 1) : clone(t.get());
  } else if (Ref<Tensor> shared = from_array_like(data)) {
    t = o.has_dtype && o.dtype != shared->dtype ? to_dtype(shared.get(), o.dtype) : clone(shared.get());
  } else {
    Scan scan(data);
    DType dtype = o.has_dtype ? o.dtype : scan.dtype ? static_cast<DType>(scan.dtype - 1) : g_default_dtype;
    t = empty(scan.ndim, scan.sizes, dtype, {kCPU, -1});
    if (t->numel) Filler(t.get(), scan).fill(data, 0, t->data);
  }
  if (o.has_dtype) t = to_dtype(t.get(), o.dtype);
  Device place = o.has_device || !is_tensor(data) ? o.place() : as_tensor(data)->device;
  if (place == t->device) return t;
  Ref<Tensor> moved = empty(t->ndim, t->sizes, t->dtype, place);
  copy_into(moved.get(), t.get());
  return moved;
}

// `source`, what `data` shares its memory by, as dtype and device ask: the same memory where they allow.
Ref<Tensor> adapt(Ref<Tensor> source, PyObject* data, const Options& o) {
  Ref<Tensor> t = std::move(source);
  if (o.has_dtype && o.dtype != t->dtype) {
    Arg args[2] = {arg(t.get())};
    args[1].kind = Kind::DType;
    args[1].dtype = o.dtype;
    t = call_tensor(op_cast.get(), args, 2);
  }
  Device place = o.has_device || !is_tensor(data) ? o.place() : t->device;
  if (place != t->device) {
    Arg args[2] = {arg(t.get())};
    args[1].kind = Kind::Device;
    args[1].device = place;
    t = call_tensor(op_move.get(), args, 2);
  }
  return t;
}

Ref<Tensor> tensor_or_array(PyObject* data) {
  return is_tensor(data) ? Ref<Tensor>::borrow(as_tensor(data)) : from_array_like(data);
}

// A 1-d tensor over the memory of an object with the buffer protocol; count -1: all of it.
Ref<Tensor> over_buffer(PyObject* source, DType dtype, ll count, ll offset) {
  Ref<> memory = Ref<>::check(PyMemoryView_FromObject(source));
  Py_buffer* b = PyMemoryView_GET_BUFFER(memory.get());
  if (!PyBuffer_IsContiguous(b, 'C')) fail(PyExc_ValueError, "frombuffer: the buffer must be contiguous");
  int64_t size = itemsize(dtype), length = b->len;
  if (!length || !count)
    fail(PyExc_ValueError, "both buffer length (%lld) and count (%lld) must not be 0", static_cast<ll>(length), count);
  if (offset < 0 || offset >= length)
    fail(PyExc_ValueError,
         "offset (%lld bytes) must be non-negative and no greater than buffer length (%lld bytes) minus 1", offset,
         static_cast<ll>(length));
  if (count < 0 && (length - offset) % size)
    fail(PyExc_ValueError,
         "buffer length (%lld bytes) after offset (%lld bytes) must be a multiple of element size (%lld)",
         static_cast<ll>(length), offset, static_cast<ll>(size));
  int64_t have = (length - offset) / size, want = count < 0 ? have : count;
  if (want > have)
    fail(PyExc_ValueError,
         "requested buffer length (%lld * %lld bytes) after offset (%lld bytes) must not be greater than actual "
         "buffer length (%lld bytes)",
         static_cast<ll>(want), static_cast<ll>(size), offset, static_cast<ll>(length));
  char* data = static_cast<char*>(b->buf) + offset;
  if (reinterpret_cast<uintptr_t>(data) % itemsize(real_of(dtype)))
    fail(PyExc_ValueError,
         "frombuffer: the memory at offset=%lld is not aligned to the element size of %s. Copy it first.", offset,
         name(dtype));
  Ref<Tensor> t(new_tensor(dtype, {kCPU, -1}, 1));
  t->sizes[0] = want;
  t->strides[0] = 1;
  t->storage = foreign_storage(data, want * size, {kCPU, -1}, memory.get());
  t->storage->read_only = b->readonly;
  finish(t.get());
  return t;
}

// ---- arguments

bool is_name(PyObject* name, const char* text) { return !PyUnicode_CompareWithASCIIString(name, text); }

void take_dtype(Options& o, PyObject* v, const char* fn) {
  if (v == Py_None) return;
  if (!dtype_from_object(v, &o.dtype))
    fail(PyExc_TypeError, "%s(): argument 'dtype' must be torch.dtype, not %s", fn, Py_TYPE(v)->tp_name);
  o.has_dtype = true;
}
void take_device(Options& o, PyObject* v, const char* fn) {
  if (v == Py_None) return;
  if (!device_from_object(v, &o.device))
    fail(PyExc_TypeError, "%s(): argument 'device' must be torch.device, not %s", fn, Py_TYPE(v)->tp_name);
  o.has_device = true;
}
bool take_bool(PyObject* v, const char* fn, const char* what) {
  if (!PyBool_Check(v))
    fail(PyExc_TypeError, "%s(): argument '%s' must be bool, not %s", fn, what, Py_TYPE(v)->tp_name);
  return v == Py_True;
}

// The data argument and the options; `positional`: dtype and device may stand behind the data.
PyObject* parse(const char* fn, PyObject* const* args, Py_ssize_t n, PyObject* kwnames, bool positional, Options& o) {
  PyObject* data = n ? args[0] : nullptr;
  if (n > (positional ? 3 : 1))
    fail(PyExc_TypeError, "%s() takes %s positional argument%s but %zd were given", fn,
         positional ? "from 1 to 3" : "1", positional ? "s" : "", n);
  if (n > 1) take_dtype(o, args[1], fn);
  if (n > 2) take_device(o, args[2], fn);
  for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); ++i) {
    PyObject *key = PyTuple_GET_ITEM(kwnames, i), *v = args[n + i];
    if (is_name(key, "dtype")) {
      take_dtype(o, v, fn);
    } else if (is_name(key, "device")) {
      take_device(o, v, fn);
    } else if (is_name(key, "requires_grad")) {
      o.requires_grad = take_bool(v, fn, "requires_grad");
    } else if (is_name(key, "pin_memory")) {
      o.pin_memory = take_bool(v, fn, "pin_memory");
    } else if (is_name(key, "copy")) {
      o.copy = v;
    } else if (!data && (is_name(key, "data") || is_name(key, "obj"))) {
      data = v;
    } else {
      fail(PyExc_TypeError, "%s() got an unexpected keyword argument '%s'", fn, PyUnicode_AsUTF8(key));
    }
  }
  if (!data) fail(PyExc_TypeError, "%s() missing 1 required positional arguments: \"data\"", fn);
  return data;
}

PyObject* finished(Ref<Tensor> t, const Options& o) {
  if (o.pin_memory)
    t = Ref<Tensor>::check(reinterpret_cast<Tensor*>(PyObject_CallMethod(t.object(), "pin_memory", nullptr)));
  if (!o.requires_grad) return t.release_object();
  if (!is_inexact(t->dtype))
    fail(PyExc_RuntimeError, "Only Tensors of floating point and complex dtype can require gradients, got dtype=%s",
         name(t->dtype));
  if (PyObject_SetAttrString(t.object(), "requires_grad", Py_True) < 0) throw PythonError();
  return t.release_object();
}

PyObject* tensor(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    Options o;
    PyObject* data = parse("tensor", args, n, kwnames, false, o);
    if (is_tensor(data) &&
        PyErr_WarnEx(PyExc_UserWarning,
                     "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                     "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
                     1) < 0)
      return nullptr;
    return finished(fresh(data, o), o);
  });
}

PyObject* as_tensor(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    Options o;
    PyObject* data = parse("as_tensor", args, n, kwnames, true, o);
    Ref<Tensor> source = tensor_or_array(data);
    return finished(source ? adapt(std::move(source), data, o) : fresh(data, o), o);
  });
}

constexpr const char* kNoAlias =
    "asarray: can't alias the data, but copy=False. Pass copy=None to copy where it is needed.";

// What asarray takes over beside tensors and arrays: DLPack, and the bytes of a buffer as the dtype.
Ref<Tensor> from_memory(PyObject* o, DType dtype) {
  if (PyArray_IsScalar(o, Generic) || PyList_Check(o) || PyTuple_Check(o)) return {};
  if (PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)), "__dlpack__")) return tensor_from_dlpack(o);
  return PyObject_CheckBuffer(o) ? over_buffer(o, dtype, -1, 0) : Ref<Tensor>();
}

// asarray(obj, *, dtype, device, copy, requires_grad): copy=True always copies, False never does.
PyObject* asarray(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    Options o;
    PyObject* data = parse("asarray", args, n, kwnames, false, o);
    Ref<Tensor> source = tensor_or_array(data);
    if (!source) source = from_memory(data, o.has_dtype ? o.dtype : g_default_dtype);
    if (!source) {
      if (o.copy == Py_False) fail(PyExc_ValueError, kNoAlias);
      return finished(fresh(data, o), o);
    }
    Ref<Tensor> r = adapt(source, data, o);
    bool aliases = r->storage->data == source->storage->data;
    if (o.copy == Py_False && !aliases) fail(PyExc_ValueError, kNoAlias);
    if (o.copy == Py_True && aliases) r = clone(detach(r.get()).get());
    return finished(std::move(r), o);
  });
}

PyObject* frombuffer(PyObject*, PyObject* args, PyObject* kwargs) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    static const char* names[] = {"buffer", "dtype", "count", "offset", "requires_grad", nullptr};
    PyObject *source, *dtype = Py_None;
    long long count = -1, offset = 0;
    Options o;
    int requires_grad = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OLLp:frombuffer", const_cast<char**>(names), &source, &dtype,
                                     &count, &offset, &requires_grad))
      return nullptr;
    take_dtype(o, dtype, "frombuffer");
    if (!o.has_dtype) fail(PyExc_TypeError, "frombuffer(): argument 'dtype' must be torch.dtype, not NoneType");
    o.requires_grad = requires_grad;
    if (!PyObject_CheckBuffer(source))
      fail(PyExc_ValueError, "object does not implement Python buffer protocol, got %s.", Py_TYPE(source)->tp_name);
    return finished(over_buffer(source, o.dtype, count, offset), o);
  });
}

#define FAST(f) reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f))
PyMethodDef functions[] = {
    {"tensor", FAST(tensor), METH_FASTCALL | METH_KEYWORDS,
     "tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False)\n--\n\n"
     "A tensor with a copy of the data: numbers, nested sequences, arrays.\n\n"
     "Args:\n    data: Numbers nested in lists or tuples of equal length, an ndarray, or a number.\n"
     "    dtype: Dtype; by default what the data call for: bool, int64, the default float dtype or its complex one.\n"
     "    device: Where it lives; by default the default device.\n    requires_grad: Whether it records gradients.\n\n"
     "Returns:\n    A new tensor.\n\n"
     "Raises:\n    ValueError: Sequences of unequal length.\n    RuntimeError: A number that the dtype cannot hold.\n\n"
     "Example:\n    >>> rushlight.tensor([[1, 2], [3, 4]])\n    tensor([[1, 2],\n            [3, 4]])\n"},
    {"as_tensor", FAST(as_tensor), METH_FASTCALL | METH_KEYWORDS,
     "as_tensor(data, dtype=None, device=None)\n--\n\nThe data as a tensor, sharing memory with a tensor or ndarray of "
     "the same dtype and device."},
    {"asarray", FAST(asarray), METH_FASTCALL | METH_KEYWORDS,
     "asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False)\n--\n\nThe data as a tensor; `copy` "
     "says whether memory may, must or must not be shared."},
    {"frombuffer", FAST(frombuffer), METH_VARARGS | METH_KEYWORDS,
     "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False)\n--\n\nA 1-d tensor over the memory of an "
     "object with the buffer protocol."},
    {}};

}  // namespace

Ref<Tensor> tensor_from_data(PyObject* data) {
  Options o;
  o.has_device = true;
  if (Ref<Tensor> t = from_array_like(data)) return t;
  return fresh(data, o);
}

void init_construct(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError();
}

}  // namespace rl
