// The loop nest of an operation on strided operands, with as few dimensions as possible.
#pragma once
#include <cstdint>

#include "iterator.h"

namespace rl {

struct Nest {
  int ndim = 0;  // dimension 0 is the innermost
  int nops = 0;
  int64_t numel = 1;
  int64_t shape[kMaxDims];
  int64_t strides[kMaxDims][kMaxOperands];  // bytes

  // Drops dimensions of size 1, sorts the rest so that the first operands walk memory in order, merges neighbours.
  Nest(int dims, const int64_t* sizes, int operands, const int64_t* const* steps);

  // Calls row(pointers, count) for runs along the innermost dimension that cover elements [begin, end).
  template <class Row>
  void walk(char* const* data, int64_t begin, int64_t end, const Row& row) const {
    int64_t index[kMaxDims];
    char* at[kMaxOperands];
    for (int k = 0; k < nops; ++k) at[k] = data[k];
    int64_t rest = begin;
    for (int d = 0; d < ndim; ++d) {
      index[d] = rest % shape[d];
      rest /= shape[d];
      for (int k = 0; k < nops; ++k) at[k] += index[d] * strides[d][k];
    }
    for (int64_t i = begin; i < end;) {
      const int64_t count = shape[0] - index[0] < end - i ? shape[0] - index[0] : end - i;
      row(at, count);
      i += count;
      if (i >= end) return;
      // The next row: only the first and the last may be partial.
      for (int k = 0; k < nops; ++k) at[k] -= index[0] * strides[0][k];
      index[0] = 0;
      for (int d = 1; d < ndim; ++d) {
        for (int k = 0; k < nops; ++k) at[k] += strides[d][k];
        if (++index[d] < shape[d]) break;
        for (int k = 0; k < nops; ++k) at[k] -= shape[d] * strides[d][k];
        index[d] = 0;
      }
    }
  }

  // Tiles of dimensions 0 and d, counted along 0, then along d, then along the others.
  struct Tiles {
    int d;
    int64_t columns, rows;  // at most, of one tile
  };
  int64_t count(const Tiles& t) const {
    return numel / (shape[0] * shape[t.d]) * ((shape[0] - 1) / t.columns + 1) * ((shape[t.d] - 1) / t.rows + 1);
  }

  // Calls tile(pointers, columns, rows) for tiles [begin, end).
  template <class Tile>
  void walk(const Tiles& t, char* const* data, int64_t begin, int64_t end, const Tile& tile) const {
    const int64_t across = (shape[0] - 1) / t.columns + 1, down = (shape[t.d] - 1) / t.rows + 1;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i % across * t.columns, row = i / across % down * t.rows;
      char* at[kMaxOperands];
      for (int k = 0; k < nops; ++k) at[k] = data[k] + column * strides[0][k] + row * strides[t.d][k];
      int64_t rest = i / (across * down);
      for (int d = 1; d < ndim; ++d) {
        if (d == t.d) continue;
        for (int k = 0; k < nops; ++k) at[k] += rest % shape[d] * strides[d][k];
        rest /= shape[d];
      }
      tile(at, shape[0] - column < t.columns ? shape[0] - column : t.columns,
           shape[t.d] - row < t.rows ? shape[t.d] - row : t.rows);
    }
  }
};

}  // namespace rl
