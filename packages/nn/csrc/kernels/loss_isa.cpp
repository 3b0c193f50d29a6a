// Losses of single elements, one pass over memory each.
#include "loss.h"

#include "rushlight/loop.h"
#include "rushlight/vecmath.h"

namespace rl {
namespace RL_ISA {
namespace {

// A logarithm that is at least -100, as PyTorch has it.
template <class T>
RL_INLINE T bounded_log(T y) {
  return y < -100 ? T(-100) : y;
}

}  // namespace

void fill_loss(LoopTable& table) {
  Registrar ops(table);
  ops.binary<Floats>("nn::_squared_error", [](auto x, auto target) { return (x - target) * (x - target); });
  ops.add<2, 1, Floats>("nn::_smooth_l1", [](auto x, auto target, const auto* p) {
    const auto d = vm::abs(x - target);
    return d < p[0] ? d * d * (1 / (2 * p[0])) : d - p[0] / 2;
  });
  ops.add<2, 1, Floats>("nn::_huber", [](auto x, auto target, const auto* p) {
    const auto d = vm::abs(x - target);
    return d < p[0] ? d * d / 2 : p[0] * (d - p[0] / 2);
  });
  ops.binary<Floats>("nn::_bce", [](auto x, auto target) {
    return (target - 1) * bounded_log(vm::log1p(-x)) - target * bounded_log(vm::log(x));
  });
  ops.binary<Floats>("nn::_bce_logits", [](auto x, auto target) { return (1 - target) * x + vm::softplus(-x); });
  ops.binary<Floats>("nn::_soft_margin", [](auto x, auto target) { return vm::log1p(vm::exp(-target * x)); });
}

}  // namespace RL_ISA
}  // namespace rl
