// Where the ISA source of ranges puts its functions.
#pragma once
#include "pointwise.h"
#include "rushlight/isa.h"

namespace rl {

// Writes elements [begin, end) of n. The last two: start and step of arange, start and end of linspace.
using Range = void (*)(char* dst, int64_t begin, int64_t end, int64_t n, double, double);
using IntegerRange = void (*)(char* dst, int64_t begin, int64_t end, int64_t start, int64_t step);

struct RangeTable {
  Range arange[kNumDTypes] = {};
  Range linspace[kNumDTypes] = {};
  IntegerRange integer_arange[kNumDTypes] = {};
};

}  // namespace rl

RL_ISA_DECLARE(fill_ranges, RangeTable)
