// Calls: from arguments through the layers to a kernel, and what out= and in-place forms add to it.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "../determinism.h"
#include "dispatch.h"
#include "layers.h"

namespace rl {

thread_local uint32_t t_word = 0;
uint32_t g_layer_bits = 0;

namespace {

std::vector<Layer>& layers() {
  static auto* all = new std::vector<Layer>();
  return *all;
}

std::unordered_map<std::string, Native>& natives() {
  static auto* table = new std::unordered_map<std::string, Native>();
  return *table;
}

struct Pending {
  std::vector<std::pair<std::string, Kernel>> kernels;  // by device type
  Loop loops[kNumDTypes] = {};
};
std::unordered_map<std::string, Pending>& pending() {
  static auto* table = new std::unordered_map<std::string, Pending>();
  return *table;
}

void set_kernel(OpRecord* op, const std::string& device, Kernel kernel) {
  int type = find_device_type(device.c_str());
  if (type < 0) fail(PyExc_ValueError, "register_kernel: device type '%s' is not registered", device.c_str());
  op->kernels[type] = kernel;
}

}  // namespace

void add_kernel(const char* name, const char* device_type, Kernel kernel) {
  if (OpRecord* op = find_op(name)) return set_kernel(op, device_type, kernel);
  pending()[name].kernels.emplace_back(device_type, kernel);
}

void add_loop(const char* name, DType compute, Loop loop) {
  OpRecord* op = find_op(name);
  if (op && op->family != Family::Pointwise)
    fail(PyExc_ValueError, "register_loop: %s is not a pointwise operator", name);
  (op ? static_cast<Loop*>(op->loops) : pending()[name].loops)[static_cast<int>(compute)] = loop;
}

void adopt_natives(OpRecord* op) {
  auto it = pending().find(op->name_text);
  if (it == pending().end()) return;
  for (auto& [device, kernel] : it->second.kernels) set_kernel(op, device, kernel);
  if (op->family == Family::Pointwise)
    for (int i = 0; i < kNumDTypes; ++i)
      if (it->second.loops[i]) static_cast<Loop*>(op->loops)[i] = it->second.loops[i];
}

void register_layer(const Layer& layer) {
  auto& all = layers();
  for (auto& other : all)
    if (!std::strcmp(other.name, layer.name))
      fail(PyExc_ValueError, "register_layer: a layer named '%s' is registered already", layer.name);
  all.insert(
      std::upper_bound(all.begin(), all.end(), layer, [](const Layer& a, const Layer& b) { return a.order < b.order; }),
      layer);
  g_layer_bits |= layer.on;
}

std::vector<std::string> layer_names() {
  std::vector<std::string> names;
  for (auto& layer : layers()) names.emplace_back(layer.name);
  return names;
}

void keep_layers(const std::vector<std::string>& names) {
  auto& all = layers();
  const auto dropped = [&](const Layer& layer) {
    return std::find(names.begin(), names.end(), layer.name) == names.end();
  };
  all.erase(std::remove_if(all.begin(), all.end(), dropped), all.end());
  g_layer_bits = 0;
  for (auto& layer : all) g_layer_bits |= layer.on;
}

void register_natives(const Native* list, int n) {
  for (int i = 0; i < n; ++i) natives().emplace(list[i].op, list[i]);
}
const Native* find_native(const std::string& op) {
  auto it = natives().find(op);
  return it == natives().end() ? nullptr : &it->second;
}

// ---- dispatch

PyObject* dispatch(Call& c) {
  uint32_t word = c.flags | t_word;
  if (word & g_layer_bits) {
    auto& all = layers();
    for (size_t i = c.layer; i < all.size(); ++i) {
      const Layer& layer = all[i];
      if (!(word & layer.on) || (word & layer.off)) continue;
      if (c.op->family == Family::Composite && !layer.sees_composites) continue;
      c.layer = static_cast<uint8_t>(i + 1);
      return layer.call(c, layer.self);
    }
  }
  return run(c);
}

// What a kernel returns as a plain tuple, as the named one that the schema promises.
static PyObject* named_results(const OpRecord* op, Ref<> result) {
  const auto n = static_cast<Py_ssize_t>(op->result_names.size());
  if (n < 2 || !PyTuple_CheckExact(result.get()) || PyTuple_GET_SIZE(result.get()) != n) return result.release();
  return PyObject_CallOneArg(reinterpret_cast<PyObject*>(named_result(op)), result.get());
}

PyObject* run_python(Call& c, PyObject* fn, PyObject* first) {
  Ref<> args, kwargs;
  int npositional = static_cast<const OpRecord*>(c.op)->npositional;
  args = Ref<>::check(PyTuple_New(npositional));
  for (int i = 0; i < c.op->nparams; ++i) {
    Ref<> value = Ref<>::check(arg_to_object(c.args[i]));
    if (i < npositional) {
      PyTuple_SET_ITEM(args.get(), i, value.release());
    } else {
      if (!kwargs) kwargs = Ref<>::check(PyDict_New());
      if (PyDict_SetItem(kwargs.get(), static_cast<const OpRecord*>(c.op)->names[i], value.get()) < 0) return nullptr;
    }
  }
  if (first) args = Ref<>::check(PySequence_Concat(first, args.get()));
  Ref<> result = Ref<>::check(PyObject_Call(fn, args.get(), kwargs.get()));
  return named_results(static_cast<const OpRecord*>(c.op), std::move(result));
}

// An op whose result the order of threads decides is called, and that is not wanted.
static void refuse_unordered(const Call& c) {
  std::string text = std::string(c.op->name) + " does not have a deterministic implementation on device type '" +
                     device_type_name(c.device.type) +
                     "', but you set 'torch.use_deterministic_algorithms(True)'. You can turn off determinism just for "
                     "this operation, or you can use the 'warn_only=True' option, if that's acceptable for your "
                     "application.";
  if (!g_determinism.warn_only) throw Error(PyExc_RuntimeError, text);
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) < 0) throw PythonError();
}

// What a Python kernel returns may be anything: tensors of the device that it was called on are wanted.
static PyObject* run_python_kernel(Call& c, PyObject* fn) {
  const Op* op = c.op;
  Ref<> result;
  try {
    result = Ref<>::check(run_python(c, fn));
  } catch (const PythonError&) {
    note_origin(c.device.type);
    throw;
  }
  auto refuse = [&](const std::string& fault) {
    fail(PyExc_RuntimeError, "%s: the kernel for %s must return %s on %s, got %s.", op->name,
         device_origin(c.device.type).c_str(),
         op->noutputs == 1 ? "a tensor" : ("a tuple of " + std::to_string(op->noutputs) + " tensors").c_str(),
         device_text(c.device).c_str(), fault.c_str());
  };
  auto check = [&](PyObject* value) {
    if (!is_tensor(value))
      refuse(value == Py_None ? "None" : "a value of type " + std::string(Py_TYPE(value)->tp_name));
    if (as_tensor(value)->device != c.device) refuse("one on " + device_text(as_tensor(value)->device));
  };
  if (op->noutputs == 1) {
    check(result.get());
    check_pointwise_result(c, as_tensor(result.get()));
  } else if (op->noutputs > 1) {
    if (!PyTuple_Check(result.get())) refuse("a value of type " + std::string(Py_TYPE(result.get())->tp_name));
    if (PyTuple_GET_SIZE(result.get()) != op->noutputs)
      refuse("a tuple of " + std::to_string(PyTuple_GET_SIZE(result.get())));
    for (int i = 0; i < op->noutputs; ++i) check(PyTuple_GET_ITEM(result.get(), i));
  }
  return result.release();
}

static PyObject* run_kernel(Call& c) {
  const Op* op = c.op;
  uint8_t type = c.device.type;
  if (g_determinism.on && static_cast<const OpRecord*>(op)->unordered >> type & 1) refuse_unordered(c);
  if (Kernel k = op->kernels[type]) return named_results(static_cast<const OpRecord*>(op), Ref<>::check(k(c)));
  if (PyObject* fn = op->py_kernels[type]) return run_python_kernel(c, fn);
  if (op->impl) return op->impl(c);
  if (op->array_kernel && type != kMeta) return run_array_kernel(c, op);
  if (op->composite) return run_python(c, op->composite);
  return without_kernel(c);
}

void check_writable(const Op* op, const Tensor* t) {
  if (t->storage->read_only)
    fail(PyExc_RuntimeError, "%s: the tensor's memory is read-only (it came from a read-only array). clone() it first.",
         op->name);
  if (has_internal_overlap(t))
    fail(PyExc_RuntimeError,
         "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
         "Please clone() the tensor before performing the operation. (%s: got strides %s for sizes %s)",
         op->name, shape_text(t->ndim, t->strides).c_str(), shape_text(t).c_str());
}

void resize_out(const Op* op, Tensor* out, int ndim, const int64_t* sizes) {
  if (out->ndim == ndim && std::equal(sizes, sizes + ndim, out->sizes)) return;
  if (out->numel) {
    std::string text = "An output with one or more elements was resized since it had shape " + shape_text(out) +
                       ", which does not match the required output shape " + shape_text(ndim, sizes) +
                       ". This behavior is deprecated, and in a future PyTorch release outputs will not be resized "
                       "unless they have zero elements.";
    if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) < 0) throw PythonError();
  }
  Ref<Tensor> fresh = empty(ndim, sizes, out->dtype, out->device);
  int64_t need = fresh->nbytes() + out->offset * itemsize(out->dtype);
  if (out->storage->nbytes >= need) {
    set_geometry(out, ndim, fresh->sizes, fresh->strides, out->offset);
    return;
  }
  std::swap(out->storage, fresh->storage);
  set_geometry(out, ndim, fresh->sizes, fresh->strides, 0);
}

void check_target_dtype(const Op* op, DType value, DType target) {
  if (!can_cast(value, target) && !static_cast<const OpRecord*>(op)->any_out)
    fail(PyExc_RuntimeError, "result type %s can't be cast to the desired output type %s", legacy_name(value),
         legacy_name(target));
  if (value != target && static_cast<const OpRecord*>(op)->exact)
    fail(PyExc_RuntimeError, "Expected out tensor to have dtype %s, but got %s instead (%s)", name(value), name(target),
         op->name);
}

void write_result(const Op* op, Tensor* target, Tensor* value, bool is_out) {
  check_target_dtype(op, value->dtype, target->dtype);
  if (is_out) {
    if (target->device != value->device)
      fail(PyExc_RuntimeError, "%s: Expected out tensor to have device %s, but got %s instead", op->name,
           device_text(value->device).c_str(), device_text(target->device).c_str());
    resize_out(op, target, value->ndim, value->sizes);
  } else if (target->ndim != value->ndim || !std::equal(value->sizes, value->sizes + value->ndim, target->sizes)) {
    fail(PyExc_RuntimeError, "output with shape %s doesn't match the broadcast shape %s", shape_text(target).c_str(),
         shape_text(value).c_str());
  }
  check_writable(op, target);
  copy_into(target, value);
}

// The tensors that the schema says are written, in lists of tensors too.
template <class F>
void for_each_written(const Call& c, F&& fn) {
  for (int i = 0; i < c.op->nparams; ++i) {
    const Arg& a = c.args[i];
    if (!c.op->params[i].is_write) continue;
    if (a.is_tensor()) fn(a.tensor);
    if (a.kind == Kind::Tensors)
      for (int k = 0; k < a.count; ++k)
        if (a.tensors[k]) fn(a.tensors[k]);
  }
}

PyObject* run(Call& c) {
  const Op* op = c.op;
  if (op->inplace_only) {
    // Those of the view family write sizes and strides, not memory.
    if (op->family != Family::View) for_each_written(c, [op](Tensor* t) { check_writable(op, t); });
    PyObject* r = run_kernel(c);
    if (r) for_each_written(c, [](Tensor* t) { ++t->storage->version; });
    return r;
  }
  if (!c.inplace && !c.out) return run_kernel(c);
  if (c.inplace && static_cast<const OpRecord*>(op)->writes_inplace && !op->py_kernels[c.device.type] &&
      (op->kernels[c.device.type] || op->impl)) {
    Tensor* self = c.args[0].tensor;
    check_writable(op, self);
    PyObject* r = run_kernel(c);
    if (r) ++self->storage->version;
    return r;
  }
  // Pointwise prologues write into their target themselves.
  if (op->family == Family::Pointwise && op->impl && !op->kernels[c.device.type] && !op->py_kernels[c.device.type]) {
    PyObject* r = op->impl(c);
    if (r) ++as_tensor(r)->storage->version;
    return r;
  }
  // A factory makes what it is to fill.
  if ((op->family == Family::Factory || static_cast<const OpRecord*>(op)->any_out) && c.out && is_tensor(c.out))
    for (int i = 0; i < op->nparams; ++i)
      if (op->params[i].type == ParamType::DType && c.args[i].none()) {
        c.args[i].kind = Kind::DType;
        c.args[i].dtype = as_tensor(c.out)->dtype;
      }
  PyObject* out = c.out;
  bool inplace = c.inplace;
  c.out = nullptr;
  c.inplace = false;
  Ref<> result = Ref<>::check(run_kernel(c));
  c.out = out;
  c.inplace = inplace;
  if (inplace) {
    if (!is_tensor(result.get()))
      fail(PyExc_RuntimeError, "%s_: the operator does not return one tensor and has no in-place form", op->name);
    Tensor* self = c.args[0].tensor;
    write_result(op, self, as_tensor(result.get()), false);
    ++self->storage->version;
    return Py_NewRef(object(self));
  }
  if (is_tensor(out)) {
    if (!is_tensor(result.get()))
      fail(PyExc_TypeError, "%s: the operator returns several tensors, out= must be a tuple of as many", op->name);
    write_result(op, as_tensor(out), as_tensor(result.get()), true);
    ++as_tensor(out)->storage->version;
    return Py_NewRef(out);
  }
  Ref<> outs = Ref<>::check(PySequence_Tuple(out)), values = Ref<>::check(PySequence_Tuple(result.get()));
  Py_ssize_t n = PyTuple_GET_SIZE(values.get());
  if (PyTuple_GET_SIZE(outs.get()) != n)
    fail(PyExc_TypeError, "%s: out= must hold %zd tensors, got %zd", op->name, n, PyTuple_GET_SIZE(outs.get()));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* o = PyTuple_GET_ITEM(outs.get(), i);
    if (!is_tensor(o))
      fail(PyExc_TypeError, "%s: out= must hold tensors, got %s at index %zd", op->name, Py_TYPE(o)->tp_name, i);
    write_result(op, as_tensor(o), as_tensor(PyTuple_GET_ITEM(values.get(), i)), true);
    ++as_tensor(o)->storage->version;
  }
  if (Py_TYPE(result.get()) != &PyTuple_Type && PyTuple_Check(result.get()))  // a named tuple of the same kind
    return PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(Py_TYPE(result.get())), outs.get(), nullptr);
  return outs.release();
}

// ---- completing a call

void complete(Call& c) {
  uint32_t flags = 0;
  const Tensor* first = nullptr;
  bool explicit_device = false;
  auto see = [&](const Tensor* t) {
    flags |= t->flags;
    if (!first) {
      first = t;
    } else if (first->device != t->device && !c.op->mixed_devices) {
      bool t_scalar = t->is_cpu() && !t->ndim, first_scalar = first->is_cpu() && !first->ndim;
      if (first_scalar && !t_scalar) {
        first = t;
      } else if (!t_scalar) {
        fail(PyExc_RuntimeError,
             "Expected all tensors to be on the same device, but found at least two devices, %s and %s! (%s) Move one "
             "with .to(device).",
             device_text(first->device).c_str(), device_text(t->device).c_str(), c.op->name);
      }
    }
  };
  for (int i = 0; i < c.op->nparams; ++i) {
    const Arg& a = c.args[i];
    if (a.kind == Kind::Tensor) {
      see(a.tensor);
    } else if (a.kind == Kind::Tensors) {
      for (int k = 0; k < a.count; ++k)
        if (a.tensors[k]) see(a.tensors[k]);
    } else if (a.kind == Kind::Device && !c.op->mixed_devices) {
      c.device = resolve(a.device);
      explicit_device = true;
    } else if (a.kind == Kind::Object && c.op->params[i].type == ParamType::Tensor) {
      flags |= kOverride;  // another library's object that overrides __torch_function__
    }
  }
  if (c.out) {
    if (is_tensor(c.out)) {
      flags |= as_tensor(c.out)->flags;
      if (!first && !explicit_device) {
        c.device = as_tensor(c.out)->device;
        explicit_device = true;
      }
    } else {
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(c.out); ++i) flags |= as_tensor(PyTuple_GET_ITEM(c.out, i))->flags;
    }
  }
  c.flags = flags & kLayerBits;
  if (!explicit_device) c.device = first ? first->device : resolve(g_default_device);
}

Ref<> call(const Op* op, const Arg* args, int nargs, bool inplace) {
  Frame f;
  for (int i = 0; i < op->nparams; ++i) new (f.args() + i) Arg(i < nargs ? args[i] : op->params[i].default_value);
  f.call = Call{op, f.args(), 0, {}, inplace, 0, nullptr, nullptr};
  complete(f.call);
  return Ref<>::check(dispatch(f.call));
}

PyObject* arg_to_object(const Arg& a) {
  switch (a.kind) {
    case Kind::None: return Py_NewRef(Py_None);
    case Kind::Tensor: return Py_NewRef(object(a.tensor));
    case Kind::Tensors: {
      PyObject* list = PyList_New(a.count);
      for (int i = 0; list && i < a.count; ++i)
        PyList_SET_ITEM(list, i, a.tensors[i] ? Py_NewRef(object(a.tensors[i])) : Py_NewRef(Py_None));
      return list;
    }
    case Kind::Int: return PyLong_FromLongLong(a.i);
    case Kind::Bool: return PyBool_FromLong(a.i);
    case Kind::Float: return PyFloat_FromDouble(a.d);
    case Kind::Complex: return PyComplex_FromDoubles(a.d, a.imag);
    case Kind::Ints:
    case Kind::Floats: {
      PyObject* tuple = PyTuple_New(a.count);
      for (int i = 0; tuple && i < a.count; ++i)
        PyTuple_SET_ITEM(tuple, i,
                         a.kind == Kind::Ints ? PyLong_FromLongLong(a.ints[i]) : PyFloat_FromDouble(a.floats[i]));
      return tuple;
    }
    case Kind::DType: return Py_NewRef(dtype_object(a.dtype));
    case Kind::Device: return device_object(a.device);
    case Kind::Object: return Py_NewRef(a.object);
  }
  return nullptr;
}

// A field a line, under PyTorch's name, as PyTorch prints it.
static PyObject* print_named_result(PyObject* self) {
  return guard<PyObject*>(nullptr, [&] {
    const char* name = std::strchr(Py_TYPE(self)->tp_name, '.');
    Ref<> fields = Ref<>::check(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(self)), "__match_args__"));
    Ref<> text = Ref<>::check(PyUnicode_FromFormat("torch%s(", name));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fields.get()); ++i)
      text = Ref<>::check(PyUnicode_FromFormat("%U%s\n%U=%R", text.get(), i == 0 ? "" : ",",
                                               PyTuple_GET_ITEM(fields.get(), i), PyStructSequence_GetItem(self, i)));
    return PyUnicode_FromFormat("%U)", text.get());
  });
}

PyTypeObject* named_result(const OpRecord* op) {
  static auto* types = new std::unordered_map<std::string, PyTypeObject*>();
  std::string name = op->name_text.substr(0, op->name_text.find('.'));
  if (size_t colons = name.find("::"); colons != std::string::npos) name.replace(colons, 2, "_");
  PyTypeObject*& type = (*types)[name];
  if (!type) {
    name = "rushlight.return_types." + name;
    std::vector<PyStructSequence_Field> fields;
    for (const std::string& field : op->result_names) fields.push_back({field.c_str(), nullptr});
    fields.push_back({nullptr, nullptr});
    PyStructSequence_Desc description = {name.c_str(), nullptr, fields.data(),
                                         static_cast<int>(op->result_names.size())};
    type = PyStructSequence_NewType(&description);
    if (!type) throw PythonError();
    type->tp_repr = print_named_result;
  }
  return type;
}

PyObject* results(const Op* op, Ref<Tensor>* values, int n) {
  auto* record = static_cast<const OpRecord*>(op);
  bool named = static_cast<int>(record->result_names.size()) == n;
  Ref<> tuple = Ref<>::check(named ? PyStructSequence_New(named_result(record)) : PyTuple_New(n));
  for (int i = 0; i < n; ++i)
    named ? PyStructSequence_SetItem(tuple.get(), i, values[i].release_object())
          : (void)PyTuple_SET_ITEM(tuple.get(), i, values[i].release_object());
  return tuple.release();
}

// ---- array kernels

// Calls fn(xp, *args), or the backend's compute(fn, *args), with backend arrays for tensors and wraps what it returns.
// Half precision computes in float32, as it does natively: it is more exact, and an array library need not know
// bfloat16.
PyObject* run_array_kernel(Call& c, const Op* op) {
  PyObject* backend = backend_of(c.device.type);
  Ref<> callee = Ref<>::check(PyObject_GetAttrString(backend, "compute"));
  Ref<> first = callee.get() == Py_None ? Ref<>::check(PyObject_GetAttrString(backend, "xp"))
                                        : Ref<>(Py_NewRef(op->array_kernel));
  if (callee.get() == Py_None) callee = Ref<>(Py_NewRef(op->array_kernel));
  Ref<> args = Ref<>::check(PyTuple_New(op->nparams + 1));
  PyTuple_SET_ITEM(args.get(), 0, first.release());
  DType half = DType::Float32;  // of the arguments; float32: none, or the result's dtype does not follow from them
  bool keep_dtype = false;
  auto array_arg = [&](Tensor* t) -> PyObject* {
    Ref<Tensor> wide = Ref<Tensor>::borrow(t);
    if (t->dtype == DType::Float16 || t->dtype == DType::BFloat16) {
      half = t->dtype;
      wide = to_dtype(t, DType::Float32);
    } else if (is_inexact(t->dtype)) {
      keep_dtype = true;
    }
    Ref<> array(array_of(wide.get()));
    if (t->device == c.device) return array.release();
    return backend_call(c.device.type, "from_host", "(Oi)", array.get(), static_cast<int>(c.device.index)).release();
  };
  auto wrap = [&](PyObject* array) -> PyObject* {
    Ref<Tensor> t = from_backend_array(array, c.device);
    return (t->dtype == DType::Float32 && !keep_dtype ? to_dtype(t.get(), half) : std::move(t)).release_object();
  };
  for (int i = 0; i < op->nparams; ++i) {
    const Arg& a = c.args[i];
    PyObject* v;
    if (a.kind == Kind::Tensor) {
      v = array_arg(a.tensor);
    } else if (a.kind == Kind::Tensors) {
      v = PyList_New(a.count);
      for (int k = 0; v && k < a.count; ++k) PyList_SET_ITEM(v, k, Ref<>::check(array_arg(a.tensors[k])).release());
    } else if (a.kind == Kind::Object && PyTuple_Check(a.object)) {  // index tensors among Nones
      v = PyTuple_New(PyTuple_GET_SIZE(a.object));
      for (Py_ssize_t k = 0; v && k < PyTuple_GET_SIZE(a.object); ++k) {
        PyObject* item = PyTuple_GET_ITEM(a.object, k);
        PyTuple_SET_ITEM(v, k, is_tensor(item) ? Ref<>::check(array_arg(as_tensor(item))).release() : Py_NewRef(item));
      }
    } else if (a.kind == Kind::DType) {
      v = numpy_descr(a.dtype);
      keep_dtype = true;
    } else {
      v = arg_to_object(a);
    }
    if (!v) return nullptr;
    PyTuple_SET_ITEM(args.get(), i + 1, v);
  }
  Ref<> result(PyObject_Call(callee.get(), args.get(), nullptr));
  if (!result && PyErr_ExceptionMatches(PyExc_MemoryError)) {
    PyErr_Clear();
    throw std::bad_alloc();  // the error that the allocator's own failures become
  }
  if (!result) {
    note_origin(c.device.type);
    return nullptr;
  }
  if (op->noutputs == 0) return result.release();
  if (op->noutputs == 1 && !PyTuple_Check(result.get())) return wrap(result.get());
  Ref<> items = Ref<>::check(PySequence_Tuple(result.get()));
  std::vector<Ref<Tensor>> tensors;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
    tensors.emplace_back(as_tensor(wrap(PyTuple_GET_ITEM(items.get(), i))));
  return results(op, tensors.data(), static_cast<int>(tensors.size()));
}

}  // namespace rl
