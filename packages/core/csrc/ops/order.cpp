// Scans and everything that depends on the order of elements: running sums, sorting, medians, searching, counting.
#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "../kernels/reduce.h"
#include "../kernels/scan.h"
#include "../kernels/sort.h"
#include "../parallel.h"
#include "ops.h"

namespace rl {

namespace {

long long ll(int64_t x) { return static_cast<long long>(x); }

// The tensor as (outer, n, inner) around one dimension of contiguous memory.
struct Split {
  int64_t outer = 1, n = 1, inner = 1;
  Split(const Tensor* t, int64_t dim) {
    for (int d = 0; d < t->ndim; ++d) (d < dim ? outer : d == dim ? n : inner) *= t->sizes[d];
  }
};

Ref<Tensor> shaped_like(const Tensor* t, DType dtype) { return empty(t->ndim, t->sizes, dtype, t->device); }
Ref<Tensor> resized(const Tensor* t, int64_t dim, int64_t n, bool keep, DType dtype) {
  Dims sizes(0);
  for (int d = 0; d < t->ndim; ++d) {
    if (d != dim) {
      sizes.push(t->sizes[d]);
    } else if (keep) {
      sizes.push(n);
    }
  }
  return empty(sizes.n, sizes.v, dtype, t->device);
}

int64_t* indices_of(const Ref<Tensor>& t) { return reinterpret_cast<int64_t*>(t->data); }
bool on_cpu(const Call& c) { return c.device.type == kCPU; }

[[noreturn]] void not_implemented(const char* what, DType dtype) {
  fail(PyExc_NotImplementedError, "\"%s\" not implemented for '%s'", what, legacy_name(dtype));
}

// ---- scans

// cumsum, cumprod: (self, dim, *, dtype); _reverse_cumsum and logcumsumexp: (self, dim)
template <Scan op>
PyObject* scan_kernel(Call& c) {
  Tensor* self = c.args[0].tensor;
  const bool given = c.op->nparams > 2 && c.args[2].kind == Kind::DType;
  const DType dtype = given                                              ? c.args[2].dtype
                      : op == Scan::LogSumExp || is_inexact(self->dtype) ? self->dtype
                                                                         : DType::Int64;
  if (dtype == DType::Bool || (op == Scan::LogSumExp && !is_inexact(dtype)))
    not_implemented(op == Scan::LogSumExp ? "logcumsumexp_out_cpu" : c.op->name, dtype);
  const int64_t dim = wrap_dim(c.op->name, c.args[1].to_int(), self->ndim);
  Ref<Tensor> out = shaped_like(self, dtype);
  if (!on_cpu(c) || !out->numel) return out.release_object();
  Ref<Tensor> in = to_dtype(self, dtype);
  in = contiguous(in.get());
  const Split s(in.get(), dim);
  Unlocked unlocked(out->numel > kUnlockAbove);
  run_scan(op, dtype, in->data, out->data, nullptr, s.outer, s.n, s.inner);
  return out.release_object();
}

// (self, dim) -> (values, indices)
template <Scan op>
PyObject* running_extreme_kernel(Call& c) {
  Tensor* self = c.args[0].tensor;
  const char* name = op == Scan::Max ? "cummax" : "cummin";
  if (is_complex(self->dtype)) not_implemented(op == Scan::Max ? "cummax_cpu" : "cummin_cpu", self->dtype);
  const int64_t dim = wrap_dim(name, c.args[1].to_int(), self->ndim);
  Ref<Tensor> out[] = {shaped_like(self, self->dtype), shaped_like(self, DType::Int64)};
  if (on_cpu(c) && self->numel) {
    Ref<Tensor> in = contiguous(self);
    const Split s(in.get(), dim);
    Unlocked unlocked(self->numel > kUnlockAbove);
    run_scan(op, self->dtype, in->data, out[0]->data, indices_of(out[1]), s.outer, s.n, s.inner);
  }
  return results(c.op, out, 2);
}

// ---- sorting

// sort.stable: (self, *, stable, dim, descending); argsort.stable: the same
template <bool kValues>
PyObject* sort_kernel(Call& c) {
  Tensor* self = c.args[0].tensor;
  const bool by_keyword = c.op->nparams == 4;  // with `stable`, which is always so here
  const Arg &along = c.args[by_keyword ? 2 : 1], &descending = c.args[by_keyword ? 3 : 2];
  if (is_complex(self->dtype))
    fail(PyExc_NotImplementedError, "Sort does not support complex dtypes on CPU, got %s", describe(self).c_str());
  const int64_t dim = wrap_dim(c.op->name, along.to_int(), self->ndim);
  Ref<Tensor> out[] = {kValues ? shaped_like(self, self->dtype) : Ref<Tensor>(), shaped_like(self, DType::Int64)};
  if (on_cpu(c) && self->numel) {
    Ref<Tensor> in = contiguous(self);
    const Split s(in.get(), dim);
    Unlocked unlocked(self->numel > kUnlockAbove / 8);
    run_sort(self->dtype, in->data, kValues ? out[0]->data : nullptr, indices_of(out[1]), s.outer, s.n, s.inner,
             descending.to_bool());
  }
  if (!kValues) return out[1].release_object();
  return results(c.op, out, 2);
}

// (self, k, dim, largest, sorted) -> (values, indices)
PyObject* topk_kernel(Call& c) {
  Tensor* self = c.args[0].tensor;
  const int64_t k = c.args[1].to_int(), dim = wrap_dim("topk", c.args[2].to_int(), self->ndim);
  if (is_complex(self->dtype) || self->dtype == DType::Bool)
    fail(PyExc_RuntimeError, "topk does not support %s dtypes on CPU, got %s",
         is_complex(self->dtype) ? "complex" : "bool", describe(self).c_str());
  const int64_t n = self->ndim ? self->sizes[dim] : 1;
  if (k < 0 || k > n)
    fail(PyExc_RuntimeError, "selected index k out of range: topk takes 0 <= k <= %lld here, got k=%lld", ll(n), ll(k));
  Ref<Tensor> out[] = {resized(self, dim, k, true, self->dtype), resized(self, dim, k, true, DType::Int64)};
  if (on_cpu(c) && self->numel && out[0]->numel) {
    Ref<Tensor> in = contiguous(self);
    const Split s(in.get(), dim);
    Unlocked unlocked(self->numel > kUnlockAbove / 8);
    run_topk(self->dtype, in->data, out[0]->data, indices_of(out[1]), s.outer, s.n, s.inner, k, c.args[3].to_bool(),
             c.args[4].to_bool());
  }
  return results(c.op, out, 2);
}

PyObject* pick_along(Call& c, const char* name, Pick pick, const Arg& along, bool keepdim, int64_t k) {
  Tensor* self = c.args[0].tensor;
  if (is_complex(self->dtype)) not_implemented(name, self->dtype);
  const int64_t dim = wrap_dim(name, along.to_int(), self->ndim), n = self->ndim ? self->sizes[dim] : 1;
  if (pick == Pick::Kth && (k < 1 || k > n))
    fail(PyExc_RuntimeError, "kthvalue(): selected number k out of range for dimension %lld, got k=%lld", ll(dim),
         ll(k));
  if (n == 0) fail(PyExc_IndexError, "%s(): Expected reduction dim %lld to have non-zero size.", name, ll(dim));
  Ref<Tensor> out[] = {resized(self, dim, 1, keepdim, self->dtype), resized(self, dim, 1, keepdim, DType::Int64)};
  if (on_cpu(c) && self->numel) {
    Ref<Tensor> in = contiguous(self);
    const Split s(in.get(), dim);
    Unlocked unlocked(self->numel > kUnlockAbove / 8);
    run_pick(pick, self->dtype, in->data, out[0]->data, indices_of(out[1]), s.outer, s.n, s.inner, k - 1);
  }
  return results(c.op, out, 2);
}

PyObject* kthvalue_kernel(Call& c) {
  return pick_along(c, "kthvalue", Pick::Kth, c.args[2], c.args[3].to_bool(), c.args[1].to_int());
}
PyObject* median_dim_kernel(Call& c) {
  return pick_along(c, "median", Pick::Median, c.args[1], c.args[2].to_bool(), 0);
}
PyObject* nanmedian_dim_kernel(Call& c) {
  return pick_along(c, "nanmedian", Pick::NanMedian, c.args[1], c.args[2].to_bool(), 0);
}
PyObject* mode_kernel(Call& c) { return pick_along(c, "mode", Pick::Mode, c.args[1], c.args[2].to_bool(), 0); }

// median(self), nanmedian(self)
template <Pick pick>
PyObject* median_kernel(Call& c) {
  Tensor* self = c.args[0].tensor;
  if (is_complex(self->dtype)) not_implemented(pick == Pick::Median ? "median_cpu" : "nanmedian_cpu", self->dtype);
  if (!self->numel && !is_floating(self->dtype))
    fail(PyExc_IndexError, "%s(): an empty tensor has no median, got %s", c.op->name, describe(self).c_str());
  if (!self->numel) return full(0, nullptr, self->dtype, self->device, arg(static_cast<double>(NAN))).release_object();
  Ref<Tensor> out = empty(0, nullptr, self->dtype, self->device);
  if (!on_cpu(c)) return out.release_object();
  Ref<Tensor> in = contiguous(self);
  int64_t index;
  Unlocked unlocked(self->numel > kUnlockAbove / 8);
  run_pick(pick, self->dtype, in->data, out->data, &index, 1, in->numel, 1, 0);
  return out.release_object();
}

// ---- searching and counting

// searchsorted.Tensor: (sorted_sequence, self, *, out_int32, right, side, sorter)
PyObject* searchsorted_kernel(Call& c) {
  Tensor *boundaries = c.args[0].tensor, *values = c.args[1].tensor;
  bool right = c.args[3].to_bool();
  if (!c.args[4].none()) {
    const char* side = PyUnicode_AsUTF8(c.args[4].object);
    if (!side) throw PythonError();
    if (std::strcmp(side, "left") && std::strcmp(side, "right"))
      fail(PyExc_RuntimeError, "torch.searchsorted(): side can only be 'left' or 'right' but got %s", side);
    if (right && !std::strcmp(side, "left"))
      fail(PyExc_RuntimeError,
           "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True");
    right = !std::strcmp(side, "right");
  }
  Tensor* sorter = c.args[5].none() ? nullptr : c.args[5].tensor;
  if (boundaries->ndim == 0)
    fail(PyExc_RuntimeError,
         "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension");
  if (is_complex(boundaries->dtype) || is_complex(values->dtype))
    not_implemented("searchsorted", is_complex(values->dtype) ? values->dtype : boundaries->dtype);
  const bool shared = boundaries->ndim == 1;
  if (!shared && (values->ndim != boundaries->ndim ||
                  !std::equal(values->sizes, values->sizes + values->ndim - 1, boundaries->sizes)))
    fail(PyExc_RuntimeError,
         "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
         "tensor and input value tensor must match, "
         "but we got boundaries tensor %s and input value tensor %s",
         shape_text(boundaries).c_str(), shape_text(values).c_str());
  if (sorter && (sorter->dtype != DType::Int64 || sorter->ndim != boundaries->ndim ||
                 !std::equal(sorter->sizes, sorter->sizes + sorter->ndim, boundaries->sizes)))
    fail(PyExc_RuntimeError,
         "torch.searchsorted(): boundary and sorter must have the same size and sorter be int64, but got boundary "
         "tensor %s and sorter %s",
         shape_text(boundaries).c_str(), describe(sorter).c_str());
  const DType out_dtype = c.args[2].to_bool() ? DType::Int32 : DType::Int64;
  Ref<Tensor> out = shaped_like(values, DType::Int64);
  if (on_cpu(c) && values->numel) {
    const DType common = promote(boundaries->dtype, values->dtype);
    Ref<Tensor> b = to_dtype(boundaries, common), v = to_dtype(values, common),
                s = sorter ? contiguous(sorter) : Ref<Tensor>();
    b = contiguous(b.get());
    v = contiguous(v.get());
    const int64_t n = boundaries->sizes[boundaries->ndim - 1], m = shared ? v->numel : v->sizes[v->ndim - 1];
    if (s && std::any_of(indices_of(s), indices_of(s) + s->numel, [=](int64_t i) { return i < 0 || i >= n; }))
      fail(PyExc_RuntimeError, "torch.searchsorted(): sorter index out of range");
    Unlocked unlocked(values->numel > kUnlockAbove / 8);
    run_searchsorted(common, b->data, s ? indices_of(s) : nullptr, v->data, indices_of(out), shared ? 1 : v->numel / m,
                     n, m, shared, right);
  }
  if (out_dtype == DType::Int64) return out.release_object();
  return (on_cpu(c) ? to_dtype(out.get(), out_dtype) : shaped_like(values, out_dtype)).release_object();
}

// Few bins in tables: four in turn, since a count that was just stored is slow to read again, for each part of the
// values.
void count_values(const int64_t* v, int64_t n, int64_t* counts, int64_t bins) {
  constexpr int64_t kFew = 4096, kPart = 1 << 16, kMostOfPart = 1 << 30;
  if (bins > kFew || n < 4 * kFew) {
    for (int64_t i = 0; i < n; ++i) ++counts[v[i]];
    return;
  }
  const int64_t parts = std::max(std::clamp<int64_t>(n / kPart, 1, 16), n / kMostOfPart + 1);
  std::vector<int32_t> tables(static_cast<size_t>(parts * 4 * bins));
  parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      int32_t* table = tables.data() + p * 4 * bins;
      int64_t i = n / parts * p;
      const int64_t stop = p + 1 == parts ? n : n / parts * (p + 1);
      for (; i + 4 <= stop; i += 4) {
        for (int t = 0; t < 4; ++t) ++table[t * bins + v[i + t]];
      }
      for (; i < stop; ++i) ++table[v[i]];
    }
  });
  for (size_t k = 0; k < tables.size(); ++k) counts[static_cast<int64_t>(k) % bins] += tables[k];
}

// The least or the greatest of n numbers; there are some.
int64_t extreme_of(Reduce which, const int64_t* v, int64_t n) {
  const int64_t stride = sizeof *v;
  int64_t result;
  run_reduce(find_reduce(which, DType::Int64), reinterpret_cast<const char*>(v), 1, &n, &stride, 1,
             reinterpret_cast<char*>(&result), {});
  return result;
}

// bincount(self, weights, minlength)
PyObject* bincount_kernel(Call& c) {
  Tensor *self = c.args[0].tensor, *weights = c.args[1].none() ? nullptr : c.args[1].tensor;
  const int64_t least = c.args[2].to_int();
  if (!is_integral(self->dtype)) not_implemented("bincount_cpu", self->dtype);
  if (least < 0) fail(PyExc_RuntimeError, "minlength should be >= 0, got minlength=%lld", ll(least));
  Ref<Tensor> in = to_dtype(self, DType::Int64);
  in = contiguous(in.get());
  const int64_t *v = indices_of(in), n = in->numel;
  if (self->ndim != 1 || (n && extreme_of(Reduce::Amin, v, n) < 0))
    fail(PyExc_RuntimeError, "bincount only supports 1-d non-negative integral inputs.");
  const int64_t most = n ? extreme_of(Reduce::Amax, v, n) : -1;
  if (most == std::numeric_limits<int64_t>::max())
    fail(PyExc_RuntimeError, "bincount: the number of bins overflows 64 bits, got the value %lld.", ll(most));
  const int64_t bins = std::max(least, most + 1);
  if (weights && (weights->ndim != 1 || weights->numel != self->numel))
    fail(PyExc_RuntimeError, "weights should be 1-d and have the same length as input, got %s for input %s",
         shape_text(weights).c_str(), shape_text(self).c_str());
  const DType out_dtype = !weights ? DType::Int64 : weights->dtype == DType::Float32 ? DType::Float32 : DType::Float64;
  Ref<Tensor> out = full(1, &bins, weights ? DType::Float64 : DType::Int64, self->device, arg(int64_t{0}));
  if (weights) {
    Ref<Tensor> w = to_dtype(weights, DType::Float64);
    w = contiguous(w.get());
    for (int64_t i = 0; i < n; ++i)
      reinterpret_cast<double*>(out->data)[v[i]] += reinterpret_cast<const double*>(w->data)[i];
  } else {
    count_values(v, n, indices_of(out), bins);
  }
  return to_dtype(out.get(), out_dtype).release_object();
}

}  // namespace

void register_order_ops() {
  static const Native natives[] = {{"cumsum", scan_kernel<Scan::Sum>, kOnCpuAndMeta},
                                   {"_reverse_cumsum", scan_kernel<Scan::ReverseSum>, kOnCpuAndMeta},
                                   {"cumprod", scan_kernel<Scan::Prod>, kOnCpuAndMeta},
                                   {"logcumsumexp", scan_kernel<Scan::LogSumExp>, kOnCpuAndMeta},
                                   {"cummax", running_extreme_kernel<Scan::Max>, kOnCpuAndMeta},
                                   {"cummin", running_extreme_kernel<Scan::Min>, kOnCpuAndMeta},
                                   {"sort", sort_kernel<true>, kOnCpuAndMeta},
                                   {"sort.stable", sort_kernel<true>, kOnCpuAndMeta},
                                   {"argsort", sort_kernel<false>, kOnCpuAndMeta},
                                   {"argsort.stable", sort_kernel<false>, kOnCpuAndMeta},
                                   {"topk", topk_kernel, kOnCpuAndMeta},
                                   {"kthvalue", kthvalue_kernel, kOnCpuAndMeta},
                                   {"median", median_kernel<Pick::Median>, kOnCpuAndMeta},
                                   {"median.dim", median_dim_kernel, kOnCpuAndMeta},
                                   {"nanmedian", median_kernel<Pick::NanMedian>, kOnCpuAndMeta},
                                   {"nanmedian.dim", nanmedian_dim_kernel, kOnCpuAndMeta},
                                   {"mode", mode_kernel, kOnCpuAndMeta},
                                   {"searchsorted.Tensor", searchsorted_kernel, kOnCpuAndMeta},
                                   {"bincount", bincount_kernel, kOnCpu}};
  register_natives(natives, sizeof natives / sizeof *natives);
}

}  // namespace rl
