// Tensors that are not strided: their payload, and the layers that give calls with one of them to what a record
// registered for its layout (docs/guide/adding-a-layout.md).
#include <algorithm>
#include <cstring>

#include "dispatch.h"

namespace rl {

namespace {

// What a tensor without memory shows to code that reads memory all the same: one element, zero and read-only, which
// strides of zero repeat.
alignas(64) char g_nothing[64];

Storage* root(const Tensor* t) {
  Storage* s = t->storage;
  while (s->alias) s = s->alias;
  return s;
}

const Tensor* first_with_layout(const Call& c) {
  auto has = [](const Tensor* t) { return t && t->flags & kLayout; };
  for (int i = 0; i < c.op->nparams; ++i) {
    const Arg& a = c.args[i];
    if (a.is_tensor() && has(a.tensor)) return a.tensor;
    if (a.kind == Kind::Tensors)
      for (int k = 0; k < a.count; ++k)
        if (has(a.tensors[k])) return a.tensors[k];
  }
  return nullptr;
}

const LayoutKernel* kernel_for(const Call& c, PyObject* layout) {
  for (const LayoutKernel& k : static_cast<const OpRecord*>(c.op)->layouts)
    if (k.layout == layout) return &k;
  return nullptr;
}

// What is the same for every layout.
bool shares_memory(const Op* op) { return !std::strcmp(op->name, "detach") || !std::strcmp(op->name, "alias"); }

[[noreturn]] void refuse(const Call& c, PyObject* layout) {
  Ref<> text = Ref<>::check(PyObject_Repr(layout));
  std::string name = PyUnicode_AsUTF8(text.get());
  name = name.substr(name.rfind('.') + 1);
  std::string backend = name == "sparse_coo" ? "SparseCPU" : name == "sparse_csr" ? "SparseCsrCPU" : name;
  fail(PyExc_NotImplementedError,
       "Could not run 'aten::%s' with arguments from the '%s' backend: the operator has no implementation for the "
       "layout %s. Convert the tensor with to_dense() first.",
       c.op->name, backend.c_str(), name.c_str());
}

Ref<Tensor> to_dense(Tensor* t) {
  static const OpRecord* op = find_op("_to_dense");
  Arg args[2] = {arg(t), arg(true)};
  return call_tensor(op, args, 2);
}

// The in-place and out= forms: `target` becomes `value`.
void write_back(const Call& c, Tensor* target, Tensor* value, bool is_out) {
  if (!(target->flags & kLayout)) {
    Ref<Tensor> dense = value->flags & kLayout ? to_dense(value) : Ref<Tensor>::borrow(value);
    write_result(c.op, target, dense.get(), is_out);
    ++target->storage->version;
    return;
  }
  Ref<> from(layout_of(value)), to(layout_of(target));
  if (from.get() != to.get()) {
    Ref<> a = Ref<>::check(PyObject_Repr(from.get())), b = Ref<>::check(PyObject_Repr(to.get()));
    fail(PyExc_RuntimeError, "%s: the result has layout %s and cannot be written to a tensor of layout %s.", c.op->name,
         PyUnicode_AsUTF8(a.get()), PyUnicode_AsUTF8(b.get()));
  }
  if (!can_cast(value->dtype, target->dtype))
    fail(PyExc_RuntimeError, "result type %s can't be cast to the desired output type %s", legacy_name(value->dtype),
         legacy_name(target->dtype));
  bool same = target->ndim == value->ndim && std::equal(value->sizes, value->sizes + value->ndim, target->sizes);
  if (!same && !is_out)
    fail(PyExc_RuntimeError, "output with shape %s doesn't match the broadcast shape %s", shape_text(target).c_str(),
         shape_text(value).c_str());
  Ref<Tensor> cast = Ref<Tensor>::borrow(value);
  if (value->dtype != target->dtype) {
    static const OpRecord* op = find_op("_cast");
    Arg args[2] = {arg(value)};
    args[1].kind = Kind::DType;
    args[1].dtype = target->dtype;
    cast = call_tensor(op, args, 2);
  }
  if (!same) set_geometry(target, value->ndim, value->sizes, value->strides, 0);
  set_payload(target, payload_of(cast.get()));
  ++target->storage->version;
}

// A payload with a method `call` takes every call itself; null without an error: it leaves this one to the others.
PyObject* ask_payload(Call& c, const Tensor* t, PyObject* method) {
  bool writes = c.inplace || c.op->inplace_only;
  Ref<> bound = Ref<>::check(PyObject_GetAttr(payload_of(t), method));
  Ref<> first = Ref<>::check(PyTuple_Pack(2, c.op->record, writes ? Py_True : Py_False));
  Ref<> result = Ref<>::check(run_python(c, bound.get(), first.get()));
  return result.get() == Py_NotImplemented ? nullptr : result.release();
}

// Above autograd (self is not null) only composites run, which it records part by part; below it everything.
PyObject* layout_layer(Call& c, void* composites) {
  const Tensor* t = first_with_layout(c);
  // Without one, out= has a layout, or the tensor is hidden in an object, where the operator deals with it.
  bool goes_on = !t;
  if (!t && !(c.out && is_tensor(c.out))) return dispatch(c);
  Ref<> layout(t ? layout_of(t) : nullptr);
  const LayoutKernel* kernel = t ? kernel_for(c, layout.get()) : nullptr;
  static PyObject* method = PyUnicode_InternFromString("call");
  if (composites && t && !kernel && !c.out &&
      PyObject_HasAttr(reinterpret_cast<PyObject*>(Py_TYPE(payload_of(t))), method))
    if (PyObject* result = ask_payload(c, t, method)) return result;
  if (composites && (!kernel || !kernel->composite || c.inplace || c.out)) return dispatch(c);
  if (!kernel && !goes_on && shares_memory(c.op)) return detach(c.args[0].tensor).release_object();
  goes_on |= !kernel && c.op->family == Family::Composite;
  if (!kernel && !goes_on) refuse(c, layout.get());
  if (c.op->inplace_only && kernel) {
    Ref<> r = Ref<>::check(run_python(c, kernel->fn));
    ++c.args[0].tensor->storage->version;
    return r.release();
  }
  if (c.inplace && kernel && kernel->inplace) {
    Tensor* self = c.args[0].tensor;
    if (!(self->flags & kLayout)) check_writable(c.op, self);
    Ref<> done = Ref<>::check(run_python(c, kernel->inplace));
    if (done.get() != Py_NotImplemented) {
      ++self->storage->version;
      return Py_NewRef(object(self));
    }
  }
  Tensor* target = c.inplace ? c.args[0].tensor : c.out && is_tensor(c.out) ? as_tensor(c.out) : nullptr;
  if (c.out && !target) fail(PyExc_RuntimeError, "%s: out= of several tensors takes strided tensors only", c.op->name);
  PyObject* out = std::exchange(c.out, nullptr);
  bool inplace = std::exchange(c.inplace, false);
  Ref<> result = Ref<>::check(kernel ? run_python(c, kernel->fn) : dispatch(c));
  c.out = out;
  c.inplace = inplace;
  if (!target) return result.release();
  if (!is_tensor(result.get()))
    fail(PyExc_RuntimeError, "%s: the operator does not return one tensor and has no in-place or out= form",
         c.op->name);
  write_back(c, target, as_tensor(result.get()), !inplace);
  return Py_NewRef(object(target));
}

// _with_payload(payload, shape, dtype, device="cpu") -> Tensor
PyObject* with_payload(PyObject*, PyObject* args) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    PyObject *payload, *shape, *dtype, *device = nullptr;
    if (!PyArg_ParseTuple(args, "OOO|O:with_payload", &payload, &shape, &dtype, &device)) return nullptr;
    Ref<> sizes = Ref<>::check(PySequence_Tuple(shape));
    Dims dims(static_cast<int>(std::min<Py_ssize_t>(PyTuple_GET_SIZE(sizes.get()), kMaxRank + 1)));
    for (int d = 0; d < dims.n; ++d) {
      dims[d] = PyLong_AsLongLong(PyTuple_GET_ITEM(sizes.get(), d));
      if (dims[d] == -1 && PyErr_Occurred()) return nullptr;
    }
    DType type;
    Device place{kCPU, -1};
    if (!dtype_from_object(dtype, &type)) fail(PyExc_TypeError, "with_payload: dtype must be a dtype");
    if (device && !device_from_object(device, &place)) fail(PyExc_TypeError, "with_payload: device must be a device");
    return make_with_payload(payload, dims.n, dims.v, type, resolve(place)).release_object();
  });
}

// set_payload(tensor, payload[, shape]): with a shape, tensors that share the old payload keep it
PyObject* py_set_payload(PyObject*, PyObject* args) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    PyObject *self, *payload, *shape = nullptr;
    if (!PyArg_ParseTuple(args, "O!O|O:set_payload", g_tensor_type, &self, &payload, &shape)) return nullptr;
    Tensor* t = as_tensor(self);
    if (!(t->flags & kLayout)) fail(PyExc_TypeError, "set_payload: the tensor is strided and has no payload");
    if (!shape) {
      set_payload(t, payload);
      Py_RETURN_NONE;
    }
    Ref<> make_args = Ref<>::check(PyTuple_Pack(3, payload, shape, dtype_object(t->dtype)));
    Ref<> fresh = Ref<>::check(with_payload(nullptr, make_args.get()));
    Tensor* f = as_tensor(fresh.get());
    f->storage->version = t->storage->version;
    std::swap(t->storage, f->storage);
    set_geometry(t, f->ndim, f->sizes, f->strides, 0);
    Py_RETURN_NONE;
  });
}

// set_layout_kernel(op, layout, callable, composite, inplace)
PyObject* set_layout_kernel(PyObject*, PyObject* args) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    const char* name;
    PyObject *layout, *fn, *inplace;
    int composite;
    if (!PyArg_ParseTuple(args, "sOOpO:set_layout_kernel", &name, &layout, &fn, &composite, &inplace)) return nullptr;
    OpRecord* op = find_op(name);
    if (!op) fail(PyExc_KeyError, "%s: no such operator", name);
    if (!PyCallable_Check(fn))
      fail(PyExc_TypeError, "set_layout_kernel: a kernel of %s must be callable, got %s", name, Py_TYPE(fn)->tp_name);
    auto at = std::find_if(op->layouts.begin(), op->layouts.end(),
                           [layout](const LayoutKernel& k) { return k.layout == layout; });
    if (at == op->layouts.end()) at = op->layouts.insert(at, {Py_NewRef(layout), nullptr, false, nullptr});
    Py_INCREF(fn);
    Py_XSETREF(at->fn, fn);
    Py_XSETREF(at->inplace, inplace == Py_None ? nullptr : Py_NewRef(inplace));
    at->composite = composite;
    Py_RETURN_NONE;
  });
}

PyObject* get_layout(PyObject* self, void*) {
  return guard<PyObject*>(nullptr, [&] { return layout_of(as_tensor(self)); });
}
PyObject* get_payload(PyObject* self, void*) {
  return Py_NewRef(as_tensor(self)->flags & kLayout ? payload_of(as_tensor(self)) : Py_None);
}
PyGetSetDef attributes[] = {
    {"layout", get_layout, nullptr, "How the elements are kept: strided memory, or a sparse layout.", nullptr},
    {"_payload", get_payload, nullptr, "What a tensor that is not strided keeps in place of memory, else None.",
     nullptr},
};
PyMethodDef functions[] = {{"with_payload", with_payload, METH_VARARGS, nullptr},
                           {"set_payload", py_set_payload, METH_VARARGS, nullptr},
                           {"set_layout_kernel", set_layout_kernel, METH_VARARGS, nullptr},
                           {}};
PyObject* g_strided = nullptr;

}  // namespace

Ref<Tensor> make_with_payload(PyObject* payload, int ndim, const int64_t* sizes, DType dtype, Device device) {
  checked_numel(ndim, sizes);
  Ref<Tensor> t(new_tensor(dtype, device, ndim));
  std::copy_n(sizes, ndim, t->sizes);
  std::fill_n(t->strides, ndim, 0);
  t->storage = foreign_storage(g_nothing, 0, device, payload);
  t->storage->read_only = true;
  t->flags |= kLayout;
  finish(t.get());
  return t;
}

PyObject* payload_of(const Tensor* t) { return root(t)->owner; }

void set_payload(const Tensor* t, PyObject* payload) {
  Py_INCREF(payload);
  Py_XSETREF(root(t)->owner, payload);
}

PyObject* strided_layout() { return g_strided; }

PyObject* layout_of(const Tensor* t) {
  if (!(t->flags & kLayout)) return Py_NewRef(g_strided);
  return Ref<>::check(PyObject_GetAttrString(payload_of(t), "layout")).release();
}

void require_strided(const Tensor* t, const char* what) {
  if (!(t->flags & kLayout)) return;
  Ref<> layout(layout_of(t)), text = Ref<>::check(PyObject_Repr(layout.get()));
  std::string name = PyUnicode_AsUTF8(text.get());
  bool coo = name == "torch.sparse_coo", csr = name == "torch.sparse_csr";
  fail(PyExc_TypeError, "can't convert %s layout tensor to %s. Use Tensor.to_dense() first.",
       coo   ? "Sparse"
       : csr ? "SparseCsr"
             : name.c_str(),
       what);
}

void init_layout(PyObject* module) {
  g_strided = Ref<>::check(PyObject_GetAttrString(module, "strided")).release();
  for (PyGetSetDef& def : attributes)
    add_tensor_attribute(def.name, Ref<>::check(PyDescr_NewGetSet(g_tensor_type, &def)).get());
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError();
}

void init_layout_layers() {
  static int above = 1;
  register_layer({"layout composites", 150, kLayout, 0, layout_layer, &above, true});
  register_layer({"layouts", 300, kLayout, 0, layout_layer, nullptr, true});
}

}  // namespace rl
