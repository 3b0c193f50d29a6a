// Vectors for kernels that are compiled once per instruction set: include in an ISA source only (see isa.h).
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
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

// GCC before 12 knows only the first spelling, Clang only the second.
#if !defined(__clang__)
#define RL_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, Index{__VA_ARGS__})
#else
#define RL_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#endif

// Integers as wide as T.
template <class T>
using IntOf = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

// p[0], p[2], p[4] ...: reads two vectors.
template <class T>
inline Vec<T> load_even(const T* p) {
#if defined(__clang__)
  Vec<T> v;
  for (int i = 0; i < kLanes<T>; ++i) v[i] = p[2 * i];
  return v;
#else
  Vec<IntOf<T>> even;
  repeat<kLanes<T>>([&](auto i) RL_INLINE { even[i.value] = 2 * i.value; });
  return __builtin_shuffle(load(p), load(p + kLanes<T>), even);
#endif
}

// dst[j][i] = src[i][j] for contiguous rows of src, in square blocks that live in registers.
template <class T>
struct Square {  // 32 bytes a side
  static constexpr int side = 32 / static_cast<int>(sizeof(T));
  typedef T Line __attribute__((vector_size(32)));
  static void transpose(const T* src, int64_t src_row, T* dst, int64_t dst_row) {
    Line r[side], s[side];
#pragma GCC unroll 8
    for (int i = 0; i < side; ++i) std::memcpy(&r[i], src + i * src_row, 32);
    if constexpr (sizeof(T) == 4) {
      typedef int32_t Index __attribute__((vector_size(32), unused));
#pragma GCC unroll 8
      for (int i = 0; i < 8; i += 2) {
        s[i] = RL_SHUFFLE(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        s[i + 1] = RL_SHUFFLE(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
      }
#pragma GCC unroll 8
      for (int i = 0; i < 8; i += 4) {
#pragma GCC unroll 8
        for (int x = 0; x < 2; ++x) {
          r[i + 2 * x] = RL_SHUFFLE(s[i + x], s[i + 2 + x], 0, 1, 8, 9, 4, 5, 12, 13);
          r[i + 2 * x + 1] = RL_SHUFFLE(s[i + x], s[i + 2 + x], 2, 3, 10, 11, 6, 7, 14, 15);
        }
      }
#pragma GCC unroll 8
      for (int i = 0; i < 4; ++i) {
        s[i] = RL_SHUFFLE(r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        s[i + 4] = RL_SHUFFLE(r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
      }
    } else {
      typedef int64_t Index __attribute__((vector_size(32), unused));
#pragma GCC unroll 8
      for (int i = 0; i < 4; i += 2) {
        s[i] = RL_SHUFFLE(r[i], r[i + 1], 0, 4, 2, 6);
        s[i + 1] = RL_SHUFFLE(r[i], r[i + 1], 1, 5, 3, 7);
      }
#pragma GCC unroll 8
      for (int i = 0; i < 2; ++i) {
        r[i] = RL_SHUFFLE(s[i], s[i + 2], 0, 1, 4, 5);
        r[i + 2] = RL_SHUFFLE(s[i], s[i + 2], 2, 3, 6, 7);
      }
#pragma GCC unroll 8
      for (int i = 0; i < 4; ++i) s[i] = r[i];
    }
#pragma GCC unroll 8
    for (int i = 0; i < side; ++i) std::memcpy(dst + i * dst_row, &s[i], 32);
  }
};

template <class T>
void transpose(const T* src, int64_t src_row, int64_t rows, int64_t cols, T* dst, int64_t dst_row) {
  constexpr int side = Square<T>::side;
  const int64_t full_rows = rows / side * side, full_cols = cols / side * side;
  for (int64_t i = 0; i < full_rows; i += side) {
    for (int64_t j = 0; j < full_cols; j += side) {
      Square<T>::transpose(src + i * src_row + j, src_row, dst + j * dst_row + i, dst_row);
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = i < full_rows ? full_cols : 0; j < cols; ++j) dst[j * dst_row + i] = src[i * src_row + j];
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
