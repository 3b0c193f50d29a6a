// The matrix unit of x86-64 processors (AMX): eight registers of 16 rows of 64 bytes, here numbered by constants. For
// ISA sources that are compiled for AVX-512.
#pragma once
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rushlight/dtype.h"

namespace rl {
namespace RL_ISA {
namespace {

// The processor multiplies halves of this dtype in tiles, and the system lets this process do so.
inline bool has_tiles(DType half) {
  static const int known = [] {
    constexpr int kRequestPermission = 0x1023, kTileData = 18;  // arch_prctl(2)
    constexpr unsigned kTiles = 1u << 24, kBFloat16 = 1u << 22, kFloat16 = 1u << 21;
    unsigned eax, ebx, ecx, edx, more, unused;
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || !(edx & kTiles)) return 0;
    if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) != 0) return 0;
    if (eax < 1 || !__get_cpuid_count(7, 1, &more, &unused, &unused, &unused)) more = 0;
    return (edx & kBFloat16 ? 1 : 0) | (more & kFloat16 ? 2 : 0);
  }();
  return (known & (half == DType::BFloat16 ? 1 : 2)) != 0;
}

// All tiles are whole while one of these lives.
class TileUse {
 public:
  TileUse() {
    struct {
      uint8_t palette = 1, start = 0, reserved[14] = {};
      uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } config;
    asm volatile("ldtilecfg %0" : : "m"(config));
  }
  TileUse(const TileUse&) = delete;
  TileUse& operator=(const TileUse&) = delete;
  ~TileUse() { asm volatile("tilerelease"); }
};

template <int kTile>
inline void tile_zero() {
  asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
}
template <int kTile>
inline void tile_load(const void* from, int64_t row_bytes) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(row_bytes), "i"(kTile) : "memory");
}
template <int kTile>
inline void tile_store(void* to, int64_t row_bytes) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(row_bytes), "i"(kTile) : "memory");
}
// sum[i][j] += a[i][2 p] * b[p][2 j] + a[i][2 p + 1] * b[p][2 j + 1]: tdpbf16ps or tdpfp16ps, which few assemblers
// know.
template <DType half, int kSum, int kA, int kB>
inline void tile_multiply() {
  constexpr int kPrefix = half == DType::BFloat16 ? 2 : 3;
  asm volatile(".byte 0xc4, 0xe2, %c0, 0x5c, %c1" : : "i"((~kB & 15) << 3 | kPrefix), "i"(0xc0 | kSum << 3 | kA));
}

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
