// Kernels of the optimiser steps: one pass over each parameter.
#include "bind.h"
#include "kernels/norm.h"

namespace rl {
namespace {

bool fits(const Tensor* t, const Tensor* param) {
  return t->dtype == param->dtype && t->numel == param->numel && t->contiguous() && t->is_cpu() &&
         !t->storage->read_only;
}

// The i-th tensor of a list, or null past its end.
Tensor* item(const Arg& list, int i) {
  return list.kind == Kind::Tensors && i < list.count ? list.tensors[i] : nullptr;
}

// Lists whose tensors are contiguous, of one native dtype and of the parameters' sizes: what the fused kernels take.
bool is_plain(const Arg& params, std::initializer_list<const Arg*> lists) {
  if (params.kind != Kind::Tensors) return false;
  for (int i = 0; i < params.count; ++i) {
    const Tensor* param = params.tensors[i];
    if (!is_native(param) || !fits(param, param)) return false;
    for (const Arg* list : lists) {
      const Tensor* t = item(*list, i);
      if (t == nullptr || !fits(t, param)) return false;
    }
  }
  return true;
}

// The portable definition takes the numbers by name.
PyObject* run_by_name(Call& c) {
  Owned args(PyTuple_New(0)), names(PyDict_New());
  if (!args || !names) return nullptr;
  Py_ssize_t positional = 0;
  while (positional < c.op->nparams && !c.op->params[positional].keyword_only) ++positional;
  args = Owned(PyTuple_New(positional));
  if (!args) return nullptr;
  for (int i = 0; i < c.op->nparams; ++i) {
    Owned value(api->arg_to_object(c.args[i]));
    if (!value) return nullptr;
    if (i < positional) {
      PyTuple_SET_ITEM(args.get(), i, value.release());
    } else if (PyDict_SetItemString(names.get(), c.op->params[i].name, value.get()) < 0) {
      return nullptr;
    }
  }
  return PyObject_Call(c.op->composite, args.get(), names.get());
}

// nn::sgd_step_(params, grads, momentum_buffers, *, lr, momentum, dampening, weight_decay, nesterov, maximize,
// is_first_step)
PyObject* sgd_kernel(Call& c) {
  const Arg &params = c.args[0], &grads = c.args[1], &buffers = c.args[2];
  const bool has_momentum = c.args[4].to_double() != 0;
  if (!(has_momentum ? is_plain(params, {&grads, &buffers}) : is_plain(params, {&grads}))) return run_by_name(c);
  SgdStep s{};
  s.lr = c.args[3].to_double(), s.momentum = c.args[4].to_double(), s.dampening = c.args[5].to_double();
  s.weight_decay = c.args[6].to_double(), s.nesterov = c.args[7].to_bool(), s.maximize = c.args[8].to_bool();
  s.first = c.args[9].to_bool();
  for (int i = 0; i < params.count; ++i) {
    Tensor *param = params.tensors[i], *buffer = has_momentum ? item(buffers, i) : nullptr;
    s.n = param->numel;
    s.param = param->data;
    s.grad = item(grads, i)->data;
    s.buffer = buffer != nullptr ? buffer->data : nullptr;
    if (!run_unlocked(s.n, [&] { norm_kernels().sgd[type_index(param->dtype)](s); })) return nullptr;
  }
  return Py_NewRef(Py_None);
}

// nn::adam_step_(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, *, lr, beta1, beta2, weight_decay, eps,
// maximize, decoupled_weight_decay)
PyObject* adam_kernel(Call& c) {
  const Arg &params = c.args[0], &grads = c.args[1], &averages = c.args[2], &squares = c.args[3], &greatest = c.args[4];
  const Arg& steps = c.args[5];
  const bool amsgrad = greatest.kind == Kind::Tensors && greatest.count > 0;
  bool plain = amsgrad ? is_plain(params, {&grads, &averages, &squares, &greatest})
                       : is_plain(params, {&grads, &averages, &squares});
  for (int i = 0; plain && i < params.count; ++i) {
    const Tensor* step = item(steps, i);
    plain = step != nullptr && step->is_cpu() && step->numel == 1 && step->dtype == DType::Float32;
  }
  if (!plain) return run_by_name(c);
  AdamStep s{};
  s.lr = c.args[6].to_double(), s.beta1 = c.args[7].to_double(), s.beta2 = c.args[8].to_double();
  s.weight_decay = c.args[9].to_double(), s.eps = c.args[10].to_double();
  s.maximize = c.args[11].to_bool(), s.decoupled = c.args[12].to_bool();
  for (int i = 0; i < params.count; ++i) {
    Tensor *param = params.tensors[i], *average = item(averages, i), *square = item(squares, i), *step = item(steps, i);
    Tensor* top = amsgrad ? item(greatest, i) : nullptr;
    s.step = static_cast<double>(++*reinterpret_cast<float*>(step->data));
    s.n = param->numel;
    s.param = param->data, s.grad = item(grads, i)->data;
    s.average = average->data, s.square = square->data, s.greatest = top != nullptr ? top->data : nullptr;
    if (!run_unlocked(s.n, [&] { norm_kernels().adam[type_index(param->dtype)](s); })) return nullptr;
  }
  return Py_NewRef(Py_None);
}

}  // namespace

bool register_optim() {
  return api->register_kernel("nn::sgd_step_", "cpu", sgd_kernel) == 0 &&
         api->register_kernel("nn::adam_step_", "cpu", adam_kernel) == 0;
}

}  // namespace rl
