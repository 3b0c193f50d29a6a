// Nodes of the graph that backward walks. A node is the Python object `grad_fn`.
#pragma once
#include "object.h"

namespace rl {

struct Node;
struct Task;

// Where a gradient goes: gradient `index` of `node`; nowhere when node is null.
struct Edge {
  Node* node = nullptr;
  uint32_t index = 0;
};

// Shape and type of a tensor that need not live any more. Strides may be absent.
struct Geometry {
  DType dtype;
  Device device;
  uint8_t ndim;
  const int64_t* sizes;
  const int64_t* strides;
  int64_t offset;
};
inline Geometry geometry_of(const Tensor* t) { return {t->dtype, t->device, t->ndim, t->sizes, t->strides, t->offset}; }

// Which gradients a running backward pass wants from a node.
struct Needs {
  const Task* task;
  const Node* node;
  bool operator()(uint32_t edge) const;
};

// What the kinds of nodes do.
struct NodeKind {
  // grads: noutputs borrowed tensors or nulls; results: nedges new references or nulls. Throws.
  void (*backward)(Node*, PyObject** grads, PyObject** results, const Needs&);
  void (*release)(Node*);                        // drops saved values before the node dies
  int (*traverse)(Node*, visitproc, void* arg);  // saved values only
  void (*destroy)(Node*);                        // everything of its own, saved values included
  bool runs_without_grads;                       // also when every incoming gradient is undefined
};

// Hooks that users attached to a node or to the tensors that it made.
struct NodeHooks {
  struct TensorHooks {
    uint32_t index;
    PyObject* hooks;   // dict: id -> callable on the gradient, or null
    PyObject* retain;  // weak reference to the tensor whose .grad is to be set, or null
  };
  TensorHooks* tensors = nullptr;
  uint32_t ntensors = 0;
  PyObject* before = nullptr;  // dict: id -> callable(grad_outputs)
  PyObject* after = nullptr;   // dict: id -> callable(grad_inputs, grad_outputs)
  ~NodeHooks();
  TensorHooks& at(uint32_t index);
  int traverse(visitproc visit, void* arg) const;
};

struct Node {
  PyObject_VAR_HEAD  // ob_size: bytes behind the fixed part
      const NodeKind* kind;
  uint64_t sequence;  // greater than that of every node its edges lead to
  union {
    Task* task;       // the backward pass that has a state for this node
    Node* next_dead;  // while it waits to be destroyed
  };
  uint32_t slot;     // of that state
  uint32_t version;  // of the storage of its first output, when it was made
  uint32_t nedges, noutputs;
  Edge* edges;        // owned
  Geometry* outputs;  // of the tensors that it made
  NodeHooks* hooks;
  PyObject* metadata;
  PyObject* trace;  // where the forward operator was called (anomaly mode)
};

extern PyTypeObject* g_node_type;

// A node of `type` with `extra` bytes behind its fixed part; fields below kind are zero. Not yet tracked by the
// collector.
Node* new_node(PyTypeObject* type, const NodeKind* kind, size_t extra);
// Gives the sequence number: call when the edges are there.
void finish_node(Node*);
template <class T>
T* new_node(PyTypeObject* type, const NodeKind* kind, size_t extra = 0) {
  return static_cast<T*>(new_node(type, kind, sizeof(T) - sizeof(Node) + extra));
}
// A Python type for nodes of one operator.
PyTypeObject* new_node_type(const char* name);
const char* name_of(const Node*);
NodeHooks& hooks_of(Node*);

void init_node_type(PyObject* module);

// The slots that node types of other files share.
int traverse_node(PyObject*, visitproc, void*);
int clear_node(PyObject*);
void dealloc_node(PyObject*);

// A handle with remove(), for a callable that was added to `hooks`.
PyObject* add_hook(PyObject** hooks, PyObject* callable);

}  // namespace rl
