// The extension rushlight.nn._C.
#include <rushlight/api.h>

#include "module_base.h"

namespace {

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "rushlight.nn._C", nullptr, -1, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__C() {
  if (rl::import_api("rushlight-nn") < 0) return nullptr;
  PyObject* extension = PyModule_Create(&definition);
  if (!extension) return nullptr;
  if (!rl::add_module_base(extension)) {
    Py_DECREF(extension);
    return nullptr;
  }
  return extension;
}
