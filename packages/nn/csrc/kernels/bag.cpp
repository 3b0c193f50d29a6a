#include "bag.h"

namespace rl {

const BagTable& bag_kernels() {
  static const BagTable filled = [] {
    BagTable t{};
    RL_ISA_CALL(fill_bag, t);
    return t;
  }();
  return filled;
}

}  // namespace rl
