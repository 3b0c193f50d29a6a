// Steps of the optimisers that scale gradients by their squares, on contiguous float32 or float64 memory.
#pragma once

#include <cstdint>

#include "rushlight/isa.h"

namespace rl {

// One parameter of n elements: param changes by its gradient and up to three states of its size, null where unused.
// What holds for the parameter as a whole is in `rate` (of the step) and `number`, in the order of each kernel.
struct OptimStep {
  int64_t n;
  void* param;
  const void* grad;
  void* state[3];
  double shrink, decay;  // the parameter is multiplied by the one, and the other times it added to the gradient
  double sign;           // of the gradient
  double rate, number[5];
};

struct OptimTable {                       // float32, float64; states and numbers:
  void (*adagrad[2])(const OptimStep&);   // sum; eps
  void (*adadelta[2])(const OptimStep&);  // square_avg, acc_delta; rho, eps
  void (*adamax[2])(const OptimStep&);    // exp_avg, exp_inf; beta1, beta2, eps
  void (*nadam[2])(const OptimStep&);     // exp_avg, exp_avg_sq; beta1, beta2, eps, 1 / sqrt(correction), rate of mean
  void (*radam[2])(const OptimStep&);     // exp_avg, exp_avg_sq; beta1, beta2, eps, rectification or 0 for none
  void (*rmsprop[2])(const OptimStep&);   // square_avg, momentum_buffer, grad_avg; alpha, eps, momentum
};

// The kernels that fit this machine.
const OptimTable& optim_kernels();

}  // namespace rl

RL_ISA_DECLARE(fill_optim, OptimTable)
