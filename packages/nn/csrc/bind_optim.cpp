// Kernels of the optimiser steps: one pass over each parameter.
#include <cmath>

#include "bind.h"
#include "kernels/norm.h"
#include "kernels/optim.h"

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

// The step of all parameters by a kernel of OptimTable. The arguments are params, grads, `states` lists of tensors of
// their size and `scalars` lists of one number for each, the last of them how often it was stepped. prepare(s, number
// of the step, the parameter's scalars, numbers) fills in what holds for the parameter as a whole. `numbers` are the
// arguments after the lists, the first is lr; `decay`, `maximize` and `decoupled` say where others are, -1: nowhere.
template <class F>
PyObject* step_each(Call& c, int states, int scalars, void (*const kernel[2])(const OptimStep&), int decay,
                    int maximize, int decoupled, F&& prepare) {
  const Arg &params = c.args[0], &grads = c.args[1], *numbers = c.args + 2 + states + scalars;
  bool plain = is_plain(params, {&grads});
  const auto is_used = [&](int k) { return c.args[2 + k].kind == Kind::Tensors && c.args[2 + k].count > 0; };
  // Of three lists the last two may be empty.
  for (int k = 0; plain && k < states; ++k)
    plain = is_used(k) ? is_plain(params, {&c.args[2 + k]}) : states == 3 && k > 0;
  for (int k = states; plain && k < states + scalars; ++k) {
    for (int i = 0; plain && i < params.count; ++i) {
      const Tensor* t = item(c.args[2 + k], i);
      plain = t != nullptr && t->is_cpu() && t->numel == 1 && t->dtype == DType::Float32 && !t->storage->read_only;
    }
  }
  if (!plain) return run_by_name(c);
  const double lr = numbers[0].to_double(), weight_decay = numbers[decay].to_double();
  const bool is_decoupled = decoupled >= 0 && numbers[decoupled].to_bool();
  OptimStep s{};
  s.shrink = is_decoupled ? 1 - lr * weight_decay : 1, s.decay = is_decoupled ? 0 : weight_decay;
  s.sign = numbers[maximize].to_bool() ? -1 : 1;
  for (int i = 0; i < params.count; ++i) {
    Tensor* param = params.tensors[i];
    float* scalar[2] = {};
    for (int k = 0; k < scalars; ++k) scalar[k] = reinterpret_cast<float*>(item(c.args[2 + states + k], i)->data);
    const double step = static_cast<double>(++*scalar[scalars - 1]);
    s.n = param->numel, s.param = param->data, s.grad = item(grads, i)->data;
    for (int k = 0; k < states; ++k) s.state[k] = is_used(k) ? item(c.args[2 + k], i)->data : nullptr;
    prepare(s, step, scalar[0], numbers);
    if (!run_unlocked(s.n, [&] { kernel[type_index(param->dtype)](s); })) return nullptr;
  }
  return Py_NewRef(Py_None);
}

// nn::adagrad_step_(params, grads, sums, steps, *, lr, lr_decay, weight_decay, eps, maximize)
PyObject* adagrad_kernel(Call& c) {
  return step_each(c, 1, 1, optim_kernels().adagrad, 2, 4, -1, [](OptimStep& s, double step, float*, const Arg* n) {
    s.rate = n[0].to_double() / (1 + (step - 1) * n[1].to_double());
    s.number[0] = n[3].to_double();
  });
}

// nn::adadelta_step_(params, grads, square_avgs, acc_deltas, steps, *, lr, rho, weight_decay, eps, maximize)
PyObject* adadelta_kernel(Call& c) {
  return step_each(c, 2, 1, optim_kernels().adadelta, 2, 4, -1, [](OptimStep& s, double, float*, const Arg* n) {
    s.rate = n[0].to_double(), s.number[0] = n[1].to_double(), s.number[1] = n[3].to_double();
  });
}

// nn::rmsprop_step_(params, grads, square_avgs, momentum_buffers, grad_avgs, steps, *, lr, alpha, weight_decay, eps,
// momentum, maximize)
PyObject* rmsprop_kernel(Call& c) {
  return step_each(c, 3, 1, optim_kernels().rmsprop, 2, 5, -1, [](OptimStep& s, double, float*, const Arg* n) {
    s.rate = n[0].to_double(), s.number[0] = n[1].to_double(), s.number[1] = n[3].to_double();
    s.number[2] = n[4].to_double();
  });
}

// lr, beta1, beta2, weight_decay, eps, ... of the kernels below.
void set_betas(OptimStep& s, const Arg* n) {
  s.number[0] = n[1].to_double(), s.number[1] = n[2].to_double(), s.number[2] = n[4].to_double();
}

// nn::adamax_step_(params, grads, exp_avgs, exp_infs, steps, *, lr, beta1, beta2, weight_decay, eps, maximize)
PyObject* adamax_kernel(Call& c) {
  return step_each(c, 2, 1, optim_kernels().adamax, 3, 5, -1, [](OptimStep& s, double step, float*, const Arg* n) {
    set_betas(s, n);
    s.rate = n[0].to_double() / (1 - std::pow(s.number[0], step));
  });
}

// nn::nadam_step_(params, grads, exp_avgs, exp_avg_sqs, mu_products, steps, *, lr, beta1, beta2, weight_decay, eps,
// momentum_decay, maximize, decoupled_weight_decay)
PyObject* nadam_kernel(Call& c) {
  return step_each(c, 2, 2, optim_kernels().nadam, 3, 6, 7, [](OptimStep& s, double step, float* mu, const Arg* n) {
    set_betas(s, n);
    const double lr = n[0].to_double(), decay = n[5].to_double();
    const auto momentum = [&](double t) { return s.number[0] * (1 - 0.5 * std::pow(0.96, t * decay)); };
    const double now = momentum(step), next = momentum(step + 1);
    *mu = static_cast<float>(static_cast<double>(*mu) * now);
    const double product = static_cast<double>(*mu);
    s.rate = lr * (1 - now) / (1 - product);
    s.number[3] = 1 / std::sqrt(1 - std::pow(s.number[1], step));
    s.number[4] = lr * next / (1 - product * next);
  });
}

// nn::radam_step_(params, grads, exp_avgs, exp_avg_sqs, steps, *, lr, beta1, beta2, weight_decay, eps, maximize,
// decoupled_weight_decay)
PyObject* radam_kernel(Call& c) {
  return step_each(c, 2, 1, optim_kernels().radam, 3, 5, 6, [](OptimStep& s, double step, float*, const Arg* n) {
    set_betas(s, n);
    const double power = std::pow(s.number[1], step), longest = 2 / (1 - s.number[1]) - 1;
    const double length = longest - 2 * step * power / (1 - power);  // of the approximated simple moving average
    s.rate = n[0].to_double() / (1 - std::pow(s.number[0], step));
    s.number[3] =
        length > 5
            ? std::sqrt((length - 4) * (length - 2) * longest * (1 - power) / ((longest - 4) * (longest - 2) * length))
            : 0;
  });
}

}  // namespace

bool register_optim() {
  return api->register_kernel("nn::sgd_step_", "cpu", sgd_kernel) == 0 &&
         api->register_kernel("nn::adam_step_", "cpu", adam_kernel) == 0 &&
         api->register_kernel("nn::adagrad_step_", "cpu", adagrad_kernel) == 0 &&
         api->register_kernel("nn::adadelta_step_", "cpu", adadelta_kernel) == 0 &&
         api->register_kernel("nn::adamax_step_", "cpu", adamax_kernel) == 0 &&
         api->register_kernel("nn::nadam_step_", "cpu", nadam_kernel) == 0 &&
         api->register_kernel("nn::radam_step_", "cpu", radam_kernel) == 0 &&
         api->register_kernel("nn::rmsprop_step_", "cpu", rmsprop_kernel) == 0;
}

}  // namespace rl
