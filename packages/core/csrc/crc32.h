// CRC-32 as zip and gzip have it (polynomial 0x04C11DB7, reflected).
#pragma once
#include <cstddef>
#include <cstdint>

namespace rl {

// The checksum of what gave `crc` (0 at the start) and n more bytes.
uint32_t crc32(uint32_t crc, const void* data, size_t n) noexcept;

}  // namespace rl
