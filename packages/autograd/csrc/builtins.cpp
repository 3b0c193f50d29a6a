// What gradient rules may call beside operators: questions about shapes, and helpers that families share.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>

#include "call.h"
#include "rule.h"
#include "views.h"

namespace rl {

namespace {

// A dimension argument as a bit mask; none and the empty list are all dimensions.
uint64_t dim_mask(const Arg& dims, int ndim) {
  uint64_t mask = 0;
  auto add = [&](int64_t d) { mask |= uint64_t{1} << (d < 0 ? d + std::max(ndim, 1) : d); };
  if (dims.kind == Kind::Ints)
    for (int i = 0; i < dims.count; ++i) add(dims.ints[i]);
  else if (!dims.none())
    add(dims.to_int());
  return mask ? mask : ~uint64_t{0};
}

Value shape(Machine& m, const Operand* args, int) {
  Geometry g = m.geometry(args[0]);  // its sizes live with the node or the tensor, longer than the machine
  return value_of(arg(g.sizes, g.ndim));
}

Value ndim(Machine& m, const Operand* args, int) { return value_of(arg(int64_t{m.geometry(args[0]).ndim})); }
Value numel(Machine& m, const Operand* args, int) { return value_of(arg(number_of_elements(m.geometry(args[0])))); }
Value dtype(Machine& m, const Operand* args, int) { return value_of(arg(m.geometry(args[0]).dtype)); }
Value is_complex_(Machine& m, const Operand* args, int) { return value_of(arg(is_complex(m.geometry(args[0]).dtype))); }

// The tensor or number itself where it is real.
Value conj(Machine& m, const Operand* args, int) {
  Arg a = m.get(args[0]);
  if (a.is_tensor() && is_complex(a.tensor->dtype)) return value_of(call(ops::conj, {a}));
  if (a.kind == Kind::Complex) a.imag = -a.imag;
  return shared_value(a);
}

// Whether an argument was given.
Value is_none(Machine& m, const Operand* args, int) { return value_of(arg(m.get(args[0]).none())); }

// Elements that a reduction over `dim` of a tensor of `shape` combines into one.
Value reduced_numel(Machine& m, const Operand* args, int) {
  Geometry g = m.geometry(args[0]);
  uint64_t mask = dim_mask(m.get(args[1]), g.ndim);
  int64_t n = 1;
  for (int d = 0; d < g.ndim; ++d)
    if (mask >> d & 1) n *= g.sizes[d];
  return value_of(arg(n));
}

// unsqueeze_reduced(x, like, dim, keepdim): brings the dimensions back, as size 1, that a reduction of `like` took.
Ref<> with_reduced_dims(Machine& m, const Operand* args) {
  Arg x = m.get(args[0]);
  Ref<> t = Ref<>::borrow(object(x.tensor));
  Geometry g = m.geometry(args[1]);
  if (m.get(args[3]).to_bool() || !g.ndim || tensor(t)->ndim == g.ndim) return t;
  uint64_t mask = dim_mask(m.get(args[2]), g.ndim);
  if (tensor(t)->ndim == 0 && mask == ~uint64_t{0}) return t;  // broadcasts as it is
  for (int64_t d = 0; d < g.ndim; ++d)
    if (mask >> d & 1) t = call(ops::unsqueeze, {arg(tensor(t)), arg(d)});
  return t;
}
Value unsqueeze_reduced(Machine& m, const Operand* args, int) { return value_of(with_reduced_dims(m, args)); }

// expand_reduced(grad, like, dim, keepdim): the gradient of a sum.
Value expand_reduced(Machine& m, const Operand* args, int) {
  Ref<> t = with_reduced_dims(m, args);
  Geometry g = m.geometry(args[1]);
  if (!g.ndim) return value_of(std::move(t));
  return value_of(call(ops::expand, {arg(tensor(t)), arg(g.sizes, g.ndim)}));
}

// sum_to(x, like): sums what broadcasting repeated, with the leading ones of `like` that it may have left out.
Value sum_to(Machine& m, const Operand* args, int) {
  Geometry g = m.geometry(args[1]);
  Ref<> x = Ref<>::borrow(object(m.get(args[0]).tensor));
  g.dtype = tensor(x)->dtype;
  while (tensor(x)->ndim < g.ndim) x = call(ops::unsqueeze, {arg(tensor(x)), arg(int64_t{0})});
  return value_of(fit_gradient(x.get(), g, m.node, 0));
}

// zeros_of(like): zeros of its shape and dtype.
Value zeros_of(Machine& m, const Operand* args, int) {
  Geometry g = m.geometry(args[0]);
  return value_of(zeros(g.ndim, g.sizes, g.dtype, g.device));
}

// inverse_permutation(dims)
Value inverse_permutation(Machine& m, const Operand* args, int) {
  Arg dims = m.get(args[0]);
  int64_t* v = m.ints(static_cast<size_t>(dims.count));
  for (int i = 0; i < dims.count; ++i) v[dims.ints[i] < 0 ? dims.ints[i] + dims.count : dims.ints[i]] = i;
  return value_of(arg(v, dims.count));
}

Value negative_ints(Machine& m, const Operand* args, int) {
  Arg a = m.get(args[0]);
  int n = a.kind == Kind::Ints ? a.count : 1;
  int64_t* v = m.ints(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) v[i] = -(a.kind == Kind::Ints ? a.ints[i] : a.i);
  return value_of(arg(v, n));
}

// move_to(x, like): x on the device of `like`.
Value move_to(Machine& m, const Operand* args, int) {
  Tensor* x = m.get(args[0]).tensor;
  Arg device;
  device.kind = Kind::Device;
  device.device = m.geometry(args[1]).device;
  return value_of(x->device == device.device ? Ref<>::borrow(object(x)) : call(ops::move, {arg(x), device}));
}

// The logarithm of a number: minus infinity at 0, NaN below.
Value log_number(Machine& m, const Operand* args, int) {
  Arg a = m.get(args[0]);
  if (a.kind != Kind::Complex) return value_of(arg(std::log(a.to_double())));
  std::complex<double> z = std::log(std::complex<double>(a.d, a.imag));
  a.d = z.real();
  a.imag = z.imag();
  return value_of(a);
}

// item(ints, i)
Value item(Machine& m, const Operand* args, int) {
  Arg a = m.get(args[0]);
  int64_t i = m.get(args[1]).to_int();
  if (a.kind == Kind::Object && PyTuple_Check(a.object))
    return value_of(Ref<>::check(PySequence_GetItem(a.object, static_cast<Py_ssize_t>(i))));
  if (a.kind != Kind::Ints || i >= a.count || i < -a.count)
    raise(PyExc_IndexError, "gradient rule of %s: index %lld is out of range.", m.node->rule->op->name,
          static_cast<long long>(i));
  return value_of(arg(a.ints[i < 0 ? i + a.count : i]));
}

// unjoin(grad, tensors, dim): what `cat` joined, apart again.
Value unjoin(Machine& m, const Operand* args, int) {
  Tensor* grad = m.get(args[0]).tensor;
  auto parts = m.geometries(args[1]);
  int64_t dim = m.get(args[2]).to_int(), at = 0;
  auto all = Ref<>::check(PyTuple_New(static_cast<Py_ssize_t>(parts.size())));
  if (dim < 0) dim += grad->ndim;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Geometry& g = parts[i];
    Ref<> part;
    if (g.ndim == 1 && g.sizes[0] == 0 && grad->ndim != 1) {  // cat lets empty vectors of old times pass
      part = zeros(g.ndim, g.sizes, g.dtype, g.device);
    } else {
      part = call(ops::narrow, {arg(grad), arg(dim), arg(at), arg(g.sizes[dim])});
      at += g.sizes[dim];
    }
    PyTuple_SET_ITEM(all.get(), static_cast<Py_ssize_t>(i), part.release());
  }
  return value_of(std::move(all));
}

// All gradients of an operator with several results, as one list argument; absent ones are zeros.
Arg all_grads(Machine& m) {
  uint32_t n = m.node->noutputs;
  auto** list = reinterpret_cast<Tensor**>(m.ints(n));
  for (uint32_t i = 0; i < n; ++i) list[i] = m.grad(i);
  Arg a;
  a.kind = Kind::Tensors;
  a.count = static_cast<int32_t>(n);
  a.tensors = list;
  return a;
}

// cat_grads(dim), stack_grads(dim): what `split` or `unbind` took apart, together again.
Value cat_grads(Machine& m, const Operand* args, int) {
  return value_of(call(ops::cat, {all_grads(m), m.get(args[0])}));
}
Value stack_grads(Machine& m, const Operand* args, int) {
  return value_of(call(ops::stack, {all_grads(m), m.get(args[0])}));
}

bool may_overlap(const Arg& sizes, const Arg& strides) {
  int order[kMaxRank], n = 0;
  for (int d = 0; d < sizes.count; ++d)
    if (sizes.ints[d] > 1) order[n++] = d;
  std::sort(order, order + n, [&](int a, int b) { return strides.ints[a] < strides.ints[b]; });
  int64_t reach = 0;
  for (int i = 0; i < n; ++i) {
    if (strides.ints[order[i]] <= reach) return true;
    reach += strides.ints[order[i]] * (sizes.ints[order[i]] - 1);
  }
  return false;
}

// as_strided_backward(grad, self, size, stride, offset): puts the gradient where the view's elements were.
Value as_strided_backward(Machine& m, const Operand* args, int) {
  Tensor* grad = m.get(args[0]).tensor;
  Geometry self = m.geometry(args[1]);
  Arg sizes = m.get(args[2]), strides = m.get(args[3]), given = m.get(args[4]);
  Geometry view = {self.dtype, self.device,  static_cast<uint8_t>(sizes.count),
                   sizes.ints, strides.ints, given.none() ? self.offset : given.to_int()};
  auto [self_low, self_extent] = span_of(self);
  auto [view_low, view_extent] = span_of(view);
  int64_t low = std::min(self_low, view_low), extent = std::max(self_low + self_extent, view_low + view_extent) - low;
  Ref<> memory = zeros_beside(grad, extent);
  if (!may_overlap(sizes, strides)) {
    Ref<> part = call(ops::as_strided, {arg(tensor(memory)), sizes, strides, arg(view.offset - low)});
    call_inplace(ops::copy_, {arg(tensor(part)), arg(grad)});
  } else {
    Ref<> places = call(ops::arange, {arg(extent)});
    places = call(ops::as_strided, {arg(tensor(places)), sizes, strides, arg(view.offset - low)});
    int64_t flat = -1;
    places = call(ops::reshape, {arg(tensor(places)), arg(&flat, 1)});
    Ref<> values = call(ops::reshape, {arg(grad), arg(&flat, 1)});
    memory = call(ops::index_add, {arg(tensor(memory)), arg(int64_t{0}), arg(tensor(places)), arg(tensor(values))});
  }
  return value_of(call(ops::as_strided, {arg(tensor(memory)), arg(self.sizes, self.ndim), arg(self.strides, self.ndim),
                                         arg(self.offset - low)}));
}

constexpr BuiltinEntry kBuiltins[] = {
    {"shape", shape, 1, 0},
    {"ndim", ndim, 1, 0},
    {"numel", numel, 1, 0},
    {"dtype", dtype, 1, 0},
    {"is_complex", is_complex_, 1, 0},
    {"reduced_numel", reduced_numel, 2, 0},
    {"zeros_of", zeros_of, 1, 0},
    {"conj", conj, 1, -1},
    {"is_none", is_none, 1, -1},
    {"item", item, 2, -1},
    {"inverse_permutation", inverse_permutation, 1, -1},
    {"negative", negative_ints, 1, -1},
    {"log_number", log_number, 1, -1},
    {"move_to", move_to, 2, 1},
    {"unsqueeze_reduced", unsqueeze_reduced, 4, 1},
    {"expand_reduced", expand_reduced, 4, 1},
    {"sum_to", sum_to, 2, 1},
    {"cat_grads", cat_grads, 1, -1},
    {"stack_grads", stack_grads, 1, -1},
    {"unjoin", unjoin, 3, 1},
    {"as_strided_backward", as_strided_backward, 5, 1},
};

}  // namespace

const BuiltinEntry* find_builtin(const char* name) {
  for (const BuiltinEntry& b : kBuiltins)
    if (!std::strcmp(b.name, name)) return &b;
  return nullptr;
}

}  // namespace rl
