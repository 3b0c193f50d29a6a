// Tiles of a matrix product that runs from the caches: include in an ISA source only (see isa.h).
#pragma once

#include "rushlight/simd.h"

namespace rl {
namespace RL_ISA {
namespace {

// Rows of N vectors that begin `row` elements apart.
template <class T>
struct PanelB {
  const T* data;
  int64_t row;
  Vec<T> vec(int64_t p, int j) const { return load(data + p * row + j * kLanes<T>); }
  Vec<T> last_vec(int64_t p, int j, int64_t) const { return vec(p, j); }
};
template <class T>
struct StridedA {
  const T* data;
  int64_t row, column;
  T at(int i, int64_t p) const { return data[i * row + p * column]; }
};

// Rows of a tile of N vectors, as many as leave registers for an operand.
template <int N>
constexpr int kTileRows = N <= kVecs ? kFloatRows : (kFloatRows * kVecs - 2) / N;

// c = a @ b, or c += a @ b: R rows, `c_row` elements apart, of N vectors.
template <class T, int R, int N>
[[gnu::noinline]] void tile(int64_t k, StridedA<T> a, PanelB<T> b, T* c, int64_t c_row, bool add) {
  Vec<T> sum[R * N];
  multiply<T, R, N>(k, a, b, kLanes<T>, sum);
  repeat<R * N>([&](auto x) RL_INLINE {
    T* to = c + x.value / N * c_row + x.value % N * kLanes<T>;
    store(to, add ? load(to) + sum[x.value] : sum[x.value]);
  });
}
template <class T, int N, int Most = kTileRows<N>>
inline void run_tile(int64_t rows, int64_t k, StridedA<T> a, PanelB<T> b, T* c, int64_t c_row, bool add) {
  if constexpr (Most > 1) {
    if (rows < Most) return run_tile<T, N, Most - 1>(rows, k, a, b, c, c_row, add);
  }
  tile<T, Most, N>(k, a, b, c, c_row, add);
}

// f(first row, rows) of the tiles of `rows` rows, nearly equal in height.
template <int N, class F>
inline void each_tile(int64_t rows, const F& f) {
  const int64_t tiles = parts(rows, kTileRows<N>);
  for (int64_t i = 0, t = 0; t < tiles; ++t) {
    const int64_t height = parts(rows - i, tiles - t);
    f(i, height);
    i += height;
  }
}

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
