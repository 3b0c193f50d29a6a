// cat and stack.
#include <algorithm>
#include <cstring>

#include "../parallel.h"
#include "view.h"

namespace rl {

namespace {

using ll = long long;

// Rows are copied here, without the n-dimensional copy, if they are few or their pieces long. In bytes.
constexpr int64_t kFewBytes = 1 << 16, kLongPiece = 64;

// An array of n, on the stack where n is small.
template <class T>
class SmallList {
 public:
  explicit SmallList(int n) : many_(n > 16 ? n : 0), data_(n > 16 ? many_.data() : few_) {}
  T* data() { return data_; }
  T& operator[](int i) { return data_[i]; }

 private:
  T few_[16] = {};
  std::vector<T> many_;
  T* data_;
};

// Copies tensors side by side along `dim` of `r`; each covers `lengths[i]` of it.
void join(Tensor* r, int dim, Tensor* const* tensors, int n, const int64_t* lengths) {
  int64_t outer = 1, inner = itemsize(r->dtype);
  for (int d = 0; d < dim; ++d) outer *= r->sizes[d];
  for (int d = dim + 1; d < r->ndim; ++d) inner *= r->sizes[d];
  const int64_t row = inner * r->sizes[dim];
  bool dense = r->is_cpu() && r->contiguous() && (r->nbytes() <= kFewBytes || (outer > 1 && row >= kLongPiece * n));
  for (int i = 0; dense && i < n; ++i)
    dense = !tensors[i] || (tensors[i]->contiguous() && tensors[i]->dtype == r->dtype && tensors[i]->is_cpu());
  if (dense) {
    Unlocked unlocked(r->numel > kUnlockAbove);
    parallel_for(0, outer, kFewBytes / (row + 1) + 1, [&](int64_t begin, int64_t end) {
      int64_t at = 0;
      for (int i = 0; i < n; ++i) {
        if (!tensors[i]) continue;
        const int64_t bytes = lengths[i] * inner;
        for (int64_t o = begin; o < end; ++o)
          std::memcpy(r->data + o * row + at, tensors[i]->data + o * bytes, static_cast<size_t>(bytes));
        at += bytes;
      }
    });
    return;
  }
  int64_t at = 0;
  for (int i = 0; i < n; ++i) {
    if (!tensors[i]) continue;
    Geometry g(r);
    g.slice(dim, at, at + lengths[i], 1);
    at += lengths[i];
    if (tensors[i]->ndim < r->ndim) g.erase(dim);  // stacked: a piece lacks the dimension
    copy_into(g.make(r).get(), tensors[i]);
  }
}

// The dtype of all together.
DType common_dtype(Tensor* const* tensors, int n) {
  bool same = true;
  for (int i = 1; i < n; ++i) same = same && tensors[i]->dtype == tensors[0]->dtype;
  if (same) return tensors[0]->dtype;
  Promotion p;
  for (int i = 0; i < n; ++i) p.add(tensors[i]);
  return p.result();
}

// Channels-last where all tensors are; an absent one has no say.
MemoryFormat common_format(Tensor* const* tensors, int n) {
  MemoryFormat format = MemoryFormat::Contiguous;
  for (int i = 0; i < n; ++i) {
    const Tensor* t = tensors[i];
    if (!t) continue;
    if (t->ndim < 4 || t->ndim > 5 || t->contiguous()) return MemoryFormat::Contiguous;
    format = t->ndim == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
    if (!is_contiguous(t, format)) return MemoryFormat::Contiguous;
  }
  return format;
}

PyObject* cat_kernel(Call& c) {
  int n = c.args[0].count;
  if (!n) fail(PyExc_ValueError, "torch.cat(): expected a non-empty list of Tensors");
  SmallList<Tensor*> tensors(n);
  std::copy_n(c.args[0].tensors, n, tensors.data());
  const Tensor* first = nullptr;
  DType dtype = common_dtype(tensors.data(), n);
  for (int i = 0; i < n; ++i) {
    Tensor* t = tensors[i];
    if (!t->ndim) fail(PyExc_RuntimeError, "zero-dimensional tensor (at position %d) cannot be concatenated", i);
    if (t->ndim == 1 && !t->sizes[0]) {
      tensors[i] = nullptr;  // an empty vector joins anything, as it always has
      continue;
    }
    if (!first) first = t;
  }
  if (!first) {
    int64_t none = 0;
    wrap_dim("cat", c.args[1].i, 1);
    return empty(1, &none, dtype, c.device).release_object();
  }
  int dim = static_cast<int>(wrap_dim("cat", c.args[1].i, first->ndim));
  Dims sizes(first->ndim, first->sizes);
  SmallList<int64_t> lengths(n);
  sizes[dim] = 0;
  for (int i = 0; i < n; ++i) {
    const Tensor* t = tensors[i];
    if (!t) continue;
    if (t->ndim != first->ndim)
      fail(PyExc_RuntimeError, "Tensors must have same number of dimensions: got %d and %d", first->ndim, t->ndim);
    for (int d = 0; d < t->ndim; ++d)
      if (d != dim && t->sizes[d] != first->sizes[d])
        fail(PyExc_RuntimeError,
             "Sizes of tensors must match except in dimension %d. Expected size %lld but got size %lld for tensor "
             "number %d in the list.",
             dim, static_cast<ll>(first->sizes[d]), static_cast<ll>(t->sizes[d]), i);
    lengths[i] = t->sizes[dim];
    if (__builtin_add_overflow(sizes[dim], lengths[i], &sizes[dim]))
      fail(PyExc_RuntimeError, "cat: the sizes along dimension %d overflow 64 bits. Join fewer elements.", dim);
  }
  Ref<Tensor> r = empty_formatted(sizes.n, sizes.v, dtype, c.device, common_format(tensors.data(), n));
  join(r.get(), dim, tensors.data(), n, lengths.data());
  return r.release_object();
}

PyObject* stack_kernel(Call& c) {
  int n = c.args[0].count;
  Tensor* const* tensors = c.args[0].tensors;
  if (!n) fail(PyExc_RuntimeError, "stack expects a non-empty TensorList");
  const Tensor* first = tensors[0];
  for (int i = 1; i < n; ++i)
    if (tensors[i]->ndim != first->ndim || !std::equal(first->sizes, first->sizes + first->ndim, tensors[i]->sizes))
      fail(PyExc_RuntimeError, "stack expects each tensor to be equal size, but got %s at entry 0 and %s at entry %d",
           shape_text(first).c_str(), shape_text(tensors[i]).c_str(), i);
  int dim = static_cast<int>(wrap_dim("stack", c.args[1].i, first->ndim + 1));
  Dims sizes(first->ndim + 1);
  for (int d = 0; d <= first->ndim; ++d) sizes[d] = d == dim ? n : first->sizes[d - (d > dim)];
  Ref<Tensor> r = empty(sizes.n, sizes.v, common_dtype(tensors, n), c.device);
  SmallList<int64_t> lengths(n);
  std::fill_n(lengths.data(), n, 1);
  join(r.get(), dim, tensors, n, lengths.data());
  return r.release_object();
}

}  // namespace

void register_join_ops() {
  static const Native natives[] = {{"cat", cat_kernel, kOnEveryDevice}, {"stack", stack_kernel, kOnEveryDevice}};
  register_natives(natives, sizeof natives / sizeof *natives);
}

}  // namespace rl
