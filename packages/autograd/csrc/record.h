// The dispatch layer that records calls as nodes.
#pragma once
#include "rule.h"

namespace rl {

// The in-place form of a composite: its parts read a copy, so that what they save is not written to.
PyObject* inplace_composite(Call&);

void register_layers();

}  // namespace rl
