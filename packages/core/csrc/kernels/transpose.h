// Transposes blocks of memory by squares that live in registers. For ISA sources only.
#pragma once
#include <utility>

#include "rushlight/simd.h"

namespace rl {
namespace RL_ISA {
namespace {

// One square of kBytes a side.
template <class T, int kBytes>
struct Turned {
  static constexpr int side = kBytes / static_cast<int>(sizeof(T));
  static constexpr int piece = 16 / static_cast<int>(sizeof(T));  // shuffles within 16 bytes are the fast ones
  typedef T Line __attribute__((vector_size(kBytes)));

  // The 16 bytes at p, at p + step and so on.
  static Line load_pieces(const T* p, int64_t step) {
    Line line;
#if defined(__AVX2__)
    const auto at = [&](int64_t i)
                        RL_INLINE { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + i * step)); };
#endif
    if constexpr (kBytes == 16) {
      std::memcpy(&line, p, 16);
#if defined(__AVX2__)
    } else if constexpr (kBytes == 32) {
      const __m256i v = _mm256_inserti128_si256(_mm256_castsi128_si256(at(0)), at(1), 1);
      std::memcpy(&line, &v, 32);
#endif
#if defined(__AVX512F__)
    } else {
      __m512i v = _mm512_castsi128_si512(at(0));
      v = _mm512_mask_broadcast_i32x4(v, 0x00f0, at(1));
      v = _mm512_mask_broadcast_i32x4(v, 0x0f00, at(2));
      v = _mm512_mask_broadcast_i32x4(v, 0xf000, at(3));
      std::memcpy(&line, &v, 64);
#endif
    }
    return line;
  }

  // a[0], b[0], a[1], b[1] ... of the first half of every 16 bytes, or of the second.
  template <int kHalf, size_t... I>
  static Line interleave(Line a, Line b, std::index_sequence<I...>) {
    constexpr auto from = [](int i) {
      return i / piece * piece + kHalf * piece / 2 + i % piece / 2 + (i % 2 == 0 ? 0 : side);
    };
#if defined(__clang__)
    return __builtin_shufflevector(a, b, from(I)...);
#else
    return __builtin_shuffle(a, b, Line{static_cast<T>(from(I))...});
#endif
  }

  static void transpose(const T* src, int64_t src_row, T* dst, int64_t dst_row) {
    for (int first = 0; first < side; first += piece) {
      Line lines[piece];
      repeat<piece>([&](auto k)
                        RL_INLINE { lines[k.value] = load_pieces(src + k.value * src_row + first, piece * src_row); });
      // Each round makes the upper bit of a row's number the lower one of its place: after all of them they are
      // exchanged.
      for (int round = 1; round < piece; round *= 2) {
        Line turned[piece];
        repeat<piece / 2>([&](auto i) RL_INLINE {
          const Line a = lines[i.value], b = lines[i.value + piece / 2];
          turned[2 * i.value] = interleave<0>(a, b, std::make_index_sequence<side>());
          turned[2 * i.value + 1] = interleave<1>(a, b, std::make_index_sequence<side>());
        });
        repeat<piece>([&](auto k) RL_INLINE { lines[k.value] = turned[k.value]; });
      }
      repeat<piece>([&](auto k) RL_INLINE { std::memcpy(dst + (first + k.value) * dst_row, &lines[k.value], kBytes); });
    }
  }
};

// dst[j][i] = src[i][j] for rows of elements of unsigned integers; the last square of a row or column overlaps.
template <class T, int kBytes = kVecBytes>
void transpose_block(const T* src, int64_t src_row, int64_t rows, int64_t cols, T* dst, int64_t dst_row) {
  using Square = Turned<T, kBytes>;
  if (rows >= Square::side && cols >= Square::side) {
    for (int64_t y = 0; y < rows; y += Square::side) {
      const int64_t i = least(y, rows - Square::side);
      for (int64_t x = 0; x < cols; x += Square::side) {
        const int64_t j = least(x, cols - Square::side);
        Square::transpose(src + i * src_row + j, src_row, dst + j * dst_row + i, dst_row);
      }
    }
  } else if constexpr (kBytes > 16) {
    transpose_block<T, kBytes / 2>(src, src_row, rows, cols, dst, dst_row);
  } else {
    for (int64_t j = 0; j < cols; ++j) {
      for (int64_t i = 0; i < rows; ++i) dst[j * dst_row + i] = src[i * src_row + j];
    }
  }
}

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
