#include "lapack.h"

#include <Python.h>

#include <cstring>

namespace rl_linalg {

Lapack<float> s;
Lapack<double> d;
Lapack<std::complex<float>> c;
Lapack<std::complex<double>> z;

namespace {

// Each routine is a capsule whose name is its C signature.
template <class F>
int get(PyObject* table, char type, const char* routine, F* out) {
  char name[16];
  std::snprintf(name, sizeof name, "%c%s", type, routine);
  PyObject* capsule = PyDict_GetItemString(table, name);
  const char* signature = capsule ? PyCapsule_GetName(capsule) : nullptr;
  if (!signature || !std::strstr(signature, "int *")) {
    PyErr_Format(PyExc_ImportError,
                 "rushlight.linalg: scipy.linalg.cython_lapack has no %s with 32-bit integers (it has: %s). Install "
                 "SciPy 1.13 or newer.",
                 name, signature ? signature : "nothing");
    return -1;
  }
  *out = reinterpret_cast<F>(PyCapsule_GetPointer(capsule, signature));
  return *out ? 0 : -1;
}

template <class T>
int fill(PyObject* table, char type, Lapack<T>& l) {
  return get(table, type, "getrf", &l.getrf) || get(table, type, "getri", &l.getri) ||
                 get(table, type, "getrs", &l.getrs) || get(table, type, "potrf", &l.potrf)
             ? -1
             : 0;
}

}  // namespace

int load_lapack() {
  PyObject* module = PyImport_ImportModule("scipy.linalg.cython_lapack");
  if (!module) return -1;
  PyObject* table = PyObject_GetAttrString(module, "__pyx_capi__");
  Py_DECREF(module);
  if (!table) return -1;
  int failed = fill(table, 's', s) || fill(table, 'd', d) || fill(table, 'c', c) || fill(table, 'z', z);
  Py_DECREF(table);
  return failed ? -1 : 0;
}

}  // namespace rl_linalg
