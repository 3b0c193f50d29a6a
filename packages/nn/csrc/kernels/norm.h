// Normalisation, cross entropy and optimiser steps on contiguous float32 or float64 memory.
#pragma once

#include <cstdint>

#include "rushlight/dtype.h"
#include "rushlight/isa.h"

namespace rl {

// An input (outer, channels, inner). Batch norm takes statistics over outer and inner, one per channel.
struct BatchNorm {
  int64_t outer, channels, inner;
  const void *x, *weight, *bias;     // weight and bias may be null
  void *y, *mean, *scale;            // per channel: the mean, and 1 / sqrt(var + eps)
  void *running_mean, *running_var;  // may be null
  bool training;                     // otherwise the running statistics are used, and x only scaled
  double momentum, eps;
};

struct BatchNormBackward {
  int64_t outer, channels, inner;
  const void *x, *dy, *weight, *mean, *scale;
  void *dx, *dweight, *dbias;  // dx may be null
  bool training;
};

// An input (rows, length), normalised row by row. The element i of a row is scaled by weight[(row % row_period *
// row_channels) + i / repeat]: layer norm has period 1 and repeat 1, group norm the groups and the image. What is not
// centred keeps its mean, for which 0 stands.
struct RowNorm {
  int64_t rows, length, period, repeat;
  const void *x, *weight, *bias;
  void *y, *mean, *scale;  // per row
  double eps;
  bool centred;
};

struct RowNormBackward {
  int64_t rows, length, period, repeat;
  const void *x, *dy, *weight, *mean, *scale;
  void *dx, *dweight, *dbias;  // any may be null
  bool centred;
};

// Scores (outer, classes, inner), a class for each (outer, inner).
struct CrossEntropy {
  int64_t outer, classes, inner;
  const void *x, *weight;  // weight may be null
  const int64_t* target;   // checked: each a class or ignore_index
  int64_t ignore_index;
  double smoothing;
  // (outer, inner): the loss, the greatest score, the logarithm of the sum of exponentials of scores less that, and the
  // weight of the target, 0 where ignored.
  void *loss, *greatest, *log_total, *factor;
};

struct CrossEntropyBackward {
  int64_t outer, classes, inner;
  const void *x, *weight, *greatest, *log_total;
  const int64_t* target;
  int64_t ignore_index;
  double smoothing;
  const void* dloss;  // (outer, inner) with this stride, 0 for one number
  int64_t dloss_stride;
  double divisor;  // by which dloss is divided
  void* dx;
};

// p -= lr * d with d = grad (+ weight_decay * p), through a momentum buffer if there is one.
struct SgdStep {
  int64_t n;
  void* param;
  const void* grad;
  void* buffer;  // null without momentum
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize, first;
};

struct AdamStep {
  int64_t n;
  void* param;
  const void* grad;
  void *average, *square, *greatest;  // greatest: the maximum of square so far, or null
  double lr, beta1, beta2, weight_decay, eps, step;
  bool maximize, decoupled;
};

struct NormTable {  // float32, float64
  void (*batch_norm[2])(const BatchNorm&);
  void (*batch_norm_backward[2])(const BatchNormBackward&);
  void (*row_norm[2])(const RowNorm&);
  void (*row_norm_backward[2])(const RowNormBackward&);
  void (*cross_entropy[2])(const CrossEntropy&);
  void (*cross_entropy_backward[2])(const CrossEntropyBackward&);
  void (*sgd[2])(const SgdStep&);
  void (*adam[2])(const AdamStep&);
};

// The kernels that fit this machine.
const NormTable& norm_kernels();

}  // namespace rl

RL_ISA_DECLARE(fill_norm, NormTable)
