#include "function.h"

#include <algorithm>

#include "anomaly.h"
#include "call.h"
#include "forward.h"
#include "saved.h"

namespace rl {

namespace {

PyTypeObject* g_function_type = nullptr;

// A tensor kept by save_for_backward. A result is kept without its history, which would lead back to this node.
struct Kept {
  Ref<> tensor;  // empty: None was saved; or what the user's hook made of it
  uint32_t version = 0;
  int32_t output_nr = -1;
};

struct Fields {
  Ref<> to_save, for_forward, dirty, non_differentiable, needs_input_grad;
  std::vector<Kept> saved;
  std::vector<bool> is_tensor;  // by argument of apply
  std::vector<Edge> edges;
  std::vector<Geometry> outputs;
  std::vector<std::vector<int64_t>> sizes;
  bool materialize = true;
  bool released = false;
  bool in_jvp = false;
};

struct FunctionNode : Node {
  Fields* fields;
};

Fields& fields_of(Node* n) { return *static_cast<FunctionNode*>(n)->fields; }

// ---- backward

void backward_function(Node* n, PyObject** grads, PyObject** results, const Needs&) {
  Fields& f = fields_of(n);
  auto args = Ref<>::check(PyTuple_New(1 + static_cast<Py_ssize_t>(n->noutputs)));
  PyTuple_SET_ITEM(args.get(), 0, Py_NewRef(object(n)));
  for (uint32_t i = 0; i < n->noutputs; ++i) {
    const Geometry& g = f.outputs[i];
    PyObject* grad = grads[i] ? Py_NewRef(grads[i]) : Py_NewRef(Py_None);
    if (!grads[i] && f.materialize && g.sizes) Py_SETREF(grad, zeros(g.ndim, g.sizes, g.dtype, g.device).release());
    PyTuple_SET_ITEM(args.get(), 1 + static_cast<Py_ssize_t>(i), grad);
  }
  auto cls = Ref<>::check(PyObject_GetAttrString(object(n), "_forward_cls"));
  auto name = Ref<>::check(PyObject_GetAttrString(cls.get(), "_backward_name"));
  auto fn = Ref<>::check(PyObject_GetAttr(cls.get(), name.get()));
  if (std::any_of(grads, grads + n->noutputs, [](PyObject* g) { return g && as_tensor(g)->flags & kLayout; })) {
    // What users write need not work on a batch of gradients: it runs for each of its entries.
    auto module = Ref<>::check(PyImport_ImportModule("rushlight.autograd._batching"));
    fn = Ref<>::check(PyObject_CallMethod(module.get(), "entry_by_entry", "O", fn.get()));
  }
  auto value = Ref<>::check(PyObject_CallObject(fn.get(), args.get()));
  if (!PyTuple_Check(value.get())) value = Ref<>::check(PyTuple_Pack(1, value.get()));

  auto expected = static_cast<Py_ssize_t>(f.is_tensor.size());
  Py_ssize_t given = PyTuple_GET_SIZE(value.get());
  while (given > expected && PyTuple_GET_ITEM(value.get(), given - 1) == Py_None) --given;
  if (given != expected)
    raise(PyExc_RuntimeError,
          "function %s returned an incorrect number of gradients (expected %zd, got %zd). "
          "Return one for each argument of forward, None where there is none.",
          name_of(n), expected, given);
  uint32_t edge = 0;
  for (Py_ssize_t i = 0; i < expected; ++i) {
    PyObject* g = PyTuple_GET_ITEM(value.get(), i);
    if (!f.is_tensor[static_cast<size_t>(i)]) {
      if (g != Py_None)
        raise(PyExc_RuntimeError,
              "function %s returned a gradient different from None at position %zd, but the corresponding forward "
              "input was not a Variable",
              name_of(n), i + 1);
      continue;
    }
    if (g != Py_None && !is_tensor(g))
      raise(PyExc_RuntimeError, "expected Variable or None (got %s). Return a Tensor or None at position %zd of %s.",
            Py_TYPE(g)->tp_name, i + 1, name_of(n));
    results[edge++] = g == Py_None ? nullptr : Py_NewRef(g);
  }
}

void release_function(Node* n) {
  if (!static_cast<FunctionNode*>(n)->fields) return;
  Fields& f = fields_of(n);
  f.released = f.released || !f.saved.empty();
  std::vector<Kept> saved;
  saved.swap(f.saved);  // dropping them may run Python code
  Ref<> others[] = {std::move(f.to_save), std::move(f.for_forward), std::move(f.dirty),
                    std::move(f.non_differentiable)};
}

int traverse_function(Node* n, visitproc visit, void* arg) {
  if (!static_cast<FunctionNode*>(n)->fields) return 0;
  Fields& f = fields_of(n);
  Py_VISIT(f.to_save.get());
  Py_VISIT(f.for_forward.get());
  Py_VISIT(f.dirty.get());
  Py_VISIT(f.non_differentiable.get());
  for (Kept& k : f.saved) Py_VISIT(k.tensor.get());
  return 0;
}

void destroy_function(Node* n) { delete static_cast<FunctionNode*>(n)->fields; }

const NodeKind function_kind = {backward_function, release_function, traverse_function, destroy_function, true};

// ---- forward

void keep(Fields& f, Node* n) {
  if (!f.to_save || f.to_save.get() == Py_None) return;
  Ref<> tensors = std::move(f.to_save);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tensors.get()); ++i) {
    PyObject* o = PyTuple_GET_ITEM(tensors.get(), i);
    Kept k;
    if (o != Py_None) {
      if (!is_tensor(o))
        raise(PyExc_TypeError, "save_for_backward can only save variables, but argument %zd is of type %s", i,
              Py_TYPE(o)->tp_name);
      Tensor* t = as_tensor(o);
      check_can_be_saved(t);
      k.version = t->storage->version;
      bool own = t->grad_fn == object(n);
      if (own) k.output_nr = static_cast<int32_t>(t->output_nr);
      if (t_saved_hooks)
        k.tensor = Ref<>(pack_saved(t, own ? Edge{} : gradient_edge(t)));
      else
        k.tensor = own ? Ref<>::check(api->detach(t)) : Ref<>::borrow(o);
    }
    f.saved.push_back(std::move(k));
  }
}

bool contains(const Ref<>& tuple, PyObject* o) {
  if (!tuple || !PyTuple_Check(tuple.get())) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple.get()); ++i)
    if (PyTuple_GET_ITEM(tuple.get(), i) == o) return true;
  return false;
}

// One output of forward, with its history.
Ref<> wrap_output(FunctionNode* n, PyObject* o, uint32_t index, PyObject* args, bool recorded) {
  Fields& f = *n->fields;
  Ref<> out = Ref<>::borrow(o);
  bool is_input = false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) is_input = is_input || PyTuple_GET_ITEM(args, i) == o;
  bool dirty = contains(f.dirty, o), constant = contains(f.non_differentiable, o) || !is_inexact(as_tensor(o)->dtype);
  if (is_input && !dirty) out = Ref<>::check(api->detach(as_tensor(o)));
  if (!recorded || constant) {
    if (constant && !dirty && !as_tensor(out.get())->grad_fn) tensor(out)->flags &= ~kRequiresGrad;
    return out;
  }
  if (dirty && is_input) {
    const Refusal refusal = refusal_of_write(tensor(out));
    if (refusal != Refusal::None) refuse_write(tensor(out), refusal, name_of(n));
    if (tensor(out)->base && (n->noutputs > 1 || PyTuple_GET_ITEM(args, 0) != o))
      raise(PyExc_RuntimeError,
            "%s: a view that is marked dirty must be the first argument and the only output. clone() it before.",
            name_of(n));
    if (tensor(out)->base) {
      rebase_history(tensor(out), n);
      return out;
    }
  }
  Py_CLEAR(tensor(out)->base);  // its history is this function, whatever memory it shares
  set_history(tensor(out), n, index);
  return out;
}

// The tangents of the arguments of apply, and whether there is any.
bool collect_tangents(const Fields& f, PyObject* const* args, Py_ssize_t n, PyObject* tangents) {
  bool any = false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    Ref<> tangent;
    if (is_tensor(args[i])) {
      Tensor* t = as_tensor(args[i]);
      tangent = tangent_of(t);
      any = any || tangent;
      if (!tangent && f.materialize && is_inexact(t->dtype)) tangent = zeros(t->ndim, t->sizes, t->dtype, t->device);
    }
    PyTuple_SET_ITEM(tangents, i, tangent ? tangent.release() : Py_NewRef(Py_None));
  }
  return any;
}

// Forward mode: the tangents of the results are what the user's jvp makes of those of the arguments.
void apply_jvp(PyObject* cls, FunctionNode* n, PyObject* tangents, PyObject* results) {
  auto args = Ref<>::check(PyTuple_New(1 + PyTuple_GET_SIZE(tangents)));
  PyTuple_SET_ITEM(args.get(), 0, Py_NewRef(object(n)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tangents); ++i)
    PyTuple_SET_ITEM(args.get(), i + 1, Py_NewRef(PyTuple_GET_ITEM(tangents, i)));
  auto jvp = Ref<>::check(PyObject_GetAttrString(cls, "jvp"));
  n->fields->in_jvp = true;
  Ref<> found(PyObject_CallObject(jvp.get(), args.get()));
  n->fields->in_jvp = false;
  if (!found) throw PythonError();
  if (!PyTuple_Check(found.get())) found = Ref<>::check(PyTuple_Pack(1, found.get()));
  if (PyTuple_GET_SIZE(found.get()) != PyTuple_GET_SIZE(results))
    raise(PyExc_RuntimeError, "%s.jvp: must return a tangent for each of %zd results, got %zd.",
          reinterpret_cast<PyTypeObject*>(cls)->tp_name, PyTuple_GET_SIZE(results), PyTuple_GET_SIZE(found.get()));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(results); ++i) {
    PyObject *tangent = PyTuple_GET_ITEM(found.get(), i), *o = PyTuple_GET_ITEM(results, i);
    if (tangent == Py_None) continue;
    if (!is_tensor(tangent) || !is_tensor(o))
      raise(PyExc_TypeError, "%s.jvp: expected a Tensor or None for each Tensor, got %s as result %zd.",
            reinterpret_cast<PyTypeObject*>(cls)->tp_name, Py_TYPE(tangent)->tp_name, i);
    const Tensor *t = as_tensor(tangent), *out = as_tensor(o);
    if (t->ndim != out->ndim || !std::equal(t->sizes, t->sizes + t->ndim, out->sizes) || t->dtype != out->dtype)
      raise(PyExc_RuntimeError, "%s.jvp: the tangent of result %zd must have its shape and dtype.",
            reinterpret_cast<PyTypeObject*>(cls)->tp_name, i);
    set_tangent(as_tensor(o), Ref<>::borrow(tangent));
  }
}

// apply(cls, *args)
PyObject* apply(PyObject*, PyObject* const* argv, Py_ssize_t nargs) {
  return guard([&]() -> PyObject* {
    PyObject* cls = argv[0];
    auto type = Ref<>::check(PyObject_GetAttrString(cls, "_backward_cls"));
    auto* node_type = reinterpret_cast<PyTypeObject*>(type.get());
    auto* n = static_cast<FunctionNode*>(new_node(node_type, &function_kind, 0));
    n->fields = nullptr;
    Ref<FunctionNode> hold(n);
    n->fields = new Fields();
    Fields& f = *n->fields;

    auto args = Ref<>::check(PyTuple_New(nargs - 1));
    auto needs = Ref<>::check(PyTuple_New(nargs - 1));
    bool any = false;
    for (Py_ssize_t i = 0; i + 1 < nargs; ++i) {
      PyObject* o = argv[i + 1];
      PyTuple_SET_ITEM(args.get(), i, Py_NewRef(o));
      bool need = is_tensor(o) && requires_grad(as_tensor(o));
      PyTuple_SET_ITEM(needs.get(), i, PyBool_FromLong(need));
      any = any || need;
      f.is_tensor.push_back(is_tensor(o));
    }
    f.needs_input_grad = std::move(needs);
    bool recorded = any && grad_enabled();
    for (Py_ssize_t i = 0; i + 1 < nargs; ++i)
      if (is_tensor(argv[i + 1])) {
        f.edges.push_back(recorded ? gradient_edge(as_tensor(argv[i + 1])) : Edge{});
        n->edges = f.edges.data();
        n->nedges = static_cast<uint32_t>(f.edges.size());
      }
    finish_node(n);
    attach_trace(n);

    Ref<> output, tangents;
    bool dual = level_is_open();
    {
      ThreadBitsScope unrecorded(kNoGrad | kNoForward, 0);
      auto separate = Ref<>::check(PyObject_GetAttrString(cls, "_has_setup_context"));
      auto forward = Ref<>::check(PyObject_GetAttrString(cls, "forward"));
      if (separate.get() == Py_True) {
        output = Ref<>::check(PyObject_CallObject(forward.get(), args.get()));
        output = Ref<>::check(PyTuple_Pack(3, object(n), args.get(), output.get()));
        auto setup = Ref<>::check(PyObject_GetAttrString(cls, "setup_context"));
        Ref<>::check(PyObject_CallObject(setup.get(), output.get()));
        output = Ref<>::borrow(PyTuple_GET_ITEM(output.get(), 2));
      } else {
        auto with_ctx = Ref<>::check(PyTuple_New(nargs));
        PyTuple_SET_ITEM(with_ctx.get(), 0, Py_NewRef(object(n)));
        for (Py_ssize_t i = 1; i < nargs; ++i) PyTuple_SET_ITEM(with_ctx.get(), i, Py_NewRef(argv[i]));
        output = Ref<>::check(PyObject_CallObject(forward.get(), with_ctx.get()));
      }
    }

    if (dual) {
      tangents = Ref<>::check(PyTuple_New(nargs - 1));
      dual = collect_tangents(f, argv + 1, nargs - 1, tangents.get());
    }
    bool single = !PyTuple_Check(output.get());
    if (single) output = Ref<>::check(PyTuple_Pack(1, output.get()));
    Py_ssize_t noutputs = PyTuple_GET_SIZE(output.get());
    n->noutputs = static_cast<uint32_t>(noutputs);
    f.outputs.resize(static_cast<size_t>(noutputs), Geometry{});
    f.sizes.resize(static_cast<size_t>(noutputs));
    for (Py_ssize_t i = 0; i < noutputs; ++i) {
      PyObject* o = PyTuple_GET_ITEM(output.get(), i);
      if (!is_tensor(o)) continue;
      Tensor* t = as_tensor(o);
      auto& sizes = f.sizes[static_cast<size_t>(i)];
      sizes.assign(t->sizes, t->sizes + t->ndim);
      sizes.push_back(0);  // so that data() is not null for 0-d
      f.outputs[static_cast<size_t>(i)] = {t->dtype, t->device, t->ndim, sizes.data(), nullptr, 0};
    }
    n->outputs = f.outputs.data();
    if (f.dirty)
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(f.dirty.get()); ++i) {
        PyObject* o = PyTuple_GET_ITEM(f.dirty.get(), i);
        if (!is_tensor(o))
          raise(PyExc_RuntimeError, "mark_dirty can only accept variables, but argument %zd is of type %s", i,
                Py_TYPE(o)->tp_name);
        if (!contains(output, o))
          raise(PyExc_RuntimeError,
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that "
                "are modified inplace must all be outputs of the Function.");
        ++as_tensor(o)->storage->version;
      }
    for (Py_ssize_t i = 0; f.non_differentiable && i < PyTuple_GET_SIZE(f.non_differentiable.get()); ++i)
      if (PyObject* o = PyTuple_GET_ITEM(f.non_differentiable.get(), i); !is_tensor(o))
        raise(PyExc_RuntimeError, "mark_non_differentiable only accepts variable arguments, but got %s at position %zd",
              Py_TYPE(o)->tp_name, i);
    auto results = Ref<>::check(PyTuple_New(noutputs));
    for (Py_ssize_t i = 0; i < noutputs; ++i) {
      PyObject* o = PyTuple_GET_ITEM(output.get(), i);
      Ref<> wrapped =
          is_tensor(o) ? wrap_output(n, o, static_cast<uint32_t>(i), args.get(), recorded) : Ref<>::borrow(o);
      PyTuple_SET_ITEM(results.get(), i, wrapped.release());
    }
    if (noutputs)
      n->version = is_tensor(PyTuple_GET_ITEM(results.get(), 0))
                       ? as_tensor(PyTuple_GET_ITEM(results.get(), 0))->storage->version
                       : 0;
    if (dual) apply_jvp(cls, n, tangents.get(), results.get());
    if (recorded) keep(f, n);
    f.to_save = Ref<>();
    return single ? Py_NewRef(PyTuple_GET_ITEM(results.get(), 0)) : results.release();
  });
}

// ---- ctx

Fields& fields(PyObject* self) { return *reinterpret_cast<FunctionNode*>(self)->fields; }

template <Ref<> Fields::* member>
PyObject* remember(PyObject* self, PyObject* args) {
  Ref<> old = std::exchange(fields(self).*member, Ref<>::borrow(args));
  Py_RETURN_NONE;
}

PyObject* set_materialize_grads(PyObject* self, PyObject* value) {
  int truth = PyObject_IsTrue(value);
  if (truth < 0) return nullptr;
  fields(self).materialize = truth;
  Py_RETURN_NONE;
}

PyObject* saved_tensors(PyObject* self, void*) {
  return guard([&]() -> PyObject* {
    auto* n = reinterpret_cast<FunctionNode*>(self);
    Fields& f = *n->fields;
    if (f.in_jvp && f.for_forward) return Py_NewRef(f.for_forward.get());
    if (f.released) raise_released(n);
    auto tuple = Ref<>::check(PyTuple_New(static_cast<Py_ssize_t>(f.saved.size())));
    for (size_t i = 0; i < f.saved.size(); ++i) {
      Kept& k = f.saved[i];
      Ref<> o = k.tensor ? k.tensor : Ref<>::borrow(Py_None);
      bool own = k.output_nr >= 0;
      auto nr = static_cast<uint32_t>(std::max(k.output_nr, 0));
      if (k.tensor && is_packed(k.tensor.get()))
        o = unpack_saved(k.tensor.get());
      else if (k.tensor)
        check_saved_version(tensor(k.tensor), k.version, own ? name_of(n) : nullptr, nr);
      if (own) o = with_history(tensor(o), n, nr);
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), o.release());
    }
    return tuple.release();
  });
}

PyObject* needs_input_grad(PyObject* self, void*) {
  Fields& f = fields(self);
  return f.needs_input_grad ? Py_NewRef(f.needs_input_grad.get()) : PyTuple_New(0);
}

PyMethodDef function_methods[] = {
    {"save_for_backward", remember<&Fields::to_save>, METH_VARARGS,
     "Keeps tensors for backward, where `saved_tensors` gives them back."},
    {"save_for_forward", remember<&Fields::for_forward>, METH_VARARGS,
     "Keeps tensors for jvp, where `saved_tensors` gives them back."},
    {"mark_dirty", remember<&Fields::dirty>, METH_VARARGS,
     "Says which inputs forward wrote to; they must be among the outputs."},
    {"mark_non_differentiable", remember<&Fields::non_differentiable>, METH_VARARGS,
     "Says which outputs carry no gradient."},
    {"set_materialize_grads", set_materialize_grads, METH_O,
     "Whether backward gets zeros (True, the default) or None for outputs without a gradient."},
    {}};
PyGetSetDef function_attributes[] = {{"saved_tensors", saved_tensors, nullptr, "What save_for_backward kept.", nullptr},
                                     {"needs_input_grad", needs_input_grad, nullptr,
                                      "For each argument of apply, whether its gradient is wanted.", nullptr},
                                     {}};
PyType_Slot function_slots[] = {
    {Py_tp_methods, function_methods},
    {Py_tp_getset, function_attributes},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_node)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse_node)},
    {Py_tp_clear, reinterpret_cast<void*>(clear_node)},
    {Py_tp_doc, const_cast<char*>("The `ctx` of a Function: what forward leaves for backward.")},
    {}};
PyType_Spec function_spec = {
    "rushlight.autograd.function.FunctionCtx", sizeof(FunctionNode), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, function_slots};
PyMethodDef apply_def = {"apply_function", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(apply)),
                         METH_FASTCALL, "apply_function(cls, *args): calls cls.forward and records cls.backward."};

}  // namespace

void init_function_type(PyObject* module) {
  g_function_type = reinterpret_cast<PyTypeObject*>(
      Ref<>::check(PyType_FromSpecWithBases(&function_spec, object(g_node_type))).release());
  check(PyModule_AddObjectRef(module, "FunctionCtx", object(g_function_type)));
  check(PyModule_AddObject(module, "apply_function", Ref<>::check(PyCFunction_New(&apply_def, nullptr)).release()));
}

}  // namespace rl
