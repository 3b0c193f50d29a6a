#include "tensor_attributes.h"

#include <algorithm>
#include <cstring>

#include "call.h"
#include "engine.h"

namespace rl {

namespace {

const char* dtype_name(DType t) {
  static const char* const names[kNumDTypes] = {"unsigned char", "char",          "short",          "int",
                                                "long int",      "Half",          "BFloat16",       "float",
                                                "double",        "complex float", "complex double", "bool"};
  return names[static_cast<int>(t)];
}

Ref<> size_list(int ndim, const int64_t* sizes) {
  auto list = Ref<>::check(PyList_New(ndim));
  for (int d = 0; d < ndim; ++d) PyList_SET_ITEM(list.get(), d, Ref<>::check(PyLong_FromLongLong(sizes[d])).release());
  return list;
}

// ---- backward

Ref<> implicit_gradient(const Geometry& t, const Node* maker) {
  if (!std::all_of(t.sizes, t.sizes + t.ndim, [](int64_t n) { return n == 1; }))
    raise(PyExc_RuntimeError,
          "grad can be implicitly created only for scalar outputs, got a tensor of shape %S from %s. Give its "
          "gradient too.",
          size_list(t.ndim, t.sizes).get(), name_of(maker));
  if (is_complex(t.dtype)) {
    const char* name = t.dtype == DType::Complex64 ? "complex64" : "complex128";
    raise(PyExc_RuntimeError,
          "grad can be implicitly created only for real scalar outputs but got rushlight.%s from %s. "
          "Take its real part, or give its gradient too.",
          name, name_of(maker));
  }
  auto one = Ref<>::check(api->from_number(1, 0, Kind::Int, t.dtype, t.device));
  if (!t.ndim) return one;
  return call(ops::expand, {arg(tensor(one)), arg(t.sizes, t.ndim)});
}

Ref<> device_object(Device device) {
  Arg a;
  a.kind = Kind::Device;
  a.device = device;
  return Ref<>::check(api->arg_to_object(a));
}

Ref<> explicit_gradient(PyObject* grad, const Geometry& t, size_t index, const Node* maker) {
  Tensor* g = as_tensor(grad);
  if (g->ndim != t.ndim || !std::equal(g->sizes, g->sizes + g->ndim, t.sizes))
    raise(PyExc_RuntimeError,
          "Mismatch in shape: grad_output[%zu] has a shape of torch.Size(%S) and output[%zu] has a shape of "
          "torch.Size(%S). Give the output of %s a gradient of its own shape.",
          index, size_list(g->ndim, g->sizes).get(), index, size_list(t.ndim, t.sizes).get(), name_of(maker));
  if (is_complex(g->dtype) != is_complex(t.dtype))
    raise(PyExc_RuntimeError,
          "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
          "grad_output[%zu] has a dtype of %s and output[%zu] has a dtype of %s. Convert the gradient to the dtype of "
          "the output of %s.",
          index, name(g->dtype), index, name(t.dtype), name_of(maker));
  if (g->device != t.device)
    raise(PyExc_RuntimeError,
          "invalid gradient at index %zu - expected device %R but got %R. Move it with .to(output.device).", index,
          device_object(t.device).get(), device_object(g->device).get());
  return g->dtype == t.dtype ? Ref<>::borrow(grad) : call(ops::cast, {arg(g), arg(t.dtype)});
}

// A GradientEdge: (node, output_nr, ...).
bool is_gradient_edge(PyObject* o) {
  return PyTuple_Check(o) && PyTuple_GET_SIZE(o) >= 2 && PyObject_TypeCheck(PyTuple_GET_ITEM(o, 0), g_node_type) &&
         PyLong_Check(PyTuple_GET_ITEM(o, 1));
}

// The arguments of a pass, with what keeps them alive.
struct Pass {
  std::vector<Root> roots;
  std::vector<Ref<>> keep;
  std::vector<Ref<Node>> nodes;
  std::vector<Edge> inputs;

  // The edge of a tensor, or the one that a GradientEdge names.
  Edge edge_of(PyObject* o) {
    Edge edge;
    if (is_tensor(o)) {
      edge = gradient_edge(as_tensor(o));
    } else {
      edge = {reinterpret_cast<Node*>(Py_NewRef(PyTuple_GET_ITEM(o, 0))),
              static_cast<uint32_t>(PyLong_AsUnsignedLong(PyTuple_GET_ITEM(o, 1)))};
      if (edge.index >= edge.node->noutputs) {
        Ref<Node> drop(edge.node);
        raise(PyExc_ValueError, "%s: it has %u outputs, got output_nr=%R. Count from 0.", name_of(edge.node),
              edge.node->noutputs, PyTuple_GET_ITEM(o, 1));
      }
    }
    nodes.emplace_back(edge.node);
    return edge;
  }

  void add_root(PyObject* o, PyObject* grad) {
    size_t index = roots.size();
    Edge edge = edge_of(o);
    if (!edge.node)
      raise(PyExc_RuntimeError,
            "element %zu of tensors does not require grad and does not have a grad_fn. Compute it from a tensor with "
            "requires_grad=True, outside of no_grad.",
            index);
    Geometry like = is_tensor(o) ? geometry_of(as_tensor(o)) : output_geometry(edge);
    keep.push_back(grad == Py_None ? implicit_gradient(like, edge.node)
                                   : explicit_gradient(grad, like, index, edge.node));
    roots.push_back({edge, keep.back().get()});
  }

  void add_input(PyObject* o) {
    if (!is_tensor(o) && !is_gradient_edge(o))
      raise(PyExc_RuntimeError,
            "all inputs have to be Tensors or GradientEdges, but got %s. Pass a Tensor or a sequence of Tensors.",
            Py_TYPE(o)->tp_name);
    if (is_tensor(o) && !requires_grad(as_tensor(o)))
      raise(PyExc_RuntimeError,
            "One of the differentiated Tensors does not require grad (input %zu). Call requires_grad_() on it before "
            "it is used.",
            inputs.size());
    inputs.push_back(edge_of(o));
  }
};

// One thing or a sequence of them, as a tuple.
Ref<> as_tuple(PyObject* o) {
  if (is_tensor(o) || is_gradient_edge(o) || !PySequence_Check(o)) return Ref<>::check(PyTuple_Pack(1, o));
  return Ref<>::check(PySequence_Tuple(o));
}

Ref<> inputs_as_tuple(PyObject* o, const char* who) {
  if (!is_tensor(o) && !is_gradient_edge(o) && !PySequence_Check(o))
    raise(PyExc_TypeError, "%s: inputs are Tensors, got %s. Pass a Tensor or a sequence of Tensors.", who,
          Py_TYPE(o)->tp_name);
  return as_tuple(o);
}

void add_roots(Pass& pass, PyObject* tensors, PyObject* grads) {
  Ref<> all = as_tuple(tensors), given;
  Py_ssize_t n = PyTuple_GET_SIZE(all.get());
  if (grads != Py_None) {
    given = as_tuple(grads);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given.get()); ++i)
      if (PyObject* g = PyTuple_GET_ITEM(given.get(), i); g != Py_None && !is_tensor(g))
        raise(PyExc_TypeError, "gradients can be either Tensors or None, but got %s. Pass a Tensor for output %zd.",
              Py_TYPE(g)->tp_name, i);
    if (PyTuple_GET_SIZE(given.get()) != n)
      raise(PyExc_RuntimeError, "got %zd tensors and %zd gradients. Give one for each, None for a scalar.", n,
            PyTuple_GET_SIZE(given.get()));
  }
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* t = PyTuple_GET_ITEM(all.get(), i);
    if (!is_tensor(t) && !is_gradient_edge(t))
      raise(PyExc_TypeError, "backward: starts from Tensors, got %s at index %zd.", Py_TYPE(t)->tp_name, i);
    pass.add_root(t, given ? PyTuple_GET_ITEM(given.get(), i) : Py_None);
  }
  pass.keep.push_back(std::move(all));
  if (given) pass.keep.push_back(std::move(given));
}

// None means: what `otherwise` says.
bool flag(PyObject* o, bool otherwise) {
  if (!o || o == Py_None) return otherwise;
  int truth = PyObject_IsTrue(o);
  check(truth);
  return truth;
}

PassOptions pass_options(PyObject* retain_graph, PyObject* create_graph) {
  PassOptions options;
  options.create_graph = flag(create_graph, false);
  options.retain_graph = flag(retain_graph, options.create_graph);
  return options;
}

void backward_pass(PyObject* tensors, PyObject* grads, PyObject* retain, PyObject* create, PyObject* inputs) {
  Pass pass;
  add_roots(pass, tensors, grads);
  if (inputs != Py_None) {
    Ref<> all = inputs_as_tuple(inputs, "backward");
    if (!PyTuple_GET_SIZE(all.get())) raise(PyExc_RuntimeError, "`inputs` argument to `backward()` cannot be empty.");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(all.get()); ++i) {
      PyObject* input = PyTuple_GET_ITEM(all.get(), i);
      pass.add_input(input);
      if (is_tensor(input)) retain_grad(as_tensor(input));  // of a computed one: it is asked for here
    }
    pass.keep.push_back(std::move(all));
  }
  run_backward(pass.roots, pass.inputs, pass_options(retain, create));
}

PyObject* backward_function(PyObject*, PyObject* args, PyObject* kwargs) {
  return guard([&]() -> PyObject* {
    static const char* names[] = {"tensors", "grad_tensors", "retain_graph", "create_graph", "inputs", nullptr};
    PyObject *tensors, *grads = Py_None, *retain = Py_None, *create = Py_None, *inputs = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOOO:backward", const_cast<char**>(names), &tensors, &grads,
                                     &retain, &create, &inputs))
      return nullptr;
    backward_pass(tensors, grads, retain, create, inputs);
    Py_RETURN_NONE;
  });
}

PyObject* tensor_backward(PyObject* self, PyObject* const* argv, Py_ssize_t nargs, PyObject* kwnames) {
  return guard([&]() -> PyObject* {
    static const char* const names[] = {"gradient", "retain_graph", "create_graph", "inputs"};
    PyObject* values[] = {Py_None, Py_None, Py_None, Py_None};
    if (nargs > 4)
      raise(PyExc_TypeError,
            "backward() takes at most 4 arguments (gradient, retain_graph, create_graph, inputs), got %zd", nargs);
    std::copy_n(argv, nargs, values);
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
      PyObject* key = PyTuple_GET_ITEM(kwnames, k);
      int at = 0;
      while (at < 4 && PyUnicode_CompareWithASCIIString(key, names[at])) ++at;
      if (at == 4 || at < nargs) raise(PyExc_TypeError, "backward() got an unexpected argument '%U'", key);
      values[at] = argv[nargs + k];
    }
    backward_pass(self, values[0], values[1], values[2], values[3]);
    Py_RETURN_NONE;
  });
}

PyObject* grad_function(PyObject*, PyObject* args, PyObject* kwargs) {
  return guard([&]() -> PyObject* {
    static const char* names[] = {"outputs",      "inputs",       "grad_outputs",      "retain_graph",
                                  "create_graph", "allow_unused", "materialize_grads", nullptr};
    PyObject *outputs, *inputs, *grads = Py_None, *retain = Py_None, *create = Py_None, *unused = Py_None,
                                *materialize = Py_False;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OOOOO:grad", const_cast<char**>(names), &outputs, &inputs,
                                     &grads, &retain, &create, &unused, &materialize))
      return nullptr;
    bool fill = flag(materialize, false), allow = flag(unused, fill);
    if (fill && !allow)
      raise(PyExc_ValueError,
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.");
    Pass pass;
    add_roots(pass, outputs, grads);
    Ref<> all = inputs_as_tuple(inputs, "grad");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(all.get()); ++i) pass.add_input(PyTuple_GET_ITEM(all.get(), i));
    if (pass.inputs.empty()) raise(PyExc_RuntimeError, "`inputs` argument to `grad()` cannot be empty.");
    PassOptions options = pass_options(retain, create);
    options.accumulate = false;
    auto results = run_backward(pass.roots, pass.inputs, options);
    auto tuple = Ref<>::check(PyTuple_New(static_cast<Py_ssize_t>(results.size())));
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i] && !allow)
        raise(PyExc_RuntimeError,
              "The differentiated Tensor at index %zu appears to not have been used in the graph. Set "
              "allow_unused=True if this is the "
              "desired behavior.",
              i);
      if (!results[i] && fill) {
        PyObject* o = PyTuple_GET_ITEM(all.get(), static_cast<Py_ssize_t>(i));
        Geometry g = is_tensor(o) ? geometry_of(as_tensor(o)) : output_geometry(pass.inputs[i]);
        results[i] = zeros(g.ndim, g.sizes, g.dtype, g.device);
        if (options.create_graph) as_tensor(results[i].get())->flags |= kRequiresGrad;
      }
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), results[i] ? results[i].release() : Py_NewRef(Py_None));
    }
    return tuple.release();
  });
}

PyObject* selective_pass(PyObject*, PyObject*) { return PyBool_FromLong(is_selective_pass()); }
PyObject* running_pass(PyObject*, PyObject*) { return PyLong_FromUnsignedLongLong(pass_number()); }
PyObject* reaches(PyObject*, PyObject* node) {
  if (!PyObject_TypeCheck(node, g_node_type)) return PyErr_Format(PyExc_TypeError, "pass_reaches: expected a Node");
  return PyBool_FromLong(pass_reaches(reinterpret_cast<Node*>(node)));
}

// (node, output_nr) of a tensor; the node is None where it requires no gradient.
PyObject* gradient_edge_function(PyObject*, PyObject* o) {
  return guard([&]() -> PyObject* {
    if (!is_tensor(o)) raise(PyExc_TypeError, "get_gradient_edge: expected a Tensor, got %s.", Py_TYPE(o)->tp_name);
    Edge edge = gradient_edge(as_tensor(o));
    Ref<Node> hold(edge.node);
    return Py_BuildValue("(OI)", edge.node ? object(edge.node) : Py_None, edge.index);
  });
}

// ---- attributes

PyObject* get_requires_grad(PyObject* self, void*) { return PyBool_FromLong(requires_grad(as_tensor(self))); }

int set_requires_grad(PyObject* self, PyObject* value, void*) {
  return guard(-1, [&] {
    if (!value || !PyBool_Check(value)) raise(PyExc_RuntimeError, "requires_grad must be a bool");
    Tensor* t = as_tensor(self);
    bool on = value == Py_True;
    if (on == requires_grad(t) && (!on || t->flags & kRequiresGrad)) return 0;
    if (on && !is_inexact(t->dtype))
      raise(PyExc_RuntimeError,
            "only Tensors of floating point dtype can require gradients, got %s. Convert it with .float().",
            name(t->dtype));
    if (!on && t->grad_fn)
      raise(PyExc_RuntimeError,
            "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
            "subgraph that doesn't "
            "require differentiation use var_no_grad = var.detach().");
    if (on && (t->flags & kInference) && !(*api->thread_word() & kInferenceMode))
      raise(PyExc_RuntimeError, "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
    t->flags = on ? t->flags | kRequiresGrad : t->flags & ~kRequiresGrad;
    return 0;
  });
}

PyObject* requires_grad_(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  Py_ssize_t given = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  if (given > 1 || (given > nargs && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "requires_grad")))
    return PyErr_Format(PyExc_TypeError, "requires_grad_() takes one argument, requires_grad, got %zd", given);
  if (given && !PyBool_Check(args[0]))
    return PyErr_Format(PyExc_TypeError, "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not %s",
                        Py_TYPE(args[0])->tp_name);
  return set_requires_grad(self, given ? args[0] : Py_True, nullptr) < 0 ? nullptr : Py_NewRef(self);
}

bool is_leaf(Tensor* t) { return !requires_grad(t) || !grad_fn_of(t); }

PyObject* get_grad(PyObject* self, void*) {
  Tensor* t = as_tensor(self);
  Meta* m = meta_if_any(t);
  if (m && m->grad) return Py_NewRef(m->grad);
  if (t->grad_fn && !(m && m->retains_grad) &&
      PyErr_WarnEx(
          PyExc_UserWarning,
          "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
          "populated "
          "during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use "
          ".retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access "
          "the leaf "
          "Tensor instead.",
          1) < 0)
    return nullptr;
  Py_RETURN_NONE;
}

int set_grad(PyObject* self, PyObject* value, void*) {
  return guard(-1, [&] {
    Tensor* t = as_tensor(self);
    if (!value || value == Py_None) {
      if (Meta* m = meta_if_any(t)) Py_CLEAR(m->grad);
      return 0;
    }
    if (!is_tensor(value))
      raise(PyExc_TypeError, "assigned grad expected to be a Tensor or None but got grad of type %s",
            Py_TYPE(value)->tp_name);
    Tensor* g = as_tensor(value);
    if (g == t) raise(PyExc_RuntimeError, "can't assign Variable as its own grad");
    if (g->dtype != t->dtype)
      raise(PyExc_RuntimeError,
            "attempting to assign a gradient with dtype '%s' to a tensor with dtype '%s'. The gradient must match the "
            "tensor's dtype: convert it with .to(tensor.dtype).",
            dtype_name(g->dtype), dtype_name(t->dtype));
    if (g->device != t->device)
      raise(PyExc_RuntimeError,
            "attempting to assign a gradient located on another device than the tensor's. Move it with "
            ".to(tensor.device).");
    if (g->ndim != t->ndim || !std::equal(g->sizes, g->sizes + g->ndim, t->sizes))
      raise(PyExc_RuntimeError,
            "attempting to assign a gradient of size '%S' to a tensor of size '%S'. Please ensure that the gradient "
            "and the tensor are the same size",
            size_list(g->ndim, g->sizes).get(), size_list(t->ndim, t->sizes).get());
    Ref<> old(std::exchange(meta_of(t).grad, Py_NewRef(value)));
    return 0;
  });
}

PyObject* get_grad_fn(PyObject* self, void*) {
  return guard([&] {
    Node* n = grad_fn_of(as_tensor(self));
    return Py_NewRef(n ? object(n) : Py_None);
  });
}
PyObject* get_is_leaf(PyObject* self, void*) {
  if (const Tensor* t = as_tensor(self); !t->base)
    return Py_NewRef(t->flags & kRequiresGrad && t->grad_fn ? Py_False : Py_True);
  return guard([&] { return PyBool_FromLong(is_leaf(as_tensor(self))); });
}
PyObject* get_output_nr(PyObject* self, void*) {
  return guard([&] { return PyLong_FromUnsignedLong(grad_fn_of(as_tensor(self)) ? as_tensor(self)->output_nr : 0); });
}
PyObject* get_retains_grad(PyObject* self, void*) {
  Meta* m = meta_if_any(as_tensor(self));
  return PyBool_FromLong(m && m->retains_grad);
}

// ---- methods

PyObject* retain_grad_method(PyObject* self, PyObject*) {
  return guard([&] {
    if (!requires_grad(as_tensor(self)))
      raise(PyExc_RuntimeError, "can't retain_grad on Tensor that has requires_grad=False");
    retain_grad(as_tensor(self));
    return Py_NewRef(Py_None);
  });
}

PyObject* register_hook(PyObject* self, PyObject* hook) {
  return guard([&] {
    if (!requires_grad(as_tensor(self)))
      raise(PyExc_RuntimeError, "cannot register a hook on a tensor that doesn't require gradient");
    return add_hook(tensor_hooks(as_tensor(self)), hook);
  });
}

PyObject* register_post_accumulate_grad_hook(PyObject* self, PyObject* hook) {
  return guard([&] {
    Tensor* t = as_tensor(self);
    if (!requires_grad(t))
      raise(PyExc_RuntimeError, "cannot register a hook on a tensor that doesn't require gradient");
    if (!is_leaf(t)) raise(PyExc_RuntimeError, "post accumulate grad hooks cannot be registered on non-leaf tensors");
    return add_hook(&meta_of(t).after_accumulate, hook);
  });
}

PyObject* detach(PyObject* self, PyObject*) { return api->detach(as_tensor(self)); }

PyObject* detach_(PyObject* self, PyObject*) {
  return guard([&] {
    Tensor* t = as_tensor(self);
    if (t->base)
      raise(PyExc_RuntimeError,
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
            "training, and "
            "gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be "
            "called on these "
            "gradients. To fix this error, please refer to the Optimizer.zero_grad() function in "
            "torch/optim/optimizer.py as the solution.");
    t->flags &= ~kRequiresGrad;
    t->output_nr = 0;
    Py_CLEAR(t->grad_fn);
    return Py_NewRef(self);
  });
}

#define WITH_KEYWORDS(f) reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f))

PyGetSetDef attributes[] = {
    {"requires_grad", get_requires_grad, set_requires_grad, "Whether gradients are recorded for it.", nullptr},
    {"grad", get_grad, set_grad, "The gradient that backward accumulated; None at first.", nullptr},
    {"_grad", get_grad, set_grad, "The gradient that backward accumulated; None at first.", nullptr},
    {"grad_fn", get_grad_fn, nullptr,
     "The step of backward that belongs to the operator that made the tensor; None for leaves.", nullptr},
    {"is_leaf", get_is_leaf, nullptr, "Whether it was made by the user, not by a recorded operator.", nullptr},
    {"output_nr", get_output_nr, nullptr, "Which result of grad_fn it is.", nullptr},
    {"retains_grad", get_retains_grad, nullptr, "Whether retain_grad() was called on a computed tensor.", nullptr},
    {}};

PyMethodDef methods[] = {
    {"backward", WITH_KEYWORDS(tensor_backward), METH_FASTCALL | METH_KEYWORDS,
     "backward($self, gradient=None, retain_graph=None, create_graph=False, inputs=None)\n--\n\n"
     "Computes the gradients of the leaves and adds them to their `.grad`.\n\n"
     "Args:\n    gradient: Gradient with respect to this tensor, of its shape; may be left out for one element.\n"
     "    retain_graph: Keep what the graph saved, for another pass; by default as create_graph.\n"
     "    create_graph: Record the pass itself, for higher derivatives.\n"
     "    inputs: Only these tensors get their gradient."},
    {"requires_grad_", WITH_KEYWORDS(requires_grad_), METH_FASTCALL | METH_KEYWORDS,
     "requires_grad_($self, requires_grad=True)\n--\n\nSets whether gradients are recorded for it, and returns it."},
    {"retain_grad", retain_grad_method, METH_NOARGS, "Lets backward fill in `.grad` of a computed tensor too."},
    {"register_hook", register_hook, METH_O,
     "register_hook($self, hook, /)\n--\n\nCalls hook(grad) when the gradient of the tensor is known; what it returns "
     "replaces it unless None."},
    {"register_post_accumulate_grad_hook", register_post_accumulate_grad_hook, METH_O,
     "register_post_accumulate_grad_hook($self, hook, /)\n--\n\nCalls hook(tensor) after backward added to the .grad "
     "of a leaf."},
    {"detach", detach, METH_NOARGS, "The same memory without history."},
    {"detach_", detach_, METH_NOARGS, "Takes the history off; the tensor becomes a leaf that requires no gradient."},
    {}};

PyMethodDef functions[] = {{"backward", WITH_KEYWORDS(backward_function), METH_VARARGS | METH_KEYWORDS, nullptr},
                           {"grad", WITH_KEYWORDS(grad_function), METH_VARARGS | METH_KEYWORDS, nullptr},
                           {"is_selective_pass", selective_pass, METH_NOARGS, nullptr},
                           {"running_pass", running_pass, METH_NOARGS, "Number of this thread's pass; 0: none runs."},
                           {"pass_reaches", reaches, METH_O, "Whether this thread's pass comes by a node."},
                           {"gradient_edge", gradient_edge_function, METH_O, nullptr},
                           {}};

}  // namespace

void add_tensor_attributes() {
  for (PyGetSetDef* d = attributes; d->name; ++d)
    check(api->add_method(d->name, Ref<>::check(PyDescr_NewGetSet(api->tensor_type, d)).get()));
  for (PyMethodDef* d = methods; d->ml_name; ++d)
    check(api->add_method(d->ml_name, Ref<>::check(PyDescr_NewMethod(api->tensor_type, d)).get()));
}

void init_functions(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace rl
