// The regularized incomplete gamma functions P (lower) and Q (upper), in double. Elements of a block are sorted by the
// method that serves them, and each method runs on its elements side by side.
#include <rushlight/loop.h>

#include "kernels.h"
#include "pairs.h"
#include "segments.h"

namespace rl {
namespace RL_ISA {
namespace {

constexpr int kBlock = 256;
constexpr double kHalfLog2Pi = 0.9189385332046728, kHalfLog2PiRest = -3.8782941580672414e-17;
constexpr int kMaxTerms = 4000;  // none takes more than some hundred

// a log x - x - (w log w - w) for w = a + shift, to the 65 bits of the logarithms.
RL_INLINE Pair power_exponent(double a, double x, double shift) {
  const double w = a + shift, lost = a - (w - shift);
  const Pair lx = vm::log_extended(x), lw = vm::log_extended(w);
  const Pair first = vm::exact_product(a, lx.hi), second = vm::exact_product(w, lw.hi);
  const Pair difference = sum_of(first.hi, -second.hi), rest = sum_of(w, -x);
  const Pair total = sum_of(difference.hi, rest.hi);
  // What w lost counts as the derivative of the logarithm of Gamma(w + 1).
  const double correction = lost * (lw.hi + 0.5 / w);
  const double products = (first.lo - second.lo) + (a * lx.lo - w * lw.lo);
  return {total.hi, total.lo + difference.lo + rest.lo + products - correction};
}

// e^x 2^kScale, rounded little more than once.
template <int kScale>
RL_INLINE double exp_of(Pair x) {
  vm::Exp<double> e = vm::exp_reduced(vm::between(x.hi, -800.0, 760.0));
  e.q = vm::madd(1 + e.r + e.q, vm::abs(x.lo) < 1 ? x.lo : 0, e.q);
  return vm::scale(vm::exp_fraction(e), e.n + kScale);
}

// x^a e^-x / Gamma(a + 1). Small a is raised by 8, so that Stirling's formula serves (DLMF 5.11.1).
RL_INLINE double density(double a, double x) {
  const double shift = a < 8 ? 8 : 0, w = a + shift, y = 1 / w;
  // (a + 1) ... (a + 8), whose outer factors multiply to t + 8, and so on inwards.
  const Pair t = Pair{a, 0} * sum_of(a, 9);
  const auto factor = [t](double n) {
    const Pair sum = sum_of(t.hi, n);
    return Pair{sum.hi, sum.lo + t.lo};
  };
  const Pair raised = (factor(8) * factor(20)) * (factor(14) * factor(18));
  // Divided by sqrt(2 pi w) and by what Stirling's formula adds.
  const Pair power = power_exponent(a, x, shift), lw = vm::log_extended(w);
  const Pair rooted = sum_of(power.hi, -0.5 * lw.hi), scaled = sum_of(rooted.hi, -kHalfLog2Pi);
  const Pair whole = sum_of(scaled.hi, -(on_segment(kGammaln<double>, 30 + y * 16, y) * y));
  const double rest = power.lo - 0.5 * lw.lo - kHalfLog2PiRest + rooted.lo + scaled.lo + whole.lo;
  const double result = exp_of<64>({whole.hi, rest});  // which alone may be subnormal
  return (shift > 0 ? result * raised.hi + result * raised.lo : result) * 0x1p-64;
}

struct Elements {
  double a[kBlock], x[kBlock], p[kBlock], q[kBlock];
  int64_t n = 0;
};

// DLMF 8.11.4. Roundings of the terms add up, so for results in double each carries what it lacks.
template <class T>
void by_series(Elements& e) {
  constexpr bool kExact = sizeof(T) == 8;
  double term[kBlock], rest[kBlock], lost[kBlock];
  for (int64_t i = 0; i < e.n; ++i) {
    term[i] = 1;
    rest[i] = 0;
    lost[i] = 0;
    e.p[i] = 1;
  }
  int64_t open = e.n;
  for (int k = 1; open != 0 && k < kMaxTerms; ++k) {
    open = 0;
#pragma GCC ivdep
    for (int64_t i = 0; i < e.n; ++i) {
      const double a = e.a[i] + k, ratio = e.x[i] / a;
      const Pair next = kExact ? vm::exact_product(term[i], ratio) : Pair{term[i] * ratio, 0};
      if constexpr (kExact) {
        const Pair back = vm::exact_product(ratio, a);
        const double missing = ((e.x[i] - back.hi) - back.lo - ratio * (e.a[i] - (a - k))) / a;
        rest[i] = rest[i] * ratio + (next.lo + term[i] * missing);
      }
      term[i] = next.hi;
      const Pair sum = sum_of(e.p[i], next.hi);
      e.p[i] = sum.hi;
      lost[i] += sum.lo + rest[i];
      open += next.hi > sum.hi * 0x1p-54;
    }
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < e.n; ++i) {
    e.p[i] = (e.p[i] + lost[i]) * density(e.a[i], e.x[i]);
    e.p[i] = e.p[i] > 1 ? 1 : e.p[i];
    e.q[i] = 1 - e.p[i];
  }
}

// Small a and x, where 1 - P would cancel: DLMF 8.7.3.
void by_complement(Elements& e) {
  double term[kBlock], sum[kBlock];
  for (int64_t i = 0; i < e.n; ++i) {
    term[i] = 1;
    sum[i] = 0;
  }
  int64_t open = e.n;
  for (int k = 1; open != 0 && k < kMaxTerms; ++k) {
    open = 0;
#pragma GCC ivdep
    for (int64_t i = 0; i < e.n; ++i) {
      term[i] *= -e.x[i] / k;
      const double part = term[i] / (e.a[i] + k);
      sum[i] += part;
      open += vm::abs(part) > vm::abs(sum[i]) * 0x1p-54;
    }
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < e.n; ++i) {
    const double a = e.a[i];
    // log(Gamma(1 + a)), with its zero at 0.
    const double position = a < 1 ? (a + 0.5) * 8 : 12 + (a - 1) * 3;
    const double log_gamma = a * (a - 1) * on_segment(kGammaln<double>, position, 1 + a);
    const Pair lx = vm::log_extended(e.x[i]), product = vm::exact_product(a, lx.hi);
    const Pair exponent = sum_of(product.hi, -log_gamma);
    const double power = exp_of<0>({exponent.hi, exponent.lo + product.lo + a * lx.lo});
    e.p[i] = power + power * (a * sum[i]);
    e.q[i] = -vm::expm1(exponent.hi) - a * power * sum[i];
  }
}

// The continued fraction DLMF 8.9.2 from its end, as far as all elements need: that way roundings of late terms are
// damped by those before.
void by_fraction(Elements& e) {
  double b[kBlock], f[kBlock];
  double terms = 0;
  for (int64_t i = 0; i < e.n; ++i) {
    const double enough = 12 + (85 + 15 * e.a[i]) / e.x[i];
    terms = enough > terms ? enough : terms;
    b[i] = e.x[i] + 1 - e.a[i];
    f[i] = kInf;
  }
  for (double k = ::floor(terms); k > 0; --k) {
#pragma GCC ivdep
    for (int64_t i = 0; i < e.n; ++i) f[i] = (b[i] + 2 * k) + (k + 1) * (e.a[i] - (k + 1)) / f[i];
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < e.n; ++i) {
    const double a = e.a[i], y = density(a, e.x[i]);
    const Pair first = sum_of(e.x[i], 1 - a), all = sum_of(first.hi, (a - 1) / f[i]);
    const Pair quotient = Pair{a, 0} / Pair{all.hi, all.lo + first.lo};
    e.q[i] = y * quotient.hi + y * quotient.lo;
    e.p[i] = 1 - e.q[i];
  }
}

// Large a with x near it: N. Temme's uniform expansion, DLMF 8.12.
void by_expansion(Elements& e) {
#pragma GCC ivdep
  for (int64_t i = 0; i < e.n; ++i) {
    const double a = e.a[i], x = e.x[i], m = (x - a) / a;
    // (m - log(1 + m)) / m^2 = (eta / m)^2 / 2
    const double half = on_segment(kLog1pRest<double>, (m + 0.375) * 16, m);
    const double eta = m * vm::sqrt(2 * half), inverse = 1 / a;
    const double square = a * m * m * half, root = vm::sqrt(square);
    const double decay = a < 1e5 ? exp_of<0>(power_exponent(a, x, 0)) : vm::exp(-square);
    double sum = 0;
#pragma GCC unroll 13
    for (int k = 12; k >= 0; --k) sum = vm::madd(sum, inverse, vm::polynomial(eta, kTemme[k]));
    const Place at = place_of<12, 4>(root);
    const double y = on_segment(kErfcx<double>, at.position, at.u);
    const double half_erfcx = 0.5 * (at.far ? y * at.u : y), rest = sum / vm::sqrt(2 * kPi * a);
    const double upper = decay * (half_erfcx + rest), lower = decay * (half_erfcx - rest);
    e.q[i] = m > 0 ? upper : 1 - lower;
    e.p[i] = m > 0 ? 1 - upper : lower;
  }
}

// SlowFraction takes more terms than others.
enum Method { Edge, Series, Complement, Fraction, SlowFraction, Expansion, kMethods };

template <bool kUpper>
RL_INLINE Method method_of(double a, double x) {
  if (!(a > 0 && x > 0 && a < kInf && x < kInf)) return Edge;
  if (a > 20 && vm::abs(x - a) < 0.3 * a) return Expansion;
  // Where the other of both is less than about half, this one is its complement.
  if (x >= 2 && x > a + (kUpper ? -0.25 : 1)) return x < 4 ? SlowFraction : Fraction;
  if (x < 0.6 && a < (kUpper ? x + 0.25 : 1)) return Complement;
  return x < 2 && x >= 0.6 && a < (kUpper ? x + 0.25 : 0.5) ? SlowFraction : Series;
}

// P; Q is its complement. As limits where there is one.
double edge(double a, double x) {
  if (!(a >= 0 && x >= 0) || (a == 0 && x == 0) || (a == kInf && x == kInf)) return kNan;
  if (a == 0 || x == kInf) return 1;
  return 0;
}

template <bool kUpper, class T>
void block(T* out, const T* a, const T* x, int64_t n) {
  static_assert(kMethods == 6, "each has its function below");
  uint8_t method[kBlock];
  int64_t counts[kMethods] = {};
  for (int64_t i = 0; i < n; ++i) {
    method[i] = static_cast<uint8_t>(method_of<kUpper>(a[i], x[i]));
    ++counts[method[i]];
  }
  if (counts[Edge] != 0) {
    for (int64_t i = 0; i < n; ++i) {
      if (method[i] == Edge) out[i] = static_cast<T>(kUpper ? 1 - edge(a[i], x[i]) : edge(a[i], x[i]));
    }
  }
  for (int m = Series; m < kMethods; ++m) {
    if (counts[m] == 0) continue;
    Elements e;
    int16_t places[kBlock];
    for (int64_t i = 0; i < n; ++i) {  // without a branch: those of other methods are overwritten
      places[e.n] = static_cast<int16_t>(i);
      e.a[e.n] = a[i];
      e.x[e.n] = x[i];
      e.n += method[i] == m;
      if (e.n == kBlock) break;
    }
    switch (m) {
      case Series: by_series<T>(e); break;
      case Complement: by_complement(e); break;
      case Fraction:
      case SlowFraction: by_fraction(e); break;
      default: by_expansion(e);
    }
    for (int64_t k = 0; k < e.n; ++k) out[places[k]] = static_cast<T>(kUpper ? e.q[k] : e.p[k]);
  }
}

template <bool kUpper, class T>
void dense(char* out, const char* const* in, int64_t n, const void*) {
  T buffer[kBlock];  // the output may be one of the inputs
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t m = n - i < kBlock ? n - i : kBlock;
    block<kUpper>(buffer, reinterpret_cast<const T*>(in[0]) + i, reinterpret_cast<const T*>(in[1]) + i, m);
    __builtin_memcpy(reinterpret_cast<T*>(out) + i, buffer, m * sizeof(T));
  }
}

template <bool kUpper, class T>
void run(char* const* data, const int64_t* strides, int64_t n, const void* params) {
  static constexpr Plan kPlan{dense<kUpper, T>, 1, 2, {cell_of<T>(), cell_of<T>(), cell_of<T>()}};
  run_plan(kPlan, data, strides, n, params);
}

}  // namespace

void fill_gammainc(LoopTable& table) {
  table.set("special::gammainc", DType::Float32, run<false, float>);
  table.set("special::gammainc", DType::Float64, run<false, double>);
  table.set("special::gammaincc", DType::Float32, run<true, float>);
  table.set("special::gammaincc", DType::Float64, run<true, double>);
}

}  // namespace RL_ISA
}  // namespace rl
