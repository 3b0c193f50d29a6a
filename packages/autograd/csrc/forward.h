// Forward mode: dual tensors carry a tangent, and operators on them give the tangent of their result.
#pragma once
#include "variable.h"

namespace rl {

constexpr uint32_t kNoForward = kFirstFreeThreadBit << 1;  // dual tensors count as plain ones

// Its tangent in the level that is open, of its shape and dtype; null where it has none. A view of a dual tensor has
// the view of its tangent.
Ref<> tangent_of(Tensor*);
void set_tangent(Tensor*, const Ref<>& tangent);
bool level_is_open();

void register_forward_layer();
void init_forward(PyObject* module);

}  // namespace rl
