// Rows of a table, combined by bags of indices; contiguous float32 or float64.
#pragma once

#include <cstdint>

#include "rushlight/isa.h"

namespace rl {

enum class BagMode : uint8_t { Sum, Mean, Max };

// Bag b has the indices from bounds[b] to bounds[b + 1]; all of them lie in the table, and bounds do not decrease.
struct Bags {
  int64_t bags, rows, width;
  const int64_t *indices, *bounds;
  int64_t padding;  // an index that does not count, -1 for none
  BagMode mode;
  const void* factors;  // of the indices, or null
};

struct BagTable {
  // source (of maxima): the row that each element is from.
  void (*forward[2])(const Bags&, const void* table, void* y, int64_t* source);
  void (*backward[2])(const Bags&, const void* dy, const int64_t* source, void* dtable);
  void (*backward_factors[2])(const Bags&, const void* table, const void* dy, void* dfactors);
};

const BagTable& bag_kernels();

}  // namespace rl

RL_ISA_DECLARE(fill_bag, BagTable)
