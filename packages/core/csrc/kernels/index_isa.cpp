// What indexing does for many indices at once.
#include "index.h"

namespace rl {
namespace RL_ISA {
namespace {

// Where neither i - low nor size - 1 - i has a sign all is well; operations that every machine has vectors for.
bool all_inside(const int64_t* index, int64_t n, int64_t low, int64_t size) {
  uint64_t signs = 0;
  const auto first = static_cast<uint64_t>(low), last = static_cast<uint64_t>(size - 1);
  for (int64_t i = 0; i < n; ++i)
    signs |= (static_cast<uint64_t>(index[i]) - first) | (last - static_cast<uint64_t>(index[i]));
  return !(signs >> 63);
}

void offsets_of(const IndexList& list, int64_t begin, int64_t n, bool adds, int64_t* offsets) {
  const int64_t* index = list.values + begin;
  const int64_t size = list.size, stride = list.stride, keep = adds ? ~int64_t{0} : 0;
  for (int64_t i = 0; i < n; ++i) offsets[i] = (offsets[i] & keep) + (index[i] + (index[i] >> 63 & size)) * stride;
}

void narrow(const int64_t* index, int64_t n, uint16_t* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<uint16_t>(index[i]);
}

}  // namespace

void fill_index(IndexTable& table) {
  table.all_inside = all_inside;
  table.narrow = narrow;
  table.offsets = offsets_of;
}

}  // namespace RL_ISA
}  // namespace rl
