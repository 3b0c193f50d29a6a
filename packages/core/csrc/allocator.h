// The caching allocator of CPU tensors: per-thread free lists for small blocks, one shared cache for big ones, so that
// warm memory is reused instead of being faulted in again.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rl {

constexpr size_t kAllocAlignment = 64;

// A block of at least `nbytes` (0 included) aligned to kAllocAlignment, never null. Throws std::bad_alloc.
void* allocate(size_t nbytes);
// `nbytes` is what was asked of allocate(). Any thread may free any block.
void deallocate(void* block, size_t nbytes) noexcept;

struct AllocatorStats {
  int64_t allocated_bytes;  // in use, rounded up to size classes
  int64_t cached_bytes;     // free, kept for reuse
  int64_t cache_limit;      // RUSHLIGHT_CACHE_BYTES, else a quarter of the memory of the machine
};
AllocatorStats allocator_stats();

// Returns to the system every free block of the shared cache and of the calling thread.
void empty_cache() noexcept;

// Scratch memory of one scope.
class Scratch {
 public:
  explicit Scratch(size_t nbytes) : data_(allocate(nbytes)), nbytes_(nbytes) {}
  ~Scratch() { deallocate(data_, nbytes_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_;
  size_t nbytes_;
};

}  // namespace rl
