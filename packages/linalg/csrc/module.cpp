// rushlight.linalg._C: kernels of the dense solvers, one LAPACK call a matrix, batches in parallel.
#include <rushlight/api.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "lapack.h"

using rl::api;
using rl::Call;
using rl::DType;
using rl::Tensor;

namespace rl_linalg {

namespace {

PyObject* g_error = nullptr;  // rushlight.linalg.LinAlgError

long long ll(int64_t x) { return static_cast<long long>(x); }

// A contiguous batch of matrices, and the reference that keeps it alive.
struct Batch {
  PyObject* owner = nullptr;
  Tensor* t = nullptr;
  int64_t count = 1, rows = 0, columns = 0;
  explicit Batch(PyObject* tensor) : owner(tensor), t(reinterpret_cast<Tensor*>(tensor)) {
    if (!t) return;
    rows = t->sizes[t->ndim - 2];
    columns = t->sizes[t->ndim - 1];
    count = rows * columns ? t->numel / (rows * columns) : 0;
  }
  ~Batch() { Py_XDECREF(owner); }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  PyObject* release() {
    PyObject* o = owner;
    owner = nullptr;
    return o;
  }
};

PyObject* clone_contiguous(Tensor* t) {
  PyObject* r = api->empty(t->ndim, t->sizes, t->dtype, t->device);
  if (r && api->copy(reinterpret_cast<Tensor*>(r), t) < 0) Py_CLEAR(r);
  return r;
}

// Checks what every routine here needs of its matrix argument; false with a Python exception.
bool check(const char* op, const Tensor* a, bool square = true) {
  if (a->ndim < 2) {
    PyErr_Format(
        PyExc_RuntimeError,
        "%s: The input tensor A must have at least 2 dimensions. Got a tensor with %d. Add batch dimensions in front.",
        op, a->ndim);
  } else if (square && a->sizes[a->ndim - 1] != a->sizes[a->ndim - 2]) {
    PyErr_Format(PyExc_RuntimeError, "%s: A must be batches of square matrices, but they are %lld by %lld matrices", op,
                 ll(a->sizes[a->ndim - 2]), ll(a->sizes[a->ndim - 1]));
  } else if (a->dtype != DType::Float32 && a->dtype != DType::Float64 && !rl::is_complex(a->dtype)) {
    if (rl::is_floating(a->dtype))
      PyErr_Format(PyExc_RuntimeError, "%s: Low precision dtypes not supported. Got %s. Convert with .float() first.",
                   op, rl::name(a->dtype));
    else
      PyErr_Format(PyExc_RuntimeError, "%s: Expected a floating point or complex tensor as input. Got %s", op,
                   rl::name(a->dtype));
  } else if (a->sizes[a->ndim - 1] > INT32_MAX || a->sizes[a->ndim - 2] > INT32_MAX) {
    PyErr_Format(PyExc_RuntimeError, "%s: LAPACK takes at most 2147483647 rows and columns, got %lld by %lld", op,
                 ll(a->sizes[a->ndim - 2]), ll(a->sizes[a->ndim - 1]));
  } else {
    return true;
  }
  return false;
}

// The first batch element that failed, and LAPACK's info for it.
struct Failure {
  std::atomic<int64_t> first{INT64_MAX};
  std::vector<int> info;
  explicit Failure(int64_t count) : info(static_cast<size_t>(count), 0) {}
  void note(int64_t i, int value) {
    info[static_cast<size_t>(i)] = value;
    int64_t seen = first.load();
    while (i < seen && !first.compare_exchange_weak(seen, i)) {
    }
  }
  explicit operator bool() const { return first.load() != INT64_MAX; }
  int code() const { return info[static_cast<size_t>(first.load())]; }
};

PyObject* raise(const char* op, const Failure& f, bool batched, const char* reason) {
  if (batched)
    PyErr_Format(g_error, "%s: (Batch element %lld): %s", op, ll(f.first.load()), reason);
  else
    PyErr_Format(g_error, "%s: %s", op, reason);
  return nullptr;
}

// Runs body(i) for every matrix of the batch, in parallel where the work is worth it; `work` is the flops of one.
template <class F>
void for_each(int64_t count, double work, F& body) {
  PyThreadState* state = count * work > 2e4 ? PyEval_SaveThread() : nullptr;
  auto grain = static_cast<int64_t>(std::max(1.0, 5e4 / std::max(work, 1.0)));
  api->parallel_for(
      0, count, grain,
      [](void* ctx, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) (*static_cast<F*>(ctx))(i);
      },
      &body);
  if (state) PyEval_RestoreThread(state);
}

// Calls fn with a value of the tensor's element type.
template <class F>
void by_dtype(DType d, F&& fn) {
  switch (d) {
    case DType::Float32: return fn(float{});
    case DType::Float64: return fn(double{});
    case DType::Complex64: return fn(std::complex<float>{});
    default: return fn(std::complex<double>{});
  }
}

double cube(int64_t n) { return static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n); }

// Row-major memory is LAPACK's transpose: the inverse of the transpose is the transpose of the inverse.
PyObject* inv_kernel(Call& call) {
  const char* op = "linalg.inv";
  Tensor* a = call.args[0].tensor;
  if (!check(op, a)) return nullptr;
  if (a->device.type == rl::kMeta) return api->empty(a->ndim, a->sizes, a->dtype, a->device);
  Batch r(clone_contiguous(a));
  if (!r.owner) return nullptr;
  Failure failure(r.count);
  by_dtype(a->dtype, [&](auto zero) {
    using T = decltype(zero);
    const Lapack<T>& l = lapack<T>();
    auto body = [&](int64_t i) {
      int n = static_cast<int>(r.rows), info = 0, lwork = n * std::min(n, 64);
      T* m = reinterpret_cast<T*>(r.t->data) + i * r.rows * r.columns;
      std::vector<int> pivots(static_cast<size_t>(n));
      std::vector<T> work(static_cast<size_t>(lwork));
      l.getrf(&n, &n, m, &n, pivots.data(), &info);
      if (!info) l.getri(&n, m, &n, pivots.data(), work.data(), &lwork, &info);
      if (info) failure.note(i, info);
    };
    for_each(r.count, 2 * cube(r.rows), body);
  });
  if (failure) {
    char reason[160];
    std::snprintf(
        reason, sizeof reason,
        "The diagonal element %d is zero, the inversion could not be completed because the input matrix is singular.",
        failure.code());
    return raise(op, failure, a->ndim > 2, reason);
  }
  return r.release();
}

PyObject* det_kernel(Call& call) {
  Tensor* a = call.args[0].tensor;
  if (!check("linalg.det", a)) return nullptr;
  PyObject* result = api->empty(a->ndim - 2, a->sizes, a->dtype, a->device);
  if (!result || a->device.type == rl::kMeta) return result;
  auto* out = reinterpret_cast<Tensor*>(result);
  Batch lu(clone_contiguous(a));
  if (!lu.owner) {
    Py_DECREF(result);
    return nullptr;
  }
  by_dtype(a->dtype, [&](auto zero) {
    using T = decltype(zero);
    const Lapack<T>& l = lapack<T>();
    auto body = [&](int64_t i) {
      int n = static_cast<int>(lu.rows), info = 0;
      T product(1);
      if (n) {
        T* m = reinterpret_cast<T*>(lu.t->data) + i * lu.rows * lu.columns;
        std::vector<int> pivots(static_cast<size_t>(n));
        l.getrf(&n, &n, m, &n, pivots.data(),
                &info);  // info > 0: an exact zero on the diagonal, which the product shows
        for (int k = 0; k < n; ++k)
          product *= pivots[static_cast<size_t>(k)] == k + 1 ? m[k * (n + 1)] : -m[k * (n + 1)];
      }
      reinterpret_cast<T*>(out->data)[i] = product;
    };
    for_each(out->numel, 2.0 / 3 * cube(lu.rows), body);
  });
  return result;
}

// A X = B with B (*, n, k): the columns of B go to LAPACK's order in `x`, whose memory is (*, k, n).
PyObject* solve_kernel(Call& call) {
  const char* op = "linalg.solve";
  Tensor *a = call.args[0].tensor, *b = call.args[1].tensor;
  if (!check(op, a)) return nullptr;
  if (a->dtype != b->dtype) {
    PyErr_Format(PyExc_RuntimeError,
                 "%s: Expected A and B to have the same dtype, but found A of type %s and B of type %s instead", op,
                 rl::name(a->dtype), rl::name(b->dtype));
    return nullptr;
  }
  int nd = a->ndim;
  bool fits = b->ndim == nd && b->sizes[nd - 2] == a->sizes[nd - 2];
  for (int d = 0; fits && d < nd - 2; ++d) fits = a->sizes[d] == b->sizes[d];
  if (!fits) {
    PyErr_Format(PyExc_RuntimeError,
                 "%s: Incompatible shapes of A and B for the equation AX = B: A is %lld by %lld and B has %lld rows",
                 op, ll(a->sizes[nd - 2]), ll(a->sizes[nd - 1]), b->ndim >= 2 ? ll(b->sizes[b->ndim - 2]) : -1);
    return nullptr;
  }
  if (a->device.type == rl::kMeta) return api->empty(b->ndim, b->sizes, b->dtype, b->device);
  Batch lu(clone_contiguous(a));
  if (!lu.owner) return nullptr;
  std::vector<int64_t> sizes(b->sizes, b->sizes + nd), strides(b->strides, b->strides + nd);
  std::swap(sizes[static_cast<size_t>(nd) - 1], sizes[static_cast<size_t>(nd) - 2]);
  std::swap(strides[static_cast<size_t>(nd) - 1], strides[static_cast<size_t>(nd) - 2]);
  Batch x(api->empty(nd, sizes.data(), b->dtype, b->device));
  if (!x.owner) return nullptr;
  PyObject* bt = api->as_strided(b, nd, sizes.data(), strides.data(), b->offset);
  if (!bt) return nullptr;
  int copied = api->copy(x.t, reinterpret_cast<Tensor*>(bt));
  Py_DECREF(bt);
  if (copied < 0) return nullptr;
  int64_t n = lu.rows, k = b->sizes[nd - 1];
  Failure failure(lu.count);
  by_dtype(a->dtype, [&](auto zero) {
    using T = decltype(zero);
    const Lapack<T>& l = lapack<T>();
    auto body = [&](int64_t i) {
      int rows = static_cast<int>(n), columns = static_cast<int>(k), info = 0;
      char trans = 'T';
      T* m = reinterpret_cast<T*>(lu.t->data) + i * n * n;
      std::vector<int> pivots(static_cast<size_t>(n));
      l.getrf(&rows, &rows, m, &rows, pivots.data(), &info);
      if (!info && k)
        l.getrs(&trans, &rows, &columns, m, &rows, pivots.data(), reinterpret_cast<T*>(x.t->data) + i * n * k, &rows,
                &info);
      if (info) failure.note(i, info);
    };
    for_each(lu.count,
             2.0 / 3 * cube(n) + 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(k), body);
  });
  if (failure) return raise(op, failure, nd > 2, "The solver failed because the input matrix is singular.");
  PyObject* result = api->empty(nd, b->sizes, b->dtype, b->device);
  if (!result) return nullptr;
  std::vector<int64_t> back(x.t->strides, x.t->strides + nd);
  std::swap(back[static_cast<size_t>(nd) - 1], back[static_cast<size_t>(nd) - 2]);
  PyObject* xt = api->as_strided(x.t, nd, b->sizes, back.data(), 0);
  if (!xt || api->copy(reinterpret_cast<Tensor*>(result), reinterpret_cast<Tensor*>(xt)) < 0) Py_CLEAR(result);
  Py_XDECREF(xt);
  return result;
}

// Row-major A is LAPACK's transpose, so the lower triangle here is its upper one, and the factor comes out row-major.
PyObject* cholesky_kernel(Call& call) {
  const char* op = "linalg.cholesky";
  Tensor* a = call.args[0].tensor;
  bool upper = call.args[1].to_bool();
  if (!check(op, a)) return nullptr;
  if (a->device.type == rl::kMeta) return api->empty(a->ndim, a->sizes, a->dtype, a->device);
  Batch r(clone_contiguous(a));
  if (!r.owner) return nullptr;
  Failure failure(r.count);
  by_dtype(a->dtype, [&](auto zero) {
    using T = decltype(zero);
    const Lapack<T>& l = lapack<T>();
    auto body = [&](int64_t i) {
      int n = static_cast<int>(r.rows), info = 0;
      char uplo = upper ? 'L' : 'U';
      T* m = reinterpret_cast<T*>(r.t->data) + i * r.rows * r.columns;
      l.potrf(&uplo, &n, m, &n, &info);
      if (info) return failure.note(i, info);
      for (int row = 0; row < n; ++row)
        for (int column = upper ? 0 : row + 1, end = upper ? row : n; column < end; ++column)
          m[row * static_cast<int64_t>(n) + column] = T(0);
    };
    for_each(r.count, cube(r.rows) / 3, body);
  });
  if (failure) {
    char reason[200];
    std::snprintf(reason, sizeof reason,
                  "The factorization could not be completed because the input is not positive-definite (the leading "
                  "minor of order %d is not positive-definite).",
                  failure.code());
    return raise(op, failure, a->ndim > 2, reason);
  }
  return r.release();
}

PyObject* set_error(PyObject*, PyObject* type) {
  Py_INCREF(type);
  Py_XSETREF(g_error, type);
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"set_error", set_error, METH_O, "set_error(type): the exception that failing routines raise."}, {}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "rushlight.linalg._C", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace rl_linalg

PyMODINIT_FUNC PyInit__C() {
  using namespace rl_linalg;
  if (rl::import_api("rushlight-linalg") < 0 || load_lapack() < 0) return nullptr;
  struct {
    const char* op;
    rl::Kernel kernel;
  } kernels[] = {{"linalg::inv", inv_kernel},
                 {"linalg::det", det_kernel},
                 {"linalg::_solve", solve_kernel},
                 {"linalg::cholesky", cholesky_kernel}};
  for (auto& k : kernels)
    for (const char* device : {"cpu", "meta"})
      if (api->register_kernel(k.op, device, k.kernel) < 0) return nullptr;
  return PyModule_Create(&definition);
}
