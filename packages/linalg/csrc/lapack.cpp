#include "lapack.h"

#include <Python.h>

#include <cstdio>
#include <cstring>
#include <mutex>

#if !defined(_WIN32)
#include <dlfcn.h>
#endif

namespace rl {

namespace {

// Each routine is a capsule whose name is its C signature.
template <class F>
bool get(PyObject* table, char type, const char* routine, F* out) {
  char name[16];
  std::snprintf(name, sizeof name, "%c%s", type, routine);
  PyObject* capsule = PyDict_GetItemString(table, name);
  const char* signature = capsule ? PyCapsule_GetName(capsule) : nullptr;
  if (!signature || !std::strstr(signature, "int *")) {
    PyErr_Format(PyExc_ImportError,
                 "rushlight.linalg: SciPy has no %s with 32-bit integers (it has: %s). Install SciPy 1.13 or newer.",
                 name, signature ? signature : "nothing");
    return false;
  }
  *out = reinterpret_cast<F>(PyCapsule_GetPointer(capsule, signature));
  return *out != nullptr;
}

template <class T>
bool fill(PyObject* table, char t) {
  Lapack<T>& l = lapack<T>;
  constexpr bool c = kComplex<T>;
  return get(table, t, "sytrf", &l.sytrf) && get(table, t, "sytrs", &l.sytrs) &&
         get(table, t, c ? "hetrf" : "sytrf", &l.hetrf) && get(table, t, c ? "hetrs" : "sytrs", &l.hetrs) &&
         get(table, t, c ? "unmqr" : "ormqr", &l.ormqr) && get(table, t, c ? "heevd" : "syevd", &l.syevd) &&
         get(table, t, "gebal", &l.gebal) && get(table, t, "trexc", &l.trexc) && get(table, t, "gesdd", &l.gesdd) &&
         get(table, t, "gesvd", &l.gesvd) && get(table, t, "gels", &l.gels) && get(table, t, "gelsy", &l.gelsy) &&
         get(table, t, "gelsd", &l.gelsd) && get(table, t, "gelss", &l.gelss);
}

template <class R>
bool fill_condensed(PyObject* table, char t) {
  Condensed<R>& c = condensed<R>;
  return get(table, t, "stedc", &c.stedc) && get(table, t, "laed2", &c.laed2) && get(table, t, "laed4", &c.laed4) &&
         get(table, t, "bdsdc", &c.bdsdc);
}

// How many threads OpenBLAS uses, and who wants it to use one.
struct Threads {
  void (*set)(int) = nullptr;
  int (*get)() = nullptr;
  std::mutex lock;
  int wanting = 0, before = 0;
} threads;

void find_threads() {
#if !defined(_WIN32)
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(lapack<double>.sytrf), &info)) return;
  void* library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);  // whose dependencies are searched too
  if (!library) return;
  threads.set = reinterpret_cast<void (*)(int)>(dlsym(library, "scipy_openblas_set_num_threads"));
  threads.get = reinterpret_cast<int (*)()>(dlsym(library, "scipy_openblas_get_num_threads"));
  dlclose(library);
#endif
}

}  // namespace

int load_lapack() {
  PyObject* module = PyImport_ImportModule("scipy.linalg.cython_lapack");
  PyObject* table = module ? PyObject_GetAttrString(module, "__pyx_capi__") : nullptr;
  const bool done = table && fill<float>(table, 's') && fill<double>(table, 'd') &&
                    fill<std::complex<float>>(table, 'c') && fill<std::complex<double>>(table, 'z') &&
                    fill_condensed<float>(table, 's') && fill_condensed<double>(table, 'd');
  if (done) find_threads();
  Py_XDECREF(table);
  Py_XDECREF(module);
  return done ? 0 : -1;
}

OneThread::OneThread() {
  if (!threads.set || !threads.get) return;
  const std::lock_guard<std::mutex> guard(threads.lock);
  if (threads.wanting++) return;
  threads.before = threads.get();
  if (threads.before != 1) threads.set(1);
}

OneThread::~OneThread() {
  if (!threads.set || !threads.get) return;
  const std::lock_guard<std::mutex> guard(threads.lock);
  if (--threads.wanting == 0 && threads.before != 1) threads.set(threads.before);
}

}  // namespace rl
