#include "index.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "../parallel.h"
#include "copy.h"

namespace rl {

namespace {

constexpr int64_t kGrain = 16384;

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

template <class T>
struct Plain {
  using Value = T;
  static Value add(Value a, Value b) { return static_cast<T>(a + b); }
  static Value multiply(Value a, Value b) { return static_cast<T>(a * b); }
};
template <class T>
struct Wrapping {  // signed integers wrap around
  using Value = T;
  using U = std::make_unsigned_t<T>;
  static Value add(Value a, Value b) { return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b))); }
  static Value multiply(Value a, Value b) {
    return static_cast<T>(static_cast<U>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)));
  }
};
struct Boolean {
  using Value = uint8_t;
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
};
template <DType dtype>
struct Half {  // through float32, with the library's own rounding
  using Value = uint16_t;
  static float widen(Value v) {
    float f;
    convert(DType::Float32, &f, dtype, &v);
    return f;
  }
  static Value narrow(float f) {
    Value v;
    convert(dtype, &v, DType::Float32, &f);
    return v;
  }
  static void convert(DType to, void* out, DType from, const void* in) {
    char* data[2] = {static_cast<char*>(out), static_cast<char*>(const_cast<void*>(in))};
    int64_t strides[2] = {0, 0};
    find_cast(from, to)(data, strides, 1, nullptr);
  }
  static Value add(Value a, Value b) { return narrow(widen(a) + widen(b)); }
  static Value multiply(Value a, Value b) { return narrow(widen(a) * widen(b)); }
};

template <class F>
void by_dtype(DType t, F&& f) {
  switch (t) {
    case DType::UInt8: return f(Wrapping<uint8_t>{});
    case DType::Int8: return f(Wrapping<int8_t>{});
    case DType::Int16: return f(Wrapping<int16_t>{});
    case DType::Int32: return f(Wrapping<int32_t>{});
    case DType::Int64: return f(Wrapping<int64_t>{});
    case DType::Float16: return f(Half<DType::Float16>{});
    case DType::BFloat16: return f(Half<DType::BFloat16>{});
    case DType::Float32: return f(Plain<float>{});
    case DType::Float64: return f(Plain<double>{});
    case DType::Complex64: return f(Complex<float>{});
    case DType::Complex128: return f(Complex<double>{});
    case DType::Bool: return f(Boolean{});
  }
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

// Calls f(place address, first place, last place, dense row) for runs of places that share outer coordinates.
template <class F>
void each_run(const Blocks& b, int64_t begin, int64_t end, char* base, F&& f) {
  while (begin < end) {
    int64_t o = begin / b.count, i = begin % b.count, n = std::min(b.count - i, end - begin);
    f(base + strided_offset(o, b.nouter, b.outer_sizes, b.outer_strides), i, i + n, begin);
    begin += n;
  }
}

}  // namespace

int64_t add_offsets(const int64_t* index, int64_t n, int64_t size, int64_t stride, int64_t* offsets, bool first) {
  for (int64_t i = 0; i < n; ++i) {
    int64_t v = index[i];
    v += v < 0 ? size : 0;
    if (static_cast<uint64_t>(v) >= static_cast<uint64_t>(size)) return i;
    offsets[i] = first ? v * stride : offsets[i] + v * stride;
  }
  return -1;
}

void gather_blocks(const Blocks& b, const char* from, char* dense) {
  Extent e(b);
  int64_t bytes = e.inner * b.itemsize;
  parallel_for(
      0, e.outer * b.count, std::max<int64_t>(kGrain / std::max<int64_t>(e.inner, 1), 1),
      [&](int64_t begin, int64_t end) {
        each_run(b, begin, end, const_cast<char*>(from), [&](char* base, int64_t i, int64_t stop, int64_t row) {
          char* to = dense + row * bytes;
          if (e.inner == 1) {
            by_size(b.itemsize, [&](auto tag) {
              using T = decltype(tag);
              auto* out = reinterpret_cast<T*>(to);
              for (; i < stop; ++i) *out++ = *reinterpret_cast<const T*>(base + b.offsets[i]);
            });
          } else if (e.dense) {
            for (; i < stop; ++i, to += bytes) std::memcpy(to, base + b.offsets[i], bytes);
          } else {
            by_size(b.itemsize, [&](auto tag) {
              using T = decltype(tag);
              for (; i < stop; ++i, to += bytes)
                each_inner(b, base + b.offsets[i], e.inner,
                           [&](char* at, int64_t k) { reinterpret_cast<T*>(to)[k] = *reinterpret_cast<const T*>(at); });
            });
          }
        });
      });
}

namespace {

// Rows of places in parallel over the outer dimensions only: equal places are met in order.
template <class T, class Put>
void scatter(const Blocks& b, char* to, const char* dense, bool one_value, Put put) {
  Extent e(b);
  int64_t step = one_value ? 0 : 1, row_elements = e.inner;
  parallel_for(0, e.outer, std::max<int64_t>(kGrain / std::max<int64_t>(e.inner * b.count, 1), 1),
               [&](int64_t begin, int64_t end) {
                 each_run(b, begin * b.count, end * b.count, to, [&](char* base, int64_t i, int64_t stop, int64_t row) {
                   const T* value = reinterpret_cast<const T*>(dense) + row * row_elements * step;
                   for (; i < stop; ++i, value += row_elements * step) {
                     char* at = base + b.offsets[i];
                     if (e.dense) {
                       T* out = reinterpret_cast<T*>(at);
                       for (int64_t k = 0; k < e.inner; ++k) put(out[k], value[k * step]);
                     } else {
                       each_inner(b, at, e.inner,
                                  [&](char* p, int64_t k) { put(*reinterpret_cast<T*>(p), value[k * step]); });
                     }
                   }
                 });
               });
}

}  // namespace

void scatter_blocks(const Blocks& b, char* to, const char* dense, bool one_value) {
  by_size(b.itemsize, [&](auto tag) {
    using T = decltype(tag);
    scatter<T>(b, to, dense, one_value, [](T& a, T v) { a = v; });
  });
}

void scatter_add_blocks(DType dtype, const Blocks& b, char* to, const char* dense, bool one_value) {
  by_dtype(dtype, [&](auto math) {
    using M = decltype(math);
    using T = typename M::Value;
    scatter<T>(b, to, dense, one_value, [](T& a, T v) { a = M::add(a, v); });
  });
}

// ---- lines

namespace {

// Calls body(self, other) for every element of the index; the order inside a line is that of the index.
template <class Body>
void run_lines(const Lines& l, char* self, char* index, char* other, Body body) {
  int inner = l.ndim - 1;
  int64_t width = l.sizes[inner], outer = 1;
  for (int d = 0; d < inner; ++d) outer *= l.sizes[d];
  // Copies, since what `body` writes may alias everything else.
  const int64_t self_step = l.self_step, index_step = l.index_step, other_step = l.other_step, length = l.length;
  const int64_t self_next = l.self[inner], index_next = l.index[inner], other_next = l.other[inner];
  // Whichever of the line and the innermost dimension is denser in memory makes the inner loop.
  bool along_line = index_step <= index_next || width == 1;
  int64_t grain = std::max<int64_t>(kGrain / std::max<int64_t>(length, 1), 1);
  parallel_for(0, outer * width, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      int64_t o = begin / width, j = begin % width, n = std::min(width - j, end - begin);
      char* s = self + strided_offset(o, inner, l.sizes, l.self) + j * self_next;
      char* x = index + strided_offset(o, inner, l.sizes, l.index) + j * index_next;
      char* v = other + strided_offset(o, inner, l.sizes, l.other) + j * other_next;
      auto run = [&](int64_t rows, int64_t columns, int64_t x_row, int64_t v_row, int64_t s_row, int64_t x_column,
                     int64_t v_column, int64_t s_column) {
        for (int64_t r = 0; r < rows; ++r) {
          char *xi = x + r * x_row, *vi = v + r * v_row, *si = s + r * s_row;
          for (int64_t c = 0; c < columns; ++c, xi += x_column, vi += v_column, si += s_column)
            body(si + *reinterpret_cast<const int64_t*>(xi) * self_step, vi);
        }
      };
      if (along_line)
        run(n, length, index_next, other_next, self_next, index_step, other_step, 0);
      else
        run(length, n, index_step, other_step, 0, index_next, other_next, self_next);
      begin += n;
    }
  });
}

}  // namespace

void gather_lines(const Lines& l, int itemsize, const char* self, const char* index, char* other) {
  by_size(itemsize, [&](auto tag) {
    using T = decltype(tag);
    run_lines(l, const_cast<char*>(self), const_cast<char*>(index), other,
              [](char* s, char* v) { *reinterpret_cast<T*>(v) = *reinterpret_cast<const T*>(s); });
  });
}

void scatter_lines(const Lines& l, Scatter how, DType dtype, char* self, const char* index, const char* other) {
  char *x = const_cast<char*>(index), *v = const_cast<char*>(other);
  if (how == Scatter::Assign)
    return by_size(static_cast<int>(itemsize(dtype)), [&](auto tag) {
      using T = decltype(tag);
      run_lines(l, self, x, v, [](char* s, char* o) { *reinterpret_cast<T*>(s) = *reinterpret_cast<const T*>(o); });
    });
  by_dtype(dtype, [&](auto math) {
    using M = decltype(math);
    using T = typename M::Value;
    if (how == Scatter::Add)
      run_lines(l, self, x, v, [](char* s, char* o) {
        *reinterpret_cast<T*>(s) = M::add(*reinterpret_cast<T*>(s), *reinterpret_cast<const T*>(o));
      });
    else
      run_lines(l, self, x, v, [](char* s, char* o) {
        *reinterpret_cast<T*>(s) = M::multiply(*reinterpret_cast<T*>(s), *reinterpret_cast<const T*>(o));
      });
  });
}

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

// Walks mask[begin, end), of which `count` bytes are set, in order: take(i, k) has to act where mask[i] is set, as the
// k-th such; where it is not its effect must be harmless. It is called without a branch on the mask, which random masks
// would mispredict, but never with k == count.
template <class Take>
void each_set(const uint8_t* mask, int64_t begin, int64_t end, int64_t count, Take&& take) {
  int64_t i = begin, k = 0;
  while (k < count && i < end) {
    uint64_t word = 1;
    if (i + 8 <= end) std::memcpy(&word, mask + i, 8);
    if (!word) {
      i += 8;
    } else if (count - k > 8 && i + 8 <= end) {
      for (int64_t stop = i + 8; i < stop; ++i) {
        take(i, k);
        k += mask[i] != 0;
      }
    } else {
      take(i, k);
      k += mask[i++] != 0;
    }
  }
}

}  // namespace

void compress(const uint8_t* mask, int64_t n, const char* from, int64_t block, char* to) {
  each_mask_chunk(mask, n, [&](int64_t begin, int64_t end, int64_t before, int64_t count) {
    if (block <= 8 && !(block & (block - 1))) {
      by_size(static_cast<int>(block), [&](auto tag) {
        using T = decltype(tag);
        auto* in = reinterpret_cast<const T*>(from);
        T* out = reinterpret_cast<T*>(to) + before;
        each_set(mask, begin, end, count, [&](int64_t i, int64_t k) { out[k] = in[i]; });
      });
    } else {
      char* out = to + before * block;
      each_set(mask, begin, end, count, [&](int64_t i, int64_t k) {
        if (mask[i]) std::memcpy(out + k * block, from + i * block, block);
      });
    }
  });
}

void expand_mask(const uint8_t* mask, int64_t n, char* to, int itemsize, const char* from) {
  by_size(itemsize, [&](auto tag) {
    using T = decltype(tag);
    each_mask_chunk(mask, n, [&](int64_t begin, int64_t end, int64_t before, int64_t count) {
      auto* in = reinterpret_cast<const T*>(from) + before;
      T* out = reinterpret_cast<T*>(to);
      each_set(mask, begin, end, count, [&](int64_t i, int64_t k) {
        T next = in[k], old = out[i];
        out[i] = mask[i] ? next : old;
      });
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
  each_mask_chunk(mask, n, [&](int64_t begin, int64_t end, int64_t before, int64_t count) {
    int64_t* at = out + before * row;
    // Row by row: the leading coordinates are the same in all of it.
    for (int64_t line = begin / width; count && begin < end; ++line) {
      int64_t stop = std::min(end, (line + 1) * width), set = count_set(mask + begin, stop - begin), leading[64];
      for (int64_t d = ndim - 2, rest = line; d >= 0; rest /= sizes[d], --d) leading[d] = rest % sizes[d];
      int64_t first = line * width;
      each_set(mask, begin, stop, set, [&](int64_t i, int64_t k) {
        int64_t* to = at + k * row;
        for (int d = 0; d < ndim - 1; ++d) to[d * column] = leading[d];
        to[(ndim - 1) * column] = i - first;
      });
      at += set * row;
      begin = stop;
    }
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
