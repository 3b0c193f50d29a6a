#include "scan.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "../parallel.h"
#include "rushlight/half.h"

namespace rl {
namespace {

using base::BHalf;
using base::Half;

constexpr int64_t kColumns = 64;
constexpr int64_t kGrain = 16384;

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BHalf>;
template <class T>
constexpr bool kIsComplex = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;
template <class T>
constexpr bool kIsFloating = kIsHalf<T> || std::is_floating_point_v<T>;

// What a dtype accumulates in. Integers wrap, so they are unsigned.
template <class T>
struct AccOf {
  static constexpr auto make() {
    if constexpr (kIsFloating<T>) {
      return double{};
    } else if constexpr (kIsComplex<T>) {
      return std::complex<double>{};
    } else {
      return uint64_t{};
    }
  }
  using type = decltype(make());
};

template <class A, class T>
A widen(T v) {
  if constexpr (kIsHalf<T>) {
    return static_cast<A>(base::to_float(v));
  } else {
    return static_cast<A>(v);
  }
}

template <class T, class A>
T narrow(A a) {
  if constexpr (std::is_same_v<T, Half>) {
    return base::to_half(static_cast<float>(a));
  } else if constexpr (std::is_same_v<T, BHalf>) {
    return base::to_bhalf(static_cast<float>(a));
  } else {
    return static_cast<T>(a);
  }
}

// Calls f(begin, m) for tiles of m neighbouring lines; element i of the first is at begin + i * inner.
template <class F>
void for_tiles(int64_t outer, int64_t n, int64_t inner, F&& f) {
  const int64_t tiles = (inner + kColumns - 1) / kColumns;
  parallel_for(0, outer * tiles, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, n * std::min(inner, kColumns))),
               [&](int64_t begin, int64_t end) {
                 for (int64_t t = begin; t < end; ++t) {
                   const int64_t first = t % tiles * kColumns;
                   f(t / tiles * n * inner + first, std::min(kColumns, inner - first));
                 }
               });
}

double log_add(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  const double high = std::max(a, b), low = std::min(a, b);
  return std::isinf(high) ? high : high + std::log1p(std::exp(low - high));
}

std::complex<double> log_add(std::complex<double> a, std::complex<double> b) {
  if (std::isnan(a.real()) || std::isnan(b.real())) return a + b;
  const bool first = a.real() > b.real();
  const std::complex<double> high = first ? a : b, low = first ? b : a;
  return std::isinf(high.real()) ? high : high + std::log(1.0 + std::exp(low - high));
}

// One line. Four elements are combined before they meet the running value, whose chain of dependences is the
// bottleneck.
template <class T, class A, class Step>
void line(const T* x, T* out, int64_t n, int64_t stride, A acc, Step step) {
  if (stride < 0) {
    x -= (n - 1) * stride;
    out -= (n - 1) * stride;
  }
  int64_t i = 0;
  for (; i + 4 <= n; i += 4, x += 4 * stride, out += 4 * stride) {
    const A a = widen<A>(x[0]), b = step(a, widen<A>(x[stride]));
    const A c = step(b, widen<A>(x[2 * stride])), d = step(c, widen<A>(x[3 * stride]));
    out[0] = narrow<T>(step(acc, a));
    out[stride] = narrow<T>(step(acc, b));
    out[2 * stride] = narrow<T>(step(acc, c));
    acc = step(acc, d);
    out[3 * stride] = narrow<T>(acc);
  }
  for (; i < n; ++i, x += stride, out += stride) {
    acc = step(acc, widen<A>(*x));
    *out = narrow<T>(acc);
  }
}

template <class T>
void accumulate(Scan op, const T* x, T* out, int64_t outer, int64_t n, int64_t inner) {
  using A = typename AccOf<T>::type;
  for_tiles(outer, n, inner, [&](int64_t at, int64_t m) {
    const auto run = [&](A start, auto step, bool reverse) {
      if (m == 1) return line<T>(x + at, out + at, n, reverse ? -inner : inner, start, step);
      A acc[kColumns];
      std::fill(acc, acc + m, start);
      for (int64_t k = 0; k < n; ++k) {
        const int64_t row = at + (reverse ? n - 1 - k : k) * inner;
        for (int64_t j = 0; j < m; ++j) {
          acc[j] = step(acc[j], widen<A>(x[row + j]));
          out[row + j] = narrow<T>(acc[j]);
        }
      }
    };
    if (op == Scan::Prod) return run(A(1), [](A a, A b) { return a * b; }, false);
    if constexpr (kIsFloating<T> || kIsComplex<T>) {
      if (op == Scan::LogSumExp)
        return run(A(-std::numeric_limits<double>::infinity()), [](A a, A b) { return log_add(a, b); }, false);
    }
    run(A(0), [](A a, A b) { return a + b; }, op == Scan::ReverseSum);
  });
}

template <class T>
void extreme(bool is_max, const T* x, T* out, int64_t* indices, int64_t outer, int64_t n, int64_t inner) {
  using A = std::conditional_t<kIsHalf<T>, float, T>;
  for_tiles(outer, n, inner, [&](int64_t at, int64_t m) {
    A best[kColumns];
    int64_t place[kColumns] = {};
    for (int64_t i = 0; i < n; ++i) {
      const int64_t row = at + i * inner;
      for (int64_t j = 0; j < m; ++j) {
        const A v = widen<A>(x[row + j]);
        const bool take = i == 0 || v != v || (best[j] == best[j] && (is_max ? v >= best[j] : v <= best[j]));
        best[j] = take ? v : best[j];
        place[j] = take ? i : place[j];
        out[row + j] = narrow<T>(best[j]);
        indices[row + j] = place[j];
      }
    }
  });
}

}  // namespace

bool run_scan(Scan op, DType dtype, const void* x, void* out, int64_t* indices, int64_t outer, int64_t n,
              int64_t inner) {
  const bool extremes = op == Scan::Max || op == Scan::Min;
  if (is_complex(dtype) ? extremes : dtype == DType::Bool && !extremes) return false;
  if (op == Scan::LogSumExp && !is_inexact(dtype)) return false;
  const auto with = [&](auto zero) {
    using T = decltype(zero);
    if constexpr (kIsComplex<T>) {
      accumulate(op, static_cast<const T*>(x), static_cast<T*>(out), outer, n, inner);
    } else {
      if (extremes) {
        extreme(op == Scan::Max, static_cast<const T*>(x), static_cast<T*>(out), indices, outer, n, inner);
      } else {
        accumulate(op, static_cast<const T*>(x), static_cast<T*>(out), outer, n, inner);
      }
    }
    return true;
  };
  switch (dtype) {
    case DType::Bool:
    case DType::UInt8: return with(uint8_t{});
    case DType::Int8: return with(int8_t{});
    case DType::Int16: return with(int16_t{});
    case DType::Int32: return with(int32_t{});
    case DType::Int64: return with(int64_t{});
    case DType::Float16: return with(Half{});
    case DType::BFloat16: return with(BHalf{});
    case DType::Float32: return with(float{});
    case DType::Float64: return with(double{});
    case DType::Complex64: return with(std::complex<float>{});
    case DType::Complex128: return with(std::complex<double>{});
  }
  return false;
}

}  // namespace rl
