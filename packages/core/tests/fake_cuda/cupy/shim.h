// CUDA C++ for a host compiler: blocks and threads are loops, one after the other.
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

using namespace std;

struct Place {
  unsigned x = 0;
};
static Place blockIdx, blockDim, threadIdx;

#define __device__

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

template <class... P, size_t... I>
static void start(void (*kernel)(P...), void** arguments, unsigned blocks, unsigned threads, index_sequence<I...>) {
  blockDim.x = threads;
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
    for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x)
      kernel(*static_cast<remove_cv_t<P>*>(arguments[I])...);
}
template <class... P> static void start(void (*kernel)(P...), void** arguments, unsigned blocks, unsigned threads) {
  start(kernel, arguments, blocks, threads, index_sequence_for<P...>());
}
