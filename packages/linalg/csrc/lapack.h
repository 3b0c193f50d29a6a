// LAPACK through the function pointers that SciPy publishes, so that no BLAS is linked or shipped.
#pragma once
#include <complex>

namespace rl_linalg {

template <class T>
struct Lapack {
  void (*getrf)(int* m, int* n, T* a, int* lda, int* pivots, int* info);
  void (*getri)(int* n, T* a, int* lda, int* pivots, T* work, int* lwork, int* info);
  void (*getrs)(char* trans, int* n, int* nrhs, T* a, int* lda, int* pivots, T* b, int* ldb, int* info);
  void (*potrf)(char* uplo, int* n, T* a, int* lda, int* info);
};

// Set by load_lapack(); the four types LAPACK knows.
extern Lapack<float> s;
extern Lapack<double> d;
extern Lapack<std::complex<float>> c;
extern Lapack<std::complex<double>> z;

template <class T>
const Lapack<T>& lapack();
template <>
inline const Lapack<float>& lapack() {
  return s;
}
template <>
inline const Lapack<double>& lapack() {
  return d;
}
template <>
inline const Lapack<std::complex<float>>& lapack() {
  return c;
}
template <>
inline const Lapack<std::complex<double>>& lapack() {
  return z;
}

// Reads scipy.linalg.cython_lapack; -1 with a Python exception where it does not hold what is expected.
int load_lapack();

}  // namespace rl_linalg
