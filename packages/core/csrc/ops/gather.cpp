// Ops that move elements to and from places named by indices and masks, and those that rearrange whole dimensions.
#include <algorithm>
#include <cstring>

#include "../allocator.h"
#include "indexing.h"

namespace rl {

namespace {

using ll = long long;

OpHandle op_clamp_min("clamp_min"), op_div("div.Tensor"), op_floor_divide("floor_divide"), op_mul("mul.Tensor"),
    op_repeat("repeat");

int dim_of(const char* op, int64_t dim, const Tensor* t) { return static_cast<int>(wrap_dim(op, dim, t->ndim)); }

// The tensor that a call writes: the first argument itself in place, else a copy of it.
Ref<Tensor> target(const Call& c) {
  return c.inplace ? Ref<Tensor>::borrow(c.args[0].tensor) : clone(c.args[0].tensor);
}

void check_index_dtype(const char* op, const Tensor* index) {
  if (index->dtype != DType::Int64 && index->dtype != DType::Int32)
    fail(PyExc_RuntimeError, "%s(): Expected dtype int32 or int64 for index, got %s", op, describe(index).c_str());
}

const int64_t* values_of(const Ref<Tensor>& index) { return reinterpret_cast<const int64_t*>(index->data); }

// A vector of indices into one dimension, dense int64. `message` gets index, dimension and size.
Ref<Tensor> vector_index(const char* op, Tensor* index, const Tensor* self, int dim, PyObject* error,
                         const char* message) {
  check_index_dtype(op, index);
  if (index->ndim > 1)
    fail(PyExc_IndexError, "%s(): Index is supposed to be a vector, got %s", op, describe(index).c_str());
  Ref<Tensor> v = to_dtype(index, DType::Int64);
  v = contiguous(v.get());
  int64_t n = v->numel, one = 1, size = self->ndim ? self->sizes[dim] : 1;
  if (!v->ndim) v = view(v.get(), 1, &n, &one, v->offset);
  if (!v->data) return v;
  if (const int64_t* bad = find_outside(values_of(v), n, 0, size))
    fail(error, message, op, static_cast<ll>(*bad), dim, static_cast<ll>(size));
  return v;
}

constexpr const char* kOutOfBounds = "%s(): index %lld is out of bounds for dimension %d with size %lld";

// ---- one dimension by a vector of indices

// A 0-d tensor seen as 1-d.
Ref<Tensor> at_least_1d(Tensor* t) {
  int64_t one = 1;
  return t->ndim ? Ref<Tensor>::borrow(t) : view(t, 1, &one, &one, t->offset);
}

PyObject* index_select_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  int dim = dim_of("index_select", c.args[1].i, t);
  Ref<Tensor> v = vector_index("index_select", c.args[2].tensor, t, dim, PyExc_IndexError,
                               "index out of range in self: %s() got index %lld for dimension %d with size %lld");
  Tensor* indices[kMaxRank] = {};
  indices[dim] = v.get();
  Ref<Tensor> r = index(at_least_1d(t).get(), indices, dim + 1);
  if (t->ndim) return r.release_object();
  if (r->numel != 1)
    fail(PyExc_IndexError, "index_select(): a 0-d tensor takes one index, got %lld", static_cast<ll>(r->numel));
  return view(r.get(), 0, nullptr, nullptr, 0).release_object();
}

// Checks index_add and index_copy, which take a source with as many slices as there are indices. A 0-d source is one
// slice; index_copy alone lets it stand for a vector of one element, and the other way round.
Ref<Tensor> slices_of(const char* op, bool add, Tensor* self, int dim, const Tensor* index, Tensor* source) {
  if (source->dtype != self->dtype)
    fail(PyExc_RuntimeError, "%s_(): self (%s) and source (%s) must have the same scalar type", op,
         legacy_name(self->dtype), legacy_name(source->dtype));
  const int64_t n = index->ndim ? index->sizes[0] : 1, have = source->ndim ? source->sizes[dim] : 1;
  if (!source->ndim && n != 1)
    fail(PyExc_IndexError, "%s_(): When source is scalar, index should have one element (got %lld)", op,
         static_cast<ll>(n));
  bool fits = source->ndim == self->ndim || (!add && std::max(source->ndim, self->ndim) == 1);
  for (int d = 0; fits && d < source->ndim && d < self->ndim; ++d)
    fits = d == dim || source->sizes[d] == self->sizes[d];
  if (!fits && !add && source->ndim != self->ndim && source->ndim && self->ndim)
    fail(PyExc_IndexError,
         "index_copy_(): When source and destination are not scalars, their dimensionality must match, got %s for %s",
         shape_text(source).c_str(), shape_text(self).c_str());
  if (!fits)
    fail(PyExc_RuntimeError,
         "%s_(): source tensor shape must match self tensor shape, excluding the specified dimension. "
         "Got self.shape = %s source.shape = %s, dim=%d",
         op, shape_text(self).c_str(), shape_text(source).c_str(), dim);
  if (n != have)
    fail(add ? PyExc_RuntimeError : PyExc_IndexError,
         "%s_(): Number of indices (%lld) should be equal to source.size(dim): (%lld), for dim: %d", op,
         static_cast<ll>(n), static_cast<ll>(have), dim);
  return at_least_1d(source);
}

template <bool add>
PyObject* index_write_kernel(Call& c) {
  constexpr const char* op = add ? "index_add" : "index_copy";
  Tensor *self = c.args[0].tensor, *source = c.args[3].tensor;
  int dim = dim_of(op, c.args[1].i, self);
  Ref<Tensor> v =
      vector_index(op, c.args[2].tensor, self, dim, add ? PyExc_RuntimeError : PyExc_IndexError, kOutOfBounds);
  Ref<Tensor> slices = slices_of(op, add, self, dim, v.get(), source);
  if (add && c.args[4].to_double() != 1) {
    Arg args[2] = {arg(slices.get()), c.args[4]};
    slices = call_tensor(op_mul.get(), args, 2);
    slices = to_dtype(slices.get(), self->dtype);
  }
  Ref<Tensor> r = target(c);
  Tensor* indices[kMaxRank] = {};
  indices[dim] = v.get();
  index_put(at_least_1d(r.get()).get(), indices, dim + 1, slices.get(), add);
  return r.release_object();
}

PyObject* index_fill_kernel(Call& c) {
  Tensor* self = c.args[0].tensor;
  int dim = dim_of("index_fill", c.args[1].i, self);
  check_index_dtype("index_fill", c.args[2].tensor);
  if (c.args[2].tensor->ndim > 1)
    fail(PyExc_IndexError, "index_fill(): Index is supposed to be a vector, got %s",
         describe(c.args[2].tensor).c_str());
  if (c.args[3].is_tensor() && c.args[3].tensor->ndim)
    fail(PyExc_RuntimeError,
         "index_fill_ only supports a 0-dimensional value tensor, but got tensor with %d dimension(s).",
         c.args[3].tensor->ndim);
  Ref<Tensor> value = c.args[3].is_tensor() ? to_dtype(c.args[3].tensor, self->dtype)
                                            : from_number(c.args[3], self->dtype, self->device);
  Ref<Tensor> r = target(c), v = at_least_1d(c.args[2].tensor);
  Tensor* indices[kMaxRank] = {};
  indices[dim] = v.get();
  index_put(at_least_1d(r.get()).get(), indices, dim + 1, value.get(), false);
  return r.release_object();
}

// ---- gather and scatter

struct LineStore {
  Lines lines{};
  int64_t sizes[kMaxRank], self[kMaxRank], index[kMaxRank], other[kMaxRank];
};

// The loop over `index`, whose dimension `dim` is the line. Dimensions that lie in one another become one.
void set_lines(LineStore& s, const Tensor* self, int dim, const Tensor* index, int64_t index_size,
               const int64_t* other_strides, int64_t other_size) {
  int64_t size = itemsize(self->dtype);
  int n = 0;
  for (int d = 0; d < index->ndim; ++d) {
    if (d == dim || index->sizes[d] == 1) continue;
    int64_t strides[3] = {self->strides[d] * size, index->strides[d] * index_size,
                          other_strides ? other_strides[d] * other_size : 0};
    int64_t extent = index->sizes[d];
    if (n && s.self[n - 1] == strides[0] * extent && s.index[n - 1] == strides[1] * extent &&
        s.other[n - 1] == strides[2] * extent) {
      s.sizes[n - 1] *= extent;
      s.self[n - 1] = strides[0];
      s.index[n - 1] = strides[1];
      s.other[n - 1] = strides[2];
      continue;
    }
    s.sizes[n] = extent;
    s.self[n] = strides[0];
    s.index[n] = strides[1];
    s.other[n++] = strides[2];
  }
  if (!n) {
    s.sizes[0] = 1;
    s.self[0] = s.index[0] = s.other[0] = 0;
    n = 1;
  }
  bool scalar = !index->ndim;
  s.lines.ndim = n;
  s.lines.sizes = s.sizes;
  s.lines.self = s.self;
  s.lines.index = s.index;
  s.lines.other = s.other;
  s.lines.length = scalar ? 1 : index->sizes[dim];
  s.lines.size = self->ndim ? self->sizes[dim] : 1;
  s.lines.self_step = self->ndim ? self->strides[dim] * size : 0;
  s.lines.index_step = scalar ? 0 : index->strides[dim] * index_size;
  s.lines.other_step = scalar || !other_strides ? 0 : other_strides[dim] * other_size;
}

constexpr int64_t kNarrowFrom = int64_t{1} << 14;

[[noreturn]] void outside_line(int64_t index, int dim, int64_t size) {
  fail(PyExc_RuntimeError, "index %lld is out of bounds for dimension %d with size %lld", static_cast<ll>(index), dim,
       static_cast<ll>(size));
}

// The index as dense int64, checked against `self` in dtype and rank.
Ref<Tensor> line_index(const char* op, const Tensor* self, int dim, Tensor* index) {
  if (index->numel && index->dtype != DType::Int64 && index->dtype != DType::Int32)
    fail(PyExc_RuntimeError, "%s(): Expected dtype int32/int64 for index, got %s", op, describe(index).c_str());
  if (index->numel && std::max<int>(index->ndim, 1) != std::max<int>(self->ndim, 1))
    fail(PyExc_RuntimeError, "Index tensor must have the same number of dimensions as %s tensor, got %s for %s",
         std::strcmp(op, "gather") ? "self" : "input", shape_text(index).c_str(), shape_text(self).c_str());
  Ref<Tensor> v = to_dtype(index, DType::Int64);
  return contiguous(v.get());
}

PyObject* gather_kernel(Call& c) {
  Tensor *self = c.args[0].tensor, *index = c.args[2].tensor;
  int dim = dim_of("gather", c.args[1].i, self);
  for (int d = 0; d < index->ndim && d < self->ndim && index->ndim == self->ndim; ++d)
    if (d != dim && index->sizes[d] > self->sizes[d])
      fail(PyExc_RuntimeError,
           "Size does not match at dimension %d expected index %s to be no larger than self %s apart from dimension %d",
           d, shape_text(index).c_str(), shape_text(self).c_str(), dim);
  Ref<Tensor> v = line_index("gather", self, dim, index);
  Ref<Tensor> r = empty(index->ndim, index->sizes, self->dtype, self->device);
  if (!r->numel || self->device.type == kMeta) return r.release_object();
  LineStore s;
  set_lines(s, self, dim, v.get(), sizeof(int64_t), r->strides, itemsize(r->dtype));
  const int64_t* bad;
  {
    Unlocked unlocked(r->numel > kUnlockAbove);
    bad = gather_lines(s.lines, static_cast<int>(itemsize(self->dtype)), self->data, v->data, r->data);
  }
  if (bad) outside_line(*bad, dim, s.lines.size);
  return r.release_object();
}

// What leaves every element that it is combined with as it is.
void store_identity(Scatter how, DType dtype, Value* to) {
  if (how == Scatter::Maximum || how == Scatter::Minimum) return store_limit(dtype, how == Scatter::Minimum, to);
  store_number(arg(int64_t{how == Scatter::Multiply}), dtype, to);
}

// scatter(self, dim, index, src or value); where `include_self` is false the elements that are written count as absent.
Ref<Tensor> scatter_into(Call& c, const char* op, Scatter how, bool include_self = true) {
  Tensor *self = c.args[0].tensor, *index = c.args[2].tensor;
  int dim = dim_of(op, c.args[1].i, self);
  const Tensor* src = c.args[3].is_tensor() ? c.args[3].tensor : nullptr;
  if (src && src->dtype != self->dtype)
    fail(PyExc_RuntimeError, "%s(): Expected self.dtype to be equal to src.dtype, got %s and %s", op, name(self->dtype),
         name(src->dtype));
  const auto rank = [](const Tensor* t) { return std::max<int>(t->ndim, 1); };  // 0-d is a vector of one element
  const auto extent = [](const Tensor* t, int d) { return d < t->ndim ? t->sizes[d] : 1; };
  if (index->numel && rank(index) == rank(self)) {
    if (src && rank(src) != rank(index))
      fail(PyExc_RuntimeError, "Index tensor must have the same number of dimensions as src tensor, got %s for %s",
           shape_text(index).c_str(), shape_text(src).c_str());
    bool fits = true;
    for (int d = 0; fits && d < index->ndim; ++d)
      fits = (d == dim || index->sizes[d] <= extent(self, d)) && (!src || index->sizes[d] <= extent(src, d));
    if (!fits)
      fail(PyExc_RuntimeError, "Expected index %s to be no larger than self %s apart from dimension %d%s%s",
           shape_text(index).c_str(), shape_text(self).c_str(), dim, src ? " and to be no larger size than src " : "",
           src ? shape_text(src).c_str() : "");
  }
  // Indices that the loop itself overwrites would not be the ones that were checked.
  Ref<Tensor> apart = c.inplace && index->storage == self->storage ? clone(index) : Ref<Tensor>::borrow(index);
  Ref<Tensor> v = line_index(op, self, dim, apart.get());
  Ref<Tensor> source = src ? Ref<Tensor>::borrow(c.args[3].tensor) : Ref<Tensor>();
  if (source && source->storage == self->storage && c.inplace) source = clone(source.get());
  Value value, identity;
  if (!src) store_number(c.args[3], self->dtype, &value);
  if (!include_self) store_identity(how, self->dtype, &identity);
  if (!index->numel || self->device.type == kMeta) return target(c);
  const int64_t size = self->ndim ? self->sizes[dim] : 1;
  // Many indices are read twice, the second time from a copy in few bytes, which stays in the cache.
  const bool narrows = v->numel >= kNarrowFrom && size <= UINT16_MAX + 1;
  Scratch narrow(narrows ? v->numel * sizeof(uint16_t) : 0);
  const int64_t* bad;
  {
    Unlocked unlocked(v->numel > kUnlockAbove);
    bad = narrows ? narrow_inside(values_of(v), v->numel, size, narrow.as<uint16_t>())
                  : find_outside(values_of(v), v->numel, 0, size);
  }
  if (bad) outside_line(*bad, dim, size);  // before anything is written
  Ref<Tensor> r = target(c);
  LineStore s;
  const auto write = [&](Scatter with, const int64_t* strides, const void* value_or_source) {
    const auto* from = static_cast<const char*>(value_or_source);
    set_lines(s, r.get(), dim, v.get(), narrows ? sizeof(uint16_t) : sizeof(int64_t), strides, itemsize(self->dtype));
    Unlocked unlocked(v->numel > kUnlockAbove);
    if (narrows) return scatter_lines<uint16_t>(s.lines, with, r->dtype, r->data, narrow.as<char>(), from);
    scatter_lines<int64_t>(s.lines, with, r->dtype, r->data, v->data, from);
  };
  if (!include_self) write(Scatter::Assign, nullptr, &identity);
  if (source) write(how, source->ndim ? source->strides : nullptr, source->data);
  if (!source) write(how, nullptr, &value);
  return r;
}

PyObject* scatter_kernel(Call& c) { return scatter_into(c, "scatter", Scatter::Assign).release_object(); }
PyObject* scatter_add_kernel(Call& c) { return scatter_into(c, "scatter_add", Scatter::Add).release_object(); }
PyObject* scatter_with_kernel(Call& c) {
  const char* how = PyUnicode_AsUTF8(c.args[4].object);
  if (!how) return nullptr;
  bool add = !std::strcmp(how, "add");
  if (!add && std::strcmp(how, "multiply"))
    fail(PyExc_RuntimeError, "reduce argument must be either add or multiply, got reduce='%s'.", how);
  return scatter_into(c, "scatter", add ? Scatter::Add : Scatter::Multiply).release_object();
}

// Divides the sums in `r` by how many elements went into each; integers round down.
void divide_by_counts(Call& c, Tensor* r, bool include_self) {
  Ref<Tensor> counts = full(r->ndim, r->sizes, DType::Int64, r->device, arg(int64_t{include_self}));
  Arg args[4] = {arg(counts.get()), c.args[1], c.args[2], arg(int64_t{1})};
  Call count = c;
  count.args = args;
  count.inplace = true;
  scatter_into(count, "scatter_reduce", Scatter::Add);
  Arg floor[2] = {arg(counts.get()), arg(int64_t{1})};
  counts = call_tensor(op_clamp_min.get(), floor, 2);  // where nothing went nothing is divided
  Arg divide[2] = {arg(r), arg(counts.get())};
  Ref<Tensor> means = call_tensor((is_inexact(r->dtype) ? op_div : op_floor_divide).get(), divide, 2);
  copy_into(r, means.get());
}

// Sums, products and means of the half types are float32, to be rounded once.
Ref<Tensor> reduced(Call& c, Scatter how, bool mean, bool include_self) {
  const DType dtype = c.args[0].tensor->dtype;
  if ((dtype == DType::Float16 || dtype == DType::BFloat16) && c.args[3].tensor->dtype == dtype &&
      (how == Scatter::Add || how == Scatter::Multiply)) {
    Ref<Tensor> self = to_dtype(c.args[0].tensor, DType::Float32), src = to_dtype(c.args[3].tensor, DType::Float32);
    Arg args[4] = {arg(self.get()), c.args[1], c.args[2], arg(src.get())};
    Call wide = c;
    wide.args = args;
    wide.inplace = false;
    return reduced(wide, how, mean, include_self);
  }
  Ref<Tensor> r = scatter_into(c, "scatter_reduce", how, include_self);
  if (mean && r->numel) divide_by_counts(c, r.get(), include_self);
  return r;
}

// scatter_reduce.two(self, dim, index, src, reduce, *, include_self)
PyObject* scatter_reduce_kernel(Call& c) {
  const char* reduce = PyUnicode_AsUTF8(c.args[4].object);
  if (!reduce) return nullptr;
  static constexpr std::pair<const char*, Scatter> kinds[] = {{"sum", Scatter::Add},
                                                              {"mean", Scatter::Add},
                                                              {"prod", Scatter::Multiply},
                                                              {"amax", Scatter::Maximum},
                                                              {"amin", Scatter::Minimum}};
  const auto* kind =
      std::find_if(std::begin(kinds), std::end(kinds), [&](const auto& k) { return !std::strcmp(reduce, k.first); });
  if (kind == std::end(kinds))
    fail(PyExc_RuntimeError, "reduce argument must be either sum, prod, mean, amax or amin, got %s", reduce);
  const bool mean = !std::strcmp(reduce, "mean"), include_self = c.args[5].to_bool();
  const DType dtype = c.args[0].tensor->dtype;
  if (is_complex(dtype) && kind->second != Scatter::Add && kind->second != Scatter::Multiply)
    fail(PyExc_NotImplementedError, "\"scatter_gather_tensor_cpu_reduce_%s\" not implemented for '%s'", reduce,
         legacy_name(dtype));
  if (mean && dtype == DType::Bool)
    fail(PyExc_NotImplementedError, "\"scatter_gather_tensor_cpu_reduce_mean\" not implemented for 'Bool'");
  Ref<Tensor> r = reduced(c, kind->second, mean, include_self);
  if (r->dtype == dtype) return r.release_object();
  if (!c.inplace) return to_dtype(r.get(), dtype).release_object();
  copy_into(c.args[0].tensor, r.get());
  return Py_NewRef(object(c.args[0].tensor));
}

// ---- by linear index

Ref<Tensor> flat(Tensor* t) {
  Ref<Tensor> r = contiguous(t);
  int64_t one = 1;
  return view(r.get(), 1, &r->numel, &one, r->offset);
}

void check_linear(const char* op, const Tensor* self, const Tensor* index) {
  if (index->dtype != DType::Int64)
    fail(PyExc_RuntimeError, "%s(): Expected a long tensor for index, but got %s", op, legacy_name(index->dtype));
  if (!index->numel || !index->data) return;
  Ref<Tensor> v = contiguous(const_cast<Tensor*>(index));
  const int64_t* bad;
  {
    Unlocked unlocked(v->numel > kUnlockAbove);
    bad = find_outside(values_of(v), v->numel, -self->numel, self->numel);
  }
  if (bad)
    fail(PyExc_IndexError, "out of range: tried to access index %lld on a tensor of %lld elements. (%s)",
         static_cast<ll>(*bad), static_cast<ll>(self->numel), op);
}

PyObject* take_kernel(Call& c) {
  Tensor *self = c.args[0].tensor, *at = c.args[1].tensor;
  check_linear("take", self, at);
  return index(flat(self).get(), &at, 1).release_object();
}

PyObject* put_kernel(Call& c) {
  Tensor *self = c.args[0].tensor, *at = c.args[1].tensor, *source = c.args[2].tensor;
  check_linear("put_", self, at);
  if (source->dtype != self->dtype)
    fail(PyExc_RuntimeError,
         "put_(): self and source expected to have the same dtype, but got self.dtype = %s and source.dtype = %s",
         name(self->dtype), name(source->dtype));
  if (source->numel != at->numel)
    fail(PyExc_IndexError,
         "put_(): Expected source and index to have the same number of elements, but got source.numel() = %lld, "
         "index.numel() = %lld",
         static_cast<ll>(source->numel), static_cast<ll>(at->numel));
  Ref<Tensor> r = target(c), linear = flat(r.get()), places = flat(at), values = flat(source);
  Tensor* indices[1] = {places.get()};
  index_put(linear.get(), indices, 1, values.get(), c.args[3].to_bool());
  if (linear->storage != r->storage) {  // flat() had to copy
    Ref<Tensor> shaped = reshape(linear.get(), r->ndim, r->sizes);
    copy_into(r.get(), shaped.get());
  }
  return r.release_object();
}

// ---- by mask

PyObject* masked_select_kernel(Call& c) {
  Tensor *self = c.args[0].tensor, *mask = c.args[1].tensor;
  if (mask->dtype != DType::Bool)
    fail(PyExc_RuntimeError, "masked_select: expected BoolTensor for mask, got %s", describe(mask).c_str());
  Dims shape(self->ndim, self->sizes);
  broadcast("masked_select", shape, mask->ndim, mask->sizes);
  Ref<Tensor> t = expand(detach(self).get(), shape.n, shape.v), m = expand(mask, shape.n, shape.v);
  t = contiguous(t.get());
  if (!shape.n) {
    t = at_least_1d(t.get());
    m = at_least_1d(m.get());
  }
  Tensor* indices[1] = {m.get()};
  return index(t.get(), indices, 1).release_object();
}

PyObject* masked_scatter_kernel(Call& c) {
  Tensor *self = c.args[0].tensor, *mask = c.args[1].tensor, *source = c.args[2].tensor;
  if (source->dtype != self->dtype)
    fail(PyExc_RuntimeError, "masked_scatter: expected self and source to have same dtypes but got %s and %s",
         legacy_name(self->dtype), legacy_name(source->dtype));
  if (mask->dtype != DType::Bool)
    fail(PyExc_RuntimeError, "masked_scatter_ only supports boolean masks, but got mask with dtype %s",
         name(mask->dtype));
  Dims shape(self->ndim, self->sizes);
  if (!c.inplace) broadcast("masked_scatter", shape, mask->ndim, mask->sizes);
  Ref<Tensor> m = expand(mask, shape.n, shape.v), values = contiguous(source);
  m = m->storage == self->storage ? clone(contiguous(m.get()).get()) : contiguous(m.get());
  Ref<Tensor> whole = expand(detach(self).get(), shape.n, shape.v);
  Ref<Tensor> r =
      c.inplace && self->contiguous() ? Ref<Tensor>::borrow(self) : empty(shape.n, shape.v, self->dtype, self->device);
  if (r.get() != self) copy_into(r.get(), whole.get());
  auto* bytes = reinterpret_cast<const uint8_t*>(m->data);
  if (self->device.type != kMeta && r->numel) {
    if (count_set(bytes, m->numel) > values->numel)
      fail(PyExc_RuntimeError, "Number of elements of source < number of ones in mask: got %lld and %lld",
           static_cast<ll>(values->numel), static_cast<ll>(count_set(bytes, m->numel)));
    Unlocked unlocked(r->numel > kUnlockAbove);
    expand_mask(bytes, m->numel, r->data, static_cast<int>(itemsize(self->dtype)), values->data);
  }
  if (!c.inplace || r.get() == self) return Py_NewRef(r.object());
  copy_into(self, r.get());
  return Py_NewRef(object(self));
}

PyObject* nonzero_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  if (!c.args[1].to_bool()) return coordinates(t, false).release_object();
  Ref<Tensor> source = at_least_1d(t), rows = coordinates(source.get(), true);
  Ref<> tuple = Ref<>::check(PyTuple_New(source->ndim));
  for (int d = 0; d < source->ndim; ++d)
    PyTuple_SET_ITEM(tuple.get(), d,
                     view(rows.get(), 1, &rows->sizes[1], &rows->strides[1], d * rows->strides[0]).release_object());
  return tuple.release();
}

// ---- whole dimensions

template <bool lower>
PyObject* triangle_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  constexpr const char* op = lower ? "tril" : "triu";
  if (t->ndim < 2)
    fail(PyExc_RuntimeError, "%s: input tensor must have at least 2 dimensions, got %s", op, shape_text(t).c_str());
  Ref<Tensor> source = contiguous(t), r = empty(t->ndim, t->sizes, t->dtype, t->device);
  if (r->numel && r->data) {
    int64_t rows = t->sizes[t->ndim - 2], columns = t->sizes[t->ndim - 1],
            k = std::clamp<int64_t>(c.args[1].i, -rows - 1, columns + 1);
    Unlocked unlocked(r->numel > kUnlockAbove);
    copy_triangle(source->data, r->data, r->numel / (rows * columns), rows, columns, k, lower,
                  static_cast<int>(itemsize(t->dtype)));
  }
  return Py_NewRef(r.object());
}

PyObject* diag_embed_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  if (!t->ndim) fail(PyExc_RuntimeError, "diag_embed: expected a tensor of at least one dimension, got a 0-d tensor");
  int ndim = t->ndim + 1;
  int a = static_cast<int>(wrap_dim("diag_embed", c.args[2].i, ndim)),
      b = static_cast<int>(wrap_dim("diag_embed", c.args[3].i, ndim));
  if (a == b)
    fail(PyExc_RuntimeError, "diagonal dimensions cannot be identical %lld, %lld", static_cast<ll>(c.args[2].i),
         static_cast<ll>(c.args[3].i));
  int64_t offset = c.args[1].i, length = t->sizes[t->ndim - 1], side;
  if (offset == INT64_MIN || __builtin_add_overflow(length, offset < 0 ? -offset : offset, &side))
    fail(PyExc_RuntimeError, "diag_embed: numel: integer multiplication overflow, got offset=%lld",
         static_cast<ll>(offset));
  Dims sizes(ndim);
  for (int d = 0, from = 0; d < ndim; ++d) sizes[d] = d == a || d == b ? side : t->sizes[from++];
  Ref<Tensor> r = full(ndim, sizes.v, t->dtype, t->device, arg(int64_t{0}));
  Geometry g(r.get());
  int64_t stride = r->strides[a] + r->strides[b];
  g.offset += offset >= 0 ? offset * r->strides[b] : -offset * r->strides[a];
  g.erase(std::max(a, b));
  g.erase(std::min(a, b));
  g.insert(g.ndim, length, stride);
  copy_into(g.make(r.get()).get(), t);
  return r.release_object();
}

PyObject* flip_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  Geometry g(t);
  uint64_t seen = 0;
  for (int i = 0; i < c.args[1].count; ++i) {
    int d = dim_of("flip", c.args[1].ints[i], t);
    if (seen >> d & 1) fail(PyExc_RuntimeError, "dim %d appears multiple times in the list of dims (flip)", d);
    seen |= uint64_t{1} << d;
    if (!t->ndim || t->sizes[d] == 0) continue;
    g.offset += (t->sizes[d] - 1) * t->strides[d];
    g.strides[d] = -t->strides[d];
  }
  Ref<Tensor> r = empty_preserving(t, t->dtype);
  copy_into(r.get(), g.make(t).get());
  return r.release_object();
}

PyObject* roll_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  const Arg &shifts = c.args[1], &dims = c.args[2];
  if (!shifts.count) fail(PyExc_RuntimeError, "`shifts` required");
  Ref<Tensor> source = Ref<Tensor>::borrow(t);
  if (!dims.count) {
    if (shifts.count != 1)
      fail(PyExc_RuntimeError, "shifts and dimensions must align. shifts: %d, dims:0", shifts.count);
    source = flat(t);
  } else if (dims.count != shifts.count) {
    fail(PyExc_RuntimeError, "shifts and dimensions must align. shifts: %d, dims:%d", shifts.count, dims.count);
  }
  if (dims.count && !t->ndim)
    fail(PyExc_IndexError, "Dimension specified as %lld but tensor has no dimensions", static_cast<ll>(dims.ints[0]));
  int64_t shift[kMaxRank] = {};
  for (int i = 0; i < shifts.count; ++i) {
    int d = dims.count ? dim_of("roll", dims.ints[i], t) : 0;
    int64_t size = source->ndim ? source->sizes[d] : 1;
    if (!size) continue;
    int64_t by = shifts.ints[i] % size;
    shift[d] = (shift[d] + by + size) % size;
  }
  Ref<Tensor> r = empty(source->ndim, source->sizes, t->dtype, t->device);
  int moved[kMaxRank], n = 0;
  for (int d = 0; d < source->ndim; ++d)
    if (shift[d]) moved[n++] = d;
  if (n > 16) fail(PyExc_RuntimeError, "roll: at most 16 dimensions at a time, got %d", n);
  // Each moved dimension has two parts; every combination of parts is one box.
  for (int box = 0; box < 1 << n && r->numel; ++box) {
    Geometry from(source.get()), to(r.get());
    for (int i = 0; i < n; ++i) {
      int d = moved[i];
      int64_t size = source->sizes[d], cut = size - shift[d];
      if (box >> i & 1) {
        from.slice(d, cut, size, 1);
        to.slice(d, 0, shift[d], 1);
      } else {
        from.slice(d, 0, cut, 1);
        to.slice(d, shift[d], size, 1);
      }
    }
    copy_into(to.make(r.get()).get(), from.make(source.get()).get());
  }
  if (dims.count) return r.release_object();
  set_geometry(r.get(), t->ndim, t->sizes, empty(t->ndim, t->sizes, t->dtype, {kMeta, -1})->strides, 0);
  return r.release_object();
}

PyObject* repeat_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  const Arg& repeats = c.args[1];
  if (repeats.count < t->ndim)
    fail(PyExc_RuntimeError,
         "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor, got repeats=%s "
         "for %s",
         shape_text(repeats.count, repeats.ints).c_str(), shape_text(t).c_str());
  int ndim = repeats.count, added = ndim - t->ndim;
  if (2 * ndim > kMaxRank) fail(PyExc_RuntimeError, "repeat: at most %d dimensions, got %d", kMaxRank / 2, ndim);
  Dims sizes(ndim);
  for (int d = 0; d < ndim; ++d) {
    int64_t size = d < added ? 1 : t->sizes[d - added];
    if (repeats.ints[d] < 0)
      fail(PyExc_RuntimeError, "repeat: Repeats must be non-negative, got repeats=%s",
           shape_text(ndim, repeats.ints).c_str());
    if (__builtin_mul_overflow(size, repeats.ints[d], &sizes[d]))
      fail(PyExc_RuntimeError, "repeat: the result is too big, got repeats=%s", shape_text(ndim, repeats.ints).c_str());
  }
  Ref<Tensor> r = empty(ndim, sizes.v, t->dtype, t->device);
  if (!r->numel) return r.release_object();
  // Every dimension of the result as (repeats, size), written from the input with stride 0 along the first.
  Dims to_sizes(2 * ndim), to_strides(2 * ndim), from_strides(2 * ndim);
  for (int d = 0; d < ndim; ++d) {
    int64_t size = d < added ? 1 : t->sizes[d - added];
    to_sizes[2 * d] = repeats.ints[d];
    to_sizes[2 * d + 1] = size;
    to_strides[2 * d] = size * r->strides[d];
    to_strides[2 * d + 1] = r->strides[d];
    from_strides[2 * d] = 0;
    from_strides[2 * d + 1] = d < added ? 0 : t->strides[d - added];
  }
  copy_into(view(r.get(), 2 * ndim, to_sizes.v, to_strides.v, 0).get(),
            view(t, 2 * ndim, to_sizes.v, from_strides.v, t->offset).get());
  return r.release_object();
}

PyObject* tile_kernel(Call& c) {
  const Tensor* t = c.args[0].tensor;
  Dims repeats(std::max<int>(c.args[1].count, t->ndim));
  std::fill_n(repeats.v, repeats.n, 1);
  std::copy_n(c.args[1].ints, c.args[1].count, repeats.v + repeats.n - c.args[1].count);
  Arg args[2] = {c.args[0], arg(repeats.v, repeats.n)};
  return call(op_repeat.get(), args, 2).release();
}

}  // namespace

void register_gather_ops() {
  static const Native natives[] = {
      {"index_select", index_select_kernel, kOnCpuAndMeta},
      {"index_add", index_write_kernel<true>, kOnCpuAndMeta, true},
      {"index_copy", index_write_kernel<false>, kOnCpuAndMeta, true},
      {"index_fill.int_Scalar", index_fill_kernel, kOnCpuAndMeta, true},
      {"index_fill.int_Tensor", index_fill_kernel, kOnCpuAndMeta, true},
      {"gather", gather_kernel, kOnCpuAndMeta},
      {"scatter.src", scatter_kernel, kOnCpuAndMeta, true},
      {"scatter.value", scatter_kernel, kOnCpuAndMeta, true},
      {"scatter.reduce", scatter_with_kernel, kOnCpuAndMeta, true},
      {"scatter.value_reduce", scatter_with_kernel, kOnCpuAndMeta, true},
      {"scatter_reduce.two", scatter_reduce_kernel, kOnCpuAndMeta, true},
      {"scatter_add", scatter_add_kernel, kOnCpuAndMeta, true},
      {"take", take_kernel, kOnCpuAndMeta},
      {"put", put_kernel, kOnCpuAndMeta, true},
      {"masked_select", masked_select_kernel, kOnCpu},
      {"masked_scatter", masked_scatter_kernel, kOnCpuAndMeta, true},
      {"nonzero", nonzero_kernel, kOnCpu},
      {"tril", triangle_kernel<true>, kOnCpuAndMeta},
      {"triu", triangle_kernel<false>, kOnCpuAndMeta},
      {"diag_embed", diag_embed_kernel, kOnEveryDevice},
      {"flip", flip_kernel, kOnCpuAndMeta},
      {"roll", roll_kernel, kOnEveryDevice},
      {"repeat", repeat_kernel, kOnEveryDevice},
      {"tile", tile_kernel, kOnEveryDevice},
  };
  register_natives(natives, sizeof natives / sizeof *natives);
}

}  // namespace rl
