// Views: new sizes and strides over the same storage. Nothing here touches memory, so one kernel serves every device.
#include "view.h"
#include "../determinism.h"

#include <algorithm>
#include <cstring>

namespace rl {

namespace {

using ll = long long;

OpHandle op_view("view"), op_clone("clone"), op_expand("expand"), op_permute("permute"), op_slice("slice.Tensor"),
    op_split_sizes("split_with_sizes"), op_split("split.Tensor"), op_transpose("transpose.int"),
    op_select("select.int"), op_view_as_real("view_as_real");

int dim_of(const char* op, int64_t dim, const Tensor* t) { return static_cast<int>(wrap_dim(op, dim, t->ndim)); }

}  // namespace

Geometry::Geometry(const Tensor* t) : ndim(t->ndim), offset(t->offset) {
  std::copy_n(t->sizes, ndim, sizes);
  std::copy_n(t->strides, ndim, strides);
}

void Geometry::erase(int dim) {
  --ndim;
  for (int d = dim; d < ndim; ++d) {
    sizes[d] = sizes[d + 1];
    strides[d] = strides[d + 1];
  }
}

void Geometry::insert(int dim, int64_t size, int64_t stride) {
  if (ndim == kMaxRank) fail(PyExc_RuntimeError, "tensors have at most %d dimensions. Reshape to fewer.", kMaxRank);
  for (int d = ndim; d > dim; --d) {
    sizes[d] = sizes[d - 1];
    strides[d] = strides[d - 1];
  }
  sizes[dim] = size;
  strides[dim] = stride;
  ++ndim;
}

void Geometry::select(int dim, int64_t index) {
  int64_t size = sizes[dim];
  if (index < -size || index >= size)
    fail(PyExc_IndexError, "index %lld is out of bounds for dimension %d with size %lld", static_cast<ll>(index), dim,
         static_cast<ll>(size));
  offset += (index < 0 ? index + size : index) * strides[dim];
  erase(dim);
}

void Geometry::slice(int dim, int64_t start, int64_t stop, int64_t step) {
  int64_t n = step > 0 ? (stop > start ? (stop - start - 1) / step + 1 : 0)
                       : (start > stop ? (start - stop - 1) / -step + 1 : 0);
  if (n) offset += start * strides[dim];
  sizes[dim] = n;
  strides[dim] *= step;
}

void adjust_slice(int64_t size, int64_t step, int64_t* start, int64_t* stop) {
  int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  for (int64_t* bound : {start, stop}) {
    if (*bound < 0) *bound = *bound < -size ? -1 : *bound + size;
    *bound = std::clamp(*bound, low, std::max(low, high));
  }
}

bool view_strides(const Tensor* t, int ndim, const int64_t* sizes, int64_t* strides) {
  if (t->contiguous()) {
    int64_t step = 1;
    for (int d = ndim - 1; d >= 0; --d) {
      strides[d] = step;
      step *= std::max<int64_t>(sizes[d], 1);
    }
    return true;
  }
  // From the back: old dimensions that lie dense in one another form a run, which new dimensions must fill exactly.
  int to = ndim - 1;
  for (int from = t->ndim - 1; from >= 0;) {
    if (t->sizes[from] == 1) {
      --from;
      continue;
    }
    int64_t step = t->strides[from], run = t->sizes[from];
    for (--from; from >= 0 && (t->sizes[from] == 1 || t->strides[from] == step * run); --from) run *= t->sizes[from];
    int64_t filled = 1;
    for (; to >= 0 && (filled < run || sizes[to] == 1); --to) {
      strides[to] = filled * step;
      filled *= sizes[to];
    }
    if (filled != run) return false;
  }
  for (; to >= 0; --to) strides[to] = 1;
  return true;
}

void infer_size(int64_t numel, int ndim, int64_t* sizes) {
  int unknown = -1;
  int64_t known = 1;
  bool overflow = false;
  for (int d = 0; d < ndim; ++d) {
    if (sizes[d] == -1) {
      if (unknown >= 0)
        fail(PyExc_RuntimeError, "only one dimension can be inferred, got size=%s", shape_text(ndim, sizes).c_str());
      unknown = d;
    } else if (sizes[d] < 0) {
      fail(PyExc_RuntimeError, "invalid shape dimension %lld at index %d of shape %s", static_cast<ll>(sizes[d]), d,
           shape_text(ndim, sizes).c_str());
    } else {
      overflow |= __builtin_mul_overflow(known, sizes[d], &known);
    }
  }
  if (std::find(sizes, sizes + ndim, 0) != sizes + ndim) known = 0, overflow = false;
  if (!overflow && unknown < 0 && known == numel) return;
  if (!overflow && unknown >= 0 && known == 0 && numel == 0)
    fail(PyExc_RuntimeError,
         "cannot reshape tensor of 0 elements into shape %s because the unspecified dimension size -1 can be any value "
         "and is ambiguous",
         shape_text(ndim, sizes).c_str());
  if (overflow || unknown < 0 || known == 0 || numel % known)
    fail(PyExc_RuntimeError, "shape '%s' is invalid for input of size %lld", shape_text(ndim, sizes).c_str(),
         static_cast<ll>(numel));
  sizes[unknown] = numel / known;
}

static Ref<Tensor> viewed(Tensor* t, int ndim, const int64_t* sizes) {
  Dims strides(ndim);
  if (!view_strides(t, ndim, sizes, strides.v))
    fail(PyExc_RuntimeError,
         "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
         "contiguous subspaces). "
         "Use .reshape(...) instead. Got size=%s for a tensor of shape %s with strides %s.",
         shape_text(ndim, sizes).c_str(), shape_text(t).c_str(), shape_text(t->ndim, t->strides).c_str());
  return view(t, ndim, sizes, strides.v, t->offset);
}

Ref<Tensor> reshape(Tensor* t, int ndim, const int64_t* sizes) {
  Dims full(ndim, sizes), strides(ndim);
  infer_size(t->numel, ndim, full.v);
  bool possible = view_strides(t, ndim, full.v, strides.v);
  if (!layered(t)) {
    if (possible) return view(t, ndim, full.v, strides.v, t->offset);
    Ref<Tensor> r = empty(t->ndim, t->sizes, t->dtype, t->device);
    copy_into(r.get(), t);
    set_geometry(r.get(), ndim, full.v, viewed(r.get(), ndim, full.v)->strides, 0);
    return r;
  }
  Ref<Tensor> source = Ref<Tensor>::borrow(t);
  if (!possible) {
    Arg args[2] = {arg(t), memory_format_arg(MemoryFormat::Contiguous)};
    source = call_tensor(op_clone.get(), args, 2);
  }
  Arg args[2] = {arg(source.get()), arg(full.v, ndim)};
  return call_tensor(op_view.get(), args, 2);
}

static void expand_geometry(Geometry& g, const Tensor* t, int ndim, const int64_t* sizes) {
  if (ndim < t->ndim)
    fail(PyExc_RuntimeError,
         "expand(torch.%sTensor{%s}, size=%s): the number of sizes provided (%d) must be greater or equal to the "
         "number of dimensions in the tensor (%d)",
         legacy_name(t->dtype), shape_text(t).c_str(), shape_text(ndim, sizes).c_str(), ndim, t->ndim);
  while (g.ndim < ndim) g.insert(0, 1, 0);
  int added = ndim - t->ndim;
  for (int d = 0; d < ndim; ++d) {
    if (sizes[d] == -1 && d < added)
      fail(PyExc_RuntimeError,
           "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension %d", d);
    if (sizes[d] == -1 || sizes[d] == g.sizes[d]) {
      if (d < added) g.strides[d] = 0;
      continue;
    }
    if (g.sizes[d] != 1 || sizes[d] < 0)
      fail(PyExc_RuntimeError,
           "The expanded size of the tensor (%lld) must match the existing size (%lld) at non-singleton dimension %d.  "
           "Target sizes: %s.  Tensor sizes: %s",
           static_cast<ll>(sizes[d]), static_cast<ll>(g.sizes[d]), d, shape_text(ndim, sizes).c_str(),
           shape_text(t).c_str());
    g.sizes[d] = sizes[d];
    g.strides[d] = 0;
  }
  checked_numel(g.ndim, g.sizes);
}

Ref<Tensor> expand(Tensor* t, int ndim, const int64_t* sizes) {
  if (t->ndim == ndim && std::equal(sizes, sizes + ndim, t->sizes)) return Ref<Tensor>::borrow(t);
  if (layered(t)) {
    Arg args[2] = {arg(t), arg(sizes, ndim)};
    return call_tensor(op_expand.get(), args, 2);
  }
  Geometry g(t);
  expand_geometry(g, t, ndim, sizes);
  return g.make(t);
}

void broadcast(const char* op, Dims& into, int ndim, const int64_t* sizes) {
  int had = into.n;
  if (ndim > had) {
    into.resize(ndim);
    std::copy_backward(into.v, into.v + had, into.v + ndim);
    std::fill_n(into.v, ndim - had, 1);
  }
  for (int d = 0; d < ndim; ++d) {
    int64_t &size = into[into.n - ndim + d], other = sizes[d];
    if (other == size || other == 1) continue;
    if (size != 1)
      fail(PyExc_RuntimeError,
           "The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton dimension %d (%s)",
           static_cast<ll>(size), static_cast<ll>(other), into.n - ndim + d, op);
    size = other;
  }
}

namespace {

// ---- sizes

PyObject* view_kernel(Call& c) {
  Dims sizes(c.args[1].count, c.args[1].ints);
  infer_size(c.args[0].tensor->numel, sizes.n, sizes.v);
  return viewed(c.args[0].tensor, sizes.n, sizes.v).release_object();
}

PyObject* reshape_kernel(Call& c) {
  return reshape(c.args[0].tensor, c.args[1].count, c.args[1].ints).release_object();
}

PyObject* view_as_kernel(Call& c) {
  Tensor *t = c.args[0].tensor, *other = c.args[1].tensor;
  Arg args[2] = {arg(t), arg(other->sizes, other->ndim)};
  return call(op_view.get(), args, 2).release();
}

PyObject* reshape_as_kernel(Call& c) {
  return reshape(c.args[0].tensor, c.args[1].tensor->ndim, c.args[1].tensor->sizes).release_object();
}

PyObject* flatten_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  int start = dim_of("flatten", c.args[1].i, t), end = dim_of("flatten", c.args[2].i, t);
  if (start > end)
    fail(PyExc_RuntimeError,
         "flatten() has invalid args: start_dim cannot come after end_dim, got start_dim=%d, end_dim=%d", start, end);
  if (start == end && t->ndim) return Py_NewRef(object(t));
  Dims sizes;
  for (int d = 0; d < start; ++d) sizes.push(t->sizes[d]);
  int64_t n = 1;
  for (int d = start; d <= end && d < t->ndim; ++d) n *= t->sizes[d];
  sizes.push(n);
  for (int d = end + 1; d < t->ndim; ++d) sizes.push(t->sizes[d]);
  return reshape(t, sizes.n, sizes.v).release_object();
}

PyObject* unflatten_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  int dim = dim_of("unflatten", c.args[1].i, t), n = c.args[2].count;
  if (!n) fail(PyExc_RuntimeError, "unflatten: sizes must be non-empty");
  if (!t->ndim) fail(PyExc_IndexError, "unflatten: the tensor has no dimension to unflatten, got a 0-d tensor");
  Dims part(n, c.args[2].ints), sizes;
  bool fits = true;
  try {
    infer_size(t->sizes[dim], n, part.v);
  } catch (const Error&) {
    fits = false;
  }
  if (!fits)
    fail(PyExc_RuntimeError,
         "unflatten: Provided sizes %s don't multiply up to the size of dim %d (%lld) in the input tensor",
         shape_text(n, c.args[2].ints).c_str(), dim, static_cast<ll>(t->sizes[dim]));
  for (int d = 0; d < dim; ++d) sizes.push(t->sizes[d]);
  for (int d = 0; d < n; ++d) sizes.push(part[d]);
  for (int d = dim + 1; d < t->ndim; ++d) sizes.push(t->sizes[d]);
  Arg args[2] = {arg(t), arg(sizes.v, sizes.n)};
  return call(op_view.get(), args, 2).release();
}

PyObject* ravel_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  Arg args[2] = {arg(t), memory_format_arg(MemoryFormat::Contiguous)};
  Ref<Tensor> packed = t->contiguous() ? Ref<Tensor>::borrow(t) : call_tensor(op_clone.get(), args, 2);
  return reshape(packed.get(), 1, &t->numel).release_object();
}

PyObject* expand_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  Geometry g(t);
  expand_geometry(g, t, c.args[1].count, c.args[1].ints);
  return g.make(t).release_object();
}

PyObject* broadcast_to_kernel(Call& c) { return call(op_expand.get(), c.args, 2).release(); }

PyObject* expand_as_kernel(Call& c) {
  Arg args[2] = {c.args[0], arg(c.args[1].tensor->sizes, c.args[1].tensor->ndim)};
  return call(op_expand.get(), args, 2).release();
}

PyObject* unsqueeze_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  int dim = static_cast<int>(wrap_dim("unsqueeze", c.args[1].i, t->ndim + 1));
  Geometry g(t);
  g.insert(dim, 1, dim < t->ndim ? t->sizes[dim] * t->strides[dim] : 1);
  return g.make(t).release_object();
}

template <class Keep>
PyObject* squeezed(Tensor* t, Keep keep) {
  Geometry g(t);
  for (int d = t->ndim - 1; d >= 0; --d)
    if (t->sizes[d] == 1 && !keep(d)) g.erase(d);
  return g.make(t).release_object();
}
PyObject* squeeze_kernel(Call& c) {
  return squeezed(c.args[0].tensor, [](int) { return false; });
}
PyObject* squeeze_dim_kernel(Call& c) {
  int dim = dim_of("squeeze", c.args[1].i, c.args[0].tensor);
  return squeezed(c.args[0].tensor, [&](int d) { return d != dim; });
}
uint64_t dim_set(const char* op, const Tensor* t, const Arg& dims) {
  uint64_t set = 0;
  for (int i = 0; i < dims.count; ++i) {
    uint64_t bit = uint64_t{1} << dim_of(op, dims.ints[i], t);
    if (set & bit)
      fail(PyExc_RuntimeError, "dim %lld appears multiple times in the list of dims (%s)",
           static_cast<ll>(dims.ints[i]), op);
    set |= bit;
  }
  return set;
}
PyObject* squeeze_dims_kernel(Call& c) {
  uint64_t set = dim_set("squeeze", c.args[0].tensor, c.args[1]);
  return squeezed(c.args[0].tensor, [&](int d) { return !(set >> d & 1); });
}

// ---- order of dimensions

PyObject* permute_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  if (c.args[1].count != t->ndim)
    fail(PyExc_RuntimeError,
         "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
         "ordering of dimensions "
         "i.e. input.dim() = %d is not equal to len(dims) = %d",
         t->ndim, c.args[1].count);
  Geometry g(t);
  uint64_t seen = 0;
  for (int i = 0; i < t->ndim; ++i) {
    int d = dim_of("permute", c.args[1].ints[i], t);
    if (seen >> d & 1)
      fail(PyExc_RuntimeError, "permute(): duplicate dims are not allowed, got dims=%s",
           shape_text(t->ndim, c.args[1].ints).c_str());
    seen |= uint64_t{1} << d;
    g.sizes[i] = t->sizes[d];
    g.strides[i] = t->strides[d];
  }
  return g.make(t).release_object();
}

Ref<Tensor> transposed(Tensor* t, int a, int b) {
  Geometry g(t);
  if (t->ndim) {
    std::swap(g.sizes[a], g.sizes[b]);
    std::swap(g.strides[a], g.strides[b]);
  }
  return g.make(t);
}
PyObject* transpose_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  return transposed(t, dim_of("transpose", c.args[1].i, t), dim_of("transpose", c.args[2].i, t)).release_object();
}
void check_t(const Tensor* t) {
  if (t->ndim > 2) fail(PyExc_RuntimeError, "t() expects a tensor with <= 2 dimensions, but self is %dD", t->ndim);
}
PyObject* t_kernel(Call& c) {
  check_t(c.args[0].tensor);
  return transposed(c.args[0].tensor, 0, c.args[0].tensor->ndim > 1 ? 1 : 0).release_object();
}

// Both lists of dimensions, each a lone int or a list.
PyObject* movedim_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  Dims from(c.args[1].kind == Kind::Int ? 1 : c.args[1].count), to(c.args[2].kind == Kind::Int ? 1 : c.args[2].count);
  if (from.n != to.n)
    fail(PyExc_RuntimeError,
         "movedim: Invalid source or destination dims: source (%s dims) should contain the same number of dims as "
         "destination (%s dims)",
         shape_text(from.n, c.args[1].ints).c_str(), shape_text(to.n, c.args[2].ints).c_str());
  uint64_t moved = 0, taken = 0;
  int64_t order[kMaxRank];
  for (int i = 0; i < from.n; ++i) {
    from[i] = dim_of("movedim", c.args[1].kind == Kind::Int ? c.args[1].i : c.args[1].ints[i], t);
    to[i] = dim_of("movedim", c.args[2].kind == Kind::Int ? c.args[2].i : c.args[2].ints[i], t);
    if (moved >> from[i] & 1)
      fail(PyExc_RuntimeError, "movedim: repeated dim in `source` (%s)",
           shape_text(c.args[1].count, c.args[1].ints).c_str());
    if (taken >> to[i] & 1)
      fail(PyExc_RuntimeError, "movedim: repeated dim in `destination` (%s)",
           shape_text(c.args[2].count, c.args[2].ints).c_str());
    moved |= uint64_t{1} << from[i];
    taken |= uint64_t{1} << to[i];
    order[to[i]] = from[i];
  }
  for (int d = 0, next = 0; d < t->ndim; ++d) {
    if (taken >> d & 1) continue;
    while (moved >> next & 1) ++next;
    order[d] = next++;
  }
  Arg args[2] = {arg(t), arg(order, t->ndim)};
  return call(op_permute.get(), args, 2).release();
}

// ---- parts

PyObject* select_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  if (!t->ndim) fail(PyExc_IndexError, "select() cannot be applied to a 0-dim tensor.");
  Geometry g(t);
  int dim = dim_of("select", c.args[1].i, t);
  int64_t size = t->sizes[dim], index = c.args[2].i;
  if (index < -size || index >= size)
    fail(PyExc_IndexError, "select(): index %lld out of range for tensor of size %s at dimension %d",
         static_cast<ll>(index), shape_text(t).c_str(), dim);
  g.select(dim, index);
  return g.make(t).release_object();
}

// slice(dim, start, end, step); absent bounds reach to the ends.
PyObject* slice_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  if (!t->ndim) fail(PyExc_RuntimeError, "slice() cannot be applied to a 0-dim tensor.");
  int dim = dim_of("slice", c.args[1].i, t);
  int64_t step = c.args[4].i, size = t->sizes[dim];
  if (!step) fail(PyExc_ValueError, "slice step cannot be zero");
  int64_t start = c.args[2].none() ? (step > 0 ? 0 : size) : c.args[2].i,
          stop = c.args[3].none() ? (step > 0 ? size : -size - 1) : c.args[3].i;
  adjust_slice(size, step, &start, &stop);
  Geometry g(t);
  g.slice(dim, start, stop, step);
  return g.make(t).release_object();
}

Ref<> sliced(Tensor* t, int dim, int64_t start, int64_t stop) {
  Arg args[4] = {arg(t), arg(int64_t{dim}), arg(start), arg(stop)};
  return call(op_slice.get(), args, 4);
}

PyObject* narrow_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  if (!t->ndim) fail(PyExc_RuntimeError, "narrow() cannot be applied to a 0-dim tensor.");
  int dim = dim_of("narrow", c.args[1].i, t);
  if (c.args[2].is_tensor() && (c.args[2].tensor->ndim || !is_integral(c.args[2].tensor->dtype)))
    fail(PyExc_RuntimeError, "start must be an 0-dim integral Tensor.");
  int64_t size = t->sizes[dim], start = c.args[2].is_tensor() ? item(c.args[2].tensor).to_int() : c.args[2].i,
          length = c.args[3].i;
  if (length < 0) fail(PyExc_RuntimeError, "narrow(): length must be non-negative.");
  if (start < -size || start > size)
    fail(PyExc_IndexError, "start out of range (expected to be in range of [%lld, %lld], but got %lld)",
         static_cast<ll>(-size), static_cast<ll>(size), static_cast<ll>(start));
  if (start < 0) start += size;
  if (start > size - length)
    fail(PyExc_RuntimeError, "start (%lld) + length (%lld) exceeds dimension size (%lld).", static_cast<ll>(start),
         static_cast<ll>(length), static_cast<ll>(size));
  return sliced(t, dim, start, start + length).release();
}

// Handles of more pieces than this would take gigabytes.
constexpr int64_t kMaxPieces = int64_t{1} << 24;

void check_pieces(const char* op, int64_t n) {
  if (n > kMaxPieces)
    fail(PyExc_RuntimeError, "%s: makes at most %lld pieces, got %lld. Ask for fewer.", op, static_cast<ll>(kMaxPieces),
         static_cast<ll>(n));
}

// A tuple of consecutive slices of the given lengths.
template <class Length>
PyObject* pieces(Tensor* t, int dim, int64_t n, Length length) {
  Ref<> tuple = Ref<>::check(PyTuple_New(n));
  int64_t start = 0;
  for (int64_t i = 0; i < n; ++i) {
    Geometry g(t);
    int64_t stop = start + length(i);
    g.slice(dim, start, stop, 1);
    if (start == stop) g.offset += std::min(start, std::max<int64_t>(t->sizes[dim] - 1, 0)) * t->strides[dim];
    PyTuple_SET_ITEM(tuple.get(), i, g.make(t).release_object());
    start = stop;
  }
  return tuple.release();
}

PyObject* split_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  if (!t->ndim) fail(PyExc_RuntimeError, "split expects at least a 1-dimensional tensor");
  int64_t piece = c.args[1].i;
  int dim = dim_of("split", c.args[2].i, t);
  int64_t size = t->sizes[dim];
  if (piece < 0)
    fail(PyExc_RuntimeError, "split expects split_size be non-negative, but got split_size=%lld",
         static_cast<ll>(piece));
  if (!piece && size)
    fail(PyExc_RuntimeError, "split_size can only be 0 if dimension size is 0, but got dimension size of %lld",
         static_cast<ll>(size));
  int64_t n = piece ? std::max<int64_t>(size / piece + (size % piece != 0), 1) : 1;
  check_pieces("split", n);
  return pieces(t, dim, n, [&](int64_t i) { return i + 1 < n ? piece : size - piece * (n - 1); });
}

PyObject* split_with_sizes_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  if (!t->ndim) fail(PyExc_RuntimeError, "split_with_sizes expects at least a 1-dimensional tensor");
  int dim = dim_of("split_with_sizes", c.args[2].i, t);
  int64_t size = t->sizes[dim], left = size;
  bool fits = true;
  for (int i = 0; i < c.args[1].count; ++i) {
    int64_t n = c.args[1].ints[i];
    if (n < 0)
      fail(PyExc_RuntimeError,
           "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=%s",
           shape_text(c.args[1].count, c.args[1].ints).c_str());
    fits = fits && n <= left;
    left -= fits ? n : 0;
  }
  if (!fits || left)
    fail(PyExc_RuntimeError,
         "split_with_sizes expects split_sizes to sum exactly to %lld (input tensor's size at dimension %d), but got "
         "split_sizes=%s",
         static_cast<ll>(size), dim, shape_text(c.args[1].count, c.args[1].ints).c_str());
  return pieces(t, dim, c.args[1].count, [&](int64_t i) { return c.args[1].ints[i]; });
}

PyObject* chunk_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  int64_t chunks = c.args[1].i;
  if (!t->ndim) fail(PyExc_RuntimeError, "chunk expects at least a 1-dimensional tensor");
  if (chunks <= 0)
    fail(PyExc_RuntimeError, "chunk expects `chunks` to be greater than 0, got: %lld", static_cast<ll>(chunks));
  int64_t size = t->sizes[dim_of("chunk", c.args[2].i, t)];
  if (!size) {
    check_pieces("chunk", chunks);
    std::vector<int64_t> none(chunks, 0);
    Arg args[3] = {arg(t), arg(none.data(), static_cast<int>(chunks)), c.args[2]};
    return call(op_split_sizes.get(), args, 3).release();
  }
  Arg args[3] = {arg(t), arg(size / chunks + (size % chunks != 0)), c.args[2]};
  return call(op_split.get(), args, 3).release();
}

// tensor_split(indices_or_sections, dim): an int, a list of ints or a tensor of them.
PyObject* tensor_split_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  if (!t->ndim)
    fail(PyExc_RuntimeError, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
  int dim = dim_of("tensor_split", c.args[2].i, t);
  int64_t size = t->sizes[dim];
  Arg how = c.args[1];
  Dims values;
  if (how.is_tensor()) {
    Tensor* s = how.tensor;
    if (!s->is_cpu() || s->ndim > 1 || s->dtype != DType::Int64)
      fail(PyExc_RuntimeError,
           "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional int64 tensor "
           "on the CPU, got %s",
           describe(s).c_str());
    for (int64_t i = 0; i < s->numel; ++i)
      values.push(*reinterpret_cast<int64_t*>(s->data + i * (s->ndim ? s->strides[0] : 0) * 8));
    how = s->ndim ? arg(values.v, values.n) : arg(values[0]);
  }
  // Slices, not the outputs of one split: these may be written to in place.
  if (how.kind == Kind::Int) {
    if (how.i <= 0)
      fail(PyExc_RuntimeError, "number of sections must be larger than 0, got %lld", static_cast<ll>(how.i));
    check_pieces("tensor_split", how.i);
    Ref<> tuple = Ref<>::check(PyTuple_New(how.i));
    for (int64_t i = 0, start = 0; i < how.i; ++i) {
      const int64_t stop = start + size / how.i + (i < size % how.i);
      PyTuple_SET_ITEM(tuple.get(), i, sliced(t, dim, start, stop).release());
      start = stop;
    }
    return tuple.release();
  }
  // Bounds may come in any order; a piece that ends before it starts is empty.
  Ref<> tuple = Ref<>::check(PyTuple_New(how.count + 1));
  int64_t start = 0;
  for (int i = 0; i <= how.count; ++i) {
    int64_t stop = i < how.count ? how.ints[i] : size;
    PyTuple_SET_ITEM(tuple.get(), i, sliced(t, dim, start, stop).release());
    start = stop;
  }
  return tuple.release();
}

// hsplit, vsplit, dsplit: tensor_split along a fixed dimension, whose size must divide evenly.
template <int dim>
PyObject* named_split_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  constexpr const char* names[3] = {"vsplit", "hsplit", "dsplit"};
  int least = dim == 1 ? 1 : dim + (dim == 0 ? 2 : 1), along = dim == 1 && t->ndim == 1 ? 0 : dim;
  if (t->ndim < least)
    fail(PyExc_RuntimeError,
         "torch.%s requires a tensor with at least %d dimension%s, but got a tensor with %d dimensions!", names[dim],
         least, least > 1 ? "s" : "", t->ndim);
  if (c.args[1].kind == Kind::Int) {
    int64_t n = c.args[1].i, size = t->sizes[along];
    if (n <= 0 || size % n)
      fail(PyExc_RuntimeError,
           "torch.%s attempted to split along dimension %d, but the size of the dimension %lld is not divisible by the "
           "split_size %lld!",
           names[dim], along, static_cast<ll>(size), static_cast<ll>(n));
  }
  Arg args[3] = {arg(t), c.args[1], arg(int64_t{along})};
  Call inner = c;
  inner.args = args;
  return tensor_split_kernel(inner);
}

// unsafe_split and its kin: the same pieces, but no views as far as gradients and version counters know.
template <Kernel split>
PyObject* unsafe_kernel(Call& c) {
  Ref<> parts = Ref<>::check(split(c));
  Py_ssize_t n = PyTuple_GET_SIZE(parts.get());
  Ref<> tuple = Ref<>::check(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    Ref<Tensor> piece = detach(as_tensor(PyTuple_GET_ITEM(parts.get(), i)));
    Storage* shared = piece->storage;
    piece->storage = alias_storage(shared);
    release(shared);
    PyTuple_SET_ITEM(tuple.get(), i, piece.release_object());
  }
  return tuple.release();
}

PyObject* unbind_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  if (!t->ndim)
    fail(PyExc_IndexError, "Dimension specified as %lld but tensor has no dimensions", static_cast<ll>(c.args[1].i));
  int dim = dim_of("unbind", c.args[1].i, t);
  Geometry g(t);
  g.erase(dim);
  Ref<> tuple = Ref<>::check(PyTuple_New(t->sizes[dim]));
  for (int64_t i = 0; i < t->sizes[dim]; ++i, g.offset += t->strides[dim])
    PyTuple_SET_ITEM(tuple.get(), i, g.make(t).release_object());
  return tuple.release();
}

PyObject* diagonal_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  int64_t offset = c.args[1].i;
  int a = dim_of("diagonal", c.args[2].i, t), b = dim_of("diagonal", c.args[3].i, t);
  if (a == b || t->ndim < 2)
    fail(PyExc_RuntimeError, "diagonal dimensions cannot be identical %lld, %lld", static_cast<ll>(c.args[2].i),
         static_cast<ll>(c.args[3].i));
  Geometry g(t);
  int64_t rows = t->sizes[a], columns = t->sizes[b];
  int64_t n = offset >= 0 ? std::min(rows, std::max<int64_t>(columns - offset, 0))
                          : std::min(std::max<int64_t>(rows + offset, 0), columns);
  if (offset < -rows) n = 0;
  n = std::max<int64_t>(n, 0);
  if (n) g.offset += offset >= 0 ? offset * t->strides[b] : -offset * t->strides[a];
  int64_t stride = t->strides[a] + t->strides[b];
  g.erase(std::max(a, b));
  g.erase(std::min(a, b));
  g.insert(g.ndim, n, stride);
  return g.make(t).release_object();
}

PyObject* as_strided_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  const Arg &size = c.args[1], &stride = c.args[2];
  int64_t offset = c.args[3].none() ? t->offset : c.args[3].i;
  if (size.count != stride.count)
    fail(PyExc_RuntimeError, "mismatch in length of strides and shape: size=%s, stride=%s",
         shape_text(size.count, size.ints).c_str(), shape_text(stride.count, stride.ints).c_str());
  if (offset < 0) fail(PyExc_RuntimeError, "Tensor: invalid storage offset %lld", static_cast<ll>(offset));
  int64_t extent = checked_numel(size.count, size.ints) ? 1 : 0;
  bool overflow = __builtin_add_overflow(extent, offset, &extent);
  for (int d = 0; d < size.count; ++d) {
    if (stride.ints[d] < 0)
      fail(PyExc_RuntimeError, "as_strided: Negative strides are not supported at the moment, got strides: %s",
           shape_text(stride.count, stride.ints).c_str());
    int64_t reach;
    if (extent > offset)
      overflow |= __builtin_mul_overflow(size.ints[d] - 1, stride.ints[d], &reach) ||
                  __builtin_add_overflow(extent, reach, &extent);
  }
  overflow |= __builtin_mul_overflow(extent, itemsize(t->dtype), &extent);
  bool empty = checked_numel(size.count, size.ints) == 0;
  if (overflow || (!empty && extent > t->storage->nbytes))
    fail(PyExc_RuntimeError,
         "setStorage: sizes %s, strides %s, storage offset %lld, and itemsize %lld requiring a storage size of %lld "
         "are out of bounds for storage of size %lld",
         shape_text(size.count, size.ints).c_str(), shape_text(stride.count, stride.ints).c_str(),
         static_cast<ll>(offset), static_cast<ll>(itemsize(t->dtype)), static_cast<ll>(extent),
         static_cast<ll>(t->storage->nbytes));
  return view(t, size.count, size.ints, stride.ints, offset).release_object();
}

PyObject* unfold_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  int dim = dim_of("unfold", c.args[1].i, t);
  int64_t size = c.args[2].i, step = c.args[3].i, have = t->ndim ? t->sizes[dim] : 1,
          stride = t->ndim ? t->strides[dim] : 1;
  if (size < 0) fail(PyExc_RuntimeError, "size is %lld but must be >= 0", static_cast<ll>(size));
  if (size > have)
    fail(PyExc_RuntimeError, "maximum size for tensor at dimension %d is %lld but size is %lld", dim,
         static_cast<ll>(have), static_cast<ll>(size));
  if (step <= 0) fail(PyExc_RuntimeError, "step is %lld but must be > 0", static_cast<ll>(step));
  Geometry g(t);
  g.insert(g.ndim, size, stride);
  if (t->ndim) {
    g.sizes[dim] = (have - size) / step + 1;
    g.strides[dim] = stride * step;
  }
  return g.make(t).release_object();
}

PyObject* alias_kernel(Call& c) { return alias(c.args[0].tensor).release_object(); }
PyObject* detach_kernel(Call& c) { return detach(c.args[0].tensor).release_object(); }

// ---- gradients of parts: zeros with the gradient where the part was

// The arguments are those of the view op, with the gradient and the sizes of the whole in place of the tensor.
template <Kernel part>
PyObject* part_backward_kernel(Call& c) {
  Tensor* grad = c.args[0].tensor;
  Ref<Tensor> whole = full(c.args[1].count, c.args[1].ints, grad->dtype, grad->device, arg(int64_t{0}));
  Arg args[kMaxParams];
  args[0] = arg(whole.get());
  std::copy(c.args + 2, c.args + c.op->nparams, args + 1);
  Call inner = c;
  inner.args = args;
  Ref<> target = Ref<>::check(part(inner));
  copy_into(as_tensor(target.get()), grad);
  return whole.release_object();
}

// ---- a copy of the whole with other elements in a part: (self, src, arguments of the view op)

// A copy with the strides of `t` over as much memory as its storage has: a part may lie outside of `t` itself.
Ref<Tensor> clone_storage(Tensor* t) {
  int64_t n = t->storage->nbytes / itemsize(t->dtype), one = 1;
  Ref<Tensor> memory = clone(view(t, 1, &n, &one, 0).get());
  set_geometry(memory.get(), t->ndim, t->sizes, t->strides, t->offset);
  return memory;
}

template <Kernel part>
PyObject* part_scatter_kernel(Call& c) {
  Tensor *self = c.args[0].tensor, *src = c.args[1].tensor;
  Ref<Tensor> whole = part == as_strided_kernel ? clone_storage(self) : clone(self);
  Arg args[kMaxParams];
  args[0] = arg(whole.get());
  std::copy(c.args + 2, c.args + c.op->nparams, args + 1);
  Call inner = c;
  inner.args = args;
  Ref<> target = Ref<>::check(part(inner));
  Tensor* to = as_tensor(target.get());
  if (to->ndim != src->ndim || !std::equal(to->sizes, to->sizes + to->ndim, src->sizes))
    fail(PyExc_RuntimeError, "expected src to have a size equal to the slice of self. src size = %s, slice size = %s",
         shape_text(src).c_str(), shape_text(to).c_str());
  check_writable(c.op, to);
  copy_into(to, src);
  return whole.release_object();
}

// ---- other element types over the same bytes

PyObject* retyped(Tensor* t, DType dtype, Geometry& g) {
  Ref<Tensor> r = alias(t);
  r->dtype = dtype;
  set_geometry(r.get(), g.ndim, g.sizes, g.strides, g.offset);
  return r.release_object();
}

PyObject* view_dtype_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  DType to = c.args[1].dtype;
  int64_t have = itemsize(t->dtype), want = itemsize(to);
  Geometry g(t);
  if (have == want) return retyped(t, to, g);
  if (!t->ndim)
    fail(PyExc_RuntimeError, "self.dim() cannot be 0 to view %s as %s (different element sizes)", legacy_name(t->dtype),
         legacy_name(to));
  int last = t->ndim - 1;
  bool fits = t->sizes[last] <= 1 && have > want ? true : t->strides[last] == 1 || t->numel == 0;
  if (have < want) {
    int64_t k = want / have;
    if (t->sizes[last] % k)
      fail(PyExc_RuntimeError,
           "self.size(-1) must be divisible by %lld to view %s as %s (different element sizes), but got %lld",
           static_cast<ll>(k), legacy_name(t->dtype), legacy_name(to), static_cast<ll>(t->sizes[last]));
    if (t->offset % k)
      fail(PyExc_RuntimeError,
           "self.storage_offset() must be divisible by %lld to view %s as %s (different element sizes), but got %lld",
           static_cast<ll>(k), legacy_name(t->dtype), legacy_name(to), static_cast<ll>(t->offset));
    for (int d = 0; d < last; ++d) {
      if (t->strides[d] % k && t->sizes[d] > 1)
        fail(PyExc_RuntimeError,
             "self.stride(%d) must be divisible by %lld to view %s as %s (different element sizes), but got %lld", d,
             static_cast<ll>(k), legacy_name(t->dtype), legacy_name(to), static_cast<ll>(t->strides[d]));
      g.strides[d] /= k;
    }
    g.sizes[last] /= k;
    g.offset /= k;
    if (reinterpret_cast<uintptr_t>(t->data) % itemsize(real_of(to)))
      fail(PyExc_RuntimeError, "view: the memory is not aligned to the element size of %s. clone() the tensor first.",
           name(to));
  } else {
    int64_t k = have / want;
    for (int d = 0; d < last; ++d) g.strides[d] *= k;
    g.sizes[last] *= k;
    g.offset *= k;
  }
  if (!fits)
    fail(PyExc_RuntimeError, "self.stride(-1) must be 1 to view %s as %s (different element sizes), but got %lld",
         legacy_name(t->dtype), legacy_name(to), static_cast<ll>(t->strides[last]));
  g.strides[last] = 1;
  return retyped(t, to, g);
}

PyObject* view_as_real_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  if (!is_complex(t->dtype))
    fail(PyExc_RuntimeError, "view_as_real is only supported for complex tensors, got %s", describe(t).c_str());
  Geometry g(t);
  for (int d = 0; d < g.ndim; ++d) g.strides[d] *= 2;
  g.offset *= 2;
  g.insert(g.ndim, 2, 1);
  return retyped(t, real_of(t->dtype), g);
}

PyObject* view_as_complex_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  if (t->dtype != DType::Float32 && t->dtype != DType::Float64)
    fail(PyExc_RuntimeError,
         "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: %s",
         legacy_name(t->dtype));
  if (!t->ndim) fail(PyExc_RuntimeError, "Input tensor must have one or more dimensions");
  int last = t->ndim - 1;
  if (t->sizes[last] != 2) fail(PyExc_RuntimeError, "Tensor must have a last dimension of size 2");
  if (t->strides[last] != 1)
    fail(PyExc_RuntimeError,
         "Tensor must have a last dimension with stride 1; view_as_complex does not support strides %s. Call "
         "contiguous() first.",
         shape_text(t->ndim, t->strides).c_str());
  Geometry g(t);
  g.erase(last);
  for (int d = 0; d < last; ++d) {
    if (t->strides[d] % 2 && t->sizes[d] > 1)
      fail(PyExc_RuntimeError, "Tensor must have a stride divisible by 2 for all but last dimension");
    g.strides[d] /= 2;
  }
  if (t->offset % 2) fail(PyExc_RuntimeError, "Tensor must have a storage_offset divisible by 2");
  g.offset /= 2;
  return retyped(t, complex_of(t->dtype), g);
}

PyObject* real_kernel(Call& c) {
  if (!is_complex(c.args[0].tensor->dtype)) return Py_NewRef(object(c.args[0].tensor));
  Ref<Tensor> parts = call_tensor(op_view_as_real.get(), c.args, 1);
  Arg args[3] = {arg(parts.get()), arg(int64_t{-1}), arg(int64_t{0})};
  return call(op_select.get(), args, 3).release();
}
PyObject* imag_kernel(Call& c) {
  if (!is_complex(c.args[0].tensor->dtype))
    fail(PyExc_RuntimeError, "imag is not implemented for tensors with non-complex dtypes.");
  Ref<Tensor> parts = call_tensor(op_view_as_real.get(), c.args, 1);
  Arg args[3] = {arg(parts.get()), arg(int64_t{-1}), arg(int64_t{1})};
  return call(op_select.get(), args, 3).release();
}

// ---- in place

// Runs the view kernel and gives its geometry to the tensor itself.
template <Kernel kernel>
PyObject* inplace_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  Ref<> r = Ref<>::check(kernel(c));
  Tensor* v = as_tensor(r.get());
  set_geometry(t, v->ndim, v->sizes, v->strides, v->offset);
  return Py_NewRef(object(t));
}

// Makes the storage of a tensor big enough for its elements; everything else over the storage follows.
void reserve(Tensor* t, int64_t extent) {
  int64_t need;
  if (__builtin_add_overflow(extent, t->offset, &need) || __builtin_mul_overflow(need, itemsize(t->dtype), &need))
    fail(PyExc_RuntimeError, "Storage size calculation overflowed with sizes=%s", shape_text(t).c_str());
  if (!extent || need <= t->storage->nbytes) return;
  if (t->is_cpu() || t->device.type == kMeta) return resize_storage(root_of(t->storage), need);
  int64_t size = itemsize(t->dtype), n = need / size, had = t->storage->nbytes / size, one = 1;
  Ref<Tensor> grown = empty(1, &n, t->dtype, t->device);
  if (had) copy_into(view(grown.get(), 1, &had, &one, 0).get(), view(t, 1, &had, &one, 0).get());
  std::swap(t->storage, grown->storage);
}

// The tensor becomes those elements of the storage, of which there is more where they need it.
void become(Tensor* t, Storage* s, int ndim, const int64_t* sizes, const int64_t* strides, int64_t offset) {
  if (offset < 0) fail(PyExc_RuntimeError, "Tensor: invalid storage offset %lld", static_cast<ll>(offset));
  if (s->device != t->device)
    fail(
        PyExc_RuntimeError,
        "Attempted to set the storage of a tensor on device \"%s\" to a storage on different device \"%s\". This is no "
        "longer allowed; the devices must match.",
        device_text(t->device).c_str(), device_text(s->device).c_str());
  checked_numel(ndim, sizes);
  Ref<Tensor> shaped(new_tensor(t->dtype, s->device, ndim));
  std::copy_n(sizes, ndim, shaped->sizes);
  std::copy_n(strides, ndim, shaped->strides);
  shaped->offset = offset;
  shaped->storage = retain(s);
  reserve(shaped.get(), extent_of(ndim, sizes, strides));
  std::swap(t->storage, shaped->storage);
  set_geometry(t, ndim, sizes, strides, offset);
}

void resize(const char* op, Tensor* t, int ndim, const int64_t* sizes) {
  if (requires_grad(t))
    fail(PyExc_RuntimeError, "cannot resize variables that require grad (%s). Call detach() first.", op);
  Dims strides(ndim);
  int64_t step = 1;
  for (int d = ndim - 1; d >= 0; --d) {
    strides[d] = step;
    if (__builtin_mul_overflow(step, std::max<int64_t>(sizes[d], 1), &step)) checked_numel(ndim, sizes);
  }
  const int64_t size = itemsize(t->dtype), had = t->storage->nbytes / size;
  become(t, t->storage, ndim, sizes, strides.v, t->offset);
  if (!g_determinism.on || !g_determinism.fills_memory) return;
  const int64_t more = t->storage->nbytes / size - had, one = 1;
  if (more > 0) fill_unknown(view(t, 1, &more, &one, had).get());
}

PyObject* resize_kernel(Call& c) {
  resize("resize_", c.args[0].tensor, c.args[1].count, c.args[1].ints);
  return Py_NewRef(object(c.args[0].tensor));
}
PyObject* resize_as_kernel(Call& c) {
  resize("resize_as_", c.args[0].tensor, c.args[1].tensor->ndim, c.args[1].tensor->sizes);
  return Py_NewRef(object(c.args[0].tensor));
}
// ---- set_: the tensor becomes another name for the memory of a tensor or storage

void check_settable(const Tensor* t) {
  if (t->flags & kRequiresGrad && !t->grad_fn && !(thread_word() & kNoGrad))
    fail(PyExc_RuntimeError,
         "a leaf Variable that requires grad is being used in an in-place operation (set_). Do it under no_grad().");
}

void check_source(const Tensor* t, DType source) {
  if (t->dtype != source)
    fail(PyExc_RuntimeError,
         "Could not set tensor of type %s to a tensor of type %s: set_ shares memory and does not convert.",
         name(source), name(t->dtype));
}

PyObject* set_kernel(Call& c) {
  Tensor *t = c.args[0].tensor, *source = c.args[1].tensor;
  check_source(t, source->dtype);
  check_settable(t);
  become(t, source->storage, source->ndim, source->sizes, source->strides, source->offset);
  return Py_NewRef(object(t));
}

PyObject* set_empty_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  check_settable(t);
  int64_t size = 0, stride = 1;
  Ref<Tensor> none = empty(1, &size, t->dtype, t->device);
  become(t, none->storage, 1, &size, &stride, 0);
  return Py_NewRef(object(t));
}

// The storage of a Tensor, UntypedStorage or TypedStorage.
Storage* source_storage(const Tensor* t, const Arg& a) {
  check_settable(t);
  PyObject* source = a.none() ? Py_None : a.object;
  if (is_tensor(source)) {
    check_source(t, as_tensor(source)->dtype);
    return as_tensor(source)->storage;
  }
  Storage* s;
  if (storage_from_object(source, &s)) return s;
  DType dtype;
  Ref<> untyped(PyObject_GetAttrString(source, "_untyped_storage")), type(PyObject_GetAttrString(source, "dtype"));
  PyErr_Clear();
  if (!untyped || !type || !storage_from_object(untyped.get(), &s) || !dtype_from_object(type.get(), &dtype))
    fail(PyExc_TypeError, "set_(): argument 'source' must be a Storage or Tensor, not %s", Py_TYPE(source)->tp_name);
  if (dtype != t->dtype)
    fail(PyExc_RuntimeError, "Expected a Storage of type %s or an UntypedStorage, but got type %s for 'source'",
         name(t->dtype), name(dtype));
  return s;
}

PyObject* set_storage_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  Storage* s = source_storage(t, c.args[1]);
  int64_t size = s->nbytes / itemsize(t->dtype), stride = 1;
  become(t, s, 1, &size, &stride, 0);
  return Py_NewRef(object(t));
}

PyObject* set_part_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  const Arg &size = c.args[3], &stride = c.args[4];
  Dims strides(size.count);
  if (stride.count && stride.count != size.count)
    fail(PyExc_RuntimeError, "unequal size length (%d) and stride length (%d)", size.count, stride.count);
  int64_t step = 1;
  for (int d = size.count - 1; d >= 0; --d) {
    strides[d] = stride.count ? stride.ints[d] : step;
    if (__builtin_mul_overflow(step, std::max<int64_t>(size.ints[d], 1), &step)) checked_numel(size.count, size.ints);
  }
  become(t, source_storage(t, c.args[1]), size.count, size.ints, strides.v, c.args[2].i);
  return Py_NewRef(object(t));
}

// ---- attributes

PyObject* swap_last(PyObject* self, const char* attribute, bool matrix_only) {
  Tensor* t = as_tensor(self);
  if (t->ndim == 0) {
    const std::string text = std::string("Tensor.") + attribute + " is deprecated on 0-D tensors. Write x or x.conj().";
    if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) < 0) throw PythonError();
    Arg args[3] = {arg(t), arg(int64_t{-1}), arg(int64_t{-1})};
    return call(op_transpose.get(), args, 3).release();
  }
  if (t->ndim < 2 || (matrix_only && t->ndim > 2))
    fail(PyExc_RuntimeError, "tensor.%s is only supported on %s, but got a tensor of %d dimension(s)", attribute,
         matrix_only ? "matrices (2-D tensors)" : "matrices or batches of matrices", t->ndim);
  if (!layered(t)) return transposed(t, t->ndim - 2, t->ndim - 1).release_object();
  Arg args[3] = {arg(t), arg(int64_t{-2}), arg(int64_t{-1})};
  return call(op_transpose.get(), args, 3).release();
}

PyObject* get_T(PyObject* self, void*) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    Tensor* t = as_tensor(self);
    if (t->ndim != 2 && PyErr_WarnEx(PyExc_UserWarning,
                                     "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is "
                                     "deprecated and it will throw an error in a "
                                     "future release. Consider `x.mT` to transpose batches of matrices or "
                                     "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse "
                                     "the dimensions of a tensor.",
                                     1) < 0)
      return nullptr;
    if (!layered(t) && t->ndim == 2) return transposed(t, 0, 1).release_object();
    int64_t order[kMaxRank];
    for (int d = 0; d < t->ndim; ++d) order[d] = t->ndim - 1 - d;
    Arg args[2] = {arg(t), arg(order, t->ndim)};
    return call(op_permute.get(), args, 2).release();
  });
}
PyObject* get_mT(PyObject* self, void*) {
  return guard<PyObject*>(nullptr, [&] { return swap_last(self, "mT", false); });
}
PyObject* conjugate_transpose(PyObject* self, const char* attribute, bool matrix_only) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    Ref<> r = Ref<>::check(swap_last(self, attribute, matrix_only));
    return is_complex(as_tensor(self)->dtype) ? PyObject_CallMethod(r.get(), "conj", nullptr) : r.release();
  });
}
PyObject* get_H(PyObject* self, void*) { return conjugate_transpose(self, "H", true); }
PyObject* get_mH(PyObject* self, void*) { return conjugate_transpose(self, "mH", false); }
template <Kernel kernel>
PyObject* get_part(PyObject* self, void*) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    Arg args[1] = {arg(as_tensor(self))};
    Call c{nullptr, args, 0, {}, false, 0, nullptr, nullptr};
    return kernel(c);
  });
}
template <Kernel kernel>
int set_part(PyObject* self, PyObject* value, void*) {
  return guard<int>(-1, [&] {
    if (!value) fail(PyExc_RuntimeError, "real and imag cannot be deleted");
    Ref<> part = Ref<>::check(get_part<kernel>(self, nullptr));
    set_item(as_tensor(part.get()), Py_Ellipsis, value);
    return 0;
  });
}

PyGetSetDef attributes[] = {
    {"T", get_T, nullptr, "The matrix transposed.", nullptr},
    {"mT", get_mT, nullptr, "The last two dimensions swapped.", nullptr},
    {"H", get_H, nullptr, "The matrix transposed and conjugated.", nullptr},
    {"mH", get_mH, nullptr, "The last two dimensions swapped, conjugated.", nullptr},
    {"real", get_part<real_kernel>, set_part<real_kernel>, "The real part, a view.", nullptr},
    {"imag", get_part<imag_kernel>, set_part<imag_kernel>, "The imaginary part, a view.", nullptr}};

}  // namespace

void add_view_attributes() {
  for (PyGetSetDef& def : attributes)
    add_tensor_attribute(def.name, Ref<>::check(PyDescr_NewGetSet(g_tensor_type, &def)).get());
}

void register_view_ops() {
  static const Native natives[] = {
      {"view", view_kernel, true},
      {"view.dtype", view_dtype_kernel, true},
      {"view_as", view_as_kernel, true},
      {"reshape", reshape_kernel, true},
      {"reshape_as", reshape_as_kernel, true},
      {"flatten.using_ints", flatten_kernel, true},
      {"unflatten.int", unflatten_kernel, true},
      {"ravel", ravel_kernel, true},
      {"expand", expand_kernel, true},
      {"expand_as", expand_as_kernel, true},
      {"broadcast_to", broadcast_to_kernel, true},
      {"unsqueeze", unsqueeze_kernel, true},
      {"squeeze", squeeze_kernel, true},
      {"squeeze.dim", squeeze_dim_kernel, true},
      {"squeeze.dims", squeeze_dims_kernel, true},
      {"permute", permute_kernel, true},
      {"transpose.int", transpose_kernel, true},
      {"t", t_kernel, true},
      {"movedim.int", movedim_kernel, true},
      {"movedim.intlist", movedim_kernel, true},
      {"select.int", select_kernel, true},
      {"slice.Tensor", slice_kernel, true},
      {"narrow", narrow_kernel, true},
      {"narrow.Tensor", narrow_kernel, true},
      {"split.Tensor", split_kernel, true},
      {"split_with_sizes", split_with_sizes_kernel, true},
      {"chunk", chunk_kernel, true},
      {"unsafe_split.Tensor", unsafe_kernel<split_kernel>, true},
      {"unsafe_split_with_sizes", unsafe_kernel<split_with_sizes_kernel>, true},
      {"unsafe_chunk", unsafe_kernel<chunk_kernel>, true},
      {"tensor_split.sections", tensor_split_kernel, true},
      {"tensor_split.indices", tensor_split_kernel, true},
      {"tensor_split.tensor_indices_or_sections", tensor_split_kernel, true},
      {"vsplit.int", named_split_kernel<0>, true},
      {"vsplit.array", named_split_kernel<0>, true},
      {"hsplit.int", named_split_kernel<1>, true},
      {"hsplit.array", named_split_kernel<1>, true},
      {"dsplit.int", named_split_kernel<2>, true},
      {"dsplit.array", named_split_kernel<2>, true},
      {"unbind.int", unbind_kernel, true},
      {"diagonal", diagonal_kernel, true},
      {"select_backward", part_backward_kernel<select_kernel>, true},
      {"slice_backward", part_backward_kernel<slice_kernel>, true},
      {"diagonal_backward", part_backward_kernel<diagonal_kernel>, true},
      {"select_scatter", part_scatter_kernel<select_kernel>, true},
      {"slice_scatter", part_scatter_kernel<slice_kernel>, true},
      {"diagonal_scatter", part_scatter_kernel<diagonal_kernel>, true},
      {"as_strided_scatter", part_scatter_kernel<as_strided_kernel>, true},
      {"as_strided", as_strided_kernel, true},
      {"unfold", unfold_kernel, true},
      {"alias", alias_kernel, true},
      {"detach", detach_kernel, true},
      {"view_as_real", view_as_real_kernel, true},
      {"view_as_complex", view_as_complex_kernel, true},
      {"real", real_kernel, true},
      {"imag", imag_kernel, true},
      {"transpose_", inplace_kernel<transpose_kernel>, true},
      {"t_", inplace_kernel<t_kernel>, true},
      {"squeeze_", inplace_kernel<squeeze_kernel>, true},
      {"squeeze_.dim", inplace_kernel<squeeze_dim_kernel>, true},
      {"squeeze_.dims", inplace_kernel<squeeze_dims_kernel>, true},
      {"unsqueeze_", inplace_kernel<unsqueeze_kernel>, true},
      {"as_strided_", inplace_kernel<as_strided_kernel>, true},
      {"resize_", resize_kernel, true},
      {"resize_as_", resize_as_kernel, true},
      {"set_", set_empty_kernel, true},
      {"set_.source_Tensor", set_kernel, true},
      {"set_.source_Storage", set_storage_kernel, true},
      {"set_.source_Storage_storage_offset", set_part_kernel, true},
  };
  register_natives(natives, sizeof natives / sizeof *natives);
}

}  // namespace rl
