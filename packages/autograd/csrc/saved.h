// Hooks on what is saved for backward: pack and unpack functions that users install for a scope.
#pragma once
#include "node.h"

namespace rl {

// Whether this thread's innermost scope has hooks, so that what is saved goes through pack_saved.
#ifdef __GLIBC__                            // others do not take it from libraries that are loaded later
__attribute__((tls_model("initial-exec")))  // read in every recorded call
#endif
extern thread_local bool t_saved_hooks;

// What the pack hook makes of a tensor, with `history`, the edge of its gradient, which it takes over (null: none).
// New reference.
PyObject* pack_saved(Tensor*, Edge history);
PyObject* pack_saved(Tensor*, Edge history, const Ref<>& pack, const Ref<>& unpack);
// The tensor again; with its history where gradients are recorded.
Ref<> unpack_saved(PyObject* packed);
bool is_packed(PyObject*);
// Refuses tensors of inference mode.
void check_can_be_saved(const Tensor*);
// The same memory as `t`, as result `output_nr` of `node`.
Ref<> with_history(Tensor* t, Node* node, uint32_t output_nr);

void register_write_layer();
void init_saved(PyObject* module);

}  // namespace rl
