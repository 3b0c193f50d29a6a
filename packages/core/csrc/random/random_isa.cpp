#include "random_isa.h"

#include <math.h>

#include "rushlight/simd.h"

namespace rl {
namespace RL_ISA {
namespace {

constexpr int kWords = 624, kShift = 397;

void twist(uint32_t* s) {
  const auto step = [](uint32_t far, uint32_t a, uint32_t b) {
    const uint32_t y = (a & 0x80000000u) | (b & 0x7fffffffu);
    return far ^ (y >> 1) ^ ((b & 1u) ? 0x9908b0dfu : 0u);
  };
#pragma GCC ivdep
  for (int i = 0; i < kWords - kShift; ++i) s[i] = step(s[i + kShift], s[i], s[i + 1]);
  // A word needs the one 227 before it, which is new already: blocks below that length are independent.
  for (int begin = kWords - kShift; begin < kWords - 1; begin += 198) {
#pragma GCC ivdep
    for (int i = begin; i < begin + 198; ++i) s[i] = step(s[i + kShift - kWords], s[i], s[i + 1]);
  }
  s[kWords - 1] = step(s[kShift - 1], s[kWords - 1], s[0]);
}

void temper(const uint32_t* state, uint32_t* out) {
  for (int i = 0; i < kWords; ++i) {
    uint32_t y = state[i];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    out[i] = y ^ (y >> 18);
  }
}

using Words = Vec<uint64_t>;  // 32 bits count in each lane, those above are arbitrary

[[gnu::always_inline]] inline Words product(uint32_t a, Words b) {
#if defined(__AVX512F__)
  return reinterpret_cast<Words>(_mm512_mul_epu32(_mm512_set1_epi64(a), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
  return reinterpret_cast<Words>(_mm256_mul_epu32(_mm256_set1_epi64x(a), reinterpret_cast<__m256i>(b)));
#else
  return splat<uint64_t>(a) * (b & 0xffffffffu);
#endif
}

// Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t* out, int64_t blocks) {
  constexpr int kLanes = rl::RL_ISA::kLanes<uint64_t>, kVectors = 4, kBlocks = kLanes * kVectors;
  const uint64_t first = static_cast<uint64_t>(counter[1]) << 32 | counter[0];
  for (int64_t b = 0; b < blocks; b += kBlocks) {
    Words x0[kVectors], x1[kVectors], x2[kVectors], x3[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      for (int j = 0; j < kLanes; ++j) x0[v][j] = first + static_cast<uint64_t>(b + v * kLanes + j);
      x1[v] = x0[v] >> 32;
      x2[v] = splat<uint64_t>(counter[2]);
      x3[v] = splat<uint64_t>(counter[3]);
    }
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; ++round, k0 += 0x9e3779b9u, k1 += 0xbb67ae85u) {
      repeat<kVectors>([&](auto at) {
        constexpr int v = decltype(at)::value;
        const Words p0 = product(0xd2511f53u, x0[v]), p1 = product(0xcd9e8d57u, x2[v]);
        x0[v] = (p1 >> 32) ^ x1[v] ^ k0;
        x2[v] = (p0 >> 32) ^ x3[v] ^ k1;
        x1[v] = p1;
        x3[v] = p0;
      });
    }
    uint64_t pairs[2][kBlocks], mixed[2 * kBlocks];
    for (int v = 0; v < kVectors; ++v) {
      store(pairs[0] + v * kLanes, (x0[v] & 0xffffffffu) | x1[v] << 32);
      store(pairs[1] + v * kLanes, (x2[v] & 0xffffffffu) | x3[v] << 32);
    }
    for (int j = 0; j < kBlocks; ++j) {
      mixed[2 * j] = pairs[0][j];
      mixed[2 * j + 1] = pairs[1][j];
    }
    const int64_t left = least(blocks - b, kBlocks);
    for (int64_t j = 0; j < 2 * left; ++j, out += 2) {
      out[0] = static_cast<uint32_t>(mixed[j]);
      out[1] = static_cast<uint32_t>(mixed[j] >> 32);
    }
  }
}

// Rounded once, as PyTorch's vectorised code is; in double where the processor has no such instruction.
[[gnu::always_inline]] inline float fma_once(float a, float b, float c) {
#if defined(__FMA__) || defined(__aarch64__)
  return __builtin_fmaf(a, b, c);
#else
  return static_cast<float>(static_cast<double>(a) * b + c);
#endif
}

void uniform(const uint32_t* bits, float* out, int64_t n, float from, float range) {
  for (int64_t i = 0; i < n; ++i) {
    out[i] = fma_once(static_cast<float>(static_cast<int32_t>(bits[i] & 0xffffffu)) * 0x1p-24f, range, from);
  }
}

void uniform_double(const uint32_t* bits, double* out, int64_t n, double from, double range) {
  for (int64_t i = 0; i < n; ++i) {
    const double high = static_cast<int32_t>(bits[2 * i] & 0x1fffffu), low = bits[2 * i + 1];
    out[i] = fma((high * 0x1p32 + low) * 0x1p-53, range, from);
  }
}

// Natural logarithm, sine and cosine of Cephes in single precision (S. Moshier), in the vector form of J. Pommier
// (gruntthepeon.free.fr/ssemath) whose roundings the bits of the stream depend on.
[[gnu::always_inline]] inline float log_cephes(float x) {
  uint32_t bits;
  x = x < 1.17549435e-38f ? 1.17549435e-38f : x;
  __builtin_memcpy(&bits, &x, sizeof bits);
  float e = static_cast<float>(static_cast<int32_t>(bits >> 23) - 0x7f) + 1.0f;
  bits = (bits & ~0x7f800000u) | 0x3f000000u;
  float m;
  __builtin_memcpy(&m, &bits, sizeof m);
  const bool small = m < 0.707106781186547524f;
  e = small ? e - 1.0f : e;
  m = (m - 1.0f) + (small ? m : 0.0f);
  const float z = m * m;
  float y = 7.0376836292e-2f;
  y = fma_once(y, m, -1.1514610310e-1f);
  y = fma_once(y, m, 1.1676998740e-1f);
  y = fma_once(y, m, -1.2420140846e-1f);
  y = fma_once(y, m, 1.4249322787e-1f);
  y = fma_once(y, m, -1.6668057665e-1f);
  y = fma_once(y, m, 2.0000714765e-1f);
  y = fma_once(y, m, -2.4999993993e-1f);
  y = fma_once(y, m, 3.3333331174e-1f);
  y = fma_once(y * m, z, e * -2.12194440e-4f);
  y = fma_once(z, -0.5f, y);
  return fma_once(e, 0.693359375f, m + y);
}

[[gnu::always_inline]] inline void sincos_cephes(float x, float* sine, float* cosine) {  // x >= 0
  const int32_t j = (static_cast<int32_t>(x * 1.27323954473516f) + 1) & ~1;
  const float q = static_cast<float>(j);
  x = fma_once(q, -0.78515625f, x);
  x = fma_once(q, -2.4187564849853515625e-4f, x);
  x = fma_once(q, -3.77489497744594108e-8f, x);
  const float z = x * x;
  float c = 2.443315711809948e-5f;
  c = fma_once(c, z, -1.388731625493765e-3f);
  c = fma_once(c, z, 4.166664568298827e-2f);
  c = fma_once(c * z, z, z * -0.5f) + 1.0f;
  float s = -1.9515295891e-4f;
  s = fma_once(s, z, 8.3321608736e-3f);
  s = fma_once(s, z, -1.6666654611e-1f);
  s = fma_once(s * z, x, x);
  const bool swap = (j & 2) != 0;
  const float sin_value = swap ? c : s, cos_value = swap ? s : c;
  *sine = (j & 4) != 0 ? -sin_value : sin_value;
  *cosine = ((j - 2) & 4) == 0 ? -cos_value : cos_value;
}

void normal(float* values, int64_t groups, float mean, float std) {
  constexpr int kGroups = 8;
  for (int64_t g = 0; g < groups; g += kGroups) {
    const int k = static_cast<int>(groups - g < kGroups ? groups - g : kGroups);
    float u[kGroups * 8] = {}, v[kGroups * 8] = {};
    float* group = values + g * 16;
    for (int i = 0; i < k; ++i) {
      for (int j = 0; j < 8; ++j) {
        u[i * 8 + j] = group[i * 16 + j];
        v[i * 8 + j] = group[i * 16 + 8 + j];
      }
    }
    for (int i = 0; i < kGroups * 8; ++i) {
      const float radius = sqrtf(-2.0f * log_cephes(1.0f - u[i]));
      float sine, cosine;
      sincos_cephes(6.283185307179586f * v[i], &sine, &cosine);
      u[i] = fma_once(radius * cosine, std, mean);
      v[i] = fma_once(radius * sine, std, mean);
    }
    for (int i = 0; i < k; ++i) {
      for (int j = 0; j < 8; ++j) {
        group[i * 16 + j] = u[i * 8 + j];
        group[i * 16 + 8 + j] = v[i * 8 + j];
      }
    }
  }
}

// M. Giles, "Approximating the erfinv function" (2010), with 4 t (1 - t) for 1 - x^2 so that tails keep their digits.
void normal_quantile(const uint32_t* bits, float* out, int64_t n, float mean, float std) {
  for (int64_t i = 0; i < n; ++i) {
    const int32_t magnitude = static_cast<int32_t>(bits[i] & 0x7fffffffu);
    const float t = fma_once(static_cast<float>(magnitude), 0x1p-32f, 0x1p-33f);               // in (0, 0.5]
    const float x = fma_once(static_cast<float>(0x7fffffff - magnitude), 0x1p-31f, 0x1p-32f);  // 1 - 2 t
    const float w = -log_cephes(4.0f * t * (1.0f - t));
    const float c = w - 2.5f, s = sqrtf(w) - 3.0f;
    float central = 2.81022636e-08f;
    central = fma_once(central, c, 3.43273939e-07f);
    central = fma_once(central, c, -3.5233877e-06f);
    central = fma_once(central, c, -4.39150654e-06f);
    central = fma_once(central, c, 0.00021858087f);
    central = fma_once(central, c, -0.00125372503f);
    central = fma_once(central, c, -0.00417768164f);
    central = fma_once(central, c, 0.246640727f);
    central = fma_once(central, c, 1.50140941f);
    float tail = -0.000200214257f;
    tail = fma_once(tail, s, 0.000100950558f);
    tail = fma_once(tail, s, 0.00134934322f);
    tail = fma_once(tail, s, -0.00367342844f);
    tail = fma_once(tail, s, 0.00573950773f);
    tail = fma_once(tail, s, -0.0076224613f);
    tail = fma_once(tail, s, 0.00943887047f);
    tail = fma_once(tail, s, 1.00167406f);
    tail = fma_once(tail, s, 2.83297682f);
    const float z = (w < 5.0f ? central : tail) * x * 1.41421356f;
    out[i] = fma_once((bits[i] & 0x80000000u) != 0 ? z : -z, std, mean);
  }
}

}  // namespace

void fill_random_table(RandomTable& table) {
  table = {twist, temper, philox, uniform, uniform_double, normal, normal_quantile};
}

}  // namespace RL_ISA
}  // namespace rl
