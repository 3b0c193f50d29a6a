#include "node.h"

#include <structmember.h>

#include <cstring>
#include <string>

#include "engine.h"

namespace rl {

PyTypeObject* g_node_type = nullptr;

// ---- memory

namespace {

constexpr int kClasses = 12;  // free lists for nodes with up to 11 * 64 bytes behind the fixed part
constexpr int kPerClass = 256;
constexpr size_t kStep = 64;
struct FreeList {
  Node* nodes[kPerClass];
  int n;
} g_free[kClasses];

uint64_t g_sequence = 0;
Node* g_dead = nullptr;  // nodes whose count reached zero while another was being destroyed
bool g_destroying = false;

size_t size_class(size_t extra) { return (extra + kStep - 1) / kStep; }

// Types made by new_node_type are all Node plus bytes behind it, so their blocks are exchangeable.
bool recyclable(PyTypeObject* type) { return type->tp_itemsize == 1; }

void destroy(Node* n) {
  for (uint32_t i = 0; i < n->nedges; ++i) Py_CLEAR(n->edges[i].node);
  n->kind->destroy(n);
  delete n->hooks;
  Py_XDECREF(n->metadata);
  Py_XDECREF(n->trace);
  PyTypeObject* type = Py_TYPE(n);
  if (recyclable(type)) {
    size_t c = static_cast<size_t>(Py_SIZE(n)) / kStep;
    if (c < kClasses && g_free[c].n < kPerClass)
      g_free[c].nodes[g_free[c].n++] = n;
    else
      PyObject_GC_Del(n);
  } else {
    type->tp_free(object(n));
  }
  Py_DECREF(type);
}

}  // namespace

Node* new_node(PyTypeObject* type, const NodeKind* kind, size_t extra) {
  size_t c = size_class(extra);
  Node* n;
  if (c < kClasses && g_free[c].n && recyclable(type)) {
    n = g_free[c].nodes[--g_free[c].n];
    Py_SET_REFCNT(n, 1);
    Py_SET_TYPE(n, type);
    Py_SET_SIZE(n, static_cast<Py_ssize_t>(c * kStep));
    Py_INCREF(type);
  } else {
    n = recyclable(type) ? PyObject_GC_NewVar(Node, type, static_cast<Py_ssize_t>(c * kStep))
                         : reinterpret_cast<Node*>(type->tp_alloc(type, 0));
    if (!n) throw PythonError();
  }
  n->kind = kind;
  std::memset(static_cast<void*>(&n->sequence), 0, sizeof(Node) - offsetof(Node, sequence));
  return n;
}

void finish_node(Node* n) {
  n->sequence = ++g_sequence;
  if (recyclable(Py_TYPE(n))) PyObject_GC_Track(n);  // tp_alloc has done it for the others
}

// A chain of a million nodes must not recurse: whoever comes first destroys all that die meanwhile.
void dealloc_node(PyObject* self) {
  auto* n = reinterpret_cast<Node*>(self);
  PyObject_GC_UnTrack(self);
  if (g_destroying) {
    n->next_dead = g_dead;
    g_dead = n;
    return;
  }
  g_destroying = true;
  destroy(n);
  while (g_dead) {
    n = g_dead;
    g_dead = n->next_dead;
    destroy(n);
  }
  g_destroying = false;
}

int traverse_node(PyObject* self, visitproc visit, void* arg) {
  auto* n = reinterpret_cast<Node*>(self);
  Py_VISIT(Py_TYPE(self));
  for (uint32_t i = 0; i < n->nedges; ++i) Py_VISIT(n->edges[i].node);
  Py_VISIT(n->metadata);
  if (n->hooks)
    if (int r = n->hooks->traverse(visit, arg)) return r;
  return n->kind->traverse(n, visit, arg);
}

int clear_node(PyObject* self) {
  auto* n = reinterpret_cast<Node*>(self);
  n->kind->release(n);
  for (uint32_t i = 0; i < n->nedges; ++i) Py_CLEAR(n->edges[i].node);
  delete std::exchange(n->hooks, nullptr);
  Py_CLEAR(n->metadata);
  return 0;
}

// ---- hooks

NodeHooks::~NodeHooks() {
  for (uint32_t i = 0; i < ntensors; ++i) {
    Py_XDECREF(tensors[i].hooks);
    Py_XDECREF(tensors[i].retain);
  }
  PyMem_Free(tensors);
  Py_XDECREF(before);
  Py_XDECREF(after);
}

NodeHooks::TensorHooks& NodeHooks::at(uint32_t index) {
  for (uint32_t i = 0; i < ntensors; ++i)
    if (tensors[i].index == index) return tensors[i];
  auto* grown = static_cast<TensorHooks*>(PyMem_Realloc(tensors, sizeof(TensorHooks) * (ntensors + 1)));
  if (!grown) throw std::bad_alloc();
  tensors = grown;
  return tensors[ntensors++] = {index, nullptr, nullptr};
}

int NodeHooks::traverse(visitproc visit, void* arg) const {
  for (uint32_t i = 0; i < ntensors; ++i) Py_VISIT(tensors[i].hooks);
  Py_VISIT(before);
  Py_VISIT(after);
  return 0;
}

NodeHooks& hooks_of(Node* n) {
  if (!n->hooks) n->hooks = new NodeHooks();
  return *n->hooks;
}

namespace {

struct Handle {
  PyObject_HEAD PyObject* hooks;
  PyObject* id;
};
PyTypeObject* g_handle_type = nullptr;

PyObject* remove_hook(PyObject* self, PyObject*) {
  auto* h = reinterpret_cast<Handle*>(self);
  if (PyDict_DelItem(h->hooks, h->id) < 0) {
    if (!PyErr_ExceptionMatches(PyExc_KeyError)) return nullptr;
    PyErr_Clear();
  }
  Py_RETURN_NONE;
}

PyObject* enter_handle(PyObject* self, PyObject*) { return Py_NewRef(self); }
PyObject* exit_handle(PyObject* self, PyObject*) { return remove_hook(self, nullptr); }

void dealloc_handle(PyObject* self) {
  auto* h = reinterpret_cast<Handle*>(self);
  PyObject_GC_UnTrack(self);
  Py_XDECREF(h->hooks);
  Py_XDECREF(h->id);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

int traverse_handle(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(reinterpret_cast<Handle*>(self)->hooks);
  return 0;
}

}  // namespace

PyObject* add_hook(PyObject** hooks, PyObject* callable) {
  static uint64_t next_id = 0;
  if (!PyCallable_Check(callable))
    raise(PyExc_TypeError, "register_hook: hook must be callable, got %R. Pass a function.", callable);
  if (!*hooks && !(*hooks = PyDict_New())) throw PythonError();
  auto handle = Ref<Handle>::check(g_handle_type->tp_alloc(g_handle_type, 0));
  handle->hooks = Py_NewRef(*hooks);
  handle->id = PyLong_FromUnsignedLongLong(next_id++);
  if (!handle->id) throw PythonError();
  check(PyDict_SetItem(*hooks, handle->id, callable));
  return object(handle.release());
}

// ---- what Python sees

namespace {

Node* as_node(PyObject* self) { return reinterpret_cast<Node*>(self); }

PyObject* node_name(PyObject* self, PyObject*) { return PyUnicode_FromString(name_of(as_node(self))); }

PyObject* node_repr(PyObject* self) { return PyUnicode_FromFormat("<%s object at %p>", name_of(as_node(self)), self); }

PyObject* next_functions(PyObject* self, void*) {
  Node* n = as_node(self);
  PyObject* all = PyTuple_New(n->nedges);
  for (uint32_t i = 0; all && i < n->nedges; ++i) {
    PyObject* node = n->edges[i].node ? object(n->edges[i].node) : Py_None;
    PyObject* pair = Py_BuildValue("(OI)", node, n->edges[i].index);
    if (!pair)
      Py_CLEAR(all);
    else
      PyTuple_SET_ITEM(all, i, pair);
  }
  return all;
}

PyObject* metadata(PyObject* self, void*) {
  Node* n = as_node(self);
  if (!n->metadata && !(n->metadata = PyDict_New())) return nullptr;
  return Py_NewRef(n->metadata);
}

// ((shape, dtype), ...) of the tensors that its operator made.
PyObject* made(PyObject* self, PyObject*) {
  return guard([&] {
    Node* n = as_node(self);
    auto all = Ref<>::check(PyTuple_New(n->noutputs));
    for (uint32_t i = 0; i < n->noutputs; ++i) {
      const Geometry g = output_geometry({n, i});
      auto shape = Ref<>::check(api->arg_to_object(arg(g.sizes, g.sizes ? g.ndim : 0)));
      auto dtype = Ref<>::check(api->arg_to_object(arg(g.dtype)));
      PyTuple_SET_ITEM(all.get(), i, Ref<>::check(PyTuple_Pack(2, shape.get(), dtype.get())).release());
    }
    return all.release();
  });
}

// The lines of the traceback of the forward call, or None.
PyObject* trace(PyObject* self, PyObject*) {
  PyObject* lines = as_node(self)->trace;
  return Py_NewRef(lines ? lines : Py_None);
}

PyObject* sequence_nr(PyObject* self, PyObject*) { return PyLong_FromUnsignedLongLong(as_node(self)->sequence); }

PyObject* register_hook(PyObject* self, PyObject* hook) {
  return guard([&] { return add_hook(&hooks_of(as_node(self)).after, hook); });
}
PyObject* register_prehook(PyObject* self, PyObject* hook) {
  return guard([&] { return add_hook(&hooks_of(as_node(self)).before, hook); });
}

// grad_fn(*grads): the node's own step of backward, outside of any pass.
PyObject* call_node(PyObject* self, PyObject* args, PyObject*) {
  return guard([&] { return apply_node(as_node(self), args); });
}

PyMethodDef node_methods[] = {
    {"name", node_name, METH_NOARGS, "The name of the operator's gradient, as AddBackward0."},
    {"register_hook", register_hook, METH_O,
     "Calls hook(grad_inputs, grad_outputs) after this node ran; what it returns replaces grad_inputs unless None."},
    {"register_prehook", register_prehook, METH_O,
     "Calls hook(grad_outputs) before this node runs; what it returns replaces grad_outputs unless None."},
    {"_made", made, METH_NOARGS, "((shape, dtype), ...) of the tensors that its operator made."},
    {"_trace", trace, METH_NOARGS, "The lines of the traceback of the forward call in anomaly mode, else None."},
    {"_sequence_nr", sequence_nr, METH_NOARGS, "Position in the order in which nodes were made."},
    {}};
PyGetSetDef node_attributes[] = {
    {"next_functions", next_functions, nullptr,
     "((node or None, index of its input), ...), one for each input of the operator.", nullptr},
    {"metadata", metadata, nullptr, "A dict for the user's own notes.", nullptr},
    {}};
PyType_Slot node_slots[] = {{Py_tp_methods, node_methods},
                            {Py_tp_getset, node_attributes},
                            {Py_tp_repr, reinterpret_cast<void*>(node_repr)},
                            {Py_tp_call, reinterpret_cast<void*>(call_node)},
                            {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_node)},
                            {Py_tp_traverse, reinterpret_cast<void*>(traverse_node)},
                            {Py_tp_clear, reinterpret_cast<void*>(clear_node)},
                            {Py_tp_doc, const_cast<char*>("A step of backward: what a tensor's `grad_fn` is.")},
                            {}};
PyType_Spec node_spec = {
    "rushlight.autograd.graph.Node", sizeof(Node), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, node_slots};

PyMethodDef handle_methods[] = {{"remove", remove_hook, METH_NOARGS, "Takes the hook off again; twice does no harm."},
                                {"__enter__", enter_handle, METH_NOARGS, nullptr},
                                {"__exit__", exit_handle, METH_VARARGS, nullptr},
                                {}};
PyMemberDef handle_members[] = {{"id", T_OBJECT, offsetof(Handle, id), READONLY, "Key of the hook."}, {}};
PyType_Slot handle_slots[] = {
    {Py_tp_methods, handle_methods},
    {Py_tp_members, handle_members},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_handle)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse_handle)},
    {Py_tp_doc, const_cast<char*>("What registering a hook returns: remove() takes it off again.")},
    {}};
PyType_Spec handle_spec = {"rushlight.autograd.RemovableHandle", sizeof(Handle), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, handle_slots};

}  // namespace

const char* name_of(const Node* n) {
  const char* name = Py_TYPE(n)->tp_name;
  const char* dot = std::strrchr(name, '.');
  return dot ? dot + 1 : name;
}

PyTypeObject* new_node_type(const char* name) {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc_node)},
                         {Py_tp_traverse, reinterpret_cast<void*>(traverse_node)},
                         {Py_tp_clear, reinterpret_cast<void*>(clear_node)},
                         {}};
  std::string full = std::string("rushlight.autograd.graph.") + name;
  PyType_Spec spec = {full.c_str(), sizeof(Node), 1,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  return reinterpret_cast<PyTypeObject*>(Ref<>::check(PyType_FromSpecWithBases(&spec, object(g_node_type))).release());
}

void init_node_type(PyObject* module) {
  g_node_type = reinterpret_cast<PyTypeObject*>(Ref<>::check(PyType_FromSpec(&node_spec)).release());
  g_handle_type = reinterpret_cast<PyTypeObject*>(Ref<>::check(PyType_FromSpec(&handle_spec)).release());
  check(PyModule_AddObjectRef(module, "Node", object(g_node_type)));
  check(PyModule_AddObjectRef(module, "RemovableHandle", object(g_handle_type)));
}

}  // namespace rl
