#include "index.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "../allocator.h"
#include "../parallel.h"
#include "rushlight/half.h"
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace rl {

namespace {

constexpr int64_t kGrain = 16384;
constexpr int64_t kLine = 64;  // bytes of a line of the cache

struct Word16 {
  uint64_t a, b;
};

// Calls f with a value of the unsigned type of that size.
template <class F>
void by_size(int itemsize, F&& f) {
  switch (itemsize) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    case 8: return f(uint64_t{});
    default: return f(Word16{});
  }
}

// ---- arithmetic on stored elements

// NaN wins.
template <class T>
T larger(T a, T b) {
  return a > b || a != a ? a : b;
}
template <class T>
T smaller(T a, T b) {
  return a < b || a != a ? a : b;
}

template <class T>
struct Plain {
  using Value = T;
  static Value add(Value a, Value b) { return static_cast<T>(a + b); }
  static Value multiply(Value a, Value b) { return static_cast<T>(a * b); }
  static Value maximum(Value a, Value b) { return larger(a, b); }
  static Value minimum(Value a, Value b) { return smaller(a, b); }
};
template <class T>
struct Wrapping : Plain<T> {  // signed integers wrap around
  using U = std::make_unsigned_t<T>;
  static T add(T a, T b) { return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b))); }
  static T multiply(T a, T b) {
    return static_cast<T>(static_cast<U>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)));
  }
};
struct Boolean : Plain<uint8_t> {
  static Value add(Value a, Value b) { return a | b; }
  static Value multiply(Value a, Value b) { return a & b; }
};
template <class T>
struct Complex {
  struct Value {
    T re, im;
  };
  static Value add(Value a, Value b) { return {a.re + b.re, a.im + b.im}; }
  static Value multiply(Value a, Value b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
  static Value maximum(Value a, Value) { return a; }  // has no order; the caller has refused it
  static Value minimum(Value a, Value) { return a; }
};
base::Half narrowed(base::Half, float x) { return base::to_half(x); }
base::BHalf narrowed(base::BHalf, float x) { return base::to_bhalf(x); }
template <class H>
struct Short {  // through float32
  using Value = H;
  static Value add(Value a, Value b) { return narrowed(a, base::to_float(a) + base::to_float(b)); }
  static Value multiply(Value a, Value b) { return narrowed(a, base::to_float(a) * base::to_float(b)); }
  static Value maximum(Value a, Value b) { return narrowed(a, larger(base::to_float(a), base::to_float(b))); }
  static Value minimum(Value a, Value b) { return narrowed(a, smaller(base::to_float(a), base::to_float(b))); }
};

template <class F>
void by_dtype(DType t, F&& f) {
  switch (t) {
    case DType::UInt8: return f(Wrapping<uint8_t>{});
    case DType::Int8: return f(Wrapping<int8_t>{});
    case DType::Int16: return f(Wrapping<int16_t>{});
    case DType::Int32: return f(Wrapping<int32_t>{});
    case DType::Int64: return f(Wrapping<int64_t>{});
    case DType::Float16: return f(Short<base::Half>{});
    case DType::BFloat16: return f(Short<base::BHalf>{});
    case DType::Float32: return f(Plain<float>{});
    case DType::Float64: return f(Plain<double>{});
    case DType::Complex64: return f(Complex<float>{});
    case DType::Complex128: return f(Complex<double>{});
    case DType::Bool: return f(Boolean{});
  }
}

// ---- indices

// The lowest address of an index out of bounds that any thread has met.
class Outside {
 public:
  void note(const int64_t* at) {
    if (!at) return;
    const int64_t* known = first_.load();
    while ((!known || at < known) && !first_.compare_exchange_weak(known, at)) {
    }
  }
  const int64_t* first() const { return first_.load(); }

 private:
  std::atomic<const int64_t*> first_{nullptr};
};

const IndexTable& table() {
  static const IndexTable table = [] {
    IndexTable filled;
    RL_ISA_CALL(fill_index, filled);
    return filled;
  }();
  return table;
}

const int64_t* outside(const int64_t* index, int64_t n, int64_t low, int64_t size) {
  if (table().all_inside(index, n, low, size)) return nullptr;
  return std::find_if(index, index + n, [&](int64_t i) { return i < low || i >= size; });
}

constexpr int64_t kTile = 512;  // places whose offsets are worked out at a time

// Byte offsets of places [begin, begin + n), whose indices are in bounds.
void offsets_of(const Blocks& b, int64_t begin, int64_t n, int64_t* offsets) {
  for (int k = 0; k < b.nlists; ++k) table().offsets(b.lists[k], begin, n, k > 0, offsets);
  if (!b.nlists) std::fill_n(offsets, n, 0);
}

const int64_t* outside(const Blocks& b, int64_t begin, int64_t n) {
  for (int k = 0; k < b.nlists; ++k) {
    const int64_t size = b.lists[k].size;
    if (const int64_t* bad = outside(b.lists[k].values + begin, n, -size, size)) return bad;
  }
  return nullptr;
}

// ---- blocks

struct Extent {
  int64_t outer = 1, inner = 1;
  bool dense = true;  // the inner elements lie one after the other
  explicit Extent(const Blocks& b) {
    for (int d = 0; d < b.nouter; ++d) outer *= b.outer_sizes[d];
    for (int d = b.ninner - 1; d >= 0; --d) {
      if (b.inner_sizes[d] != 1 && b.inner_strides[d] != inner * b.itemsize) dense = false;
      inner *= b.inner_sizes[d];
    }
  }
};

int64_t strided_offset(int64_t linear, int n, const int64_t* sizes, const int64_t* strides) {
  int64_t at = 0;
  for (int d = n - 1; d >= 0 && linear; --d) {
    at += linear % sizes[d] * strides[d];
    linear /= sizes[d];
  }
  return at;
}

// Calls f(address, dense element) for every inner element of one place, in dense order.
template <class F>
void each_inner(const Blocks& b, char* at, int64_t inner, F&& f) {
  if (b.ninner == 1) {
    for (int64_t i = 0; i < inner; ++i) f(at + i * b.inner_strides[0], i);
    return;
  }
  int64_t index[64] = {0};
  for (int64_t i = 0; i < inner; ++i) {
    f(at, i);
    for (int d = b.ninner - 1; d >= 0; --d) {
      at += b.inner_strides[d];
      if (++index[d] < b.inner_sizes[d]) break;
      at -= b.inner_strides[d] * b.inner_sizes[d];
      index[d] = 0;
    }
  }
}

}  // namespace

const int64_t* find_outside(const int64_t* index, int64_t n, int64_t low, int64_t size) {
  Outside bad;
  parallel_for(0, n, kGrain,
               [&](int64_t begin, int64_t end) { bad.note(outside(index + begin, end - begin, low, size)); });
  return bad.first();
}

const int64_t* narrow_inside(const int64_t* index, int64_t n, int64_t size, uint16_t* narrow) {
  Outside bad;
  parallel_for(0, n, kGrain, [&](int64_t begin, int64_t end) {
    for (; begin < end; begin += kTile) {
      const int64_t m = std::min(kTile, end - begin);
      if (const int64_t* at = outside(index + begin, m, 0, size)) return bad.note(at);
      table().narrow(index + begin, m, narrow + begin);
    }
  });
  return bad.first();
}

namespace {

// Calls f(address, offsets, places, dense row) for tiles of places that share outer coordinates.
template <class F>
void each_tile(const Blocks& b, int64_t begin, int64_t end, char* base, const int64_t* offsets, F&& f) {
  int64_t tile[kTile];
  while (begin < end) {
    const int64_t o = begin / b.count, i = begin % b.count, n = std::min({b.count - i, end - begin, kTile});
    if (!offsets) offsets_of(b, i, n, tile);
    f(base + strided_offset(o, b.nouter, b.outer_sizes, b.outer_strides), offsets ? offsets + i : tile, n, begin);
    begin += n;
  }
}

// Offsets of all places, where several outer coordinates share them.
class SharedOffsets {
 public:
  SharedOffsets(const Blocks& b, int64_t outer)
      : memory_(outer > 1 ? static_cast<size_t>(b.count) * sizeof(int64_t) : 0),
        offsets_(outer > 1 ? memory_.as<int64_t>() : nullptr) {
    if (offsets_) offsets_of(b, 0, b.count, offsets_);
  }
  const int64_t* get() const { return offsets_; }

 private:
  Scratch memory_;
  int64_t* offsets_;
};

}  // namespace

const int64_t* gather_blocks(const Blocks& b, const char* from, char* dense) {
  const Extent e(b);
  const int64_t bytes = e.inner * b.itemsize;
  Outside bad;
  if (e.outer > 1) {
    bad.note(outside(b, 0, b.count));
    if (bad.first()) return bad.first();
  }
  const SharedOffsets shared(b, e.outer);
  const int64_t* offsets = shared.get();
  const auto gather = [&](const char* base, const int64_t* places, int64_t n, int64_t row) {
    char* to = dense + row * bytes;
    if (e.dense && e.inner > 1) {
      for (int64_t i = 0; i < n; ++i, to += bytes) std::memcpy(to, base + places[i], bytes);
      return;
    }
    by_size(b.itemsize, [&](auto tag) {
      using T = decltype(tag);
      T* out = reinterpret_cast<T*>(to);
      if (e.inner == 1) {
        for (int64_t i = 0; i < n; ++i) out[i] = *reinterpret_cast<const T*>(base + places[i]);
        return;
      }
      for (int64_t i = 0; i < n; ++i, out += e.inner)
        each_inner(b, const_cast<char*>(base) + places[i], e.inner,
                   [&](char* at, int64_t k) { out[k] = *reinterpret_cast<const T*>(at); });
    });
  };
  const int64_t grain = std::max<int64_t>(kGrain / std::max<int64_t>(e.inner, 1), 1);
  parallel_for(0, e.outer * b.count, grain, [&](int64_t begin, int64_t end) {
    if (offsets) return each_tile(b, begin, end, const_cast<char*>(from), offsets, gather);
    for (; begin < end; begin += kTile) {  // the indices of a tile are read twice while they are in the cache
      const int64_t stop = std::min(begin + kTile, end);
      if (const int64_t* at = outside(b, begin, stop - begin)) return bad.note(at);
      each_tile(b, begin, stop, const_cast<char*>(from), nullptr, gather);
    }
  });
  return bad.first();
}

namespace {

// In parallel over outer coordinates and ranges of the memory that is written: equal places are met in order.
template <class T, class Put>
void scatter(const Blocks& b, char* to, const char* dense, bool one_value, Put put) {
  const Extent e(b);
  const SharedOffsets shared(b, e.outer);
  const int64_t* offsets = shared.get();
  const int64_t work = std::max<int64_t>(e.inner * b.count, 1);
  // Every range looks at all places: it pays where there is much to do at each.
  const int64_t ranges = e.inner < 32 || work < kGrain ? 1 : 4 * num_threads();
  int64_t low = 0, extent = 1;
  for (int k = 0; k < b.nlists; ++k) {
    const int64_t reach = (b.lists[k].size - 1) * b.lists[k].stride;
    low += std::min<int64_t>(reach, 0);
    extent += std::abs(reach);
  }
  const int64_t length = extent / ranges + 1;
  parallel_for(0, e.outer * ranges, std::max<int64_t>(kGrain * ranges / work, 1), [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t o = unit / ranges, first = low + unit % ranges * length;
      each_tile(b, o * b.count, (o + 1) * b.count, to, offsets,
                [&](char* base, const int64_t* places, int64_t n, int64_t row) {
                  const T* value = reinterpret_cast<const T*>(dense) + (one_value ? 0 : row * e.inner);
                  const int64_t next = one_value ? 0 : e.inner;
                  if (ranges == 1 && e.inner == 1) {
                    for (int64_t i = 0; i < n; ++i) put(*reinterpret_cast<T*>(base + places[i]), value[i * next]);
                    return;
                  }
                  for (int64_t i = 0; i < n; ++i, value += next) {
                    if (static_cast<uint64_t>(places[i] - first) >= static_cast<uint64_t>(length)) continue;
                    char* at = base + places[i];
                    T* out = reinterpret_cast<T*>(at);
                    if (!e.dense) {
                      each_inner(b, at, e.inner,
                                 [&](char* p, int64_t k) { put(*reinterpret_cast<T*>(p), value[one_value ? 0 : k]); });
                    } else if (one_value) {
                      for (int64_t k = 0; k < e.inner; ++k) put(out[k], *value);
                    } else {
                      for (int64_t k = 0; k < e.inner; ++k) put(out[k], value[k]);
                    }
                  }
                });
    }
  });
}

}  // namespace

void scatter_blocks(const Blocks& b, char* to, const char* dense, bool one_value) {
  by_size(b.itemsize, [&](auto tag) {
    using T = decltype(tag);
    scatter<T>(b, to, dense, one_value, [](T& a, const T& v) { a = v; });
  });
}

void scatter_add_blocks(DType dtype, const Blocks& b, char* to, const char* dense, bool one_value) {
  by_dtype(dtype, [&](auto math) {
    using M = decltype(math);
    using T = typename M::Value;
    scatter<T>(b, to, dense, one_value, [](T& a, const T& v) { a = M::add(a, v); });
  });
}

// ---- lines

namespace {

// One row of the loop: `self` is where index 0 points to, all three move on by their steps.
struct Row {
  char* self;
  const char* index;
  char* other;
  int64_t n, self_next, index_next, other_next;
  const char* soon;  // the line of self that comes next, to be asked for on the way, or null
};

constexpr int64_t kStretch = 32;       // elements of a row between two requests
constexpr int64_t kMostAsked = 16384;  // half of a small first cache

// Calls row(Row) for rows that cover all elements of the index; the order inside a line is that of the index.
template <class F>
void each_row(const Lines& l, char* self, const char* index, char* other, F&& row) {
  const int inner = l.ndim - 1;
  const int64_t width = l.sizes[inner];
  int64_t outer = 1;
  for (int d = 0; d < inner; ++d) outer *= l.sizes[d];
  const int64_t self_next = l.self[inner], index_next = l.index[inner], other_next = l.other[inner];
  // Whichever of the line and the innermost dimension is denser in memory makes the row.
  const bool along_line = l.index_step <= index_next || width == 1;
  // A line is met here and there, which no machine foresees: where most of it is met it is asked for ahead, bit by bit.
  const int64_t span = l.size * l.self_step;
  const bool asks = span > 0 && span <= kMostAsked && l.length * kLine >= span;
  parallel_for(
      0, outer * width, std::max<int64_t>(kGrain / std::max<int64_t>(l.length, 1), 1), [&](int64_t begin, int64_t end) {
        while (begin < end) {
          const int64_t o = begin / width, j = begin % width, n = std::min(width - j, end - begin);
          char* s = self + strided_offset(o, inner, l.sizes, l.self) + j * self_next;
          const char* x = index + strided_offset(o, inner, l.sizes, l.index) + j * index_next;
          char* v = other + strided_offset(o, inner, l.sizes, l.other) + j * other_next;
          if (along_line) {
            for (int64_t r = 0; r < n; ++r, s += self_next, x += index_next, v += other_next)
              row(Row{s, x, v, l.length, 0, l.index_step, l.other_step, asks && r + 1 < n ? s + self_next : nullptr});
          } else {
            for (int64_t r = 0; r < l.length; ++r, x += l.index_step, v += l.other_step)
              row(Row{s, x, v, n, self_next, index_next, other_next, nullptr});
          }
          begin += n;
        }
      });
}

// Calls body(element of self, element of other) for every element of a row.
template <class T, class Index, class Body>
void run_row(const Row& r, const Lines& l, Body body) {
  const int64_t step = l.self_step;
  if (r.self_next == 0 && step == sizeof(T) && r.index_next == sizeof(Index) && r.other_next == sizeof(T)) {  // dense
    T *self = reinterpret_cast<T*>(r.self), *other = reinterpret_cast<T*>(r.other);
    const auto* index = reinterpret_cast<const Index*>(r.index);
    const int64_t stretches = (r.n + kStretch - 1) / kStretch;
    const int64_t share = r.soon ? (l.size * step / kLine + stretches) / stretches * kLine : 0;
    const char* soon = r.soon;
    for (int64_t i = 0; i < r.n; soon += share) {
#if defined(__GNUC__)
      for (int64_t at = 0; at < share; at += kLine) __builtin_prefetch(soon + at);
#endif
      for (const int64_t end = std::min(i + kStretch, r.n); i < end; ++i) body(self[index[i]], other[i]);
    }
    return;
  }
  char *self = r.self, *other = r.other;
  const char* index = r.index;
  for (int64_t i = 0; i < r.n; ++i, self += r.self_next, index += r.index_next, other += r.other_next)
    body(*reinterpret_cast<T*>(self + *reinterpret_cast<const Index*>(index) * step), *reinterpret_cast<T*>(other));
}

const int64_t* outside(const Row& r, int64_t size) {
  if (r.index_next == 8) return outside(reinterpret_cast<const int64_t*>(r.index), r.n, 0, size);
  const char* at = r.index;
  for (int64_t i = 0; i < r.n; ++i, at += r.index_next) {
    const auto* index = reinterpret_cast<const int64_t*>(at);
    if (*index < 0 || *index >= size) return index;
  }
  return nullptr;
}

}  // namespace

const int64_t* gather_lines(const Lines& l, int itemsize, const char* self, const char* index, char* other) {
  Outside bad;
  by_size(itemsize, [&](auto tag) {
    using T = decltype(tag);
    each_row(l, const_cast<char*>(self), index, other, [&](const Row& r) {
      if (const int64_t* at = outside(r, l.size)) return bad.note(at);
      run_row<T, int64_t>(r, l, [](const T& s, T& v) { v = s; });
    });
  });
  return bad.first();
}

template <class Index>
void scatter_lines(const Lines& l, Scatter how, DType dtype, char* self, const char* index, const char* other) {
  const auto with = [&](auto zero, auto combine) {
    using T = decltype(zero);
    each_row(l, self, index, const_cast<char*>(other),
             [&](const Row& r) { run_row<T, Index>(r, l, [&](T& s, const T& v) { s = combine(s, v); }); });
  };
  if (how == Scatter::Assign) {
    return by_size(static_cast<int>(itemsize(dtype)), [&](auto zero) {
      using T = decltype(zero);
      with(zero, [](T, T v) { return v; });
    });
  }
  by_dtype(dtype, [&](auto math) {
    using M = decltype(math);
    using T = typename M::Value;
    switch (how) {
      case Scatter::Add: return with(T{}, [](T a, T b) { return M::add(a, b); });
      case Scatter::Multiply: return with(T{}, [](T a, T b) { return M::multiply(a, b); });
      case Scatter::Maximum: return with(T{}, [](T a, T b) { return M::maximum(a, b); });
      default: return with(T{}, [](T a, T b) { return M::minimum(a, b); });
    }
  });
}
template void scatter_lines<uint16_t>(const Lines&, Scatter, DType, char*, const char*, const char*);
template void scatter_lines<int64_t>(const Lines&, Scatter, DType, char*, const char*, const char*);

// ---- masks

int64_t count_set(const uint8_t* mask, int64_t n) {
  int64_t total = 0;
  while (n > 0) {  // in runs that a byte counter per lane can hold
    int64_t run = std::min<int64_t>(n, 1 << 15);
    int32_t sum = 0;
    for (int64_t i = 0; i < run; ++i) sum += mask[i] != 0;
    total += sum;
    mask += run;
    n -= run;
  }
  return total;
}

namespace {

constexpr int64_t kMaskGrain = 1 << 16;

// Runs f(begin, end, set bytes before begin, set bytes in [begin, end)) over chunks of the mask in parallel.
template <class F>
void each_mask_chunk(const uint8_t* mask, int64_t n, F&& f) {
  if (n <= kMaskGrain) return f(int64_t{0}, n, int64_t{0}, count_set(mask, n));
  int64_t chunks = (n + kMaskGrain - 1) / kMaskGrain;
  std::vector<int64_t> before(chunks + 1);
  parallel_for(0, chunks, 1, [&](int64_t b, int64_t e) {
    for (int64_t c = b; c < e; ++c)
      before[c + 1] = count_set(mask + c * kMaskGrain, std::min(kMaskGrain, n - c * kMaskGrain));
  });
  for (int64_t c = 0; c < chunks; ++c) before[c + 1] += before[c];
  parallel_for(0, chunks, 1, [&](int64_t b, int64_t e) {
    for (int64_t c = b; c < e; ++c)
      f(c * kMaskGrain, std::min(n, (c + 1) * kMaskGrain), before[c], before[c + 1] - before[c]);
  });
}

// One bit for each of at most 64 bytes that is set.
uint64_t set_bits(const uint8_t* mask, int64_t n) {
  constexpr uint64_t kSeven = 0x7f7f7f7f7f7f7f7f, kGather = 0x0102040810204080;
  uint64_t bits = 0;
#if defined(__SSE2__)
  if (n == 64) {
    for (int i = 0; i < 64; i += 16) {
      const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(mask + i));
      bits |= static_cast<uint64_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_setzero_si128()))) << i;
    }
    return ~bits;
  }
#endif
  for (int64_t i = 0; i < n; i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, mask + i, std::min<int64_t>(8, n - i));
    word = (((word & kSeven) + kSeven) | word) & ~kSeven;  // the top bit of each byte that is set
    bits |= (word >> 7) * kGather >> 56 << i;
  }
  return bits;
}

// take(i, k) for each i in [begin, end) where the mask is set, as the k-th such.
template <class Take>
void each_set(const uint8_t* mask, int64_t begin, int64_t end, Take&& take) {
  int64_t k = 0;
  for (int64_t i = begin; i < end; i += 64) {
    uint64_t bits = set_bits(mask + i, std::min<int64_t>(64, end - i));
    if (bits == ~uint64_t{0}) {
      for (int64_t j = 0; j < 64; ++j) take(i + j, k + j);
      k += 64;
      continue;
    }
    for (; bits != 0; bits &= bits - 1) take(i + __builtin_ctzll(bits), k++);
  }
}

}  // namespace

void compress(const uint8_t* mask, int64_t n, const char* from, int64_t block, char* to) {
  each_mask_chunk(mask, n, [&](int64_t begin, int64_t end, int64_t before, int64_t) {
    if (block <= 8 && !(block & (block - 1))) {
      by_size(static_cast<int>(block), [&](auto tag) {
        using T = decltype(tag);
        auto* in = reinterpret_cast<const T*>(from);
        T* out = reinterpret_cast<T*>(to) + before;
        each_set(mask, begin, end, [&](int64_t i, int64_t k) { out[k] = in[i]; });
      });
    } else {
      char* out = to + before * block;
      each_set(mask, begin, end, [&](int64_t i, int64_t k) { std::memcpy(out + k * block, from + i * block, block); });
    }
  });
}

void expand_mask(const uint8_t* mask, int64_t n, char* to, int itemsize, const char* from) {
  by_size(itemsize, [&](auto tag) {
    using T = decltype(tag);
    each_mask_chunk(mask, n, [&](int64_t begin, int64_t end, int64_t before, int64_t) {
      auto* in = reinterpret_cast<const T*>(from) + before;
      T* out = reinterpret_cast<T*>(to);
      each_set(mask, begin, end, [&](int64_t i, int64_t k) { out[i] = in[k]; });
    });
  });
}

void fill_mask(const uint8_t* mask_, int64_t n, char* to, int64_t block, const void* value, int itemsize) {
  by_size(itemsize, [&](auto tag) {
    using T = decltype(tag);
    T v;
    std::memcpy(&v, value, sizeof v);
    int64_t width = block / itemsize;
    parallel_for(0, n, std::max<int64_t>(kGrain / width, 1), [&](int64_t begin, int64_t end) {
      const uint8_t* __restrict mask = mask_;
      T* __restrict out = reinterpret_cast<T*>(to);
      const T fill = v;
      if (width == 1) {
        for (int64_t i = begin; i < end; ++i) out[i] = mask[i] ? fill : out[i];
      } else {
        for (int64_t i = begin; i < end; ++i)
          if (mask[i]) std::fill_n(out + i * width, width, fill);
      }
    });
  });
}

void mask_coordinates(const uint8_t* mask, int ndim, const int64_t* sizes, int64_t* out, int64_t row, int64_t column) {
  int64_t n = 1;
  for (int d = 0; d < ndim; ++d) n *= sizes[d];
  int64_t width = ndim ? sizes[ndim - 1] : 1;
  each_mask_chunk(mask, n, [&](int64_t begin, int64_t end, int64_t before, int64_t) {
    // The leading coordinates of the row of `width` elements that begins at `first`: mostly the same, or the next ones.
    int64_t leading[64] = {}, first = begin / width * width;
    for (int64_t d = ndim - 2, rest = begin / width; d >= 0; rest /= sizes[d], --d) leading[d] = rest % sizes[d];
    each_set(mask, begin, end, [&](int64_t i, int64_t k) {
      for (; i - first >= width; first += width) {
        for (int d = ndim - 2; d >= 0 && ++leading[d] == sizes[d]; --d) leading[d] = 0;
      }
      int64_t* to = out + (before + k) * row;
      for (int d = 0; d < ndim - 1; ++d) to[d * column] = leading[d];
      to[(ndim - 1) * column] = i - first;
    });
  });
}

void copy_triangle(const char* from, char* to, int64_t batch, int64_t rows, int64_t columns, int64_t k, bool keep_lower,
                   int itemsize) {
  int64_t bytes = columns * itemsize;
  parallel_for(0, batch * rows, std::max<int64_t>(kGrain / std::max<int64_t>(columns, 1), 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t r = begin; r < end; ++r) {
                   int64_t row = r % rows;
                   // Columns before `split` are on or below the diagonal where the lower part is kept, strictly below
                   // it otherwise.
                   int64_t split = std::clamp<int64_t>(row + k + (keep_lower ? 1 : 0), 0, columns) * itemsize;
                   const char* in = from + r * bytes;
                   char* out = to + r * bytes;
                   if (keep_lower) {
                     std::memcpy(out, in, split);
                     std::memset(out + split, 0, bytes - split);
                   } else {
                     std::memset(out, 0, split);
                     std::memcpy(out + split, in + split, bytes - split);
                   }
                 }
               });
}

}  // namespace rl
