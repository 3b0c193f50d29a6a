// Grad modes as Python objects.
#pragma once
#include <Python.h>

namespace rl {

void init_modes(PyObject* module);

}  // namespace rl
