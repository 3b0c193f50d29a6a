// Copies, casts, fills and ranges.
#pragma once
#include <cstdint>

#include "pointwise.h"

namespace rl {

// The loop that converts one input of dtype `from` to dtype `to`; exists for all pairs.
// Float to integer truncates and saturates, NaN becomes 0; complex to real drops the imaginary part; to bool is `!= 0`.
Loop find_cast(DType from, DType to);

// dst[j][i] = src[i][j] for dense rows of elements of a size; what is from row to row in bytes.
using Transpose = void (*)(const char* src, int64_t src_row, int64_t rows, int64_t cols, char* dst, int64_t dst_row);
Transpose find_transpose(int64_t size);

// n-dimensional copy with conversion; strides in bytes (source strides may be 0). The two must not overlap.
void copy_strided(DType dst_dtype, char* dst, const int64_t* dst_strides, DType src_dtype, const char* src,
                  const int64_t* src_strides, int ndim, const int64_t* shape);

// Writes the element at `value` (of size `itemsize`: 1, 2, 4, 8 or 16) to every element.
void fill_strided(char* dst, int itemsize, int ndim, const int64_t* shape, const int64_t* strides, const void* value);

// out[i] = start + i * step over n contiguous elements: floating dtypes, and integers of any width.
void fill_arange(DType dtype, char* dst, int64_t n, double start, double step);
void fill_arange(DType dtype, char* dst, int64_t n, int64_t start, int64_t step);

// n contiguous elements from start to end inclusive, counted from the nearer end. Floating dtypes and integers.
void fill_linspace(DType dtype, char* dst, int64_t n, double start, double end);

}  // namespace rl
