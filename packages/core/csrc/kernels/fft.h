// Discrete Fourier transforms along the middle dimension of (outer, n, inner) memory.
#pragma once
#include <algorithm>
#include <cstdint>

#include "rushlight/dtype.h"
#include "rushlight/isa.h"

namespace rl {

enum class Fft : uint8_t {
  Forward,    // complex to complex, exp(-2 pi i j k / n)
  Backward,   // complex to complex, exp(+2 pi i j k / n)
  RealHalf,   // real of n to complex of n / 2 + 1, forward
  RealWhole,  // real of n to complex of n, forward
  ToReal,     // complex of n / 2 + 1 to real of n, backward
};

// `real` is the dtype of the parts; n the size of the signal. `in` and `out` may be the same for complex to complex.
void run_fft(Fft kind, DType real, const void* in, void* out, int64_t outer, int64_t n, int64_t inner, double scale);

constexpr int kFftBytes = 64;  // of the lanes that transform together, a signal each

// How n points are transformed, in passes that each take one factor of n.
template <class T>
struct FftPlan {
  int64_t n;
  int count, head;       // of factors: of all, and of the first ones, whose product is `rows`
  int64_t rows;          // of the points seen as a matrix: the first passes take columns, the others rows
  const int* factors;    // 2, 3, 4, 5 and other primes
  const T* twiddles;     // pairs, as fft.cpp lays them out for each pass
  const T* roots;        // for each factor p above 5: p pairs cos, sin of 2 pi k / p
  const FftPlan* chirp;  // or, where a prime is too large: the plan of Bluestein's convolution,
  const T* chirps;       // n pairs exp(-pi i k^2 / n),
  const T* spectrum;     // and the transform of their inverses, scaled
};

// Lines that are transformed together: at most as many as there are lanes.
template <class T>
struct FftLines {
  Fft kind;
  int64_t n;  // of the signal; that of the plan is half of it for real signals of even size
  int count;
  const T* in;  // pairs where it is complex
  T* out;
  const int64_t *in_at, *out_at;  // where each line begins, in elements
  int64_t in_stride, out_stride;  // from an element to the next
  T scale;
  const T* turns;  // n / 2 + 1 pairs exp(-2 pi i k / n) for real signals of even size
  // Null, or what the result is multiplied by: for all lanes the parts of exp(-2 pi i lane k), for k below kFftFine and
  // for its multiples.
  const T* factors;
};
constexpr int64_t kFftFine = 32;

template <class T>
struct FftLoops {
  void (*run)(const FftPlan<T>&, const FftLines<T>&, void* scratch);  // one line, or all lanes at once
};
struct FftTable {
  FftLoops<float> floats;
  FftLoops<double> doubles;
};

// Points that stay in the nearest cache while passes go over them.
template <class T>
int64_t fft_near(const FftPlan<T>& plan) {
  const FftPlan<T>& passes = plan.chirp != nullptr ? *plan.chirp : plan;
  return 2 * std::max(passes.rows, passes.n / passes.rows);
}

// Bytes of scratch that `run` needs.
template <class T>
int64_t fft_scratch(const FftPlan<T>& plan, int64_t n, int count) {
  const int64_t points = plan.chirp != nullptr ? 2 * plan.chirp->n + plan.n : 2 * plan.n;
  return (fft_near(plan) + points + n + 16) * 2 * (count > 1 ? kFftBytes : int64_t{sizeof(T)});
}

}  // namespace rl

RL_ISA_DECLARE(fill_fft, FftTable)
