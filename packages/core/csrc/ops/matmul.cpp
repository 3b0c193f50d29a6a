// Matrix products: mm, bmm, mv, dot and what is made of them.
#include <algorithm>
#include <cstring>

#include "../kernels/gemm.h"
#include "ops.h"

namespace rl {

namespace {

long long ll(int64_t x) { return static_cast<long long>(x); }

GemmScalar scalar(const Arg& a) {
  GemmScalar s;
  s.re = a.to_double();
  s.im = a.kind == Kind::Complex ? a.imag : 0;
  s.i = a.to_int();
  return s;
}

void check_rank(const char* op, const char* name, const Tensor* t, int ndim) {
  if (t->ndim != ndim)
    fail(PyExc_RuntimeError, "%s: expected a %d-D tensor, got %s with shape %s. Reshape or unsqueeze it.", op, ndim,
         name, shape_text(t).c_str());
}

void check_same_dtype(const Call& c, const Tensor* a, const Tensor* b) {
  if (a->dtype != b->dtype)
    fail(PyExc_RuntimeError,
         "expected m1 and m2 to have the same dtype, but got: %s != %s (%s). Convert one with .to(dtype).",
         legacy_name(a->dtype), legacy_name(b->dtype), c.op->name);
  if (a->dtype == DType::Bool) fail(PyExc_NotImplementedError, "\"%s\" not implemented for 'Bool'", c.op->name);
}

// Products on other devices go through the op's array kernel; null: this call is the CPU's or meta's.
PyObject* elsewhere(Call& c) {
  if (c.device.type == kCPU || c.device.type == kMeta) return nullptr;
  if (!c.op->array_kernel)
    fail(PyExc_NotImplementedError, "%s: no kernel for device type '%s'", c.op->name, device_type_name(c.device.type));
  return run_array_kernel(c, c.op);
}

// r = alpha * A @ B + beta * r, of matrices and of batches of them; a vector is a row on the left, a column on the
// right.
void multiply(const Tensor* a, const Tensor* b, Tensor* r, const GemmScalar& beta, const GemmScalar& alpha) {
  const bool row = a->ndim == 1, column = b->ndim == 1;
  GemmArgs g;
  g.m = row ? 1 : a->sizes[a->ndim - 2];
  g.n = column ? 1 : b->sizes[b->ndim - 1];
  g.k = a->sizes[a->ndim - 1];
  g.a = a->data;
  g.a_row = row ? 1 : a->strides[a->ndim - 2];
  g.a_col = a->strides[a->ndim - 1];
  g.b = b->data;
  g.b_row = b->strides[column ? 0 : b->ndim - 2];
  g.b_col = column ? 1 : b->strides[b->ndim - 1];
  g.c = r->data;
  g.c_row = g.n;
  g.c_col = 1;
  g.beta = beta;
  g.alpha = alpha;
  if (a->ndim == 3) {
    g.batch_ndim = 1;
    g.batch_sizes = r->sizes;
    g.a_batch = a->strides;
    g.b_batch = b->strides;
    g.c_batch = r->strides;
  }
  if (!r->numel) return;
  Unlocked unlocked(r->numel * std::max<int64_t>(g.k, 1) > kUnlockAbove);
  gemm(a->dtype, g);
}

Ref<Tensor> empty_product(const Call& c, const Tensor* a, const Tensor* b) {
  Dims sizes(a->ndim - 1, a->sizes);
  if (b->ndim > 1) sizes.push(b->sizes[b->ndim - 1]);
  return empty(sizes.n, sizes.v, a->dtype, c.device);
}

// A @ B in a new tensor.
PyObject* product(Call& c, const Tensor* a, const Tensor* b) {
  if (PyObject* r = elsewhere(c)) return r;
  Ref<Tensor> r = empty_product(c, a, b);
  if (c.device.type == kCPU) multiply(a, b, r.get(), {0, 0, 0}, {});
  return r.release_object();
}

// beta * self + alpha * A @ B where self broadcasts to the shape of the product.
PyObject* added_product(Call& c, const Tensor* a, const Tensor* b) {
  if (PyObject* r = elsewhere(c)) return r;
  const Tensor* self = c.args[0].tensor;
  const GemmScalar beta = scalar(c.args[3]), alpha = scalar(c.args[4]);
  Ref<Tensor> r = empty_product(c, a, b);
  const int n = r->ndim;
  const int64_t* sizes = r->sizes;
  bool fits = self->ndim <= n;
  for (int d = 0; fits && d < self->ndim; ++d)
    fits = self->sizes[d] == 1 || self->sizes[d] == sizes[n - self->ndim + d];
  if (!fits)
    fail(PyExc_RuntimeError,
         "The expanded size of the tensor (%lld) must match the existing size (%lld) at non-singleton dimension %d.  "
         "Target sizes: %s.  Tensor sizes: %s",
         ll(n ? sizes[n - 1] : 1), ll(self->ndim ? self->sizes[self->ndim - 1] : 1), n - 1,
         shape_text(n, sizes).c_str(), shape_text(self).c_str());
  if (c.device.type == kMeta) return r.release_object();
  if (beta.re != 0 || beta.im != 0) copy_into(r.get(), self);
  multiply(a, b, r.get(), beta, alpha);
  return r.release_object();
}

PyObject* mm_kernel(Call& c) {
  Tensor *a = c.args[0].tensor, *b = c.args[1].tensor;
  if (a->ndim != 2)
    fail(PyExc_RuntimeError, "self must be a matrix, got shape %s (mm). Use matmul for other ranks.",
         shape_text(a).c_str());
  if (b->ndim != 2)
    fail(PyExc_RuntimeError, "mat2 must be a matrix, got shape %s (mm). Use matmul for other ranks.",
         shape_text(b).c_str());
  if (a->sizes[1] != b->sizes[0])
    fail(PyExc_RuntimeError, "mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)", ll(a->sizes[0]),
         ll(a->sizes[1]), ll(b->sizes[0]), ll(b->sizes[1]));
  check_same_dtype(c, a, b);
  return product(c, a, b);
}

PyObject* bmm_kernel(Call& c) {
  Tensor *a = c.args[0].tensor, *b = c.args[1].tensor;
  if (a->ndim != 3 || b->ndim != 3)
    fail(PyExc_RuntimeError, "batch1 must be a 3D tensor, and so must batch2, got shapes %s and %s (bmm)",
         shape_text(a).c_str(), shape_text(b).c_str());
  if (a->sizes[0] != b->sizes[0] || a->sizes[2] != b->sizes[1])
    fail(PyExc_RuntimeError,
         "Expected size for first two dimensions of batch2 tensor to be: [%lld, %lld] but got: [%lld, %lld].",
         ll(a->sizes[0]), ll(a->sizes[2]), ll(b->sizes[0]), ll(b->sizes[1]));
  check_same_dtype(c, a, b);
  return product(c, a, b);
}

PyObject* mv_kernel(Call& c) {
  Tensor *a = c.args[0].tensor, *v = c.args[1].tensor;
  if (a->ndim != 2 || v->ndim != 1)
    fail(PyExc_RuntimeError,
         "vector + matrix @ vector expected, got %d, %d, %d (mv: a matrix and a vector, got shapes %s and %s)", 1,
         a->ndim, v->ndim, shape_text(a).c_str(), shape_text(v).c_str());
  if (a->sizes[1] != v->sizes[0])
    fail(PyExc_RuntimeError, "size mismatch, got input (%lld), mat (%lldx%lld), vec (%lld)", ll(a->sizes[0]),
         ll(a->sizes[0]), ll(a->sizes[1]), ll(v->sizes[0]));
  check_same_dtype(c, a, v);
  return product(c, a, v);
}

PyObject* dot_kernel(Call& c) {
  Tensor *a = c.args[0].tensor, *b = c.args[1].tensor;
  if (a->ndim != 1 || b->ndim != 1)
    fail(PyExc_RuntimeError, "1D tensors expected, but got %dD and %dD tensors (dot)", a->ndim, b->ndim);
  if (a->dtype != b->dtype)
    fail(PyExc_RuntimeError, "dot : expected both vectors to have same dtype, but found %s and %s",
         legacy_name(a->dtype), legacy_name(b->dtype));
  if (a->numel != b->numel)
    fail(PyExc_RuntimeError,
         "inconsistent tensor size, expected tensor [%lld] and src [%lld] to have the same number of elements, but got "
         "%lld and %lld elements respectively",
         ll(a->numel), ll(b->numel), ll(a->numel), ll(b->numel));
  check_same_dtype(c, a, b);
  return product(c, a, b);
}

PyObject* addmm_kernel(Call& c) {
  Tensor *self = c.args[0].tensor, *a = c.args[1].tensor, *b = c.args[2].tensor;
  check_rank("addmm", "mat1", a, 2);
  check_rank("addmm", "mat2", b, 2);
  if (a->sizes[1] != b->sizes[0])
    fail(PyExc_RuntimeError, "mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)", ll(a->sizes[0]),
         ll(a->sizes[1]), ll(b->sizes[0]), ll(b->sizes[1]));
  check_same_dtype(c, a, b);
  if (self->dtype != a->dtype)
    fail(PyExc_RuntimeError, "self and mat2 must have the same dtype, but got %s and %s", legacy_name(self->dtype),
         legacy_name(a->dtype));
  return added_product(c, a, b);
}

PyObject* addmv_kernel(Call& c) {
  Tensor *self = c.args[0].tensor, *a = c.args[1].tensor, *v = c.args[2].tensor;
  if (a->ndim != 2 || v->ndim != 1 || a->sizes[1] != v->sizes[0])
    fail(PyExc_RuntimeError, "size mismatch, got input %s, mat %s, vec %s (addmv)", shape_text(self).c_str(),
         shape_text(a).c_str(), shape_text(v).c_str());
  check_same_dtype(c, a, v);
  if (self->dtype != a->dtype)
    fail(PyExc_RuntimeError, "addmv: input, mat and vec must have the same dtype, but got %s and %s",
         legacy_name(self->dtype), legacy_name(a->dtype));
  return added_product(c, a, v);
}

PyObject* baddbmm_kernel(Call& c) {
  Tensor *self = c.args[0].tensor, *a = c.args[1].tensor, *b = c.args[2].tensor;
  check_rank("baddbmm", "batch1", a, 3);
  check_rank("baddbmm", "batch2", b, 3);
  if (a->sizes[0] != b->sizes[0] || a->sizes[2] != b->sizes[1])
    fail(PyExc_RuntimeError,
         "Expected size for first two dimensions of batch2 tensor to be: [%lld, %lld] but got: [%lld, %lld].",
         ll(a->sizes[0]), ll(a->sizes[2]), ll(b->sizes[0]), ll(b->sizes[1]));
  check_same_dtype(c, a, b);
  if (self->dtype != a->dtype)
    fail(PyExc_RuntimeError, "Input dtypes must be the same, got: input %s, batch1: %s, batch2: %s",
         legacy_name(self->dtype), legacy_name(a->dtype), legacy_name(b->dtype));
  return added_product(c, a, b);
}

// ---- matmul: over the ops above, so that gradients and devices come with them

OpHandle g_mm("mm"), g_bmm("bmm"), g_mv("mv"), g_dot("dot"), g_reshape("reshape"), g_expand("expand"),
    g_unsqueeze("unsqueeze"), g_squeeze("squeeze.dim"), g_transpose("transpose.int");

Ref<Tensor> shaped(OpHandle& op, Tensor* t, const Dims& sizes) {
  if (t->ndim == sizes.n && std::equal(sizes.v, sizes.v + sizes.n, t->sizes)) return Ref<Tensor>::borrow(t);
  Arg args[2] = {arg(t), arg(sizes.v, sizes.n)};
  return call_tensor(op.get(), args, 2);
}
Ref<Tensor> product_by(OpHandle& op, Tensor* a, Tensor* b) {
  Arg args[2] = {arg(a), arg(b)};
  return call_tensor(op.get(), args, 2);
}
Ref<Tensor> with_dim(OpHandle& op, Tensor* t, int64_t dim) {
  Arg args[2] = {arg(t), arg(dim)};
  return call_tensor(op.get(), args, 2);
}

PyObject* matmul_kernel(Call& c) {
  Tensor *a = c.args[0].tensor, *b = c.args[1].tensor;
  if (!a->ndim || !b->ndim)
    fail(PyExc_RuntimeError, "both arguments to matmul need to be at least 1D, but they are %dD and %dD", a->ndim,
         b->ndim);
  if (a->ndim == 2 && b->ndim == 2) return product_by(g_mm, a, b).release_object();
  if (a->ndim == 1 && b->ndim == 1) return product_by(g_dot, a, b).release_object();
  if (a->ndim == 2 && b->ndim == 1) return product_by(g_mv, a, b).release_object();
  if (a->ndim == 1) {
    Ref<Tensor> row = with_dim(g_unsqueeze, a, 0);
    Arg args[2] = {arg(row.get()), arg(b)};
    Ref<Tensor> r = call_tensor(c.op, args, 2);
    return with_dim(g_squeeze, r.get(), -2).release_object();
  }
  int64_t k = a->sizes[a->ndim - 1];
  if (b->ndim <= 2) {  // fold the batch into the rows
    Dims flat(2), result(a->ndim - 1, a->sizes);
    flat[0] = -1;
    flat[1] = k;
    if (k == 0 || a->numel == 0)
      flat[0] = a->numel && k ? a->numel / k : [&] {
        int64_t rows = 1;
        for (int d = 0; d + 1 < a->ndim; ++d) rows *= a->sizes[d];
        return rows;
      }();
    Ref<Tensor> rows = shaped(g_reshape, a, flat);
    Ref<Tensor> r = product_by(b->ndim == 1 ? g_mv : g_mm, rows.get(), b);
    if (b->ndim == 2) result.push(b->sizes[1]);
    return shaped(g_reshape, r.get(), result).release_object();
  }
  // Batched on both sides: broadcast the batch dimensions, then one bmm.
  int na = a->ndim - 2, nb = b->ndim - 2, n = std::max(na, nb);
  Dims batch(n);
  int64_t count = 1;
  for (int d = 0; d < n; ++d) {
    int64_t sa = d < n - na ? 1 : a->sizes[d - (n - na)], sb = d < n - nb ? 1 : b->sizes[d - (n - nb)];
    if (sa != sb && sa != 1 && sb != 1)
      fail(PyExc_RuntimeError,
           "The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton dimension %d (matmul: "
           "got shapes %s and %s)",
           ll(sa), ll(sb), d, shape_text(a).c_str(), shape_text(b).c_str());
    batch[d] = sa == 1 ? sb : sa;
    count *= batch[d];
  }
  auto as_batch = [&](Tensor* t) {
    int64_t rows = t->sizes[t->ndim - 2], columns = t->sizes[t->ndim - 1];
    Dims expanded(n, batch.v), folded(3);
    expanded.push(rows);
    expanded.push(columns);
    folded[0] = count;
    folded[1] = rows;
    folded[2] = columns;
    Ref<Tensor> wide = shaped(g_expand, t, expanded);
    return shaped(g_reshape, wide.get(), folded);
  };
  Ref<Tensor> fa = as_batch(a), fb = as_batch(b);
  Ref<Tensor> r = product_by(g_bmm, fa.get(), fb.get());
  batch.push(a->sizes[a->ndim - 2]);
  batch.push(b->sizes[b->ndim - 1]);
  return shaped(g_reshape, r.get(), batch).release_object();
}

}  // namespace

void register_matmul_ops() {
  static const Native natives[] = {{"mm", mm_kernel, true},           {"bmm", bmm_kernel, true},
                                   {"mv", mv_kernel, true},           {"dot", dot_kernel, true},
                                   {"addmm", addmm_kernel, true},     {"addmv", addmv_kernel, true},
                                   {"baddbmm", baddbmm_kernel, true}, {"matmul", matmul_kernel, true}};
  register_natives(natives, sizeof natives / sizeof *natives);
}

}  // namespace rl
