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
};

PyTypeObject* module_type;                   // ModuleBase
PyTypeObject *parameter_type, *buffer_type;  // given by set_member_types
bool global_hooks = false;

struct Names {
  PyObject *forward, *hooked, *call_impl, *set_member, *del_member, *getattr, *getattribute;
  PyObject* members[3];
} names;

bool intern_names() {
  auto intern = [](PyObject*& slot, const char* text) { return (slot = PyUnicode_InternFromString(text)) != nullptr; };
  return intern(names.forward, "forward") && intern(names.hooked, "_hooked") && intern(names.call_impl, "_call_impl") &&
         intern(names.set_member, "_set_member") && intern(names.del_member, "_del_member") &&
         intern(names.getattr, "__getattr__") && intern(names.getattribute, "__getattribute__") &&
         intern(names.members[0], "_parameters") && intern(names.members[1], "_modules") &&
         intern(names.members[2], "_buffers");
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

PyObject* module_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* dict = dict_of(self);
  // Module leaves the mark `_hooked` when its hooks are first touched, so most modules have none.
  const bool hooked = global_hooks || !dict || PyDict_GetItemWithError(dict, names.hooked);
  if (!hooked) return PyErr_Occurred() ? nullptr : call_forward(self, args, kwargs);
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

PyObject* set_global_hooks(PyObject*, PyObject* flag) {
  const int on = PyObject_IsTrue(flag);
  if (on < 0) return nullptr;
  global_hooks = on != 0;
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
