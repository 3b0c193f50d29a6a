#include "norm.h"

namespace rl {

const NormTable& norm_kernels() {
  static const NormTable filled = [] {
    NormTable t{};
    RL_ISA_CALL(fill_norm, t);
    return t;
  }();
  return filled;
}

}  // namespace rl
