// Eigenvalues and singular values.
#include <algorithm>

#include "eigen.h"

namespace rl {

namespace {

// ---- Hermitian eigenvalues

char triangle_of(const Arg& arg) {
  const char* text = PyUnicode_Check(arg.object) ? PyUnicode_AsUTF8(arg.object) : "";
  if (!text) throw PythonError();
  if (text[0] && !text[1]) {
    if (text[0] == 'L' || text[0] == 'l') return 'L';
    if (text[0] == 'U' || text[0] == 'u') return 'U';
  }
  fail(PyExc_RuntimeError, "Expected UPLO argument to be 'L' or 'U', but got %S", arg.object);
}

template <class T>
int syevd(char job, char uplo, int n, T* a, Real<T>* w, T* work, int lwork, Real<T>* rwork, int lrwork, int* iwork,
          int liwork) {
  int ld = leading(n), info = 0;
  if constexpr (kComplex<T>)
    lapack<T>.syevd(&job, &uplo, &n, a, &ld, w, work, &lwork, rwork, &lrwork, iwork, &liwork, &info);
  else
    lapack<T>.syevd(&job, &uplo, &n, a, &ld, w, work, &lwork, iwork, &liwork, &info);
  return info;
}

// Row-major A is LAPACK's transpose, which is the conjugate of A: eigenvalues are the same, vectors conjugate, and the
// triangles change places.
PyObject* eigh_any(Call& call, const char* op, bool vectors) {
  Tensor* a = call.args[0].tensor;
  check_square(op, a);
  check_floating(op, a);
  const char uplo = triangle_of(call.args[1]) == 'L' ? 'U' : 'L', job = vectors ? 'V' : 'N';
  const int64_t n = rows(a);
  Owned values = empty(batch_of(a, 1), real_of(a->dtype), a->device);
  Owned v = vectors ? empty_columns(batch_of(a), n, n, a->dtype, a->device) : empty({0}, a->dtype, a->device);
  if (!is_meta(call) && n) {
    const Stack from(a);
    Owned info = empty(batch_of(a), DType::Int32, a->device);
    by_dtype(a->dtype, [&](auto zero) {
      using T = decltype(zero);
      using R = Real<T>;
      T answer(0);
      R real_answer(0);
      int int_answer = 0;
      syevd<T>(job, uplo, as_int(n), &answer, &real_answer, &answer, -1, &real_answer, -1, &int_answer, -1);
      const int size = workspace_size(answer), real_size = workspace_size(real_answer);
      for_each(from.count(), (vectors ? 9 : 4.0 / 3) * flops<T>(n, n, n), [&](int64_t begin, int64_t end) {
        if (fits_lanes(n, n)) {
          const Rows<T> matrices(from, begin, end);
          for (int64_t i = begin; i < end; ++i)
            info.data<int32_t>()[i] = all_finite(matrices + (i - begin) * n * n, n * n) ? 0 : kNotFinite;
          return lanes<T>().eigh(matrices, n, end - begin, uplo == 'L', values.data<R>() + begin * n,
                                 vectors ? data_of<T>(v, begin) : nullptr);
        }
        if (n >= kCondensedFrom) {
          Memory<T> copy(static_cast<size_t>(n * n));
          for (int64_t i = begin; i < end; ++i) {
            T* z = vectors ? data_of<T>(v, i) : nullptr;
            if (uplo == 'U')
              from.columns(i, copy.data());
            else  // the conjugate, with the upper triangle below
              from.rows(i, copy.data());
            info.data<int32_t>()[i] =
                all_finite(copy.data(), n * n) ? large_eigh(n, copy.data(), values.data<R>() + i * n, z) : kNotFinite;
            if (kComplex<T> && vectors && uplo == 'L') std::transform(z, z + n * n, z, [](T e) { return conj(e); });
          }
          return;
        }
        Memory<T> work(static_cast<size_t>(size)), copy(vectors ? 0 : static_cast<size_t>(n * n));
        Memory<R> rwork(kComplex<T> ? static_cast<size_t>(real_size) : 0);
        std::vector<int> iwork(static_cast<size_t>(int_answer));
        for (int64_t i = begin; i < end; ++i) {
          T* x = vectors ? data_of<T>(v, i) : copy.data();
          from.rows(i, x);
          info.data<int32_t>()[i] = !all_finite(x, n * n)
                                        ? kNotFinite
                                        : syevd<T>(job, uplo, as_int(n), x, values.data<R>() + i * n, work.data(), size,
                                                   rwork.data(), real_size, iwork.data(), int_answer);
          if (kComplex<T> && vectors) std::transform(x, x + n * n, x, [](T e) { return conj(e); });
        }
      });
    });
    raise_failures(op, info.get(), a,
                   "The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
                   "repeated eigenvalues (error code: %d).");
  }
  return vectors ? tuple_of({&values, &v}) : values.release();
}

PyObject* eigh_kernel(Call& call) { return eigh_any(call, "linalg.eigh", true); }
PyObject* eigvalsh_kernel(Call& call) { return eigh_any(call, "linalg.eigvalsh", false); }

// ---- eigenvalues of any matrix

PyObject* eig_any(Call& call, const char* op, bool vectors) {
  Tensor* a = call.args[0].tensor;
  check_square(op, a);
  check_floating(op, a);
  const int64_t n = rows(a);
  const DType dtype = complex_of(a->dtype);
  Owned values = empty(batch_of(a, 1), dtype, a->device);
  Owned v = vectors ? empty_columns(batch_of(a), n, n, dtype, a->device) : empty({0}, dtype, a->device);
  if (!is_meta(call) && n) {
    const Stack from(a);
    Owned info = empty(batch_of(a), DType::Int32, a->device);
    by_dtype(a->dtype, [&](auto zero) {
      using T = decltype(zero);
      using C = std::complex<Real<T>>;
      const int64_t ld = padded<T>(n);
      for_each(from.count(), (vectors ? 25 : 10) * flops<T>(n, n, n), [&](int64_t begin, int64_t end) {
        Memory<T> copy(static_cast<size_t>(ld * n));
        for (int64_t i = begin; i < end; ++i) {
          std::fill(copy.begin(), copy.end(), T(0));
          from.columns(i, copy.data(), ld);
          int32_t& code = info.data<int32_t>()[i];
          code = kNotFinite;
          if (!all_finite(copy.data(), ld * n)) continue;
          const Real<T> scale = unit_scale(ld * n, copy.data());
          for (T& x : copy) x *= scale;
          C* w = values.data<C>() + i * n;
          code = eigen(n, copy.data(), w, vectors ? data_of<C>(v, i) : nullptr);
          for (int64_t k = 0; k < n; ++k) w[k] /= scale;
        }
      });
    });
    raise_failures(op, info.get(), a,
                   "The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
                   "repeated eigenvalues (error code: %d).");
  }
  return vectors ? tuple_of({&values, &v}) : values.release();
}

PyObject* eig_kernel(Call& call) { return eig_any(call, "linalg.eig", true); }
PyObject* eigvals_kernel(Call& call) { return eig_any(call, "linalg.eigvals", false); }

// ---- singular values

template <class T>
int gesdd(char job, int m, int n, T* a, Real<T>* s, T* u, int ldu, T* vt, int ldvt, T* work, int lwork, Real<T>* rwork,
          int* iwork) {
  int lda = leading(m), info = 0;
  if constexpr (kComplex<T>)
    lapack<T>.gesdd(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, rwork, iwork, &info);
  else
    lapack<T>.gesdd(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, iwork, &info);
  return info;
}

template <class T>
int gesvd(char job, int m, int n, T* a, Real<T>* s, T* u, int ldu, T* vt, int ldvt, T* work, int lwork,
          Real<T>* rwork) {
  int lda = leading(m), info = 0;
  char same = job;
  if constexpr (kComplex<T>)
    lapack<T>.gesvd(&job, &same, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, rwork, &info);
  else
    lapack<T>.gesvd(&job, &same, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, &info);
  return info;
}

// Matrix i of a stack, row by row in `a`, which is overwritten; U (m, width) and V^H (height, n) row by row, both or
// neither.
template <class T>
int svd_by_rows(const Stack& from, int64_t i, T* a, Real<T>* s, T* u, int64_t width, T* vh, int64_t height) {
  const int64_t m = from.m, n = from.n;
  if (m < n) {  // A^T = conj(V) S U^T
    Memory<T> v(u ? static_cast<size_t>(m * m) : 0);
    const int info = large_svd(n, m, a, s, vh, height, u ? v.data() : nullptr);
    for (int64_t j = 0; j < m && u; ++j)
      for (int64_t k = 0; k < m; ++k) u[k * m + j] = conj(v[static_cast<size_t>(j * m + k)]);
    return info;
  }
  from.columns(i, a);
  Memory<T> columns(u ? static_cast<size_t>(m * width) : 0);
  const int info = large_svd(m, n, a, s, u ? columns.data() : nullptr, width, vh);
  if (!u) return info;
  for (int64_t j = 0; j < width; ++j)
    for (int64_t k = 0; k < m; ++k) u[k * width + j] = columns[static_cast<size_t>(j * m + k)];
  if (kComplex<T>) std::transform(vh, vh + n * n, vh, [](T x) { return conj(x); });
  return info;
}

constexpr int32_t kAgain = 1;  // left to LAPACK

// Row-major A (m, n) is LAPACK's A^T (n, m) = U1 S V1^H, and A = conj(V1) S U1^T: the memory of V1^H, row by row, is U,
// and that of U1 is V^H.
PyObject* svd_any(Call& call, const char* op, bool vectors, bool full, const Arg& driver) {
  Tensor* a = call.args[0].tensor;
  check_matrix(op, a);
  check_floating(op, a);
  if (!driver.none())
    fail(PyExc_RuntimeError,
         "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.");
  const int64_t m = rows(a), n = columns(a), least = std::min(m, n);
  Owned s = empty(batch_of(a) + Sizes{least}, real_of(a->dtype), a->device);
  const int64_t width = !vectors ? 0 : full ? m : least, height = !vectors ? 0 : full ? n : least;
  Owned u = vectors ? empty(batch_of(a) + Sizes{m, width}, a->dtype, a->device) : empty({0}, a->dtype, a->device);
  Owned vh = vectors ? empty(batch_of(a) + Sizes{height, n}, a->dtype, a->device) : empty({0}, a->dtype, a->device);
  if (!is_meta(call)) {
    const Stack from(a);
    Owned info = empty(batch_of(a), DType::Int32, a->device);
    by_dtype(a->dtype, [&](auto zero) {
      using T = decltype(zero);
      using R = Real<T>;
      if (!least) {  // orthonormal bases of the whole space: the identity
        for (Owned* basis : {&u, &vh})
          for (int64_t i = 0, side = (*basis)->ndim > 1 ? columns(basis->get()) : 0; i < (*basis)->numel; ++i)
            basis->data<T>()[i] = T(i % (side * side) % (side + 1) == 0);
        std::fill_n(info.data<int32_t>(), info->numel, 0);
        return;
      }
      const bool small = m >= n && fits_lanes(m, n) && (!vectors || width == n);
      const char job = !vectors ? 'N' : full ? 'A' : 'S';
      const int ldu = leading(n), ldvt = leading(width);
      T answer(0), second(0);
      R real_answer(0);
      int int_answer = 0;
      gesdd<T>(job, as_int(n), as_int(m), &answer, &real_answer, &answer, ldu, &answer, ldvt, &answer, -1, &real_answer,
               &int_answer);
      gesvd<T>(job, as_int(n), as_int(m), &second, &real_answer, &second, ldu, &second, ldvt, &second, -1,
               &real_answer);
      const int size = std::max(workspace_size(answer), workspace_size(second));
      const auto k = static_cast<size_t>(least), most = static_cast<size_t>(std::max(m, n));
      const size_t real_size = kComplex<T> ? k * std::max(5 * k + 7, 2 * (most + k) + 1) : 0;
      for_each(from.count(), (vectors ? 22 : 8.0 / 3) * flops<T>(m, n, least), [&](int64_t begin, int64_t end) {
        int32_t* codes = info.data<int32_t>();
        std::fill(codes + begin, codes + end, kAgain);
        if (small)
          lanes<T>().svd(Rows<T>(from, begin, end), m, n, end - begin,
                         vectors ? u.data<T>() + begin * m * width : nullptr, s.data<R>() + begin * n,
                         vectors ? vh.data<T>() + begin * n * n : nullptr, codes + begin);
        if (std::all_of(codes + begin, codes + end, [](int32_t code) { return code == 0; })) return;
        Memory<T> work(static_cast<size_t>(size)), copy(static_cast<size_t>(m * n));
        Memory<R> rwork(real_size);
        std::vector<int> iwork(8 * k);
        for (int64_t i = begin; i < end; ++i) {
          R* s_i = s.data<R>() + i * least;
          T *u1 = vh.data<T>() + i * height * n, *vt1 = u.data<T>() + i * m * width;
          int& code = codes[i];
          if (!code) continue;
          from.rows(i, copy.data());
          if (!all_finite(copy.data(), m * n)) {
            code = kNotFinite;
            continue;
          }
          code = least >= kCondensedFrom ? svd_by_rows(from, i, copy.data(), s_i, vectors ? vt1 : nullptr, width,
                                                       vectors ? u1 : nullptr, height)
                                         : gesdd<T>(job, as_int(n), as_int(m), copy.data(), s_i, u1, ldu, vt1, ldvt,
                                                    work.data(), size, rwork.data(), iwork.data());
          if (!code) continue;
          from.rows(i, copy.data());  // QR iterations converge where divide and conquer does not
          code = gesvd<T>(job, as_int(n), as_int(m), copy.data(), s_i, u1, ldu, vt1, ldvt, work.data(), size,
                          rwork.data());
        }
      });
    });
    raise_failures(op, info.get(), a,
                   "The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
                   "repeated singular values (error code: %d).");
  }
  return vectors ? tuple_of({&u, &s, &vh}) : s.release();
}

PyObject* svd_kernel(Call& call) { return svd_any(call, "linalg.svd", true, call.args[1].to_bool(), call.args[2]); }
PyObject* svdvals_kernel(Call& call) { return svd_any(call, "linalg.svdvals", false, false, call.args[1]); }

// ---- values that will be differentiated

// The results with zeros of the shape of A, which bring a gradient to the vectors: see turns in _ops_spectral.py.
PyObject* with_zeros(PyObject* results, const Tensor* a) {
  const Py_ssize_t n = PyTuple_GET_SIZE(results);
  if (_PyTuple_Resize(&results, n + 1) < 0) throw PythonError();
  PyTuple_SET_ITEM(results, n, nullptr);
  Owned all(results), zero = empty(batch_of(a, 0), a->dtype, a->device);
  if (zero->data)
    by_dtype(a->dtype, [&](auto x) { std::fill_n(zero.data<decltype(x)>(), zero->numel, decltype(x)(0)); });
  PyTuple_SET_ITEM(results, n, zero.release());
  return all.release();
}

PyObject* eigvalsh_recorded_kernel(Call& call) {
  return with_zeros(eigh_any(call, "linalg.eigvalsh", true), call.args[0].tensor);
}
PyObject* svdvals_recorded_kernel(Call& call) {
  return with_zeros(svd_any(call, "linalg.svdvals", true, false, call.args[1]), call.args[0].tensor);
}

constexpr Registration kernels[] = {
    {"linalg::_eigvalsh_recorded", guarded<eigvalsh_recorded_kernel>},
    {"linalg::_svdvals_recorded", guarded<svdvals_recorded_kernel>},
    {"linalg::eigh", guarded<eigh_kernel>},
    {"linalg::_eigvalsh", guarded<eigvalsh_kernel>},
    {"linalg::eig", guarded<eig_kernel>},
    {"linalg::_eigvals", guarded<eigvals_kernel>},
    {"linalg::svd", guarded<svd_kernel>},
    {"linalg::_svdvals", guarded<svdvals_kernel>},
};

}  // namespace

bool register_spectral() { return register_kernels(kernels, std::size(kernels)); }

}  // namespace rl
