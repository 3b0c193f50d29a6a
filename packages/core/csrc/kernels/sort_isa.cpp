// What sorting does for many elements at once.
#include "sort.h"
#include "sort_keys.h"

namespace rl {
namespace RL_ISA {
namespace {

constexpr int64_t kLanes = SortTable::kLanes;

// A key that k of n elements do not exceed: the k-th of the least keys of every kLanes-th element.
template <class T>
uint64_t bound_of_least(const void* elements, int64_t n, int64_t k, uint64_t mask) {
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
  Key bound = 0;
  for (int64_t i = 0; i < kLanes; ++i) {
    Key below = 0;
    for (int64_t j = 0; j < kLanes; ++j) below += least[j] < least[i];
    if (below < static_cast<Key>(k) && least[i] > bound) bound = least[i];
  }
  return bound;
}

// The places of the elements whose keys do not exceed `bound`; returns how many.
template <class T>
int64_t places_up_to(const void* elements, int64_t n, uint64_t bound, uint64_t mask, int32_t* places) {
  using Key = decltype(key_of(T()));
  const T* x = static_cast<const T*>(elements);
  const Key limit = static_cast<Key>(bound), flips = static_cast<Key>(mask);
  int64_t count = 0, begin = 0;
  for (; begin + kLanes <= n; begin += kLanes) {
    Key keys[kLanes], least = ~Key{0};
    for (int64_t i = 0; i < kLanes; ++i) {
      keys[i] = key_of(x[begin + i]) ^ flips;
      least = keys[i] < least ? keys[i] : least;
    }
    if (least > limit) continue;
    for (int64_t i = 0; i < kLanes; ++i) {
      places[count] = static_cast<int32_t>(begin + i);
      count += keys[i] <= limit;
    }
  }
  for (; begin < n; ++begin) {
    places[count] = static_cast<int32_t>(begin);
    count += (key_of(x[begin]) ^ flips) <= limit;
  }
  return count;
}

// The places of the elements whose keys lie from `low` to `high`, those included, and how many are below or NaN.
template <class T>
SortTable::Between places_between(const void* elements, int64_t n, uint64_t low, uint64_t high, int32_t* places) {
  using Key = decltype(key_of(T()));
  const T* x = static_cast<const T*>(elements);
  const Key first = static_cast<Key>(low), range = static_cast<Key>(high - low), nan = ~Key{0};
  int64_t count = 0, begin = 0, below = 0, nans = 0;
  for (; begin + kLanes <= n; begin += kLanes) {
    Key keys[kLanes], lower = 0, highest = 0, nearest = ~Key{0};
    for (int64_t i = 0; i < kLanes; ++i) {
      const Key key = key_of(x[begin + i]);
      keys[i] = key - first;
      lower += key < first;
      highest += key == nan;
      nearest = keys[i] < nearest ? keys[i] : nearest;
    }
    below += lower;
    nans += highest;
    if (nearest > range) continue;
    for (int64_t i = 0; i < kLanes; ++i) {
      places[count] = static_cast<int32_t>(begin + i);
      count += keys[i] <= range;
    }
  }
  for (; begin < n; ++begin) {
    const Key key = key_of(x[begin]);
    places[count] = static_cast<int32_t>(begin);
    count += static_cast<Key>(key - first) <= range;
    below += key < first;
    nans += key == nan;
  }
  return {count, below, nans};
}

template <class T>
void set(SortTable& table, DType dtype) {
  table.places_between[static_cast<int>(dtype)] = places_between<T>;
  table.bound_of_least[static_cast<int>(dtype)] = bound_of_least<T>;
  table.places_up_to[static_cast<int>(dtype)] = places_up_to<T>;
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
