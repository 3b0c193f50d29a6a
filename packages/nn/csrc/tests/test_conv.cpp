// Convolutions and their gradients against plain loops, over kernels, strides, paddings, dilations and groups.
#include "../kernels/conv.h"

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "../kernels/runtime.h"

namespace {

int failures = 0;
std::mt19937 rng(3);

int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(rng); }

template <class T>
std::vector<T> values(int64_t n) {
  std::vector<T> v(static_cast<size_t>(n));
  for (T& x : v) x = static_cast<T>(std::uniform_real_distribution<double>(-1, 1)(rng));
  return v;
}

template <class T>
void compare(const char* what, const rl::ConvShape& s, const std::vector<double>& expected, const std::vector<T>& got) {
  const double tolerance = sizeof(T) == 4 ? 1e-4 : 1e-12;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::fabs(expected[i] - static_cast<double>(got[i])) <= tolerance * (1 + std::fabs(expected[i]))) continue;
    std::printf("%s: %g instead of %g at %d; n=%d g=%d ci=%d co=%d", what, static_cast<double>(got[i]), expected[i],
                int(i), int(s.batch), int(s.groups), int(s.in_channels), int(s.out_channels));
    for (int d = 0; d < 3; ++d) {
      std::printf(" [in %d k %d s %d p %d d %d]", int(s.in[d]), int(s.kernel[d]), int(s.stride[d]), int(s.padding[d]),
                  int(s.dilation[d]));
    }
    std::printf("\n");
    ++failures;
    return;
  }
}

template <class T>
void check(rl::DType dtype, rl::ConvShape s) {
  int64_t in = 1, out = 1, kernel = 1;
  for (int d = 0; d < 3; ++d) {
    s.out[d] = (s.in[d] + 2 * s.padding[d] - s.dilation[d] * (s.kernel[d] - 1) - 1) / s.stride[d] + 1;
    if (s.in[d] + 2 * s.padding[d] < s.dilation[d] * (s.kernel[d] - 1) + 1) return;
    in *= s.in[d], out *= s.out[d], kernel *= s.kernel[d];
  }
  const int64_t ci = s.in_channels, co = s.out_channels;
  const auto x = values<T>(s.batch * s.groups * ci * in), w = values<T>(s.groups * co * ci * kernel);
  const auto bias = values<T>(s.groups * co), dy = values<T>(s.batch * s.groups * co * out);
  std::vector<double> y(dy.size()), dx(x.size()), dw(w.size()), db(bias.size());
  int64_t o[3], k[3];
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t m = 0; m < s.groups * co; ++m) {
      for (int64_t q = 0; q < out; ++q) {
        o[0] = q / (s.out[1] * s.out[2]), o[1] = q / s.out[2] % s.out[1], o[2] = q % s.out[2];
        const size_t yi = size_t((n * s.groups * co + m) * out + q);
        y[yi] += static_cast<double>(bias[size_t(m)]);
        db[size_t(m)] += static_cast<double>(dy[yi]);
        for (int64_t c = 0; c < ci; ++c) {
          for (int64_t t = 0; t < kernel; ++t) {
            k[0] = t / (s.kernel[1] * s.kernel[2]), k[1] = t / s.kernel[2] % s.kernel[1], k[2] = t % s.kernel[2];
            int64_t index = (n * s.groups + m / co) * ci + c;
            bool inside = true;
            for (int d = 0; d < 3; ++d) {
              const int64_t i = o[d] * s.stride[d] - s.padding[d] + k[d] * s.dilation[d];
              inside = inside && i >= 0 && i < s.in[d];
              index = index * s.in[d] + i;
            }
            if (!inside) continue;
            const size_t xi = size_t(index), wi = size_t((m * ci + c) * kernel + t);
            y[yi] += static_cast<double>(x[xi]) * static_cast<double>(w[wi]);
            dx[xi] += static_cast<double>(dy[yi]) * static_cast<double>(w[wi]);
            dw[wi] += static_cast<double>(dy[yi]) * static_cast<double>(x[xi]);
          }
        }
      }
    }
  }
  std::vector<T> got_y(y.size()), got_dx(dx.size()), got_dw(dw.size()), got_db(db.size());
  rl::conv_forward(dtype, s, x.data(), w.data(), bias.data(), got_y.data());
  compare("forward", s, y, got_y);
  rl::conv_backward_input(dtype, s, dy.data(), w.data(), nullptr, got_dx.data());
  compare("input", s, dx, got_dx);
  rl::conv_backward_weight(dtype, s, x.data(), dy.data(), got_dw.data());
  compare("weight", s, dw, got_dw);
  rl::conv_backward_bias(dtype, s, dy.data(), got_db.data());
  compare("bias", s, db, got_db);
}

}  // namespace

int main() {
  for (int i = 0; i < 400; ++i) {
    rl::ConvShape s{};
    const int dims = i % 3;  // one, two or three
    s.batch = pick(1, 3);
    s.groups = pick(0, 2) == 0 ? pick(2, 4) : 1;
    s.in_channels = pick(1, 5);
    s.out_channels = pick(1, 20);
    for (int d = 0; d < 3; ++d) {
      const bool used = d >= 2 - dims;
      s.in[d] = used ? pick(1, 14) : 1;
      s.kernel[d] = used ? pick(1, 4) : 1;
      s.stride[d] = used ? pick(1, 3) : 1;
      s.padding[d] = used ? pick(0, 3) : 0;
      s.dilation[d] = used ? pick(1, 2) : 1;
    }
    check<float>(rl::DType::Float32, s);
    check<double>(rl::DType::Float64, s);
  }
  for (int i = 0; i < 40; ++i) {  // by Winograd's way
    const int64_t groups = pick(1, 2), in = pick(16, 40), out = pick(16, 40);
    const rl::ConvShape s{pick(1, 4),
                          groups,
                          in,
                          out,
                          {1, pick(6, 20), pick(6, 40)},
                          {},
                          {1, 3, 3},
                          {1, 1, 1},
                          {0, pick(0, 4), pick(0, 4)},
                          {1, 1, 1}};
    check<float>(rl::DType::Float32, s);
    check<double>(rl::DType::Float64, s);
  }
  check<double>(rl::DType::Float64, {3, 1, 17, 18, {1, 90, 75}, {}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}});
  check<float>(rl::DType::Float32, {2, 1, 40, 70, {1, 40, 50}, {}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}});
  check<float>(rl::DType::Float32, {2, 1, 40, 70, {1, 40, 50}, {}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}, {1, 1, 1}});
  check<double>(rl::DType::Float64, {1, 1, 3, 5, {20, 20, 20}, {}, {7, 7, 7}, {1, 1, 1}, {3, 3, 3}, {1, 1, 1}});
  check<float>(rl::DType::Float32, {1, 1, 2, 3, {1, 1, 3000}, {}, {1, 1, 400}, {1, 1, 1}, {0, 0, 5}, {1, 1, 1}});
  std::printf(failures == 0 ? "conv: ok\n" : "conv: %d failures\n", failures);
  return failures != 0;
}
