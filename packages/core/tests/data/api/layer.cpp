// A dispatch layer that counts the operators of a thread that asked for it.
#include <rushlight/api.h>

using namespace rl;

static long counted = 0;

static PyObject* count(Call& call, void*) {
  ++counted;
  return api->redispatch(call);
}

static PyObject* install(PyObject*, PyObject*) {
  const Layer layer{"counter", 50, kFirstFreeThreadBit, 0, count, nullptr, true};
  if (api->register_layer(&layer) < 0) return nullptr;
  Py_RETURN_NONE;
}

static PyObject* ask(PyObject*, PyObject*) {
  *api->thread_word() |= kFirstFreeThreadBit;
  Py_RETURN_NONE;
}

static PyObject* seen(PyObject*, PyObject*) { return PyLong_FromLong(counted); }

static PyMethodDef functions[] = {{"install", install, METH_NOARGS, nullptr},
                                  {"ask", ask, METH_NOARGS, nullptr},
                                  {"seen", seen, METH_NOARGS, nullptr},
                                  {}};
static PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_layer", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit__layer() { return import_api("layered 1.0") < 0 ? nullptr : PyModule_Create(&module); }
