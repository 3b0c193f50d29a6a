// The extension rushlight.nn._C.
#include "bind.h"
#include "module_base.h"

namespace {

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "rushlight.nn._C", nullptr, -1, nullptr};

bool register_kernels() {
  return rl::register_attention() && rl::register_bag() && rl::register_conv() && rl::register_ctc() &&
         rl::register_image() && rl::register_linear() && rl::register_loss() && rl::register_norm() &&
         rl::register_optim() && rl::register_pad() && rl::register_pool() && rl::register_rnn();
}

}  // namespace

PyMODINIT_FUNC PyInit__C() {
  if (rl::import_api("rushlight-nn") < 0) return nullptr;
  rl::runtime = {rl::api->parallel_for, rl::api->allocate,    rl::api->deallocate,
                 rl::api->gemm,         rl::api->num_threads, rl::api->batch_invariant};
  PyObject* extension = PyModule_Create(&definition);
  if (!extension) return nullptr;
  if (!rl::add_module_base(extension) || !register_kernels()) {
    Py_DECREF(extension);
    return nullptr;
  }
  return extension;
}
