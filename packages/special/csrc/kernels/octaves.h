// For AVX-512: polynomials on parts of octaves. A column of coefficients fills two registers, from which one
// instruction picks for all lanes, and the row is read off the bits of a number. What lies outside of a table is left
// to the loop for any processor.
#pragma once
#include "segments.h"

#if defined(__AVX512F__)
namespace rl {
namespace RL_ISA {
namespace octaves {

RL_INLINE __m512 load(const float* from) { return _mm512_loadu_ps(from); }
RL_INLINE __m512d load(const double* from) { return _mm512_loadu_pd(from); }
RL_INLINE void store(float* to, __m512 x) { _mm512_storeu_ps(to, x); }
RL_INLINE void store(double* to, __m512d x) { _mm512_storeu_pd(to, x); }
RL_INLINE void store(float* to, __mmask16 lanes, __m512 x) { _mm512_mask_storeu_ps(to, lanes, x); }
RL_INLINE void store(double* to, __mmask8 lanes, __m512d x) { _mm512_mask_storeu_pd(to, lanes, x); }

RL_INLINE __m512i bits(__m512 x) { return _mm512_castps_si512(x); }
RL_INLINE __m512i bits(__m512d x) { return _mm512_castpd_si512(x); }
RL_INLINE __m512 filled(float x, __m512) { return _mm512_set1_ps(x); }
RL_INLINE __m512d filled(double x, __m512d) { return _mm512_set1_pd(x); }
RL_INLINE __m512 madd(__m512 x, __m512 y, __m512 z) { return _mm512_fmadd_ps(x, y, z); }
RL_INLINE __m512d madd(__m512d x, __m512d y, __m512d z) { return _mm512_fmadd_pd(x, y, z); }
RL_INLINE __m512 abs(__m512 x) { return _mm512_abs_ps(x); }
RL_INLINE __m512d abs(__m512d x) { return _mm512_abs_pd(x); }
RL_INLINE __m512 smaller(__m512 x, __m512 y) { return _mm512_min_ps(x, y); }  // y where one is NaN
RL_INLINE __m512d smaller(__m512d x, __m512d y) { return _mm512_min_pd(x, y); }
RL_INLINE __m512 larger(__m512 x, __m512 y) { return _mm512_max_ps(x, y); }
RL_INLINE __m512d larger(__m512d x, __m512d y) { return _mm512_max_pd(x, y); }
RL_INLINE __mmask16 negative(__m512 x) { return _mm512_movepi32_mask(bits(x)); }
RL_INLINE __mmask8 negative(__m512d x) { return _mm512_movepi64_mask(bits(x)); }
RL_INLINE __mmask16 not_at_least(__m512 x, float y) { return _mm512_cmp_ps_mask(x, filled(y, x), _CMP_NGE_UQ); }
RL_INLINE __mmask8 not_at_least(__m512d x, double y) { return _mm512_cmp_pd_mask(x, filled(y, x), _CMP_NGE_UQ); }
RL_INLINE __mmask16 not_at_most(__m512 x, float y) { return _mm512_cmp_ps_mask(x, filled(y, x), _CMP_NLE_UQ); }
RL_INLINE __m512 select(__mmask16 lanes, __m512 x, __m512 otherwise) { return _mm512_mask_mov_ps(otherwise, lanes, x); }
RL_INLINE __m512d select(__mmask8 lanes, __m512d x, __m512d otherwise) {
  return _mm512_mask_mov_pd(otherwise, lanes, x);
}
// The bits of a subnormal number are its multiple of the least one, which the instruction takes a hundred cycles to
// find.
RL_INLINE __m512 scale(__m512 x, __m512 exponent) {
  const __m512 multiple = _mm512_scalef_ps(x, exponent + 149);
  const __mmask16 normal = not_at_most(multiple, 0x1p23f);
  const __m512 subnormal = _mm512_castsi512_ps(_mm512_cvtps_epi32(multiple));
  return _mm512_mask_scalef_ps(subnormal, normal, x, exponent);
}
RL_INLINE __m512d scale(__m512d x, __m512d exponent) { return _mm512_scalef_pd(x, exponent); }

RL_INLINE __m512 look_up(const float* column, __m512i row) {
  return _mm512_permutex2var_ps(_mm512_load_ps(column), row, _mm512_load_ps(column + 16));
}
RL_INLINE __m512d look_up(const double* column, __m512i row) {
  return _mm512_permutex2var_pd(_mm512_load_pd(column), row, _mm512_load_pd(column + 8));
}
// The exponent and the first `kBits` of the mantissa; a table has rows for the last bits of that.
template <int kBits>
RL_INLINE __m512i row_of(__m512 x) {
  return _mm512_srli_epi32(bits(x), 23 - kBits);
}
template <int kBits>
RL_INLINE __m512i row_of(__m512d x) {
  return _mm512_srli_epi64(bits(x), 52 - kBits);
}

template <class T>
using Vector = std::conditional_t<sizeof(T) == 4, __m512, __m512d>;

// As a sum whose second part is small.
template <class Table, class V>
RL_INLINE void on_part(const Table& table, __m512i row, V x, V& first, V& second) {
  const V t = x - look_up(table.column[0], row);
  V y = look_up(table.column[Table::coefficients], row);
#pragma GCC unroll 24
  for (int k = Table::coefficients - 1; k > 1; --k) y = madd(y, t, look_up(table.column[k], row));
  const V constant = look_up(table.column[1], row);
  first = madd(y, t, constant);
  second = madd(y, t, constant - first);
}
template <class Table, class V>
RL_INLINE V on_part(const Table& table, __m512i row, V x) {
  V first, second;
  on_part(table, row, x, first, second);
  return first;
}

// factor * exp(-high - low) for 0 <= high < 1000. Of a float's roundings those before the last are made good.
template <class T, class V = Vector<T>>
RL_INLINE V times_exp_minus(V factor, V high, V low) {
  constexpr bool kDouble = sizeof(T) == 8;
  const auto c = [](double x) { return filled(static_cast<T>(x), V()); };
  const V shift = c(kDouble ? 0x1.8p48 : 0x1.8p18);  // adding it rounds to multiples of 1/16 or 1/32
  const V shifted = madd(high, c(-0x1.71547652b82fep+0), shift), n = shifted - shift;
  V r = madd(n, c(kDouble ? -0x1.62e42fefa39efp-1 : -0x1.62e43p-1), -high);
  r = madd(n, c(kDouble ? -0x1.abc9e3b39803fp-56 : 0x1.05c61p-29), r) - low;
  const V power = look_up(kPowers<T>.column[0], bits(shifted)), y = factor * power, square = r * r;
  if constexpr (kDouble) {
    // The series to r^6, with the term after it spread over those of r^3 and r^5 by Chebyshev's polynomial.
    const V odd = madd(square, c(1 / 120.0 + 1.62914e-7), c(1 / 6.0 - 3.8219e-11));
    const V even = madd(madd(square, c(1 / 720.0), c(1 / 24.0)), square, c(1 / 2.0));
    return scale(madd(y, madd(madd(odd, r, even), square, r), y), n);
  } else {
    const V rest = look_up(kPowers<T>.column[1], bits(shifted));
    const V p = madd(madd(r, c(1 / 6.0), c(1 / 2.0)), square, r + rest);
    return scale(y + madd(y, p, madd(factor, power, -y)), n);
  }
}

// F::quick makes the results of a vector and tells the lanes that are Slow's.
template <class F, class T, class Slow>
struct Quick {
  static constexpr int64_t kLanes = 64 / sizeof(T);
  static constexpr int64_t kAhead = 32 * kLanes;

  __attribute__((flatten)) static void blocks(char* out, const char* const* in, int64_t n, const void* params) {
    const T* x = reinterpret_cast<const T*>(in[0]);
    T* y = reinterpret_cast<T*>(out);
    for (int64_t i = 0; i < n; i += kLanes) {
      __builtin_prefetch(x + i + kAhead);
      __builtin_prefetch(y + i + kAhead, 1);
      const Vector<T> v = load(x + i);
      Vector<T> result;
      const auto rare = F::template quick<T>(v, params, result);
      if (__builtin_expect(rare != 0, 0)) {
        alignas(64) T from[kLanes], to[kLanes];
        store(from, v);
        const char* source = reinterpret_cast<const char*>(from);
        Slow::blocks(reinterpret_cast<char*>(to), &source, kLanes, params);
        result = select(rare, load(to), result);
      }
      store(y + i, result);
    }
  }
  static void run(char* const* data, const int64_t* strides, int64_t n, const void* params) {
    static constexpr Plan kPlan{blocks, kLanes, 1, {cell_of<T>(), cell_of<T>()}};
    run_plan(kPlan, data, strides, n, params);
  }
  template <Cell kHalf>
  static void run_half(char* const* data, const int64_t* strides, int64_t n, const void* params) {
    static constexpr Plan kPlan{blocks, kLanes, 1, {kHalf, kHalf}};
    run_packed(kPlan, data, strides, n, params);
  }
};

}  // namespace octaves
}  // namespace RL_ISA
}  // namespace rl
#endif
