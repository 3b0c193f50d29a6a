// Which layers there are: what registering a plugin asks before and after it.
#pragma once
#include <string>
#include <vector>

namespace rl {

std::vector<std::string> layer_names();                   // in the order in which they run
void keep_layers(const std::vector<std::string>& names);  // takes all others out

}  // namespace rl
