// CUDA C++ for a host compiler: blocks run one after the other, and so do threads, from barrier to barrier.
#include <ucontext.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

using namespace std;

struct Place {
  unsigned x = 0;
};
static Place blockIdx, blockDim, threadIdx;

#define __device__
#define __shared__ static

// Threads of a block as coroutines: at a barrier the next one runs.
static ucontext_t block_context;
static ucontext_t* running;
static function<void()>* thread_body;
static bool finished;
static inline void __syncthreads() { swapcontext(running, &block_context); }
static void run_thread() {
  (*thread_body)();
  finished = true;
}

static void run_block(unsigned threads, function<void()> body) {
  constexpr size_t kStack = 1 << 16;
  static vector<char> stacks;
  stacks.resize(threads * kStack);
  vector<ucontext_t> contexts(threads);
  vector<char> done(threads, 0);
  thread_body = &body;
  for (unsigned t = 0; t < threads; ++t) {
    getcontext(&contexts[t]);
    contexts[t].uc_stack.ss_sp = &stacks[t * kStack];
    contexts[t].uc_stack.ss_size = kStack;
    contexts[t].uc_link = &block_context;
    makecontext(&contexts[t], run_thread, 0);
  }
  for (unsigned left = threads; left;)
    for (unsigned t = 0; t < threads; ++t) {
      if (done[t]) continue;
      threadIdx.x = t;
      running = &contexts[t];
      finished = false;
      swapcontext(&block_context, running);
      if (finished) done[t] = 1, --left;
    }
}

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) double2 {
  double x, y;
};
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline double2 make_double2(double x, double y) { return {x, y}; }
static inline unsigned __float_as_uint(float x) {
  unsigned bits;
  memcpy(&bits, &x, 4);
  return bits;
}
static inline float __uint_as_float(unsigned bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}
static inline double cospi(double x) { return cos(3.14159265358979323846 * x); }
template <class T> static inline T atomicCAS(T* at, T old, T to) {
  const T found = *at;
  if (found == old) *at = to;
  return found;
}

template <bool waits, class... P, size_t... I>
static void start(void (*kernel)(P...), void** arguments, unsigned blocks, unsigned threads, index_sequence<I...>) {
  const auto body = [=] { kernel(*static_cast<remove_cv_t<P>*>(arguments[I])...); };
  blockDim.x = threads;
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
    if (waits)
      run_block(threads, body);
    else
      for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) body();
}
template <bool waits, class... P>
static void start(void (*kernel)(P...), void** arguments, unsigned blocks, unsigned threads) {
  start<waits>(kernel, arguments, blocks, threads, index_sequence_for<P...>());
}
