// The vectorised parts of random numbers.
#pragma once
#include <cstdint>

#include "rushlight/isa.h"

namespace rl {

struct RandomTable {
  void (*twist)(uint32_t* state);                        // the next 624 words of state
  void (*temper)(const uint32_t* state, uint32_t* out);  // the 624 outputs of a state
  // Blocks of 4 words of Philox 4x32-10, the first at `counter`, whose low half counts up.
  void (*philox)(const uint32_t counter[4], const uint32_t key[2], uint32_t* out, int64_t blocks);
  void (*uniform)(const uint32_t* bits, float* out, int64_t n, float from, float range);
  // Two words each, the high one first.
  void (*uniform_double)(const uint32_t* bits, double* out, int64_t n, double from, double range);
  // In place: groups of 16 uniforms in [0, 1) to 16 normals.
  void (*normal)(float* values, int64_t groups, float mean, float std);
  // A word each, by inversion of the distribution function.
  void (*normal_quantile)(const uint32_t* bits, float* out, int64_t n, float mean, float std);
};
const RandomTable& random_table();

}  // namespace rl

RL_ISA_DECLARE(fill_random_table, RandomTable)
