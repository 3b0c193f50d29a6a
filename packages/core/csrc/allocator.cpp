#include "allocator.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>

#if defined(_WIN32)
#include <malloc.h>
#define NOMINMAX
#include <windows.h>
#else
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace rl {
namespace {

#if defined(__SANITIZE_ADDRESS__)
#define RL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RL_ASAN 1
#endif
#endif

constexpr size_t kSmallLimit = size_t{64} << 10;  // up to here blocks live in per-thread lists
constexpr size_t kMapLimit = size_t{4} << 20;     // from here blocks are mapped, on huge pages where there are any
constexpr size_t kCachedLimit = size_t{1} << 30;  // above, blocks go straight back to the system
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kThreadListBytes = size_t{256} << 10;  // free bytes that one list of one thread may hold
constexpr size_t kMaxRequest = SIZE_MAX / 2 - 2 * kHugePage;

// Size classes: multiples of 64 up to 512, then eight steps per doubling (a block wastes 1/9 at most).
constexpr int kSteps = 8;
constexpr int kSmallClasses = 8 + 7 * kSteps;
constexpr int kClasses = 8 + 21 * kSteps;

int floor_log2(size_t x) {
#if defined(__GNUC__)
  return 63 - __builtin_clzll(x);
#else
  int r = 0;
  while (x >>= 1) ++r;
  return r;
#endif
}

int class_of(size_t nbytes) {
  const size_t last = nbytes == 0 ? 0 : nbytes - 1;
  if (last < 512) return static_cast<int>(last >> 6);
  const int log = floor_log2(last);
  return 8 + (log - 9) * kSteps + static_cast<int>((last >> (log - 3)) & (kSteps - 1));
}

size_t class_bytes(int c) {
  if (c < 8) return static_cast<size_t>(c + 1) << 6;
  const int log = 9 + (c - 8) / kSteps;
  return (size_t{1} << log) + (static_cast<size_t>((c - 8) % kSteps + 1) << (log - 3));
}

// What a request really takes from the system.
size_t block_bytes(size_t nbytes) {
  if (nbytes <= kCachedLimit) return class_bytes(class_of(nbytes));
  return (nbytes + kHugePage - 1) & ~(kHugePage - 1);
}

void* system_allocate(size_t bytes) noexcept {
#if defined(_WIN32)
  return _aligned_malloc(bytes, kAllocAlignment);
#else
#if !defined(RL_ASAN)
  if (bytes >= kMapLimit) {
    char* raw = static_cast<char*>(
        mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (raw == MAP_FAILED) return nullptr;
    const size_t head = (kHugePage - (reinterpret_cast<uintptr_t>(raw) & (kHugePage - 1))) & (kHugePage - 1);
    if (head != 0) munmap(raw, head);
    if (head != kHugePage) munmap(raw + head + bytes, kHugePage - head);
#if defined(MADV_HUGEPAGE)
    madvise(raw + head, bytes, MADV_HUGEPAGE);
#endif
    return raw + head;
  }
#endif
  void* block = nullptr;
  return posix_memalign(&block, kAllocAlignment, bytes) == 0 ? block : nullptr;
#endif
}

void system_deallocate(void* block, [[maybe_unused]] size_t bytes) noexcept {
#if defined(_WIN32)
  _aligned_free(block);
#else
#if !defined(RL_ASAN)
  if (bytes >= kMapLimit) {
    munmap(block, bytes);
    return;
  }
#endif
  std::free(block);
#endif
}

int64_t default_cache_limit() {
#if defined(RL_ASAN)
  return 0;  // so that a use after free is seen
#else
  if (const char* text = std::getenv("RUSHLIGHT_CACHE_BYTES")) {
    return std::max<int64_t>(0, std::strtoll(text, nullptr, 10));
  }
#if defined(_WIN32)
  MEMORYSTATUSEX memory{};
  memory.dwLength = sizeof(memory);
  return GlobalMemoryStatusEx(&memory) ? static_cast<int64_t>(memory.ullTotalPhys / 4) : int64_t{1} << 30;
#else
  const int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? pages / 4 * page : int64_t{1} << 30;
#endif
#endif
}

int64_t cache_limit() {
  static const int64_t limit = default_cache_limit();
  return limit;
}

// Bytes taken from the system and bytes in use. Each thread counts for itself (a block freed on another thread than the
// one that allocated it makes one negative); what is left of a dead thread, and big blocks, are in `g_total`.
struct Counters {
  std::atomic<int64_t> held{0}, live{0};
};
Counters g_total;

// The shared cache: a list per size class, and all blocks in order of age so that the oldest leave first.
struct BigBlock {
  BigBlock *next, *prev;    // of the class
  BigBlock *newer, *older;  // of all
  int size_class;
};

class BigCache {
 public:
  void* take(int c) noexcept {
    std::lock_guard<std::mutex> lock(mutex_);
    BigBlock* block = lists_[c];
    if (block != nullptr) unlink(block);
    return block;
  }

  // The block must not be bigger than the limit.
  void put(void* memory, int c) noexcept {
    const int64_t bytes = static_cast<int64_t>(class_bytes(c));
    BigBlock* evicted = nullptr;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      while (bytes_ + bytes > cache_limit()) {
        BigBlock* oldest = oldest_;
        unlink(oldest);
        oldest->next = evicted;
        evicted = oldest;
      }
      BigBlock* block = new (memory) BigBlock{lists_[c], nullptr, nullptr, newest_, c};
      if (block->next != nullptr) block->next->prev = block;
      lists_[c] = block;
      (newest_ != nullptr ? newest_->newer : oldest_) = block;
      newest_ = block;
      bytes_ += bytes;
    }
    release(evicted);
  }

  void clear() noexcept {
    BigBlock* evicted = nullptr;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      while (BigBlock* block = oldest_) {
        unlink(block);
        block->next = evicted;
        evicted = block;
      }
    }
    release(evicted);
  }

  int64_t bytes() {
    std::lock_guard<std::mutex> lock(mutex_);
    return bytes_;
  }

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  void unlink(BigBlock* block) noexcept {
    (block->prev != nullptr ? block->prev->next : lists_[block->size_class]) = block->next;
    if (block->next != nullptr) block->next->prev = block->prev;
    (block->older != nullptr ? block->older->newer : oldest_) = block->newer;
    (block->newer != nullptr ? block->newer->older : newest_) = block->older;
    bytes_ -= static_cast<int64_t>(class_bytes(block->size_class));
  }

  static void release(BigBlock* block) noexcept {
    while (block != nullptr) {
      BigBlock* next = block->next;
      const size_t bytes = class_bytes(block->size_class);
      g_total.held -= static_cast<int64_t>(bytes);
      system_deallocate(block, bytes);
      block = next;
    }
  }

  std::mutex mutex_;
  BigBlock* lists_[kClasses] = {};
  BigBlock *oldest_ = nullptr, *newest_ = nullptr;
  int64_t bytes_ = 0;
};

// Leaked, like the pool: threads may free blocks while the process ends.
BigCache& big_cache() {
  static BigCache* cache = [] {
    BigCache* c = new BigCache;
#if !defined(_WIN32)
    // A child of fork() must not inherit the lock from a thread that it does not have.
    pthread_atfork([] { big_cache().lock(); }, [] { big_cache().unlock(); }, [] { big_cache().unlock(); });
#endif
    return c;
  }();
  return *cache;
}

struct FreeBlock {
  FreeBlock* next;
};

struct ThreadCache {
  FreeBlock* lists[kSmallClasses] = {};
  uint32_t room[kSmallClasses];  // blocks that the list still takes
  Counters counters;
  ThreadCache *next = nullptr, *prev = nullptr;

  ThreadCache();
  ~ThreadCache();
  void flush(int c, uint32_t keep) noexcept;
};

std::mutex g_threads_mutex;
ThreadCache* g_threads = nullptr;

// Only the owning thread writes, so this needs no locked instruction.
void add_own(std::atomic<int64_t>& counter, int64_t n) {
  counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

uint32_t list_room(int c) {
  // At most half of the limit over all classes, so that a small limit bounds a thread's lists as well.
  const int64_t bytes = std::min<int64_t>(kThreadListBytes, cache_limit() / (2 * kSmallClasses));
  return static_cast<uint32_t>(bytes / static_cast<int64_t>(class_bytes(c)));
}

ThreadCache::ThreadCache() {
  for (int c = 0; c < kSmallClasses; ++c) room[c] = list_room(c);
  std::lock_guard<std::mutex> lock(g_threads_mutex);
  next = g_threads;
  if (next != nullptr) next->prev = this;
  g_threads = this;
}

ThreadCache::~ThreadCache() {
  for (int c = 0; c < kSmallClasses; ++c) flush(c, 0);
  std::lock_guard<std::mutex> lock(g_threads_mutex);
  (prev != nullptr ? prev->next : g_threads) = next;
  if (next != nullptr) next->prev = prev;
  g_total.held += counters.held;
  g_total.live += counters.live;
}

// Gives blocks of the class back to the system until `keep` are left.
void ThreadCache::flush(int c, uint32_t keep) noexcept {
  const int64_t bytes = static_cast<int64_t>(class_bytes(c));
  for (uint32_t held = list_room(c) - room[c]; held > keep; --held) {
    FreeBlock* block = lists[c];
    lists[c] = block->next;
    ++room[c];
    add_own(counters.held, -bytes);
    system_deallocate(block, static_cast<size_t>(bytes));
  }
}

// The plain pointer is what the fast path reads; the owner ends the cache with its thread.
#if defined(__GLIBC__) && defined(__GNUC__)
__attribute__((tls_model("initial-exec")))
#endif
thread_local ThreadCache* t_cache = nullptr;
thread_local bool t_ended = false;

struct ThreadCacheOwner {
  ~ThreadCacheOwner() {
    t_ended = true;
    delete t_cache;
    t_cache = nullptr;
  }
};

// Null on a thread that is ending or without memory for a cache: blocks then come from and go to the system.
ThreadCache* make_thread_cache() noexcept {
  if (t_ended) return nullptr;
  static thread_local ThreadCacheOwner owner;
  static_cast<void>(owner);
  t_cache = new (std::nothrow) ThreadCache;
  return t_cache;
}

void* allocate_fresh(size_t bytes) {
  void* block = system_allocate(bytes);
  if (block == nullptr) {
    empty_cache();
    block = system_allocate(bytes);
    if (block == nullptr) throw std::bad_alloc();
  }
  return block;
}

#if defined(__GNUC__)
__attribute__((noinline))
#endif
void* allocate_slow(size_t nbytes) {
  if (nbytes > kMaxRequest) throw std::bad_alloc();
  const size_t bytes = block_bytes(nbytes);
  const int64_t counted = static_cast<int64_t>(bytes);
  if (nbytes <= kSmallLimit) {
    ThreadCache* t = t_cache != nullptr ? t_cache : make_thread_cache();
    void* block = allocate_fresh(bytes);
    if (t != nullptr) {
      add_own(t->counters.held, counted);
      add_own(t->counters.live, counted);
    } else {
      g_total.held += counted;
      g_total.live += counted;
    }
    return block;
  }
  void* block = nbytes <= kCachedLimit ? big_cache().take(class_of(nbytes)) : nullptr;
  if (block == nullptr) {
    block = allocate_fresh(bytes);
    g_total.held += counted;
  }
  g_total.live += counted;
  return block;
}

#if defined(__GNUC__)
__attribute__((noinline))
#endif
void deallocate_slow(void* block, size_t nbytes) noexcept {
  if (block == nullptr) return;
  const size_t bytes = block_bytes(nbytes);
  const int64_t counted = static_cast<int64_t>(bytes);
  if (nbytes <= kSmallLimit) {
    ThreadCache* t = t_cache != nullptr ? t_cache : make_thread_cache();
    const int c = class_of(nbytes);
    if (t != nullptr && list_room(c) > 0) {
      if (t->room[c] == 0) t->flush(c, list_room(c) / 2);
      return deallocate(block, nbytes);
    }
    Counters& counters = t != nullptr ? t->counters : g_total;
    counters.held -= counted;
    counters.live -= counted;
    return system_deallocate(block, bytes);
  }
  g_total.live -= counted;
  if (nbytes <= kCachedLimit && counted <= cache_limit()) return big_cache().put(block, class_of(nbytes));
  g_total.held -= counted;
  system_deallocate(block, bytes);
}

}  // namespace

void* allocate(size_t nbytes) {
  ThreadCache* t = t_cache;
  if (nbytes <= kSmallLimit && t != nullptr) {
    const int c = class_of(nbytes);
    if (FreeBlock* block = t->lists[c]) {
      t->lists[c] = block->next;
      ++t->room[c];
      add_own(t->counters.live, static_cast<int64_t>(class_bytes(c)));
      return block;
    }
  }
  return allocate_slow(nbytes);
}

void deallocate(void* block, size_t nbytes) noexcept {
  ThreadCache* t = t_cache;
  if (nbytes <= kSmallLimit && t != nullptr && block != nullptr) {
    const int c = class_of(nbytes);
    if (t->room[c] != 0) {
      t->lists[c] = new (block) FreeBlock{t->lists[c]};
      --t->room[c];
      add_own(t->counters.live, -static_cast<int64_t>(class_bytes(c)));
      return;
    }
  }
  deallocate_slow(block, nbytes);
}

AllocatorStats allocator_stats() {
  std::lock_guard<std::mutex> lock(g_threads_mutex);
  int64_t held = g_total.held, live = g_total.live;
  for (ThreadCache* t = g_threads; t != nullptr; t = t->next) {
    held += t->counters.held.load(std::memory_order_relaxed);
    live += t->counters.live.load(std::memory_order_relaxed);
  }
  return {live, held - live, cache_limit()};
}

void empty_cache() noexcept {
  if (ThreadCache* t = t_cache) {
    for (int c = 0; c < kSmallClasses; ++c) t->flush(c, 0);
  }
  big_cache().clear();
}

}  // namespace rl
