// Kernels that go over the columns of one large matrix, as often as its reduction to a few diagonals asks for.
#pragma once
#include <rushlight/isa.h>

#include <complex>
#include <cstdint>

namespace rl {

constexpr int64_t kPanelColumns = 8;  // the widest panel of LU, Cholesky and QR

// Matrices lie column by column. A turned vector holds its elements and, `stride` elements on, i times them where they
// are complex: products of complex numbers are then multiples of real vectors.
template <class T, class R>
struct SweepKernels {
  // The largest size of a part of n elements; NaN where one is not finite.
  R (*largest)(int64_t n, const T* x);
  // The sum of |x|^2 of n elements.
  R (*squares)(int64_t n, const T* x);
  // LAPACK's getf2 of (m, n) for n <= kPanelColumns.
  int (*lu)(int64_t m, int64_t n, T* a, int64_t lda, int* pivots);
  // The first n <= kPanelColumns columns (m, n) of the Cholesky factor in place of those of the matrix, from the
  // diagonal on; info is that of LAPACK's potf2.
  int (*cholesky)(int64_t m, int64_t n, T* a, int64_t lda);
  // LAPACK's geqr2 of (m, n) for n <= kPanelColumns.
  void (*qr)(int64_t m, int64_t n, T* a, int64_t lda, T* tau);
  // to[j * ld_to + i] = from[i * ld + j] for rows i < m and columns j < n.
  void (*transpose)(int64_t m, int64_t n, const T* from, int64_t ld, T* to, int64_t ld_to);
  // C -= A B of (m, k) and (k, n), read where they lie: what a copy would cost is not worth it for small k.
  void (*subtract)(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c,
                   int64_t ldc);
  // For the columns [begin, end) of the lower triangle of a Hermitian matrix of order n: A -= v w^H + w v^H, then
  // adds to y what these columns, and the rows that they stand for, give of A x. v, w and x are turned; the sum that y
  // (0) and y (1) = y + stride stand for is y (0) + i y (1).
  void (*hermitian)(int64_t n, int64_t begin, int64_t end, T* a, int64_t lda, int64_t stride, const T* v, const T* w,
                    const T* x, T* y);
  // For the columns [begin, end) of (m, n): A -= u y^H + x v^H, then g = tau A^H next and c = conj(first row) - g, and
  // adds A c to z, which is as y above. u, x and next are turned.
  void (*general)(int64_t m, int64_t begin, int64_t end, T* a, int64_t lda, int64_t stride, const T* u, const T* y,
                  const T* x, const T* v, const T* next, const T* tau, T* g, T* c, T* z);
  // For the columns [begin, end) of (m, n): A -= u y^H + x v^H, then g = A^H next, and adds A c to z, which is as y
  // above. u, x and next are turned.
  void (*similar)(int64_t m, int64_t begin, int64_t end, T* a, int64_t lda, int64_t stride, const T* u, const T* y,
                  const T* x, const T* v, const T* next, const T* c, T* g, T* z);
};

struct SweepTable {
  SweepKernels<float, float> s;
  SweepKernels<double, double> d;
  SweepKernels<std::complex<float>, float> c;
  SweepKernels<std::complex<double>, double> z;
};

}  // namespace rl

RL_ISA_DECLARE(fill_sweeps, SweepTable)
