// nn::linear in terms of addmm and matmul, without a step through Python.
#include "bind.h"

namespace rl {
namespace {

PyObject* linear_kernel(Call& c) {
  static const Op *transpose = api->find_op("t"), *addmm = api->find_op("addmm"), *mm = api->find_op("mm");
  Tensor *input = c.args[0].tensor, *weight = c.args[1].tensor, *bias = tensor_or_null(c.args[2]);
  if (input->ndim != 2 || weight->ndim != 2 || (bias != nullptr && bias->ndim != 1)) return run_composite(c);
  Arg transposed = tensor_arg(weight);
  const Owned w(api->call(transpose, &transposed, 1));
  if (!w) return nullptr;
  if (bias == nullptr) {
    Arg args[2] = {c.args[0], tensor_arg(w.tensor())};
    return api->call(mm, args, 2);
  }
  Arg args[3] = {c.args[2], c.args[0], tensor_arg(w.tensor())};
  return api->call(addmm, args, 3);
}

}  // namespace

bool register_linear() { return api->register_kernel("nn::linear", "cpu", linear_kernel) == 0; }

}  // namespace rl
