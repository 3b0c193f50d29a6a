// Elementary functions on one float or double, written without branches so that a loop over them vectorises. Only for
// ISA sources, which are compiled with -ffp-contract=off: every lane of a vector and every remainder rounds alike.
//
// The error is at most 2.5 ulp. Polynomials are minimax by the Remez exchange. Methods: W. Cody and W. Waite, Software
// Manual for the Elementary Functions (1980), and the Sun fdlibm notes by K. C. Ng, where no other source is named.
#pragma once
#include <math.h>
#include <cstdint>

#include "half.h"

#define RL_INLINE static inline __attribute__((always_inline, unused))

namespace rl {
namespace RL_ISA {
namespace vm {

template <class T>
struct Real;

template <>
struct Real<float> {
  using Int = int32_t;
  using UInt = uint32_t;
  static constexpr int kMantissa = 23;
  static constexpr int kBias = 127;
  static constexpr float kRound = 0x1.8p23f;  // adding it rounds to an integer, found in the low bits
  static constexpr float kInt = 0x1p23f;      // from here on every value is an integer
  static constexpr float kMin = 0x1p-126f;
  static constexpr float kInf = __builtin_inff();
  static constexpr float kNan = __builtin_nanf("");
  static constexpr UInt kSign = 0x80000000u;
  static constexpr UInt kHighMask = 0xfffff000u;
  static constexpr UInt kSqrtHalf = 0x3f3504f3u;
  static constexpr float kLn2Hi = 0x1.62e4p-1f, kLn2Lo = 0x1.7f7d1cp-20f;
  static constexpr float kLog2eHi = 0x1.714p+0f, kLog2eLo = 0x1.47652cp-12f;
  static constexpr float kLog10eHi = 0x1.bcap-2f, kLog10eLo = 0x1.7b1526p-14f;
  static constexpr float kLog10Of2Hi = 0x1.344p-2f, kLog10Of2Lo = 0x1.3509f8p-18f;
  static constexpr float kPiLo = -0x1.777a5cp-24f;                                        // pi less its rounding
  static constexpr float kExpHigh = 0x1.62e42ep+6f, kExpSubnormal = -87, kExpLow = -104;  // where e^x leaves a range
  static constexpr float kBigAsinh = 0x1p14f;
  static constexpr float kExp[] = {0x1p-1f,        0x1.555556p-3f, 0x1.55548p-5f,
                                   0x1.11107ep-7f, 0x1.6d974p-10f, 0x1.a1b7e4p-13f};
  static constexpr float kLog[] = {0x1.555554p-1f, 0x1.999a7ap-2f, 0x1.2438d8p-2f, 0x1.e2f646p-3f};
  static constexpr float kSin[] = {-0x1.555556p-3f, 0x1.111108p-7f, -0x1.a00f94p-13f, 0x1.6cd5f2p-19f};
  static constexpr float kCos[] = {0x1.55554ap-5f, -0x1.6c0c82p-10f, 0x1.99ff4ep-16f};
  static constexpr float kAtan[] = {-0x1.55554ap-2f, 0x1.9991a6p-3f, -0x1.23b638p-3f, 0x1.b1fa24p-4f, -0x1.f22b4ep-5f};
  static constexpr float kAsin[] = {0x1.55554cp-3f, 0x1.333896p-4f, 0x1.6cab2ep-5f,
                                    0x1.04afacp-5f, 0x1.d75d8cp-7f, 0x1.33f27ap-5f};
  static constexpr float kErfEnd = 4;
  static constexpr float kErfSlope = 0x1.20dd76p+0;
  static constexpr float kErf[] = {-0x1.f7ac92p-25, 0x1.45f2fap-1,   0x1.a4fa5ep-4, -0x1.39cdccp-6, -0x1.5054acp-13,
                                   0x1.b4fe8p-10,   -0x1.4bc7a8p-11, 0x1.ed66fp-14, -0x1.3691cap-17};
};

template <>
struct Real<double> {
  using Int = int64_t;
  using UInt = uint64_t;
  static constexpr int kMantissa = 52;
  static constexpr int kBias = 1023;
  static constexpr double kRound = 0x1.8p52;
  static constexpr double kInt = 0x1p52;
  static constexpr double kMin = 0x1p-1022;
  static constexpr double kInf = __builtin_inf();
  static constexpr double kNan = __builtin_nan("");
  static constexpr UInt kSign = 0x8000000000000000u;
  static constexpr UInt kHighMask = 0xffffffff00000000u;
  static constexpr UInt kSqrtHalf = 0x3fe6a09e667f3bcdu;
  static constexpr double kLn2Hi = 0x1.62e42fefp-1, kLn2Lo = 0x1.473de6af278edp-34;
  static constexpr double kLog2eHi = 0x1.71547p+0, kLog2eLo = 0x1.94ae0bf85ddf4p-22;
  static constexpr double kLog10eHi = 0x1.bcb7bp-2, kLog10eLo = 0x1.526e50e32a6abp-26;
  static constexpr double kLog10Of2Hi = 0x1.34413509f6p-2, kLog10Of2Lo = 0x1.9fef311f12b36p-42;
  static constexpr double kPiLo = 0x1.1a62633145c07p-53;
  static constexpr double kExpHigh = 0x1.62e42fefa39efp+9, kExpSubnormal = -708, kExpLow = -746;
  static constexpr double kBigAsinh = 0x1p28;
  static constexpr double kExp[] = {0x1p-1,
                                    0x1.555555555555cp-3,
                                    0x1.555555555555ep-5,
                                    0x1.111111110eb6fp-7,
                                    0x1.6c16c16c13546p-10,
                                    0x1.a01a01b3d5bb3p-13,
                                    0x1.a01a01b46de4cp-16,
                                    0x1.71ddef502d987p-19,
                                    0x1.27e4bef818488p-22,
                                    0x1.af6d449c5bad1p-26,
                                    0x1.1f9e4a743e3cfp-29};
  static constexpr double kLog[] = {0x1.5555555555592p-1, 0x1.999999997fdb2p-2, 0x1.24924941f1b12p-2,
                                    0x1.c71c5208d9a05p-3, 0x1.74663f04ff4f0p-3, 0x1.39a1b7c0d6701p-3,
                                    0x1.2f0581df70237p-3};
  static constexpr double kSin[] = {-0x1.5555555555549p-3, 0x1.111111110f842p-7,   -0x1.a01a019c0a238p-13,
                                    0x1.71de3570f5461p-19, -0x1.ae5e60bcb8e1ep-26, 0x1.5d915b8e60735p-33};
  static constexpr double kCos[] = {0x1.555555555554cp-5,   -0x1.6c16c16c1513fp-10, 0x1.a01a019cab67cp-16,
                                    -0x1.27e4f80535c8ap-22, 0x1.1ee9e89804ee5p-29,  -0x1.8facd73b69e42p-37};
  static constexpr double kSinHalfTurn[] = {-0x1.5555555555555p-3,  0x1.11111111110c1p-7,   -0x1.a01a01a0148adp-13,
                                            0x1.71de3a52875c0p-19,  -0x1.ae6454cb25ea7p-26, 0x1.6123cb1c7e709p-33,
                                            -0x1.ae431a4d50a97p-41, 0x1.8829491394a6cp-49};  // up to pi/2
  static constexpr double kAtan[] = {-0x1.5555555555554p-2, 0x1.9999999999652p-3,  -0x1.2492492475990p-3,
                                     0x1.c71c71b75b594p-4,  -0x1.745d14bba75b0p-4, 0x1.3b136e50b7df5p-4,
                                     -0x1.110c746827f26p-4, 0x1.e17218719ef94p-5,  -0x1.ab7df6e51737bp-5,
                                     0x1.70eea0d7612b9p-5,  -0x1.1239c94f8d920p-5, 0x1.f1ed0e4438cc9p-7};
  static constexpr double kAsin[] = {
      0x1.5555555555578p-3, 0x1.333333332de8fp-4,  0x1.6db6db7231d24p-5, 0x1.f1c71a89212b4p-6, 0x1.6e8be02eb3a23p-6,
      0x1.1c49d8cb931b6p-6, 0x1.ca21c4c3e31c4p-7,  0x1.757355d74a255p-7, 0x1.61a2f58e60192p-7, 0x1.dfe44e03b83c1p-9,
      0x1.6576af3240642p-6, -0x1.5a9f4eff564fdp-6, 0x1.0c1a4fd412216p-5};
  static constexpr double kErfEnd = 6;
  static constexpr double kErfSlope = 0x1.20dd750429b6dp+0;
  static constexpr double kErf[] = {
      0x1.1ae3a914fed80p-56,  0x1.45f306dc9c8d9p-1,   0x1.a4f4e2a1a9b51p-4,   -0x1.396685908d65bp-6,
      -0x1.b6b6a1c9e3f11p-13, 0x1.bca691df3fc19p-10,  -0x1.35663bdb115adp-11, 0x1.b29af5b600874p-16,
      0x1.0e32f7a417b8ep-14,  -0x1.f0329e31c1e2ap-16, 0x1.a96e294bd7dafp-19,  0x1.a47e965400f0ep-19,
      -0x1.116c434f4597ap-19, 0x1.3258720dadb8dp-21,  -0x1.91eea86d13f77p-27, -0x1.1a57b807d3c6cp-24,
      0x1.291841d78bc7dp-25,  -0x1.722f0753397c2p-27, 0x1.447046ed749abp-29,  -0x1.9d827c1a89824p-32,
      0x1.7a6730d4eb39cp-35,  -0x1.d9820bbb5a0e0p-39, 0x1.6ba68d1c9727dp-43,  -0x1.02dae42a4c867p-48};
};

template <class T>
using UInt = typename Real<T>::UInt;
template <class T>
using Int = typename Real<T>::Int;

// ---- Arithmetic ----

// a * b + c, rounded once where the machine can.
RL_INLINE float madd(float a, float b, float c) {
#if defined(__FMA__) || defined(__aarch64__)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}
RL_INLINE double madd(double a, double b, double c) {
#if defined(__FMA__) || defined(__aarch64__)
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

// The coefficients of float, to be used in double.
template <size_t N>
struct Widened {
  double c[N] = {};
  constexpr explicit Widened(const float (&from)[N]) {
    for (size_t k = 0; k < N; ++k) c[k] = from[k];
  }
};

// c[K] + c[K + kStep] x + ... Unrolled by recursion: a loop in the formula would keep the loop over elements from
// vectorising.
template <size_t K, size_t kStep, class T, size_t N>
RL_INLINE T horner(T x, const T (&c)[N]) {
  if constexpr (K + kStep >= N) {
    return c[K];
  } else {
    return madd(horner<K + kStep, kStep>(x, c), x, c[K]);
  }
}

// c[0] + c[1] x + ... Long ones in two chains, even and odd: a chain waits for each of its products.
template <class T, size_t N>
RL_INLINE T polynomial(T x, const T (&c)[N]) {
  if constexpr (N < 5) return horner<0, 1>(x, c);
  const T square = x * x;
  return madd(horner<1, 2>(square, c), x, horner<0, 2>(square, c));
}

template <class T>
RL_INLINE UInt<T> bits(T x) {
  return bits_as<UInt<T>>(x);
}
template <class T>
RL_INLINE T from_bits(UInt<T> b) {
  return bits_as<T>(b);
}

template <class T>
RL_INLINE T abs(T x) {
  return from_bits<T>(bits(x) & ~Real<T>::kSign);
}
template <class T>
RL_INLINE T copysign(T magnitude, T sign) {
  return from_bits<T>((bits(magnitude) & ~Real<T>::kSign) | (bits(sign) & Real<T>::kSign));
}
template <class T>
RL_INLINE bool signbit(T x) {
  return static_cast<Int<T>>(bits(x)) < 0;
}
template <class T>
RL_INLINE bool isnan(T x) {
  return x != x;
}

RL_INLINE float sqrt(float x) { return __builtin_sqrtf(x); }
RL_INLINE double sqrt(double x) { return __builtin_sqrt(x); }

// ---- Rounding ----

#if defined(__SSE4_1__) || defined(__aarch64__)
RL_INLINE float rint(float x) { return __builtin_rintf(x); }
RL_INLINE double rint(double x) { return __builtin_rint(x); }
RL_INLINE float floor(float x) { return __builtin_floorf(x); }
RL_INLINE double floor(double x) { return __builtin_floor(x); }
RL_INLINE float ceil(float x) { return __builtin_ceilf(x); }
RL_INLINE double ceil(double x) { return __builtin_ceil(x); }
RL_INLINE float trunc(float x) { return __builtin_truncf(x); }
RL_INLINE double trunc(double x) { return __builtin_trunc(x); }
#else
template <class T>
RL_INLINE T rint(T x) {
  const T a = vm::abs(x);
  const T rounded = (a + Real<T>::kInt) - Real<T>::kInt;
  return a < Real<T>::kInt ? copysign(rounded, x) : x;
}
template <class T>
RL_INLINE T trunc(T x) {
  const T a = vm::abs(x);
  const T rounded = (a + Real<T>::kInt) - Real<T>::kInt;
  return a < Real<T>::kInt ? copysign(rounded > a ? rounded - 1 : rounded, x) : x;
}
template <class T>
RL_INLINE T floor(T x) {
  const T r = vm::rint(x);
  return r > x ? copysign(r - 1, x) : r;
}
template <class T>
RL_INLINE T ceil(T x) {
  const T r = vm::rint(x);
  return r < x ? copysign(r + 1, x) : r;
}
#endif

// ---- The common case ----

// What tells whether x is an argument for the quick form of a formula: an integer that is below a limit then.
struct Magnitude {
  template <class T>
  UInt<T> operator()(T x) const {
    return bits(vm::abs(x));
  }
};
struct Normality {  // of positive numbers
  template <class T>
  UInt<T> operator()(T x) const {
    return bits(x) - bits(Real<T>::kMin);
  }
  template <class T>
  static UInt<T> limit() {
    return bits_as<UInt<T>>(Real<T>::kInf) - bits_as<UInt<T>>(Real<T>::kMin);
  }
};
struct Exponentiable : Magnitude {  // e^x and e^-x are normal
  template <class T>
  static UInt<T> limit() {
    return bits_as<UInt<T>>(-Real<T>::kExpSubnormal);
  }
};

// ---- Exponentials ----

// x = n ln 2 + r and e^r = 1 + r + q.
template <class T>
struct Exp {
  T r, q;
  UInt<T> n;
};

template <class T>
RL_INLINE Exp<T> exp_reduced(T x) {
  using R = Real<T>;
  const T shifted = madd(x, R::kLog2eHi + R::kLog2eLo, R::kRound);
  const T n = shifted - R::kRound;
  const T hi = madd(-n, R::kLn2Hi, x), lo = n * R::kLn2Lo;
  const T r = hi - lo;
  const T lost = (hi - r) - lo;
  return {r, madd(r * r, polynomial(r, R::kExp), lost), bits(shifted) - bits(R::kRound)};
}

// 1 + r + q, rounded little more than once.
template <class T>
RL_INLINE T exp_fraction(const Exp<T>& e) {
  const T one = 1 + e.r;
  return one + ((e.r - (one - 1)) + e.q);
}

// y 2^n in two steps, so that subnormal results and overflow round once.
template <class T>
RL_INLINE T scale(T y, UInt<T> n) {
  using R = Real<T>;
  const UInt<T> biased = n + 2 * R::kBias;
  const UInt<T> half = biased >> 1;
  return y * from_bits<T>(half << R::kMantissa) * from_bits<T>((biased - half) << R::kMantissa);
}

// NaN comes through.
template <class T>
RL_INLINE T between(T x, T low, T high) {
  x = x > high ? high : x;
  return x < low ? low : x;
}

// e^x 2^kShift. kBounded: the result is known to be a normal number (or NaN, whose place any value takes).
template <int kShift = 0, bool kBounded = false, class T>
RL_INLINE T exp(T x) {
  using R = Real<T>;
  const T shifted = madd(x, R::kLog2eHi + R::kLog2eLo, R::kRound);
  const T n = shifted - R::kRound;
  T r = madd(-n, R::kLn2Hi, x);
  r = madd(-n, R::kLn2Lo, r);
  const T y = 1 + madd(r * r, polynomial(r, R::kExp), r);
  const UInt<T> exponent = bits(shifted) + UInt<T>(kShift);  // the low bits of `shifted` are n
  if constexpr (kBounded) return from_bits<T>(bits(y) + (exponent << R::kMantissa));
  // Subnormal results take a detour through normal ones.
  constexpr T kTiny = 1 / (T(UInt<T>(1) << R::kMantissa) * T(UInt<T>(1) << R::kMantissa));
  const bool subnormal = x < R::kExpSubnormal;
  const UInt<T> raised = exponent + (subnormal ? UInt<T>(2 * R::kMantissa) : UInt<T>(0));
  const T scaled = from_bits<T>(bits(y) + (raised << R::kMantissa)) * (subnormal ? kTiny : T(1));
  const T finite = x < R::kExpLow ? T(0) : scaled;
  return x <= R::kExpHigh - T(M_LN2) * kShift ? finite : x + R::kInf;  // NaN comes through
}

template <class T>
RL_INLINE T exp2(T x) {
  using R = Real<T>;
  x = between(x, T(-(R::kBias + R::kMantissa + 2)), T(R::kBias + 2));
  const T shifted = x + R::kRound;
  const T r = (x - (shifted - R::kRound)) * T(0.693147180559945309417);
  return scale(exp_fraction(Exp<T>{r, r * r * polynomial(r, R::kExp), 0}), bits(shifted) - bits(R::kRound));
}

template <class T>
RL_INLINE T expm1(T x) {
  using R = Real<T>;
  // Below, the result is -1; above, it overflows, and so does 2^n no earlier.
  const Exp<T> e = exp_reduced(between(x, T(-(R::kMantissa + 2)), R::kExpHigh + T(0.1)));
  const T p = e.r + e.q;
  const T half = from_bits<T>((e.n + (R::kBias - 1)) << R::kMantissa);
  return e.n == 0 ? copysign(p, x) : 2 * madd(half, p, half - T(0.5));  // of -0 the sum is 0
}

// kBounded: x is Exponentiable.
template <bool kBounded = false, class T>
RL_INLINE T sigmoid(T x) {
  const T z = vm::exp<0, kBounded>(-vm::abs(x));
  const bool positive = x >= 0;
  const T sum = 1 + z;
  const T y = (positive ? T(1) : z) / sum;
  // What the sum lost, times dy/dsum.
  return y - (z - (sum - 1)) * y * (positive ? y : 1 - y);
}

// e^x = power (1 + rest), for an x whose exponential is normal (or NaN, which the rest passes on).
template <class T>
struct Power2 {
  T power, rest;
};

template <class T>
RL_INLINE Power2<T> exp_parts(T x) {
  using R = Real<T>;
  const T shifted = madd(x, R::kLog2eHi + R::kLog2eLo, R::kRound);
  const T n = shifted - R::kRound;
  T r = madd(-n, R::kLn2Hi, x);
  r = madd(-n, R::kLn2Lo, r);
  return {from_bits<T>((bits(shifted) << R::kMantissa) + bits(T(1))), madd(r * r, polynomial(r, R::kExp), r)};
}

// p / (p + 2), where p = e^2|x| - 1.
template <class T>
RL_INLINE T tanh(T x) {
  const T a = vm::abs(x);
  const Power2<T> e = exp_parts(2 * (a > 22 ? T(22) : a));
  const T p = madd(e.power, e.rest, e.power - 1);
  return copysign(p / (p + 2), x);
}

template <class T>
RL_INLINE T sinh(T x) {
  const T a = vm::abs(x);
  const T half = vm::exp<-1>(a);
  const T t = vm::expm1(a < 1 ? a : T(1));
  const T small = T(0.5) * (2 * t - t * t / (t + 1));
  return copysign(a < 1 ? small : half - T(0.25) / half, x);
}

template <class T>
RL_INLINE T cosh(T x) {
  const T half = vm::exp<-1>(vm::abs(x));
  return half + T(0.25) / half;
}

// ---- Logarithms ----

// x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)).
template <class T>
struct Log {
  T f, e;
};

// kNormal: x is a normal number.
template <bool kNormal = false, class T>
RL_INLINE Log<T> log_reduced(T x) {
  using R = Real<T>;
  const bool subnormal = !kNormal && x < R::kMin;
  const UInt<T> b = bits(subnormal ? x * (R::kInt * 4) : x);
  // The exponent stays positive here: a signed 64-bit shift and conversion are slow before AVX-512.
  const UInt<T> e = (b - R::kSqrtHalf + (UInt<T>(R::kBias + 1) << R::kMantissa)) >> R::kMantissa;
  const T m = from_bits<T>(b - ((e - (R::kBias + 1)) << R::kMantissa));
  const T bias = subnormal ? T(R::kBias + 1 + R::kMantissa + 2) : T(R::kBias + 1);
  if constexpr (kNormal) return {m - 1, from_bits<T>(e | bits(R::kInt)) - (R::kInt + (R::kBias + 1))};
  return {m - 1, (from_bits<T>(e | bits(R::kInt)) - R::kInt) - bias};
}

// log(1 + f) - f + f^2 / 2, small beside f.
RL_INLINE double log_tail(double f) {
  const double s = f / (2 + f);
  const double z = s * s;
  return s * madd(z, polynomial(z, Real<double>::kLog), 0.5 * f * f);
}
RL_INLINE float log_tail(float f) {
  // A longer polynomial costs less than the division.
  constexpr float kTail[] = {0x1.55554ap-2f, -0x1.000222p-2f, 0x1.99a5a2p-3f, -0x1.547804p-3f,
                             0x1.226cf6p-3f, -0x1.0ce4dp-3f,  0x1.07dc3p-3f,  -0x1.41f0c4p-4f};
  return f * f * f * polynomial(f, kTail);
}

// What every logarithm gives outside (0, inf).
template <class T>
RL_INLINE T log_special(T x, T value) {
  using R = Real<T>;
  value = x < R::kInf ? value : x;  // inf and NaN
  value = x < 0 ? R::kNan : value;
  return x == 0 ? -R::kInf : value;
}

template <class T>
RL_INLINE T log_core(Log<T> a, T correction) {
  using R = Real<T>;
  const T tail = log_tail(a.f) + madd(a.e, R::kLn2Lo, correction);
  return madd(a.e, R::kLn2Hi, a.f - (T(0.5) * a.f * a.f - tail));
}

// kNormal: x is a positive normal number.
template <bool kNormal = false, class T>
RL_INLINE T log(T x) {
  const T y = log_core(log_reduced<kNormal>(x), T(0));
  return kNormal ? y : log_special(x, y);
}

template <class T>
RL_INLINE T log1p(T x) {
  using R = Real<T>;
  const T u = 1 + x;
  Log<T> a = log_reduced(u);
  const T lost = x > 1 ? 1 - (u - x) : x - (u - 1);
  const bool near = a.e == 0;
  a.f = near ? x : a.f;
  const T y = log_special(u, log_core(a, near | (u == R::kInf) ? T(0) : lost / u));
  return x == 0 ? x : y;
}

// log(x) in another base: log2 and log10 of fdlibm, which multiply by a constant in two parts.
template <bool kNormal, class T>
RL_INLINE T log_based(T x, T inverse_hi, T inverse_lo, T two_hi, T two_lo) {
  using R = Real<T>;
  const Log<T> a = log_reduced<kNormal>(x);
  const T square = T(0.5) * a.f * a.f;
  const T hi = from_bits<T>(bits(a.f - square) & R::kHighMask);
  const T lo = (a.f - hi) - square + log_tail(a.f);
  const T whole = a.e * two_hi;
  const T part = hi * inverse_hi;
  const T sum = whole + part;
  T rest = madd(a.e, two_lo, madd(lo + hi, inverse_lo, lo * inverse_hi));
  rest += (whole - sum) + part;
  return kNormal ? sum + rest : log_special(x, sum + rest);
}
template <bool kNormal = false, class T>
RL_INLINE T log2(T x) {
  return log_based<kNormal>(x, Real<T>::kLog2eHi, Real<T>::kLog2eLo, T(1), T(0));
}
template <bool kNormal = false, class T>
RL_INLINE T log10(T x) {
  using R = Real<T>;
  return log_based<kNormal>(x, R::kLog10eHi, R::kLog10eLo, R::kLog10Of2Hi, R::kLog10Of2Lo);
}

template <class T>
RL_INLINE T asinh(T x) {
  const T a = vm::abs(x);
  const bool big = a > Real<T>::kBigAsinh;
  const T argument = big ? a - 1 : a + a * a / (1 + vm::sqrt(a * a + 1));
  const T y = vm::log1p(argument);
  return copysign(big ? y + T(0.693147180559945309417) : y, x);
}

template <class T>
RL_INLINE T acosh(T x) {
  const bool big = x > Real<T>::kBigAsinh;
  const T t = x - 1;
  const T y = vm::log1p(big ? t : t + vm::sqrt(2 * t + t * t));
  return x < 1 ? Real<T>::kNan : big ? y + T(0.693147180559945309417) : y;
}

template <class T>
RL_INLINE T atanh(T x) {
  const T a = vm::abs(x);
  const T y = vm::log1p(a < T(0.5) ? 2 * a + 2 * a * a / (1 - a) : 2 * a / (1 - a));
  return copysign(a > 1 ? Real<T>::kNan : T(0.5) * y, x);
}

// log(1 + e^x)
template <class T>
RL_INLINE T softplus(T x) {
  return (x > 0 ? x : T(0)) + vm::log1p(vm::exp(-vm::abs(x)));
}

// ---- Trigonometry ----

// |x| below this is reduced here; beyond, the caller takes the C library (Payne and Hanek's reduction).
inline constexpr double kTrigLimit = 0x1p20;
struct Reducible : Magnitude {
  template <class T>
  static UInt<T> limit() {
    return bits_as<UInt<T>>(T(kTrigLimit));
  }
};

// x = n pi/2 + r + tail, n taken modulo 4.
template <class T>
struct Trig {
  T r, tail;
  UInt<T> n;
};

RL_INLINE Trig<double> trig_reduced(double x) {
  const double shifted = madd(x, 0.636619772367581343076, Real<double>::kRound);
  const double n = shifted - Real<double>::kRound;
  // pi/2 in three parts of 33 bits and a rest: products with n are exact.
  const double a = x - n * 0x1.921fb544p+0;
  const double b = n * 0x1.0b4611a6p-34, ab = a - b, lost_ab = (a - ab) - b;
  const double c = n * 0x1.3198a2ep-69, abc = ab - c, lost_abc = (ab - abc) - c;
  const double rest = n * 0x1.b839a252049c1p-104 - lost_ab - lost_abc;
  const double r = abc - rest;
  return {r, (abc - r) - rest, bits(shifted)};
}

RL_INLINE Trig<float> trig_reduced(float x) {
#if defined(__FMA__) || defined(__aarch64__)
  const float shifted = madd(x, 0.636619772f, Real<float>::kRound);
  const float n = shifted - Real<float>::kRound;
  const float r = madd(-n, -0x1.ee59dap-50f, madd(-n, -0x1.777a5cp-25f, madd(-n, 0x1.921fb6p+0f, x)));
  return {r, 0, bits(shifted)};
#else
  const double shifted = madd(static_cast<double>(x), 0.636619772367581343076, Real<double>::kRound);
  const double n = shifted - Real<double>::kRound;
  const double r = (x - n * 0x1.921fb544p+0) - n * 0x1.0b4611a626331p-34;
  return {static_cast<float>(r), 0, bits(static_cast<float>(n) + Real<float>::kRound)};
#endif
}

template <class T>
RL_INLINE T sin_core(T r, T tail) {
  const T z = r * r;
  const T cubic = madd(z * r, polynomial(z, Real<T>::kSin), madd(T(-0.5) * z, tail, tail));
  return r + cubic;
}

template <class T>
RL_INLINE T cos_core(T r, T tail) {
  const T z = r * r;
  const T half = T(0.5) * z;
  const T w = 1 - half;
  return w + (((1 - w) - half) + madd(z * z, polynomial(z, Real<T>::kCos), -r * tail));
}

template <class T>
RL_INLINE T quadrant(Trig<T> t, UInt<T> n) {
  const T y = n & 1 ? cos_core(t.r, t.tail) : sin_core(t.r, t.tail);
  return from_bits<T>(bits(y) ^ ((n << (sizeof(T) * 8 - 2)) & Real<T>::kSign));
}

template <class T>
RL_INLINE T sin(T x) {
  const Trig<T> t = trig_reduced(x);
  const T y = quadrant(t, t.n);
  return x == 0 ? x : y;
}
template <class T>
RL_INLINE T cos(T x) {
  const Trig<T> t = trig_reduced(x);
  return quadrant(t, t.n + 1);
}

#if defined(__FMA__) || defined(__aarch64__)
// sin(x - n pi), the sign changed for odd n; n is an integer, or half of one and the result is a cosine.
RL_INLINE double sin_half_turns(double x, double n, uint64_t parity) {
  // pi in three parts, of 33 bits and twice 53.
  const double a = madd(-n, 0x1.921fb544p+1, x);
  const double b = n * 0x1.0b4611a626331p-33, b_lo = madd(n, 0x1.0b4611a626331p-33, -b);
  const double ab = a - b, lost = (a - ab) - b;
  const double rest = madd(n, 0x1.1701b839a2520p-87, b_lo) - lost;
  const double r = ab - rest, tail = (ab - r) - rest;
  const double z = r * r;
  const double y = r + madd(z * r, polynomial(z, Real<double>::kSinHalfTurn), madd(-0.5 * z, tail, tail));
  return from_bits<double>(bits(y) ^ (parity << 63));
}

RL_INLINE double sin(double x) {
  const double shifted = madd(x, M_1_PI, Real<double>::kRound);
  const double y = sin_half_turns(x, shifted - Real<double>::kRound, bits(shifted));
  return x == 0 ? x : y;
}
RL_INLINE double cos(double x) {
  const double shifted = madd(x, M_1_PI, 0.5) + Real<double>::kRound;
  return sin_half_turns(x, (shifted - Real<double>::kRound) - 0.5, bits(shifted));
}
#endif

template <class T>
RL_INLINE T tan(T x) {
  const Trig<T> t = trig_reduced(x);
  const T s = sin_core(t.r, t.tail), c = cos_core(t.r, t.tail);
  const T y = t.n & 1 ? -c / s : s / c;
  return x == 0 ? x : y;
}

// In double: the derivative magnifies what a float reduction rounds.
RL_INLINE float tan(float x) {
  constexpr double kTan[] = {0x1.555576p-2, 0x1.11080cp-3,   0x1.bbc932p-5, 0x1.539p-6,
                             0x1.903a5cp-7, -0x1.9e5778p-10, 0x1.527946p-8};
  const double shifted = madd(static_cast<double>(x), 0.636619772367581343076, Real<double>::kRound);
  const double n = shifted - Real<double>::kRound;
  const double r = (x - n * 0x1.921fb544p+0) - n * 0x1.0b4611a626331p-34, z = r * r;
  const double y = madd(r * z, polynomial(z, kTan), r);
  const float result = static_cast<float>(bits(shifted) & 1 ? -1 / y : y);
  return x == 0 ? x : result;
}

// ---- Inverse trigonometry ----

// asin(x) - x, with z = x^2.
template <class T>
RL_INLINE T asin_tail(T x, T z) {
  return x * z * polynomial(z, Real<T>::kAsin);
}

template <class T>
RL_INLINE T asin(T x) {
  const T a = vm::abs(x);
  const bool big = a > T(0.5);
  const T z = big ? T(0.5) * (1 - a) : a * a;
  const T s = big ? vm::sqrt(z) : a;
  const T tail = asin_tail(s, z);
  // pi/2 - 2 asin(s), where s = hi + lo beyond its own precision.
  const T hi = from_bits<T>(bits(s) & Real<T>::kHighMask);
  const T lo = (z - hi * hi) / (s + hi + Real<T>::kMin);
  const T y = (T(M_PI_2) - 2 * hi) - (2 * (lo + tail) - T(0.5) * Real<T>::kPiLo);
  return copysign(big ? y : s + tail, x);
}

template <class T>
RL_INLINE T acos(T x) {
  const T a = vm::abs(x);
  const bool big = a > T(0.5);
  const T z = big ? T(0.5) * (1 - a) : a * a;
  const T s = big ? vm::sqrt(z) : x;
  const T y = s + asin_tail(s, z);
  const T ends = x < 0 ? T(M_PI) - (2 * y - Real<T>::kPiLo) : 2 * y;
  return big ? ends : T(M_PI_2) - (y - T(0.5) * Real<T>::kPiLo);
}

// The angle of (den, num), both non-negative, in [0, pi/2].
template <class T>
RL_INLINE T atan_core(T num, T den) {
  const bool steep = num > den;
  const T low = steep ? den : num, high = steep ? num : den;
  const bool middle = low > T(0.41421356237309504880) * high;
  const T t = (middle ? low - high : low) / (middle ? low + high : high);
  const T z = t * t;
  const T y = madd(t * z, polynomial(z, Real<T>::kAtan), t);
  // pi/4 + y, then pi/2 - y, the constants in two parts.
  const T quarter = T(M_PI_4), quarter_lo = T(0.25) * Real<T>::kPiLo;
  const T gentle = middle ? quarter + (y + quarter_lo) : y;
  const T complement = middle ? quarter - (y - quarter_lo) : 2 * quarter - (y - 2 * quarter_lo);
  return steep ? complement : gentle;
}

template <class T>
RL_INLINE T atan(T x) {
  const T a = vm::abs(x);
  const T y = atan_core(a < Real<T>::kInf ? a : T(1), a < Real<T>::kInf ? T(1) : T(0));
  return isnan(x) ? x : copysign(y, x);
}

template <class T>
RL_INLINE T atan2(T y, T x) {
  using R = Real<T>;
  T num = vm::abs(y), den = vm::abs(x);
  const bool both = (num == R::kInf) & (den == R::kInf);
  const bool none = (num == 0) & (den == 0);
  // Infinities become a direction; the factor keeps the sum of two large values finite.
  const T down = (num > 1) | (den > 1) ? T(0.5) : T(1);
  const bool up = num == R::kInf, level = den == R::kInf;
  num = both | up ? T(1) : level ? T(0) : down * num;
  den = both ? T(1) : up ? T(0) : level | none ? T(1) : down * den;
  const T angle = atan_core(num, den);
  const T turned = signbit(x) ? T(M_PI) - (angle - R::kPiLo) : angle;
  return isnan(x) | isnan(y) ? x + y : copysign(turned, y);
}

// ---- Error function ----

// 1 - e^-Q(|x|), with a polynomial for Q(x) / x - 2 / sqrt(pi).
template <class T>
RL_INLINE T erf(T x) {
  using R = Real<T>;
  const T a = vm::abs(x);
  const T end = a > R::kErfEnd ? R::kErfEnd : a;
  const Power2<T> e = exp_parts(madd(-end, R::kErfSlope, -end * polynomial(end, R::kErf)));
  return copysign(madd(-e.power, e.rest, 1 - e.power), x);
}

// ---- Powers ----

// An unevaluated sum of two doubles: T. J. Dekker, A floating-point technique for extending the precision (1971).
struct Pair {
  double hi, lo;
};

// |a| >= |b|, or a is 0.
RL_INLINE Pair exact_sum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

RL_INLINE Pair exact_product(double a, double b) {
  const double product = a * b;
#if defined(__FMA__) || defined(__aarch64__)
  return {product, madd(a, b, -product)};
#else
  constexpr double kSplit = 0x1p27 + 1;
  const double ta = kSplit * a, tb = kSplit * b;
  const double ah = ta - (ta - a), bh = tb - (tb - b);
  const double al = a - ah, bl = b - bh;
  return {product, ((ah * bh - product) + ah * bl + al * bh) + al * bl};
#endif
}

inline constexpr double kLogExtended[] = {0x1.9999999999b30p-2, 0x1.2492492457dbfp-2, 0x1.c71c722d5d5cbp-3,
                                          0x1.745ce9e68e74bp-3, 0x1.3b1eeb733bdfdp-3, 0x1.0f7ff7bcca17ep-3,
                                          0x1.0e42269655aefp-3};

// log(x) with about 65 bits for 0 < x < inf.
RL_INLINE Pair log_extended(double x) {
  using R = Real<double>;
  const Log<double> a = log_reduced(x);
  // s = f / (2 + f)
  const Pair t = exact_sum(2, a.f);
  const double s = a.f / t.hi;
  const Pair st = exact_product(s, t.hi);
  const double s_lo = ((a.f - st.hi) - st.lo - s * t.lo) / t.hi;
  // log(1 + f) = s (2 + z (2/3 + z q(z))), z = s^2
  const Pair z = exact_product(s, s);
  const double z_lo = z.lo + 2 * s * s_lo;
  const Pair c = exact_sum(0x1.5555555555555p-1, z.hi * polynomial(z.hi, kLogExtended));
  const double c_lo = c.lo + 0x1.5555555555555p-55;
  const Pair zc = exact_product(z.hi, c.hi);
  const Pair u = exact_sum(2, zc.hi);
  const double u_lo = u.lo + (zc.lo + madd(z.hi, c_lo, z_lo * c.hi));
  const Pair log = exact_product(s, u.hi);
  const double log_lo = log.lo + madd(s, u_lo, s_lo * u.hi);
  const Pair sum = exact_sum(a.e * R::kLn2Hi, log.hi);
  return exact_sum(sum.hi, sum.lo + madd(a.e, R::kLn2Lo, log_lo));
}

// |x|^y, but for the cases that pow_signed mends.
RL_INLINE double pow_magnitude(double x, double y) {
  using R = Real<double>;
  Pair log = log_extended(x);
  log.hi = x == 0 ? -R::kInf : x < R::kInf ? log.hi : x;
  const Pair product = exact_product(y, log.hi);
  const double lo = vm::abs(product.hi) < 800 ? madd(y, log.lo, product.lo) : 0.0;
  Exp<double> e = exp_reduced(between(product.hi, R::kExpLow, R::kExpHigh + 1));
  e.q = madd(1 + e.r + e.q, lo, e.q);  // e^lo = 1 + lo, since lo is tiny
  return scale(exp_fraction(e), e.n);
}

// In double, a float's power needs no extended logarithm, and the polynomials of float are exact enough.
RL_INLINE float pow_magnitude(float x, float y) {
  using R = Real<double>;
  constexpr Widened kLog(Real<float>::kLog);
  constexpr Widened kExp(Real<float>::kExp);
  const double a = x;
  const Log<double> e = log_reduced(a);
  const double s = e.f / (2 + e.f), z = s * s;
  const double log = log_special(a, madd(e.e, M_LN2, s * madd(z, polynomial(z, kLog.c), 2.0)));
  // Past the range of float, but within that of double.
  const double product = between(static_cast<double>(y) * log, -200.0, 200.0);
  const double shifted = madd(product, M_LOG2E, R::kRound);
  const double r = madd(-(shifted - R::kRound), M_LN2, product);
  const double power = 1 + madd(r * r, polynomial(r, kExp.c), r);
  return static_cast<float>(from_bits<double>(bits(power) + (bits(shifted) << R::kMantissa)));
}

// C99 Annex F: the sign for negative x, and the cases where a NaN or an infinite power does not matter.
template <class T>
RL_INLINE T pow(T x, T y) {
  const T a = vm::abs(x);
  T power = pow_magnitude(a, y);
  power = a == 1 ? T(1) : power;
  const bool whole = vm::rint(y) == y;
  const bool odd = whole & (T(2) * vm::rint(T(0.5) * y) != y);
  power = signbit(x) & odd ? -power : power;
  power = (x < 0) & !whole & (a < Real<T>::kInf) ? Real<T>::kNan : power;
  power = isnan(x) | isnan(y) ? x + y : power;
  return (x == 1) | (y == 0) ? T(1) : power;
}

}  // namespace vm
}  // namespace RL_ISA
}  // namespace rl
