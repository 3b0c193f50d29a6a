// Unsigned numbers in the order of the elements, NaN the highest, -0 as 0.
#pragma once
#include <cstdint>
#include <cstring>

#include "rushlight/half.h"

namespace rl {
namespace RL_ISA {
namespace {

template <class K, class S>
inline K float_key(S bits) {
  constexpr int top = 8 * sizeof(S) - 1;
  const S flips = static_cast<S>(-static_cast<S>(bits >> top)) | static_cast<S>(S(1) << top);  // all bits, or the sign
  return static_cast<S>(bits ^ flips);
}

struct Truth {  // an element of a bool tensor
  uint8_t byte;
};
inline uint32_t key_of(Truth v) { return v.byte != 0; }
inline uint32_t key_of(uint8_t v) { return v; }
inline uint32_t key_of(int8_t v) { return static_cast<uint8_t>(v) ^ 0x80u; }
inline uint32_t key_of(int16_t v) { return static_cast<uint16_t>(v) ^ 0x8000u; }
inline uint32_t key_of(int32_t v) { return static_cast<uint32_t>(v) ^ 0x80000000u; }
inline uint64_t key_of(int64_t v) { return static_cast<uint64_t>(v) ^ (uint64_t{1} << 63); }
inline uint32_t key_of(float v) {
  if (v != v) return ~0u;
  uint32_t bits;
  v += 0.0f;
  std::memcpy(&bits, &v, sizeof bits);
  return float_key<uint32_t>(bits);
}
inline uint64_t key_of(double v) {
  if (v != v) return ~uint64_t{0};
  uint64_t bits;
  v += 0.0;
  std::memcpy(&bits, &v, sizeof bits);
  return float_key<uint64_t>(bits);
}
inline uint32_t key_of(Half v) { return key_of(to_float(v)) >> 13 | (to_float(v) != to_float(v) ? ~0u : 0u); }
inline uint32_t key_of(BHalf v) { return key_of(to_float(v)) >> 16 | (to_float(v) != to_float(v) ? ~0u : 0u); }

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
