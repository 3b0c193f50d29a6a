// Kernels for many small matrices: every lane of a vector holds a matrix of its own.
#pragma once
#include <rushlight/isa.h>

#include <complex>
#include <cstdint>

namespace rl {

constexpr int64_t kLaneOrder = 8;  // the most rows and columns
constexpr int64_t kTriangle = 16;  // the largest triangle that is solved with as a whole

// Matrices follow each other, row by row where nothing else is said; T is the element type, R its real type. `info` is
// that of LAPACK's routine of the name.
template <class T, class R>
struct LaneKernels {
  // The diagonal of U of the LU factors, whose product with the sign of the permutation is the determinant.
  void (*lu_diagonal)(const T* a, int64_t n, int64_t count, T* diagonal);
  void (*inv)(const T* a, int64_t n, int64_t count, T* inverse, int32_t* info);
  // b (n, k); x by columns.
  void (*solve)(const T* a, const T* b, int64_t n, int64_t k, int64_t count, T* x, int32_t* info);
  void (*cholesky)(const T* a, int64_t n, int64_t count, bool upper, T* factor, int32_t* info);
  // Q (m, k) and R (k, n) by columns, for k = min(m, n); q may be null.
  void (*qr)(const T* a, int64_t m, int64_t n, int64_t count, T* q, T* r);
  // The first n columns (m, n), by columns, of the product of the k reflectors that the first columns of a (m, n) hold.
  void (*reflectors)(const T* a, const T* tau, int64_t m, int64_t n, int64_t k, int64_t count, T* q);
  // a to the power of an exponent > 1.
  void (*power)(const T* a, int64_t n, int64_t exponent, int64_t count, T* result);
  // Of Hermitian matrices, whose upper or lower triangle is read: values ascending, and unless null, vectors by
  // columns.
  void (*eigh)(const T* a, int64_t n, int64_t count, bool upper, R* values, T* vectors);
  // For m >= n: U (m, n), S descending, V^H; u and vh may be null. `again` is set where it is not accurate enough.
  void (*svd)(const T* a, int64_t m, int64_t n, int64_t count, T* u, R* s, T* vh, int32_t* again);
  // A right-hand side in each lane: X of A X = B in place of B (n, k), by columns, for A lower triangular where
  // `forward`, else upper, with kTriangle rows in memory and the inverses of its diagonal in place of that.
  void (*solve_triangle)(bool forward, int64_t n, const T* a, int64_t k, T* b, int64_t ldb);
};

struct LaneTable {
  LaneKernels<float, float> s;
  LaneKernels<double, double> d;
  LaneKernels<std::complex<float>, float> c;
  LaneKernels<std::complex<double>, double> z;
};

}  // namespace rl

RL_ISA_DECLARE(fill_lanes, LaneTable)
