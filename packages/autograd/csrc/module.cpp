// rushlight.autograd._C
#include "anomaly.h"
#include "autocast.h"
#include "forward.h"
#include "function.h"
#include "modes.h"
#include "record.h"
#include "saved.h"
#include "tensor_attributes.h"
#include "views.h"

namespace rl {

namespace {

bool g_installed = false;

// Called once, when the plugin is loaded: from then on operators are recorded.
PyObject* install(PyObject*, PyObject*) {
  return guard([&] {
    if (!g_installed) {
      register_layers();
      add_tensor_attributes();
      g_installed = true;
    }
    return Py_NewRef(Py_None);
  });
}

// The parameter names of an operator, and how many tensors it returns.
PyObject* signature(PyObject*, PyObject* op_name) {
  return guard([&] {
    const char* name = PyUnicode_AsUTF8(op_name);
    const Op* op = name ? api->find_op(name) : nullptr;
    if (!op) raise(PyExc_KeyError, "no operator %R", op_name);
    auto names = Ref<>::check(PyTuple_New(op->nparams));
    for (int i = 0; i < op->nparams; ++i)
      PyTuple_SET_ITEM(names.get(), i, Ref<>::check(PyUnicode_FromString(op->params[i].name)).release());
    return Py_BuildValue("(Oi)", names.get(), op->noutputs);
  });
}

PyMethodDef functions[] = {
    {"install", install, METH_NOARGS, "Registers the dispatch layers and the attributes of Tensor."},
    {"signature", signature, METH_O, "(parameter names, number of results) of an operator."},
    {}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "rushlight.autograd._C", "The engine.", -1, functions, nullptr, nullptr, nullptr, nullptr};

}  // namespace

}  // namespace rl

PyMODINIT_FUNC PyInit__C() {
  using namespace rl;
  if (import_api("rushlight-autograd") < 0) return nullptr;
  return guard([&] {
    auto module = Ref<>::check(PyModule_Create(&definition));
    init_node_type(module.get());
    init_variable_types(module.get());
    init_rule_type(module.get());
    init_saved(module.get());
    init_views();
    init_function_type(module.get());
    init_modes(module.get());
    init_functions(module.get());
    init_anomaly(module.get());
    init_autocast(module.get());
    init_forward(module.get());
    return module.release();
  });
}
