// rushlight.special._C: hands the loops of the special functions to core.
#include <rushlight/api.h>

#include "kernels/kernels.h"

namespace rl {
namespace {

class Registered final : public LoopTable {
 public:
  void set(const char* op, DType dtype, Loop loop) override {
    if (!failed_) failed_ = api->register_loop(op, dtype, loop) < 0;
  }
  bool failed() const { return failed_; }

 private:
  bool failed_ = false;
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "rushlight.special._C", nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace rl

PyMODINIT_FUNC PyInit__C() {
  if (rl::import_api("rushlight-special") < 0) return nullptr;
  rl::Registered loops;
  RL_ISA_CALL(fill_gammainc, loops);
  RL_ISA_CALL(fill_harmonic, loops);
  RL_ISA_CALL(fill_polynomial, loops);
  RL_ISA_CALL(fill_unary, loops);
  RL_ISA_CALL(fill_zeta, loops);
  if (loops.failed()) return nullptr;
  return PyModule_Create(&rl::definition);
}
