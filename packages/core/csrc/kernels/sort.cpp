#include "sort.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "../allocator.h"
#include "../parallel.h"
#include "half.h"

namespace rl {
namespace {

using base::BHalf;
using base::Half;

// ---- Keys: unsigned numbers in the order of the elements, NaN the highest, -0 as 0 ----

template <class K, class S>
K float_key(S bits) {
  constexpr K sign = K(1) << (8 * sizeof(S) - 1);
  const K b = bits;
  return b & sign ? static_cast<S>(~b) : b | sign;
}

struct Truth {  // an element of a bool tensor
  uint8_t byte;
};
uint32_t key_of(Truth v) { return v.byte != 0; }
uint32_t key_of(uint8_t v) { return v; }
uint32_t key_of(int8_t v) { return static_cast<uint8_t>(v) ^ 0x80u; }
uint32_t key_of(int16_t v) { return static_cast<uint16_t>(v) ^ 0x8000u; }
uint32_t key_of(int32_t v) { return static_cast<uint32_t>(v) ^ 0x80000000u; }
uint64_t key_of(int64_t v) { return static_cast<uint64_t>(v) ^ (uint64_t{1} << 63); }
uint32_t key_of(float v) {
  if (v != v) return ~0u;
  uint32_t bits;
  v += 0.0f;
  std::memcpy(&bits, &v, sizeof bits);
  return float_key<uint32_t>(bits);
}
uint64_t key_of(double v) {
  if (v != v) return ~uint64_t{0};
  uint64_t bits;
  v += 0.0;
  std::memcpy(&bits, &v, sizeof bits);
  return float_key<uint64_t>(bits);
}
uint32_t key_of(Half v) {
  return key_of(base::to_float(v)) >> 13 | (base::to_float(v) != base::to_float(v) ? ~0u : 0u);
}
uint32_t key_of(BHalf v) {
  return key_of(base::to_float(v)) >> 16 | (base::to_float(v) != base::to_float(v) ? ~0u : 0u);
}

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

// `flip` reverses the order of keys, not that of places: equal elements stay in order.
template <class Item, class T>
void load_items(const T* x, int64_t stride, int64_t n, Item* items, bool flip) {
  const uint64_t mask = flip ? Item::kMask : 0;
  for (int64_t i = 0; i < n; ++i) items[i] = Item::make(key_of(x[i * stride]) ^ mask, i);
}

template <class Item>
void load(DType dtype, const char* x, int64_t stride, int64_t n, Item* items, bool flip) {
  switch (dtype) {
    case DType::Bool: return load_items(reinterpret_cast<const Truth*>(x), stride, n, items, flip);
    case DType::UInt8: return load_items(reinterpret_cast<const uint8_t*>(x), stride, n, items, flip);
    case DType::Int8: return load_items(reinterpret_cast<const int8_t*>(x), stride, n, items, flip);
    case DType::Int16: return load_items(reinterpret_cast<const int16_t*>(x), stride, n, items, flip);
    case DType::Int32: return load_items(reinterpret_cast<const int32_t*>(x), stride, n, items, flip);
    case DType::Int64: return load_items(reinterpret_cast<const int64_t*>(x), stride, n, items, flip);
    case DType::Float16: return load_items(reinterpret_cast<const Half*>(x), stride, n, items, flip);
    case DType::BFloat16: return load_items(reinterpret_cast<const BHalf*>(x), stride, n, items, flip);
    case DType::Float32: return load_items(reinterpret_cast<const float*>(x), stride, n, items, flip);
    default: return load_items(reinterpret_cast<const double*>(x), stride, n, items, flip);
  }
}

// ---- Sorting ----

constexpr int64_t kRadixFrom = 256;

// One counting pass by `bits` bits of the key from `shift`; false: all items have the same digit.
template <class Item>
bool radix_pass(const Item* from, Item* to, int64_t n, int shift, int bits, int64_t* counts) {
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  std::fill(counts, counts + mask + 1, 0);
  for (int64_t i = 0; i < n; ++i) ++counts[from[i].key() >> shift & mask];
  if (counts[from[0].key() >> shift & mask] == n) return false;
  int64_t start = 0;
  for (uint64_t d = 0; d <= mask; ++d) {
    const int64_t count = counts[d];
    counts[d] = start;
    start += count;
  }
  for (int64_t i = 0; i < n; ++i) to[counts[from[i].key() >> shift & mask]++] = from[i];
  return true;
}

// Sorts the items, which are in order of place; `spare` has room for as many. The result is in the one returned.
template <class Item>
Item* sort_items(Item* items, Item* spare, int64_t n) {
  if (n < kRadixFrom) {
    std::sort(items, items + n);
    return items;
  }
  int64_t counts[1 << 11];
  const int bits = n < (1 << 14) ? 8 : 11;
  for (int shift = 0; shift < Item::kKeyBits; shift += bits) {
    if (radix_pass(items, spare, n, shift, std::min(bits, Item::kKeyBits - shift), counts)) std::swap(items, spare);
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

// Calls f(Item, line, items, spare) for every line of the tensor.
template <class F>
void for_lines(DType dtype, int64_t lines, int64_t n, F&& f) {
  const auto run = [&](auto item) {
    using Item = decltype(item);
    parallel_for(0, lines, std::max<int64_t>(1, 2000 / std::max<int64_t>(1, n)), [&](int64_t begin, int64_t end) {
      Scratch memory(static_cast<size_t>(2 * n) * sizeof(Item));
      Item* items = memory.as<Item>();
      for (int64_t line = begin; line < end; ++line) f(line, items, items + n);
    });
  };
  if (dtype == DType::Int64 || dtype == DType::Float64 || n > int64_t{0xffffffff}) {
    run(Pair{});
  } else {
    run(Packed{});
  }
}

template <class Item>
int64_t count_nans(DType dtype, const Item* items, int64_t n) {
  if (!is_floating(dtype)) return 0;
  return std::count_if(items, items + n, [](const Item& i) { return i.key() == Item::kMask; });
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
  if (pick != Pick::Kth) {
    const int64_t nans = count_nans(dtype, items, n);
    if (nans == n || (nans > 0 && pick == Pick::Median)) {
      return std::find_if(items, items + n, [](const Item& i) { return i.key() == Item::kMask; })->index();
    }
    k = (n - nans - 1) / 2;
  }
  std::nth_element(items, items + k, items + n);
  return items[k].index();
}

}  // namespace

void run_sort(DType dtype, const void* x, void* values, int64_t* indices, int64_t outer, int64_t n, int64_t inner,
              bool descending) {
  run_topk(dtype, x, values, indices, outer, n, inner, n, descending);
}

void run_topk(DType dtype, const void* x, void* values, int64_t* indices, int64_t outer, int64_t n, int64_t inner,
              int64_t k, bool largest) {
  if (k == 0 || outer == 0 || inner == 0) return;
  const int64_t size = itemsize(dtype);
  for_lines(dtype, outer * inner, n, [&](int64_t line, auto* items, auto* spare) {
    const int64_t at = line / inner * n * inner + line % inner, to = line / inner * k * inner + line % inner;
    const char* from = static_cast<const char*>(x) + at * size;
    load(dtype, from, inner, n, items, largest);
    auto* sorted = items;
    if (k == n) {
      sorted = sort_items(items, spare, n);
    } else if (k * 64 <= n) {
      std::partial_sort(items, items + k, items + n);
    } else {
      std::nth_element(items, items + k, items + n);
      std::sort(items, items + k);
    }
    for (int64_t i = 0; i < k; ++i) indices[to + i * inner] = sorted[i].index();
    if (values != nullptr) gather(size, from, inner, static_cast<char*>(values) + to * size, inner, k, indices + to);
  });
}

void run_pick(Pick pick, DType dtype, const void* x, void* values, int64_t* indices, int64_t outer, int64_t n,
              int64_t inner, int64_t k) {
  const int64_t size = itemsize(dtype);
  for_lines(dtype, outer * inner, n, [&](int64_t line, auto* items, auto* spare) {
    const char* from = static_cast<const char*>(x) + (line / inner * n * inner + line % inner) * size;
    load(dtype, from, inner, n, items, false);
    indices[line] = pick_one(pick, dtype, items, spare, n, k);
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
  const auto with = [&](auto zero) {
    using T = decltype(zero);
    search(static_cast<const T*>(boundaries), sorter, static_cast<const T*>(values), out, rows, n, m, shared, right);
  };
  switch (dtype) {
    case DType::Bool: return with(Truth{});
    case DType::UInt8: return with(uint8_t{});
    case DType::Int8: return with(int8_t{});
    case DType::Int16: return with(int16_t{});
    case DType::Int32: return with(int32_t{});
    case DType::Int64: return with(int64_t{});
    case DType::Float16: return with(Half{});
    case DType::BFloat16: return with(BHalf{});
    case DType::Float32: return with(float{});
    default: return with(double{});
  }
}

}  // namespace rl
