// Orthogonal polynomials by their recurrences (DLMF 18.9), in double, blocks of elements side by side.
#include <rushlight/loop.h>
#include <rushlight/simd.h>

#include "kernels.h"
#include "segments.h"

namespace rl {
namespace RL_ISA {
namespace {

constexpr int kBlock = 128;

// Up to here Chebyshev's polynomials are summed, beyond they are trigonometric. The others are NaN beyond kMaxDegree.
constexpr double kChebyshevSums = 1024, kMaxDegree = 1 << 20;

enum class Kind { T, U, V, W, ShiftedT, ShiftedU, ShiftedV, ShiftedW, H, He, L, P };

constexpr bool is_chebyshev(Kind k) { return k < Kind::H; }
constexpr bool is_shifted(Kind k) { return k >= Kind::ShiftedT && k < Kind::H; }
constexpr Kind unshifted(Kind k) { return is_shifted(k) ? Kind(int(k) - int(Kind::ShiftedT)) : k; }

// V: double, or a vector of them.
template <Kind kKind, class V>
inline __attribute__((always_inline)) V first_degree(V x) {
  switch (unshifted(kKind)) {
    case Kind::U:
    case Kind::H: return 2 * x;
    case Kind::V: return 2 * x - 1;
    case Kind::W: return 2 * x + 1;
    case Kind::L: return 1 - x;
    default: return x;
  }
}

// The degree k + 1 of those of degree k and k - 1.
template <Kind kKind, class V>
inline __attribute__((always_inline)) V next_degree(V x, double k, V now, V before) {
  if constexpr (is_chebyshev(kKind)) return 2 * x * now - before;
  if constexpr (kKind == Kind::H) return 2 * (x * now - k * before);
  if constexpr (kKind == Kind::He) return x * now - k * before;
  if constexpr (kKind == Kind::L) return ((2 * k + 1 - x) * now - k * before) / (k + 1);
  return ((2 * k + 1) * x * now - k * before) / (k + 1);
}

// DLMF 18.5.1 to 18.5.4, and hyperbolic beyond [-1, 1].
template <Kind kKind>
double chebyshev_closed(double x, double n) {
  constexpr Kind kind = unshifted(kKind);
  const double sign = x < 0 && ::fmod(n, 2) != 0 ? -1 : 1, a = ::fabs(x);
  if (a == 1) {
    const bool grows = kind == Kind::U || kind == (x < 0 ? Kind::V : Kind::W);
    return sign * (!grows ? 1 : kind == Kind::U ? n + 1 : 2 * n + 1);
  }
  if (a < 1) {
    const double t = ::acos(x);
    switch (kind) {
      case Kind::T: return ::cos(n * t);
      case Kind::U: return ::sin((n + 1) * t) / ::sin(t);
      case Kind::V: return ::cos((n + 0.5) * t) / ::cos(0.5 * t);
      default: return ::sin((n + 0.5) * t) / ::sin(0.5 * t);
    }
  }
  const double t = ::acosh(a);
  const bool sinh_like = kind == (x < 0 ? Kind::V : Kind::W);
  switch (kind) {
    case Kind::T: return sign * ::cosh(n * t);
    case Kind::U: return sign * ::sinh((n + 1) * t) / ::sinh(t);
    default:
      return sign * (sinh_like ? ::sinh((n + 0.5) * t) / ::sinh(0.5 * t) : ::cosh((n + 0.5) * t) / ::cosh(0.5 * t));
  }
}

constexpr double highest_sum(Kind k) { return is_chebyshev(k) ? kChebyshevSums : kMaxDegree; }

// Elements of one degree, in registers.
template <Kind kKind>
void one_degree(double* x, double n) {
  for (int64_t i = 0; i < kBlock; i += kLanes<double>) {
    const Vec<double> point = load(x + i);
    Vec<double> before = splat(1.0), now = first_degree<kKind>(point);
    for (double k = 1; k < n; ++k) {
      const Vec<double> following = next_degree<kKind>(point, k, now, before);
      before = now;
      now = following;
    }
    store(x + i, n == 0 ? splat(1.0) : now);
  }
}

template <Kind kKind>
void many_degrees(double* x, const double* n, int64_t count) {
  constexpr double kSums = highest_sum(kKind);
  double result[kBlock], now[kBlock], before[kBlock], highest = 0;
  for (int64_t i = 0; i < count; ++i) {
    before[i] = 1;
    now[i] = first_degree<kKind>(x[i]);
    result[i] = n[i] == 0 ? 1 : n[i] == 1 ? now[i] : n[i] < 0 ? 0 : kNan;
    highest = n[i] > highest && n[i] <= kSums ? n[i] : highest;
  }
  for (double k = 1; k < highest; ++k) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) {
      const double following = next_degree<kKind>(x[i], k, now[i], before[i]);
      before[i] = now[i];
      now[i] = following;
      result[i] = n[i] == k + 1 ? following : result[i];
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (is_chebyshev(kKind)) result[i] = n[i] > kSums ? chebyshev_closed<kKind>(x[i], n[i]) : result[i];
    x[i] = result[i];
  }
}

template <Kind kKind, class T>
void block(T* out, const T* points, const T* degrees, int64_t count) {
  double x[kBlock] = {}, n[kBlock];
  int64_t others = 0;
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const double point = points[i];
    x[i] = is_shifted(kKind) ? 2 * point - 1 : point;
    n[i] = vm::trunc(static_cast<double>(degrees[i]));
    others += degrees[i] != degrees[0];
  }
  if (others == 0 && n[0] >= 0 && n[0] <= highest_sum(kKind)) {
    one_degree<kKind>(x, n[0]);
  } else {
    many_degrees<kKind>(x, n, count);
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(x[i]);
}

template <Kind kKind, class T>
void dense(char* out, const char* const* in, int64_t n, const void*) {
  for (int64_t i = 0; i < n; i += kBlock) {
    block<kKind, T>(reinterpret_cast<T*>(out) + i, reinterpret_cast<const T*>(in[0]) + i,
                    reinterpret_cast<const T*>(in[1]) + i, n - i < kBlock ? n - i : kBlock);
  }
}

template <Kind kKind, class T>
void run(char* const* data, const int64_t* strides, int64_t n, const void* params) {
  static constexpr Plan kPlan{dense<kKind, T>, 1, 2, {cell_of<T>(), cell_of<T>(), cell_of<T>()}};
  run_plan(kPlan, data, strides, n, params);
}

template <Kind kKind>
void add(LoopTable& table, const char* op) {
  table.set(op, DType::Float32, run<kKind, float>);
  table.set(op, DType::Float64, run<kKind, double>);
}

}  // namespace

void fill_polynomial(LoopTable& table) {
  add<Kind::T>(table, "special::chebyshev_polynomial_t");
  add<Kind::U>(table, "special::chebyshev_polynomial_u");
  add<Kind::V>(table, "special::chebyshev_polynomial_v");
  add<Kind::W>(table, "special::chebyshev_polynomial_w");
  add<Kind::ShiftedT>(table, "special::shifted_chebyshev_polynomial_t");
  add<Kind::ShiftedU>(table, "special::shifted_chebyshev_polynomial_u");
  add<Kind::ShiftedV>(table, "special::shifted_chebyshev_polynomial_v");
  add<Kind::ShiftedW>(table, "special::shifted_chebyshev_polynomial_w");
  add<Kind::H>(table, "special::hermite_polynomial_h");
  add<Kind::He>(table, "special::hermite_polynomial_he");
  add<Kind::L>(table, "special::laguerre_polynomial_l");
  add<Kind::P>(table, "special::legendre_polynomial_p");
}

}  // namespace RL_ISA
}  // namespace rl
