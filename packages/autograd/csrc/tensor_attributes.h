// Attributes that this wheel adds to Tensor, and autograd.backward and grad.
#pragma once
#include <Python.h>

namespace rl {

void add_tensor_attributes();
void init_functions(PyObject* module);

}  // namespace rl
