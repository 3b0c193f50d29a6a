// Sparse matrices and coordinate lists over raw memory. No Python, no GIL; the caller has checked shapes and dtypes.
//
// Coordinates are one key each, the row-major place of the element in the dense tensor. Compressed rows are `crow`
// (rows + 1 offsets) into `col`, both int64. No function trusts the indices that it is given: they may lie in memory
// that a user can write.
#pragma once
#include <cstdint>
#include <vector>

#include "rushlight/dtype.h"
#include "rushlight/isa.h"

namespace rl {

// ---- coordinates
struct BadIndex {
  int64_t dim = -1, index = 0;  // dim -1: every index is inside
};
// keys[k] from indices[d * row + k * column].
BadIndex flatten_keys(const int64_t* indices, int64_t row, int64_t column, int ndim, const int64_t* sizes, int64_t n,
                      int64_t* keys);
// indices[d * n + k] from keys.
void unflatten_keys(const int64_t* keys, int64_t n, int ndim, const int64_t* sizes, int64_t* indices);
bool ascends(const int64_t* keys, int64_t n, bool strictly);
// Where each group of equal ascending keys starts; keys.size() groups.
std::vector<int64_t> group_starts(const int64_t* keys, int64_t n);
// out[g] = sum of the blocks values[order[k]] of group g; order null: as they are. Every dtype but half precision.
void sum_groups(DType, const int64_t* starts, int64_t ngroups, int64_t n, const int64_t* order, const void* values,
                int64_t block, void* out);
// Merges two lists: places of their elements in the merged one, whose length is returned. Keys that meet share a place.
int64_t merge_keys(const int64_t* a, int64_t na, const int64_t* b, int64_t nb, int64_t* place_a, int64_t* place_b);
// The place of each wanted key in ascending keys, or -1.
void find_keys(const int64_t* keys, int64_t n, const int64_t* wanted, int64_t m, int64_t* out);

// ---- compressed rows
struct Csr {
  int64_t rows, cols, nnz;
  const int64_t *crow, *col;
  const void* values;
};
bool inside(const int64_t* indices, int64_t n, int64_t size);  // each in [0, size)
// Compressed rows of coordinates in any order, which are inside; `crow` has room for the offsets. Where the rows do not
// ascend, columns and values are put in order in memory of their own.
struct Ordered {
  std::vector<int64_t> col;
  std::vector<char> values;
};
Csr compress_rows(const int64_t* rows, const int64_t* cols, const void* values, int64_t itemsize, int64_t nnz,
                  int64_t nrows, int64_t ncols, int64_t* crow, Ordered* ordered);
bool valid(const Csr&);  // offsets ascend inside [0, nnz], columns lie inside [0, cols)
// out (rows, n) = a @ b, b (cols, n) and out dense, row after row. False where `a` is not valid: it is checked on the
// way.
bool csr_matmul(DType, const Csr& a, const void* b, int64_t n, void* out);
// a @ b with ascending columns; crow (a.rows + 1 of them) is written first, then `allocate` gives room for the rest.
struct CsrOut {
  int64_t* col;
  void* values;
};
void csr_matmul_csr(DType, const Csr& a, const Csr& b, int64_t* crow, CsrOut (*allocate)(void*, int64_t),
                    void* context);
// out[k] = row rows[k] of a (·, n) times row cols[k] of b (·, n); the indices are inside.
void sampled_products(DType, const int64_t* rows, const int64_t* cols, int64_t nnz, const void* a, const void* b,
                      int64_t n, void* out);

// Per instruction set, for float and double: rows [begin, end) of csr_matmul, and a dot product.
template <class T>
struct SparseLoops {
  void (*rows)(const int64_t* crow, const int64_t* col, const T* values, int64_t begin, int64_t end, const T* b,
               int64_t n, T* out);
  T (*dot)(const T* a, const T* b, int64_t n);
};
struct SparseTable {
  SparseLoops<float> floats;
  SparseLoops<double> doubles;
};

}  // namespace rl
RL_ISA_DECLARE(fill_sparse, SparseTable)
