// Conversions between all dtypes.
#include "cast_table.h"
#include "complex.h"
#include "rushlight/loop.h"
#include "rushlight/simd.h"
#include "transpose.h"

namespace rl {
namespace RL_ISA {
namespace {

// Truncates; saturates at the ends of To; NaN becomes 0. Both ends are compared as powers of two, which From holds.
template <class To, class From>
static inline To saturate(From x) {
  constexpr auto kMax = static_cast<std::make_unsigned_t<To>>(-1);
  constexpr To kHigh = static_cast<To>(std::is_signed_v<To> ? kMax / 2 : kMax);
  constexpr From kEnd = static_cast<From>(kHigh / 2 + 1) * 2;  // the first value above kHigh
  constexpr From kLow = std::is_signed_v<To> ? -kEnd : From(0);
  const bool high = x >= kEnd;
  From inside = x < kLow ? kLow : x;
  inside = ((x != x) | high) ? From(0) : inside;
  // Small integers by way of int32, which the vector units convert.
  using Wide = std::conditional_t<(sizeof(To) < 4), int32_t, To>;
  return high ? kHigh : static_cast<To>(static_cast<Wide>(inside));
}

template <class To, class From>
static inline To convert(From x) {
  if constexpr (IsComplex<From>::value && IsComplex<To>::value) {
    return To(static_cast<decltype(To().re)>(x.re), static_cast<decltype(To().re)>(x.im));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (IsComplex<From>::value) {
    return convert<To>(x.re);
  } else if constexpr (IsComplex<To>::value) {
    return To(static_cast<decltype(To().re)>(x));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return saturate<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <class To>
struct Convert {
  template <class From>
  To operator()(From x) const {
    return convert<To>(x);
  }
};

// Halves are computed as floats.
template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BHalf>;
template <class T>
using Computed = std::conditional_t<kIsHalf<T>, float, T>;
template <class T>
inline constexpr Cell kCellOf = std::is_same_v<T, Half>    ? Cell::Half
                                : std::is_same_v<T, BHalf> ? Cell::BHalf
                                                           : cell_of<Computed<T>>();

template <class From, class To>
void cast(char* const* data, const int64_t* strides, int64_t n, const void*) {
  using K = Kernel<Convert<Computed<To>>, NoGuard, Computed<To>, 0, Nothing, Computed<From>>;
  static constexpr Plan kPlan{K::blocks, K::kBlock, 1, {kCellOf<To>, kCellOf<From>}};
  run_plan(kPlan, data, strides, n, nullptr);
}

// Copies the bits.
template <class T>
void copy(char* const* data, const int64_t* strides, int64_t n, const void*) {
  constexpr int64_t kSize = sizeof(T);
  if (strides[0] == kSize && strides[1] == kSize) {
    __builtin_memcpy(data[0], data[1], n * kSize);
  } else if (strides[0] == kSize) {
    gather<T>(data[1], strides[1], data[0], n);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      *reinterpret_cast<T*>(data[0] + i * strides[0]) = *reinterpret_cast<const T*>(data[1] + i * strides[1]);
    }
  }
}

constexpr Loop copy_of(int64_t size) {
  return size == 1   ? copy<uint8_t>
         : size == 2 ? copy<uint16_t>
         : size == 4 ? copy<uint32_t>
         : size == 8 ? copy<uint64_t>
                     : copy<Pair64>;
}

template <class T>
void reverse(char* const* data, const int64_t*, int64_t n, const void*) {
  T* __restrict out = reinterpret_cast<T*>(data[0]);
  const T* in = reinterpret_cast<const T*>(data[1]);
  for (int64_t i = 0; i < n; ++i) out[i] = in[-i];
}

template <class T>
void repeat(char* const* data, const int64_t* strides, int64_t n, const void* params) {
  T value;
  std::memcpy(&value, params, sizeof value);
  T* out = reinterpret_cast<T*>(data[0]);
  if (strides[0] == sizeof(T)) {
    for (int64_t i = 0; i < n; ++i) out[i] = value;
  } else {
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(data[0] + i * strides[0]) = value;
  }
}

template <class T>
void transpose_tile(const char* src, int64_t src_row, int64_t rows, int64_t cols, char* dst, int64_t dst_row) {
  constexpr int64_t kSize = sizeof(T);
  if constexpr (kSize <= 8) {
    // Whole lines of the cache, unless each store would cross two.
    const bool aligned = (reinterpret_cast<uintptr_t>(dst) | static_cast<uintptr_t>(dst_row)) % kVecBytes == 0;
    constexpr int kNarrow = kVecBytes < 32 ? kVecBytes : 32;
    const auto turn = aligned ? transpose_block<T, kVecBytes> : transpose_block<T, kNarrow>;
    turn(reinterpret_cast<const T*>(src), src_row / kSize, rows, cols, reinterpret_cast<T*>(dst), dst_row / kSize);
  } else {
    for (int64_t j = 0; j < cols; ++j) {
      T* out = reinterpret_cast<T*>(dst + j * dst_row);
      for (int64_t i = 0; i < rows; ++i) out[i] = reinterpret_cast<const T*>(src + i * src_row)[j];
    }
  }
}

template <class From, class To>
constexpr Loop cast_of() {
  if constexpr (std::is_same_v<From, To> || (sizeof(From) == 1 && std::is_integral_v<From> && sizeof(To) == 1 &&
                                             std::is_same_v<From, bool> == std::is_same_v<To, bool>)) {
    return copy_of(sizeof(To));
  } else {
    return cast<From, To>;
  }
}

template <class From, class... To>
void fill_row(CastTable& table, Types<To...>) {
  ((table.loops[static_cast<int>(dtype_of<From>())][static_cast<int>(dtype_of<To>())] = cast_of<From, To>()), ...);
}

template <class... T>
void fill_rows(CastTable& table, Types<T...> all) {
  (fill_row<T>(table, all), ...);
}

template <class T>
void fill_moves(CastTable& table) {
  table.reverse[sizeof(T)] = reverse<T>;
  table.repeat[sizeof(T)] = repeat<T>;
  table.transpose[sizeof(T)] = transpose_tile<T>;
}

}  // namespace

void fill_casts(CastTable& table) {
  fill_rows(table, Types<uint8_t, int8_t, int16_t, int32_t, int64_t, Half, BHalf, float, double, Complex<float>,
                         Complex<double>, bool>());
  fill_moves<uint8_t>(table);
  fill_moves<uint16_t>(table);
  fill_moves<uint32_t>(table);
  fill_moves<uint64_t>(table);
  fill_moves<Pair64>(table);
}

}  // namespace RL_ISA
}  // namespace rl
