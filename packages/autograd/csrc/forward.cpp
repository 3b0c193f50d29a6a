#include "forward.h"

#include <string>
#include <vector>

#include "call.h"
#include "engine.h"
#include "record.h"
#include "rule.h"
#include "saved.h"
#include "views.h"

namespace rl {

namespace {

// Tangents belong to a level, and that to a thread: when it is left, its number does not come again.
uint64_t g_levels = 0;
thread_local uint64_t t_level = 0;  // 0: none is open

Tensor* known_tangent(const Tensor* t) {
  const Meta* m = meta_if_any(t);
  return t_level && m && m->tangent && m->tangent_level == t_level ? as_tensor(m->tangent) : nullptr;
}

bool is_dual(const Tensor* t) { return known_tangent(t) || (t->base && known_tangent(t->base)); }

bool any_dual(const Call& c) {
  for (int i = 0; i < c.op->nparams; ++i) {
    const Arg& a = c.args[i];
    if (a.is_tensor() && is_dual(a.tensor)) return true;
    if (a.kind == Kind::Tensors)
      for (int k = 0; k < a.count; ++k)
        if (is_dual(a.tensors[k])) return true;
  }
  return false;
}

// The tensors among what an operator returned.
std::vector<Tensor*> tensors_of(PyObject* result) {
  std::vector<Tensor*> all;
  if (is_tensor(result)) {
    all.push_back(as_tensor(result));
  } else if (PyTuple_Check(result) || PyList_Check(result)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result); ++i) {
      PyObject* o = PySequence_Fast_GET_ITEM(result, i);
      all.push_back(is_tensor(o) ? as_tensor(o) : nullptr);
    }
  }
  return all;
}

// A call with dual arguments, to be differentiated along their tangents: the vector-Jacobian product of its rule is
// linear in its vector, and the derivative of that by the vector is the Jacobian.
class Derivative {
 public:
  // `connected`: the tangents are functions of the arguments, for backward.
  Derivative(const Call& c, bool connected) : call_(c), connected_(connected), args_(c.args, c.args + c.op->nparams) {
    if (!connected) t_saved_hooks = false;  // what is recorded here is gone at the end
    lists_.reserve(args_.size());
    for (Arg& a : args_) {
      if (a.is_tensor()) {
        a.tensor = variable(a.tensor);
      } else if (a.kind == Kind::Tensors) {
        lists_.emplace_back();
        for (int k = 0; k < a.count; ++k) lists_.back().push_back(variable(a.tensors[k]));
        a.tensors = lists_.back().data();
      }
    }
  }

  ~Derivative() { t_saved_hooks = hooks_; }

  // The result; `fresh`: it is to be used, without the history that served here.
  Ref<> run(bool writes) {
    const int n = call_.op->nparams;
    if (writes) {
      keep_.push_back(call(ops::clone, {args_[0]}));
      args_[0] = arg(tensor(keep_.back()));
    }
    auto result = Ref<>::check(call_.inplace ? api->call_inplace(call_.op, args_.data(), n)
                                             : api->call(call_.op, args_.data(), n));
    find_tangents(result.get());
    for (size_t i = 0; i < variables_.size(); ++i)  // an operator that had nothing to do gives its argument back
      if (result.get() == object(variables_[i])) return Ref<>::borrow(object(originals_[i]));
    if (!connected_)
      for (Tensor* t : tensors_of(result.get()))
        if (t && t->grad_fn) {
          t->flags &= ~kRequiresGrad;
          t->output_nr = 0;
          Py_CLEAR(t->grad_fn);
        }
    return result;
  }

  std::vector<Ref<>> tangents;  // of the results, null where they are constant

 private:
  // What stands for an argument here: differentiated by where it has a tangent, constant otherwise.
  Tensor* variable(Tensor* t) {
    Ref<> tangent = tangent_of(t);
    const bool recorded = connected_ && requires_grad(t);
    if (!tangent) {
      if (recorded || !requires_grad(t)) return t;
      keep_.push_back(Ref<>::check(api->detach(t)));
      return tensor(keep_.back());
    }
    Edge edge = recorded ? gradient_edge(t) : Edge{};
    Ref<Node> hold(edge.node);
    keep_.push_back(edge.node ? with_history(t, edge.node, edge.index) : Ref<>::check(api->detach(t)));
    Tensor* x = tensor(keep_.back());
    if (edge.node) {  // a step of its own, so that its gradient is not that of other uses
      keep_.push_back(call(ops::view_as, {arg(x), arg(x)}));
      x = tensor(keep_.back());
    }
    x->flags |= kRequiresGrad;
    variables_.push_back(x);
    originals_.push_back(t);
    given_.push_back(std::move(tangent));
    return x;
  }

  static std::vector<Edge> inputs_of(const std::vector<Tensor*>& tensors, std::vector<Ref<Node>>& nodes) {
    std::vector<Edge> inputs;
    for (Tensor* t : tensors) {
      inputs.push_back(gradient_edge(t));
      nodes.emplace_back(inputs.back().node);
    }
    return inputs;
  }

  void find_tangents(PyObject* result) {
    std::vector<Tensor*> outputs = tensors_of(result);
    tangents.resize(outputs.size());
    PassOptions options;
    options.retain_graph = options.create_graph = true;
    options.accumulate = false;
    std::vector<Root> roots;
    std::vector<Ref<Node>> nodes;
    std::vector<Tensor*> vectors;
    std::vector<size_t> which;
    for (size_t i = 0; i < outputs.size(); ++i) {
      Tensor* t = outputs[i];
      if (!t || !is_inexact(t->dtype) || !requires_grad(t)) continue;
      keep_.push_back(zeros(t->ndim, t->sizes, t->dtype, t->device));
      Tensor* v = tensor(keep_.back());
      v->flags |= kRequiresGrad;
      Edge edge = gradient_edge(t);
      nodes.emplace_back(edge.node);
      roots.push_back({edge, object(v)});
      vectors.push_back(v);
      which.push_back(i);
    }
    if (roots.empty()) return;
    std::vector<Ref<>> products = run_backward(roots, inputs_of(variables_, nodes), options);
    roots.clear();
    for (size_t i = 0; i < products.size(); ++i) {
      if (!products[i] || !requires_grad(tensor(products[i]))) continue;
      Edge edge = gradient_edge(tensor(products[i]));
      nodes.emplace_back(edge.node);
      roots.push_back({edge, given_[i].get()});
    }
    if (roots.empty()) return;
    options.create_graph = connected_;
    std::vector<Ref<>> found = run_backward(roots, inputs_of(vectors, nodes), options);
    for (size_t k = 0; k < which.size(); ++k) tangents[which[k]] = std::move(found[k]);
  }

  const Call& call_;
  bool connected_, hooks_ = t_saved_hooks;
  std::vector<Arg> args_;
  std::vector<std::vector<Tensor*>> lists_;
  std::vector<Tensor*> variables_, originals_;
  std::vector<Ref<>> given_, keep_;
};

// Lets a random operator that runs twice draw the same numbers.
class Replay {
 public:
  explicit Replay(const Call& c) {
    auto random = Ref<>::check(PyObject_GetAttrString(c.op->record, "arbitrary"));
    if (random.get() != Py_True) return;
    for (int i = 0; i < c.op->nparams; ++i)
      if (c.op->params[i].type == ParamType::Generator && c.args[i].kind == Kind::Object)
        generator_ = Ref<>::borrow(c.args[i].object);
    if (!generator_) {
      auto module = Ref<>::check(PyImport_ImportModule("rushlight"));
      generator_ = Ref<>::check(PyObject_GetAttrString(module.get(), "default_generator"));
    }
    state_ = Ref<>::check(PyObject_CallMethod(generator_.get(), "get_state", nullptr));
  }
  void rewind() {
    if (state_) Ref<>::check(PyObject_CallMethod(generator_.get(), "set_state", "O", state_.get()));
  }

 private:
  Ref<> generator_, state_;
};

// A tangent that shares no memory with those of the arguments, since in-place operators write to it.
Ref<> own(Ref<> tangent) {
  const bool shared = Py_REFCNT(tangent.get()) > 1 || tensor(tangent)->storage->refs > 1;
  return shared ? call(ops::clone, {arg(tensor(tangent))}) : std::move(tangent);
}

// Views of duals: the same view of the tangent, so that they go on sharing memory.
PyObject* view(Call& c) {
  Ref<> tangent = tangent_of(c.args[0].tensor);
  auto result = Ref<>::check(api->redispatch(c));
  if (!tangent) return result.release();
  std::vector<Arg> args(c.args, c.args + c.op->nparams);
  args[0] = arg(tensor(tangent));
  static OpHandle strided("as_strided");  // counts from the start of the storage
  if (c.op == strided && !args[3].none()) args[3].i += tensor(tangent)->offset - c.args[0].tensor->offset;
  auto of_tangent = Ref<>::check(api->call(c.op, args.data(), c.op->nparams));
  std::vector<Tensor*> views = tensors_of(result.get()), tangents = tensors_of(of_tangent.get());
  for (size_t i = 0; i < views.size(); ++i)
    if (views[i] && is_inexact(views[i]->dtype)) set_tangent(views[i], Ref<>::borrow(object(tangents[i])));
  return result.release();
}

// Whether a write that reads nothing dual makes its target constant.
bool overwrites(const Call& c) {
  for (int i = 1; i < c.op->nparams; ++i)
    if ((c.args[i].is_tensor() && is_dual(c.args[i].tensor)) || c.args[i].kind == Kind::Tensors) return false;
  for (const Rule::Input& in : *rule_of(c.op)->inputs)
    if (in.param == 0) return in.program == Rule::Input::kOverwritten;
  return false;
}

PyObject* write(Call& c, bool connected) {
  Tensor* self = c.args[0].tensor;
  Ref<> tangent;
  if (!overwrites(c)) {
    ThreadBitsScope inner(kNoForward, kNoGrad);
    Replay replay(c);
    Derivative d(c, connected);
    d.run(true);
    if (!d.tangents.empty()) tangent = std::move(d.tangents[0]);
    replay.rewind();
  }
  const std::vector<int64_t> strides(self->strides, self->strides + self->ndim);
  auto result = Ref<>::check(api->redispatch(c));
  if (!is_inexact(self->dtype)) return result.release();
  ThreadBitsScope plain(kNoForward, 0);
  tangent = tangent ? own(std::move(tangent)) : zeros(self->ndim, self->sizes, self->dtype, self->device);
  if (self->base && !tangent_of(self->base)) {
    const Tensor* b = self->base;
    Tensor* like = tensor(tangent);
    set_tangent(self->base, like->flags & kLayout ? call(ops::new_zeros, {arg(like), arg(b->sizes, b->ndim)})
                                                  : zeros(b->ndim, b->sizes, b->dtype, b->device));
  }
  Ref<> old = tangent_of(self);
  const bool reshaped = strides != std::vector<int64_t>(self->strides, self->strides + self->ndim);
  const bool batched = old && (tensor(tangent)->flags & ~tensor(old)->flags & kLayout);
  // A batch is one more object around memory, which others may see too.
  const bool shared = old && (tensor(old)->storage->refs > 1 || tensor(old)->flags & kLayout);
  if (shared && !reshaped && !batched && !requires_grad(tensor(old)))
    call_inplace(ops::copy_, {arg(tensor(old)), arg(tensor(tangent))});  // views of it see what was written
  else
    set_tangent(self, tangent);
  return result.release();
}

PyObject* forward(Call& c, void*) {
  return guard([&]() -> PyObject* {
    const Op* op = c.op;
    if (!t_level || !op->differentiable || !any_dual(c)) return api->redispatch(c);
    if (c.out)
      raise(PyExc_NotImplementedError,
            "Trying to use forward AD with %s_out that does not support it because it is an out= function",
            base_name(op).c_str());
    if (op->family == Family::Composite) return c.inplace ? inplace_composite(c) : api->redispatch(c);
    const bool writes = c.inplace || op->inplace_only;
    bool connected = grad_enabled() && (c.flags & (kRequiresGrad | kView));
    if (!connected && grad_enabled())
      for (int i = 0; i < op->nparams && !connected; ++i)
        if (c.args[i].is_tensor())
          if (Ref<> tangent = tangent_of(c.args[i].tensor)) connected = requires_grad(tensor(tangent));
    if (writes) return write(c, connected);
    ThreadBitsScope inner(kNoForward, 0);
    if (op->returns_view) return view(c);
    Ref<> result;
    std::vector<Ref<>> tangents;
    Replay replay(c);
    {
      ThreadBitsScope recorded(0, kNoGrad);
      Derivative d(c, connected);
      result = d.run(false);
      tangents = std::move(d.tangents);
    }
    if (connected) {  // for a graph that knows the tangents of what it saved
      replay.rewind();
      result = Ref<>::check(api->redispatch(c));
    }
    std::vector<Tensor*> outputs = tensors_of(result.get());
    if (result.get() == object(c.args[0].tensor)) return result.release();
    for (size_t i = 0; i < outputs.size() && i < tangents.size(); ++i) {
      if (!tangents[i]) continue;
      tangents[i] = own(std::move(tangents[i]));
      set_tangent(outputs[i], tangents[i]);
      if (outputs[i]->grad_fn) set_saved_tangent(reinterpret_cast<Node*>(outputs[i]->grad_fn), i, tangents[i]);
    }
    return result.release();
  });
}

// ---- what Python sees

PyObject* open_level(PyObject*, PyObject*) {
  return guard([] {
    if (t_level) raise(PyExc_RuntimeError, "Nested forward mode AD is not supported at the moment");
    t_level = ++g_levels;
    return PyLong_FromLong(0);
  });
}
PyObject* close_level(PyObject*, PyObject*) {
  t_level = 0;
  Py_RETURN_NONE;
}
PyObject* level_open(PyObject*, PyObject*) { return PyBool_FromLong(t_level != 0); }

// The same memory and history without the tangent.
Ref<> plain(Tensor* t) {
  Edge edge = grad_enabled() ? gradient_edge(t) : Edge{};
  Ref<Node> hold(edge.node);
  auto bare = Ref<>::check(api->detach(t));
  if (edge.node) set_history(tensor(bare), edge.node, edge.index);
  return bare;
}

PyObject* make_dual(PyObject*, PyObject* args) {
  return guard([&]() -> PyObject* {
    PyObject *primal, *tangent;
    if (!PyArg_ParseTuple(args, "O!O!", api->tensor_type, &primal, api->tensor_type, &tangent)) return nullptr;
    Ref<> dual = plain(as_tensor(primal));
    set_tangent(tensor(dual), Ref<>::borrow(tangent));
    return dual.release();
  });
}

PyObject* unpack_dual(PyObject*, PyObject* t) {
  return guard([&]() -> PyObject* {
    if (!is_tensor(t)) raise(PyExc_TypeError, "unpack_dual: expected a Tensor, got %s.", Py_TYPE(t)->tp_name);
    Ref<> tangent = tangent_of(as_tensor(t));
    Ref<> primal = tangent ? plain(as_tensor(t)) : Ref<>::borrow(t);
    return PyTuple_Pack(2, primal.get(), tangent ? tangent.get() : Py_None);
  });
}

PyMethodDef functions[] = {{"open_level", open_level, METH_NOARGS, "Opens the level that tangents belong to."},
                           {"close_level", close_level, METH_NOARGS, "Forgets all tangents."},
                           {"level_is_open", level_open, METH_NOARGS, nullptr},
                           {"make_dual", make_dual, METH_VARARGS, "The first tensor with the second as its tangent."},
                           {"unpack_dual", unpack_dual, METH_O, "(the tensor without its tangent, tangent or None)."},
                           {}};

}  // namespace

bool level_is_open() { return t_level; }

// The tangent in the memory order of its tensor, so that what is a view of one is a view of the other.
static Ref<> laid_out_as(const Tensor* t, const Ref<>& tangent) {
  if (tensor(tangent)->flags & kLayout) return tangent;
  if (std::equal(t->strides, t->strides + t->ndim, tensor(tangent)->strides)) return tangent;
  auto [low, extent] = span_of(geometry_of(t));
  if (extent != t->numel) return tangent;  // its elements share memory, or have gaps between them
  ThreadBitsScope inner(kNoForward, 0);
  Ref<> memory = zeros(1, &extent, t->dtype, t->device);
  Ref<> copy =
      call(ops::as_strided, {arg(tensor(memory)), arg(t->sizes, t->ndim), arg(t->strides, t->ndim), arg(int64_t{0})});
  return call_inplace(ops::copy_, {arg(tensor(copy)), arg(tensor(tangent))});
}

Ref<> tangent_of(Tensor* t) {
  if (Tensor* own = known_tangent(t)) return Ref<>::borrow(object(own));
  Tensor* whole = t->base ? known_tangent(t->base) : nullptr;
  if (!whole || !is_inexact(t->dtype)) return {};
  // The view of the tangent, whose memory order may be another than the base's: in one that is the same.
  ThreadBitsScope inner(kNoForward, 0);
  const Tensor* base = t->base;
  const bool same = whole->flags & kLayout ? base->contiguous()  // whose entries are so too, where it is a batch
                                           : std::equal(base->strides, base->strides + base->ndim, whole->strides);
  if (!same || base->dtype != t->dtype) return {};
  return call(ops::as_strided, {arg(whole), arg(t->sizes, t->ndim), arg(t->strides, t->ndim),
                                arg(whole->offset + t->offset - base->offset)});
}

void set_tangent(Tensor* t, const Ref<>& tangent) {
  Meta& m = meta_of(t);
  Ref<> old(std::exchange(m.tangent, laid_out_as(t, tangent).release()));
  m.tangent_level = t_level;
  t->flags |= kDual;
}

void register_forward_layer() {
  const Layer layer = {"forward", 195, kDual | kView, kNoForward | kInferenceMode, forward, nullptr, true};
  check(api->register_layer(&layer));
}

void init_forward(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace rl
