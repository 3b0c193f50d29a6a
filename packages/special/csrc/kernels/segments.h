// Polynomials on segments, for ISA sources. T is the type of the result: float takes tables of lower degree, and
// computes in double as well.
#pragma once
#include <rushlight/vecmath.h>

#include "tables.h"

namespace rl {
namespace RL_ISA {
namespace {

constexpr double kPi = 3.141592653589793238462643383279502884;
constexpr double kSqrtPi = 1.772453850905516027298167483341145183;
constexpr double kSqrt2 = 1.414213562373095048801688724209698079;
constexpr double kInf = vm::Real<double>::kInf;
constexpr double kNan = vm::Real<double>::kNan;

template <int k, class Table>
RL_INLINE double horner_row(const Table& table, int64_t row, double t) {
  if constexpr (k == Table::coefficients) {
    return table.row[row][k];
  } else {
    return vm::madd(horner_row<k + 1>(table, row, t), t, table.row[row][k]);
  }
}

// The value at u of the segment that `position` counts; a position outside the table is moved to its end, NaN too.
template <class Table>
RL_INLINE double on_segment(const Table& table, double position, double u) {
  position = position < Table::rows - 1 ? position : Table::rows - 1;
  position = position > 0 ? position : 0;
  const int64_t row = static_cast<int32_t>(position);
  return horner_row<1>(table, row, u - table.row[row][0]);
}

// Where x stands in a table of `kNear` segments below 8 and of others in 1/x beyond.
struct Place {
  double u, position;
  bool far;
};
template <int kNear, int kFar>
RL_INLINE Place place(double x) {
  const bool far = x >= 8;
  const double u = far ? 1 / x : x;
  return {u, far ? kNear + u * (8 * kFar) : u * (kNear / 8.0), far};
}

// x y = hi + lo, by T. Dekker's splitting.
struct Sum2 {
  double hi, lo;
};
RL_INLINE double high_half(double x) { return vm::from_bits<double>(vm::bits(x) & 0xfffffffff8000000u); }
RL_INLINE Sum2 product2(double x, double y) {
  const double p = x * y, xh = high_half(x), xl = x - xh, yh = high_half(y), yl = y - yh;
  return {p, ((xh * yh - p) + xh * yl + xl * yh) + xl * yl};
}

struct SinCos {
  double sin, cos;
};
// kHuge: by the C library, for what our own reduction does not reach.
template <bool kHuge>
RL_INLINE SinCos sin_cos(double x) {
  if constexpr (kHuge) return {::sin(x), ::cos(x)};
  const auto t = vm::trig_reduced(x);
  const double s = vm::sin_core(t.r, t.tail), c = vm::cos_core(t.r, t.tail);
  const bool odd = t.n & 1;
  const auto flip = [](double v, uint64_t n) { return vm::from_bits<double>(vm::bits(v) ^ ((n & 2) << 62)); };
  return {flip(odd ? c : s, t.n), flip(odd ? s : c, t.n + 1)};
}

// sin and cos of pi x without the sign that the whole part gives, for the distance to the nearest integer.
RL_INLINE double fraction(double x) { return x - vm::rint(x); }

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
