// Steps of the optimisers that scale gradients by their squares, against the papers' formulas in double precision.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "../kernels/norm.h"
#include "../kernels/optim.h"

namespace {

int failures = 0;
std::mt19937 rng(7);

// A parameter, its gradient and states; `at(i)` of each is a double, whatever the type of the kernel.
template <class T>
struct Case {
  std::vector<T> param, grad, state[3];
  explicit Case(int64_t n) {
    std::uniform_real_distribution<double> any(-1, 1), positive(0.1, 1);
    for (int64_t i = 0; i < n; ++i) {
      param.push_back(static_cast<T>(any(rng)));
      grad.push_back(static_cast<T>(any(rng)));
      for (auto& s : state) s.push_back(static_cast<T>(positive(rng)));
      state[2].back() *= T(0.15);  // where it is a mean, the mean of the squares is above its square
    }
  }
};

template <class T>
bool is_close(double expected, T got) {
  const double tolerance = sizeof(T) == 4 ? 2e-6 : 1e-14;
  return std::fabs(expected - static_cast<double>(got)) <= tolerance * (1 + std::fabs(expected));
}

// Runs a kernel with `used` states and compares with formula(parameter, gradient, states), which changes its arguments.
template <class T, class F>
void check(const char* what, void (*const kernel[2])(const rl::OptimStep&), unsigned used, rl::OptimStep s,
           const F& formula) {
  for (const int64_t n : {1, 15, 101, 70000}) {
    Case<T> c(n);
    const Case<T> before = c;
    s.n = n, s.param = c.param.data(), s.grad = c.grad.data();
    for (unsigned k = 0; k < 3; ++k) s.state[k] = used >> k & 1 ? c.state[k].data() : nullptr;
    kernel[sizeof(T) == 8](s);
    for (size_t i = 0; i < c.param.size(); ++i) {
      double p = static_cast<double>(before.param[i]), state[3];
      for (size_t k = 0; k < 3; ++k) state[k] = static_cast<double>(before.state[k][i]);
      const double g = s.sign * static_cast<double>(c.grad[i]) + s.decay * p;
      p *= s.shrink;
      p -= formula(g, state);
      bool same = is_close(p, c.param[i]);
      for (unsigned k = 0; k < 3; ++k)
        same = same && (used >> k & 1 ? is_close(state[k], c.state[k][i]) : c.state[k][i] == before.state[k][i]);
      if (same) continue;
      std::printf("%s: %g instead of %g at %d of %d\n", what, static_cast<double>(c.param[i]), p, int(i), int(n));
      ++failures;
      return;
    }
  }
}

void fade(double& mean, double beta, double value) { mean = beta * mean + (1 - beta) * value; }

template <class T>
void check_all(double shrink, double decay, double sign) {
  const auto& kernels = rl::optim_kernels();
  const auto step = [&](double rate, double a, double b = 0, double c = 0, double d = 0, double e = 0) {
    return rl::OptimStep{0, nullptr, nullptr, {}, shrink, decay, sign, rate, {a, b, c, d, e}};
  };
  check<T>("adagrad", kernels.adagrad, 1, step(0.1, 1e-10), [](double g, double* state) {
    state[0] += g * g;
    return 0.1 * g / (std::sqrt(state[0]) + 1e-10);
  });
  check<T>("adadelta", kernels.adadelta, 3, step(0.5, 0.9, 1e-6), [](double g, double* state) {
    fade(state[0], 0.9, g * g);
    const double delta = std::sqrt(state[1] + 1e-6) / std::sqrt(state[0] + 1e-6) * g;
    fade(state[1], 0.9, delta * delta);
    return 0.5 * delta;
  });
  check<T>("adamax", kernels.adamax, 3, step(0.1, 0.9, 0.99, 1e-8), [](double g, double* state) {
    fade(state[0], 0.9, g);
    state[1] = std::max(0.99 * state[1], std::fabs(g) + 1e-8);
    return 0.1 * state[0] / state[1];
  });
  check<T>("nadam", kernels.nadam, 3, step(0.1, 0.9, 0.99, 1e-8, 1.5, 0.2), [](double g, double* state) {
    fade(state[0], 0.9, g);
    fade(state[1], 0.99, g * g);
    return (0.1 * g + 0.2 * state[0]) / (1.5 * std::sqrt(state[1]) + 1e-8);
  });
  for (const double rectified : {0.0, 0.7})
    check<T>("radam", kernels.radam, 3, step(0.1, 0.9, 0.99, 1e-8, rectified), [=](double g, double* state) {
      fade(state[0], 0.9, g);
      fade(state[1], 0.99, g * g);
      return 0.1 * state[0] * (rectified == 0 ? 1 : rectified / (std::sqrt(state[1]) + 1e-8));
    });
  for (const unsigned used : {1u, 3u, 5u, 7u})  // without and with momentum, not centred and centred
    check<T>("rmsprop", kernels.rmsprop, used, step(0.1, 0.9, 1e-3, 0.8), [=](double g, double* state) {
      fade(state[0], 0.9, g * g);
      if (used & 4) fade(state[2], 0.9, g);
      const double square = used & 4 ? state[0] - state[2] * state[2] : state[0];
      const double change = g / (std::sqrt(square) + 1e-3);
      if (used & 2) state[1] = 0.8 * state[1] + change;
      return 0.1 * (used & 2 ? state[1] : change);
    });
}

template <class T>
void check_amsgrad() {
  Case<T> c(101);
  const Case<T> before = c;
  rl::AdamStep s{101,
                 c.param.data(),
                 c.grad.data(),
                 c.state[0].data(),
                 c.state[1].data(),
                 c.state[2].data(),
                 0.01,
                 0.9,
                 0.99,
                 0.1,
                 1e-8,
                 3,
                 true,
                 false};
  rl::norm_kernels().adam[sizeof(T) == 8](s);
  for (size_t i = 0; i < c.param.size(); ++i) {
    const double p = static_cast<double>(before.param[i]), g = 0.1 * p - static_cast<double>(c.grad[i]);
    double m = static_cast<double>(before.state[0][i]), v = static_cast<double>(before.state[1][i]);
    fade(m, 0.9, g);
    fade(v, 0.99, g * g);
    const double top = std::max(static_cast<double>(before.state[2][i]), v);
    const double root = std::sqrt(top / (1 - std::pow(0.99, 3))) + 1e-8;
    const double expected = p - 0.01 / (1 - std::pow(0.9, 3)) * m / root;
    if (is_close(expected, c.param[i]) && is_close(top, c.state[2][i])) continue;
    std::printf("amsgrad: %g instead of %g at %d\n", static_cast<double>(c.param[i]), expected, int(i));
    ++failures;
    return;
  }
}

}  // namespace

int main() {
  check_all<float>(1, 0, 1);
  check_all<double>(1, 0.1, -1);
  check_all<float>(0.99, 0, -1);
  check_amsgrad<float>();
  check_amsgrad<double>();
  std::printf(failures == 0 ? "optim: ok\n" : "optim: %d failures\n", failures);
  return failures != 0;
}
