// Grad modes: context managers and decorators over bits of the thread word.
#include "modes.h"

#include <cstring>

#include "object.h"

namespace rl {

namespace {

// One object may be entered again while it is active: each level keeps its two bits.
struct Mode {
  PyObject_HEAD uint32_t set, clear, depth;
  uint64_t saved_grad, saved_inference;
};
constexpr uint32_t kDeepest = 64;

PyTypeObject *g_no_grad, *g_enable_grad, *g_set_grad_enabled, *g_inference_mode;

Mode* as_mode(PyObject* o) { return reinterpret_cast<Mode*>(o); }

void enter(Mode* m) {
  uint32_t& word = *api->thread_word();
  m->saved_grad = m->saved_grad << 1 | !!(word & kNoGrad);
  m->saved_inference = m->saved_inference << 1 | !!(word & kInferenceMode);
  ++m->depth;
  word = (word & ~m->clear) | m->set;
}

void leave(Mode* m) {
  uint32_t& word = *api->thread_word();
  uint32_t mask = m->set | m->clear;
  uint32_t before = (m->saved_grad & 1 ? kNoGrad : 0u) | (m->saved_inference & 1 ? kInferenceMode : 0u);
  word = (word & ~mask) | (before & mask);
  m->saved_grad >>= 1;
  m->saved_inference >>= 1;
  --m->depth;
}

PyObject* mode_enter(PyObject* self, PyObject*) {
  if (as_mode(self)->depth == kDeepest)
    return PyErr_Format(PyExc_RuntimeError,
                        "%s: one object may be entered %u times before it is left. Make one where it is entered.",
                        Py_TYPE(self)->tp_name, kDeepest);
  enter(as_mode(self));
  Py_RETURN_NONE;
}

PyObject* mode_exit(PyObject* self, PyObject* const*, Py_ssize_t) {
  if (!as_mode(self)->depth)
    return PyErr_Format(PyExc_RuntimeError, "%s: left without being entered. Use it in a with statement.",
                        Py_TYPE(self)->tp_name);
  leave(as_mode(self));
  Py_RETURN_NONE;
}

// set_grad_enabled acts when it is made, not again when it is entered after that.
PyObject* set_mode_enter(PyObject* self, PyObject*) {
  if (!as_mode(self)->depth) enter(as_mode(self));
  Py_RETURN_NONE;
}

// Modes come and go in every step of a training loop: a few wait to be used again.
constexpr int kFreeModes = 8;
Mode* g_free[kFreeModes];
int g_nfree = 0;

PyObject* make(PyTypeObject* type, uint32_t set, uint32_t clear) {
  Mode* m = g_nfree ? g_free[--g_nfree] : PyObject_New(Mode, type);
  if (!m) return nullptr;
  Py_SET_REFCNT(m, 1);
  if (Py_TYPE(m) != type) {
    Py_INCREF(type);
    Py_DECREF(Py_TYPE(m));
    Py_SET_TYPE(m, type);
  }
  m->set = set;
  m->clear = clear;
  m->depth = 0;
  m->saved_grad = m->saved_inference = 0;
  return object(m);
}

PyObject* mode_clone(PyObject* self, PyObject*) {
  PyObject* mode = make(Py_TYPE(self), as_mode(self)->set, as_mode(self)->clear);
  if (mode && Py_TYPE(self) == g_set_grad_enabled) enter(as_mode(mode));
  return mode;
}

PyObject* decorate(PyObject* mode, PyObject* fn) {
  static PyObject* wrap = nullptr;
  if (!wrap) {
    Ref<> module(PyImport_ImportModule("rushlight.autograd._modes"));
    if (!module || !(wrap = PyObject_GetAttrString(module.get(), "decorate"))) return nullptr;
  }
  PyObject* args[] = {mode, fn};
  return PyObject_Vectorcall(wrap, args, 2, nullptr);
}

PyObject* mode_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* fn;
  static const char* names[] = {"orig_func", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:__call__", const_cast<char**>(names), &fn)) return nullptr;
  if (Py_TYPE(self) != g_set_grad_enabled) return decorate(self, fn);
  if (as_mode(self)->depth) leave(as_mode(self));  // only the function runs in the mode
  Ref<> mode(make(g_no_grad, as_mode(self)->set, as_mode(self)->clear));
  return mode ? decorate(mode.get(), fn) : nullptr;
}

// no_grad() and enable_grad(), and as @no_grad without a call.
template <uint32_t kSet, uint32_t kClear>
PyObject* plain_new(PyObject* type, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  auto* cls = reinterpret_cast<PyTypeObject*>(type);
  if (n > 1 || (kwnames && PyTuple_GET_SIZE(kwnames)) || (n == 1 && !PyCallable_Check(args[0])))
    return PyErr_Format(PyExc_TypeError, "%s() takes no argument, or the function that it decorates", cls->tp_name);
  PyObject* mode = make(cls, kSet, kClear);
  if (!mode || !n) return mode;
  PyObject* wrapped = decorate(mode, args[0]);
  Py_DECREF(mode);
  return wrapped;
}

int truth_argument(PyObject* type, PyObject* const* args, size_t nargsf, PyObject* kwnames, int otherwise) {
  Py_ssize_t n = PyVectorcall_NARGS(nargsf), nkw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  if (n + nkw == 0 && otherwise >= 0) return otherwise;
  if (n + nkw != 1 || (nkw && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "mode"))) {
    PyErr_Format(PyExc_TypeError, "%s() takes one argument, mode", reinterpret_cast<PyTypeObject*>(type)->tp_name);
    return -1;
  }
  return PyObject_IsTrue(args[0]);
}

PyObject* set_grad_enabled_new(PyObject* type, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  if (PyVectorcall_NARGS(nargsf) && !PyBool_Check(args[0]))
    return PyErr_Format(PyExc_TypeError, "set_grad_enabled(): argument 'enabled' (position 1) must be bool, not %s",
                        Py_TYPE(args[0])->tp_name);
  int on = truth_argument(type, args, nargsf, kwnames, -1);
  if (on < 0) return nullptr;
  PyObject* mode = make(reinterpret_cast<PyTypeObject*>(type), on ? 0 : kNoGrad, on ? kNoGrad : 0);
  if (mode) enter(as_mode(mode));
  return mode;
}

PyObject* inference_mode_new(PyObject* type, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  constexpr uint32_t kBits = kNoGrad | kInferenceMode;
  auto* cls = reinterpret_cast<PyTypeObject*>(type);
  if (PyVectorcall_NARGS(nargsf) == 1 && !PyBool_Check(args[0]) && PyCallable_Check(args[0])) {
    PyObject* mode = make(cls, kBits, 0);
    PyObject* wrapped = mode ? decorate(mode, args[0]) : nullptr;
    Py_XDECREF(mode);
    return wrapped;
  }
  int on = truth_argument(type, args, nargsf, kwnames, 1);
  return on < 0 ? nullptr : make(cls, on ? kBits : 0, on ? 0 : kBits);
}

void dealloc_mode(PyObject* self) {
  if (g_nfree < kFreeModes) {
    g_free[g_nfree++] = as_mode(self);
    return;
  }
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

#define FASTCALL(f) reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f))

const PyMethodDef clone_method = {"clone", mode_clone, METH_NOARGS, "A new object for the same mode."};
PyMethodDef mode_methods[] = {{"__enter__", mode_enter, METH_NOARGS, nullptr},
                              {"__exit__", FASTCALL(mode_exit), METH_FASTCALL, nullptr},
                              clone_method,
                              {}};
PyMethodDef set_mode_methods[] = {{"__enter__", set_mode_enter, METH_NOARGS, nullptr},
                                  {"__exit__", FASTCALL(mode_exit), METH_FASTCALL, nullptr},
                                  clone_method,
                                  {}};

PyTypeObject* add_mode(PyObject* module, const char* name, const char* doc, PyMethodDef* methods,
                       vectorcallfunc make_one) {
  PyType_Slot slots[] = {{Py_tp_methods, methods},
                         {Py_tp_call, reinterpret_cast<void*>(mode_call)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_mode)},
                         {Py_tp_doc, const_cast<char*>(doc)},
                         {}};
  PyType_Spec spec = {name, sizeof(Mode), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  auto* type = reinterpret_cast<PyTypeObject*>(Ref<>::check(PyType_FromSpec(&spec)).release());
  type->tp_vectorcall = make_one;
  check(PyModule_AddObjectRef(module, std::strrchr(name, '.') + 1, object(type)));
  return type;
}

PyObject* is_grad_enabled(PyObject*, PyObject*) { return PyBool_FromLong(grad_enabled()); }
PyObject* is_inference_mode_enabled(PyObject*, PyObject*) {
  return PyBool_FromLong(*api->thread_word() & kInferenceMode);
}

PyMethodDef functions[] = {
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS, "Whether operators are recorded for backward in this thread."},
    {"is_inference_mode_enabled", is_inference_mode_enabled, METH_NOARGS,
     "Whether inference mode is on in this thread."},
    {}};

}  // namespace

void init_modes(PyObject* module) {
  g_no_grad = add_mode(
      module, "rushlight.no_grad",
      "Context manager and decorator: operators inside are not recorded, their results require no gradient.\n\n"
      "The mode belongs to the thread.\n\nExample:\n    >>> x = rushlight.ones(2, requires_grad=True)\n"
      "    >>> with rushlight.no_grad():\n    ...     (x * 2).requires_grad\n    False",
      mode_methods, plain_new<kNoGrad, 0>);
  g_enable_grad = add_mode(module, "rushlight.enable_grad",
                           "Context manager and decorator: records operators again, inside no_grad.", mode_methods,
                           plain_new<0, kNoGrad>);
  g_set_grad_enabled = add_mode(
      module, "rushlight.set_grad_enabled",
      "Turns recording on or off at once; as a context manager, until its end.\n\nArgs:\n    mode: True records.",
      set_mode_methods, set_grad_enabled_new);
  g_inference_mode =
      add_mode(module, "rushlight.inference_mode",
               "Context manager and decorator: like no_grad, and what is made inside can never be part of a graph.\n\n"
               "Args:\n    mode: False turns inference mode off inside.",
               mode_methods, inference_mode_new);
  check(PyModule_AddFunctions(module, functions));
}

}  // namespace rl
