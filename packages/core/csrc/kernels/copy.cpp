#include "copy.h"

#include <algorithm>
#include <cstring>

#include "../parallel.h"
#include "cast_table.h"
#include "nest.h"
#include "range_table.h"

namespace rl {
namespace {

struct Bits128 {
  uint64_t low, high;
};

const CastTable& casts() {
  struct Casts final : CastTable {
    Casts() { RL_ISA_CALL(fill_casts, static_cast<CastTable&>(*this)); }
  };
  static const Casts table;
  return table;
}

constexpr int64_t kCopyGrain = 256 * 1024;  // bytes

// ---- Transposed copies: tiles keep the lines of both sides in the cache ----

constexpr int64_t kTileBytes = 256;  // of a row, but 64 elements at most

// The dimension along which src is dense, where the innermost is dense in dst only; 0: there is none.
int transposed_dimension(const Nest& nest, int64_t size) {
  const int64_t across = nest.strides[0][1];
  if (nest.strides[0][0] != size || across == size || across == 0 || nest.shape[0] < 4) return 0;
  for (int d = 1; d < nest.ndim; ++d) {
    if (nest.strides[d][1] == size && nest.shape[d] >= 4) return d;
  }
  return 0;
}

void copy_transposed(const Nest& nest, int d, int64_t size, char* dst, const char* src) {
  const auto transpose = casts().transpose[size];
  const int64_t side = std::min<int64_t>(kTileBytes / size, 64);
  const Nest::Tiles tiles{d, side, side};
  char* const data[] = {dst, const_cast<char*>(src)};
  parallel_for(0, nest.count(tiles), kCopyGrain / (side * side * size), [&](int64_t begin, int64_t end) {
    nest.walk(tiles, data, begin, end, [&](char* const* at, int64_t columns, int64_t rows) {
      transpose(at[1], nest.strides[0][1], columns, rows, at[0], nest.strides[d][0]);
    });
  });
}

// ---- Copies of rows that are dense on both sides ----

void copy_row(char* to, const char* from, int64_t bytes) {
  if (bytes > 64) {
    std::memcpy(to, from, bytes);
  } else if (bytes >= 16) {  // four moves that may overlap
    const int64_t last = bytes - 16, second = std::min<int64_t>(16, last), third = std::max<int64_t>(0, last - 16);
    Bits128 v[4];
    std::memcpy(&v[0], from, 16);
    std::memcpy(&v[1], from + second, 16);
    std::memcpy(&v[2], from + third, 16);
    std::memcpy(&v[3], from + last, 16);
    std::memcpy(to, &v[0], 16);
    std::memcpy(to + second, &v[1], 16);
    std::memcpy(to + third, &v[2], 16);
    std::memcpy(to + last, &v[3], 16);
  } else if (bytes >= 8) {
    uint64_t v[2];
    std::memcpy(&v[0], from, 8);
    std::memcpy(&v[1], from + bytes - 8, 8);
    std::memcpy(to, &v[0], 8);
    std::memcpy(to + bytes - 8, &v[1], 8);
  } else {
    for (int64_t i = 0; i < bytes; ++i) to[i] = from[i];
  }
}

void copy_rows(const Nest& nest, int64_t size, char* dst, const char* src) {
  const int64_t bytes = nest.shape[0] * size, down_to = nest.strides[1][0], down_from = nest.strides[1][1];
  Nest outer = nest;
  --outer.ndim;
  for (int d = 0; d < outer.ndim; ++d) {
    outer.shape[d] = nest.shape[d + 1];
    for (int k = 0; k < 2; ++k) outer.strides[d][k] = nest.strides[d + 1][k];
  }
  char* const data[] = {dst, const_cast<char*>(src)};
  const int64_t rows = nest.numel / nest.shape[0];
  parallel_for(0, rows, std::max<int64_t>(1, kCopyGrain / bytes), [&](int64_t begin, int64_t end) {
    outer.walk(data, begin, end, [&](char* const* at, int64_t count) {
      char *to = at[0], *from = at[1];
      for (int64_t r = 0; r < count; ++r, to += down_to, from += down_from) copy_row(to, from, bytes);
    });
  });
}

void copy_same(int64_t size, char* dst, const int64_t* dst_strides, const char* src, const int64_t* src_strides,
               int ndim, const int64_t* shape, Loop loop) {
  const int64_t* const strides[] = {dst_strides, src_strides};
  Nest nest(ndim, shape, 2, strides);
  if (nest.numel == 0) return;
  if (nest.ndim == 1 && nest.strides[0][0] == size && nest.strides[0][1] == size) {
    return parallel_for(0, nest.numel * size, kCopyGrain,
                        [&](int64_t begin, int64_t end) { std::memcpy(dst + begin, src + begin, end - begin); });
  }
  if (nest.ndim > 1 && nest.strides[0][0] == size && nest.strides[0][1] == size) {
    return copy_rows(nest, size, dst, src);
  }
  const int d = transposed_dimension(nest, size);
  if (d != 0) return copy_transposed(nest, d, size, dst, src);
  const bool reversed = nest.strides[0][0] == size && nest.strides[0][1] == -size;
  if (reversed) loop = casts().reverse[size];
  char* const data[] = {dst, const_cast<char*>(src)};
  const int64_t sizes[] = {size, size};
  // Packed rows would lie forwards, and the reversed loop reads no strides: it runs on the rows themselves.
  run_pointwise(loop, ndim, shape, 2, data, strides, nullptr, reversed ? nullptr : sizes);
}

// Chunks hold whole blocks of PyTorch's arange.
constexpr int64_t kRangeGrain = 32768;

const RangeTable& ranges() {
  struct Ranges final : RangeTable {
    Ranges() { RL_ISA_CALL(fill_ranges, static_cast<RangeTable&>(*this)); }
  };
  static const Ranges table;
  return table;
}

}  // namespace

Transpose find_transpose(int64_t size) { return casts().transpose[size]; }

Loop find_cast(DType from, DType to) { return casts().loops[static_cast<int>(from)][static_cast<int>(to)]; }

void copy_strided(DType dst_dtype, char* dst, const int64_t* dst_strides, DType src_dtype, const char* src,
                  const int64_t* src_strides, int ndim, const int64_t* shape) {
  const Loop loop = find_cast(src_dtype, dst_dtype);
  if (dst_dtype == src_dtype) {
    return copy_same(itemsize(dst_dtype), dst, dst_strides, src, src_strides, ndim, shape, loop);
  }
  const int64_t* const strides[] = {dst_strides, src_strides};
  char* const data[] = {dst, const_cast<char*>(src)};
  const int64_t sizes[] = {itemsize(dst_dtype), itemsize(src_dtype)};
  run_pointwise(loop, ndim, shape, 2, data, strides, nullptr, sizes);
}

void fill_strided(char* dst, int itemsize, int ndim, const int64_t* shape, const int64_t* strides, const void* value) {
  char* const data[] = {dst};
  const int64_t* const steps[] = {strides};
  run_pointwise(casts().repeat[itemsize], ndim, shape, 1, data, steps, value);
}

void fill_arange(DType dtype, char* dst, int64_t n, double start, double step) {
  const Range range = ranges().arange[static_cast<int>(dtype)];
  parallel_for(0, n, kRangeGrain, [&](int64_t begin, int64_t end) { range(dst, begin, end, n, start, step); });
}

void fill_arange(DType dtype, char* dst, int64_t n, int64_t start, int64_t step) {
  const IntegerRange range = ranges().integer_arange[static_cast<int>(dtype)];
  parallel_for(0, n, kRangeGrain, [&](int64_t begin, int64_t end) { range(dst, begin, end, start, step); });
}

void fill_linspace(DType dtype, char* dst, int64_t n, double start, double end_value) {
  const Range range = ranges().linspace[static_cast<int>(dtype)];
  parallel_for(0, n, kRangeGrain, [&](int64_t begin, int64_t end) { range(dst, begin, end, n, start, end_value); });
}

}  // namespace rl
