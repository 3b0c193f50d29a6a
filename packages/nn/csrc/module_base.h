#pragma once
#include <Python.h>
#include <structmember.h>

namespace rl {

// Adds the type ModuleBase and its functions to the extension; false with a Python exception set on failure.
bool add_module_base(PyObject* extension);

}  // namespace rl
