#include "kernel.h"

#include <algorithm>
#include <cstdarg>

#include "schur.h"

namespace rl {

PyObject* linalg_error = nullptr;

namespace {

long long ll(int64_t x) { return static_cast<long long>(x); }

}  // namespace

void fail(PyObject* type, const char* format, ...) {
  va_list args;
  va_start(args, format);
  PyErr_FormatV(type, format, args);
  va_end(args);
  throw PythonError();
}

PyObject* tuple_of(std::initializer_list<Owned*> items) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(items.size()));
  if (!tuple) throw PythonError();
  Py_ssize_t i = 0;
  for (Owned* item : items) PyTuple_SET_ITEM(tuple, i++, item->release());
  return tuple;
}

Sizes operator+(Sizes batch, const Sizes& sizes) {
  batch.insert(batch.end(), sizes.begin(), sizes.end());
  return batch;
}

Sizes broadcast(const char* op, const Sizes& a, const Sizes& b) {
  Sizes sizes(std::max(a.size(), b.size()), 1);
  for (const Sizes* each : {&a, &b})
    for (size_t d = 0; d < each->size(); ++d) {
      int64_t &to = sizes[sizes.size() - each->size() + d], from = (*each)[d];
      if (from != 1 && to != 1 && from != to)
        fail(PyExc_RuntimeError,
             "%s: the batch dimensions do not broadcast: The size of tensor a (%lld) must match the size of tensor b "
             "(%lld). expand() one of them.",
             op, ll(to), ll(from));
      if (to == 1) to = from;
    }
  return sizes;
}

int64_t count_of(const Sizes& batch) {
  int64_t count = 1;
  for (int64_t n : batch) count *= n;
  return count;
}

Owned empty_columns(const Sizes& batch, int64_t m, int64_t n, DType dtype, Device device) {
  Owned t = empty(batch + Sizes{n, m}, dtype, device);
  const int last = t->ndim - 1;
  std::swap(t->sizes[last], t->sizes[last - 1]);
  if (m > 1 && n > 1 && t->numel) {
    std::swap(t->strides[last], t->strides[last - 1]);
    t->flags &= ~static_cast<uint32_t>(kContiguous);
  } else {
    t->strides[last] = 1;
    t->strides[last - 1] = std::max<int64_t>(n, 1);
    for (int d = last - 2; d >= 0; --d) t->strides[d] = t->strides[d + 1] * std::max<int64_t>(t->sizes[d + 1], 1);
  }
  return t;
}

Owned contiguous_copy(Tensor* t) {
  Owned r(api->empty(t->ndim, t->sizes, t->dtype, t->device));
  if (api->copy(r.get(), t) < 0) throw PythonError();
  return r;
}

void check_matrix(const char* op, const Tensor* a, const char* name) {
  if (a->ndim < 2)
    fail(
        PyExc_RuntimeError,
        "%s: The input tensor %s must have at least 2 dimensions. Got a tensor with %d. Add batch dimensions in front.",
        op, name, a->ndim);
  if (rows(a) > INT32_MAX || columns(a) > INT32_MAX)
    fail(PyExc_RuntimeError, "%s: LAPACK takes at most 2147483647 rows and columns, got %lld by %lld.", op, ll(rows(a)),
         ll(columns(a)));
}

void check_square(const char* op, const Tensor* a, const char* name) {
  check_matrix(op, a, name);
  if (rows(a) != columns(a))
    fail(PyExc_RuntimeError, "%s: %s must be batches of square matrices, but they are %lld by %lld matrices", op, name,
         ll(rows(a)), ll(columns(a)));
}

void check_floating(const char* op, const Tensor* a) {
  if (a->dtype == DType::Float32 || a->dtype == DType::Float64 || is_complex(a->dtype)) return;
  if (is_floating(a->dtype))
    fail(PyExc_NotImplementedError, "%s: Low precision dtypes not supported. Got %s. Convert with .float() first.", op,
         rl::name(a->dtype));
  fail(PyExc_NotImplementedError, "%s: Expected a floating point or complex tensor as input. Got %s", op,
       rl::name(a->dtype));
}

void check_same_dtype(const char* op, const Tensor* a, const Tensor* b, const char* a_name, const char* b_name) {
  if (a->dtype != b->dtype)
    fail(PyExc_RuntimeError,
         "%s: Expected %s and %s to have the same dtype, but found %s of type %s and %s of type %s instead", op, a_name,
         b_name, a_name, name(a->dtype), b_name, name(b->dtype));
}

Stack::Stack(const Tensor* t, const Sizes& batch, int matrix_ndim)
    : data_(t->data), sizes_(batch), strides_(batch.size(), 0), count_(count_of(batch)) {
  const int nd = t->ndim - matrix_ndim;
  for (int d = 0; d < nd; ++d)
    if (t->sizes[d] != 1) strides_[batch.size() - static_cast<size_t>(nd - d)] = t->strides[d];
  m = t->sizes[nd];
  row_step = t->strides[nd];
  if (matrix_ndim == 2) {
    n = t->sizes[nd + 1];
    column_step = t->strides[nd + 1];
  }
  contiguous_ =
      t->contiguous() && batch.size() == static_cast<size_t>(nd) && std::equal(batch.begin(), batch.end(), t->sizes);
}

const LaneTable& lane_table() {
  static const LaneTable table = [] {
    LaneTable t{};
    RL_ISA_CALL(fill_lanes, t);
    return t;
  }();
  return table;
}

const SweepTable& sweep_table() {
  static const SweepTable table = [] {
    SweepTable t{};
    RL_ISA_CALL(fill_sweeps, t);
    return t;
  }();
  return table;
}

const SchurTable& schur_table() {
  static const SchurTable table = [] {
    SchurTable t{};
    RL_ISA_CALL(fill_schur, t);
    return t;
  }();
  return table;
}

void run_batch(int64_t count, double work, void (*body)(void*, int64_t, int64_t), void* context) {
  struct Unlocked {
    PyThreadState* state;
    ~Unlocked() {
      if (state) PyEval_RestoreThread(state);
    }
  } unlocked{static_cast<double>(count) * work > 2e4 ? PyEval_SaveThread() : nullptr};
  const OneThread one;
  api->parallel_for(0, count, static_cast<int64_t>(std::max(1.0, 5e4 / std::max(work, 1.0))), body, context);
}

namespace {

bool is_finite(const Tensor* a, int64_t i) {
  bool result = false;
  by_dtype(a->dtype, [&](auto zero) {
    using T = decltype(zero);
    const Stack matrices(a);
    Memory<T> copy(static_cast<size_t>(matrices.m * matrices.n));
    matrices.columns(i, copy.data());
    result = all_finite(copy.data(), matrices.m * matrices.n);
  });
  return result;
}

}  // namespace

void raise_failures(const char* op, const Tensor* info, const Tensor* a, const char* reason) {
  const auto* codes = reinterpret_cast<const int32_t*>(info->data);
  const int64_t i = std::find_if(codes, codes + info->numel, [](int32_t code) { return code != 0; }) - codes;
  if (i == info->numel) return;
  char where[40] = "", text[300];
  if (info->ndim) std::snprintf(where, sizeof where, "(Batch element %lld): ", ll(i));
  const bool refused = codes[i] == kNotFinite;
  std::snprintf(
      text, sizeof text,
      refused ? "The algorithm failed to converge because the input matrix contained non-finite values." : reason,
      codes[i], codes[i]);
  fail(linalg_error, "%s: %s%s%s", op, where, text,
       refused || is_finite(a, i) ? "" : " The input matrix contained non-finite values.");
}

bool register_kernels(const Registration* list, size_t n) {
  for (size_t i = 0; i < n; ++i)
    for (const char* device : {"cpu", "meta"})
      if (api->register_kernel(list[i].op, device, list[i].kernel) < 0) return false;
  return true;
}

}  // namespace rl
