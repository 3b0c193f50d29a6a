#include "softmax.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "../allocator.h"
#include "../determinism.h"
#include "../parallel.h"
#include "rushlight/half.h"

namespace rl {
namespace {

using base::BHalf;
using base::Half;

constexpr int64_t kGrain = 8192;   // elements that are worth a thread
constexpr int64_t kShortRow = 32;  // below, rows are laid side by side as columns
constexpr int64_t kRowsTogether = 16;

SoftmaxTable make_table() {
  SoftmaxTable table;
  RL_ISA_CALL(fill_softmax, table);
  return table;
}

template <class T>
struct Memory {
  using Wide = float;
  static float load(T v) { return base::to_float(v); }
  static void store(float v, T* to) {
    if constexpr (std::is_same_v<T, Half>) {
      *to = base::to_half(v);
    } else {
      *to = base::to_bhalf(v);
    }
  }
};
template <>
struct Memory<float> {
  using Wide = float;
  static float load(float v) { return v; }
  static void store(float v, float* to) { *to = v; }
};
template <>
struct Memory<double> {
  using Wide = double;
  static double load(double v) { return v; }
  static void store(double v, double* to) { *to = v; }
};

template <class T>
void run(Softmax op, SoftmaxLoop<typename Memory<T>::Wide> loop, const T* x, const T* grad, T* out, int64_t outer,
         int64_t n, int64_t inner) {
  using W = typename Memory<T>::Wide;
  const bool backward = op == Softmax::SoftmaxBackward || op == Softmax::LogSoftmaxBackward;
  const bool reduces = op == Softmax::LogSumExp;
  const bool side_by_side = inner == 1 && n < kShortRow && outer > 1 && !g_determinism.batch_invariant;
  const bool direct = std::is_same_v<T, W> && !side_by_side;
  const int64_t width = inner > 1 ? std::min(inner, kSoftmaxColumns) : side_by_side ? kRowsTogether : 1;
  const int64_t across = inner > 1 ? inner : outer;  // what tiles divide
  const int64_t tiles = (across + width - 1) / width, tasks = inner > 1 ? outer * tiles : tiles;

  parallel_for(0, tasks, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, n * width)),
               [&](int64_t begin, int64_t end) {
                 const int64_t size = n * width;
                 Scratch memory(direct ? 0 : static_cast<size_t>((2 + backward) * std::max(size, width)) * sizeof(W));
                 W *wide_x = memory.as<W>(), *wide_out = wide_x + size, *wide_grad = wide_out + std::max(size, width);
                 for (int64_t t = begin; t < end; ++t) {
                   const int64_t first = (inner > 1 ? t % tiles : t) * width, m = std::min(width, across - first);
                   const int64_t at = inner > 1 ? t / tiles * n * inner + first : first * n;
                   const int64_t result = !reduces ? at : inner > 1 ? t / tiles * inner + first : first;
                   if constexpr (std::is_same_v<T, W>) {
                     if (direct) {
                       loop(x + at, backward ? grad + at : nullptr, out + result, n, inner, m);
                       continue;
                     }
                   }
                   const int64_t row = inner, column = inner > 1 ? 1 : n;
                   const auto gather = [&](const T* from, W* to) {
                     for (int64_t i = 0; i < n; ++i) {
                       for (int64_t j = 0; j < m; ++j) to[i * m + j] = Memory<T>::load(from[i * row + j * column]);
                     }
                   };
                   gather(x + at, wide_x);
                   if (backward) gather(grad + at, wide_grad);
                   loop(wide_x, wide_grad, wide_out, n, m, m);
                   if (reduces) {
                     for (int64_t j = 0; j < m; ++j) Memory<T>::store(wide_out[j], out + result + j);
                     continue;
                   }
                   for (int64_t i = 0; i < n; ++i) {
                     for (int64_t j = 0; j < m; ++j)
                       Memory<T>::store(wide_out[i * m + j], out + at + i * row + j * column);
                   }
                 }
               });
}

// The largest real part takes the part of the largest element.
template <class T>
void complex_logsumexp(const std::complex<T>* x, std::complex<T>* out, int64_t outer, int64_t n, int64_t inner) {
  parallel_for(0, outer * inner, std::max<int64_t>(1, kGrain / 8 / std::max<int64_t>(1, n)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t k = begin; k < end; ++k) {
                   const std::complex<T>* at = x + k / inner * n * inner + k % inner;
                   T high = -std::numeric_limits<T>::infinity();
                   for (int64_t i = 0; i < n; ++i) high = std::max(high, at[i * inner].real());
                   if (std::isinf(high)) high = 0;
                   std::complex<double> sum = 0;
                   for (int64_t i = 0; i < n; ++i) sum += std::exp(std::complex<double>(at[i * inner] - high));
                   out[k] = std::complex<T>(std::log(sum)) + high;
                 }
               });
}

}  // namespace

void run_softmax(Softmax op, DType dtype, const void* x, const void* grad, void* out, int64_t outer, int64_t n,
                 int64_t inner) {
  static const SoftmaxTable table = make_table();
  const auto with = [&](auto zero, auto loop) {
    using T = decltype(zero);
    run<T>(op, loop, static_cast<const T*>(x), static_cast<const T*>(grad), static_cast<T*>(out), outer, n, inner);
  };
  const auto complex = [&](auto zero) {
    using T = decltype(zero);
    complex_logsumexp(static_cast<const std::complex<T>*>(x), static_cast<std::complex<T>*>(out), outer, n, inner);
  };
  const int k = static_cast<int>(op);
  switch (dtype) {
    case DType::Complex64: return complex(float{});
    case DType::Complex128: return complex(double{});
    case DType::Float16: return with(Half{}, table.floats[k]);
    case DType::BFloat16: return with(BHalf{}, table.floats[k]);
    case DType::Float64: return with(double{}, table.doubles[k]);
    default: return with(float{}, table.floats[k]);
  }
}

}  // namespace rl
