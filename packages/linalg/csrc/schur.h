// Kernels for the Schur form of a Hessenberg matrix, by QR iterations whose shifts are chased down the diagonal as
// bulges: Braman, Byers and Mathias, "The multishift QR algorithm. Part I" (2002).
#pragma once
#include <rushlight/isa.h>

#include <complex>
#include <cstdint>

namespace rl {

constexpr int64_t kSpans = 64;       // the most rows that a part of a chain may span
constexpr int64_t kReflection = 5;   // numbers that a reflection is kept in
constexpr int64_t kBulgeShifts = 4;  // numbers that the shifts of a bulge are kept in

// A bulge is a pair of shifts in a real matrix, one shift in a complex one; its reflections are of kBulge rows. At a
// time t bulge b reflects the rows from lo + t - b kBulge on, as long as these lie in [lo, hi - 1).
template <class T>
constexpr int64_t kBulge = 3;
template <class R>
constexpr int64_t kBulge<std::complex<R>> = 2;

// The times [begin, end) of a chain of bulges through the block [lo, hi) of a Hessenberg matrix, and the rows [first,
// last) that these reflect.
struct Chain {
  int64_t lo, hi, bulges, begin, end, first, last;
};

// Matrices lie column by column. `reflections` has kReflection numbers for every time of the chain, bulge by bulge.
template <class T, class R>
struct SchurKernels {
  // Reflects the columns up to `columns` of H from the left and its rows from `row` on from the right. The shifts of a
  // bulge are two complex numbers, or one. A column is read to three elements past its last row.
  void (*chase)(const Chain& chain, const R* shifts, int64_t row, int64_t columns, T* h, int64_t ld, R* reflections);
  // The same reflections of m rows of other columns, from the right; `x` is their part of column 0.
  void (*reflect_right)(const Chain& chain, const R* reflections, int64_t m, T* x, int64_t ld);
  // The same of n columns from the left, for chains that span at most kSpans rows; `x` is their part of row 0.
  void (*reflect_left)(const Chain& chain, const R* reflections, int64_t n, T* x, int64_t ld);
  // Eigenvectors of an upper triangular matrix of complex numbers: element k of vector i is at x[k][0][i] and
  // x[k][1][i], in rows up to that of the last value, for kLanes values in ascending order.
  int64_t lanes;
  void (*vectors)(const std::complex<R>* t, int64_t ld, R smallest, const int64_t* values, R* x);
};

struct SchurTable {
  SchurKernels<float, float> s;
  SchurKernels<double, double> d;
  SchurKernels<std::complex<float>, float> c;
  SchurKernels<std::complex<double>, double> z;
};

}  // namespace rl

RL_ISA_DECLARE(fill_schur, SchurTable)
