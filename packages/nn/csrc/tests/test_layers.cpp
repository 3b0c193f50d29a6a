// Pooling, normalisation, cross entropy and steps of SGD and Adam against plain loops in double precision.
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "../kernels/norm.h"
#include "../kernels/pool.h"
#include "../kernels/runtime.h"

namespace {

using Values = std::vector<double>;

int failures = 0;
std::mt19937 rng(5);

int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(rng); }

template <class T>
std::vector<T> random_values(int64_t n) {
  std::vector<T> v(static_cast<size_t>(n));
  for (T& x : v) x = static_cast<T>(std::uniform_real_distribution<double>(-1, 1)(rng));
  return v;
}

template <class T>
void compare(const char* what, const Values& expected, const std::vector<T>& got) {
  const double tolerance = sizeof(T) == 4 ? 2e-5 : 1e-11;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::fabs(expected[i] - static_cast<double>(got[i])) <= tolerance * (1 + std::fabs(expected[i]))) continue;
    std::printf("%s: %g instead of %g at %d of %d\n", what, static_cast<double>(got[i]), expected[i], int(i),
                int(expected.size()));
    ++failures;
    return;
  }
}

template <class T>
constexpr int kType = sizeof(T) == 8;
template <class T>
constexpr rl::DType kDType = sizeof(T) == 8 ? rl::DType::Float64 : rl::DType::Float32;

template <class T>
void check_pool() {
  rl::PoolShape s{pick(1, 5), {}, {}, {}, {}, {}, {}};
  int64_t in = 1, out = 1;
  for (int d = 0; d < 3; ++d) {
    s.in[d] = pick(1, 24), s.kernel[d] = pick(1, 4), s.stride[d] = pick(1, 3), s.dilation[d] = 1;
    s.padding[d] = pick(0, s.kernel[d] / 2);
    if (s.in[d] + 2 * s.padding[d] < s.kernel[d]) return;
    s.out[d] = (s.in[d] + 2 * s.padding[d] - s.kernel[d]) / s.stride[d] + 1;
    in *= s.in[d], out *= s.out[d];
  }
  const auto x = random_values<T>(s.planes * in);
  std::vector<T> y(static_cast<size_t>(s.planes * out)), mean(y.size()), dx(x.size());
  std::vector<int64_t> index(y.size());
  Values top(y.size(), -INFINITY), average(y.size()), spread(x.size());
  std::vector<int64_t> best(y.size());
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t plane = static_cast<int64_t>(i) / out, q = static_cast<int64_t>(i) % out;
    const int64_t o[3] = {q / (s.out[1] * s.out[2]), q / s.out[2] % s.out[1], q % s.out[2]};
    int64_t count = 0;
    for (int64_t k = 0; k < s.kernel[0] * s.kernel[1] * s.kernel[2]; ++k) {
      const int64_t t[3] = {k / (s.kernel[1] * s.kernel[2]), k / s.kernel[2] % s.kernel[1], k % s.kernel[2]};
      int64_t at = 0;
      bool inside = true;
      for (int d = 0; d < 3; ++d) {
        const int64_t p = o[d] * s.stride[d] - s.padding[d] + t[d];
        inside = inside && p >= 0 && p < s.in[d];
        at = at * s.in[d] + p;
      }
      if (!inside) continue;
      const double v = static_cast<double>(x[static_cast<size_t>(plane * in + at)]);
      if (v > top[i]) top[i] = v, best[i] = at;
      average[i] += v;
      ++count;
    }
    average[i] /= static_cast<double>(count);
    spread[static_cast<size_t>(plane * in + best[i])] += top[i];
  }
  rl::max_pool(kDType<T>, s, x.data(), y.data(), index.data());
  compare("max_pool", top, y);
  if (index != best) std::printf("max_pool: indices differ\n"), ++failures;
  rl::max_pool_backward(kDType<T>, s.planes, in, out, y.data(), index.data(), dx.data());
  compare("max_pool_backward", spread, dx);
  rl::avg_pool(kDType<T>, s, rl::PoolDivisor::Inside, 0, x.data(), mean.data());
  compare("avg_pool", average, mean);
}

// The gradient of sum(y * dy) by central differences of `f`, which fills y from x.
template <class F>
Values numeric_gradient(Values x, const Values& dy, F f) {
  Values gradient(x.size());
  const double h = 1e-5;
  for (size_t i = 0; i < x.size(); ++i) {
    double sums[2];
    for (int side = 0; side < 2; ++side) {
      const double kept = x[i];
      x[i] += side == 0 ? h : -h;
      const Values y = f(x);
      sums[side] = 0;
      for (size_t j = 0; j < y.size(); ++j) sums[side] += y[j] * dy[j];
      x[i] = kept;
    }
    gradient[i] = (sums[0] - sums[1]) / (2 * h);
  }
  return gradient;
}

void compare_loosely(const char* what, const Values& expected, const Values& got) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::fabs(expected[i] - got[i]) <= 1e-6 * (1 + std::fabs(expected[i]))) continue;
    std::printf("%s: %g instead of %g at %d\n", what, got[i], expected[i], int(i));
    ++failures;
    return;
  }
}

void check_batch_norm(int64_t outer, int64_t channels, int64_t inner) {
  const Values x = random_values<double>(outer * channels * inner), w = random_values<double>(channels);
  const Values b = random_values<double>(channels), dy = random_values<double>(outer * channels * inner);
  Values mean(w.size()), scale(w.size());
  const auto norm = [&](const Values& in, const Values& weight) {
    Values y(x.size());
    rl::norm_kernels().batch_norm[1]({outer, channels, inner, in.data(), weight.data(), b.data(), y.data(), mean.data(),
                                      scale.data(), nullptr, nullptr, true, 0.1, 1e-5});
    return y;
  };
  const Values numeric_x = numeric_gradient(x, dy, [&](const Values& v) { return norm(v, w); });
  const Values numeric_w = numeric_gradient(w, dy, [&](const Values& v) { return norm(x, v); });
  const Values y = norm(x, w);
  for (int64_t c = 0; c < channels; ++c) {  // the result has mean b and standard deviation |w|
    double sum = 0;
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) sum += y[size_t((o * channels + c) * inner + i)];
    }
    if (std::fabs(sum / static_cast<double>(outer * inner) - b[size_t(c)]) > 1e-9)
      std::printf("batch_norm: mean\n"), ++failures;
  }
  Values dx(x.size()), dw(w.size()), db(w.size());
  rl::norm_kernels().batch_norm_backward[1]({outer, channels, inner, x.data(), dy.data(), w.data(), mean.data(),
                                             scale.data(), dx.data(), dw.data(), db.data(), true});
  compare_loosely("batch_norm dx", numeric_x, dx);
  compare_loosely("batch_norm dweight", numeric_w, dw);
}

void check_row_norm(int64_t rows, int64_t length, int64_t period, int64_t repeat, bool centred = true) {
  const int64_t weights = period * length / repeat;
  const Values x = random_values<double>(rows * length), w = random_values<double>(weights),
               b = random_values<double>(weights);
  const Values dy = random_values<double>(rows * length);
  Values mean(static_cast<size_t>(rows)), scale(mean.size());
  const auto norm = [&](const Values& in, const Values& weight) {
    Values y(x.size());
    rl::norm_kernels().row_norm[1]({rows, length, period, repeat, in.data(), weight.data(), b.data(), y.data(),
                                    mean.data(), scale.data(), 1e-5, centred});
    return y;
  };
  const Values numeric_x = numeric_gradient(x, dy, [&](const Values& v) { return norm(v, w); });
  const Values numeric_w = numeric_gradient(w, dy, [&](const Values& v) { return norm(x, v); });
  norm(x, w);
  Values dx(x.size()), dw(w.size()), db(w.size());
  rl::norm_kernels().row_norm_backward[1]({rows, length, period, repeat, x.data(), dy.data(), w.data(), mean.data(),
                                           scale.data(), dx.data(), dw.data(), db.data(), centred});
  compare_loosely("row_norm dx", numeric_x, dx);
  compare_loosely("row_norm dweight", numeric_w, dw);
}

template <class T>
void check_cross_entropy(int64_t outer, int64_t classes, int64_t inner, double smoothing, bool weighted) {
  const auto x = random_values<T>(outer * classes * inner), w = random_values<T>(classes);
  std::vector<int64_t> target(static_cast<size_t>(outer * inner));
  for (int64_t& t : target) t = pick(-1, classes - 1);  // -1 is ignored
  std::vector<T> loss(target.size()), greatest(target.size()), logs(target.size()), factor(target.size()),
      dloss(target.size(), T(1)), dx(x.size());
  Values expected(target.size()), slope(x.size());
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const int64_t t = target[size_t(o * inner + i)];
      if (t < 0) continue;
      const auto score = [&](int64_t c) { return static_cast<double>(x[size_t((o * classes + c) * inner + i)]); };
      const auto weight = [&](int64_t c) { return weighted ? static_cast<double>(w[size_t(c)]) : 1.0; };
      double total = 0;
      for (int64_t c = 0; c < classes; ++c) total += std::exp(score(c));
      double& l = expected[size_t(o * inner + i)];
      l = (1 - smoothing) * weight(t) * (std::log(total) - score(t));
      for (int64_t c = 0; c < classes; ++c) l += smoothing / double(classes) * weight(c) * (std::log(total) - score(c));
      for (int64_t c = 0; c < classes; ++c) {
        double& d = slope[size_t((o * classes + c) * inner + i)];
        for (int64_t e = 0; e < classes; ++e) {
          const double share = (e == t ? (1 - smoothing) * weight(t) : 0) + smoothing / double(classes) * weight(e);
          d += share * (std::exp(score(c)) / total - (c == e));
        }
      }
    }
  }
  const void* weights = weighted ? w.data() : nullptr;
  rl::norm_kernels().cross_entropy[kType<T>]({outer, classes, inner, x.data(), weights, target.data(), -1, smoothing,
                                              loss.data(), greatest.data(), logs.data(), factor.data()});
  compare("cross_entropy", expected, loss);
  rl::norm_kernels().cross_entropy_backward[kType<T>]({outer, classes, inner, x.data(), weights, greatest.data(),
                                                       logs.data(), target.data(), -1, smoothing, dloss.data(), 1, 1.0,
                                                       dx.data()});
  compare("cross_entropy_backward", slope, dx);
}

template <class T>
void check_steps() {
  const int64_t n = 101;
  auto p = random_values<T>(n), buffer = random_values<T>(n), m = random_values<T>(n), v = random_values<T>(n);
  const auto g = random_values<T>(n);
  for (T& x : v) x = std::fabs(x);
  Values expected(p.size());
  for (size_t i = 0; i < p.size(); ++i) {
    const double d = double(g[i]) + 0.1 * double(p[i]), b = 0.9 * double(buffer[i]) + 0.7 * d;
    expected[i] = double(p[i]) - 0.01 * (d + 0.9 * b);
  }
  rl::SgdStep sgd{n, p.data(), g.data(), buffer.data(), 0.01, 0.9, 0.3, 0.1, true, false, false};
  rl::norm_kernels().sgd[kType<T>](sgd);
  compare("sgd", expected, p);
  for (size_t i = 0; i < p.size(); ++i) {
    const double a = 0.9 * double(m[i]) + 0.1 * double(g[i]),
                 s = 0.99 * double(v[i]) + 0.01 * double(g[i]) * double(g[i]);
    const double step = 0.01 / (1 - 0.9 * 0.9), root = std::sqrt(s / (1 - 0.99 * 0.99)) + 1e-8;
    expected[i] = double(p[i]) * (1 - 0.01 * 0.1) - step * a / root;
  }
  rl::AdamStep adam{n, p.data(), g.data(), m.data(), v.data(), nullptr, 0.01, 0.9, 0.99, 0.1, 1e-8, 2, false, true};
  rl::norm_kernels().adam[kType<T>](adam);
  compare("adam", expected, p);
}

}  // namespace

int main() {
  for (int i = 0; i < 200; ++i) {
    check_pool<float>();
    check_pool<double>();
  }
  check_batch_norm(5, 3, 1);
  check_batch_norm(3, 11, 1);
  check_batch_norm(2, 3, 37);
  check_row_norm(3, 21, 1, 1);
  check_row_norm(6, 20, 2, 5);
  check_row_norm(4, 3, 2, 1);
  check_row_norm(3, 21, 1, 1, false);
  for (double smoothing : {0.0, 0.2}) {
    for (bool weighted : {false, true}) {
      check_cross_entropy<float>(7, 37, 1, smoothing, weighted);
      check_cross_entropy<float>(3, 5, 21, smoothing, weighted);
      check_cross_entropy<double>(7, 3, 1, smoothing, weighted);
      check_cross_entropy<double>(2, 19, 9, smoothing, weighted);
    }
  }
  check_steps<float>();
  check_steps<double>();
  std::printf(failures == 0 ? "layers: ok\n" : "layers: %d failures\n", failures);
  return failures != 0;
}
