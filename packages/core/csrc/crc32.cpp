#include "crc32.h"

#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#define RL_PCLMUL 1
#include <immintrin.h>
#endif

namespace rl {
namespace {

// Eight bytes at a time, a table per place in them.
struct Tables {
  uint32_t at[8][256];
  Tables() {
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = c >> 1 ^ (c & 1 ? 0xEDB88320u : 0);
      at[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; ++i)
      for (int k = 1; k < 8; ++k) at[k][i] = at[k - 1][i] >> 8 ^ at[0][at[k - 1][i] & 255];
  }
};

// `crc` is inverted on the way in and out by the caller.
uint32_t by_tables(uint32_t crc, const unsigned char* p, size_t n) {
  static const Tables t;
  for (; n >= 8; n -= 8, p += 8) {
    uint32_t low, high;
    std::memcpy(&low, p, 4);
    std::memcpy(&high, p + 4, 4);
    low ^= crc;
    crc = t.at[7][low & 255] ^ t.at[6][low >> 8 & 255] ^ t.at[5][low >> 16 & 255] ^ t.at[4][low >> 24] ^
          t.at[3][high & 255] ^ t.at[2][high >> 8 & 255] ^ t.at[1][high >> 16 & 255] ^ t.at[0][high >> 24];
  }
  for (; n; --n) crc = crc >> 8 ^ t.at[0][(crc ^ *p++) & 255];
  return crc;
}

#if RL_PCLMUL
#define RL_CLMUL __attribute__((target("pclmul,sse4.1")))

RL_CLMUL __m128i fold(__m128i x, __m128i k, __m128i next) {
  return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(x, k, 0x00), _mm_clmulepi64_si128(x, k, 0x11)), next);
}

// Four lanes of 128 bits folded over the data, then into one, then reduced: V. Gopal et al., "Fast CRC Computation for
// Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009. n is a multiple of 16 and at least 64.
RL_CLMUL uint32_t by_folding(uint32_t crc, const unsigned char* p, size_t n) {
  auto load = [](const unsigned char* q) RL_CLMUL { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(q)); };
  const __m128i by512 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4), by128 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
  __m128i lanes[4] = {load(p), load(p + 16), load(p + 32), load(p + 48)};
  lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128(static_cast<int>(crc)));
  for (p += 64, n -= 64; n >= 64; p += 64, n -= 64)
    for (int i = 0; i < 4; ++i) lanes[i] = fold(lanes[i], by512, load(p + 16 * i));
  __m128i x = lanes[0];
  for (int i = 1; i < 4; ++i) x = fold(x, by128, lanes[i]);
  for (; n; p += 16, n -= 16) x = fold(x, by128, load(p));

  const __m128i low32 = _mm_setr_epi32(-1, 0, -1, 0);
  x = _mm_xor_si128(_mm_clmulepi64_si128(x, by128, 0x10), _mm_srli_si128(x, 8));  // 128 to 96 bits
  x = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(x, low32), _mm_cvtsi64_si128(0x0163cd6124), 0x00),
                    _mm_srli_si128(x, 4));  // to 64 bits
  const __m128i barrett = _mm_set_epi64x(0x01f7011641, 0x01db710641);
  __m128i q = _mm_clmulepi64_si128(_mm_and_si128(x, low32), barrett, 0x10);
  q = _mm_clmulepi64_si128(_mm_and_si128(q, low32), barrett, 0x00);
  return static_cast<uint32_t>(_mm_extract_epi32(_mm_xor_si128(x, q), 1));
}
#endif

}  // namespace

uint32_t crc32(uint32_t crc, const void* data, size_t n) noexcept {
  auto* p = static_cast<const unsigned char*>(data);
  crc = ~crc;
#if RL_PCLMUL
  static const bool has_clmul = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  if (has_clmul && n >= 64) {
    const size_t whole = n & ~size_t{15};
    crc = by_folding(crc, p, whole);
    p += whole;
    n -= whole;
  }
#endif
  return ~by_tables(crc, p, n);
}

}  // namespace rl
