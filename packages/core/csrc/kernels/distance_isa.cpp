#include "distance.h"
#include "rushlight/vecmath.h"

namespace rl {
namespace RL_ISA {
namespace {

constexpr int64_t kColumns = 64;  // whose sums stay in registers or the first cache

template <Norm norm, class T>
RL_INLINE T taken_up(T sum, T difference, T p) {
  const T size = vm::abs(difference);
  if constexpr (norm == Norm::Count) return sum + (size != 0 ? T(1) : T(0));
  if constexpr (norm == Norm::One) return sum + size;
  if constexpr (norm == Norm::Two) return vm::madd(difference, difference, sum);
  if constexpr (norm == Norm::Other) return sum + vm::pow(size, p);
  if constexpr (norm == Norm::Largest) return (size > sum) | (size != size) ? size : sum;
}

template <Norm norm, class T>
RL_INLINE T root(T sum, T p) {
  if constexpr (norm == Norm::Two) return vm::sqrt(sum);
  if constexpr (norm == Norm::Other) return vm::pow(sum, 1 / p);
  return sum;
}

template <Norm norm, class T>
void distances(const T* a, const T* b, T* out, int64_t n, int64_t m, T p) {
  for (int64_t begin = 0; begin < n; begin += kColumns) {
    const int64_t count = n - begin < kColumns ? n - begin : kColumns;
    T sums[kColumns] = {};
    for (int64_t i = 0; i < m; ++i) {
      const T* column = b + i * n + begin;
      const T x = a[i];
      if (count == kColumns) {
#pragma GCC ivdep
        for (int64_t j = 0; j < kColumns; ++j) sums[j] = taken_up<norm>(sums[j], x - column[j], p);
      } else {
#pragma GCC ivdep
        for (int64_t j = 0; j < count; ++j) sums[j] = taken_up<norm>(sums[j], x - column[j], p);
      }
    }
    for (int64_t j = 0; j < count; ++j) out[begin + j] = root<norm>(sums[j], p);
  }
}

template <class T>
RL_INLINE T with_sign(T size, T of) {
  return of == 0 ? T(0) : of < 0 ? -size : size;
}

template <Norm norm, class T>
void gradient(const T* a, const T* b, const T* grad, const T* distances, T* out, int64_t n, int64_t m, T p) {
  for (int64_t i = 0; i < m; ++i) out[i] = 0;
  if constexpr (norm == Norm::Count) return;
  for (int64_t j = 0; j < n; ++j) {
    const T distance = distances[j];
    if (distance == 0) continue;
    const T* row = b + j * m;
    const T weight = norm == Norm::Two     ? grad[j] / distance
                     : norm == Norm::Other ? grad[j] * vm::pow(distance, 1 - p)
                                           : grad[j];
#pragma GCC ivdep
    for (int64_t i = 0; i < m; ++i) {
      const T d = a[i] - row[i];
      if constexpr (norm == Norm::One) out[i] += with_sign(weight, d);
      if constexpr (norm == Norm::Two) out[i] = vm::madd(weight, d, out[i]);
      if constexpr (norm == Norm::Other) {  // without a branch, so that lanes share the power
        const T sign = static_cast<T>(d > 0) - static_cast<T>(d < 0);
        out[i] = vm::madd(weight * sign, vm::pow(vm::abs(d) + static_cast<T>(d == 0), p - 1), out[i]);
      }
      if constexpr (norm == Norm::Largest) out[i] += vm::abs(d) == distance ? with_sign(weight, d) : T(0);
    }
  }
}

template <Norm norm, class T>
void fill(DistanceLoops<T>& loops) {
  loops.distances[static_cast<int>(norm)] = distances<norm, T>;
  loops.gradient[static_cast<int>(norm)] = gradient<norm, T>;
}

template <class T>
void fill_all(DistanceLoops<T>& loops) {
  fill<Norm::Count>(loops);
  fill<Norm::One>(loops);
  fill<Norm::Two>(loops);
  fill<Norm::Other>(loops);
  fill<Norm::Largest>(loops);
}

}  // namespace

void fill_distances(DistanceTable& table) {
  fill_all(table.floats);
  fill_all(table.doubles);
}

}  // namespace RL_ISA
}  // namespace rl
