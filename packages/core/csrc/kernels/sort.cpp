#include "sort.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "../allocator.h"
#include "../parallel.h"
#include "rushlight/half.h"
#include "sort_keys.h"

namespace rl {
namespace {

using base::BHalf;
using base::Half;
using base::key_of;
using base::Truth;

// A key and the place of its element in one number, or in two where they do not fit.
struct Packed {
  uint64_t value;
  static Packed make(uint64_t key, int64_t index) { return {key << 32 | static_cast<uint64_t>(index)}; }
  uint64_t key() const { return value >> 32; }
  int64_t index() const { return static_cast<int64_t>(value & 0xffffffffu); }
  bool operator<(Packed o) const { return value < o.value; }
  static constexpr uint64_t kMask = 0xffffffffu;
  static constexpr int kKeyBits = 32;
};
struct Pair {
  uint64_t k;
  int64_t i;
  static Pair make(uint64_t key, int64_t index) { return {key, index}; }
  uint64_t key() const { return k; }
  int64_t index() const { return i; }
  bool operator<(const Pair& o) const { return k < o.k || (k == o.k && i < o.i); }
  static constexpr uint64_t kMask = ~uint64_t{0};
  static constexpr int kKeyBits = 64;
};

// How the keys of a tensor come to fit 32 bits: they count from the least, in steps where that is not enough.
struct Scale {
  uint64_t origin = 0;
  int shift = 0;
};

// `flip` reverses the order of keys, not that of places: equal elements stay in order.
template <class Item, class T>
void load_items(const T* x, int64_t stride, int64_t n, Item* items, bool flip, Scale scale) {
  const uint64_t mask = flip ? Item::kMask : 0;
  for (int64_t i = 0; i < n; ++i)
    items[i] = Item::make(((key_of(x[i * stride]) - scale.origin) >> scale.shift) ^ mask, i);
}

// Calls f with the elements at x as what they are.
template <class F>
auto with_type(DType dtype, const void* x, F&& f) {
  switch (dtype) {
    case DType::Bool: return f(static_cast<const Truth*>(x));
    case DType::UInt8: return f(static_cast<const uint8_t*>(x));
    case DType::Int8: return f(static_cast<const int8_t*>(x));
    case DType::Int16: return f(static_cast<const int16_t*>(x));
    case DType::Int32: return f(static_cast<const int32_t*>(x));
    case DType::Int64: return f(static_cast<const int64_t*>(x));
    case DType::Float16: return f(static_cast<const Half*>(x));
    case DType::BFloat16: return f(static_cast<const BHalf*>(x));
    case DType::Float32: return f(static_cast<const float*>(x));
    default: return f(static_cast<const double*>(x));
  }
}

template <class Item>
void load(DType dtype, const char* x, int64_t stride, int64_t n, Item* items, bool flip, Scale scale = {}) {
  with_type(dtype, x, [&](const auto* from) { load_items(from, stride, n, items, flip, scale); });
}

Scale scale_of(DType dtype, const void* x, int64_t count) {
  return with_type(dtype, x, [&](const auto* v) {
    auto least = key_of(v[0]), most = least;
    for (int64_t i = 1; i < count; ++i) {
      const auto key = key_of(v[i]);
      least = std::min(least, key), most = std::max(most, key);
    }
    Scale scale{least, 0};
    while ((most - least) >> scale.shift > Packed::kMask) ++scale.shift;
    return scale;
  });
}

// Puts items in order whose keys were equal for their scale only.
void settle(DType dtype, const char* x, int64_t stride, int64_t n, Packed* items, bool flip) {
  with_type(dtype, x, [&](const auto* from) {
    const auto before = [&](Packed a, Packed b) {
      const auto ka = key_of(from[a.index() * stride]), kb = key_of(from[b.index() * stride]);
      return ka == kb ? a.index() < b.index() : (ka < kb) != flip;
    };
    for (int64_t i = 0, end; i < n; i = end) {
      for (end = i + 1; end < n && items[end].key() == items[i].key();) ++end;
      if (end > i + 1) std::sort(items + i, items + end, before);
    }
  });
}

// ---- Sorting ----

constexpr int64_t kRadixFrom = 256;

// One counting pass by `bits` bits of the key from `shift`.
template <class Item>
void radix_pass(const Item* from, Item* to, int64_t n, int shift, int bits, int64_t* counts) {
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  std::fill(counts, counts + mask + 1, 0);
  for (int64_t i = 0; i < n; ++i) ++counts[from[i].key() >> shift & mask];
  int64_t start = 0;
  for (uint64_t d = 0; d <= mask; ++d) {
    const int64_t count = counts[d];
    counts[d] = start;
    start += count;
  }
  for (int64_t i = 0; i < n; ++i) to[counts[from[i].key() >> shift & mask]++] = from[i];
}

// Sorts the items, which are in order of place; `spare` has room for as many. The result is in the one returned.
template <class Item>
Item* sort_items(Item* items, Item* spare, int64_t n) {
  if (n < kRadixFrom) {
    std::sort(items, items + n);
    return items;
  }
  uint64_t differences = 0;
  for (int64_t i = 1; i < n; ++i) differences |= items[i].key() ^ items[0].key();
  int64_t counts[1 << 11];
  const int bits = n < (1 << 14) ? 8 : 11;
  for (int shift = 0; differences >> shift != 0; shift += bits) {
    if ((differences >> shift & ((uint64_t{1} << bits) - 1)) == 0) continue;
    radix_pass(items, spare, n, shift, bits, counts);
    std::swap(items, spare);
    if (shift + bits >= Item::kKeyBits) break;
  }
  return items;
}

template <class T>
void gather_as(const char* x, int64_t stride, char* out, int64_t out_stride, int64_t n, const int64_t* index) {
  for (int64_t i = 0; i < n; ++i) {
    reinterpret_cast<T*>(out)[i * out_stride] = reinterpret_cast<const T*>(x)[index[i * out_stride] * stride];
  }
}

// The elements at index[0], index[out_stride], ... of a line.
void gather(int64_t size, const char* x, int64_t stride, char* out, int64_t out_stride, int64_t n,
            const int64_t* index) {
  switch (size) {
    case 1: return gather_as<uint8_t>(x, stride, out, out_stride, n, index);
    case 2: return gather_as<uint16_t>(x, stride, out, out_stride, n, index);
    case 4: return gather_as<uint32_t>(x, stride, out, out_stride, n, index);
    default: return gather_as<uint64_t>(x, stride, out, out_stride, n, index);
  }
}

constexpr int64_t kMostPacked = 0xffffffff;

// Whether the keys as they are and the places in a line of n fit one number.
bool packs(DType dtype, int64_t n) { return dtype != DType::Int64 && dtype != DType::Float64 && n <= kMostPacked; }

// Calls f(line, items, spare) for every line of a tensor.
template <class F>
void for_lines(bool packed, int64_t lines, int64_t n, F&& f) {
  const auto run = [&](auto item) {
    using Item = decltype(item);
    parallel_for(0, lines, std::max<int64_t>(1, 2000 / std::max<int64_t>(1, n)), [&](int64_t begin, int64_t end) {
      Scratch memory(static_cast<size_t>(2 * n) * sizeof(Item));
      Item* items = memory.as<Item>();
      for (int64_t line = begin; line < end; ++line) f(line, items, items + n);
    });
  };
  if (packed) {
    run(Packed{});
  } else {
    run(Pair{});
  }
}

// ---- Selection out of many ----

constexpr int64_t kManyItems = 512;  // from which the room of `least_items` is there
constexpr int64_t kBlockItems = 1024;

const SortTable& sort_table() {
  static const SortTable table = [] {
    SortTable filled;
    RL_ISA_CALL(fill_sort, filled);
    return filled;
  }();
  return table;
}

// The elements of a block, gathered into `copies` where they do not lie side by side.
template <class T>
const T* block_of(const T* x, int64_t stride, int64_t n, T* copies) {
  if (stride == 1) return x;
  for (int64_t i = 0; i < n; ++i) copies[i] = x[i * stride];
  return copies;
}

// The k least items of a line, in order, for a k that is small beside n: of every block those are kept that do not
// exceed the worst of the best k of the blocks before. Whether no other k items would do.
template <class Item, class T>
bool least_items(DType dtype, const T* x, int64_t stride, int64_t n, Item* items, int64_t k, bool flip) {
  using Key = decltype(key_of(x[0]));
  const auto bound_of_least = sort_table().bound_of_least[static_cast<int>(dtype)];
  const auto places_up_to = sort_table().places_up_to[static_cast<int>(dtype)];
  const Key mask = flip ? static_cast<Key>(Item::kMask) : 0;
  const int64_t room = 4 * k + 64;
  Key worst = ~Key{0};
  bool tied = false;  // an item that is not kept has the key `worst`
  int64_t kept = 0;
  const auto keep_best = [&](auto select) {
    select();
    const Key last = static_cast<Key>(items[k - 1].key());
    tied = (tied && last == worst) ||
           std::any_of(items + k, items + kept, [&](const Item& i) { return static_cast<Key>(i.key()) == last; });
    worst = last;
    kept = k;
  };
  T copies[kBlockItems];
  int32_t places[kBlockItems + 1];
  for (int64_t begin = 0; begin < n; begin += kBlockItems) {
    const int64_t count = std::min(kBlockItems, n - begin);
    const T* block = block_of(x + begin * stride, stride, count, copies);
    if (begin == 0 && k <= SortTable::kLanes) worst = static_cast<Key>(bound_of_least(block, count, k, mask));
    const int64_t found = places_up_to(block, count, worst, mask, places);
    for (int64_t i = 0; i < found; ++i) {
      items[kept++] = Item::make(key_of(block[places[i]]) ^ mask, begin + places[i]);
    }
    if (kept > room) keep_best([&] { std::nth_element(items, items + k - 1, items + kept); });
  }
  keep_best([&] { std::sort(items, items + kept); });
  return !tied && std::adjacent_find(items, items + k,
                                     [](const Item& a, const Item& b) { return a.key() == b.key(); }) == items + k;
}

constexpr int64_t kSample = 1024, kManySamples = 8 * kSample;
constexpr int64_t kSpread = 64;  // four standard deviations of a rank in a sample, as it is in the whole
constexpr int64_t kChunkItems = 16 * kBlockItems;

// A place in each of kSample pieces of n elements, at random within it lest it follows a period of the data.
int64_t sample_place(int64_t i, int64_t n) {
  const int64_t piece = n / kSample;
  const uint64_t mixed = static_cast<uint64_t>(i + 1) * 0x9e3779b97f4a7c15;
  return i * piece + static_cast<int64_t>((mixed >> 32) % static_cast<uint64_t>(piece));
}

// The item of rank k among n. Between two bounds from a sample few are left, nearly always those that matter.
template <class Item>
Item item_of_rank(Item* items, Item* spare, int64_t n, int64_t k) {
  while (n >= kManySamples) {
    Item sample[kSample];
    for (int64_t i = 0; i < kSample; ++i) sample[i] = items[sample_place(i, n)];
    std::sort(sample, sample + kSample);
    const int64_t at = static_cast<int64_t>(static_cast<double>(k) / static_cast<double>(n) * kSample);
    const Item low = sample[std::max<int64_t>(0, at - kSpread)];
    const Item high = sample[std::min<int64_t>(kSample - 1, at + kSpread)];
    int64_t below = 0, found = 0;
    for (int64_t i = 0; i < n; ++i) {
      const bool lower = items[i] < low;
      spare[found] = items[i];
      below += lower;
      found += !lower & !(high < items[i]);
    }
    if (k < below || k >= below + found) break;
    std::swap(items, spare);
    n = found;
    k -= below;
  }
  std::nth_element(items, items + k, items + n);
  return items[k];
}

// Finds an element of a long line by its rank, of which `rank` is asked with the number of NaNs, whose keys are the
// highest: as above, where the first round reads the elements themselves. Negative where the sample misled.
template <class Item, class T, class Rank>
int64_t select(DType dtype, const T* x, int64_t stride, int64_t n, Item* items, Item* spare, Rank&& rank) {
  using Key = decltype(key_of(x[0]));
  Key sample[kSample];
  for (int64_t i = 0; i < kSample; ++i) sample[i] = key_of(x[sample_place(i, n) * stride]);
  std::sort(sample, sample + kSample);
  const double share = static_cast<double>(n) / kSample;
  const int64_t sampled_nans = std::end(sample) - std::lower_bound(sample, sample + kSample, static_cast<Key>(~Key{0}));
  const int64_t at = static_cast<int64_t>(
      static_cast<double>(rank(static_cast<int64_t>(static_cast<double>(sampled_nans) * share))) / share);
  const Key low = at < kSpread ? 0 : sample[at - kSpread];
  const Key high = at + kSpread >= kSample ? ~Key{0} : sample[at + kSpread];

  const auto places_between = sort_table().places_between[static_cast<int>(dtype)];
  const int64_t chunks = (n - 1) / kChunkItems + 1;
  std::vector<SortTable::Between> counts(static_cast<size_t>(chunks));
  parallel_for(0, chunks, 2, [&](int64_t first, int64_t last) {
    T copies[kBlockItems];
    int32_t places[kBlockItems + 1];
    for (int64_t c = first; c < last; ++c) {
      SortTable::Between& sum = counts[static_cast<size_t>(c)] = {};
      Item* kept = spare + c * kChunkItems;
      for (int64_t begin = c * kChunkItems; begin < std::min(n, (c + 1) * kChunkItems); begin += kBlockItems) {
        const int64_t count = std::min(kBlockItems, n - begin);
        const T* block = block_of(x + begin * stride, stride, count, copies);
        const SortTable::Between b = places_between(block, count, low, high, places);
        for (int64_t i = 0; i < b.found; ++i) {
          kept[sum.found + i] = Item::make(key_of(block[places[i]]), begin + places[i]);
        }
        sum = {sum.found + b.found, sum.below + b.below, sum.nans + b.nans};
      }
    }
  });
  int64_t found = 0, below = 0, nans = 0;
  for (int64_t c = 0; c < chunks; ++c) {
    const SortTable::Between& b = counts[static_cast<size_t>(c)];
    std::copy_n(spare + c * kChunkItems, b.found, items + found);
    found += b.found, below += b.below, nans += b.nans;
  }
  const int64_t k = rank(nans) - below;
  if (k < 0 || k >= found) return -1;
  // Equal keys are in the order of their places already.
  return low == high ? items[k].index() : item_of_rank(items, spare, found, k).index();
}

template <class Item>
int64_t count_nans(DType dtype, const Item* items, int64_t n) {
  if (!is_floating(dtype)) return 0;
  return std::count_if(items, items + n, [](const Item& i) { return i.key() == Item::kMask; });
}

// The rank of a median among n elements, of which some are NaN: the first NaN where there is no other answer.
int64_t rank_of(Pick pick, DType dtype, int64_t n, int64_t nans, int64_t k) {
  if (pick == Pick::Kth) return k;
  if (!is_floating(dtype)) nans = 0;
  if (nans == n || (nans > 0 && pick == Pick::Median)) return n - nans;
  return (n - nans - 1) / 2;
}

// ---- Ties ----

// Whoever returns places of equal elements has to choose. topk and kthvalue choose as PyTorch does, whose selections
// look at values alone: where elements tie, and only there, a line is gone through in the same way.
template <class Item>
bool by_key(const Item& a, const Item& b) {
  return a.key() < b.key();
}

template <class Item>
void first_by_key(Item* items, int64_t n, int64_t k, bool in_order) {
  if (k * 64 <= n) {
    std::partial_sort(items, items + k, items + n, by_key<Item>);
  } else {
    std::nth_element(items, items + k - 1, items + n, by_key<Item>);
    if (in_order) std::sort(items, items + k - 1, by_key<Item>);
  }
}

constexpr int kManyRounds = 1000;  // of a line that is made to take them

// Hoare's selection around the median of the first, middle and last ("select" of Numerical Recipes).
template <class Item>
int64_t rank_by_key(Item* items, int64_t n, int64_t k) {
  int64_t low = 0, high = n - 1;
  const auto order = [&](int64_t i, int64_t j) {
    if (by_key(items[j], items[i])) std::swap(items[i], items[j]);
  };
  for (int rounds = 0; high > low + 1; ++rounds) {
    if (rounds == kManyRounds) {
      std::nth_element(items + low, items + k, items + high + 1, by_key<Item>);
      break;
    }
    std::swap(items[low + (high - low) / 2], items[low + 1]);
    order(low + 1, high);
    order(low, high);
    order(low + 1, low);
    const Item pivot = items[low];
    int64_t i = low + 1, j = high;
    for (;;) {
      do ++i;
      while (by_key(items[i], pivot));
      do --j;
      while (by_key(pivot, items[j]));
      if (j < i) break;
      std::swap(items[i], items[j]);
    }
    std::swap(items[low], items[j]);
    if (j <= k) low = i;
    if (j >= k) high = j - 1;
  }
  if (high == low + 1) order(low, high);
  return items[k].index();
}

// How many elements of a line are equal to the one at `index`.
int64_t count_equal(DType dtype, const char* x, int64_t stride, int64_t n, int64_t index) {
  return with_type(dtype, x, [&](const auto* from) {
    const auto key = key_of(from[index * stride]);
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) count += key_of(from[i * stride]) == key;
    return count;
  });
}

template <class Item>
int64_t pick_one(Pick pick, DType dtype, Item* items, Item* spare, int64_t n, int64_t k) {
  if (pick == Pick::Mode) {
    const Item* sorted = sort_items(items, spare, n);
    int64_t best = 0, best_count = 0;
    for (int64_t i = 0; i < n;) {
      int64_t end = i + 1;
      while (end < n && sorted[end].key() == sorted[i].key()) ++end;
      if (end - i > best_count) best_count = end - i, best = sorted[end - 1].index();
      i = end;
    }
    return best;
  }
  k = rank_of(pick, dtype, n, count_nans(dtype, items, n), k);
  std::nth_element(items, items + k, items + n);
  return items[k].index();
}

// Writes the first k of every line of n elements in the order that order(line, items, spare) returns.
template <class F>
void order_lines(bool packed, DType dtype, const void* x, void* values, int64_t* indices, int64_t outer, int64_t n,
                 int64_t inner, int64_t k, F&& order) {
  const int64_t size = itemsize(dtype);
  for_lines(packed, outer * inner, n, [&](int64_t line, auto* items, auto* spare) {
    const int64_t to = line / inner * k * inner + line % inner;
    const char* from = static_cast<const char*>(x) + (line / inner * n * inner + line % inner) * size;
    const auto* sorted = order(from, items, spare);
    for (int64_t i = 0; i < k; ++i) indices[to + i * inner] = sorted[i].index();
    if (values != nullptr) gather(size, from, inner, static_cast<char*>(values) + to * size, inner, k, indices + to);
  });
}

}  // namespace

void run_sort(DType dtype, const void* x, void* values, int64_t* indices, int64_t outer, int64_t n, int64_t inner,
              bool descending) {
  if (outer * n * inner == 0) return;
  const Scale scale = packs(dtype, n) ? Scale() : scale_of(dtype, x, outer * n * inner);
  order_lines(
      n <= kMostPacked, dtype, x, values, indices, outer, n, inner, n, [&](const char* line, auto* items, auto* spare) {
        load(dtype, line, inner, n, items, descending, std::is_same_v<decltype(items), Pair*> ? Scale() : scale);
        auto* sorted = sort_items(items, spare, n);
        if constexpr (std::is_same_v<decltype(items), Packed*>) {
          if (scale.shift > 0) settle(dtype, line, inner, n, sorted, descending);
        }
        return sorted;
      });
}

void run_topk(DType dtype, const void* x, void* values, int64_t* indices, int64_t outer, int64_t n, int64_t inner,
              int64_t k, bool largest, bool in_order) {
  if (k == 0) return;
  const bool few = in_order && k * 64 <= n && n >= kManyItems;
  order_lines(
      packs(dtype, n), dtype, x, values, indices, outer, n, inner, k, [&](const char* line, auto* items, auto*) {
        const auto clear = [&](const auto* from) { return least_items(dtype, from, inner, n, items, k, largest); };
        if (few && with_type(dtype, line, clear)) return items;
        load(dtype, line, inner, n, items, largest);
        first_by_key(items, n, k, in_order);
        return items;
      });
}

void run_pick(Pick pick, DType dtype, const void* x, void* values, int64_t* indices, int64_t outer, int64_t n,
              int64_t inner, int64_t k) {
  const int64_t size = itemsize(dtype);
  for_lines(packs(dtype, n), outer * inner, n, [&](int64_t line, auto* items, auto* spare) {
    const char* from = static_cast<const char*>(x) + (line / inner * n * inner + line % inner) * size;
    const bool tied = pick == Pick::Kth && !is_floating(dtype);  // as integers mostly are
    if (tied) {
      load(dtype, from, inner, n, items, false);
      indices[line] = rank_by_key(items, n, k);
    } else {
      indices[line] = -1;
      if (pick != Pick::Mode && n >= kManySamples) {
        const auto rank = [&](int64_t nans) { return rank_of(pick, dtype, n, nans, k); };
        indices[line] = with_type(
            dtype, from, [&](const auto* elements) { return select(dtype, elements, inner, n, items, spare, rank); });
      }
      if (indices[line] < 0) {
        load(dtype, from, inner, n, items, false);
        indices[line] = pick_one(pick, dtype, items, spare, n, k);
      }
    }
    if (pick == Pick::Kth && !tied && count_equal(dtype, from, inner, n, indices[line]) > 1) {
      load(dtype, from, inner, n, items, false);
      indices[line] = rank_by_key(items, n, k);
    }
    gather(size, from, inner, static_cast<char*>(values) + line * size, 1, 1, indices + line);
  });
}

namespace {

template <class T>
void search(const T* boundaries, const int64_t* sorter, const T* values, int64_t* out, int64_t rows, int64_t n,
            int64_t m, bool shared, bool right) {
  parallel_for(0, rows * m, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = shared ? 0 : i / m * n;
      const auto v = key_of(values[i]);
      int64_t low = 0, high = n;
      while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const auto at = key_of(boundaries[row + (sorter != nullptr ? sorter[row + middle] : middle)]);
        if (right ? at <= v : at < v) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      out[i] = low;
    }
  });
}

}  // namespace

void run_searchsorted(DType dtype, const void* boundaries, const int64_t* sorter, const void* values, int64_t* out,
                      int64_t rows, int64_t n, int64_t m, bool shared, bool right) {
  with_type(dtype, boundaries, [&](const auto* sorted) {
    using T = std::remove_const_t<std::remove_pointer_t<decltype(sorted)>>;
    search(sorted, sorter, static_cast<const T*>(values), out, rows, n, m, shared, right);
  });
}

}  // namespace rl
