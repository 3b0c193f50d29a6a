// What autograd knows of a tensor: its gradient, where its gradient comes from, and how in-place writes change that.
#pragma once
#include <string>

#include "node.h"

namespace rl {

// Behind Tensor::autograd, made when something is to be kept there.
struct Meta {
  PyObject_HEAD PyObject* grad;
  Node* accumulate;  // not owned: the live AccumulateGrad node of a leaf
  Node* spare;       // owned: one that died, to be used again
  PyObject* hooks;   // of a leaf; a computed tensor's are on its node
  PyObject* after_accumulate;
  PyObject* tangent;       // of forward mode, in the level
  uint64_t tangent_level;  // of this number
  bool retains_grad;
};

// The node that adds to the .grad of a leaf.
struct AccumulateNode : Node {
  Tensor* tensor;  // owned
};

inline Meta* meta_if_any(const Tensor* t) { return reinterpret_cast<Meta*>(t->autograd); }
Meta& meta_of(Tensor*);

// grad_fn, brought up to date where the base of a view was written to; null for leaves. Borrowed. Refuses
// a view made in no_grad whose base was written to since.
Node* grad_fn_of(Tensor*);
// Where the gradient of the tensor goes; the node is a new reference, null when it requires none.
Edge gradient_edge(Tensor*);

void set_history(Tensor*, Node*, uint32_t output_nr);
// The same after an in-place write by `node`, whose first edge is the tensor's gradient edge of before.
void rebase_history(Tensor*, Node*);
// Why a tensor may not be written to in place: leaves, views of leaves and views that cannot be differentiated.
enum class Refusal { None, NoGradView, ViewOfLeaf, OneOfSeveral, Leaf };
Refusal refusal_of_write(const Tensor*);
[[noreturn]] void refuse_write(const Tensor*, Refusal, const std::string& writer);

bool is_accumulate(const Node*);
// The tensor's hooks on its gradient, where they are kept: with a leaf, or on the node that made it.
PyObject** tensor_hooks(Tensor*);
void retain_grad(Tensor*);
Ref<> sum_gradients(Tensor* a, Tensor* b);
void accumulate(Tensor* leaf, PyObject* grad, bool may_steal);

void init_variable_types(PyObject* module);

}  // namespace rl
