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

// ---- GELU: D. Hendrycks and K. Gimpel (2016) ----

template <class T>
RL_INLINE T normal_cdf(T x) {
  return T(0.5) * (1 + vm::erf(x * T(M_SQRT1_2)));
}

template <class T>
RL_INLINE T gelu_tanh_inner(T x) {
  return T(M_SQRT2 * M_2_SQRTPI * 0.5) * (x + T(0.044715) * x * x * x);
}

// x tanh(softplus(x)), with w = e^x and tanh(log(1 + w)) = (w^2 + 2 w) / (w^2 + 2 w + 2).
template <class T>
RL_INLINE T mish(T x) {
  const T w = vm::exp(x > T(30) ? T(30) : x);
  const T u = w * (w + 2);
  return x * (u / (u + 2));
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
    return x * limit(x + 3, T(0), T(6)) / 6;
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
  ops.unary<Floats>("gelu", [](auto x) { return x * normal_cdf(x); });
#endif
  ops.unary<Floats>("gelu_tanh", [](auto x) {
    using T = decltype(x);
    return T(0.5) * x * (1 + vm::tanh(gelu_tanh_inner(x)));
  });
  ops.unary<Floats>("silu", [](auto x) { return x * vm::sigmoid(x); });
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
  ops.binary<Floats>("silu_backward", [](auto grad, auto x) {
    const auto s = vm::sigmoid(x);
    return grad * s * (1 + x * (1 - s));
  });
  ops.binary<Floats>("gelu_backward", [](auto grad, auto x) {
    using T = decltype(x);
    const T density = T(M_2_SQRTPI * M_SQRT1_2 * 0.5) * vm::exp(T(-0.5) * x * x);
    return grad * (normal_cdf(x) + x * density);
  });
  ops.binary<Floats>("gelu_tanh_backward", [](auto grad, auto x) {
    using T = decltype(x);
    const T t = vm::tanh(gelu_tanh_inner(x));
    const T slope = T(M_SQRT2 * M_2_SQRTPI * 0.5) * (1 + T(3 * 0.044715) * x * x);
    return grad * T(0.5) * ((1 + t) + x * (1 - t * t) * slope);
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
