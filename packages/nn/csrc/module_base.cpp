// The base type of nn.Module: attribute look-up and calls, which every line of a model goes through.
//
// Parameters, buffers and submodules live in three dicts of the instance, as in PyTorch. A class that finds them
// through a Python __getattr__ pays for a raised AttributeError per look-up; here a miss costs three dict look-ups.
#define PY_SSIZE_T_CLEAN
#include "module_base.h"

#include <vector>

namespace rl {
namespace {

// The instance dict is the only state, so that copy, pickle and __dict__ see all of it.
struct ModuleObject {
  PyObject_HEAD PyObject* dict;
  // A field beside the dict makes this layout win over that of classes that are mixed in before Module.
  PyObject* unused;
};

PyTypeObject* module_type;                   // ModuleBase
PyTypeObject *parameter_type, *buffer_type;  // given by set_member_types
PyObject* plain_class;                       // nn.Module, whose methods write_states stands for
bool global_hooks = false;

struct Names {
  PyObject *forward, *hooked, *call_impl, *explain, *set_member, *del_member, *getattr, *getattribute;
  PyObject* members[3];
  PyObject *version, *version_key, *dot, *transient, *detach, *state_hooks, *state_pre_hooks;
  PyObject* state_methods[3];
} names;

bool intern_names() {
  auto intern = [](PyObject*& slot, const char* text) { return (slot = PyUnicode_InternFromString(text)) != nullptr; };
  return intern(names.forward, "forward") && intern(names.hooked, "_hooked") && intern(names.call_impl, "_call_impl") &&
         intern(names.explain, "_explain_error") && intern(names.set_member, "_set_member") &&
         intern(names.del_member, "_del_member") && intern(names.getattr, "__getattr__") &&
         intern(names.getattribute, "__getattribute__") && intern(names.members[0], "_parameters") &&
         intern(names.members[1], "_modules") && intern(names.members[2], "_buffers") &&
         intern(names.version, "_version") && intern(names.version_key, "version") && intern(names.dot, ".") &&
         intern(names.transient, "_non_persistent_buffers_set") && intern(names.detach, "detach") &&
         intern(names.state_hooks, "_state_dict_hooks") && intern(names.state_pre_hooks, "_state_dict_pre_hooks") &&
         intern(names.state_methods[0], "state_dict") && intern(names.state_methods[1], "_save_to_state_dict") &&
         intern(names.state_methods[2], "get_extra_state");
}

PyObject* dict_of(PyObject* self) { return reinterpret_cast<ModuleObject*>(self)->dict; }

// Borrowed reference to the parameter, submodule or buffer of that name; nullptr without an exception if there is none.
PyObject* find_member(PyObject* self, PyObject* name) {
  PyObject* dict = dict_of(self);
  if (!dict) return nullptr;
  for (PyObject* key : names.members) {
    PyObject* members = PyDict_GetItemWithError(dict, key);
    if (members && PyDict_Check(members) && PyDict_GET_SIZE(members) > 0) {
      if (PyObject* value = PyDict_GetItemWithError(members, name)) return value;
    }
    if (PyErr_Occurred()) return nullptr;
  }
  return nullptr;
}

PyObject* module_getattr(PyObject* self, PyObject* name) {
  if (PyObject* value = find_member(self, name)) return Py_NewRef(value);
  if (!PyErr_Occurred())
    PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute '%U'", Py_TYPE(self)->tp_name, name);
  return nullptr;
}

PyObject* module_getattro(PyObject* self, PyObject* name) {
  PyObject* value = _PyObject_GenericGetAttrWithDict(self, name, nullptr, /*suppress=*/1);
  if (value || PyErr_Occurred()) return value;
  return module_getattr(self, name);
}

int module_setattro(PyObject* self, PyObject* name, PyObject* value) {
  bool is_member = value && (PyObject_TypeCheck(value, module_type) || PyObject_TypeCheck(value, parameter_type) ||
                             PyObject_TypeCheck(value, buffer_type));
  if (!is_member) {
    is_member = find_member(self, name) != nullptr;
    if (PyErr_Occurred()) return -1;
  }
  if (!is_member) return PyObject_GenericSetAttr(self, name, value);
  PyObject* done = value ? PyObject_CallMethodObjArgs(self, names.set_member, name, value, nullptr)
                         : PyObject_CallMethodObjArgs(self, names.del_member, name, nullptr);
  Py_XDECREF(done);
  return done ? 0 : -1;
}

// self.forward(*args) through the function of the class, without making the bound method.
PyObject* call_forward(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* dict = dict_of(self);
  PyObject* function = _PyType_Lookup(Py_TYPE(self), names.forward);
  PyObject* own = dict ? PyDict_GetItemWithError(dict, names.forward) : nullptr;
  if (!own && PyErr_Occurred()) return nullptr;
  if (own || kwargs || !function || !PyFunction_Check(function)) {
    PyObject* method = PyObject_GetAttr(self, names.forward);
    if (!method) return nullptr;
    PyObject* result = PyObject_Call(method, args, kwargs);
    Py_DECREF(method);
    return result;
  }
  constexpr Py_ssize_t kInline = 8;
  const Py_ssize_t n = PyTuple_GET_SIZE(args);
  PyObject* small[kInline + 1];
  std::vector<PyObject*> large;
  PyObject** stack = small;
  if (n > kInline) {
    large.resize(n + 1);
    stack = large.data();
  }
  stack[0] = self;
  for (Py_ssize_t i = 0; i < n; ++i) stack[i + 1] = PyTuple_GET_ITEM(args, i);
  Py_INCREF(function);  // the body of forward may replace forward in its class
  PyObject* result = PyObject_Vectorcall(function, stack, n + 1, nullptr);
  Py_DECREF(function);
  return result;
}

// Lets the module say in the error of its forward who it is; what goes wrong with that must not hide the error.
void explain_error(PyObject* self, PyObject* args) {
#if PY_VERSION_HEX >= 0x030C0000
  PyObject* error = PyErr_GetRaisedException();
#else
  PyObject *type, *error, *traceback;
  PyErr_Fetch(&type, &error, &traceback);
  PyErr_NormalizeException(&type, &error, &traceback);
#endif
  PyObject* done = PyObject_CallMethodObjArgs(self, names.explain, error, args, nullptr);
  if (!done) PyErr_WriteUnraisable(self);
  Py_XDECREF(done);
#if PY_VERSION_HEX >= 0x030C0000
  PyErr_SetRaisedException(error);
#else
  PyErr_Restore(type, error, traceback);
#endif
}

PyObject* module_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* dict = dict_of(self);
  // Module leaves the mark `_hooked` when its hooks are first touched, so most modules have none.
  const bool hooked = global_hooks || !dict || PyDict_GetItemWithError(dict, names.hooked);
  if (!hooked) {
    if (PyErr_Occurred()) return nullptr;
    PyObject* result = call_forward(self, args, kwargs);
    if (!result) explain_error(self, args);
    return result;
  }
  PyObject* slow = PyObject_GetAttr(self, names.call_impl);
  if (!slow) return nullptr;
  PyObject* result = PyObject_Call(slow, args, kwargs);
  Py_DECREF(slow);
  return result;
}

// A class with __getattr__ in its MRO gets CPython's slow attribute slot. Where that __getattr__ is ours, which is
// there for super().__getattr__(name) alone, the slot goes back to the quick one.
PyObject* module_init_subclass(PyObject* cls, PyObject* args, PyObject* kwargs) {
  PyObject* super = PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(&PySuper_Type),
                                                 reinterpret_cast<PyObject*>(module_type), cls, nullptr);
  PyObject* next = super ? PyObject_GetAttrString(super, "__init_subclass__") : nullptr;
  PyObject* result = next ? PyObject_Call(next, args, kwargs) : nullptr;
  Py_XDECREF(next);
  Py_XDECREF(super);
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  if (result && _PyType_Lookup(type, names.getattr) == _PyType_Lookup(module_type, names.getattr) &&
      _PyType_Lookup(type, names.getattribute) == _PyType_Lookup(module_type, names.getattribute))
    type->tp_getattro = module_getattro;
  return result;
}

// A module whose part of a state dict is its parameters and buffers and nothing else.
bool has_plain_state(PyObject* self) {
  PyObject* dict = dict_of(self);
  if (!dict || PyDict_GetItemWithError(dict, names.state_hooks) || PyDict_GetItemWithError(dict, names.state_pre_hooks))
    return false;
  for (PyObject* method : names.state_methods)
    if (_PyType_Lookup(Py_TYPE(self), method) != _PyType_Lookup(reinterpret_cast<PyTypeObject*>(plain_class), method))
      return false;
  return true;
}

bool write_members(PyObject* members, PyObject* without, PyObject* destination, PyObject* prefix, bool keep_vars) {
  PyObject *name, *value;
  for (Py_ssize_t at = 0; PyDict_Next(members, &at, &name, &value);) {
    if (value == Py_None) continue;
    const int skip = without ? PySequence_Contains(without, name) : 0;
    if (skip < 0) return false;
    if (skip) continue;
    PyObject* key = PyUnicode_Concat(prefix, name);
    PyObject* kept = keep_vars ? Py_NewRef(value) : PyObject_CallMethodNoArgs(value, names.detach);
    const bool done = key && kept && PyObject_SetItem(destination, key, kept) == 0;
    Py_XDECREF(key);
    Py_XDECREF(kept);
    if (!done) return false;
  }
  return true;
}

bool write_version(PyObject* self, PyObject* metadata, PyObject* path) {
  PyObject* version = PyObject_GetAttr(self, names.version);
  PyObject* entry = version ? PyDict_New() : nullptr;
  const bool done =
      entry && PyDict_SetItem(entry, names.version_key, version) == 0 && PyObject_SetItem(metadata, path, entry) == 0;
  Py_XDECREF(version);
  Py_XDECREF(entry);
  return done;
}

bool write_children(PyObject* self, PyObject* destination, PyObject* metadata, PyObject* prefix, bool keep_vars);

// The entries of a plain module and of those below. `path` is the prefix without its dot.
bool write_plain(PyObject* self, PyObject* destination, PyObject* metadata, PyObject* path, PyObject* prefix,
                 bool keep_vars) {
  PyObject* dict = dict_of(self);
  PyObject *parameters = PyDict_GetItemWithError(dict, names.members[0]),
           *buffers = PyDict_GetItemWithError(dict, names.members[2]),
           *transient = PyDict_GetItemWithError(dict, names.transient);
  return (metadata == Py_None || write_version(self, metadata, path)) &&
         (!parameters || write_members(parameters, nullptr, destination, prefix, keep_vars)) &&
         (!buffers || write_members(buffers, transient, destination, prefix, keep_vars)) &&
         write_children(self, destination, metadata, prefix, keep_vars);
}

// The entries of the modules below `self` in a state dict. What is not plain is asked through its method state_dict.
bool write_children(PyObject* self, PyObject* destination, PyObject* metadata, PyObject* prefix, bool keep_vars) {
  PyObject* children = PyDict_GetItemWithError(dict_of(self), names.members[1]);
  if (!children) return !PyErr_Occurred();
  PyObject *name, *child;
  for (Py_ssize_t at = 0; PyDict_Next(children, &at, &name, &child);) {
    if (!PyObject_TypeCheck(child, module_type)) continue;
    PyObject* bare = PyUnicode_Concat(prefix, name);
    PyObject* path = bare ? PyUnicode_Concat(bare, names.dot) : nullptr;
    if (!path) {
      Py_XDECREF(bare);
      return false;
    }
    PyObject* owner = Py_NewRef(child);  // detach may run Python that changes the tree
    bool done;
    if (has_plain_state(owner)) {
      done = write_plain(owner, destination, metadata, bare, path, keep_vars);
    } else {
      PyObject* method = PyErr_Occurred() ? nullptr : PyObject_GetAttr(owner, names.state_methods[0]);
      PyObject* args = PyTuple_New(0);
      PyObject* kwargs = Py_BuildValue("{s:O,s:O,s:O}", "destination", destination, "prefix", path, "keep_vars",
                                       keep_vars ? Py_True : Py_False);
      PyObject* result = method && args && kwargs ? PyObject_Call(method, args, kwargs) : nullptr;
      done = result != nullptr;
      Py_XDECREF(result);
      Py_XDECREF(kwargs);
      Py_XDECREF(args);
      Py_XDECREF(method);
    }
    Py_DECREF(owner);
    Py_DECREF(bare);
    Py_DECREF(path);
    if (!done) return false;
  }
  return true;
}

PyObject* is_plain_state(PyObject*, PyObject* self) {
  const bool plain = PyObject_TypeCheck(self, module_type) && has_plain_state(self);
  return PyErr_Occurred() ? nullptr : PyBool_FromLong(plain);
}

// (module, destination, metadata, prefix, keep_vars, plain)
PyObject* write_states(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 6 || !PyObject_TypeCheck(args[0], module_type) || !PyUnicode_Check(args[3])) {
    PyErr_SetString(PyExc_TypeError, "Module.state_dict: prefix is a string, and `self` a module.");
    return nullptr;
  }
  PyObject *self = args[0], *destination = args[1], *metadata = args[2], *prefix = args[3];
  const int keep_vars = PyObject_IsTrue(args[4]), plain = PyObject_IsTrue(args[5]);
  if (keep_vars < 0 || plain < 0 || Py_EnterRecursiveCall(" in Module.state_dict")) return nullptr;
  const Py_ssize_t length = PyUnicode_GET_LENGTH(prefix);
  PyObject* path = PyUnicode_Substring(prefix, 0, length > 0 ? length - 1 : 0);
  const bool done = path && (plain ? write_plain(self, destination, metadata, path, prefix, keep_vars != 0)
                                   : write_children(self, destination, metadata, prefix, keep_vars != 0));
  Py_XDECREF(path);
  Py_LeaveRecursiveCall();
  if (!done) return nullptr;
  Py_RETURN_NONE;
}

PyObject* set_global_hooks(PyObject*, PyObject* flag) {
  const int on = PyObject_IsTrue(flag);
  if (on < 0) return nullptr;
  global_hooks = on != 0;
  Py_RETURN_NONE;
}

PyObject* set_plain_class(PyObject*, PyObject* cls) {
  if (!PyType_Check(cls)) return PyErr_Format(PyExc_TypeError, "set_plain_class: expected a type, got %R", cls);
  Py_XSETREF(plain_class, Py_NewRef(cls));
  Py_RETURN_NONE;
}

PyObject* set_member_types(PyObject*, PyObject* args) {
  PyTypeObject *parameter, *buffer;
  if (!PyArg_ParseTuple(args, "O!O!", &PyType_Type, &parameter, &PyType_Type, &buffer)) return nullptr;
  Py_XSETREF(parameter_type, reinterpret_cast<PyTypeObject*>(Py_NewRef(parameter)));
  Py_XSETREF(buffer_type, reinterpret_cast<PyTypeObject*>(Py_NewRef(buffer)));
  Py_RETURN_NONE;
}

int module_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(reinterpret_cast<ModuleObject*>(self)->dict);
  return 0;
}

int module_clear(PyObject* self) {
  Py_CLEAR(reinterpret_cast<ModuleObject*>(self)->dict);
  return 0;
}

void module_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  module_clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef methods[] = {
    {"__getattr__", module_getattr, METH_O, "The parameter, submodule or buffer of this name."},
    {"__init_subclass__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(module_init_subclass)),
     METH_VARARGS | METH_KEYWORDS | METH_CLASS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef getset[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                        {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef members[] = {{"__dictoffset__", T_PYSSIZET, offsetof(ModuleObject, dict), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};

PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>("Attribute look-up and calls of rushlight.nn.Module.")},
                       {Py_tp_getattro, reinterpret_cast<void*>(module_getattro)},
                       {Py_tp_setattro, reinterpret_cast<void*>(module_setattro)},
                       {Py_tp_call, reinterpret_cast<void*>(module_call)},
                       {Py_tp_traverse, reinterpret_cast<void*>(module_traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(module_clear)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(module_dealloc)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, getset},
                       {Py_tp_members, members},
                       {0, nullptr}};

PyType_Spec spec = {"rushlight.nn._C.ModuleBase", sizeof(ModuleObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

PyMethodDef functions[] = {
    {"set_global_hooks", set_global_hooks, METH_O, "Whether every module call goes through Module._call_impl."},
    {"set_plain_class", set_plain_class, METH_O, "The class whose state dict methods write_states stands for."},
    {"is_plain_state", is_plain_state, METH_O, "Whether no hook or method takes part in a module's state dict."},
    {"write_states", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(write_states)), METH_FASTCALL,
     "Writes the entries of the modules below, and of the module itself if it is plain, to a state dict."},
    {"set_member_types", set_member_types, METH_VARARGS, "The types that a module registers when they are assigned."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool add_module_base(PyObject* extension) {
  if (!intern_names()) return false;
  module_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return module_type && PyModule_AddObjectRef(extension, "ModuleBase", reinterpret_cast<PyObject*>(module_type)) == 0 &&
         PyModule_AddFunctions(extension, functions) == 0;
}

}  // namespace rl
