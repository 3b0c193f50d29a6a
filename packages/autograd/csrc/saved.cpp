#include "saved.h"

#include <string>
#include <vector>

#include "forward.h"

namespace rl {

thread_local bool t_saved_hooks = false;

namespace {

struct Packed {
  PyObject_HEAD PyObject* value;  // what the pack hook returned
  PyObject* unpack;
  Node* maker;
  uint32_t output_nr;
};
PyTypeObject* g_packed_type = nullptr;

struct Hooks {
  Ref<> pack, unpack;
};
thread_local std::vector<Hooks> t_hooks;
thread_local std::string t_disabled;  // why hooks are refused; empty: they are not

int clear_packed(PyObject* self) {
  auto* p = reinterpret_cast<Packed*>(self);
  Py_CLEAR(p->value);
  Py_CLEAR(p->unpack);
  Py_CLEAR(p->maker);
  return 0;
}

void dealloc_packed(PyObject* self) {
  PyObject_GC_UnTrack(self);
  clear_packed(self);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

int traverse_packed(PyObject* self, visitproc visit, void* arg) {
  auto* p = reinterpret_cast<Packed*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(p->value);
  Py_VISIT(p->unpack);
  Py_VISIT(p->maker);
  return 0;
}

PyType_Slot packed_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc_packed)},
                              {Py_tp_traverse, reinterpret_cast<void*>(traverse_packed)},
                              {Py_tp_clear, reinterpret_cast<void*>(clear_packed)},
                              {}};
PyType_Spec packed_spec = {"rushlight.autograd._C._Packed", sizeof(Packed), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, packed_slots};

PyObject* push_saved_hooks(PyObject*, PyObject* args) {
  return guard([&]() -> PyObject* {
    PyObject *pack, *unpack;
    if (!PyArg_ParseTuple(args, "OO", &pack, &unpack)) return nullptr;
    if (!t_disabled.empty()) raise(PyExc_RuntimeError, "%s", t_disabled.c_str());
    t_hooks.push_back({Ref<>::borrow(pack), Ref<>::borrow(unpack)});
    t_saved_hooks = true;
    return Py_NewRef(Py_None);
  });
}

PyObject* pop_saved_hooks(PyObject*, PyObject*) {
  if (!t_hooks.empty()) {
    Hooks last = std::move(t_hooks.back());
    t_hooks.pop_back();
  }
  t_saved_hooks = !t_hooks.empty();
  Py_RETURN_NONE;
}

// disable_saved_hooks(message or None): what was there before.
PyObject* disable_saved_hooks(PyObject*, PyObject* message) {
  return guard([&] {
    if (message != Py_None && !t_hooks.empty()) raise(PyExc_RuntimeError, "%s", PyUnicode_AsUTF8(message));
    Ref<> before = t_disabled.empty() ? Ref<>::borrow(Py_None) : Ref<>::check(PyUnicode_FromString(t_disabled.c_str()));
    t_disabled = message == Py_None ? "" : PyUnicode_AsUTF8(message);
    return before.release();
  });
}

PyObject* increment_version(PyObject*, PyObject* o) {
  return guard([&] {
    if (!is_tensor(o)) raise(PyExc_TypeError, "increment_version: expected a Tensor, got %s.", Py_TYPE(o)->tp_name);
    ++as_tensor(o)->storage->version;
    return Py_NewRef(Py_None);
  });
}

// ---- what runs before in-place writes

constexpr uint32_t kWatchWrites = kFirstFreeThreadBit << 2;
thread_local PyObject* t_before_write = nullptr;

PyObject* announce_write(Call& c, void*) {
  return guard([&]() -> PyObject* {
    {
      ThreadBitsScope quiet(kNoGrad, kWatchWrites);
      const auto announce = [](PyObject* o) { Ref<>::check(PyObject_CallOneArg(t_before_write, o)); };
      for (int i = 0; i < c.op->nparams; ++i)
        if (c.args[i].is_tensor() && (c.op->params[i].is_write || (c.inplace && i == 0)))
          announce(object(c.args[i].tensor));
      if (c.out && is_tensor(c.out)) announce(c.out);
      if (c.out && PyTuple_Check(c.out))
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(c.out); ++i) announce(PyTuple_GET_ITEM(c.out, i));
    }
    return api->redispatch(c);
  });
}

// set_before_write(callable on a tensor, or None): the one before.
PyObject* set_before_write(PyObject*, PyObject* callable) {
  PyObject* before = t_before_write ? t_before_write : Py_NewRef(Py_None);
  t_before_write = callable == Py_None ? nullptr : Py_NewRef(callable);
  uint32_t& word = *api->thread_word();
  word = t_before_write ? word | kWatchWrites : word & ~kWatchWrites;
  return before;
}

PyMethodDef functions[] = {
    {"set_before_write", set_before_write, METH_O, "What this thread calls with tensors before they are written to."},
    {"increment_version", increment_version, METH_O, "Counts as an in-place write."},
    {"push_saved_hooks", push_saved_hooks, METH_VARARGS, "Installs pack and unpack hooks on this thread."},
    {"pop_saved_hooks", pop_saved_hooks, METH_NOARGS, "Takes the last pair off again."},
    {"disable_saved_hooks", disable_saved_hooks, METH_O,
     "Refuses hooks with a message (None: allows); the one before."},
    {}};

}  // namespace

void check_can_be_saved(const Tensor* t) {
  if (t->flags & kInference)
    raise(
        PyExc_RuntimeError,
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
        "computation tracked "
        "by autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use "
        "`torch.no_grad()` instead of `torch.inference_mode()`.");
}

bool is_packed(PyObject* o) { return Py_IS_TYPE(o, g_packed_type); }

Ref<> with_history(Tensor* t, Node* node, uint32_t output_nr) {
  auto again = Ref<>::check(api->detach(t));
  set_history(as_tensor(again.get()), node, output_nr);
  if (t->flags & kDual)
    if (Ref<> tangent = tangent_of(t)) set_tangent(as_tensor(again.get()), tangent);
  return again;
}

PyObject* pack_saved(Tensor* t, Edge history) {
  const Hooks hooks = t_hooks.back();
  return pack_saved(t, history, hooks.pack, hooks.unpack);
}

PyObject* pack_saved(Tensor* t, Edge history, const Ref<>& pack, const Ref<>& unpack) {
  Ref<Node> maker(history.node);
  uint32_t version = t->storage->version;
  auto plain = Ref<>::check(api->detach(t));
  Ref<> value;
  {
    ThreadBitsScope unrecorded(kNoGrad, 0);
    const bool others = std::exchange(t_saved_hooks, false);  // what the hook itself computes is not packed
    value = Ref<>(PyObject_CallOneArg(pack.get(), plain.get()));
    t_saved_hooks = others;
  }
  if (!value) throw PythonError();
  if (t->storage->version != version)
    raise(PyExc_RuntimeError,
          "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not be "
          "modified by in-place operations as this can lead to unexpected side-effects. Make a clone in the hook.");
  auto packed = Ref<Packed>::check(g_packed_type->tp_alloc(g_packed_type, 0));
  packed->value = value.release();
  packed->unpack = Ref<>(unpack).release();
  packed->maker = maker.release();
  packed->output_nr = history.index;
  return object(packed.release());
}

Ref<> unpack_saved(PyObject* o) {
  auto* p = reinterpret_cast<Packed*>(o);
  Ref<> keep = Ref<>::borrow(o), value;
  {
    ThreadBitsScope unrecorded(kNoGrad, 0);
    value = Ref<>::check(PyObject_CallOneArg(p->unpack, p->value));
  }
  if (!is_tensor(value.get()))
    raise(PyExc_TypeError,
          "Output of saved tensor unpack_hook expected to be a Tensor but got result of type %s. Return a Tensor.",
          Py_TYPE(value.get())->tp_name);
  return p->maker && grad_enabled() ? with_history(as_tensor(value.get()), p->maker, p->output_nr) : value;
}

void register_write_layer() {
  const Layer layer = {"writes", 140, kWatchWrites, 0, announce_write, nullptr, true};
  check(api->register_layer(&layer));
}

void init_saved(PyObject* module) {
  g_packed_type = reinterpret_cast<PyTypeObject*>(Ref<>::check(PyType_FromSpec(&packed_spec)).release());
  check(PyModule_AddFunctions(module, functions));
}

}  // namespace rl
