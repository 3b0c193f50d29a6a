// Connectionist temporal classification (Graves et al., 2006); contiguous float32 or float64.
#pragma once

#include <cstdint>

#include "rushlight/dtype.h"

namespace rl {

// Log probabilities (steps, batch, classes); targets (batch, longest); the lengths fit both.
struct Ctc {
  int64_t steps, batch, classes, longest;
  const void* log_probs;
  const int64_t *targets, *input_lengths, *target_lengths;
  int64_t blank;
};

// loss (batch); history (batch, steps, 2 * longest + 1): the logarithms of the forward variables.
void ctc(DType dtype, const Ctc& c, void* loss, void* history);
// The gradient of the scores of which log_probs are the log-softmax.
void ctc_backward(DType dtype, const Ctc& c, const void* dloss, const void* loss, const void* history,
                  bool zero_infinity, void* dlog_probs);

}  // namespace rl
