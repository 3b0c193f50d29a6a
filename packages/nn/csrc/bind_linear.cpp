// nn::linear in terms of addmm and matmul, without a step through Python.
#include "bind.h"

namespace rl {
namespace {

PyObject* linear_kernel(Call& c) {
  static const Op* linear_2d = api->find_op("nn::linear_2d");
  if (c.args[0].tensor->ndim != 2 || c.args[1].tensor->ndim != 2) return run_composite(c);
  return api->call(linear_2d, c.args, 3);
}

PyObject* linear_2d_kernel(Call& c) {
  static const Op *transpose = api->find_op("t"), *addmm = api->find_op("addmm"), *mm = api->find_op("mm");
  Arg weight = c.args[1];
  const Owned w(api->call(transpose, &weight, 1));
  if (!w) return nullptr;
  if (c.args[2].none()) {
    Arg args[2] = {c.args[0], arg(w.tensor())};
    return api->call(mm, args, 2);
  }
  Arg args[3] = {c.args[2], c.args[0], arg(w.tensor())};
  return api->call(addmm, args, 3);
}

}  // namespace

bool register_linear() {
  return api->register_kernel("nn::linear", "cpu", linear_kernel) == 0 &&
         api->register_kernel("nn::linear_2d", "cpu", linear_2d_kernel) == 0;
}

}  // namespace rl
