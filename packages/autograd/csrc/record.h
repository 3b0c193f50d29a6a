// The dispatch layer that records calls as nodes.
#pragma once
#include "rule.h"

namespace rl {

void register_layers();

}  // namespace rl
