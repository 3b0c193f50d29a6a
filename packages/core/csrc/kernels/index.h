// Gathering, scattering, masks: elements moved to and from places that other tensors name. Raw memory, no Python.
#pragma once
#include <cstdint>

#include "rushlight/dtype.h"
#include "rushlight/isa.h"

namespace rl {

// Address of the first of n indices that is outside of [low, size), or null.
const int64_t* find_outside(const int64_t* index, int64_t n, int64_t low, int64_t size);
// The same from 0, with the indices narrowed: size <= 65536.
const int64_t* narrow_inside(const int64_t* index, int64_t n, int64_t size, uint16_t* narrow);

// Indices into one dimension of `size`; negative ones count from its end. The stride is in bytes.
struct IndexList {
  const int64_t* values;
  int64_t size, stride;
};

// Memory seen as outer × count × inner, where each of the `count` places is the sum of what `nlists` lists say. Strides
// in bytes.
struct Blocks {
  int nouter = 0, ninner = 0;
  const int64_t *outer_sizes = nullptr, *outer_strides = nullptr;
  const int64_t *inner_sizes = nullptr, *inner_strides = nullptr;
  int64_t count = 0;
  int nlists = 0;
  const IndexList* lists = nullptr;
  int itemsize = 0;
};
// Dense memory in the order outer, place, inner ← the places of `from`. Returns the address of an index that is out of
// bounds, null where all are well; then the result is incomplete.
const int64_t* gather_blocks(const Blocks&, const char* from, char* dense);
// The places of `to` ← dense memory, or one element repeated. Of equal places the last one wins. Indices are in bounds.
void scatter_blocks(const Blocks&, char* to, const char* dense, bool one_value);
// The same, adding. Equal places add up in order, so the result does not depend on the number of threads.
void scatter_add_blocks(DType, const Blocks&, char* to, const char* dense, bool one_value);

// One loop along a dimension that indices point into; the other dimensions run in step. Strides in bytes.
struct Lines {
  int ndim;  // of the other dimensions, at least 1
  const int64_t* sizes;
  const int64_t *self, *index, *other;  // strides of each operand
  int64_t length;                       // of `index` along the dimension
  int64_t size;                         // of `self` along it; indices are to be inside [0, size)
  int64_t self_step, index_step, other_step;
};
// other ← self at index. Returns the address of an index that is out of bounds, null where all are well.
const int64_t* gather_lines(const Lines&, int itemsize, const char* self, const char* index, char* other);
enum class Scatter { Assign, Add, Multiply, Maximum, Minimum };  // the last two: NaN wins; not for complex numbers
// self at index ← self ∘ other. Lines run in parallel, each in order. Indices, int64_t or uint16_t, are in bounds.
template <class Index>
void scatter_lines(const Lines&, Scatter, DType, char* self, const char* index, const char* other);

// ---- masks: n bytes, set where they are not 0
int64_t count_set(const uint8_t* mask, int64_t n);
// Dense blocks of `block` bytes whose mask is set, one after the other.
void compress(const uint8_t* mask, int64_t n, const char* from, int64_t block, char* to);
// The reverse: elements whose mask is set take the next one of `from`.
void expand_mask(const uint8_t* mask, int64_t n, char* to, int itemsize, const char* from);
// Blocks whose mask is set become `value` of `itemsize` bytes, repeated.
void fill_mask(const uint8_t* mask, int64_t n, char* to, int64_t block, const void* value, int itemsize);
// Coordinates of set bytes of a dense mask: out[k * row + d * column] for the k-th one.
void mask_coordinates(const uint8_t* mask, int ndim, const int64_t* sizes, int64_t* out, int64_t row, int64_t column);

// Rows of a dense batch of matrices with what lies above (keep_lower) or below diagonal k set to zero.
void copy_triangle(const char* from, char* to, int64_t batch, int64_t rows, int64_t columns, int64_t k, bool keep_lower,
                   int itemsize);

// Per instruction set (index_isa.cpp).
struct IndexTable {
  bool (*all_inside)(const int64_t* index, int64_t n, int64_t low, int64_t size);  // [low, size)
  // offsets[i] = (adds ? offsets[i] : 0) + what list.values[begin + i], which is in bounds, stands for.
  void (*narrow)(const int64_t* index, int64_t n, uint16_t* to);
  void (*offsets)(const IndexList& list, int64_t begin, int64_t n, bool adds, int64_t* offsets);
};

}  // namespace rl

RL_ISA_DECLARE(fill_index, IndexTable)
