// Factors of matrices: Cholesky, LU, LDL, and what follows from them alone: inverses and determinants.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>
#include <utility>

#include "blocked.h"

namespace rl {

namespace {

// ---- Cholesky

// Row by row an upper triangle lies as a lower one by columns, of the conjugate matrix, and its factor does too.
void cholesky(const Tensor* a, bool upper, Owned& factor, Owned& info) {
  const Stack from(a), lower = upper ? from.transposed() : from;
  const int64_t n = from.n;
  by_dtype(a->dtype, [&](auto zero) {
    using T = decltype(zero);
    for_each(from.count(), flops<T>(n, n, n) / 3, [&](int64_t begin, int64_t end) {
      if (fits_lanes(n, n))
        return lanes<T>().cholesky(Rows<T>(from, begin, end), n, end - begin, upper, data_of<T>(factor, begin),
                                   info.data<int32_t>() + begin);
      Memory<T> columns(upper ? 0 : static_cast<size_t>(n * n));
      for (int64_t i = begin; i < end; ++i) {
        T *result = data_of<T>(factor, i), *x = upper ? result : columns.data();
        const auto load = [=, &lower](int64_t first, int64_t last) {
          lower.columns(i, first, first, last, x + first * (n + 1), n);
        };
        const auto store = [=](int64_t first, int64_t last) {
          for (int64_t j = first; j < last; ++j) std::fill(x + j * n + (upper ? 0 : first), x + j * n + j, T(0));
          if (upper) return;
          for (int64_t k = 0; k < first; ++k) std::fill(result + k * n + first, result + k * n + last, T(0));
          transpose(last - first, n - first, x + first * (n + 1), n, result + first * (n + 1), n);
        };
        info.data<int32_t>()[i] = factor_cholesky(n, x, n, load, store);
      }
    });
  });
}

PyObject* cholesky_any(Call& call, const char* op, bool with_info) {
  Tensor* a = call.args[0].tensor;
  check_square(op, a);
  check_floating(op, a);
  Owned factor = empty(batch_of(a, 0), a->dtype, a->device), info = empty(batch_of(a), DType::Int32, a->device);
  if (!is_meta(call)) {
    cholesky(a, call.args[1].to_bool(), factor, info);
    if (!with_info || call.args[2].to_bool())
      raise_failures(op, info.get(), a,
                     "The factorization could not be completed because the input is not positive-definite (the leading "
                     "minor of order %d is not positive-definite).");
  }
  return with_info ? tuple_of({&factor, &info}) : factor.release();
}

PyObject* cholesky_kernel(Call& call) { return cholesky_any(call, "linalg.cholesky", false); }
PyObject* cholesky_ex_kernel(Call& call) { return cholesky_any(call, "linalg.cholesky_ex", true); }

// ---- LU

PyObject* lu_any(Call& call, const char* op, bool with_info) {
  Tensor* a = call.args[0].tensor;
  check_matrix(op, a);
  check_floating(op, a);
  if (!call.args[1].to_bool() && !is_meta(call))
    fail(PyExc_RuntimeError, "%s: LU without pivoting is not implemented on the CPU, got pivot=False. Leave it True.",
         op);
  const int64_t m = rows(a), n = columns(a), least = m < n ? m : n;
  Owned lu = empty_columns(batch_of(a), m, n, a->dtype, a->device);
  Owned pivots = empty(batch_of(a) + Sizes{least}, DType::Int32, a->device);
  Owned info = empty(batch_of(a), DType::Int32, a->device);
  if (!is_meta(call)) {
    const Stack from(a);
    by_dtype(a->dtype, [&](auto zero) {
      using T = decltype(zero);
      for_each(from.count(), flops<T>(m, n, least) * 2 / 3, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          T* x = data_of<T>(lu, i);
          info.data<int32_t>()[i] = factor_lu(m, n, x, m, pivots.data<int32_t>() + i * least, false, from.loader(i, x));
        }
      });
    });
    if (!with_info || call.args[2].to_bool())
      raise_failures(op, info.get(), a,
                     "U[%d,%d] is zero and using it on lu_solve would result in a division by zero. If you still "
                     "want to perform the factorization, consider calling linalg.lu(A, pivot) or "
                     "linalg.lu_factor_ex(A, pivot)");
  }
  return with_info ? tuple_of({&lu, &pivots, &info}) : tuple_of({&lu, &pivots});
}

PyObject* lu_factor_kernel(Call& call) { return lu_any(call, "linalg.lu_factor", false); }
PyObject* lu_factor_ex_kernel(Call& call) { return lu_any(call, "linalg.lu_factor_ex", true); }

// linalg::_permutation(pivots, m): the rows in the order that the swaps lead to.
PyObject* permutation_kernel(Call& call) {
  Tensor* pivots = call.args[0].tensor;
  const int64_t m = call.args[1].to_int();
  if (pivots->ndim < 1 || pivots->dtype != DType::Int32 || m < 0)
    fail(PyExc_RuntimeError, "lu_unpack: LU_pivots is expected to be a tensor (*, k) of torch.int32, got dtype=%s.",
         name(pivots->dtype));
  Owned order = empty(batch_of(pivots, 1) + Sizes{m}, DType::Int64, pivots->device);
  if (is_meta(call)) return order.release();
  const Stack swaps(pivots, batch_of(pivots, 1), 1);
  for (int64_t i = 0; i < swaps.count(); ++i) {
    int64_t* rows = order.data<int64_t>() + i * m;
    std::iota(rows, rows + m, 0);
    for (int64_t k = 0; k < swaps.m; ++k) {
      const int64_t with = swaps.at<int32_t>(i)[k * swaps.row_step] - 1;
      if (k >= m || with < 0 || with >= m)
        fail(PyExc_RuntimeError,
             "lu_unpack: LU_pivots has numbers of rows from 1 to %lld, got %lld. Did you properly pass the result of "
             "lu_factor?",
             static_cast<long long>(m), static_cast<long long>(with + 1));
      std::swap(rows[k], rows[with]);
    }
  }
  return order.release();
}

// ---- inverse

// Row-major memory is LAPACK's transpose: the inverse of the transpose is the transpose of the inverse.
PyObject* inv_any(Call& call, const char* op, bool with_info) {
  Tensor* a = call.args[0].tensor;
  check_square(op, a);
  check_floating(op, a);
  Owned inverse = empty(batch_of(a, 0), a->dtype, a->device), info = empty(batch_of(a), DType::Int32, a->device);
  if (!is_meta(call)) {
    const Stack from(a), by_rows = from.transposed();
    by_dtype(a->dtype, [&](auto zero) {
      using T = decltype(zero);
      const int64_t n = from.n;
      for_each(from.count(), 2 * flops<T>(n, n, n), [&](int64_t begin, int64_t end) {
        if (fits_lanes(n, n))
          return lanes<T>().inv(Rows<T>(from, begin, end), n, end - begin, data_of<T>(inverse, begin),
                                info.data<int32_t>() + begin);
        std::vector<int> pivots(static_cast<size_t>(n));
        Memory<T> lu(static_cast<size_t>(n * n));
        for (int64_t i = begin; i < end; ++i) {
          info.data<int32_t>()[i] =
              factor_lu<T>(n, n, lu.data(), n, pivots.data(), false, by_rows.loader(i, lu.data()));
          invert_lu<T>(n, lu.data(), n, pivots.data(), data_of<T>(inverse, i));
        }
      });
    });
    if (!with_info || call.args[1].to_bool())
      raise_failures(
          op, info.get(), a,
          "The diagonal element %d is zero, the inversion could not be completed because the input matrix is "
          "singular.");
  }
  return with_info ? tuple_of({&inverse, &info}) : inverse.release();
}

PyObject* inv_kernel(Call& call) { return inv_any(call, "linalg.inv", false); }
PyObject* inv_ex_kernel(Call& call) { return inv_any(call, "linalg.inv_ex", true); }

// linalg::_inv_lu(LU, pivots): the inverse, from factors that lu_factor gave.
PyObject* inv_lu_kernel(Call& call) {
  Tensor *lu = call.args[0].tensor, *pivots = call.args[1].tensor;
  check_square("linalg._inv_lu", lu);
  check_floating("linalg._inv_lu", lu);
  if (pivots->dtype != DType::Int32 || batch_of(lu, 1) != batch_of(pivots, 0))
    fail(PyExc_RuntimeError, "linalg._inv_lu: pivots are int32 and of the shape of LU less its last dimension.");
  const int64_t n = rows(lu);
  Owned inverse = empty_columns(batch_of(lu), n, n, lu->dtype, lu->device);
  if (is_meta(call)) return inverse.release();
  const Owned order = contiguous(pivots);
  const auto bad = [n](int32_t p) { return p < 1 || p > n; };
  if (std::any_of(order.data<int32_t>(), order.data<int32_t>() + order->numel, bad))
    fail(PyExc_RuntimeError, "linalg._inv_lu: pivots are numbers of rows from 1 to n.");
  const Stack from(lu);
  by_dtype(lu->dtype, [&](auto zero) {
    using T = decltype(zero);
    for_each(from.count(), flops<T>(n, n, n) * 4 / 3, [&](int64_t begin, int64_t end) {
      const bool direct = from.row_step == 1 && from.column_step >= n;
      Memory<T> copy(direct ? 0 : static_cast<size_t>(n * n));
      for (int64_t i = begin; i < end; ++i) {
        if (!direct) from.columns(i, copy.data());
        invert_lu<T>(n, direct ? const_cast<T*>(from.at<T>(i)) : copy.data(), direct ? from.column_step : n,
                     order.data<int32_t>() + i * n, data_of<T>(inverse, i));
      }
    });
  });
  return inverse.release();
}

// ---- powers

// linalg::_small_power(A, n): of matrices that fit lanes, n > 0.
PyObject* small_power_kernel(Call& call) {
  Tensor* a = call.args[0].tensor;
  const int64_t exponent = call.args[1].to_int();
  check_square("linalg.matrix_power", a);
  check_floating("linalg.matrix_power", a);
  if (!fits_lanes(rows(a), rows(a)) || exponent < 1)
    fail(PyExc_RuntimeError, "linalg._small_power: is for orders 1 to %lld and n > 0, got order %lld and n=%lld.",
         static_cast<long long>(kLaneOrder), static_cast<long long>(rows(a)), static_cast<long long>(exponent));
  Owned result = empty(batch_of(a, 0), a->dtype, a->device);
  if (is_meta(call)) return result.release();
  const Stack from(a);
  by_dtype(a->dtype, [&](auto zero) {
    using T = decltype(zero);
    const int64_t n = from.n;
    for_each(from.count(), flops<T>(n, n, n) * std::log2(2.0 * static_cast<double>(exponent)),
             [&](int64_t begin, int64_t end) {
               lanes<T>().power(Rows<T>(from, begin, end), n, exponent, end - begin, data_of<T>(result, begin));
             });
  });
  return result.release();
}

// ---- determinants

// body(i, diagonal of U, its step, whether the permutation is odd) for every matrix; info > 0 is an exact zero, which
// the body sees. The determinant of the transpose is the same: the matrices are read as they lie. Unless `kept` is null
// it gets the factors and pivots of A.
template <class T, class F>
void with_diagonals(const Tensor* a, std::pair<Owned, Owned>* kept, F&& body) {
  const Stack from(a), as_it_lies = from.row_step == 1 ? from : from.transposed();
  const int64_t n = from.n;
  for_each(from.count(), flops<T>(n, n, n) * 2 / 3, [&](int64_t begin, int64_t end) {
    const bool small = fits_lanes(n, n) && !kept;
    Memory<T> lu(static_cast<size_t>(small ? (end - begin) * n : kept ? 0 : n * n));
    if (small) {
      lanes<T>().lu_diagonal(Rows<T>(from, begin, end), n, end - begin, lu.data());
      for (int64_t i = begin; i < end; ++i) body(i, lu.data() + (i - begin) * n, 1, false);
      return;
    }
    std::vector<int> swaps(static_cast<size_t>(n));
    for (int64_t i = begin; i < end; ++i) {
      T* x = kept ? data_of<T>(kept->first, i) : lu.data();
      int* pivots = kept ? kept->second.data<int32_t>() + i * n : swaps.data();
      factor_lu(n, n, x, n, pivots, !kept, (kept ? from : as_it_lies).loader(i, x));
      bool odd = false;
      for (int64_t k = 0; k < n; ++k) odd ^= pivots[k] != k + 1;
      body(i, x, n + 1, odd);
    }
  });
}

// Memory for the factors and pivots of square matrices, none unless they are kept.
std::pair<Owned, Owned> factors_of(const Tensor* a, bool kept) {
  if (!kept) return {empty({0}, a->dtype, a->device), empty({0}, DType::Int32, a->device)};
  return {empty_columns(batch_of(a), rows(a), rows(a), a->dtype, a->device),
          empty(batch_of(a, 1), DType::Int32, a->device)};
}

// linalg::det, and with the factors linalg::_det_lu.
template <bool keep>
PyObject* det_kernel(Call& call) {
  Tensor* a = call.args[0].tensor;
  check_square("linalg.det", a);
  check_floating("linalg.det", a);
  Owned result = empty(batch_of(a), a->dtype, a->device);
  auto kept = factors_of(a, keep);
  const auto results = [&] { return keep ? tuple_of({&result, &kept.first, &kept.second}) : result.release(); };
  if (is_meta(call)) return results();
  const int64_t n = rows(a);
  by_dtype(a->dtype, [&](auto zero) {
    using T = decltype(zero);
    with_diagonals<T>(a, keep ? &kept : nullptr, [&](int64_t i, const T* diagonal, int64_t step, bool odd) {
      T product(odd ? -1 : 1);
      for (int64_t k = 0; k < n; ++k) product *= diagonal[k * step];
      result.data<T>()[i] = product;
    });
  });
  return results();
}

template <bool keep>
PyObject* slogdet_kernel(Call& call) {
  Tensor* a = call.args[0].tensor;
  check_square("linalg.slogdet", a);
  check_floating("linalg.slogdet", a);
  Owned sign = empty(batch_of(a), a->dtype, a->device), log = empty(batch_of(a), real_of(a->dtype), a->device);
  auto kept = factors_of(a, keep);
  const auto results = [&] {
    return keep ? tuple_of({&sign, &log, &kept.first, &kept.second}) : tuple_of({&sign, &log});
  };
  if (is_meta(call)) return results();
  const int64_t n = rows(a);
  by_dtype(a->dtype, [&](auto zero) {
    using T = decltype(zero);
    using R = Real<T>;
    with_diagonals<T>(a, keep ? &kept : nullptr, [&](int64_t i, const T* diagonal, int64_t step, bool odd) {
      T s(odd ? -1 : 1);
      R sum(0);
      for (int64_t k = 0; k < n; ++k) {
        const T x = diagonal[k * step];
        const R size = std::abs(x);
        sum += std::log(size);
        if constexpr (kComplex<T>)
          s *= size == 0 ? T(0) : x / size;
        else
          s *= x > 0 ? R(1) : x < 0 ? R(-1) : x == 0 ? R(0) : x;
      }
      sign.data<T>()[i] = s;
      log.data<R>()[i] = sum;
    });
  });
  return results();
}

// ---- LDL

PyObject* ldl_any(Call& call, const char* op, bool with_info) {
  Tensor* a = call.args[0].tensor;
  const bool hermitian = call.args[1].to_bool();
  check_square(op, a);
  check_floating(op, a);
  const int64_t n = rows(a);
  Owned ld = empty_columns(batch_of(a), n, n, a->dtype, a->device);
  Owned pivots = empty(batch_of(a, 1), DType::Int32, a->device), info = empty(batch_of(a), DType::Int32, a->device);
  const auto results = [&] { return with_info ? tuple_of({&ld, &pivots, &info}) : tuple_of({&ld, &pivots}); };
  if (is_meta(call)) return results();
  const Stack from(a);
  by_dtype(a->dtype, [&](auto zero) {
    using T = decltype(zero);
    auto factor = hermitian ? lapack<T>.hetrf : lapack<T>.sytrf;
    char uplo = 'L';
    int order = as_int(n), stride = leading(n), size = -1, code = 0;
    T answer;
    factor(&uplo, &order, &answer, &stride, &order, &answer, &size, &code);
    size = workspace_size(answer);
    for_each(from.count(), flops<T>(n, n, n) / 3, [&](int64_t begin, int64_t end) {
      std::vector<T> work(static_cast<size_t>(size));
      for (int64_t i = begin; i < end; ++i) {
        T* x = data_of<T>(ld, i);
        from.columns(i, x);
        for (int64_t k = 1; k < n; ++k) std::fill(x + k * n, x + k * n + k, T(0));
        char lower = 'L';
        int rank = order, step = stride, length = size, failed = 0;
        if (n) factor(&lower, &rank, x, &step, pivots.data<int32_t>() + i * n, work.data(), &length, &failed);
        info.data<int32_t>()[i] = failed;
      }
    });
  });
  if (!with_info || call.args[2].to_bool())
    raise_failures(op, info.get(), a, "The factorization could not be completed: D[%d,%d] is exactly zero.");
  return results();
}

PyObject* ldl_factor_kernel(Call& call) { return ldl_any(call, "linalg.ldl_factor", false); }
PyObject* ldl_factor_ex_kernel(Call& call) { return ldl_any(call, "linalg.ldl_factor_ex", true); }

constexpr Registration kernels[] = {
    {"linalg::cholesky", guarded<cholesky_kernel>},
    {"linalg::cholesky_ex", guarded<cholesky_ex_kernel>},
    {"linalg::lu_factor", guarded<lu_factor_kernel>},
    {"linalg::lu_factor_ex", guarded<lu_factor_ex_kernel>},
    {"linalg::_permutation", guarded<permutation_kernel>},
    {"linalg::inv", guarded<inv_kernel>},
    {"linalg::inv_ex", guarded<inv_ex_kernel>},
    {"linalg::_small_power", guarded<small_power_kernel>},
    {"linalg::_inv_lu", guarded<inv_lu_kernel>},
    {"linalg::_det", guarded<det_kernel<false>>},
    {"linalg::_det_lu", guarded<det_kernel<true>>},
    {"linalg::_slogdet", guarded<slogdet_kernel<false>>},
    {"linalg::_slogdet_lu", guarded<slogdet_kernel<true>>},
    {"linalg::ldl_factor", guarded<ldl_factor_kernel>},
    {"linalg::ldl_factor_ex", guarded<ldl_factor_ex_kernel>},
};

}  // namespace

bool register_factors() { return register_kernels(kernels, std::size(kernels)); }

}  // namespace rl
