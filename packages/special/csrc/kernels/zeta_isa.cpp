// The Hurwitz zeta function and the polygamma functions.
#include <rushlight/loop.h>

#include "kernels.h"
#include "pairs.h"
#include "segments.h"

namespace rl {
namespace RL_ISA {
namespace {

constexpr int kBlock = 64;

// B_2k / (2k)!
constexpr double kBernoulli[] = {0.083333333333333333,    -0.0013888888888888889,  3.3068783068783069e-05,
                                 -8.2671957671957672e-07, 2.0876756987868099e-08,  -5.2841901386874932e-10,
                                 1.3382536530684679e-11,  -3.3896802963225829e-13, 8.5860620562778446e-15,
                                 -2.1748686985580619e-16, 5.5090028283602295e-18,  -1.3954464685812523e-19};

// (a + lost)^-s, for what the steps up to a lost.
RL_INLINE double power_of(double a, double lost, double s) {
  const double power = vm::pow_magnitude(a, -s);
  return lost != 0 ? power - power * (s * lost / a) : power;
}

// Sum of (q + k)^-s over k >= 0 for s > 1, q > 0, by the formula of Euler and Maclaurin (DLMF 25.11.28): terms until q
// is large enough for the expansion, or until they no longer count.
void zeta_sums(const double* s, const double* q, double* out, int64_t n) {
  double a[kBlock], lost[kBlock], sum[kBlock], unsummed[kBlock], enough[kBlock], term[kBlock];
  for (int64_t i = 0; i < n; ++i) {
    a[i] = q[i];
    lost[i] = 0;
    sum[i] = 0;
    unsummed[i] = 0;
    enough[i] = 9 + 0.8 * s[i];
  }
  for (int64_t open = 1; open != 0;) {
    open = 0;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) term[i] = power_of(a[i], lost[i], s[i]);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const double added = a[i] < enough[i] ? term[i] : 0;
      const Pair total = sum_of(sum[i], added);
      sum[i] = total.hi;
      unsummed[i] += total.lo;
      // What is left is less than a term times 1 + a / (s - 1); a is infinite where it no longer counts.
      const double left = added * (1 + a[i] / (s[i] - 1)), next = a[i] + 1;
      const double going = left > sum[i] * 0x1p-56 ? next : kInf;
      lost[i] += a[i] < enough[i] ? a[i] - (next - 1) : 0;
      a[i] = a[i] < enough[i] ? going : a[i];
      open += a[i] < enough[i] ? 1 : 0;
    }
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const double power = power_of(a[i], lost[i], s[i]), inverse = 1 / a[i], square = inverse * inverse;
    double factor = s[i] * inverse, series = 0.5;
#pragma GCC unroll 12
    for (int k = 0; k < 12; ++k) {
      series += kBernoulli[k] * factor;
      factor *= (s[i] + (2 * k + 1)) * (s[i] + (2 * k + 2)) * square;
    }
    const double rest = power * (a[i] / (s[i] - 1) + series);
    out[i] = sum[i] + (unsummed[i] + (a[i] < kInf ? rest : 0));
  }
}

double zeta_sum(double s, double q) {
  double y;
  zeta_sums(&s, &q, &y, 1);
  return y;
}

// The sum from a negative q, for whole s: over all integers, less what lies beyond.
double zeta_reflected(double s, double q) {
  if (q == ::floor(q)) return q == -kInf ? kNan : kInf;
  if (s != ::floor(s)) return kNan;
  const double r = q - ::rint(q), sign = ::fmod(s, 2) != 0 ? -1 : 1;
  return ::pow(r, -s) + zeta_sum(s, 1 + r) + sign * (zeta_sum(s, 1 - r) - zeta_sum(s, 1 - q));
}

double zeta_edge(double s, double q) {
  if (s != s || q != q) return s + q;
  if (s <= 1) return s == 1 ? kInf : kNan;
  if (q == 0) return kInf;
  if (q == kInf) return 0;
  return s == kInf ? q > 1 ? 0 : q == 1 ? 1 : q > 0 ? kInf : kNan : zeta_reflected(s, q);
}

void zetas(const double* s, const double* q, double* out, int64_t n) {
  double safe_s[kBlock], safe_q[kBlock];
  int64_t edges = 0;
  for (int64_t i = 0; i < n; ++i) {
    const bool regular = (s[i] > 1) & (s[i] < kInf) & (q[i] > 0) & (q[i] < kInf);
    safe_s[i] = regular ? s[i] : 2;
    safe_q[i] = regular ? q[i] : 20;
    edges += !regular;
  }
  zeta_sums(safe_s, safe_q, out, n);
  if (edges == 0) return;
  for (int64_t i = 0; i < n; ++i) {
    if (!(s[i] > 1 && s[i] < kInf && q[i] > 0 && q[i] < kInf)) out[i] = zeta_edge(s[i], q[i]);
  }
}

template <class T>
void zeta_dense(char* out, const char* const* in, int64_t n, const void*) {
  double s[kBlock], q[kBlock], y[kBlock];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t m = n - i < kBlock ? n - i : kBlock;
    for (int64_t k = 0; k < m; ++k) {
      s[k] = reinterpret_cast<const T*>(in[0])[i + k];
      q[k] = reinterpret_cast<const T*>(in[1])[i + k];
    }
    zetas(s, q, y, m);
    for (int64_t k = 0; k < m; ++k) reinterpret_cast<T*>(out)[i + k] = static_cast<T>(y[k]);
  }
}

// (-1)^(n + 1) n! zeta(n + 1, x) for n >= 2 (DLMF 25.11.12).
template <class T>
void polygamma_dense(char* out, const char* const* in, int64_t count, const void* params) {
  const double order = static_cast<double>(*static_cast<const int64_t*>(params)), sign = ::fmod(order, 2) != 0 ? 1 : -1;
  const double factorial = ::tgamma(order + 1);
  const double log_factorial = (order + 0.5) * ::log(order) - order + 0.91893853320467274178 + 1 / (12 * order);
  double s[kBlock], x[kBlock], y[kBlock];
  for (int64_t k = 0; k < kBlock; ++k) s[k] = order + 1;
  for (int64_t i = 0; i < count; i += kBlock) {
    const int64_t m = count - i < kBlock ? count - i : kBlock;
    for (int64_t k = 0; k < m; ++k) x[k] = reinterpret_cast<const T*>(in[0])[i + k];
    zetas(s, x, y, m);
    for (int64_t k = 0; k < m; ++k) {
      // Where the factorial overflows its product with a small sum need not.
      const double product =
          factorial < kInf ? factorial * y[k] : ::copysign(::exp(log_factorial + ::log(::fabs(y[k]))), y[k]);
      // From the left of 0 every order tends to infinity.
      reinterpret_cast<T*>(out)[i + k] = static_cast<T>(x[k] == 0 && ::copysign(1, x[k]) < 0 ? kInf : sign * product);
    }
  }
}

template <class T>
void zeta_run(char* const* data, const int64_t* strides, int64_t n, const void* params) {
  static constexpr Plan kPlan{zeta_dense<T>, 1, 2, {cell_of<T>(), cell_of<T>(), cell_of<T>()}};
  run_plan(kPlan, data, strides, n, params);
}

template <class T>
void polygamma_run(char* const* data, const int64_t* strides, int64_t n, const void* params) {
  static constexpr Plan kPlan{polygamma_dense<T>, 1, 1, {cell_of<T>(), cell_of<T>()}};
  run_plan(kPlan, data, strides, n, params);
}

}  // namespace

void fill_zeta(LoopTable& table) {
  table.set("special::zeta", DType::Float32, zeta_run<float>);
  table.set("special::zeta", DType::Float64, zeta_run<double>);
  table.set("special::_polygamma", DType::Float32, polygamma_run<float>);
  table.set("special::_polygamma", DType::Float64, polygamma_run<double>);
}

}  // namespace RL_ISA
}  // namespace rl
