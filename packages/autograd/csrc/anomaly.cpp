#include "anomaly.h"

#include "call.h"

namespace rl {

Anomaly g_anomaly;

void attach_trace_now(Node* n) {
  auto module = Ref<>::check(PyImport_ImportModule("traceback"));
  n->trace = Ref<>::check(PyObject_CallMethod(module.get(), "format_stack", nullptr)).release();
}

namespace {

// Warns with the forward call of `n`, keeping the error that is set (or none).
void show_trace(Node* n) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  Ref<> text;
  if (n->trace) {
    Ref<> empty(PyUnicode_FromString(""));
    Ref<> joined(PyUnicode_Join(empty.get(), n->trace));
    text = Ref<>(PyUnicode_FromFormat("Error detected in %s. Traceback of forward call that caused the error:\n%U",
                                      name_of(n), joined.get()));
  } else {
    text = Ref<>(PyUnicode_FromFormat(
        "Error detected in %s. No forward pass information available. Enable detect anomaly during "
        "forward pass for more information.",
        name_of(n)));
  }
  int failed = text ? PyErr_WarnEx(PyExc_UserWarning, PyUnicode_AsUTF8(text.get()), 1) : -1;
  if (type) {
    PyErr_Restore(type, value, traceback);
  } else if (failed < 0) {
    throw PythonError();
  }
}

bool has_nan(PyObject* grad) {
  static OpHandle isnan("isnan"), any("any");
  auto found = call(any, {arg(tensor(call(isnan, {arg(as_tensor(grad))})))});
  int truth = PyObject_IsTrue(found.get());
  check(truth);
  return truth;
}

PyObject* set_anomaly(PyObject*, PyObject* args) {
  int enabled, check_nan;
  if (!PyArg_ParseTuple(args, "pp", &enabled, &check_nan)) return nullptr;
  g_anomaly = {enabled != 0, check_nan != 0};
  Py_RETURN_NONE;
}

PyObject* get_anomaly(PyObject*, PyObject*) {
  return Py_BuildValue("(NN)", PyBool_FromLong(g_anomaly.enabled), PyBool_FromLong(g_anomaly.check_nan));
}

PyMethodDef methods[] = {{"set_anomaly", set_anomaly, METH_VARARGS, "Turns anomaly mode and its NaN check on or off."},
                         {"get_anomaly", get_anomaly, METH_NOARGS, "(enabled, check_nan)."},
                         {}};

}  // namespace

void backward_with_trace(Node* n, PyObject** grads, PyObject** results, const Needs& needs) {
  try {
    n->kind->backward(n, grads, results, needs);
  } catch (const PythonError&) {
    show_trace(n);
    throw;
  }
  if (!g_anomaly.enabled || !g_anomaly.check_nan) return;
  ThreadBitsScope unrecorded(kNoGrad, 0);
  for (uint32_t i = 0; i < n->nedges; ++i)
    if (results[i] && has_nan(results[i])) {
      show_trace(n);
      raise(PyExc_RuntimeError, "Function '%s' returned nan values in its %uth output.", name_of(n), i);
    }
}

void init_anomaly(PyObject* module) { check(PyModule_AddFunctions(module, methods)); }

}  // namespace rl
