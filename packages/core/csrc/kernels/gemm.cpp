#include "gemm.h"

#include <cstdlib>
#include <new>

namespace rl {

namespace {

struct Scratch {
  void* data = nullptr;
  int64_t bytes = 0;
  ~Scratch() { std::free(data); }
};

}  // namespace

void* gemm_scratch(int64_t bytes) {
  static thread_local Scratch scratch;
  if (scratch.bytes < bytes) {
    constexpr int64_t page = 4096;
    std::free(scratch.data);
    scratch.bytes = 0;
    scratch.data = std::aligned_alloc(page, static_cast<size_t>((bytes + page - 1) / page * page));
    if (scratch.data == nullptr) throw std::bad_alloc();
    scratch.bytes = bytes;
  }
  return scratch.data;
}

bool gemm(DType dtype, const GemmArgs& g) {
  static const GemmTable table = [] {
    GemmTable t{};
    RL_ISA_CALL(fill_gemm, t);
    return t;
  }();
  const auto fn = table.fn[static_cast<int>(dtype)];
  if (fn == nullptr) return false;
  fn(g);
  return true;
}

}  // namespace rl
