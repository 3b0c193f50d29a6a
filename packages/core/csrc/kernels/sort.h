// Order along the middle dimension of contiguous (outer, n, inner) memory. Every dtype but complex; NaN comes after all
// numbers, and equal elements keep their order, except where PyTorch's topk and kthvalue leave them otherwise.
#pragma once
#include <cstdint>

#include "rushlight/dtype.h"
#include "rushlight/isa.h"

namespace rl {

// Both results have the shape of the input; `values` may be null.
void run_sort(DType dtype, const void* x, void* values, int64_t* indices, int64_t outer, int64_t n, int64_t inner,
              bool descending);

// The first k of the sorted order to (outer, k, inner), not always sorted unless `in_order`.
void run_topk(DType dtype, const void* x, void* values, int64_t* indices, int64_t outer, int64_t n, int64_t inner,
              int64_t k, bool largest, bool in_order);

enum class Pick : uint8_t {
  Kth,        // the k-th smallest, from 0
  Median,     // the lower middle; the first NaN if there is one
  NanMedian,  // the lower middle of those that are not NaN
  Mode,       // the most frequent (of those the smallest), and the last place of it
};
// To (outer, inner); n > 0.
void run_pick(Pick pick, DType dtype, const void* x, void* values, int64_t* indices, int64_t outer, int64_t n,
              int64_t inner, int64_t k);

// For each of `rows` rows of m values the place in the row of n sorted boundaries (one row for all if `shared`) where
// it would be inserted: before equal ones, or after them if `right`. `sorter` gives the order of unsorted boundaries.
void run_searchsorted(DType dtype, const void* boundaries, const int64_t* sorter, const void* values, int64_t* out,
                      int64_t rows, int64_t n, int64_t m, bool shared, bool right);

// Per instruction set (sort_isa.cpp).
struct SortTable {
  static constexpr int64_t kLanes = 32;  // the most k, and the least n, of a bound
  uint64_t (*bound_of_least[kNumDTypes])(const void* x, int64_t n, int64_t k, uint64_t mask) = {};
  // `places` has room for n + 1.
  int64_t (*places_up_to[kNumDTypes])(const void* x, int64_t n, uint64_t bound, uint64_t mask, int32_t* places) = {};
  struct Between {
    int64_t found, below, nans;
  };
  Between (*places_between[kNumDTypes])(const void* x, int64_t n, uint64_t low, uint64_t high, int32_t* places) = {};
};

}  // namespace rl

RL_ISA_DECLARE(fill_sort, SortTable)
