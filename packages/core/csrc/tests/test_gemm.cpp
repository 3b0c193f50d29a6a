// Every dtype of the matrix product against a plain triple loop, over shapes, strides, batches and epilogues.
#include "../kernels/gemm.h"

#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

#include "../parallel.h"

namespace {

int failures = 0;
std::mt19937 rng(7);

template <class T>
T random_value() {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(rng());
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(std::uniform_real_distribution<double>(-1, 1)(rng));
  } else {
    using R = typename T::value_type;
    return T(random_value<R>(), random_value<R>());
  }
}

// A matrix with room around it, so that a write outside shows.
template <class T>
struct Matrix {
  std::vector<T> data;
  int64_t row, col;
  Matrix(int64_t rows, int64_t cols, int layout) {
    // 0: rows contiguous, 1: columns contiguous, 2: rows with gaps, 3: neither contiguous, 4: one row repeated
    row = layout == 1 ? 1 : layout == 2 ? cols + 3 : layout == 3 ? 2 * cols + 1 : layout == 4 ? 0 : cols;
    col = layout == 1 ? rows : layout == 3 ? 2 : 1;
    data.resize(static_cast<size_t>((rows > 0 ? rows - 1 : 0) * row + (cols > 0 ? cols - 1 : 0) * col + 1));
    for (T& x : data) x = random_value<T>();
  }
  T& operator()(int64_t i, int64_t j) { return data[static_cast<size_t>(i * row + j * col)]; }
};

template <class T>
struct Wide {
  using type = std::conditional_t<std::is_integral_v<T>, uint64_t,
                                  std::conditional_t<std::is_floating_point_v<T>, double, std::complex<double>>>;
};

template <class T>
void check(rl::DType dtype, int64_t m, int64_t n, int64_t k, int la, int lb, int lc, int variant, double tolerance) {
  using W = typename Wide<T>::type;
  Matrix<T> a(m, k, la), b(k, n, lb), c(m, n, lc), bias(1, n, 0);
  rl::GemmArgs g;
  g.m = m, g.n = n, g.k = k;
  g.a = a.data.data(), g.a_row = a.row, g.a_col = a.col;
  g.b = b.data.data(), g.b_row = b.row, g.b_col = b.col;
  g.c = c.data.data(), g.c_row = c.row, g.c_col = c.col;
  if (variant & 1) g.alpha = {2, 0, 2}, g.beta = {3, 0, 3};
  if (variant & 2) g.bias = bias.data.data(), g.bias_col = 1;
  if (variant & 4) g.relu = !std::is_same_v<T, std::complex<float>> && !std::is_same_v<T, std::complex<double>>;
  if (std::is_integral_v<T>) g.relu = false;
  std::vector<T> expected = c.data;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      W sum{};
      for (int64_t p = 0; p < k; ++p) sum += static_cast<W>(a(i, p)) * static_cast<W>(b(p, j));
      if (variant & 1) sum = sum * static_cast<W>(2) + static_cast<W>(c(i, j)) * static_cast<W>(3);
      if (variant & 2) sum += static_cast<W>(bias(0, j));
      if constexpr (std::is_floating_point_v<T>) sum = g.relu && sum < 0 ? 0 : sum;
      expected[static_cast<size_t>(i * c.row + j * c.col)] = static_cast<T>(sum);
    }
  }
  if (!rl::gemm(dtype, g)) std::abort();
  for (size_t i = 0; i < expected.size(); ++i) {
    bool same;
    if constexpr (std::is_integral_v<T>) {
      same = expected[i] == c.data[i];
    } else {
      same = std::abs(expected[i] - c.data[i]) <= tolerance * (static_cast<double>(k) + 4);
    }
    if (!same) {
      std::printf("%s: m=%d n=%d k=%d layouts %d %d %d variant %d: wrong at %d\n", rl::name(dtype), int(m), int(n),
                  int(k), la, lb, lc, variant, int(i));
      ++failures;
      return;
    }
  }
}

template <class T>
void check_all(rl::DType dtype, double tolerance, bool thorough) {
  for (int la : {0, 1, 2, 3, 4}) {
    for (int lb : {0, 1, 2, 3, 4}) {
      for (int lc : {0, 1, 2, 3}) {
        for (int64_t m : {1, 3, 17}) {
          for (int64_t n : {1, 5, 33})
            check<T>(dtype, m, n, 1 + (m * n) % 19, la, lb, lc, (la + lb + lc) % 8, tolerance);
        }
      }
    }
  }
  for (int variant = 0; variant < 8; ++variant) {
    for (int64_t k : {0, 1, 7, 300}) {
      check<T>(dtype, 4, 4, k, 0, 0, 0, variant, tolerance);
      check<T>(dtype, 1, 70, k, 0, 1, 0, variant, tolerance);
      check<T>(dtype, 3, 70, k, 0, 1, 0, variant, tolerance);
      check<T>(dtype, 70, 1, k, 0, 0, 2, variant, tolerance);
      check<T>(dtype, 1, 1, k, 0, 0, 2, variant, tolerance);
    }
    check<T>(dtype, 61, 67, 300, variant % 2, variant / 2 % 2, variant / 4, variant, tolerance);
  }
  if (!thorough) return;
  for (int la : {0, 1}) {
    for (int lb : {0, 1}) {
      check<T>(dtype, 300, 600, 520, la, lb, 0, 3, tolerance);
      check<T>(dtype, 1, 3000, 900, la, lb, 0, 3, tolerance);
      check<T>(dtype, 3000, 1, 900, la, lb, 0, 3, tolerance);
      check<T>(dtype, 1, 1, 100000, la, lb, 0, 3, tolerance);
    }
  }
}

// Half types against float32 products of the same values.
void check_half(rl::DType dtype, float (*widen)(uint16_t), uint16_t (*narrow)(float), float epsilon) {
  const int64_t m = 33, n = 47, k = 290;
  std::vector<uint16_t> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(k * n)), c(static_cast<size_t>(m * n));
  for (auto& x : a) x = narrow(random_value<float>());
  for (auto& x : b) x = narrow(random_value<float>());
  rl::GemmArgs g;
  g.m = m, g.n = n, g.k = k, g.a = a.data(), g.a_row = k, g.a_col = 1, g.b = b.data(), g.b_row = n, g.b_col = 1,
  g.c = c.data();
  g.c_row = n, g.c_col = 1;
  rl::gemm(dtype, g);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) {
        sum += static_cast<double>(widen(a[static_cast<size_t>(i * k + p)])) * widen(b[static_cast<size_t>(p * n + j)]);
      }
      const double got = widen(c[static_cast<size_t>(i * n + j)]);
      if (std::fabs(got - sum) > epsilon * (1 + std::fabs(sum))) {
        std::printf("%s: %g instead of %g\n", rl::name(dtype), got, sum);
        ++failures;
        return;
      }
    }
  }
}

float widen_bfloat(uint16_t h) {
  uint32_t bits = static_cast<uint32_t>(h) << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}
uint16_t narrow_bfloat(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  return static_cast<uint16_t>((bits + 0x8000) >> 16);
}
float widen_half(uint16_t h) {
  const int exponent = h >> 10 & 31;
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(h & 1023), -24)
                                        : std::ldexp(static_cast<float>((h & 1023) | 1024), exponent - 25);
  return h & 0x8000 ? -magnitude : magnitude;
}
uint16_t narrow_half(float f) {  // exact for multiples of 2^-10 below 2
  f = std::round(f * 1024) / 1024;
  int exponent;
  const float fraction = std::frexp(std::fabs(f), &exponent);
  if (fraction == 0) return 0;
  return static_cast<uint16_t>((f < 0 ? 0x8000 : 0) | (exponent + 14) << 10 |
                               (static_cast<int>(fraction * 2048) & 1023));
}

// A broadcast batch dimension, and an output whose batches interleave.
void check_batch() {
  const int64_t sizes[2] = {3, 5}, sa[2] = {0, 6 * 7}, sb[2] = {7 * 4, 0}, sc[2] = {4, 6 * 12};
  std::vector<double> a(5 * 6 * 7), b(3 * 7 * 4), c(5 * 6 * 12, -1.0);
  for (double& x : a) x = random_value<double>();
  for (double& x : b) x = random_value<double>();
  rl::GemmArgs g;
  g.m = 6, g.n = 4, g.k = 7, g.a = a.data(), g.a_row = 7, g.a_col = 1, g.b = b.data(), g.b_row = 4, g.b_col = 1;
  g.c = c.data(), g.c_row = 12, g.c_col = 1;
  g.batch_ndim = 2, g.batch_sizes = sizes, g.a_batch = sa, g.b_batch = sb, g.c_batch = sc;
  rl::gemm(rl::DType::Float64, g);
  for (int64_t x = 0; x < 3; ++x) {
    for (int64_t y = 0; y < 5; ++y) {
      for (int64_t i = 0; i < 6; ++i) {
        for (int64_t j = 0; j < 4; ++j) {
          double sum = 0;
          for (int64_t p = 0; p < 7; ++p) sum += a[size_t(y * 42 + i * 7 + p)] * b[size_t(x * 28 + p * 4 + j)];
          if (std::fabs(sum - c[size_t(x * 4 + y * 72 + i * 12 + j)]) > 1e-12) {
            std::printf("batch: wrong at %d %d\n", int(x), int(y));
            ++failures;
            return;
          }
        }
      }
    }
  }
}

// The same bits whatever the number of threads.
void check_threads() {
  for (const auto& s : {std::vector<int64_t>{300, 400, 700}, {1, 5000, 900}, {1, 1, 300000}, {5, 4000, 600}}) {
    for (int lb : {0, 1}) {
      Matrix<float> a(s[0], s[2], 0), b(s[2], s[1], lb), c1(s[0], s[1], 0), c2(s[0], s[1], 0);
      rl::GemmArgs g;
      g.m = s[0], g.n = s[1], g.k = s[2], g.a = a.data.data(), g.a_row = a.row, g.a_col = 1;
      g.b = b.data.data(), g.b_row = b.row, g.b_col = b.col, g.c_row = c1.row, g.c_col = 1;
      rl::set_num_threads(1);
      g.c = c1.data.data();
      rl::gemm(rl::DType::Float32, g);
      rl::set_num_threads(3);
      g.c = c2.data.data();
      rl::gemm(rl::DType::Float32, g);
      if (std::memcmp(c1.data.data(), c2.data.data(), c1.data.size() * 4) != 0) {
        std::printf("threads: %d x %d x %d differs\n", int(s[0]), int(s[1]), int(s[2]));
        ++failures;
      }
    }
  }
}

}  // namespace

int main() {
  check_all<float>(rl::DType::Float32, 1e-6, true);
  check_all<double>(rl::DType::Float64, 1e-14, true);
  check_all<std::complex<float>>(rl::DType::Complex64, 2e-6, false);
  check_all<std::complex<double>>(rl::DType::Complex128, 1e-14, false);
  check_all<uint8_t>(rl::DType::UInt8, 0, false);
  check_all<int8_t>(rl::DType::Int8, 0, false);
  check_all<int16_t>(rl::DType::Int16, 0, false);
  check_all<int32_t>(rl::DType::Int32, 0, false);
  check_all<int64_t>(rl::DType::Int64, 0, true);
  check_half(rl::DType::BFloat16, widen_bfloat, narrow_bfloat, 1.0f / 256);
  check_half(rl::DType::Float16, widen_half, narrow_half, 1.0f / 2048);
  check_batch();
  check_threads();
  std::printf(failures == 0 ? "gemm: ok\n" : "gemm: %d failures\n", failures);
  return failures != 0;
}
