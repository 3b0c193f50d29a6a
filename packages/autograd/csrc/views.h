// History of views whose base is written to, and of bases one of whose views is.
#pragma once
#include "variable.h"

namespace rl {

// After `write` wrote to `view`: the base as a function of the base of before and of what was written. New reference.
Node* copy_slices(Tensor* view, Node* write);
// The view as a function of its base of now. New reference.
Node* view_of_base(Tensor* view);

// (offset of the first element, elements from there to the last) in the storage; strides are not negative.
std::pair<int64_t, int64_t> span_of(const Geometry&);

void init_views();

}  // namespace rl
