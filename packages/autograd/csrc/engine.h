// Backward passes.
#pragma once
#include <vector>

#include "variable.h"

namespace rl {

struct Root {
  Edge edge;       // node owned by the caller
  PyObject* grad;  // borrowed
};

struct PassOptions {
  bool retain_graph = false;
  bool create_graph = false;
  bool accumulate = true;  // into .grad; otherwise gradients of `inputs` are returned
};

// Runs backward from the roots. Without inputs every leaf gets its gradient; with inputs, whose nodes are the caller's,
// only these do. Returns the captured gradients, null where there is none.
std::vector<Ref<>> run_backward(const std::vector<Root>& roots, const std::vector<Edge>& inputs,
                                const PassOptions& options);

// About the innermost pass of this thread: whether it runs for given inputs only, its number (0: there is none), and
// whether it comes by a node.
bool is_selective_pass();
uint64_t pass_number();
bool pass_reaches(const Node*);

// One node on its own: the gradients of its inputs as a tuple, or one if there is one.
PyObject* apply_node(Node*, PyObject* grads);

// Shape and type that the gradient at an edge must have.
Geometry output_geometry(const Edge&);
// Makes `grad` fit: summed to the shape, cast to the dtype, real where the tensor is.
Ref<> fit_gradient(PyObject* grad, const Geometry& like, const Node* from, uint32_t index);

// Errors about saved tensors: written to since, or released after a first backward.
void check_saved_version(const Tensor*, uint32_t saved_version, const char* maker, uint32_t output_nr);
[[noreturn]] void raise_released(const Node*);

// A tuple of them, with None for nulls.
Ref<> tuple_or_none(PyObject* const* items, uint32_t n);
Ref<> zeros(int ndim, const int64_t* sizes, DType, Device);
// A vector of n zeros of the dtype and device of `like`; where that is batched, one for each entry.
Ref<> zeros_beside(Tensor* like, int64_t n);

}  // namespace rl
