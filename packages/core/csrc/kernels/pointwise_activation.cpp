// Activation functions of neural networks, and the gradients that are worth a loop of their own.
#include "loop_table.h"
#include "rushlight/loop.h"
#include "rushlight/vecmath.h"

#if defined(__AVX512F__)
#include "tabled.h"
#endif

namespace rl {
namespace RL_ISA {
namespace {

template <class T>
RL_INLINE T limit(T x, T low, T high) {
  const T raised = x < low ? low : x;
  return raised > high ? high : raised;
}
// Functions that vanish far to the left look no further, where infinity would meet a zero.
template <class T>
RL_INLINE T at_least(T x, T low) {
  return x < low ? low : x;
}

// ---- GELU: D. Hendrycks and K. Gimpel (2016) ----

template <class T>
RL_INLINE T normal_cdf(T x) {
  return T(0.5) * (1 + vm::erf(x * T(M_SQRT1_2)));
}

// (1 + 2 z) exp(z^2) erfc(z) for z >= 0, in powers of (z - 2.5) / (z + 2.5) (M. Shepherd and J. Laframboise, 1981).
template <class T>
constexpr T kErfcx[] = {0x1.43cc6f6c9672dp+0,   -0x1.f52c5d7e22266p-4,  -0x1.959ac16f864e9p-4,  0x1.42d37998995bbp-3,
                        -0x1.a5c0c8a3daf6dp-4,  0x1.0c6092a69d61fp-5,   0x1.e89487e1151bcp-11,  -0x1.1f2f139789d7ap-8,
                        0x1.01e12b47b3bbfp-11,  0x1.4b6a66a58c659p-11,  -0x1.731e7b155ed40p-14, -0x1.dc29f6943b559p-14,
                        0x1.a51a7a6a34131p-18,  0x1.7d0c5d6ba6127p-16,  0x1.5b49d4caf3fb9p-19,  -0x1.1cd9e35047fb3p-18,
                        -0x1.a052808a21774p-20, 0x1.2f61596d8e0a0p-21,  0x1.0b00abf665529p-21,  -0x1.64c33bc4fc15bp-29,
                        -0x1.b54a52bf219fap-24, -0x1.4f84c7e6dbf26p-26, 0x1.667c08ff2767bp-27,  0x1.cc7f2bc3e3f11p-29};
template <>
constexpr float kErfcx<float>[] = {1.26483818f,     -0.122356801f,   -0.0990242417f,  0.157630994f,
                                   -0.102970538f,   0.0327520526f,   0.00094675963f,  -0.00435049234f,
                                   0.000463337521f, 0.000575734629f, -6.3917866e-05f, -6.1907531e-05f};

// Both tails to full accuracy: the distribution function from the same exponential as the density.
template <class T>
RL_INLINE T gelu_slope(T x) {
  x = limit(x, T(-40), T(40));  // so that infinities meet no zeros
  const T z = vm::abs(x) * T(M_SQRT1_2), power = vm::exp(T(-0.5) * x * x);
  const T tail = T(0.5) * power * vm::polynomial((z - T(2.5)) / (z + T(2.5)), kErfcx<T>) / (1 + 2 * z);
  return (x < 0 ? tail : 1 - tail) + x * (T(M_2_SQRTPI * M_SQRT1_2 * 0.5) * power);
}

template <class T>
RL_INLINE T gelu_tanh_inner(T x) {
  return T(M_SQRT2 * M_2_SQRTPI * 0.5) * (x + T(0.044715) * x * x * x);
}

// x tanh(softplus(x)), with w = e^x and tanh(log(1 + w)) = (w^2 + 2 w) / (w^2 + 2 w + 2).
template <class T>
RL_INLINE T mish(T x) {
  x = at_least(x, T(-1000));
  const T w = vm::exp(x > T(30) ? T(30) : x);
  const T u = w * (w + 2);
  return x * (u / (u + 2));
}
// tanh(softplus(x)) + x 4 (w + w^2) / (w^2 + 2 w + 2)^2, or the same in 1 / w.
template <class T>
RL_INLINE T mish_slope(T x) {
  x = limit(x, T(-1000), T(1000));
  const T e = vm::exp(-vm::abs(x));
  const bool right = x > 0;
  const T d = right ? 1 + 2 * e * (1 + e) : e * (e + 2) + 2;
  return (right ? 1 + 2 * e : e * (e + 2)) / d + x * (4 * e * (1 + e) * (right ? e : T(1))) / (d * d);
}

template <class T>
RL_INLINE T silu_slope(T x) {
  x = limit(x, T(-1000), T(1000));
  const T e = vm::exp(-vm::abs(x)), high = 1 / (1 + e), low = e * high;
  return (x > 0 ? high : low) * (1 + x * (x > 0 ? low : high));
}

template <class T>
RL_INLINE T softplus(T x, T beta, T threshold) {
  const T scaled = x * beta;
  return scaled > threshold ? x : vm::softplus(scaled) / beta;
}

void fill_piecewise(Registrar& ops) {
  ops.unary<Ints, Floats>("relu", [](auto x) { return x < decltype(x)(0) ? decltype(x)(0) : x; });
  ops.unary<Ints, Floats>("relu6", [](auto x) { return limit(x, decltype(x)(0), decltype(x)(6)); });
  ops.add<1, 2, Ints, Floats>("threshold", [](auto x, const auto* p) { return x <= p[0] ? p[1] : x; });
  ops.add<1, 1, Floats>("leaky_relu", [](auto x, const auto* p) { return x > 0 ? x : x * p[0]; });
  ops.add<1, 1, Floats>("hardshrink",
                        [](auto x, const auto* p) { return (x >= -p[0]) & (x <= p[0]) ? decltype(x)(0) : x; });
  ops.add<1, 1, Floats>("softshrink", [](auto x, const auto* p) {
    return x > p[0] ? x - p[0] : x < -p[0] ? x + p[0] : x != x ? x : x * 0;
  });
  ops.unary<Floats>("hardsigmoid", [](auto x) {
    using T = decltype(x);
    return limit(x + 3, T(0), T(6)) / 6;
  });
  ops.unary<Floats>("hardswish", [](auto x) {
    using T = decltype(x);
    return at_least(x, T(-4)) * limit(x + 3, T(0), T(6)) / 6;
  });
  ops.unary<Floats>("softsign", [](auto x) {
    x = limit(x, decltype(x)(-1e30), decltype(x)(1e30));
    return x / (1 + vm::abs(x));
  });
}

void fill_smooth(Registrar& ops) {
  ops.add<1, 3, Floats>("elu", [](auto x, const auto* p) {
    const auto negative = vm::expm1(x * p[2]) * (p[0] * p[1]);
    return x <= 0 ? (x == 0 ? x : negative) : x * p[1];
  });
#if defined(__AVX512F__)
  tabled::add(ops, "gelu", [](auto x) { return tabled::gelu(x); });
#else
  ops.unary<Floats>("gelu", [](auto x) { return at_least(x, decltype(x)(-1000)) * normal_cdf(x); });
#endif
  ops.unary<Floats>("gelu_tanh", [](auto x) {
    using T = decltype(x);
    const T at = at_least(x, T(-1000));
    return at * vm::sigmoid(2 * gelu_tanh_inner(at));
  });
  ops.unary<Floats>("silu", [](auto x) { return at_least(x, decltype(x)(-1000)) * vm::sigmoid(x); });
  ops.unary<Floats>("tanhshrink", [](auto x) { return x - vm::tanh(x); });
  ops.add<1, 2, Floats>("softplus", [](auto x, const auto* p) { return softplus(x, p[0], p[1]); });
  ops.unary<Floats>("log_sigmoid", [](auto x) { return -vm::softplus(-x); });
  ops.unary<Floats>("mish", [](auto x) { return mish(x); });
}

// (grad, x), or (grad, y) where the result is all that is needed.
void fill_gradients(Registrar& ops) {
  ops.add<2, 1, Ints, Floats>("threshold_backward",
                              [](auto grad, auto x, const auto* p) { return x <= p[0] ? decltype(x)(0) : grad; });
  ops.binary<Ints, Floats>("relu_backward",
                           [](auto grad, auto x) { return x <= decltype(x)(0) ? decltype(x)(0) : grad; });
  ops.add<2, 1, Floats>("leaky_relu_backward",
                        [](auto grad, auto x, const auto* p) { return x > 0 ? grad : grad * p[0]; });
  ops.add<2, 2, Floats>("hardtanh_backward", [](auto grad, auto x, const auto* p) {
    return (x <= p[0]) | (x >= p[1]) ? decltype(x)(0) : grad;
  });
  ops.binary<Floats>("tanh_backward", [](auto grad, auto y) { return grad * (1 - y * y); });
  ops.binary<Floats>("sigmoid_backward", [](auto grad, auto y) { return grad * (1 - y) * y; });
  ops.unary<Floats>("one_minus_square", [](auto x) { return (1 - x) * (1 + x); });
  ops.binary<Floats>("asin_backward", [](auto grad, auto x) { return grad / vm::sqrt((1 - x) * (1 + x)); });
  ops.binary<Floats>("atan_backward", [](auto grad, auto x) { return grad / (1 + x * x); });
  ops.binary<Floats>("asinh_backward", [](auto grad, auto x) {
    const auto a = vm::abs(x), bounded = limit(a, decltype(x)(0), decltype(x)(1e9));  // of larger ones 1 is lost
    return grad / (a > bounded ? a : vm::sqrt(1 + bounded * bounded));
  });
  ops.binary<Floats>("silu_backward", [](auto grad, auto x) { return grad * silu_slope(x); });
  ops.binary<Floats>("mish_backward", [](auto grad, auto x) { return grad * mish_slope(x); });
  ops.binary<Floats>("gelu_backward", [](auto grad, auto x) { return grad * gelu_slope(x); });
  ops.binary<Floats>("gelu_tanh_backward", [](auto grad, auto x) {
    using T = decltype(x);
    const T at = limit(x, T(-40), T(40)), y = 2 * gelu_tanh_inner(at), e = vm::exp(-vm::abs(y)), high = 1 / (1 + e);
    const T slope = T(M_SQRT2 * M_2_SQRTPI) * (1 + T(3 * 0.044715) * at * at);
    return grad * (y > 0 ? high : e * high) * (1 + at * slope * (y > 0 ? e * high : high));
  });
  ops.binary<Floats>("log_sigmoid_backward", [](auto grad, auto x) { return grad * vm::sigmoid(-x); });
  ops.add<2, 2, Floats>("softplus_backward", [](auto grad, auto x, const auto* p) {
    const auto scaled = x * p[0];
    return scaled > p[1] ? grad : grad * vm::sigmoid(scaled);
  });
}

}  // namespace

void fill_activation(LoopTable& table) {
  Registrar ops(table);
  fill_piecewise(ops);
  fill_smooth(ops);
  fill_gradients(ops);
}

}  // namespace RL_ISA
}  // namespace rl
