// Parts of sparse tensors, strided tensors themselves: what rushlight.sparse composes its operators of.
#include "../kernels/sparse.h"

#include <algorithm>

#include "../kernels/sort.h"
#include "ops.h"

namespace rl {

namespace {

using ll = long long;

Ref<Tensor> dense(const Arg& a, DType dtype) {
  Ref<Tensor> t = to_dtype(a.tensor, dtype);
  return contiguous(t.get());
}
Ref<Tensor> index_arg(const Arg& a) { return dense(a, DType::Int64); }
int64_t* ints(const Ref<Tensor>& t) { return reinterpret_cast<int64_t*>(t->data); }
Ref<Tensor> index_list(int64_t n) { return empty(1, &n, DType::Int64, {kCPU, -1}); }

// Half precision computes in float32 and rounds once.
DType wide(DType t) { return t == DType::Float16 || t == DType::BFloat16 ? DType::Float32 : t; }
Ref<Tensor> back(const Ref<Tensor>& t, DType dtype) { return to_dtype(t.get(), dtype); }

PyObject* tuple(const Op* op, Ref<Tensor> a, Ref<Tensor> b, Ref<Tensor> c = {}) {
  Ref<Tensor> values[3] = {std::move(a), std::move(b), std::move(c)};
  return results(op, values, values[2] ? 3 : 2);
}

void same_length(const Op* op, int64_t a, int64_t b) {
  if (a != b)
    fail(PyExc_RuntimeError,
         "%s: indices and values must have same nnz, but got nnz from indices: %lld, nnz from "
         "values: %lld",
         op->name, static_cast<ll>(a), static_cast<ll>(b));
}

[[noreturn]] void refuse_index(BadIndex bad, const int64_t* size) {
  if (bad.index < 0)
    fail(PyExc_RuntimeError, "found negative index %lld for dim %lld", static_cast<ll>(bad.index),
         static_cast<ll>(bad.dim));
  fail(PyExc_RuntimeError, "size is inconsistent with indices: for dim %lld, size is %lld but found index %lld",
       static_cast<ll>(bad.dim), static_cast<ll>(size[bad.dim]), static_cast<ll>(bad.index));
}

// _coo_keys(indices, size): the row-major place of each coordinate, a column of indices.
PyObject* keys_kernel(Call& c) {
  const Tensor* t = c.args[0].tensor;
  const Arg& size = c.args[1];
  if (t->ndim != 2 || t->sizes[0] != size.count || t->dtype != DType::Int64)
    fail(PyExc_RuntimeError, "indices must be sparse_dim x nnz int64, but got: %s for size %s", describe(t).c_str(),
         shape_text(size.count, size.ints).c_str());
  checked_numel(size.count, size.ints);
  int64_t total = 1;
  for (int d = 0; d < size.count; ++d)
    if (__builtin_mul_overflow(total, std::max<int64_t>(size.ints[d], 1), &total))
      fail(PyExc_RuntimeError, "numel: integer multiplication overflow, got size=%s. Ask for smaller dimensions.",
           shape_text(size.count, size.ints).c_str());
  int64_t n = t->sizes[1];
  Ref<Tensor> keys = index_list(n);
  BadIndex bad;
  {
    Unlocked unlocked(n > kUnlockAbove);
    bad = flatten_keys(reinterpret_cast<const int64_t*>(t->data), t->strides[0], t->strides[1], size.count, size.ints,
                       n, ints(keys));
  }
  if (bad.dim >= 0) refuse_index(bad, size.ints);
  return keys.release_object();
}

// _coo_indices(keys, size): the reverse.
PyObject* indices_kernel(Call& c) {
  Ref<Tensor> keys = index_arg(c.args[0]);
  const Arg& size = c.args[1];
  int64_t sizes[2] = {size.count, keys->numel};
  Ref<Tensor> r = empty(2, sizes, DType::Int64, {kCPU, -1});
  Unlocked unlocked(keys->numel > kUnlockAbove);
  unflatten_keys(ints(keys), keys->numel, size.count, size.ints, ints(r));
  return r.release_object();
}

// _coo_sum(keys, values): ascending distinct keys, and the sums of the values that had them.
PyObject* sum_kernel(Call& c) {
  Ref<Tensor> keys = index_arg(c.args[0]);
  DType dtype = c.args[1].tensor->dtype;
  Ref<Tensor> values = dense(c.args[1], wide(dtype));
  int64_t n = keys->numel;
  same_length(c.op, n, values->ndim ? values->sizes[0] : 1);
  int64_t block = n ? values->numel / n : 0;
  Ref<Tensor> order;
  bool ordered;
  {
    Unlocked unlocked(n > kUnlockAbove);
    ordered = ascends(ints(keys), n, false);
  }
  if (!ordered) {
    order = index_list(n);
    Ref<Tensor> sorted = index_list(n);
    Unlocked unlocked(n > kUnlockAbove);
    run_sort(DType::Int64, keys->data, sorted->data, ints(order), 1, n, 1, false);
    keys = std::move(sorted);
  }
  std::vector<int64_t> starts = group_starts(ints(keys), n);
  auto groups = static_cast<int64_t>(starts.size());
  Ref<Tensor> unique = index_list(groups);
  Dims shape(values->ndim, values->sizes);
  shape[0] = groups;
  Ref<Tensor> sums = empty(shape.n, shape.v, values->dtype, {kCPU, -1});
  {
    Unlocked unlocked(n > kUnlockAbove);
    for (int64_t g = 0; g < groups; ++g) ints(unique)[g] = ints(keys)[starts[g]];
    sum_groups(values->dtype, starts.data(), groups, n, order ? ints(order) : nullptr, values->data, block, sums->data);
  }
  return tuple(c.op, std::move(unique), back(sums, dtype));
}

// _coo_merge(a, b): the merged keys, and the places of both lists in them.
PyObject* merge_kernel(Call& c) {
  Ref<Tensor> a = index_arg(c.args[0]), b = index_arg(c.args[1]);
  Ref<Tensor> place_a = index_list(a->numel), place_b = index_list(b->numel);
  int64_t n = merge_keys(ints(a), a->numel, ints(b), b->numel, ints(place_a), ints(place_b));
  Ref<Tensor> keys = index_list(n);
  for (int64_t i = 0; i < a->numel; ++i) ints(keys)[ints(place_a)[i]] = ints(a)[i];
  for (int64_t i = 0; i < b->numel; ++i) ints(keys)[ints(place_b)[i]] = ints(b)[i];
  return tuple(c.op, std::move(keys), std::move(place_a), std::move(place_b));
}

// _coo_find(keys, wanted): the place of each wanted key in ascending keys, or -1.
PyObject* find_kernel(Call& c) {
  Ref<Tensor> keys = index_arg(c.args[0]), wanted = index_arg(c.args[1]);
  Ref<Tensor> places = index_list(wanted->numel);
  Unlocked unlocked(wanted->numel > kUnlockAbove);
  find_keys(ints(keys), keys->numel, ints(wanted), wanted->numel, ints(places));
  return places.release_object();
}

// _csr_rows(crow, nnz): the row of each element.
PyObject* rows_kernel(Call& c) {
  Ref<Tensor> crow = index_arg(c.args[0]);
  int64_t n = c.args[1].i, rows = crow->numel - 1;
  Ref<Tensor> r = index_list(n);
  const int64_t* offsets = ints(crow);
  bool good = rows >= 0 && offsets[0] == 0 && offsets[rows] == n;
  for (int64_t i = 0; i < rows; ++i) good &= offsets[i] <= offsets[i + 1];
  if (!good)
    fail(PyExc_RuntimeError,
         "`crow_indices[..., -1] == nnz` or `0 <= crow_indices[..., 1:] - crow_indices[..., :-1]` is not satisfied for "
         "nnz=%lld.",
         static_cast<ll>(n));
  for (int64_t i = 0; i < rows; ++i) std::fill(ints(r) + offsets[i], ints(r) + offsets[i + 1], i);
  return r.release_object();
}

// _csr_crow(rows, n): offsets of n rows into ascending row numbers.
PyObject* crow_kernel(Call& c) {
  Ref<Tensor> rows = index_arg(c.args[0]);
  const int64_t n = c.args[1].i, nnz = rows->numel, *row = ints(rows);
  Ref<Tensor> r = index_list(n + 1);
  int64_t* offsets = ints(r);
  bool good;
  {
    Unlocked unlocked(nnz + n > kUnlockAbove);
    good = inside(row, nnz, n);
    // Every element says where its row ends so far; rows without any end where the one before does.
    std::fill_n(offsets, n + 1, 0);
    for (int64_t p = 0; good && p < nnz; ++p) offsets[row[p] + 1] = p + 1;
    for (int64_t i = 0; i < n; ++i) offsets[i + 1] = std::max(offsets[i], offsets[i + 1]);
  }
  if (!good) {
    Ref<Tensor> keys = index_list(nnz);
    refuse_index(flatten_keys(row, nnz, 1, 1, &n, nnz, ints(keys)), &n);
  }
  return r.release_object();
}

struct CsrArg {
  Ref<Tensor> crow, col, values;
  Csr csr;
  CsrArg(const Call& c, int first, int64_t cols, DType dtype)
      : crow(index_arg(c.args[first])), col(index_arg(c.args[first + 1])), values(dense(c.args[first + 2], dtype)) {
    same_length(c.op, col->numel, values->numel);
    if (!crow->numel) fail(PyExc_RuntimeError, "%s: crow_indices must not be empty", c.op->name);
    csr = {crow->numel - 1, cols, col->numel, ints(crow), ints(col), values->data};
  }
  void require(bool good, const Op* op) const {
    if (!good)
      fail(PyExc_RuntimeError,
           "`0 <= col_indices < ncols` or `0 <= crow_indices[..., 1:] - crow_indices[..., :-1]` is not satisfied: "
           "%s got indices out of range for a matrix of %lld rows and %lld columns.",
           op->name, static_cast<ll>(csr.rows), static_cast<ll>(csr.cols));
  }
};

// _csr_matmul(crow, col, values, dense)
PyObject* matmul_kernel(Call& c) {
  DType dtype = c.args[3].tensor->dtype;
  Ref<Tensor> b = dense(c.args[3], wide(dtype));
  if (b->ndim != 2 || c.args[2].tensor->dtype != dtype)
    fail(PyExc_RuntimeError, "%s: expected a matrix of %s, got %s", c.op->name, name(c.args[2].tensor->dtype),
         describe(b.get()).c_str());
  CsrArg a(c, 0, b->sizes[0], wide(dtype));
  int64_t sizes[2] = {a.csr.rows, b->sizes[1]};
  Ref<Tensor> r = empty(2, sizes, b->dtype, {kCPU, -1});
  bool good;
  {
    Unlocked unlocked(r->numel + a.csr.nnz * sizes[1] > kUnlockAbove);
    good = r->numel ? csr_matmul(b->dtype, a.csr, b->data, sizes[1], r->data) : valid(a.csr);
  }
  a.require(good, c.op);
  return back(r, dtype).release_object();
}

// _coo_matmul(indices, values, dense, rows): coordinates in any order, which may repeat.
PyObject* coo_matmul_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  DType dtype = c.args[2].tensor->dtype;
  Ref<Tensor> values = dense(c.args[1], wide(dtype)), b = dense(c.args[2], wide(dtype));
  if (b->ndim != 2 || c.args[1].tensor->dtype != dtype || t->ndim != 2 || t->sizes[0] != 2)
    fail(PyExc_RuntimeError, "%s: expected indices (2, nnz) and a matrix of %s, got %s and %s", c.op->name,
         name(c.args[1].tensor->dtype), describe(t).c_str(), describe(b.get()).c_str());
  Ref<Tensor> indices = index_arg(c.args[0]);
  int64_t nnz = t->sizes[1], size[2] = {c.args[3].i, b->sizes[0]}, sizes[2] = {size[0], b->sizes[1]};
  same_length(c.op, nnz, values->numel);
  Ref<Tensor> r = empty(2, sizes, b->dtype, {kCPU, -1}), crow = index_list(size[0] + 1);
  const int64_t *rows = ints(indices), *cols = rows + nnz;
  bool good;
  {
    Unlocked unlocked(r->numel + nnz * sizes[1] > kUnlockAbove);
    good = inside(rows, nnz, size[0]);
    if (good && r->numel) {
      Ordered ordered;
      Csr a = compress_rows(rows, cols, values->data, itemsize(b->dtype), nnz, size[0], size[1], ints(crow), &ordered);
      good = csr_matmul(b->dtype, a, b->data, sizes[1], r->data);
    } else if (good) {
      good = inside(cols, nnz, size[1]);
    }
  }
  if (!good) {
    Ref<Tensor> keys = index_list(nnz);
    refuse_index(flatten_keys(rows, nnz, 1, 2, size, nnz, ints(keys)), size);
  }
  return back(r, dtype).release_object();
}

// _csr_matmul_csr(crow, col, values, other_crow, other_col, other_values, cols)
PyObject* matmul_csr_kernel(Call& c) {
  DType dtype = c.args[2].tensor->dtype;
  if (c.args[5].tensor->dtype != dtype)
    fail(PyExc_RuntimeError, "%s: expected scalar type %s but found %s", c.op->name, legacy_name(dtype),
         legacy_name(c.args[5].tensor->dtype));
  CsrArg b(c, 3, c.args[6].i, wide(dtype)), a(c, 0, b.csr.rows, wide(dtype));
  a.require(valid(a.csr), c.op);
  b.require(valid(b.csr), c.op);
  Ref<Tensor> crow = index_list(a.csr.rows + 1);
  struct Room {
    Ref<Tensor> col, values;
    DType dtype;
  } room{{}, {}, wide(dtype)};
  {
    Unlocked unlocked;
    csr_matmul_csr(
        room.dtype, a.csr, b.csr, ints(crow),
        [](void* context, int64_t nnz) -> CsrOut {
          PyGILState_STATE locked = PyGILState_Ensure();
          auto* r = static_cast<Room*>(context);
          struct Unlock {
            PyGILState_STATE state;
            ~Unlock() { PyGILState_Release(state); }
          } unlock{locked};
          r->col = index_list(nnz);
          r->values = empty(1, &nnz, r->dtype, {kCPU, -1});
          return {ints(r->col), r->values->data};
        },
        &room);
  }
  return tuple(c.op, std::move(crow), std::move(room.col), back(room.values, dtype));
}

// _sampled_products(rows, cols, a, b): a[rows[k]] · b[cols[k]] for each k.
PyObject* sampled_kernel(Call& c) {
  Ref<Tensor> rows = index_arg(c.args[0]), cols = index_arg(c.args[1]);
  DType dtype = c.args[2].tensor->dtype;
  Ref<Tensor> a = dense(c.args[2], wide(dtype)), b = dense(c.args[3], wide(dtype));
  if (a->ndim != 2 || b->ndim != 2 || a->sizes[1] != b->sizes[1] || c.args[3].tensor->dtype != dtype)
    fail(PyExc_RuntimeError, "%s: expected two matrices with rows of the same length, got %s and %s", c.op->name,
         describe(a.get()).c_str(), describe(b.get()).c_str());
  same_length(c.op, rows->numel, cols->numel);
  auto check = [&](const Ref<Tensor>& index, int64_t size) {
    for (int64_t k = 0; k < index->numel; ++k)
      if (static_cast<uint64_t>(ints(index)[k]) >= static_cast<uint64_t>(size))
        fail(PyExc_RuntimeError, "%s: index %lld is out of range for %lld rows", c.op->name,
             static_cast<ll>(ints(index)[k]), static_cast<ll>(size));
  };
  check(rows, a->sizes[0]);
  check(cols, b->sizes[0]);
  Ref<Tensor> r = empty(1, &rows->numel, a->dtype, {kCPU, -1});
  {
    Unlocked unlocked(rows->numel * a->sizes[1] > kUnlockAbove);
    sampled_products(a->dtype, ints(rows), ints(cols), rows->numel, a->data, b->data, a->sizes[1], r->data);
  }
  return back(r, dtype).release_object();
}

}  // namespace

void register_sparse_ops() {
  static const Native natives[] = {{"_coo_keys", keys_kernel},
                                   {"_coo_indices", indices_kernel},
                                   {"_coo_sum", sum_kernel},
                                   {"_coo_merge", merge_kernel},
                                   {"_coo_find", find_kernel},
                                   {"_csr_rows", rows_kernel},
                                   {"_csr_crow", crow_kernel},
                                   {"_coo_matmul", coo_matmul_kernel},
                                   {"_csr_matmul", matmul_kernel},
                                   {"_csr_matmul_csr", matmul_csr_kernel},
                                   {"_sampled_products", sampled_kernel}};
  register_natives(natives, sizeof natives / sizeof *natives);
}

}  // namespace rl
