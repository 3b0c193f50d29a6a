#pragma once
#include <Python.h>

namespace rl {

void init_autocast(PyObject* module);

}  // namespace rl
