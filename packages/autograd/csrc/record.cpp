#include "record.h"

#include <algorithm>
#include <string>
#include <vector>

#include "anomaly.h"
#include "call.h"
#include "forward.h"
#include "saved.h"

namespace rl {

namespace {

// The edges of a call, taken over by the node that is made for it.
struct Edges {
  union {
    Edge inline_[8];  // of these only the first n are initialised
  };
  std::vector<Edge> heap;
  Edge* v = inline_;
  uint32_t n = 0;
  Edges() {}
  void push(Edge e) {
    if (n == std::size(inline_) && heap.empty()) heap.assign(inline_, inline_ + n);
    if (n >= std::size(inline_)) {
      heap.push_back(e);
      v = heap.data();
    } else {
      inline_[n] = e;
    }
    ++n;
  }
  ~Edges() {
    for (uint32_t i = 0; i < n; ++i) Py_XDECREF(v[i].node);
  }
};

bool any_requires_grad(const Arg& a) {
  if (a.is_tensor()) return requires_grad(a.tensor);
  if (a.kind == Kind::Tensors)
    for (int i = 0; i < a.count; ++i)
      if (requires_grad(a.tensors[i])) return true;
  return false;
}

bool any_requires_grad(const Call& c) {
  return std::any_of(c.args, c.args + c.op->nparams, [](const Arg& a) { return any_requires_grad(a); });
}

// Of the arguments that may get a gradient, and of what is written to.
bool to_be_recorded(const Call& c, const Rule* rule, bool writes) {
  if (writes && any_requires_grad(c.args[0])) return true;
  for (const Rule::Input& in : *rule->inputs)
    if (any_requires_grad(c.args[in.param])) return true;
  return false;
}

void collect_edges(const Rule* rule, const Arg* args, Edges& edges) {
  for (const Rule::Input& in : *rule->inputs) {
    const Arg& a = args[in.param];
    if (in.program == Rule::Input::kOverwritten)
      edges.push({});
    else if (a.kind == Kind::Tensors)
      for (int i = 0; i < a.count; ++i) edges.push(gradient_edge(a.tensors[i]));
    else
      edges.push(a.is_tensor() ? gradient_edge(a.tensor) : Edge{});
  }
}

bool is_argument(const Call& c, PyObject* o) {
  for (int i = 0; i < c.op->nparams; ++i) {
    const Arg& a = c.args[i];
    if (a.is_tensor() && object(a.tensor) == o) return true;
    if (a.kind == Kind::Tensors)
      for (int k = 0; k < a.count; ++k)
        if (object(a.tensors[k]) == o) return true;
  }
  return false;
}

// Whether the rule reads the argument that the call is about to overwrite.
bool reads_self(const Rule* rule, uint64_t mask) {
  for (size_t i = 0; i < rule->saves->size(); ++i) {
    const Save& s = (*rule->saves)[i];
    if ((mask >> i & 1) && !s.result && !s.geometry_only && s.index == 0) return true;
  }
  return false;
}

// Refuses arguments that cannot be saved.
void check_saves(const Rule* rule, uint64_t mask, const Arg* args) {
  for (size_t i = 0; i < rule->saves->size(); ++i) {
    const Save& s = (*rule->saves)[i];
    if (!(mask >> i & 1) || s.result || s.geometry_only) continue;
    const Arg& a = args[s.index];
    if (a.is_tensor()) check_can_be_saved(a.tensor);
    for (int k = 0; a.kind == Kind::Tensors && k < a.count; ++k) check_can_be_saved(a.tensors[k]);
  }
}

[[noreturn]] void refuse_out(const Op* op) {
  raise(PyExc_RuntimeError,
        "%s(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
        "requires grad.",
        base_name(op).c_str());
}

PyObject* redispatch(Call& c) {
  if (c.op->family == Family::View) return api->redispatch(c);  // views look at the mode themselves
  ThreadBitsScope below(kNoGrad, 0);                            // what an operator is made of is not recorded again
  return api->redispatch(c);
}

bool same_geometry(const Tensor* t, const Geometry& g) {
  return t->ndim == g.ndim && std::equal(t->sizes, t->sizes + t->ndim, g.sizes) &&
         std::equal(t->strides, t->strides + t->ndim, g.strides);
}

void check_inplace(const Call& c) {
  const Tensor* self = c.args[0].tensor;
  const Refusal refusal = refusal_of_write(self);
  if (refusal != Refusal::None) refuse_write(self, refusal, base_name(c.op) + (c.inplace ? "_" : ""));
}

PyObject* record_inplace(Call& c, Rule* rule) {
  Tensor* self = c.args[0].tensor;
  check_inplace(c);
  Edges edges;
  collect_edges(rule, c.args, edges);
  Recorded r{rule, c.args, nullptr, 1, edges.v, edges.n};
  r.written = self;
  r.version_before = self->storage->version;
  const uint64_t saves = saves_needed(rule, edges.v, edges.n);
  check_saves(rule, saves, c.args);  // while nothing is written
  Ref<> before;
  if (reads_self(rule, saves)) before = call(ops::clone, {arg(self)});
  r.self_before = before.get();
  std::vector<int64_t> dims(self->sizes, self->sizes + self->ndim);
  dims.insert(dims.end(), self->strides, self->strides + self->ndim);
  Geometry geometry = geometry_of(self);
  geometry.sizes = dims.data();
  geometry.strides = dims.data() + self->ndim;
  r.before = &geometry;

  auto result = Ref<>::check(redispatch(c));
  if (!is_inexact(self->dtype)) return result.release();
  PyObject* output = object(self);
  r.outputs = &output;
  Ref<RuleNode> node(new_rule_node(r));
  edges.n = 0;
  attach_trace(node.get());
  if (same_geometry(self, geometry))
    rebase_history(self, node.get());
  else
    set_history(self, node.get(), 0);  // transpose_ and its like change the view, not the base
  return result.release();
}

PyObject* record(Call& c, void*) {
  return guard([&]() -> PyObject* {
    const Op* op = c.op;
    // Views may have a base that came to require grad later; the flags of the call know of the rest.
    if (!op->differentiable || !(c.flags & kRequiresGrad || any_requires_grad(c))) return api->redispatch(c);
    if (c.out) refuse_out(op);
    if (op->family == Family::Composite) return c.inplace ? inplace_composite(c) : api->redispatch(c);
    Rule* rule = rule_of(op);
    bool writes = c.inplace || op->inplace_only;
    if (!to_be_recorded(c, rule, writes)) return api->redispatch(c);
    if (writes) return record_inplace(c, rule);

    auto result = Ref<>::check(redispatch(c));
    PyObject* one = result.get();
    PyObject* const* outputs = &one;
    Py_ssize_t noutputs = 1;
    if (PyTuple_Check(one) || PyList_Check(one)) {
      outputs = PySequence_Fast_ITEMS(one);
      noutputs = PySequence_Fast_GET_SIZE(one);
    }
    bool differentiable = false;
    for (Py_ssize_t i = 0; i < noutputs; ++i) {
      if (!is_tensor(outputs[i])) return result.release();
      differentiable = differentiable || is_inexact(as_tensor(outputs[i])->dtype);
    }
    // An operator that had nothing to do gives its argument back, history and all.
    if (!differentiable || (noutputs == 1 && is_argument(c, outputs[0]))) return result.release();

    Edges edges;
    collect_edges(rule, c.args, edges);
    Recorded r{rule, c.args, outputs, static_cast<uint32_t>(noutputs), edges.v, edges.n};
    Ref<RuleNode> node(new_rule_node(r));
    edges.n = 0;
    attach_trace(node.get());
    for (Py_ssize_t i = 0; i < noutputs - rule->auxiliary; ++i)
      if (is_inexact(as_tensor(outputs[i])->dtype))
        set_history(as_tensor(outputs[i]), node.get(), static_cast<uint32_t>(i));
    return result.release();
  });
}

// Outside of inference mode the tensors made in it may be read, not written.
PyObject* guard_inference(Call& c, void*) {
  bool writes = false;
  const auto see = [&](const Tensor* t) { writes = writes || (t && t->flags & kInference); };
  for (int i = 0; i < c.op->nparams; ++i) {
    const Arg& a = c.args[i];
    if (!c.op->params[i].is_write && !(c.inplace && i == 0)) continue;
    if (a.is_tensor()) see(a.tensor);
    if (a.kind == Kind::Tensors) std::for_each(a.tensors, a.tensors + a.count, see);
  }
  if (c.out && is_tensor(c.out)) see(as_tensor(c.out));
  if (c.out && PyTuple_Check(c.out))
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(c.out); ++i) see(as_tensor(PyTuple_GET_ITEM(c.out, i)));
  if (!writes) return api->redispatch(c);
  PyErr_Format(
      PyExc_RuntimeError,
      "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a normal "
      "tensor before doing inplace update (%s). See https://github.com/pytorch/rfcs/pull/17 for more details.",
      c.op->name);
  return nullptr;
}

}  // namespace

PyObject* inplace_composite(Call& c) {
  Tensor* self = c.args[0].tensor;
  check_inplace(c);
  Ref<> before = call(ops::clone, {arg(self)});
  c.args[0] = arg(tensor(before));
  c.inplace = false;
  auto result = Ref<>::check(api->redispatch(c));
  c.args[0] = arg(self);
  c.inplace = true;
  Tensor* t = is_tensor(result.get()) ? tensor(result) : nullptr;
  if (!t || t->ndim != self->ndim || !std::equal(t->sizes, t->sizes + t->ndim, self->sizes))
    raise(PyExc_RuntimeError, "%s_: the result has another shape than the tensor it is to be written to.",
          base_name(c.op).c_str());
  return call(ops::copy_, {arg(self), arg(t)}).release();
}

void register_layers() {
  const Layer layers[] = {{"inference", 190, kInference, kInferenceMode, guard_inference, nullptr, true},
                          {"autograd", 200, kRequiresGrad | kView, kNoGrad | kInferenceMode, record, nullptr, true}};
  for (const Layer& layer : layers) check(api->register_layer(&layer));
  register_anomaly_layer();
  register_write_layer();
  register_forward_layer();
}

}  // namespace rl
