// The caching allocator: alignment, reuse, limits, frees on other threads, statistics.
#include "../allocator.h"
#include "check.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#if !defined(_WIN32)
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace {

using Block = std::pair<void*, size_t>;

void test_sizes() {
  std::vector<Block> blocks;
  std::vector<size_t> sizes = {0, 1, 63, 64, 65, 512, 513, 575, 576, 577, 65535, 65536, 65537};
  for (size_t s = 1000; s < (size_t{64} << 20); s = s * 5 / 2 + 7) sizes.push_back(s);
  for (size_t p = 1024; p <= (size_t{8} << 20); p *= 2) {
    for (size_t d : {p - 1, p, p + 1}) sizes.push_back(d);
  }
  for (size_t s : sizes) {
    void* p = rl::allocate(s);
    CHECK(p != nullptr && reinterpret_cast<uintptr_t>(p) % rl::kAllocAlignment == 0);
    std::memset(p, static_cast<int>(s & 0xff), s);
    blocks.push_back({p, s});
  }
  for (auto [p, s] : blocks) {
    const auto* bytes = static_cast<unsigned char*>(p);
    CHECK(s == 0 || (bytes[0] == (s & 0xff) && bytes[s - 1] == (s & 0xff)));
    rl::deallocate(p, s);
  }
  rl::deallocate(nullptr, 100);
}

void test_too_big() {
  for (size_t s : {SIZE_MAX, SIZE_MAX - 63, SIZE_MAX / 2, SIZE_MAX / 4, size_t{1} << 60}) {
    bool refused = false;
    try {
      rl::deallocate(rl::allocate(s), s);
    } catch (const std::bad_alloc&) {
      refused = true;
    }
    CHECK(refused);
  }
}

void test_reuse() {
  if (rl::allocator_stats().cache_limit < (int64_t{256} << 20)) return;
  for (size_t s : {size_t{16}, size_t{5000}, size_t{100000}, size_t{40000000}}) {
    void* p = rl::allocate(s);
    rl::deallocate(p, s);
    void* q = rl::allocate(s);
    CHECK(p == q);
    rl::deallocate(q, s);
  }
}

void test_threads() {
  constexpr int kThreads = 4, kRounds = 20000;
  std::vector<std::vector<Block>> handed(kThreads);
  for (int pass = 0; pass < 2; ++pass) {
    std::vector<std::thread> threads;
    std::vector<std::vector<Block>> made(kThreads);
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (auto [p, s] : handed[t]) {
          CHECK(*static_cast<unsigned char*>(p) == (s & 0xff));
          rl::deallocate(p, s);
        }
        unsigned seed = 17u * static_cast<unsigned>(t) + 1;
        for (int i = 0; i < kRounds; ++i) {
          seed = seed * 1664525u + 1013904223u;
          const size_t s = 1 + (seed >> 8) % (i % 100 == 0 ? 300000 : 3000);
          void* p = rl::allocate(s);
          *static_cast<unsigned char*>(p) = static_cast<unsigned char>(s & 0xff);
          if (i % 3 != 0 || pass == 1)
            rl::deallocate(p, s);
          else
            made[t].push_back({p, s});
        }
      });
    }
    for (auto& t : threads) t.join();
    for (int t = 0; t < kThreads; ++t) handed[t] = std::move(made[(t + 1) % kThreads]);
  }
}

void test_fork() {
#if !defined(_WIN32)
  const pid_t child = fork();
  if (child == 0) {
    test_sizes();
    _exit(0);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
#endif
}

}  // namespace

int main() {
  test_sizes();
  test_too_big();
  test_reuse();
  test_threads();
  test_fork();
  rl::AllocatorStats stats = rl::allocator_stats();
  CHECK(stats.allocated_bytes == 0);
  CHECK(stats.cached_bytes >= 0 && stats.cached_bytes <= stats.cache_limit);
  rl::empty_cache();
  CHECK(rl::allocator_stats().cached_bytes == 0);
  std::puts("allocator: ok");
}
