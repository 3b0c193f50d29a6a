// x[key], x[key] = value, iteration: keys taken apart into views and index tensors.
#include "indexing.h"

#include <algorithm>
#include <cstring>

namespace rl {

using ll = long long;

// ---- places chosen by index tensors

bool is_mask(const Tensor* t) {
  require_strided(t, "an index");
  switch (t->dtype) {
    case DType::Bool: return true;
    case DType::UInt8:
      if (PyErr_WarnEx(PyExc_UserWarning,
                       "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
                       1) < 0)
        throw PythonError();
      return true;
    case DType::Int32:
    case DType::Int64: return false;
    default:
      fail(PyExc_IndexError, "tensors used as indices must be long, int, byte or bool tensors, got %s",
           describe(t).c_str());
  }
}

static Ref<Tensor> host_mask(Tensor* t) {
  Ref<Tensor> m = Ref<Tensor>::borrow(t);
  if (!t->is_cpu()) {
    if (t->device.type == kMeta)
      fail(PyExc_NotImplementedError,
           "index: the shape of the result depends on the mask's values, got a mask on meta. Use a device that has "
           "memory.");
    m = empty(t->ndim, t->sizes, t->dtype, {kCPU, -1});
    copy_into(m.get(), t);
  }
  m = to_dtype(m.get(), DType::Bool);
  return contiguous(m.get());
}

static const uint8_t* mask_bytes(const Tensor* t) { return reinterpret_cast<const uint8_t*>(t->data); }

Ref<Tensor> coordinates(Tensor* t, bool transposed) {
  Ref<Tensor> mask = host_mask(t);
  int64_t n = count_set(mask_bytes(mask.get()), mask->numel), ndim = t->ndim;
  int64_t sizes[2] = {transposed ? ndim : n, transposed ? n : ndim};
  Ref<Tensor> r = empty(2, sizes, DType::Int64, {kCPU, -1});
  if (n && ndim) {
    Unlocked unlocked(mask->numel > kUnlockAbove);
    mask_coordinates(mask_bytes(mask.get()), t->ndim, mask->sizes, reinterpret_cast<int64_t*>(r->data),
                     transposed ? 1 : ndim, transposed ? n : 1);
  }
  return r;
}

// int64, dense and on the host, with the broadcast shape.
static Ref<Tensor> host_index(Tensor* t, const Dims& shape) {
  Ref<Tensor> r = Ref<Tensor>::borrow(t);
  if (!r->is_cpu()) {
    r = empty(t->ndim, t->sizes, t->dtype, {kCPU, -1});
    copy_into(r.get(), t);
  }
  r = to_dtype(r.get(), DType::Int64);
  if (r->ndim != shape.n || !std::equal(shape.v, shape.v + shape.n, r->sizes)) {
    Geometry g(r.get());
    while (g.ndim < shape.n) g.insert(0, 1, 0);
    for (int d = 0; d < shape.n; ++d) {
      if (g.sizes[d] != shape[d]) g.strides[d] = 0;
      g.sizes[d] = shape[d];
    }
    r = g.make(r.get());
  }
  return contiguous(r.get());
}

Selection::Selection(const Tensor* self, Tensor* const* indices, int n) {
  Tensor* chosen[kMaxRank] = {};
  std::vector<Ref<Tensor>> held;
  int dim = 0, first = -1, last = -1;
  for (int i = 0; i < n; ++i) {
    Tensor* t = indices[i];
    bool mask = t && is_mask(t);
    int covers = mask ? t->ndim : 1;
    if (dim + covers > self->ndim) fail(PyExc_IndexError, "too many indices for tensor of dimension %d", self->ndim);
    if (!t) {
      ++dim;
      continue;
    }
    if (first < 0) first = dim;
    if (!mask) {
      chosen[dim++] = t;
    } else {
      for (int d = 0; d < covers; ++d)
        if (t->sizes[d] != self->sizes[dim + d])
          fail(PyExc_IndexError,
               "The shape of the mask %s at index %d does not match the shape of the indexed tensor %s at index %d",
               shape_text(t).c_str(), d, shape_text(self).c_str(), dim + d);
      Ref<Tensor> rows = coordinates(t, true);
      for (int d = 0; d < covers; ++d) {
        held.push_back(view(rows.get(), 1, &rows->sizes[1], &rows->strides[1], d * rows->strides[0]));
        chosen[dim++] = held.back().get();
      }
      if (!covers) held.push_back(rows);  // a 0-d mask is a new dimension, which the caller has put there
    }
    last = dim - 1;
  }
  // The shape of the index part, and whether it stays in its place.
  Dims shape;
  bool adjacent = true;
  for (int d = first; d >= 0 && d <= last; ++d) {
    if (!chosen[d]) {
      adjacent = false;
      continue;
    }
    const Tensor* t = chosen[d];
    if (!shape.n && d == first) {
      shape.resize(t->ndim);
      std::copy_n(t->sizes, t->ndim, shape.v);
      continue;
    }
    bool fits = true;
    try {
      broadcast("index", shape, t->ndim, t->sizes);
    } catch (const Error&) {
      fits = false;
    }
    if (!fits) {
      std::string shapes;
      for (int k = first; k <= last; ++k)
        if (chosen[k]) shapes += (shapes.empty() ? "" : ", ") + shape_text(chosen[k]);
      fail(PyExc_IndexError, "shape mismatch: indexing tensors could not be broadcast together with shapes %s",
           shapes.c_str());
    }
  }
  int64_t size = itemsize(self->dtype);
  for (int d = 0; d < self->ndim; ++d) {
    if (chosen[d]) continue;
    bool outer = adjacent && d < first;
    (outer ? outer_sizes_ : inner_sizes_).push(self->sizes[d]);
    (outer ? outer_strides_ : inner_strides_).push(self->strides[d] * size);
  }
  for (int d = 0; d < outer_sizes_.n; ++d) sizes.push(outer_sizes_[d]);
  for (int d = 0; d < shape.n; ++d) {
    sizes.push(shape[d]);
    count_ *= shape[d];
  }
  for (int d = 0; d < inner_sizes_.n; ++d) sizes.push(inner_sizes_[d]);
  if (self->device.type == kMeta) return;

  for (int d = std::max(first, 0); d <= last; ++d) {
    if (!chosen[d]) continue;
    held_.push_back(host_index(chosen[d], shape));
    lists_.push_back({reinterpret_cast<const int64_t*>(held_.back()->data), self->sizes[d], self->strides[d] * size});
    dims_.push_back(d);
  }
}

void Selection::out_of_bounds(const int64_t* index) const {
  for (size_t k = 0; k < lists_.size(); ++k)
    if (index >= lists_[k].values && index < lists_[k].values + count_)
      fail(PyExc_IndexError, "index %lld is out of bounds for dimension %d with size %lld", static_cast<ll>(*index),
           dims_[k], static_cast<ll>(lists_[k].size));
  fail(PyExc_SystemError, "index: the index out of bounds is not one of the selection");
}

void Selection::check_bounds() const {
  for (const IndexList& list : lists_)
    if (const int64_t* bad = find_outside(list.values, count_, -list.size, list.size)) out_of_bounds(bad);
}

Blocks Selection::blocks(int itemsize) const {
  Blocks b;
  b.nouter = outer_sizes_.n;
  b.outer_sizes = outer_sizes_.v;
  b.outer_strides = outer_strides_.v;
  b.ninner = inner_sizes_.n;
  b.inner_sizes = inner_sizes_.v;
  b.inner_strides = inner_strides_.v;
  b.count = count_;
  b.nlists = static_cast<int>(lists_.size());
  b.lists = lists_.data();
  b.itemsize = itemsize;
  return b;
}

// One mask over the leading dimensions of a dense tensor: compressed without a list of places. Bytes of one block, or
// 0.
static int64_t mask_block(const Tensor* self, Tensor* const* indices, int n) {
  if (n != 1 || !indices[0] || indices[0]->dtype != DType::Bool || !self->contiguous() || !self->is_cpu() ||
      !indices[0]->is_cpu())
    return 0;
  const Tensor* m = indices[0];
  if (!m->ndim || m->ndim > self->ndim || !std::equal(m->sizes, m->sizes + m->ndim, self->sizes) || !m->numel) return 0;
  return self->numel / m->numel * itemsize(self->dtype);
}

Ref<Tensor> index(Tensor* self, Tensor* const* indices, int n) {
  if (int64_t block = mask_block(self, indices, n)) {
    Ref<Tensor> mask = contiguous(indices[0]);
    Dims sizes(1);
    sizes[0] = count_set(mask_bytes(mask.get()), mask->numel);
    for (int d = mask->ndim; d < self->ndim; ++d) sizes.push(self->sizes[d]);
    Ref<Tensor> r = empty(sizes.n, sizes.v, self->dtype, self->device);
    Unlocked unlocked(self->numel > kUnlockAbove);
    compress(mask_bytes(mask.get()), mask->numel, self->data, block, r->data);
    return r;
  }
  Selection s(self, indices, n);
  Ref<Tensor> r = empty(s.sizes.n, s.sizes.v, self->dtype, self->device);
  if (r->numel && self->device.type != kMeta) {
    const int64_t* bad;
    {
      Unlocked unlocked(r->numel > kUnlockAbove);
      bad = gather_blocks(s.blocks(static_cast<int>(itemsize(self->dtype))), self->data, r->data);
    }
    if (bad) s.out_of_bounds(bad);
  } else if (self->device.type != kMeta) {
    s.check_bounds();
  }
  return r;
}

void index_put(Tensor* self, Tensor* const* indices, int n, Tensor* values, bool accumulate) {
  if (values->dtype != self->dtype)
    fail(
        PyExc_RuntimeError,
        "Index put requires the source and destination dtypes match, got %s for the destination and %s for the source.",
        legacy_name(self->dtype), legacy_name(values->dtype));
  Ref<Tensor> source = Ref<Tensor>::borrow(values);
  if (values->device != self->device) {
    if (values->ndim)
      fail(PyExc_RuntimeError, "expected the value tensor on the device of the indexed one, got %s and %s",
           device_text(values->device).c_str(), device_text(self->device).c_str());
    source = empty(0, nullptr, self->dtype, self->device);
    copy_into(source.get(), values);
  }
  int64_t block = mask_block(self, indices, n);
  if (block && values->numel == 1 && values->ndim <= 1 && !accumulate) {
    Ref<Tensor> mask = contiguous(indices[0]);
    Unlocked unlocked(self->numel > kUnlockAbove);
    fill_mask(mask_bytes(mask.get()), mask->numel, self->data, block, source->data,
              static_cast<int>(itemsize(self->dtype)));
    return;
  }
  Selection s(self, indices, n);
  Dims shape(s.sizes.n, s.sizes.v);
  bool fits = values->ndim <= shape.n;
  if (!fits) {  // leading ones may go
    int extra = values->ndim - shape.n;
    fits = std::all_of(values->sizes, values->sizes + extra, [](int64_t v) { return v == 1; });
    if (fits) source = view(source.get(), shape.n, values->sizes + extra, values->strides + extra, values->offset);
  }
  for (int d = 0; fits && d < source->ndim; ++d)
    fits = source->sizes[d] == 1 || source->sizes[d] == shape[shape.n - source->ndim + d];
  if (!fits)
    fail(PyExc_RuntimeError,
         "shape mismatch: value tensor of shape %s cannot be broadcast to indexing result of shape %s",
         shape_text(values).c_str(), shape_text(shape.n, shape.v).c_str());
  if (self->device.type == kMeta) return;
  s.check_bounds();
  if (!checked_numel(shape.n, shape.v)) return;
  bool one = source->numel == 1;
  if (!one) {
    source = expand(detach(source.get()).get(), shape.n, shape.v);
    source = source->storage == self->storage ? clone(contiguous(source.get()).get()) : contiguous(source.get());
  }
  Blocks b = s.blocks(static_cast<int>(itemsize(self->dtype)));
  Unlocked unlocked(source->numel > kUnlockAbove || self->numel > kUnlockAbove);
  if (accumulate)
    scatter_add_blocks(self->dtype, b, self->data, source->data, one);
  else
    scatter_blocks(b, self->data, source->data, one);
}

// ---- keys

namespace {

OpHandle op_select("select.int"), op_slice("slice.Tensor"), op_unsqueeze("unsqueeze"), op_unbind("unbind.int"),
    op_index("index.Tensor"), op_index_put("index_put"), op_copy("copy_"), op_fill("fill_"), op_view("view"),
    op_alias("alias"), op_cast("_cast");

// What a key asks for: a view, and index tensors for some of its dimensions.
struct Parsed {
  Tensor* self;
  bool record;           // every step is an operator call that layers see
  Ref<Tensor> current;   // where steps are recorded
  Geometry g;            // where they are not
  bool changed = false;  // whether any step was taken
  std::vector<Ref<Tensor>> held;
  std::vector<Tensor*> indices;
  int list = 0;  // entries of `indices` that dimensions so far take: a mask of several dimensions takes one

  explicit Parsed(Tensor* self) : self(self), record(layered(self)), g(self) {
    if (record) current = Ref<Tensor>::borrow(self);
  }
  int ndim() const { return record ? current->ndim : g.ndim; }
  int64_t size(int dim) const { return record ? current->sizes[dim] : g.sizes[dim]; }

  void select(int dim, int64_t i, int shown) {
    int64_t n = size(dim);
    if (i < -n || i >= n)
      fail(PyExc_IndexError, "index %lld is out of bounds for dimension %d with size %lld", static_cast<ll>(i), shown,
           static_cast<ll>(n));
    changed = true;
    if (!record) return g.select(dim, i);
    Arg args[3] = {arg(current.get()), arg(int64_t{dim}), arg(i)};
    current = call_tensor(op_select.get(), args, 3);
  }
  void slice(int dim, PyObject* key) {
    auto* s = reinterpret_cast<PySliceObject*>(key);
    if (s->start == Py_None && s->stop == Py_None && s->step == Py_None) return;
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(key, &start, &stop, &step) < 0) throw PythonError();
    changed = true;
    int64_t from = start, to = stop;
    adjust_slice(size(dim), step, &from, &to);
    if (!record) return g.slice(dim, from, to, step);
    if (to < 0) to = -size(dim) - 1;  // "before the first" survives the op's own wrapping
    Arg args[5] = {arg(current.get()), arg(int64_t{dim}), arg(from), arg(to), arg(int64_t{step})};
    current = call_tensor(op_slice.get(), args, 5);
  }
  void unsqueeze(int dim) {
    changed = true;
    if (!record) return g.insert(dim, 1, dim < g.ndim ? g.sizes[dim] * g.strides[dim] : 1);
    Arg args[2] = {arg(current.get()), arg(int64_t{dim})};
    current = call_tensor(op_unsqueeze.get(), args, 2);
  }
  void index(int entry, Ref<Tensor> t) {
    indices.resize(entry + 1, nullptr);
    indices[entry] = t.get();
    held.push_back(std::move(t));
  }
  Ref<Tensor> result() {
    if (record) return current;
    return g.make(self);
  }
};

Ref<Tensor> boolean_index(bool b) {
  int64_t n = b;
  Ref<Tensor> t = empty(1, &n, DType::Int64, {kCPU, -1});
  if (b) *reinterpret_cast<int64_t*>(t->data) = 0;
  return t;
}

bool is_sequence(PyObject* o) {
  return PyList_Check(o) || PyTuple_Check(o) || (PySequence_Check(o) && !PyUnicode_Check(o) && !PyBytes_Check(o));
}

// A list that holds slices, tensors, None or sequences stands for a tuple, as PyTorch has it.
bool list_is_tuple(PyObject* o) {
  if (!PyList_Check(o) || PyList_GET_SIZE(o) >= 32) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); ++i) {
    PyObject* v = PyList_GET_ITEM(o, i);
    if (is_tensor(v) || v == Py_None || v == Py_Ellipsis || PySlice_Check(v) ||
        (!PyLong_Check(v) && !PyFloat_Check(v) && is_sequence(v))) {
      if (PyErr_WarnEx(PyExc_UserWarning,
                       "Using a non-tuple sequence for multidimensional indexing is deprecated; use x[tuple(seq)] "
                       "instead of x[seq].",
                       1) < 0)
        throw PythonError();
      return true;
    }
  }
  return false;
}

[[noreturn]] void bad_key(PyObject* key) {
  fail(PyExc_IndexError,
       "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got %s)",
       Py_TYPE(key)->tp_name);
}

// An index from Python data: a list, an array, a range.
Ref<Tensor> index_from_data(PyObject* key) {
  Ref<Tensor> t = tensor_from_data(key);
  if (!t->numel && is_floating(t->dtype)) return to_dtype(t.get(), DType::Int64);  // [] is an empty list of indices
  is_mask(t.get());
  return t;
}

int64_t index_value(PyObject* key) {
  int overflow;
  int64_t i = PyLong_AsLongLongAndOverflow(key, &overflow);
  if (overflow) fail(PyExc_ValueError, "Overflow when unpacking long long: an index beyond 64 bits.");
  if (i == -1 && PyErr_Occurred()) throw PythonError();
  return i;
}

bool is_integer_scalar(const Tensor* t) {
  return !t->ndim && is_integral(t->dtype) && t->dtype != DType::UInt8 && t->device.type != kMeta;
}

// Dimensions of the tensor that a key takes up.
int dims_taken(PyObject* key) {
  if (key == Py_None || key == Py_Ellipsis || PyBool_Check(key)) return 0;
  if (is_tensor(key)) {
    Tensor* t = as_tensor(key);
    return t->dtype == DType::Bool || t->dtype == DType::UInt8 ? t->ndim : 1;
  }
  return 1;
}

void take_apart(Parsed& p, PyObject* const* keys, Py_ssize_t n) {
  // Data become tensors first, so that masks among them count with all their dimensions.
  std::vector<Ref<>> converted;
  std::vector<PyObject*> list;
  int taken = 0;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* k = keys[i];
    if (!(PyLong_Check(k) || PySlice_Check(k) || k == Py_None || k == Py_Ellipsis || is_tensor(k)) && is_sequence(k)) {
      if (list.empty()) list.assign(keys, keys + n);
      converted.emplace_back(index_from_data(k).release_object());
      k = list[i] = converted.back().get();
    }
    taken += dims_taken(k);
  }
  if (!list.empty()) keys = list.data();
  int free = p.self->ndim - taken;
  if (free < 0) fail(PyExc_IndexError, "too many indices for tensor of dimension %d", p.self->ndim);

  int dim = 0, shown = 0, entry = 0;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* k = keys[i];
    if (k == Py_None) {
      p.unsqueeze(dim++);
      ++entry;
    } else if (k == Py_Ellipsis) {
      dim += free;
      shown += free;
      entry += free;
      free = 0;
    } else if (PySlice_Check(k)) {
      p.slice(dim++, k);
      ++shown;
      ++entry;
    } else if (PyBool_Check(k)) {
      p.unsqueeze(dim++);
      p.index(entry++, boolean_index(k == Py_True));
    } else if (is_tensor(k)) {
      Tensor* t = as_tensor(k);
      if (is_integer_scalar(t)) {
        p.select(dim, item(t).to_int(), shown++);
        continue;
      }
      if (is_mask(t) && !t->ndim) {
        p.unsqueeze(dim++);
        p.index(entry++, boolean_index(item(t).to_bool()));
        continue;
      }
      p.index(entry++, Ref<Tensor>::borrow(t));
      int covers = dims_taken(k);
      dim += covers;
      shown += covers;
    } else if (PyIndex_Check(k)) {
      Ref<> number(PyNumber_Index(k));
      if (!number) {
        PyErr_Clear();
        bad_key(k);
      }
      p.select(dim, index_value(number.get()), shown++);
    } else {
      bad_key(k);
    }
  }
}

void take_apart(Parsed& p, PyObject* key) {
  if (PyTuple_Check(key)) return take_apart(p, reinterpret_cast<PyTupleObject*>(key)->ob_item, PyTuple_GET_SIZE(key));
  if (!p.self->ndim && PyLong_Check(key) && !PyBool_Check(key))
    fail(PyExc_IndexError,
         "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
         "0-dim tensor to a number");
  if (list_is_tuple(key)) return take_apart(p, PySequence_Fast_ITEMS(key), PyList_GET_SIZE(key));
  if (PyUnicode_Check(key) || PyBytes_Check(key)) bad_key(key);
  take_apart(p, &key, 1);
}

Ref<> index_tuple(const std::vector<Tensor*>& indices) {
  Ref<> tuple = Ref<>::check(PyTuple_New(static_cast<Py_ssize_t>(indices.size())));
  for (size_t i = 0; i < indices.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), i, Py_NewRef(indices[i] ? object(indices[i]) : Py_None));
  return tuple;
}

Arg object_arg(PyObject* o) {
  Arg a;
  a.kind = Kind::Object;
  a.object = o;
  return a;
}

// Writing one element where a mask says so takes any dtype, as masked_fill_ does.
bool one_mask(const std::vector<Tensor*>& indices) {
  int masks = 0, others = 0;
  for (const Tensor* t : indices) {
    if (t) ++(t->dtype == DType::Bool || t->dtype == DType::UInt8 ? masks : others);
  }
  return masks == 1 && others == 0;
}

// Whether index tensors can be resolved here and now: memory that this code reads, no layer that wants to see it.
bool direct(const Parsed& p) { return !p.record && (p.self->is_cpu() || p.self->device.type == kMeta); }

}  // namespace

PyObject* get_item(Tensor* self, PyObject* key) {
  if (PyObject* r = call_override(object(self), "__getitem__", &key, 1)) return r;
  if (PyLong_CheckExact(key) && self->ndim) {
    int64_t i = index_value(key), n = self->sizes[0];
    if (i < -n || i >= n)
      fail(PyExc_IndexError, "index %lld is out of bounds for dimension 0 with size %lld", static_cast<ll>(i),
           static_cast<ll>(n));
    if (layered(self)) {
      Arg args[3] = {arg(self), arg(int64_t{0}), arg(i)};
      return call(op_select.get(), args, 3).release();
    }
    return view(self, self->ndim - 1, self->sizes + 1, self->strides + 1,
                self->offset + (i < 0 ? i + n : i) * self->strides[0])
        .release_object();
  }
  Parsed p(self);
  take_apart(p, key);
  if (p.indices.empty()) {
    if (p.record && !p.changed) {
      Arg args[1] = {arg(self)};
      return call(op_alias.get(), args, 1).release();
    }
    return p.result().release_object();
  }
  Ref<Tensor> basic = p.changed ? p.result() : Ref<Tensor>::borrow(self);
  if (direct(p)) return index(basic.get(), p.indices.data(), static_cast<int>(p.indices.size())).release_object();
  Ref<> tuple = index_tuple(p.indices);
  Arg args[2] = {arg(basic.get()), object_arg(tuple.get())};
  return call(op_index.get(), args, 2).release();
}

void set_item(Tensor* self, PyObject* key, PyObject* value) {
  PyObject* both[2] = {key, value};
  if (PyObject* r = call_override(object(self), "__setitem__", both, 2)) {
    Py_DECREF(r);
    return;
  }
  Arg number;
  Tensor* source = is_tensor(value) ? as_tensor(value) : nullptr;
  if (!source && !number_from_object(value, &number))
    fail(PyExc_TypeError, "can't assign a %s to a torch.%sTensor", Py_TYPE(value)->tp_name, legacy_name(self->dtype));
  Parsed p(self);
  p.record |= source && layered(source);
  if (p.record && !p.current) p.current = Ref<Tensor>::borrow(self);
  take_apart(p, key);
  Ref<Tensor> target = p.changed ? p.result() : Ref<Tensor>::borrow(self);
  if (key == Py_True) p.indices.clear();  // alone it means the whole
  if (p.indices.empty()) {
    if (p.record) {
      Arg args[2] = {arg(target.get()), source ? arg(source) : number};
      if (!source) {
        call(op_fill.get(), args, 2);
        return;
      }
      Ref<Tensor> trimmed;
      int extra = source->ndim - target->ndim;
      if (extra > 0 && std::all_of(source->sizes, source->sizes + extra, [](int64_t v) { return v == 1; })) {
        Arg view_args[2] = {arg(source), arg(source->sizes + extra, target->ndim)};
        trimmed = call_tensor(op_view.get(), view_args, 2);
        args[1] = arg(trimmed.get());
      }
      call(op_copy.get(), args, 2);
      return;
    }
    check_writable(op_copy.get(), target.get());
    source ? copy_into(target.get(), source) : fill(target.get(), number);
    ++self->storage->version;
    return;
  }
  Ref<Tensor> values = source ? Ref<Tensor>::borrow(source) : from_number(number, self->dtype, self->device);
  if (source && source->dtype != self->dtype && source->numel == 1 && one_mask(p.indices)) {
    Arg args[2] = {arg(source), arg(self->dtype)};
    values = call_tensor(op_cast.get(), args, 2);
  }
  if (direct(p)) {
    check_writable(op_index_put.get(), target.get());
    index_put(target.get(), p.indices.data(), static_cast<int>(p.indices.size()), values.get(), false);
    ++self->storage->version;
    return;
  }
  Ref<> tuple = index_tuple(p.indices);
  Arg args[3] = {arg(target.get()), object_arg(tuple.get()), arg(values.get())};
  call(op_index_put.get(), args, 3, true);
}

PyObject* unbind(Tensor* self, int64_t dim) {
  Arg args[2] = {arg(self), arg(dim)};
  return call(op_unbind.get(), args, 2).release();
}

// ---- ops

namespace {

// A Python list or tuple of tensors and Nones, as the schema type Tensor?[] has it.
std::vector<Tensor*> index_list(const Op* op, const Arg& a) {
  if (a.kind != Kind::Object || !(PyTuple_Check(a.object) || PyList_Check(a.object)))
    fail(PyExc_TypeError, "%s(): argument 'indices' must be tuple of Tensors, not %s", op->name,
         a.kind == Kind::Object ? Py_TYPE(a.object)->tp_name : "None");
  std::vector<Tensor*> list(PySequence_Fast_GET_SIZE(a.object));
  for (size_t i = 0; i < list.size(); ++i) {
    PyObject* o = PySequence_Fast_ITEMS(a.object)[i];
    if (o != Py_None && !is_tensor(o))
      fail(PyExc_TypeError, "%s(): expected Tensor or None at index %zu of 'indices', got %s", op->name, i,
           Py_TYPE(o)->tp_name);
    list[i] = o == Py_None ? nullptr : as_tensor(o);
  }
  return list;
}

PyObject* index_kernel(Call& c) {
  std::vector<Tensor*> list = index_list(c.op, c.args[1]);
  return index(c.args[0].tensor, list.data(), static_cast<int>(list.size())).release_object();
}

PyObject* index_put_kernel(Call& c) {
  std::vector<Tensor*> list = index_list(c.op, c.args[1]);
  Ref<Tensor> r = c.inplace ? Ref<Tensor>::borrow(c.args[0].tensor) : clone(c.args[0].tensor);
  index_put(r.get(), list.data(), static_cast<int>(list.size()), c.args[2].tensor, c.args[3].to_bool());
  return r.release_object();
}

}  // namespace

void register_indexing_ops() {
  static const Native natives[] = {
      {"index.Tensor", index_kernel, kOnCpuAndMeta},
      {"index_put", index_put_kernel, kOnCpuAndMeta, true},
  };
  register_natives(natives, sizeof natives / sizeof *natives);
}

}  // namespace rl
