#include "attention.h"

namespace rl {

const AttentionTable& attention_kernels() {
  static const AttentionTable filled = [] {
    AttentionTable t{};
    RL_ISA_CALL(fill_attention, t);
    return t;
  }();
  return filled;
}

}  // namespace rl
