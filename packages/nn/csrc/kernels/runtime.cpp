#include "runtime.h"

#include <cstdlib>
#include <new>

namespace rl {

Runtime runtime = {
    [](int64_t begin, int64_t end, int64_t, void (*fn)(void*, int64_t, int64_t), void* ctx) { fn(ctx, begin, end); },
    [](size_t nbytes) { return std::aligned_alloc(64, (nbytes + 63) / 64 * 64); },
    [](void* p, size_t) { std::free(p); },
    nullptr,
    [] { return 1; },
    [] { return false; },
};

void* allocate_or_throw(size_t nbytes) {
  void* p = runtime.allocate(nbytes == 0 ? 1 : nbytes);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

}  // namespace rl
