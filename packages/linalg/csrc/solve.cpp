// Solutions of linear systems: by LU, by factors that are given, by triangles, and in the least-squares sense.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "blocked.h"

namespace rl {

namespace {

long long ll(int64_t x) { return static_cast<long long>(x); }

void check_fit(const char* op, const Tensor* a, const Tensor* b, bool left, const char* name = "B") {
  check_matrix(op, b, name);
  const int64_t n = left ? rows(a) : columns(a);
  if ((left ? rows(b) : columns(b)) != n)
    fail(PyExc_RuntimeError, "%s: Incompatible shapes of A and %s for the equation %s (%lldx%lld and %lldx%lld)", op,
         name, left ? "AX = B" : "XA = B", ll(rows(a)), ll(columns(a)), ll(rows(b)), ll(columns(b)));
}

// A system with matrix A from one side: X has the shape of B and A's and B's batches broadcast.
struct System {
  Sizes batch;
  Owned x;
  int64_t n, k;  // order of A, columns of B (rows where A is on the right)
  System(const char* op, const Tensor* a, const Tensor* b, bool left)
      : batch(broadcast(op, batch_of(a), batch_of(b))),
        x(left ? empty_columns(batch, rows(b), columns(b), b->dtype, b->device)
               : empty(batch + Sizes{rows(b), columns(b)}, b->dtype, b->device)),
        n(rows(a)),
        k(left ? columns(b) : rows(b)) {}
};

// X of op(A) X = B, or X op(A) = B, from the LU factors of A. A on the right is a system with the transposes, and the
// rows of X and B are their columns.
template <class T>
void lu_solve(const Stack& lu, const Stack& pivots, const Stack& b, System& to, bool left, bool adjoint) {
  const int64_t n = to.n, k = to.k;
  if (!n || !k) return;
  const bool conjugate = kComplex<T> && adjoint && !left;
  char op = left ? (adjoint ? 'C' : 'N') : adjoint ? 'N' : 'T';
  const bool direct = lu.row_step == 1 && lu.column_step >= n;
  for_each(b.count(), 2 * flops<T>(n, n, k), [&, op](int64_t begin, int64_t end) {
    std::vector<T> factors(direct ? 0 : static_cast<size_t>(n * n));
    std::vector<int> swaps(static_cast<size_t>(n));
    for (int64_t i = begin; i < end; ++i) {
      T* x = data_of<T>(to.x, i);
      if (left)
        b.columns(i, x);
      else
        b.rows(i, x);
      auto* f = const_cast<T*>(lu.at<T>(i));
      if (!direct) {
        lu.columns(i, factors.data());
        f = factors.data();
      }
      for (int64_t j = 0; j < n; ++j) swaps[static_cast<size_t>(j)] = pivots.at<int>(i)[j * pivots.row_step];
      if (conjugate) std::transform(x, x + n * k, x, [](T v) { return conj(v); });
      solve_lu(op, n, k, f, direct ? lu.column_step : n, swaps.data(), x, n);
      if (conjugate) std::transform(x, x + n * k, x, [](T v) { return conj(v); });
    }
  });
}

enum class With { Nothing, Info, Factors };

PyObject* solve_any(Call& call, const char* op, With with) {
  Tensor *a = call.args[0].tensor, *b = call.args[1].tensor;
  const bool left = call.args[2].to_bool();
  check_square(op, a);
  check_floating(op, a);
  check_same_dtype(op, a, b, "A", "B");
  if (b->ndim < 1)
    fail(PyExc_RuntimeError, "%s: The input tensor B must have at least 1 dimension. Got a tensor with 0.", op);
  // B is a batch of vectors where its shape is that of A without its last dimension.
  const bool vector = b->ndim == 1 || (b->ndim == a->ndim - 1 && std::equal(b->sizes, b->sizes + b->ndim, a->sizes));
  if (vector && !left)
    fail(PyExc_RuntimeError,
         "%s: Vector broadcasting of the left hand side is not supported for left=False. In this case linalg.solve is "
         "equivalent to B / A.squeeze(-1)",
         op);
  Sizes sizes = batch_of(b, 0), strides(b->strides, b->strides + b->ndim);
  if (vector) {
    sizes.push_back(1);
    strides.push_back(1);
  }
  const Owned as_matrix(api->as_strided(b, static_cast<int>(sizes.size()), sizes.data(), strides.data(), b->offset));
  b = as_matrix.get();
  check_fit(op, a, b, left);
  System system(op, a, b, left);
  Owned info = empty(batch_of(a), DType::Int32, a->device);
  const bool keep = with == With::Factors, own_batch = system.batch == batch_of(a);
  const bool small = left && fits_lanes(system.n, system.k) && own_batch && !keep;
  Owned lu =
      keep ? empty_columns(batch_of(a), system.n, system.n, a->dtype, a->device) : empty({0}, a->dtype, a->device);
  Owned pivots = keep ? empty(batch_of(a, 1), DType::Int32, a->device) : empty({0}, DType::Int32, a->device);
  if (!is_meta(call) && small) {
    const Stack from(a), right(b, system.batch);
    by_dtype(a->dtype, [&](auto zero) {
      using T = decltype(zero);
      const int64_t n = system.n;
      for_each(from.count(), flops<T>(n, n, n + system.k), [&](int64_t begin, int64_t end) {
        lanes<T>().solve(Rows<T>(from, begin, end), Rows<T>(right, begin, end), n, system.k, end - begin,
                         data_of<T>(system.x, begin), info.data<int32_t>() + begin);
      });
    });
  } else if (!is_meta(call) && left && system.k <= system.n && own_batch && !keep) {
    const Stack from(a), right(b, system.batch);
    by_dtype(a->dtype, [&](auto zero) {
      using T = decltype(zero);
      const int64_t n = system.n, k = system.k;
      for_each(from.count(), flops<T>(n, n, n) * 2 / 3, [&](int64_t begin, int64_t end) {
        Memory<T> both(static_cast<size_t>(n * (n + k)));  // B beside A becomes L^-1 B beside U
        std::vector<int> pivots(static_cast<size_t>(n));
        T* x = both.data() + n * n;
        for (int64_t i = begin; i < end; ++i) {
          const auto load = [=, &from, &right, &both](int64_t first, int64_t last) {
            const int64_t of_a = std::clamp(n, first, last);
            from.columns(i, 0, first, of_a, both.data() + first * n, n);
            if (of_a < last) right.columns(i, 0, of_a - n, last - n, both.data() + of_a * n, n);
          };
          info.data<int32_t>()[i] = factor_lu(n, n + k, both.data(), n, pivots.data(), true, load);
          over_columns(k, [&](int64_t first, int64_t last) {
            solve_triangle(false, 'N', false, n, last - first, both.data(), n, x + first * n, n);
            std::copy(x + first * n, x + last * n, data_of<T>(system.x, i) + first * n);
          });
        }
      });
    });
  } else if (!is_meta(call)) {
    if (!keep) {
      lu = empty_columns(batch_of(a), system.n, system.n, a->dtype, a->device);
      pivots = empty(batch_of(a, 1), DType::Int32, a->device);
    }
    by_dtype(a->dtype, [&](auto zero) {
      using T = decltype(zero);
      const Stack from(a);
      const int64_t n = system.n;
      for_each(from.count(), flops<T>(n, n, n) * 2 / 3, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          T* m = data_of<T>(lu, i);
          info.data<int32_t>()[i] = factor_lu(n, n, m, n, pivots.data<int32_t>() + i * n, false, from.loader(i, m));
        }
      });
      lu_solve<T>(Stack(lu.get(), system.batch), Stack(pivots.get(), system.batch, 1), Stack(b, system.batch), system,
                  left, false);
    });
  }
  if (!is_meta(call) && (with != With::Info || call.args[3].to_bool()))
    raise_failures(op, info.get(), a, "The solver failed because the input matrix is singular.");
  if (vector) {  // the column that was added
    Tensor* x = system.x.get();
    --x->ndim;
    int64_t step = 1;
    for (int d = x->ndim - 1; d >= 0; --d) {
      x->strides[d] = step;
      step *= std::max<int64_t>(x->sizes[d], 1);
    }
  }
  if (keep) return tuple_of({&system.x, &lu, &pivots});
  return with == With::Info ? tuple_of({&system.x, &info}) : system.x.release();
}

PyObject* solve_kernel(Call& call) { return solve_any(call, "linalg.solve", With::Nothing); }
PyObject* solve_ex_kernel(Call& call) { return solve_any(call, "linalg.solve_ex", With::Info); }
PyObject* solve_lu_kernel(Call& call) { return solve_any(call, "linalg.solve", With::Factors); }

// What lu_solve and ldl_solve ask of pivots: LAPACK swaps rows by them without a look.
void check_pivots(const char* op, const char* source, const Tensor* factors, const Tensor* pivots, bool negative) {
  if (pivots->dtype != DType::Int32)
    fail(PyExc_RuntimeError, "%s: pivots should be a Tensor of scalar type torch.int32, got dtype=%s.", op,
         name(pivots->dtype));
  const Sizes expected = batch_of(factors, 1);
  if (pivots->ndim < 1 || pivots->sizes[pivots->ndim - 1] != columns(factors))
    fail(PyExc_RuntimeError, "%s: Number of pivots per batch should be same as the dimension of the matrix", op);
  if (batch_of(pivots, 0) != expected)
    fail(PyExc_RuntimeError, "%s: batch dimensions of pivots should be the same as those of the factors.", op);
  if (!pivots->data) return;
  const Owned plain = contiguous(const_cast<Tensor*>(pivots));
  const int64_t n = columns(factors);
  for (int64_t i = 0; i < plain->numel; ++i) {
    const int64_t p = plain.data<int32_t>()[i], row = negative ? std::abs(p) : p;
    if (row < 1)
      fail(PyExc_RuntimeError,
           "Pivots given to %s must all be greater or equal to 1. Did you properly pass the result of %s?", op, source);
    if (row > n)
      fail(PyExc_RuntimeError,
           "Pivots given to %s must all be smaller or equal to the number of rows. Did you properly pass the result "
           "of %s?",
           op, source);
  }
}

PyObject* lu_solve_kernel(Call& call) {
  const char* op = "linalg.lu_solve";
  Tensor *lu = call.args[0].tensor, *pivots = call.args[1].tensor, *b = call.args[2].tensor;
  const bool left = call.args[3].to_bool(), adjoint = call.args[4].to_bool();
  check_square(op, lu, "LU");
  check_floating(op, lu);
  check_same_dtype(op, lu, b, "LU", "B");
  check_pivots("lu_solve", "lu_factor", lu, pivots, false);
  check_fit(op, lu, b, left);
  System system(op, lu, b, left);
  if (!is_meta(call))
    by_dtype(lu->dtype, [&](auto zero) {
      lu_solve<decltype(zero)>(Stack(lu, system.batch), Stack(pivots, system.batch, 1), Stack(b, system.batch), system,
                               left, adjoint);
    });
  return system.x.release();
}

PyObject* ldl_solve_kernel(Call& call) {
  const char* op = "linalg.ldl_solve";
  Tensor *ld = call.args[0].tensor, *pivots = call.args[1].tensor, *b = call.args[2].tensor;
  const bool hermitian = call.args[3].to_bool();
  check_square(op, ld, "LD");
  check_floating(op, ld);
  check_same_dtype(op, ld, b, "LD", "B");
  check_pivots("ldl_solve", "ldl_factor", ld, pivots, true);
  check_fit(op, ld, b, true);
  System system(op, ld, b, true);
  if (is_meta(call)) return system.x.release();
  const Stack factors(ld, system.batch), swaps(pivots, system.batch, 1), from(b, system.batch);
  const int64_t n = system.n, k = system.k;
  // A block of D of order two is a pair of equal negative pivots: LAPACK would read past a lone one at the end.
  const Owned plain = contiguous(pivots);
  for (int64_t i = 0; i < plain->numel; i += n)
    for (int64_t j = 0; j < n; ++j)
      if (plain.data<int32_t>()[i + j] < 0 && ++j == n)
        fail(PyExc_RuntimeError, "%s: negative pivots come in pairs. Did you properly pass the result of ldl_factor?",
             op);
  by_dtype(ld->dtype, [&](auto zero) {
    using T = decltype(zero);
    auto solve = hermitian ? lapack<T>.hetrs : lapack<T>.sytrs;
    for_each(n && k ? from.count() : 0, 2 * flops<T>(n, n, k), [&](int64_t begin, int64_t end) {
      std::vector<T> matrix(static_cast<size_t>(n * n));
      std::vector<int> order(static_cast<size_t>(n));
      for (int64_t i = begin; i < end; ++i) {
        T* x = data_of<T>(system.x, i);
        from.columns(i, x);
        factors.columns(i, matrix.data());
        for (int64_t j = 0; j < n; ++j) order[static_cast<size_t>(j)] = swaps.at<int>(i)[j * swaps.row_step];
        char uplo = 'L';
        int size = as_int(n), width = as_int(k), code = 0;
        solve(&uplo, &size, &width, matrix.data(), &size, order.data(), x, &size, &code);
      }
    });
  });
  return system.x.release();
}

PyObject* solve_triangular_kernel(Call& call) {
  const char* op = "linalg.solve_triangular";
  Tensor *a = call.args[0].tensor, *b = call.args[1].tensor;
  const bool upper = call.args[2].to_bool(), left = call.args[3].to_bool(), unit = call.args[4].to_bool();
  check_square(op, a);
  check_floating(op, a);
  check_same_dtype(op, a, b, "A", "B");
  check_fit(op, a, b, left);
  System system(op, a, b, left);
  if (is_meta(call)) return system.x.release();
  const Stack triangles(a, system.batch), from(b, system.batch);
  const int64_t n = system.n, k = system.k;
  // X A = B is A^T X^T = B^T, and the rows of X and B are the columns of their transposes.
  const bool by_columns = triangles.row_step == 1 && triangles.column_step >= n;
  const bool by_rows = !by_columns && triangles.column_step == 1 && triangles.row_step >= n;
  by_dtype(a->dtype, [&](auto zero) {
    using T = decltype(zero);
    for_each(n && k ? from.count() : 0, flops<T>(n, n, k), [&](int64_t begin, int64_t end) {
      std::vector<T> copy(by_columns || by_rows ? 0 : static_cast<size_t>(n * n));
      for (int64_t i = begin; i < end; ++i) {
        T* x = data_of<T>(system.x, i);
        if (left)
          from.columns(i, x);
        else
          from.rows(i, x);
        auto* m = const_cast<T*>(triangles.at<T>(i));
        const int64_t ld = by_columns ? triangles.column_step : by_rows ? triangles.row_step : n;
        if (!by_columns && !by_rows) {
          triangles.columns(i, copy.data());
          m = copy.data();
        }
        over_columns(k, [&](int64_t first, int64_t last) {
          solve_triangle(upper == by_rows, left != by_rows ? 'N' : 'T', unit, n, last - first, m, ld, x + first * n, n);
        });
      }
    });
  });
  return system.x.release();
}

// ---- least squares

enum class Driver { Gels, Gelsy, Gelsd, Gelss };

Driver driver_of(const char* op, const Arg& arg) {
  if (arg.none()) return Driver::Gelsy;
  const char* text = PyUnicode_Check(arg.object) ? PyUnicode_AsUTF8(arg.object) : "";
  if (!text) throw PythonError();
  const char* names[] = {"gels", "gelsy", "gelsd", "gelss"};
  for (int i = 0; i < 4; ++i)
    if (!std::strcmp(text, names[i])) return static_cast<Driver>(i);
  fail(PyExc_RuntimeError,
       "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got driver='%s'.", text);
}

// One call of a driver. Where `lwork` is -1 it answers with the workspace that it needs.
template <class T>
int least_squares(Driver driver, int m, int n, int k, T* a, T* b, int ldb, int* pivots, Real<T>* s, Real<T> rcond,
                  int* rank, T* work, int lwork, Real<T>* rwork, int* iwork) {
  const Lapack<T>& l = lapack<T>;
  int lda = leading(m), info = 0;
  char trans = 'N';
  switch (driver) {
    case Driver::Gels: l.gels(&trans, &m, &n, &k, a, &lda, b, &ldb, work, &lwork, &info); break;
    case Driver::Gelsy:
      if constexpr (kComplex<T>)
        l.gelsy(&m, &n, &k, a, &lda, b, &ldb, pivots, &rcond, rank, work, &lwork, rwork, &info);
      else
        l.gelsy(&m, &n, &k, a, &lda, b, &ldb, pivots, &rcond, rank, work, &lwork, &info);
      break;
    case Driver::Gelsd:
      if constexpr (kComplex<T>)
        l.gelsd(&m, &n, &k, a, &lda, b, &ldb, s, &rcond, rank, work, &lwork, rwork, iwork, &info);
      else
        l.gelsd(&m, &n, &k, a, &lda, b, &ldb, s, &rcond, rank, work, &lwork, iwork, &info);
      break;
    case Driver::Gelss:
      if constexpr (kComplex<T>)
        l.gelss(&m, &n, &k, a, &lda, b, &ldb, s, &rcond, rank, work, &lwork, rwork, &info);
      else
        l.gelss(&m, &n, &k, a, &lda, b, &ldb, s, &rcond, rank, work, &lwork, &info);
      break;
  }
  return info;
}

// The largest length of some vectors (n, k), which become of length 1; infinity where one has none.
template <class T>
Real<T> normalize(int64_t n, int64_t k, T* x) {
  using R = Real<T>;
  R largest(0);
  for (int64_t j = 0; j < k; ++j, x += n) {
    const R length = std::sqrt(sweeps<T>().squares(n, x));
    if (!(length > 0 && length < std::numeric_limits<R>::infinity())) return std::numeric_limits<R>::infinity();
    largest = std::max(largest, length);
    for (int64_t i = 0; i < n; ++i) x[i] /= length;
  }
  return largest;
}

// Whether a matrix (m, n) with the triangle R has full rank beyond doubt: its least singular value is well above rcond
// times the largest. Both are found by iteration from a few vectors, the largest only where its bound does not do.
template <class T>
bool has_full_rank(int64_t m, int64_t n, Matrix<T> a, int64_t order, T* r, int64_t ld, Real<T> rcond) {
  using R = Real<T>;
  constexpr int64_t kVectors = 8;
  constexpr R kDoubt = R(1.1), kFar = 1000;  // what the iteration may be off by at its end and before
  std::minstd_rand random(1);
  const auto vectors = [&](int64_t length) {
    std::vector<T> x(static_cast<size_t>(length * kVectors));
    for (T& e : x) e = T(static_cast<R>(random()) / static_cast<R>(random.max()) - R(0.5));
    normalize(length, kVectors, x.data());
    return x;
  };
  std::vector<T> x = vectors(order);
  R inverse(0), bound(0);
  for (int64_t j = 0; j < order; ++j) bound += sweeps<T>().squares(j + 1, r + j * ld);
  bound = std::sqrt(bound);
  for (int step = 0; step < 3; ++step) {
    for (const char op : {'C', 'N'}) {
      solve_triangle(false, op, false, order, kVectors, r, ld, x.data(), order);
      inverse = normalize(order, kVectors, x.data());
    }
    if (inverse * bound * rcond * kFar < 1) return true;
  }
  if (inverse * bound * rcond * kDoubt < 1) return true;
  std::vector<T> v = vectors(n), w(static_cast<size_t>(m * kVectors));
  for (int step = 0; step < 4; ++step) {
    multiply<T>(m, kVectors, n, 1, a, {v.data(), n}, 0, {w.data(), m});
    bound = normalize(m, kVectors, w.data());
    for (T& e : w) e = conj(e);
    multiply<T>(n, kVectors, m, 1, a.transposed(), {w.data(), m}, 0, {v.data(), n});
    for (T& e : v) e = conj(e);
    normalize(n, kVectors, v.data());
  }
  return inverse * bound * rcond * kDoubt < 1;
}

// Least squares by QR without pivoting, which is several times as fast, where that shows full rank. False: it does not,
// and b is as it was. `a` is the matrix by columns, which is overwritten; `source` where that came from.
template <class T>
bool least_squares_by_qr(int64_t m, int64_t n, int64_t k, Memory<T>& a, Matrix<T> source, T* b, int64_t ldb,
                         Real<T> rcond) {
  const int64_t least = std::min(m, n), most = std::max(m, n);
  if (m < n) {  // of A^H, whose R^H comes first
    Memory<T> adjoint(a.size());
    transpose(n, m, a.data(), m, adjoint.data(), n);
    for (T& e : adjoint) e = conj(e);
    a.swap(adjoint);
  }
  std::vector<T> tau(static_cast<size_t>(least));
  Unitary<T> q = factor_qr(most, least, a.data(), most, tau.data());
  if (!has_full_rank(m, n, source, least, a.data(), most, rcond)) return false;
  const auto solve = [&](char op) {
    over_columns(k, [&](int64_t begin, int64_t end) {
      solve_triangle(false, op, false, least, end - begin, a.data(), most, b + begin * ldb, ldb);
    });
  };
  if (m >= n) {
    q.apply(true, k, b, ldb);
    solve('N');
  } else {
    solve('C');
    q.apply(false, k, b, ldb);
  }
  return true;
}

// linalg::_lstsq(A, B, rcond, driver) for B of the batch of A: solution, rank, singular values.
PyObject* lstsq_kernel(Call& call) {
  const char* op = "linalg.lstsq";
  Tensor *a = call.args[0].tensor, *b = call.args[1].tensor;
  const double rcond = call.args[2].to_double();
  const Driver driver = driver_of(op, call.args[3]);
  check_matrix(op, a, "input");
  check_floating(op, a);
  check_matrix(op, b, "other");
  check_same_dtype(op, a, b, "input", "other");
  const int64_t m = rows(a), n = columns(a), k = columns(b), tall = std::max(m, n), least = std::min(m, n);
  if (batch_of(a) != batch_of(b) || rows(b) != m)
    fail(PyExc_RuntimeError, "%s: input.size(-2) should match other.size(-2), got %lld and %lld.", op, ll(m),
         ll(rows(b)));
  const bool by_svd = driver == Driver::Gelsd || driver == Driver::Gelss;
  Owned x = empty_columns(batch_of(a), n, k, a->dtype, a->device);
  Owned rank = empty(driver == Driver::Gels ? Sizes{0} : batch_of(a), DType::Int64, a->device);
  Owned s = empty(by_svd ? batch_of(a) + Sizes{least} : Sizes{0}, real_of(a->dtype), a->device);
  if (is_meta(call)) return tuple_of({&x, &rank, &s});
  const Stack from(a), right(b);
  Owned info = empty(batch_of(a), DType::Int32, a->device);
  by_dtype(a->dtype, [&](auto zero) {
    using T = decltype(zero);
    using R = Real<T>;
    if (!least || !k) {  // LAPACK refuses some of these
      for (int64_t i = 0; i < x->numel; ++i) x.data<T>()[i] = T(0);
      for (int64_t i = 0; i < info->numel; ++i) info.data<int32_t>()[i] = 0;
      for (int64_t i = 0; i < rank->numel; ++i) rank.data<int64_t>()[i] = 0;
      if (!least) return;
    }
    T answer(0);
    R real_answer(0);
    int int_answer = 0, found = 0;
    const int ldb = leading(tall), columns_of_b = as_int(std::max<int64_t>(k, 1));
    least_squares<T>(driver, as_int(m), as_int(n), columns_of_b, &answer, &answer, ldb, &int_answer, &real_answer,
                     static_cast<R>(rcond), &found, &answer, -1, &real_answer, &int_answer);
    const int size = workspace_size(answer);
    const auto real_size =
        static_cast<size_t>(driver == Driver::Gelsd ? std::max(real_answer, R(1))
                                                    : static_cast<R>(driver == Driver::Gelsy ? 2 * n : 5 * least));
    const auto int_size = static_cast<size_t>(std::max(int_answer, 1));
    for_each(from.count(), 4 * flops<T>(m, n, least), [&](int64_t begin, int64_t end) {
      Memory<T> work(static_cast<size_t>(size)), matrix(static_cast<size_t>(m * n));
      Memory<T> columns(static_cast<size_t>(tall * columns_of_b));
      std::vector<R> rwork(kComplex<T> ? real_size : 0), values(static_cast<size_t>(least));
      std::vector<int> iwork(int_size), pivots(static_cast<size_t>(n));
      for (int64_t i = begin; i < end; ++i) {
        from.columns(i, matrix.data());
        std::fill(columns.begin(), columns.end(), T(0));
        if (k) right.columns(i, columns.data(), tall);
        std::fill(pivots.begin(), pivots.end(), 0);
        int r = as_int(least);
        int32_t& code = info.data<int32_t>()[i];
        const Matrix<T> source(const_cast<T*>(from.at<T>(i)), from.row_step, from.column_step);
        if (!all_finite(matrix.data(), m * n) || !all_finite(columns.data(), tall * columns_of_b)) {
          code = kNotFinite;
        } else if (!by_svd &&
                   least_squares_by_qr(m, n, k, matrix, source, columns.data(), ldb, static_cast<R>(rcond))) {
          code = 0;
        } else {
          if (!by_svd) from.columns(i, matrix.data());
          code = least_squares<T>(driver, as_int(m), as_int(n), columns_of_b, matrix.data(), columns.data(), ldb,
                                  pivots.data(), values.data(), static_cast<R>(rcond), &r, work.data(), size,
                                  rwork.data(), iwork.data());
        }
        for (int64_t j = 0; j < k; ++j) std::copy_n(columns.data() + j * tall, n, data_of<T>(x, i) + j * n);
        if (driver != Driver::Gels) rank.data<int64_t>()[i] = r;
        if (by_svd) std::copy(values.begin(), values.end(), s.data<R>() + i * least);
      }
    });
  });
  raise_failures(op, info.get(), a,
                 driver == Driver::Gels ? "The least squares solution could not be computed because the input matrix "
                                          "does not have full rank (error code: %d)."
                                        : "The least squares solution could not be computed because the singular value "
                                          "decomposition did not converge (error code: %d).");
  return tuple_of({&x, &rank, &s});
}

constexpr Registration kernels[] = {
    {"linalg::_solve", guarded<solve_kernel>},        {"linalg::_solve_lu", guarded<solve_lu_kernel>},
    {"linalg::solve_ex", guarded<solve_ex_kernel>},   {"linalg::lu_solve", guarded<lu_solve_kernel>},
    {"linalg::ldl_solve", guarded<ldl_solve_kernel>}, {"linalg::solve_triangular", guarded<solve_triangular_kernel>},
    {"linalg::_lstsq", guarded<lstsq_kernel>},
};

}  // namespace

bool register_solvers() { return register_kernels(kernels, std::size(kernels)); }

}  // namespace rl
