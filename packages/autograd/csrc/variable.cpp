#include "variable.h"

#include <algorithm>

#include "call.h"
#include "rule.h"
#include "views.h"

namespace rl {

namespace {

PyTypeObject* g_meta_type = nullptr;
PyTypeObject* g_accumulate_type = nullptr;

void track(Tensor* t) {
  if (!PyObject_GC_IsTracked(object(t))) PyObject_GC_Track(object(t));
}

}  // namespace

// ---- Meta

Meta& meta_of(Tensor* t) {
  if (!t->autograd) {
    auto* m = PyObject_GC_New(Meta, g_meta_type);
    if (!m) throw PythonError();
    m->grad = nullptr;
    m->accumulate = m->spare = nullptr;
    m->hooks = m->after_accumulate = m->tangent = nullptr;
    m->tangent_level = 0;
    m->retains_grad = false;
    PyObject_GC_Track(object(m));
    t->autograd = object(m);
    track(t);
  }
  return *meta_if_any(t);
}

namespace {

int clear_meta(PyObject* self) {
  auto* m = reinterpret_cast<Meta*>(self);
  Py_CLEAR(m->grad);
  Py_CLEAR(m->hooks);
  Py_CLEAR(m->after_accumulate);
  Py_CLEAR(m->tangent);
  return 0;
}

void dealloc_meta(PyObject* self) {
  PyObject_GC_UnTrack(self);
  clear_meta(self);
  if (Node* spare = reinterpret_cast<Meta*>(self)->spare) {
    Py_DECREF(Py_TYPE(spare));
    PyObject_GC_Del(spare);
  }
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

int traverse_meta(PyObject* self, visitproc visit, void* arg) {
  auto* m = reinterpret_cast<Meta*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(m->grad);
  Py_VISIT(m->hooks);
  Py_VISIT(m->after_accumulate);
  Py_VISIT(m->tangent);
  return 0;
}

PyType_Slot meta_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc_meta)},
                            {Py_tp_traverse, reinterpret_cast<void*>(traverse_meta)},
                            {Py_tp_clear, reinterpret_cast<void*>(clear_meta)},
                            {}};
PyType_Spec meta_spec = {"rushlight.autograd._C._Meta", sizeof(Meta), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, meta_slots};

}  // namespace

// ---- AccumulateGrad

namespace {

void accumulate_backward(Node* n, PyObject** grads, PyObject**, const Needs&) {
  auto* a = static_cast<AccumulateNode*>(n);
  if (grads[0] && requires_grad(a->tensor)) accumulate(a->tensor, grads[0], true);  // it may not any more
}

int traverse_accumulate(Node* n, visitproc visit, void* arg) {
  Py_VISIT(static_cast<AccumulateNode*>(n)->tensor);
  return 0;
}

void release_nothing(Node*) {}

void destroy_accumulate(Node* n) {
  auto* a = static_cast<AccumulateNode*>(n);
  if (Meta* m = meta_if_any(a->tensor))
    if (m->accumulate == n) m->accumulate = nullptr;
  Py_DECREF(a->tensor);
}

const NodeKind accumulate_kind = {accumulate_backward, release_nothing, traverse_accumulate, destroy_accumulate, false};

Node* accumulate_node(Tensor* t) {  // new reference
  Meta& m = meta_of(t);
  if (m.accumulate) {
    Py_INCREF(m.accumulate);
    return m.accumulate;
  }
  AccumulateNode* n;
  if (m.spare) {
    n = static_cast<AccumulateNode*>(std::exchange(m.spare, nullptr));
    Py_SET_REFCNT(n, 1);
  } else {
    n = new_node<AccumulateNode>(g_accumulate_type, &accumulate_kind);
  }
  n->tensor = t;
  Py_INCREF(t);
  n->noutputs = 1;
  m.accumulate = n;
  finish_node(n);
  return n;
}

// A leaf that is used again and again, as a parameter is, keeps its node for the next time.
void dealloc_accumulate(PyObject* self) {
  auto* n = reinterpret_cast<AccumulateNode*>(self);
  Meta* m = meta_if_any(n->tensor);
  if (!m || m->spare || n->hooks || n->metadata || n->trace) return dealloc_node(self);
  PyObject_GC_UnTrack(self);
  if (m->accumulate == n) m->accumulate = nullptr;
  m->spare = n;
  Py_DECREF(n->tensor);
}

PyObject* accumulate_variable(PyObject* self, void*) {
  return Py_NewRef(object(reinterpret_cast<AccumulateNode*>(self)->tensor));
}

PyGetSetDef accumulate_attributes[] = {{"variable", accumulate_variable, nullptr, "The leaf.", nullptr}, {}};

// Whether nobody but the engine can see the gradient or its memory, so that it may become .grad itself.
bool is_private(const Tensor* t) {
  return Py_REFCNT(t) == 1 && t->storage && t->storage->refs == 1 && !t->storage->owner && !t->array && !t->base &&
         !t->weakrefs;
}

}  // namespace

bool is_accumulate(const Node* n) { return n->kind == &accumulate_kind; }

Ref<> sum_gradients(Tensor* a, Tensor* b) {
  // A dense and a sparse gradient add up in this order only.
  if ((a->flags & kLayout) && !(b->flags & kLayout)) std::swap(a, b);
  return call(ops::add, {arg(a), arg(b)});
}

void accumulate(Tensor* leaf, PyObject* grad, bool may_steal) {
  Meta& m = meta_of(leaf);
  Tensor* g = as_tensor(grad);
  if (!m.grad) {
    // With gradients on, the history of .grad must stay apart from that of the incoming gradient.
    Ref<> kept = !grad_enabled() && may_steal && is_private(g) && g->contiguous() ? Ref<>::borrow(grad)
                                                                                  : call(ops::clone, {arg(g)});
    m.grad = kept.release();
  } else if (grad_enabled() || as_tensor(m.grad)->flags & kLayout) {
    Ref<> sum = sum_gradients(as_tensor(m.grad), g);
    std::swap(m.grad, *reinterpret_cast<PyObject**>(&sum));
  } else {
    Ref<> hold = Ref<>::borrow(m.grad);
    call_inplace(ops::add, {arg(as_tensor(m.grad)), arg(g)});
  }
  if (m.after_accumulate) {
    Ref<> hooks = Ref<>::check(PyDict_Values(m.after_accumulate));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(hooks.get()); ++i)
      if (auto value = Ref<>::check(PyObject_CallOneArg(PyList_GET_ITEM(hooks.get(), i), object(leaf)));
          value.get() != Py_None && !is_tensor(value.get()))
        raise(PyExc_TypeError, "expected Variable, but hook returned '%s'. Return None.",
              Py_TYPE(value.get())->tp_name);
  }
}

// ---- history

namespace {

[[noreturn]] void refuse_stale_view() {
  raise(PyExc_RuntimeError,
        "A view was created in no_grad mode and its base or another view of its base has been modified inplace with "
        "grad mode enabled. Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify "
        "your code by moving both the view and the inplace either both inside the no_grad block (if you don't want the "
        "inplace to be tracked) or both outside (if you want the inplace to be tracked).");
}

}  // namespace

Node* grad_fn_of(Tensor* t) {
  auto* n = reinterpret_cast<Node*>(t->grad_fn);
  if (!t->base || !(t->base->flags & kRequiresGrad) || !is_inexact(t->dtype)) return n;
  if (t->flags & kNoGradView) {
    if (t->output_nr != t->storage->version) refuse_stale_view();
    return n;
  }
  if (n && n->version == t->storage->version) return n;
  // The base was written to since the view was made (or came to require grad): the view is a function of the base of
  // now.
  if (!n && !t->base->grad_fn) return nullptr;
  Ref<Node> now(view_of_base(t));
  set_history(t, now.get(), 0);
  return now.get();
}

Edge gradient_edge(Tensor* t) {
  if (!requires_grad(t)) return {};
  if (Node* n = t->base ? grad_fn_of(t) : reinterpret_cast<Node*>(t->grad_fn)) {
    Py_INCREF(n);
    return {n, t->output_nr};
  }
  if (!(t->flags & kRequiresGrad)) return {};  // a view that only its base makes require it
  return {accumulate_node(t), 0};
}

void set_history(Tensor* t, Node* n, uint32_t output_nr) {
  PyObject* old = t->grad_fn;
  uint32_t old_nr = t->output_nr;
  Py_INCREF(n);
  t->grad_fn = object(n);
  t->output_nr = output_nr;
  t->flags = (t->flags & ~kNoGradView) | kRequiresGrad;
  track(t);
  if (Meta* m = meta_if_any(t);
      m && m->retains_grad && old) {  // retain_grad follows the tensor, hooks stay with the node
    auto& from = hooks_of(reinterpret_cast<Node*>(old)).at(old_nr);
    std::swap(hooks_of(n).at(output_nr).retain, from.retain);
  }
  Py_XDECREF(old);
}

Refusal refusal_of_write(const Tensor* t) {
  if (!requires_grad(t)) return Refusal::None;
  if (!t->base) return t->grad_fn ? Refusal::None : Refusal::Leaf;
  if (t->flags & kNoGradView) return Refusal::NoGradView;
  if (!t->grad_fn && !requires_grad(t->base)) return Refusal::ViewOfLeaf;  // requires_grad_() of a view of plain memory
  if (!t->base->grad_fn && (t->base->flags & kRequiresGrad)) return Refusal::ViewOfLeaf;
  auto* n = reinterpret_cast<Node*>(t->grad_fn);
  return n && n->noutputs > 1 ? Refusal::OneOfSeveral : Refusal::None;
}

void refuse_write(const Tensor* t, Refusal refusal, const std::string& writer) {
  const char* who = writer.c_str();
  switch (refusal) {
    case Refusal::NoGradView:
      raise(
          PyExc_RuntimeError,
          "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that this "
          "use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view "
          "and the inplace either both inside the no_grad block (if you don't want the inplace to be tracked) or both "
          "outside (if you want the inplace to be tracked). (%s)",
          who);
    case Refusal::ViewOfLeaf:
      raise(PyExc_RuntimeError,
            "a view of a leaf Variable that requires grad is being used in an in-place operation. (%s) Write inside of "
            "no_grad, or to a clone.",
            who);
    case Refusal::OneOfSeveral:
      raise(PyExc_RuntimeError,
            "Output %u of %s is a view and is being modified inplace. This view is the output of a function that "
            "returns multiple views. Such functions do not allow the output views to be modified inplace. You should "
            "replace the inplace operation by an out-of-place one. (%s)",
            t->output_nr, name_of(reinterpret_cast<const Node*>(t->grad_fn)), who);
    default:
      raise(PyExc_RuntimeError,
            "a leaf Variable that requires grad is being used in an in-place operation. (%s) Write inside of no_grad, "
            "or use the operator that returns a new tensor.",
            who);
  }
}

void rebase_history(Tensor* t, Node* n) {
  if (!t->base) {
    set_history(t, n, 0);
    return;
  }
  Ref<Node> whole(copy_slices(t, n));
  set_history(t->base, whole.get(), 0);
  Ref<Node> part(view_of_base(t));
  set_history(t, part.get(), 0);
}

PyObject** tensor_hooks(Tensor* t) {
  if (Node* n = grad_fn_of(t)) return &hooks_of(n).at(t->output_nr).hooks;
  return &meta_of(t).hooks;
}

void retain_grad(Tensor* t) {
  Node* n = grad_fn_of(t);
  if (!n) return;  // a leaf's grad is kept anyway
  Meta& m = meta_of(t);
  if (m.retains_grad) return;
  hooks_of(n).at(t->output_nr).retain = Ref<>::check(PyWeakref_NewRef(object(t), nullptr)).release();
  m.retains_grad = true;
}

void init_variable_types(PyObject* module) {
  g_meta_type = reinterpret_cast<PyTypeObject*>(Ref<>::check(PyType_FromSpec(&meta_spec)).release());
  g_accumulate_type = new_node_type("AccumulateGrad");
  g_accumulate_type->tp_dealloc = dealloc_accumulate;
  for (PyGetSetDef* d = accumulate_attributes; d->name; ++d) {
    auto descriptor = Ref<>::check(PyDescr_NewGetSet(g_accumulate_type, d));
    check(PyDict_SetItemString(g_accumulate_type->tp_dict, d->name, descriptor.get()));
  }
}

}  // namespace rl
