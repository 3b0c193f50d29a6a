#include "random_isa.h"

#include <math.h>

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

// Rounded once, as PyTorch's vectorised code is; in double where the processor has no such instruction.
float fma_once(float a, float b, float c) {
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
float log_cephes(float x) {
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

void sincos_cephes(float x, float* sine, float* cosine) {  // x >= 0
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

}  // namespace

void fill_random_table(RandomTable& table) { table = {twist, temper, uniform, uniform_double, normal}; }

}  // namespace RL_ISA
}  // namespace rl
