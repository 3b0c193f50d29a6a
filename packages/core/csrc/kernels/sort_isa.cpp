// What sorting does for many elements at once.
#include "sort.h"
#include "sort_keys.h"

namespace rl {
namespace RL_ISA {
namespace {

constexpr int64_t kBlock = 32, kLanes = SortTable::kLanes;

// The first element from x[begin] on whose key, of which `mask` flips bits, is below `bound`; n if there is none.
template <class T>
int64_t next_below(const void* elements, int64_t begin, int64_t n, uint64_t bound, uint64_t mask) {
  using Key = decltype(key_of(T()));
  const T* x = static_cast<const T*>(elements);
  const Key limit = static_cast<Key>(bound), flips = static_cast<Key>(mask);
  for (; begin + kBlock <= n; begin += kBlock) {
    Key least = ~Key{0};
    for (int64_t i = begin; i < begin + kBlock; ++i) {
      const Key key = key_of(x[i]) ^ flips;
      least = key < least ? key : least;
    }
    if (least < limit) break;
  }
  for (; begin < n; ++begin) {
    if ((key_of(x[begin]) ^ flips) < limit) break;
  }
  return begin;
}

// minima[i]: the least key of elements i, i + kLanes, i + 2 kLanes ...; n is at least kLanes.
template <class T>
void lane_minima(const void* elements, int64_t n, uint64_t mask, void* minima) {
  using Key = decltype(key_of(T()));
  const T* x = static_cast<const T*>(elements);
  const Key flips = static_cast<Key>(mask);
  Key least[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) least[i] = ~Key{0};
  for (; n >= kLanes; n -= kLanes, x += kLanes) {
    for (int64_t i = 0; i < kLanes; ++i) {
      const Key key = key_of(x[i]) ^ flips;
      least[i] = key < least[i] ? key : least[i];
    }
  }
  __builtin_memcpy(minima, least, sizeof least);  // what is left over can only lower them
}

template <class T>
void set(SortTable& table, DType dtype) {
  table.next_below[static_cast<int>(dtype)] = next_below<T>;
  table.lane_minima[static_cast<int>(dtype)] = lane_minima<T>;
}

}  // namespace

void fill_sort(SortTable& table) {
  set<Truth>(table, DType::Bool);
  set<uint8_t>(table, DType::UInt8);
  set<int8_t>(table, DType::Int8);
  set<int16_t>(table, DType::Int16);
  set<int32_t>(table, DType::Int32);
  set<int64_t>(table, DType::Int64);
  set<Half>(table, DType::Float16);
  set<BHalf>(table, DType::BFloat16);
  set<float>(table, DType::Float32);
  set<double>(table, DType::Float64);
}

}  // namespace RL_ISA
}  // namespace rl
