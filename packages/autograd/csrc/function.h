// Nodes of user-defined functions: the `ctx` of autograd.Function.
#pragma once
#include <vector>

#include "engine.h"

namespace rl {

void init_function_type(PyObject* module);

}  // namespace rl
