#include "anomaly.h"

#include <cstring>
#include <deque>
#include <unordered_map>

#include "call.h"
#include "rule.h"

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
  if (as_tensor(grad)->flags & kLayout) return false;  // not one tensor of numbers
  auto found = call(any, {arg(tensor(call(isnan, {arg(as_tensor(grad))})))});
  int truth = PyObject_IsTrue(found.get());
  check(truth);
  return truth;
}

// ---- writes

constexpr uint32_t kAnomalyMode = kFirstFreeThreadBit;

struct Write {
  uint32_t version;  // after it
  std::string where;
};
constexpr size_t kWritesKept = 64;  // of one storage
std::unordered_map<const Storage*, std::deque<Write>> g_writes;

// The Python code that runs, rushlight's own left out.
std::string caller() {
  PyFrameObject* frame = PyEval_GetFrame();
  if (!frame) return {};
  Ref<> f = Ref<>::borrow(object(frame));
  for (Ref<> at = f; at; at = Ref<>(object(PyFrame_GetBack(reinterpret_cast<PyFrameObject*>(at.get()))))) {
    Ref<> globals(PyFrame_GetGlobals(reinterpret_cast<PyFrameObject*>(at.get())));
    PyObject* name = globals ? PyDict_GetItemString(globals.get(), "__name__") : nullptr;
    const char* text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
    if (text && (!std::strncmp(text, "rushlight.", 10) || !std::strcmp(text, "rushlight"))) continue;
    f = at;
    break;
  }
  auto* chosen = reinterpret_cast<PyFrameObject*>(f.get());
  Ref<> code(object(PyFrame_GetCode(chosen)));
  auto file = Ref<>::check(PyObject_GetAttrString(code.get(), "co_filename"));
  auto function = Ref<>::check(PyObject_GetAttrString(code.get(), "co_qualname"));
  auto text =
      Ref<>::check(PyUnicode_FromFormat("%U:%d, in %U", file.get(), PyFrame_GetLineNumber(chosen), function.get()));
  const char* utf8 = PyUnicode_AsUTF8(text.get());
  if (!utf8) throw PythonError();
  return utf8;
}

void note_write(const Tensor* t, const std::string& where) {
  auto& writes = g_writes[t->storage];
  if (!writes.empty() && writes.back().version > t->storage->version) writes.clear();      // of memory that was freed
  if (!writes.empty() && writes.back().version == t->storage->version) writes.pop_back();  // of a part of this operator
  writes.push_back({t->storage->version, where});
  if (writes.size() > kWritesKept) writes.pop_front();
}

PyObject* watch_writes(Call& c, void*) {
  const bool writes = c.inplace || c.op->inplace_only;
  PyObject* result = api->redispatch(c);
  if (!result || !(writes || c.out)) return result;
  Ref<> done(result);
  return guard([&] {
    const std::string where = base_name(c.op) + (c.inplace ? "_" : c.out ? "(out=...)" : "") + " at " + caller();
    if (writes && c.args[0].kind == Kind::Tensors) {  // steps of optimizers
      for (int i = 0; i < c.args[0].count; ++i) note_write(c.args[0].tensors[i], where);
    } else if (writes) {
      note_write(c.args[0].tensor, where);
    } else if (is_tensor(c.out)) {
      note_write(as_tensor(c.out), where);
    } else {
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(c.out); ++i) note_write(as_tensor(PyTuple_GET_ITEM(c.out, i)), where);
    }
    return done.release();
  });
}

PyObject* set_anomaly(PyObject*, PyObject* args) {
  int enabled, check_nan;
  if (!PyArg_ParseTuple(args, "pp", &enabled, &check_nan)) return nullptr;
  g_anomaly = {enabled != 0, check_nan != 0};
  uint32_t& word = *api->thread_word();
  word = enabled ? word | kAnomalyMode : word & ~kAnomalyMode;
  if (!enabled) g_writes.clear();
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
      const char* input = input_name(n, i);
      raise(PyExc_RuntimeError, "Function '%s' returned nan values in its %uth output%s%s%s.", name_of(n), i,
            input ? ", the gradient with respect to '" : "", input ? input : "", input ? "'" : "");
    }
}

std::string write_since(const Storage* storage, uint32_t version) {
  auto found = g_writes.find(storage);
  if (found == g_writes.end() || found->second.back().version > storage->version) return {};
  for (const Write& w : found->second)
    if (w.version > version) return w.where;
  return {};
}

void register_anomaly_layer() {
  const Layer layer = {"anomaly", 150, kAnomalyMode, 0, watch_writes, nullptr, true};
  check(api->register_layer(&layer));
}

void init_anomaly(PyObject* module) { check(PyModule_AddFunctions(module, methods)); }

}  // namespace rl
