// Float16 and BFloat16 as storage: conversion to and from float, rounding to nearest even.
#pragma once
#include <cstdint>

#if defined(__F16C__)
#include <immintrin.h>
#endif

#ifndef RL_ISA
#define RL_ISA base
#endif

namespace rl {
namespace RL_ISA {

struct Half {
  uint16_t bits;
};
struct BHalf {
  uint16_t bits;
};

template <class To, class From>
static inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

// The two Float16 conversions without F16C are branch-free forms of F. Giesen's (fgiesen.wordpress.com, 2012):
// exponents are moved by a multiplication, and an addition of a magic number rounds the subnormals.
static inline float to_float(Half h) {
#if defined(__F16C__)
  return _cvtsh_ss(h.bits);
#else
  const uint32_t magnitude = h.bits & 0x7fffu;
  const float scaled = bits_as<float>(magnitude << 13) * 0x1p112f;
  const uint32_t special = (magnitude << 13) | 0x7f800000u | (magnitude > 0x7c00u ? 0x400000u : 0u);
  const uint32_t bits = magnitude >= 0x7c00u ? special : bits_as<uint32_t>(scaled);
  return bits_as<float>(bits | (static_cast<uint32_t>(h.bits & 0x8000u) << 16));
#endif
}

static inline Half to_half(float x) {
#if defined(__F16C__)
  return {static_cast<uint16_t>(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))};
#else
  const uint32_t bits = bits_as<uint32_t>(x);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t subnormal = bits_as<uint32_t>(bits_as<float>(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  const uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  const uint32_t finite = magnitude < (113u << 23) ? subnormal : normal;
  const uint32_t large = magnitude > 0x7f800000u ? nan : 0x7c00u;
  const uint32_t result = magnitude >= (143u << 23) ? large : finite;
  return {static_cast<uint16_t>(result | ((bits >> 16) & 0x8000u))};
#endif
}

static inline float to_float(BHalf b) { return bits_as<float>(static_cast<uint32_t>(b.bits) << 16); }

static inline BHalf to_bhalf(float x) {
  const uint32_t bits = bits_as<uint32_t>(x);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return {static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded)};
}

static inline void widen(const Half* in, float* out, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16) {
    _mm512_storeu_ps(out + i, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i))));
  }
#elif defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
  }
#endif
  for (; i < n; ++i) out[i] = to_float(in[i]);
}

static inline void narrow(const float* in, Half* out, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16) {
    const __m256i h = _mm512_cvtps_ph(_mm512_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), h);
  }
#elif defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    const __m128i h = _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), h);
  }
#endif
  for (; i < n; ++i) out[i] = to_half(in[i]);
}

static inline void widen(const BHalf* in, float* out, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16) {
    const __m512i v = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i)));
    _mm512_storeu_si512(out + i, _mm512_slli_epi32(v, 16));
  }
#endif
#pragma GCC ivdep
  for (; i < n; ++i) out[i] = to_float(in[i]);
}

static inline void narrow(const float* in, BHalf* out, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16) {
    const __m512 x = _mm512_loadu_ps(in + i);
    const __m512i v = _mm512_castps_si512(x), odd = _mm512_and_si512(_mm512_srli_epi32(v, 16), _mm512_set1_epi32(1));
    const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(v, odd), _mm512_set1_epi32(0x7fff));
    const __m512i high = _mm512_mask_mov_epi32(_mm512_srli_epi32(sum, 16), _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q),
                                               _mm512_set1_epi32(0x7fc0));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm512_cvtepi32_epi16(high));
  }
#endif
#pragma GCC ivdep
  for (; i < n; ++i) out[i] = to_bhalf(in[i]);
}

}  // namespace RL_ISA
}  // namespace rl
