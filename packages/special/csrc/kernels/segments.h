// Polynomials on segments, for ISA sources. T is the type of the result: float takes tables of lower degree, and
// computes in double as well.
#pragma once
#include <rushlight/loop.h>
#include <rushlight/vecmath.h>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "tables.h"

namespace rl {
namespace RL_ISA {
namespace {

#define RL_MEMBER inline __attribute__((always_inline))

constexpr double kPi = 3.141592653589793238462643383279502884;
constexpr double kQuarterPiRest = 3.061616997868383e-17;  // of pi / 4 less its double
constexpr double kSqrtPi = 1.772453850905516027298167483341145183;
constexpr double kSqrt2 = 1.414213562373095048801688724209698079;
constexpr double kInf = vm::Real<double>::kInf;
constexpr double kNan = vm::Real<double>::kNan;

template <int k, class Table>
RL_INLINE double horner_row(const Table& table, int64_t row, double t) {
  if constexpr (k == Table::coefficients) {
    return table.column[k][row];
  } else {
    return vm::madd(horner_row<k + 1>(table, row, t), t, table.column[k][row]);
  }
}

// The value at u of the segment that `position` counts; a position outside the table is moved to its end, NaN too.
template <class Table>
RL_INLINE double on_segment(const Table& table, double position, double u) {
  position = position < Table::rows - 1 ? position : Table::rows - 1;
  position = position > 0 ? position : 0;
  const int64_t row = static_cast<int32_t>(position);
  return horner_row<1>(table, row, u - table.column[0][row]);
}

// The same for n elements, a multiple of 8: `value` replaces `position`.
template <class Table>
inline void on_segments(const Table& table, double* position, const double* u, int64_t n) {
#if defined(__AVX512F__)
  // A column of 16 rows is two registers, from which one instruction picks for all lanes.
  const auto pick = [&](int k, __m512i row) __attribute__((always_inline)) {
    const double* c = table.column[k];
    __m512d y = _mm512_permutex2var_pd(_mm512_load_pd(c), row, _mm512_load_pd(c + 8));
    if constexpr (Table::padded > 16) {
      const __m512d z = _mm512_permutex2var_pd(_mm512_load_pd(c + 16), row, _mm512_load_pd(c + 24));
      y = _mm512_mask_mov_pd(y, _mm512_cmpge_epi64_mask(row, _mm512_set1_epi64(16)), z);
    }
    return y;
  };
  static_assert(Table::padded <= 32 && Table::padded % 16 == 0);
  for (int64_t i = 0; i < n; i += 8) {
    const __m512d p = _mm512_min_pd(_mm512_load_pd(position + i), _mm512_set1_pd(Table::rows - 1));
    const __m512i row = _mm512_cvttpd_epi64(_mm512_max_pd(p, _mm512_setzero_pd()));
    const __m512d t = _mm512_sub_pd(_mm512_load_pd(u + i), pick(0, row));
    __m512d y = pick(Table::coefficients, row);
#pragma GCC unroll 24
    for (int k = Table::coefficients - 1; k > 0; --k) y = _mm512_fmadd_pd(y, t, pick(k, row));
    _mm512_store_pd(position + i, y);
  }
#else
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) position[i] = on_segment(table, position[i], u[i]);
#endif
}

// Where x stands in a table of `kNear` segments below 8 and of others in 1/x beyond.
struct Place {
  double u, position;
  bool far;
};
template <int kNear, int kFar>
RL_INLINE Place place_of(double x) {
  const bool far = x >= 8;
  const double u = far ? 1 / x : x;
  return {u, far ? kNear + u * (8 * kFar) : u * (kNear / 8.0), far};
}

// The kernel of a function that looks in one table: F::place says where, F::finish makes the result of what stands
// there. Apart from the one between, the loops over both vectorise as they are.
//
// Where Measure is not Any, it tells for which x the quick form of F::finish holds; a chunk with another takes the full
// one.
struct Any {};

template <class F, class Measure, class T>
struct Segmented {
  static constexpr int64_t kBlock = 64 / sizeof(T), kChunk = 512;

  __attribute__((flatten)) static void blocks(char* out, const char* const* in, int64_t n, const void*) {
    alignas(64) double u[kChunk], value[kChunk];
    for (int64_t start = 0; start < n; start += kChunk) {
      const T* x = reinterpret_cast<const T*>(in[0]) + start;
      T* y = reinterpret_cast<T*>(out) + start;
      const int64_t m = (n - start < kChunk ? n - start : kChunk) & -kBlock;
#pragma GCC ivdep
      for (int64_t i = 0; i < m; ++i) {
        const Place p = F::place(static_cast<double>(x[i]));
        u[i] = p.u;
        value[i] = p.position;
      }
      on_segments(F::template table<T>(), value, u, m);
      if constexpr (!std::is_same_v<Measure, Any>) {
        int64_t beyond = 0;
        for (int64_t i = 0; i < m; ++i) beyond += Measure()(x[i]) >= Measure::template limit<T>();
        if (__builtin_expect(beyond != 0, 0)) {
#pragma GCC ivdep
          for (int64_t i = 0; i < m; ++i) {
            y[i] = static_cast<T>(F::template finish<T, true>(static_cast<double>(x[i]), u[i], value[i]));
          }
          continue;
        }
      }
#pragma GCC ivdep
      for (int64_t i = 0; i < m; ++i) {
        y[i] = static_cast<T>(F::template finish<T>(static_cast<double>(x[i]), u[i], value[i]));
      }
    }
  }

  static void run(char* const* data, const int64_t* strides, int64_t n, const void* params) {
    static constexpr Plan kPlan{blocks, kBlock, 1, {cell_of<T>(), cell_of<T>()}};
    run_plan(kPlan, data, strides, n, params);
  }
  template <Cell kHalf>
  static void run_half(char* const* data, const int64_t* strides, int64_t n, const void* params) {
    static constexpr Plan kPlan{blocks, kBlock, 1, {kHalf, kHalf}};
    run_packed(kPlan, data, strides, n, params);
  }
};

template <class F, class Measure = Any>
void add_segmented(Registrar& ops, const char* op) {
  ops.kernel<Segmented<F, Measure, float>, float>(op);
  ops.kernel<Segmented<F, Measure, double>, double>(op);
}

// x y = hi + lo, by T. Dekker's splitting where no instruction gives what a product lost.
struct Sum2 {
  double hi, lo;
};
RL_INLINE double high_half(double x) { return vm::from_bits<double>(vm::bits(x) & 0xfffffffff8000000u); }
RL_INLINE Sum2 product2(double x, double y) {
#if defined(__FMA__) || defined(__aarch64__)
  return {x * y, vm::madd(x, y, -(x * y))};
#endif
  const double p = x * y, xh = high_half(x), xl = x - xh, yh = high_half(y), yl = y - yh;
  return {p, ((xh * yh - p) + xh * yl + xl * yh) + xl * yl};
}

struct SinCos {
  double sin, cos;
};
// Of x - pi / 4 + rest, for a rest that is small. kHuge: by the C library, for what our own reduction does not reach.
template <bool kHuge>
RL_INLINE SinCos sin_cos_less_eighth(double x, double rest) {
  if constexpr (kHuge) {
    const double s = (::sin(x) - ::cos(x)) / kSqrt2, c = (::sin(x) + ::cos(x)) / kSqrt2;
    const double rs = ::sin(rest), rc = ::cos(rest);
    return {s * rc + c * rs, c * rc - s * rs};
  }
  auto t = vm::trig_reduced(x);
  const bool negative = t.r < 0;
  const double eighth = negative ? -kPi / 4 : kPi / 4, less = t.r - eighth, part = less - t.r;
  const double lost = (t.r - (less - part)) - (eighth + part);
  const double sum = less + rest, added = sum - less;
  t.tail += ((less - (sum - added)) + (rest - added)) + (lost - (negative ? -kQuarterPiRest : kQuarterPiRest));
  t.r = sum;
  t.n -= negative;
  return {vm::quadrant(t, t.n), vm::quadrant(t, t.n + 1)};
}

// sin and cos of pi x without the sign that the whole part gives, for the distance to the nearest integer.
RL_INLINE double fraction(double x) { return x - vm::rint(x); }

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
