// One thread pool for every kernel of the process. The caller works too and takes every chunk that no worker has
// started, so a call never waits for a thread that has no core.
#pragma once

#include <cstdint>
#include <type_traits>

namespace rl {

// Threads a parallel region may use, the caller included. RUSHLIGHT_NUM_THREADS, then OMP_NUM_THREADS, then the cores
// this process is allowed to run on.
int num_threads();
// Throws std::invalid_argument unless n >= 1.
void set_num_threads(int n);
// True on a thread that is running a chunk: a nested region runs in place.
bool in_parallel_region();

// Whether work of so many nanoseconds ends sooner on several threads: less will do while the workers are awake.
bool worth_threads(double nanoseconds);

// Calls fn(ctx, b, e) over disjoint chunks that cover [begin, end), in any order, on no more threads than there are
// grains. The first exception that a chunk throws is rethrown here, once no chunk runs any more.
void parallel_run(int64_t begin, int64_t end, int64_t grain, void (*fn)(void*, int64_t, int64_t), void* ctx);

template <class F>
inline void parallel_for(int64_t begin, int64_t end, int64_t grain, F&& f) {
  if (end <= begin) return;
  if (end - begin <= grain) {
    f(begin, end);
    return;
  }
  using Fn = std::remove_reference_t<F>;
  parallel_run(
      begin, end, grain, [](void* c, int64_t b, int64_t e) { (*static_cast<Fn*>(c))(b, e); },
      const_cast<void*>(static_cast<const void*>(&f)));
}

}  // namespace rl
