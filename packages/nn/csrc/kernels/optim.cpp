#include "optim.h"

namespace rl {

const OptimTable& optim_kernels() {
  static const OptimTable filled = [] {
    OptimTable t{};
    RL_ISA_CALL(fill_optim, t);
    return t;
  }();
  return filled;
}

}  // namespace rl
