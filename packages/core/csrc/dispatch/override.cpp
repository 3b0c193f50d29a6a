// The layers for __torch_function__: overriding argument types (order 0) and the stack of Python modes (order 100).
#include <algorithm>

#include "dispatch.h"

namespace rl {

namespace {

thread_local std::vector<PyObject*> t_modes;  // owned; the last one is asked first

// The call's arguments as Python passes them; trailing defaults are left out.
void rebuild(const Call& c, Ref<>& args, Ref<>& kwargs) {
  auto* op = static_cast<const OpRecord*>(c.op);
  auto is_default = [&](int i) {
    const Arg &a = c.args[i], &d = op->params[i].default_value;
    if (!op->params[i].has_default && !op->params[i].optional) return false;
    if (a.kind != d.kind) return false;
    switch (a.kind) {
      case Kind::None: return true;
      case Kind::Int:
      case Kind::Bool: return a.i == d.i;
      case Kind::Float: return a.d == d.d;
      case Kind::Ints: return a.ints == d.ints;
      case Kind::Object: return a.object == d.object;
      default: return false;
    }
  };
  int n = op->npositional;
  while (n && is_default(n - 1)) --n;
  args = Ref<>::check(PyTuple_New(n));
  for (int i = 0; i < n; ++i) PyTuple_SET_ITEM(args.get(), i, Ref<>::check(arg_to_object(c.args[i])).release());
  kwargs = Ref<>::check(PyDict_New());
  for (int i = op->npositional; i < op->nparams; ++i)
    if (!is_default(i) && PyDict_SetItem(kwargs.get(), op->names[i], Ref<>::check(arg_to_object(c.args[i])).get()) < 0)
      throw PythonError();
  if (c.out && PyDict_SetItemString(kwargs.get(), "out", c.out) < 0) throw PythonError();
}

void collect(PyObject* o, std::vector<PyObject*>& found) {
  if (!o || Py_TYPE(o) == g_tensor_type || (is_tensor(o) && !(as_tensor(o)->flags & kOverride))) return;
  for (PyObject* other : found)
    if (Py_TYPE(other) == Py_TYPE(o)) return;
  // Subclasses come before the classes that they extend.
  auto at = std::find_if(found.begin(), found.end(),
                         [&](PyObject* other) { return PyType_IsSubtype(Py_TYPE(o), Py_TYPE(other)); });
  found.insert(at, o);
}

std::vector<PyObject*> overriding(const Call& c) {
  std::vector<PyObject*> found;
  for (int i = 0; i < c.op->nparams; ++i) {
    const Arg& a = c.args[i];
    if (a.kind == Kind::Tensor) collect(object(a.tensor), found);
    if (a.kind == Kind::Tensors)
      for (int k = 0; k < a.count; ++k)
        if (a.tensors[k]) collect(object(a.tensors[k]), found);
    if (a.kind == Kind::Object && c.op->params[i].type == ParamType::Tensor) collect(a.object, found);
  }
  if (c.out && is_tensor(c.out)) collect(c.out, found);
  return found;
}

Ref<> types_of(const std::vector<PyObject*>& objects) {
  Ref<> types = Ref<>::check(PyTuple_New(static_cast<Py_ssize_t>(objects.size())));
  for (size_t i = 0; i < objects.size(); ++i)
    PyTuple_SET_ITEM(types.get(), i, Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(objects[i]))));
  return types;
}

// How deep this thread is in questions to arguments; a library that answers each by the same call never ends.
thread_local int t_depth = 0;
constexpr int kDeepest = 64;
struct Deeper {
  Deeper() { ++t_depth; }
  ~Deeper() { --t_depth; }
};

PyObject* override_layer(Call& c, void*) {
  std::vector<PyObject*> objects = overriding(c);
  if (objects.empty() || !c.callable) return dispatch(c);
  Ref<> args, kwargs, types = types_of(objects);
  rebuild(c, args, kwargs);
  Deeper deeper;
  for (PyObject* o : objects) {
    if (t_depth > kDeepest) break;
    Ref<> method = Ref<>::check(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)), "__torch_function__"));
    Ref<> r = Ref<>::check(
        PyObject_CallFunctionObjArgs(method.get(), c.callable, types.get(), args.get(), kwargs.get(), nullptr));
    if (r.get() != Py_NotImplemented) return r.release();
  }
  Ref<> text(PyObject_Str(types.get()));
  fail(PyExc_TypeError, "no implementation found for '%s' on types that implement __torch_function__: %s", c.op->name,
       text ? PyUnicode_AsUTF8(text.get()) : "?");
}

// Takes the last mode off the stack for its scope, so that the calls it makes reach the next one.
struct ModeOff {
  Ref<> mode;
  ModeOff() : mode(t_modes.back()) {
    t_modes.pop_back();
    if (t_modes.empty()) t_word &= ~kModes;
  }
  ~ModeOff() {
    t_modes.push_back(mode.release());
    t_word |= kModes;
  }
};

PyObject* mode_layer(Call& c, void*) {
  if (t_modes.empty() || !c.callable) return dispatch(c);
  ModeOff off;
  Ref<> args, kwargs, types = types_of(overriding(c));
  rebuild(c, args, kwargs);
  Ref<> method = Ref<>::check(PyObject_GetAttrString(off.mode.get(), "__torch_function__"));
  Ref<> r = Ref<>::check(
      PyObject_CallFunctionObjArgs(method.get(), c.callable, types.get(), args.get(), kwargs.get(), nullptr));
  return r.get() == Py_NotImplemented ? dispatch(c) : r.release();
}

}  // namespace

PyObject* call_override_slowly(PyObject* self, const char* name, PyObject* const* args, Py_ssize_t nargs) {
  bool overridden = as_tensor(self)->flags & kOverride && !(t_word & kNoOverride);
  if (!overridden && t_modes.empty()) return nullptr;
  Ref<> callable = Ref<>::check(PyObject_GetAttrString(reinterpret_cast<PyObject*>(g_tensor_type), name));
  Ref<> types = types_of(overridden ? std::vector<PyObject*>{self} : std::vector<PyObject*>{});
  Ref<> tuple = Ref<>::check(PyTuple_New(nargs + 1)), kwargs = Ref<>::check(PyDict_New());
  PyTuple_SET_ITEM(tuple.get(), 0, Py_NewRef(self));
  for (Py_ssize_t i = 0; i < nargs; ++i) PyTuple_SET_ITEM(tuple.get(), i + 1, Py_NewRef(args[i]));
  auto ask = [&](PyObject* who) {
    Ref<> method = Ref<>::check(PyObject_GetAttrString(who, "__torch_function__"));
    return Ref<>::check(
        PyObject_CallFunctionObjArgs(method.get(), callable.get(), types.get(), tuple.get(), kwargs.get(), nullptr));
  };
  if (overridden) {
    Ref<> r = ask(reinterpret_cast<PyObject*>(Py_TYPE(self)));
    if (r.get() != Py_NotImplemented) return r.release();
    fail(PyExc_TypeError, "no implementation found for 'Tensor.%s' on types that implement __torch_function__: [%s]",
         name, Py_TYPE(self)->tp_name);
  }
  ModeOff off;
  Ref<> r = ask(off.mode.get());
  return r.get() == Py_NotImplemented ? nullptr : r.release();
}

void push_mode(PyObject* mode) {
  t_modes.push_back(Py_NewRef(mode));
  t_word |= kModes;
}

void pop_mode() {
  if (t_modes.empty()) fail(PyExc_RuntimeError, "pop_mode: no mode is active");
  Py_DECREF(t_modes.back());
  t_modes.pop_back();
  if (t_modes.empty()) t_word &= ~kModes;
}

void init_override_layers() {
  register_layer({"torch_function", 0, kOverride, kNoOverride, override_layer, nullptr, true});
  register_layer({"modes", 100, kModes, 0, mode_layer, nullptr, true});
}

}  // namespace rl
