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

const SoftmaxTable& table() {
  static const SoftmaxTable table = [] {
    SoftmaxTable filled;
    RL_ISA_CALL(fill_softmax, filled);
    return filled;
  }();
  return table;
}

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BHalf>;
template <class T>
using Wide = std::conditional_t<kIsHalf<T>, float, T>;

template <class T>
const HalfCasts& casts() {
  return std::is_same_v<T, Half> ? table().halves : table().bhalves;
}

// m lines of n elements from dense memory, laid side by side and widened; `flat` has room for all where T is a half.
template <class T>
void load_lines(const T* from, int64_t n, int64_t m, Wide<T>* flat, Wide<T>* to) {
  const auto interleave = [&](const Wide<T>* lines) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < m; ++j) to[i * m + j] = lines[j * n + i];
    }
  };
  if constexpr (kIsHalf<T>) {
    casts<T>().widen(from, m == 1 ? to : flat, n * m);
    if (m > 1) interleave(flat);
  } else {
    interleave(from);
  }
}

template <class T>
void store_lines(const Wide<T>* from, int64_t n, int64_t m, Wide<T>* flat, T* to) {
  const auto separate = [&](Wide<T>* lines) {
    for (int64_t j = 0; j < m; ++j) {
      for (int64_t i = 0; i < n; ++i) lines[j * n + i] = from[i * m + j];
    }
  };
  if constexpr (kIsHalf<T>) {
    if (m > 1) separate(flat);
    casts<T>().narrow(m == 1 ? from : flat, to, n * m);
  } else {
    separate(to);
  }
}

template <class T>
void run(Softmax op, SoftmaxLoop<Wide<T>> loop, const T* x, const T* grad, T* out, int64_t outer, int64_t n,
         int64_t inner) {
  using W = Wide<T>;
  const bool backward = op == Softmax::SoftmaxBackward || op == Softmax::LogSoftmaxBackward;
  const bool reduces = op == Softmax::LogSumExp;
  const bool side_by_side = inner == 1 && n < kShortRow && outer > 1 && !g_determinism.batch_invariant;
  const bool direct = !kIsHalf<T> && !side_by_side;
  const int64_t width = inner > 1 ? std::min(inner, kSoftmaxColumns) : side_by_side ? kRowsTogether : 1;
  const int64_t across = inner > 1 ? inner : outer;  // what tiles divide
  const int64_t tiles = (across + width - 1) / width, tasks = inner > 1 ? outer * tiles : tiles;

  parallel_for(0, tasks, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, n * width)),
               [&](int64_t begin, int64_t end) {
                 const int64_t size = std::max(n, int64_t{1}) * width;
                 Scratch memory(direct ? 0 : static_cast<size_t>((3 + backward) * size) * sizeof(W));
                 W *flat = memory.as<W>(), *wide_x = flat + size, *wide_out = wide_x + size;
                 W* wide_grad = wide_out + size;
                 for (int64_t t = begin; t < end; ++t) {
                   const int64_t first = (inner > 1 ? t % tiles : t) * width, m = std::min(width, across - first);
                   const int64_t at = inner > 1 ? t / tiles * n * inner + first : first * n;
                   const int64_t result = !reduces ? at : inner > 1 ? t / tiles * inner + first : first;
                   if constexpr (!kIsHalf<T>) {
                     if (direct) {
                       loop(x + at, backward ? grad + at : nullptr, out + result, n, inner, m);
                       continue;
                     }
                   }
                   const auto gather = [&](const T* from, W* to) {
                     if (inner == 1) return load_lines(from, n, m, flat, to);
                     if constexpr (kIsHalf<T>) {
                       for (int64_t i = 0; i < n; ++i) casts<T>().widen(from + i * inner, to + i * m, m);
                     }
                   };
                   gather(x + at, wide_x);
                   if (backward) gather(grad + at, wide_grad);
                   loop(wide_x, wide_grad, wide_out, n, m, m);
                   if (reduces) {
                     store_lines(wide_out, m, 1, flat, out + result);
                   } else if (inner == 1) {
                     store_lines(wide_out, n, m, flat, out + at);
                   } else if constexpr (kIsHalf<T>) {
                     for (int64_t i = 0; i < n; ++i) casts<T>().narrow(wide_out + i * m, out + at + i * inner, m);
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
    case DType::Float16: return with(Half{}, table().floats[k]);
    case DType::BFloat16: return with(BHalf{}, table().floats[k]);
    case DType::Float64: return with(double{}, table().doubles[k]);
    default: return with(float{}, table().floats[k]);
  }
}

}  // namespace rl
