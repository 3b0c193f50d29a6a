// Vectors for kernels that are compiled once per instruction set: include in an ISA source only (see isa.h).
#pragma once

#include <cstdint>
#include <cstring>
#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#define RL_INLINE __attribute__((always_inline))

namespace rl {
namespace RL_ISA {
namespace {

// The bytes of a vector, and the tile of sums (rows of vectors) that fits the registers beside its operands.
#if defined(__AVX512F__)
constexpr int kVecBytes = 64, kFloatRows = 14, kVecs = 2;
#elif defined(__AVX2__)
constexpr int kVecBytes = 32, kFloatRows = 6, kVecs = 2;
#elif defined(__aarch64__)
constexpr int kVecBytes = 16, kFloatRows = 8, kVecs = 3;
#else
constexpr int kVecBytes = 16, kFloatRows = 4, kVecs = 2;
#endif

constexpr int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
constexpr int64_t parts(int64_t n, int64_t size) { return (n + size - 1) / size; }

template <class T>
struct VecOf {
  typedef T type __attribute__((vector_size(kVecBytes)));
};
template <class T>
using Vec = typename VecOf<T>::type;
template <class T>
constexpr int kLanes = kVecBytes / static_cast<int>(sizeof(T));

template <class T>
inline Vec<T> load(const T* p) {
  Vec<T> v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}
template <class T>
inline void store(T* p, Vec<T> v) {
  std::memcpy(p, &v, sizeof(v));
}
template <class T>
inline Vec<T> splat(T x) {
  return x - Vec<T>{};  // exact, unlike x + 0
}

#if defined(__AVX2__) && !defined(__AVX512F__)
template <class T>
inline __m256i first_lanes(int64_t n) {
  if constexpr (sizeof(T) == 4) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  } else {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
  }
}
#endif

// The first `n` lanes, the others zero; 0 <= n <= kLanes. Memory behind them is not touched.
template <class T>
inline Vec<T> load(const T* p, int64_t n) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    return reinterpret_cast<Vec<T>>(_mm512_maskz_loadu_epi32(static_cast<__mmask16>((1u << n) - 1), p));
  } else {
    return reinterpret_cast<Vec<T>>(_mm512_maskz_loadu_epi64(static_cast<__mmask8>((1u << n) - 1), p));
  }
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4) {
    return reinterpret_cast<Vec<T>>(_mm256_maskload_epi32(reinterpret_cast<const int*>(p), first_lanes<T>(n)));
  } else {
    return reinterpret_cast<Vec<T>>(_mm256_maskload_epi64(reinterpret_cast<const long long*>(p), first_lanes<T>(n)));
  }
#else
  Vec<T> v{};
  std::memcpy(&v, p, static_cast<size_t>(n) * sizeof(T));
  return v;
#endif
}
template <class T>
inline void store(T* p, Vec<T> v, int64_t n) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    _mm512_mask_storeu_epi32(p, static_cast<__mmask16>((1u << n) - 1), reinterpret_cast<__m512i>(v));
  } else {
    _mm512_mask_storeu_epi64(p, static_cast<__mmask8>((1u << n) - 1), reinterpret_cast<__m512i>(v));
  }
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4) {
    _mm256_maskstore_epi32(reinterpret_cast<int*>(p), first_lanes<T>(n), reinterpret_cast<__m256i>(v));
  } else {
    _mm256_maskstore_epi64(reinterpret_cast<long long*>(p), first_lanes<T>(n), reinterpret_cast<__m256i>(v));
  }
#else
  std::memcpy(p, &v, static_cast<size_t>(n) * sizeof(T));
#endif
}

template <class T>
inline T sum_lanes(Vec<T> v) {
  typedef T Half __attribute__((vector_size(kVecBytes / 2)));
  Half low, high;
  std::memcpy(&low, &v, sizeof(low));
  std::memcpy(&high, reinterpret_cast<const char*>(&v) + sizeof(low), sizeof(high));
  low += high;
  T part[kLanes<T> / 2];
  std::memcpy(part, &low, sizeof(low));
  for (int width = kLanes<T> / 4; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) part[i] += part[i + width];
  }
  return part[0];
}

// f(Constant<0>), f(Constant<1>), ...: a loop whose indices are constants before the optimizer places arrays in
// registers.
template <int I>
struct Constant {
  static constexpr int value = I;
};
template <int Count, int I = 0, class F>
[[gnu::always_inline]] inline void repeat(const F& f) {
  if constexpr (I < Count) {
    f(Constant<I>{});
    repeat<Count, I + 1>(f);
  }
}

// sum[i * N + j] = vector j of A @ B: R rows of A, at(i, p), times N vectors of B, vec(p, j). B reads its last vector
// by last_vec, which may leave out lanes that do not exist.
template <class T, int R, int N, class A, class B>
RL_INLINE inline void multiply(int64_t k, const A& a, const B& b, int64_t last, Vec<T>* sum) {
  repeat<R * N>([&](auto x) RL_INLINE { sum[x.value] = Vec<T>{}; });
  for (int64_t p = 0; p < k; ++p) {
    Vec<T> row[N];
    repeat<N>([&](auto j)
                  RL_INLINE { row[j.value] = j.value + 1 < N ? b.vec(p, j.value) : b.last_vec(p, j.value, last); });
    repeat<R>([&](auto i) RL_INLINE {
      const Vec<T> x = splat(a.at(i.value, p));
      repeat<N>([&](auto j) RL_INLINE { sum[i.value * N + j.value] += x * row[j.value]; });
    });
  }
}

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
