// What the kernels need of core: its thread pool, its allocator and its matrix product. The module fills `runtime` from
// the C API; until then, and in the C++ tests, work runs in place and memory comes from the C library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "rushlight/gemm.h"

namespace rl {

struct Runtime {
  void (*parallel_for)(int64_t begin, int64_t end, int64_t grain, void (*fn)(void*, int64_t, int64_t), void* ctx);
  void* (*allocate)(size_t nbytes);
  void (*deallocate)(void*, size_t nbytes);
  bool (*gemm)(DType, const GemmArgs&);  // null in tests that need no product
  int (*num_threads)();
  bool (*batch_invariant)();
};
extern Runtime runtime;

// 64-byte aligned memory of the runtime; throws std::bad_alloc.
void* allocate_or_throw(size_t nbytes);

namespace {  // a copy for each source, since those of the ISA sources are compiled for different machines

// f(begin, end) over chunks of [begin, end), on the thread pool.
template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain, F&& f) {
  if (end <= begin) return;
  using Fn = std::remove_reference_t<F>;
  runtime.parallel_for(
      begin, end, grain, [](void* c, int64_t b, int64_t e) { (*static_cast<Fn*>(c))(b, e); },
      const_cast<void*>(static_cast<const void*>(&f)));
}

// Memory of a task.
template <class T>
class Buffer {
 public:
  explicit Buffer(int64_t count)
      : bytes_(static_cast<size_t>(count) * sizeof(T)), data_(static_cast<T*>(allocate_or_throw(bytes_))) {}
  ~Buffer() { runtime.deallocate(data_, bytes_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  T* data() const { return data_; }
  T& operator[](int64_t i) const { return data_[i]; }

 private:
  size_t bytes_;
  T* data_;
};

}  // namespace
}  // namespace rl
