// arange and linspace, with the bits that PyTorch gives.
#include "range_table.h"
#include "rushlight/loop.h"
#include "rushlight/vecmath.h"

namespace rl {
namespace RL_ISA {
namespace {

// start + i * step, rounded once: linspace and arange depend on it, so without FMA the C library computes it.
RL_INLINE double step_from(double start, double i, double step) { return __builtin_fma(i, step, start); }
RL_INLINE float step_from(float start, float i, float step) { return __builtin_fmaf(i, step, start); }

template <class T>
RL_INLINE T round_to(double x) {
  if constexpr (std::is_same_v<T, Half>) {
    return to_half(static_cast<float>(x));
  } else if constexpr (std::is_same_v<T, BHalf>) {
    return to_bhalf(static_cast<float>(x));
  } else {
    return static_cast<T>(x);
  }
}
RL_INLINE float value_of(Half x) { return to_float(x); }
RL_INLINE float value_of(BHalf x) { return to_float(x); }
RL_INLINE double value_of(float x) { return x; }
RL_INLINE double value_of(double x) { return x; }

// PyTorch rounds the first element of a block of kBlock to T and counts from there, in whole pairs of blocks; the rest
// of the range is computed from `start`.
template <class T, class Wide, int kBlock>
void arange(char* dst, int64_t begin, int64_t end, int64_t n, double start, double step) {
  T* out = reinterpret_cast<T*>(dst);
  const Wide first = static_cast<Wide>(start), by = static_cast<Wide>(step);
  const int64_t paired = n - n % (2 * kBlock) < end ? n - n % (2 * kBlock) : end;
  int64_t i = begin;
  for (; i < paired; i += kBlock) {
    const Wide base = value_of(round_to<T>(step_from(first, static_cast<Wide>(i), by)));
    for (int j = 0; j < kBlock; ++j) out[i + j] = round_to<T>(step_from(base, static_cast<Wide>(j), by));
  }
  for (; i < end; ++i) out[i] = round_to<T>(step_from(first, static_cast<Wide>(i), by));
}

template <class T>
void integer_arange(char* dst, int64_t begin, int64_t end, int64_t start, int64_t step) {
  T* out = reinterpret_cast<T*>(dst);
  for (int64_t i = begin; i < end; ++i) {
    const uint64_t value = static_cast<uint64_t>(start) + static_cast<uint64_t>(i) * static_cast<uint64_t>(step);
    out[i] = static_cast<T>(static_cast<int64_t>(value));
  }
}

// Counts from the nearer end.
template <class T>
void linspace(char* dst, int64_t begin, int64_t end, int64_t n, double start, double last) {
  T* out = reinterpret_cast<T*>(dst);
  const T a = static_cast<T>(start), b = static_cast<T>(last);
  const T step = n > 1 ? (b - a) / static_cast<T>(n - 1) : T(0);
  const int64_t middle = n == 1 ? 1 : n / 2;
  for (int64_t i = begin; i < end; ++i) {
    const bool low = i < middle;
    out[i] = step_from(low ? a : b, static_cast<T>(low ? i : n - 1 - i), low ? step : -step);
  }
}

// Every intermediate value is rounded to T.
template <class T>
void half_linspace(char* dst, int64_t begin, int64_t end, int64_t n, double start, double last) {
  T* out = reinterpret_cast<T*>(dst);
  const auto rounded = [](float x) { return value_of(round_to<T>(x)); };
  const float a = rounded(static_cast<float>(start)), b = rounded(static_cast<float>(last));
  const float step = n > 1 ? rounded(rounded(b - a) / rounded(static_cast<float>(n - 1))) : 0;
  const int64_t middle = n == 1 ? 1 : n / 2;
  for (int64_t i = begin; i < end; ++i) {
    const bool low = i < middle;
    const float way = rounded(step * rounded(static_cast<float>(low ? i : n - 1 - i)));
    out[i] = round_to<T>(low ? a + way : b - way);
  }
}

template <class T>
void integer_linspace(char* dst, int64_t begin, int64_t end, int64_t n, double start, double last) {
  T* out = reinterpret_cast<T*>(dst);
  const double step = n > 1 ? (last - start) / static_cast<double>(n - 1) : 0;
  const int64_t middle = n == 1 ? 1 : n / 2;
  for (int64_t i = begin; i < end; ++i) {
    const double value =
        i < middle ? start + step * static_cast<double>(i) : last - step * static_cast<double>(n - 1 - i);
    out[i] = static_cast<T>(static_cast<int64_t>(value));
  }
}

template <class T>
void fill_integer(RangeTable& table) {
  const int d = static_cast<int>(dtype_of<T>());
  table.integer_arange[d] = integer_arange<T>;
  table.linspace[d] = integer_linspace<T>;
}

template <class T>
void fill_real(RangeTable& table, Range arange, Range linspace) {
  const int d = static_cast<int>(dtype_of<T>());
  table.arange[d] = arange;
  table.linspace[d] = linspace;
}

}  // namespace

void fill_ranges(RangeTable& table) {
  fill_integer<uint8_t>(table);
  fill_integer<int8_t>(table);
  fill_integer<int16_t>(table);
  fill_integer<int32_t>(table);
  fill_integer<int64_t>(table);
  fill_real<Half>(table, arange<Half, float, 16>, half_linspace<Half>);
  fill_real<BHalf>(table, arange<BHalf, float, 16>, half_linspace<BHalf>);
  fill_real<float>(table, arange<float, double, 8>, linspace<float>);
  fill_real<double>(table, arange<double, double, 4>, linspace<double>);
}

}  // namespace RL_ISA
}  // namespace rl
