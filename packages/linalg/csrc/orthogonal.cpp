// QR and products of Householder reflectors.
#include <algorithm>
#include <cstring>

#include "blocked.h"

namespace rl {

namespace {

long long ll(int64_t x) { return static_cast<long long>(x); }

PyObject* geqrf_kernel(Call& call) {
  const char* op = "geqrf";
  Tensor* a = call.args[0].tensor;
  check_matrix(op, a, "input");
  check_floating(op, a);
  const int64_t m = rows(a), n = columns(a), least = std::min(m, n);
  Owned factors = empty_columns(batch_of(a), m, n, a->dtype, a->device);
  Owned tau = empty(batch_of(a) + Sizes{least}, a->dtype, a->device);
  if (is_meta(call)) return tuple_of({&factors, &tau});
  const Stack from(a);
  by_dtype(a->dtype, [&](auto zero) {
    using T = decltype(zero);
    for_each(least ? from.count() : 0, 2 * flops<T>(m, n, least), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* x = data_of<T>(factors, i);
        from.columns(i, x);
        factor_qr(m, n, x, m, tau.data<T>() + i * least);
      }
    });
  });
  return tuple_of({&factors, &tau});
}

// linalg::qr(A, mode): the factor is computed where Q will be if it fits there.
PyObject* qr_kernel(Call& call) {
  const char* op = "linalg.qr";
  Tensor* a = call.args[0].tensor;
  check_matrix(op, a);
  check_floating(op, a);
  const char* mode = PyUnicode_Check(call.args[1].object) ? PyUnicode_AsUTF8(call.args[1].object) : nullptr;
  if (PyErr_Occurred()) throw PythonError();
  const bool complete = mode && !std::strcmp(mode, "complete"), only_r = mode && !std::strcmp(mode, "r");
  if (!mode || (!complete && !only_r && std::strcmp(mode, "reduced")))
    fail(PyExc_RuntimeError,
         "qr received unrecognized mode '%S' but expected one of 'reduced' (default), 'r', or 'complete'",
         call.args[1].object);
  const int64_t m = rows(a), n = columns(a), least = std::min(m, n), side = complete ? m : least;
  Owned q = only_r ? empty({0}, a->dtype, a->device) : empty_columns(batch_of(a), m, side, a->dtype, a->device);
  Owned r = empty_columns(batch_of(a), side, n, a->dtype, a->device);
  if (is_meta(call)) return tuple_of({&q, &r});
  const Stack from(a);
  by_dtype(a->dtype, [&](auto zero) {
    using T = decltype(zero);
    const bool in_place = !only_r && n <= side;
    const bool small = fits_lanes(m, n) && side == least;
    for_each(m ? from.count() : 0, 4 * flops<T>(m, n, least) + 1, [&](int64_t begin, int64_t end) {
      if (small)
        return lanes<T>().qr(Rows<T>(from, begin, end), m, n, end - begin, only_r ? nullptr : data_of<T>(q, begin),
                             data_of<T>(r, begin));
      Memory<T> tau(static_cast<size_t>(least)), copy(in_place ? 0 : static_cast<size_t>(m * n));
      for (int64_t i = begin; i < end; ++i) {
        T* q_i = only_r ? nullptr : data_of<T>(q, i);
        T* x = in_place ? q_i : copy.data();
        from.columns(i, x);
        Unitary<T> unitary = factor_qr(m, n, x, m, tau.data());
        T* upper = data_of<T>(r, i);
        for (int64_t j = 0; j < n; ++j) {
          const int64_t above = std::min(j + 1, side);
          std::copy_n(x + j * m, above, upper + j * side);
          std::fill(upper + j * side + above, upper + (j + 1) * side, T(0));
        }
        if (only_r || !side) continue;
        unitary.columns(m, side, q_i, m);
      }
    });
  });
  return tuple_of({&q, &r});
}

void check_reflectors(const char* op, const Tensor* a, const Tensor* tau) {
  check_matrix(op, a, "input");
  check_floating(op, a);
  check_same_dtype(op, a, tau, "input", "tau");
  if (tau->ndim != a->ndim - 1 || batch_of(a) != batch_of(tau, 1))
    fail(PyExc_RuntimeError,
         "%s: Expected tau to have one dimension less than input and its batch, got %d and %d dimensions.", op,
         tau->ndim, a->ndim);
}

PyObject* householder_product_kernel(Call& call) {
  const char* op = "linalg.householder_product";
  Tensor *a = call.args[0].tensor, *tau = call.args[1].tensor;
  check_matrix(op, a, "input");
  const int64_t m = rows(a), n = columns(a), k = tau->ndim ? tau->sizes[tau->ndim - 1] : 0;
  if (m < n) fail(PyExc_RuntimeError, "%s: input.shape[-2] must be greater than or equal to input.shape[-1]", op);
  if (n < k) fail(PyExc_RuntimeError, "%s: input.shape[-1] must be greater than or equal to tau.shape[-1]", op);
  check_reflectors(op, a, tau);
  Owned q = empty_columns(batch_of(a), m, n, a->dtype, a->device);
  if (is_meta(call)) return q.release();
  const Stack from(a), scales(tau, batch_of(a), 1);
  by_dtype(a->dtype, [&](auto zero) {
    using T = decltype(zero);
    for_each(n ? from.count() : 0, 2 * flops<T>(m, n, k), [&](int64_t begin, int64_t end) {
      if (fits_lanes(m, n) && k)
        return lanes<T>().reflectors(Rows<T>(from, begin, end), Rows<T>(scales, begin, end), m, n, k, end - begin,
                                     data_of<T>(q, begin));
      std::vector<T> scale(static_cast<size_t>(k));
      for (int64_t i = begin; i < end; ++i) {
        T* x = data_of<T>(q, i);
        from.columns(i, x);
        if (k) scales.columns(i, scale.data());
        Unitary<T>(m, k, x, m, scale.data()).columns(m, n, x, m);
      }
    });
  });
  return q.release();
}

PyObject* ormqr_kernel(Call& call) {
  const char* op = "ormqr";
  Tensor *a = call.args[0].tensor, *tau = call.args[1].tensor, *c = call.args[2].tensor;
  const bool left = call.args[3].to_bool(), transpose = call.args[4].to_bool();
  check_matrix(op, a, "input");
  check_matrix(op, c, "other");
  if (tau->ndim < 1) fail(PyExc_RuntimeError, "%s: tau must have at least 1 dimension.", op);
  const int64_t m = rows(c), n = columns(c), k = tau->sizes[tau->ndim - 1], order = left ? m : n;
  if (order < k)
    fail(PyExc_RuntimeError, "%s: other.shape[%d] must be greater than or equal to tau.shape[-1], got %lld and %lld.",
         op, left ? -2 : -1, ll(order), ll(k));
  if (rows(a) != order)
    fail(PyExc_RuntimeError, "%s: other.shape[%d] must be equal to input.shape[-2], got %lld and %lld.", op,
         left ? -2 : -1, ll(order), ll(rows(a)));
  if (columns(a) < k)
    fail(PyExc_RuntimeError, "%s: tau.shape[-1] must be at most input.shape[-1], got %lld and %lld.", op, ll(k),
         ll(columns(a)));
  check_reflectors(op, a, tau);
  check_same_dtype(op, a, c, "input", "other");
  if (batch_of(a) != batch_of(c))
    fail(PyExc_RuntimeError, "%s: batch dimensions of other should be equal to those of input.", op);
  Owned result = empty_columns(batch_of(c), m, n, c->dtype, c->device);
  if (is_meta(call)) return result.release();
  const Stack reflectors(a), scales(tau, batch_of(a), 1), from(c);
  by_dtype(a->dtype, [&](auto zero) {
    using T = decltype(zero);
    char side = left ? 'L' : 'R', trans = !transpose ? 'N' : kComplex<T> ? 'C' : 'T';
    int height = as_int(m), width = as_int(n), count = as_int(k), lda = leading(order), ldc = leading(m);
    int size = -1, code = 0;
    T answer(0);
    lapack<T>.ormqr(&side, &trans, &height, &width, &count, &answer, &lda, &answer, &answer, &ldc, &answer, &size,
                    &code);
    size = workspace_size(answer);
    for_each(m && n ? from.count() : 0, 4 * flops<T>(m, n, k) + 1, [&, side, trans](int64_t begin, int64_t end) {
      std::vector<T> work(static_cast<size_t>(size)), scale(static_cast<size_t>(k));
      std::vector<T> copy(static_cast<size_t>(order * columns(a)));
      for (int64_t i = begin; i < end; ++i) {
        T* x = data_of<T>(result, i);
        from.columns(i, x);
        if (!k) continue;
        reflectors.columns(i, copy.data());
        scales.columns(i, scale.data());
        char where = side, how = trans;
        int rows = height, columns = width, number = count, step = lda, ld = ldc, length = size, info = 0;
        lapack<T>.ormqr(&where, &how, &rows, &columns, &number, copy.data(), &step, scale.data(), x, &ld, work.data(),
                        &length, &info);
      }
    });
  });
  return result.release();
}

constexpr Registration kernels[] = {
    {"geqrf", guarded<geqrf_kernel>},
    {"linalg::qr", guarded<qr_kernel>},
    {"linalg::householder_product", guarded<householder_product_kernel>},
    {"ormqr", guarded<ormqr_kernel>},
};

}  // namespace

bool register_orthogonal() { return register_kernels(kernels, std::size(kernels)); }

}  // namespace rl
