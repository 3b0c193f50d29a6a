// LAPACK through the function pointers that SciPy publishes, so that no library is linked or shipped.
#pragma once
#include <complex>
#include <type_traits>

namespace rl {

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <class T>
using Real = typename RealOf<T>::type;
template <class T>
constexpr bool kComplex = !std::is_same_v<T, Real<T>>;

// The routines of one element type, under the names of the real ones. Complex routines that take a real workspace
// besides have other signatures: F<real signature, complex signature>.
template <class T>
struct Lapack {
  using R = Real<T>;
  template <class A, class B>
  using F = std::conditional_t<kComplex<T>, B, A>*;

  void (*sytrf)(char* uplo, int* n, T* a, int* lda, int* pivots, T* work, int* lwork, int* info);
  void (*hetrf)(char* uplo, int* n, T* a, int* lda, int* pivots, T* work, int* lwork, int* info);
  void (*sytrs)(char* uplo, int* n, int* nrhs, T* a, int* lda, int* pivots, T* b, int* ldb, int* info);
  void (*hetrs)(char* uplo, int* n, int* nrhs, T* a, int* lda, int* pivots, T* b, int* ldb, int* info);
  void (*ormqr)(char* side, char* trans, int* m, int* n, int* k, T* a, int* lda, T* tau, T* c, int* ldc, T* work,
                int* lwork, int* info);
  F<void(char* job, char* uplo, int* n, T* a, int* lda, R* w, T* work, int* lwork, int* iwork, int* liwork, int* info),
    void(char* job, char* uplo, int* n, T* a, int* lda, R* w, T* work, int* lwork, R* rwork, int* lrwork, int* iwork,
         int* liwork, int* info)>
      syevd;
  void (*gebal)(char* job, int* n, T* a, int* lda, int* ilo, int* ihi, R* scale, int* info);
  F<void(char* update, int* n, T* t, int* ldt, T* q, int* ldq, int* from, int* to, T* work, int* info),
    void(char* update, int* n, T* t, int* ldt, T* q, int* ldq, int* from, int* to, int* info)>
      trexc;
  F<void(char* job, int* m, int* n, T* a, int* lda, R* s, T* u, int* ldu, T* vt, int* ldvt, T* work, int* lwork,
         int* iwork, int* info),
    void(char* job, int* m, int* n, T* a, int* lda, R* s, T* u, int* ldu, T* vt, int* ldvt, T* work, int* lwork,
         R* rwork, int* iwork, int* info)>
      gesdd;
  F<void(char* job_u, char* job_vt, int* m, int* n, T* a, int* lda, R* s, T* u, int* ldu, T* vt, int* ldvt, T* work,
         int* lwork, int* info),
    void(char* job_u, char* job_vt, int* m, int* n, T* a, int* lda, R* s, T* u, int* ldu, T* vt, int* ldvt, T* work,
         int* lwork, R* rwork, int* info)>
      gesvd;
  void (*gels)(char* trans, int* m, int* n, int* nrhs, T* a, int* lda, T* b, int* ldb, T* work, int* lwork, int* info);
  F<void(int* m, int* n, int* nrhs, T* a, int* lda, T* b, int* ldb, int* pivots, R* rcond, int* rank, T* work,
         int* lwork, int* info),
    void(int* m, int* n, int* nrhs, T* a, int* lda, T* b, int* ldb, int* pivots, R* rcond, int* rank, T* work,
         int* lwork, R* rwork, int* info)>
      gelsy;
  F<void(int* m, int* n, int* nrhs, T* a, int* lda, T* b, int* ldb, R* s, R* rcond, int* rank, T* work, int* lwork,
         int* iwork, int* info),
    void(int* m, int* n, int* nrhs, T* a, int* lda, T* b, int* ldb, R* s, R* rcond, int* rank, T* work, int* lwork,
         R* rwork, int* iwork, int* info)>
      gelsd;
  F<void(int* m, int* n, int* nrhs, T* a, int* lda, T* b, int* ldb, R* s, R* rcond, int* rank, T* work, int* lwork,
         int* info),
    void(int* m, int* n, int* nrhs, T* a, int* lda, T* b, int* ldb, R* s, R* rcond, int* rank, T* work, int* lwork,
         R* rwork, int* info)>
      gelss;
};

template <class T>
inline Lapack<T> lapack;  // filled by load_lapack

// Eigenvalues of tridiagonal matrices and singular values of bidiagonal ones, which are real.
template <class R>
struct Condensed {
  void (*stedc)(char* job, int* n, R* d, R* e, R* z, int* ldz, R* work, int* lwork, int* iwork, int* liwork, int* info);
  // The first part of merging two halves, and a root of the equation that is left.
  void (*laed2)(int* k, int* n, int* n1, R* d, R* q, int* ldq, int* indxq, R* rho, R* z, R* lambda, R* w, R* q2,
                int* indx, int* indxc, int* indxp, int* coltyp, int* info);
  void (*laed4)(int* n, int* i, R* d, R* z, R* delta, R* rho, R* lambda, int* info);
  void (*bdsdc)(char* uplo, char* job, int* n, R* d, R* e, R* u, int* ldu, R* vt, int* ldvt, R* q, int* iq, R* work,
                int* iwork, int* info);
};

template <class R>
inline Condensed<R> condensed;  // filled by load_lapack

// Reads scipy.linalg.cython_lapack; -1 with a Python exception where they lack what is expected.
int load_lapack();

// While one lives, OpenBLAS uses no threads but the caller's: beside other work its own wait for each other by turning,
// and eigh of 500 x 500 takes seconds instead of 12 ms. Nothing where SciPy has another library.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;
};

}  // namespace rl
