// rushlight.linalg._C: dense linear algebra, one LAPACK call a matrix, batches in parallel.
#include "kernel.h"

namespace {

PyObject* set_error(PyObject*, PyObject* type) {
  Py_INCREF(type);
  Py_XSETREF(rl::linalg_error, type);
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"multi_dot", rl::multi_dot, METH_O, "multi_dot(tensors): their product, in the cheapest order."},
    {"set_error", set_error, METH_O, "set_error(type): the exception that failing routines raise."},
    {}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "rushlight.linalg._C", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__C() {
  if (rl::import_api("rushlight-linalg") < 0 || rl::load_lapack() < 0 || !rl::register_exponential() ||
      !rl::register_factors() || !rl::register_orthogonal() || !rl::register_solvers() || !rl::register_spectral())
    return nullptr;
  return PyModule_Create(&definition);
}
