// Kernels of connectionist temporal classification.
#include "bind.h"
#include "kernels/ctc.h"

namespace rl {
namespace {

// The arguments log_probs, targets, input_lengths, target_lengths.
struct CtcArguments {
  Owned log_probs, targets, input_lengths, target_lengths;
  Ctc shape;

  // False with an exception where they do not fit.
  bool read(const Call& c, int first, int64_t blank) {
    log_probs = contiguous(c.args[first].tensor), targets = contiguous(c.args[first + 1].tensor);
    input_lengths = contiguous(c.args[first + 2].tensor), target_lengths = contiguous(c.args[first + 3].tensor);
    if (!log_probs || !targets || !input_lengths || !target_lengths) return false;
    bool fits = log_probs->ndim == 3 && targets->ndim == 2 && targets->sizes[0] == log_probs->sizes[1];
    for (const Owned* t : {&targets, &input_lengths, &target_lengths}) fits = fits && (*t)->dtype == DType::Int64;
    if (fits) {
      const auto ints = [](const Owned& t) { return reinterpret_cast<const int64_t*>(t.data()); };
      shape = {log_probs->sizes[0], log_probs->sizes[1],  log_probs->sizes[2],
               targets->sizes[1],   log_probs.data(),     ints(targets),
               ints(input_lengths), ints(target_lengths), blank};
      fits = blank >= 0 && blank < shape.classes && input_lengths->numel == shape.batch &&
             target_lengths->numel == shape.batch;
      for (int64_t n = 0; fits && n < shape.batch; ++n) {
        fits = shape.input_lengths[n] >= 0 && shape.input_lengths[n] <= shape.steps && shape.target_lengths[n] >= 0 &&
               shape.target_lengths[n] <= shape.longest;
      }
      for (int64_t i = 0; fits && i < targets->numel; ++i)
        fits = shape.targets[i] >= 0 && shape.targets[i] < shape.classes;
    }
    if (!fits) PyErr_Format(PyExc_RuntimeError, "%s: the targets and lengths do not fit log_probs.", c.op->name);
    return fits;
  }
};

// nn::ctc(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)
PyObject* ctc_kernel(Call& c) {
  if (!is_native(c.args[0].tensor)) return run_composite(c);
  CtcArguments a;
  if (!a.read(c, 0, c.args[4].to_int())) return nullptr;
  const int64_t sizes[3] = {a.shape.batch, a.shape.steps, 2 * a.shape.longest + 1};
  Owned loss = empty(1, sizes, a.log_probs->dtype), history = empty(3, sizes, a.log_probs->dtype);
  if (!loss || !history) return nullptr;
  if (!run_unlocked(history->numel, [&] { ctc(loss->dtype, a.shape, loss.data(), history.data()); })) return nullptr;
  return tuple_of({&loss, &history});
}

// nn::ctc_backward(output_grad, log_probs, targets, input_lengths, target_lengths, loss, history, blank, zero_infinity)
PyObject* ctc_backward_kernel(Call& c) {
  const DType dtype = c.args[1].tensor->dtype;
  if (!is_native(c.args[1].tensor)) return run_composite(c);
  CtcArguments a;
  if (!a.read(c, 1, c.args[7].to_int())) return nullptr;
  const Owned dloss = contiguous(c.args[0].tensor), loss = contiguous(c.args[5].tensor),
              history = contiguous(c.args[6].tensor);
  Owned grad = empty_like(c.args[1].tensor);
  if (!dloss || !loss || !history || !grad) return nullptr;
  if (dloss->numel != a.shape.batch || loss->numel != a.shape.batch || dloss->dtype != dtype || loss->dtype != dtype ||
      history->dtype != dtype || history->numel != a.shape.batch * a.shape.steps * (2 * a.shape.longest + 1)) {
    PyErr_Format(PyExc_RuntimeError, "%s: output_grad, loss and history do not fit log_probs.", c.op->name);
    return nullptr;
  }
  const bool zero_infinity = c.args[8].to_bool();
  if (!run_unlocked(history->numel + grad->numel, [&] {
        ctc_backward(dtype, a.shape, dloss.data(), loss.data(), history.data(), zero_infinity, grad.data());
      })) {
    return nullptr;
  }
  return grad.release();
}

}  // namespace

bool register_ctc() {
  return api->register_kernel("nn::ctc", "cpu", ctc_kernel) == 0 &&
         api->register_kernel("nn::ctc_backward", "cpu", ctc_backward_kernel) == 0;
}

}  // namespace rl
