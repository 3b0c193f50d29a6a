// Scans, sorting and softmax against plain loops, over types, layouts and special values.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "../kernels/scan.h"
#include "../kernels/softmax.h"
#include "../kernels/sort.h"
#include "check.h"

namespace {

using rl::DType;

uint32_t g_seed = 1;
double random_unit() {
  g_seed = g_seed * 1664525u + 1013904223u;
  return static_cast<double>(g_seed >> 8) / (1 << 24);
}

constexpr int64_t kShapes[][3] = {{1, 1, 1}, {1, 7, 1}, {3, 40, 1}, {2, 300, 5}, {1, 20000, 1}, {4, 3, 130}, {0, 5, 2}};

// NaN after all numbers.
template <class T>
bool before(T a, T b) {
  return a == a && (b != b || a < b);
}

template <class T>
void check_sort(DType dtype, bool specials) {
  for (const auto& shape : kShapes) {
    const int64_t outer = shape[0], n = shape[1], inner = shape[2], total = outer * n * inner;
    std::vector<T> x(static_cast<size_t>(total)), values(x.size());
    std::vector<int64_t> places(x.size());
    for (T& v : x) v = static_cast<T>(random_unit() * 200 - (std::is_signed<T>::value ? 100 : 0));
    if (specials) {
      for (T& v : x) {
        const double r = random_unit();
        if (r < 0.05) v = std::numeric_limits<T>::quiet_NaN();
        if (r > 0.95) v = -std::numeric_limits<T>::infinity();
        if (r > 0.5 && r < 0.6) v = static_cast<T>(r < 0.55 ? 0.0 : -0.0);
      }
    }
    for (bool descending : {false, true}) {
      rl::run_sort(dtype, x.data(), values.data(), places.data(), outer, n, inner, descending);
      for (int64_t line = 0; line < outer * inner; ++line) {
        const int64_t at = line / inner * n * inner + line % inner;
        std::vector<int64_t> want(static_cast<size_t>(n));
        for (int64_t i = 0; i < n; ++i) want[i] = i;
        std::stable_sort(want.begin(), want.end(), [&](int64_t a, int64_t b) {
          const T va = x[at + a * inner], vb = x[at + b * inner];
          return descending ? before(vb, va) : before(va, vb);
        });
        for (int64_t i = 0; i < n; ++i) {
          CHECK(places[at + i * inner] == want[i]);
          const T got = values[at + i * inner], v = x[at + want[i] * inner];
          CHECK(got == v || (got != got && v != v));
        }
      }
      for (int64_t k : {std::min<int64_t>(n, 3), n}) {
        std::vector<T> top(static_cast<size_t>(outer * k * inner));
        std::vector<int64_t> top_places(top.size());
        rl::run_topk(dtype, x.data(), top.data(), top_places.data(), outer, n, inner, k, descending, true);
        for (int64_t o = 0; o < outer; ++o) {
          for (int64_t i = 0; i < k * inner; ++i) {
            const T got = top[o * k * inner + i], want = values[o * n * inner + i];
            CHECK(got == want || (got != got && want != want));
            CHECK(std::memcmp(&x[o * n * inner + top_places[o * k * inner + i] * inner + i % inner], &got,
                              sizeof got) == 0);
          }
        }
      }
    }
  }
}

void test_pick() {
  const float nan = std::nanf("");
  const float x[] = {3, nan, 1, 2, 2, 5};
  float value;
  int64_t place;
  const auto pick = [&](rl::Pick how, int64_t n, int64_t k) {
    rl::run_pick(how, DType::Float32, x, &value, &place, 1, n, 1, k);
  };
  pick(rl::Pick::Kth, 6, 0);
  CHECK(value == 1 && place == 2);
  pick(rl::Pick::Median, 6, 0);
  CHECK(value != value && place == 1);
  pick(rl::Pick::NanMedian, 6, 0);
  CHECK(value == 2);
  pick(rl::Pick::Mode, 6, 0);
  CHECK(value == 2 && place == 4);
}

void test_searchsorted() {
  const double boundaries[] = {1, 3, 3, 7};
  const double values[] = {0, 1, 3, 8, std::nan("")};
  int64_t out[5];
  rl::run_searchsorted(DType::Float64, boundaries, nullptr, values, out, 1, 4, 5, true, false);
  const int64_t left[] = {0, 0, 1, 4, 4}, right[] = {0, 1, 3, 4, 4};
  CHECK(std::equal(out, out + 5, left));
  rl::run_searchsorted(DType::Float64, boundaries, nullptr, values, out, 1, 4, 5, true, true);
  CHECK(std::equal(out, out + 5, right));
}

void test_scan() {
  for (const auto& shape : kShapes) {
    const int64_t outer = shape[0], n = shape[1], inner = shape[2], total = outer * n * inner;
    std::vector<float> x(static_cast<size_t>(total)), out(x.size());
    std::vector<int64_t> places(x.size());
    for (float& v : x) v = static_cast<float>(random_unit() - 0.5);
    const auto each = [&](rl::Scan op, double start, bool reverse, auto step) {
      CHECK(rl::run_scan(op, DType::Float32, x.data(), out.data(), places.data(), outer, n, inner));
      for (int64_t line = 0; line < outer * inner; ++line) {
        const int64_t at = line / inner * n * inner + line % inner;
        double acc = start;
        for (int64_t k = 0; k < n; ++k) {
          const int64_t i = at + (reverse ? n - 1 - k : k) * inner;
          acc = step(acc, static_cast<double>(x[i]));
          CHECK(std::abs(out[i] - acc) <= 1e-6 * (1 + std::abs(acc)));
        }
      }
    };
    each(rl::Scan::Sum, 0, false, [](double a, double b) { return a + b; });
    each(rl::Scan::ReverseSum, 0, true, [](double a, double b) { return a + b; });
    each(rl::Scan::Prod, 1, false, [](double a, double b) { return a * b; });
    each(rl::Scan::Max, -1, false, [](double a, double b) { return std::max(a, b); });
    each(rl::Scan::LogSumExp, -INFINITY, false, [](double a, double b) { return std::log(std::exp(a) + std::exp(b)); });
  }
  CHECK(!rl::run_scan(rl::Scan::Sum, DType::Bool, nullptr, nullptr, nullptr, 0, 0, 0));
}

void test_softmax() {
  for (const auto& shape : kShapes) {
    const int64_t outer = shape[0], n = shape[1], inner = shape[2], total = outer * n * inner;
    std::vector<double> x(static_cast<size_t>(total)), y(x.size()), logs(x.size()), grad(x.size()), back(x.size());
    std::vector<double> sums(static_cast<size_t>(outer * inner));
    for (double& v : x) v = random_unit() * 1000;
    for (double& v : grad) v = random_unit();
    const auto run = [&](rl::Softmax op, const double* from, double* to) {
      rl::run_softmax(op, DType::Float64, from, grad.data(), to, outer, n, inner);
    };
    run(rl::Softmax::Softmax, x.data(), y.data());
    run(rl::Softmax::LogSoftmax, x.data(), logs.data());
    run(rl::Softmax::LogSumExp, x.data(), sums.data());
    run(rl::Softmax::SoftmaxBackward, y.data(), back.data());
    for (int64_t line = 0; line < outer * inner; ++line) {
      const int64_t at = line / inner * n * inner + line % inner;
      double top = -INFINITY, sum = 0, dot = 0;
      for (int64_t i = 0; i < n; ++i) top = std::max(top, x[at + i * inner]);
      for (int64_t i = 0; i < n; ++i) sum += std::exp(x[at + i * inner] - top);
      for (int64_t i = 0; i < n; ++i) dot += grad[at + i * inner] * y[at + i * inner];
      CHECK(std::abs(sums[line] - (top + std::log(sum))) < 1e-10);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t k = at + i * inner;
        CHECK(std::abs(y[k] - std::exp(x[k] - top) / sum) < 1e-13);
        CHECK(std::abs(logs[k] - (x[k] - top - std::log(sum))) < 1e-10);
        CHECK(std::abs(back[k] - (grad[k] - dot) * y[k]) < 1e-13);
      }
    }
  }
}

}  // namespace

int main() {
  check_sort<uint8_t>(DType::UInt8, false);
  check_sort<int8_t>(DType::Int8, false);
  check_sort<int16_t>(DType::Int16, false);
  check_sort<int32_t>(DType::Int32, false);
  check_sort<int64_t>(DType::Int64, false);
  check_sort<float>(DType::Float32, true);
  check_sort<double>(DType::Float64, true);
  test_pick();
  test_searchsorted();
  test_scan();
  test_softmax();
  std::puts("order: ok");
}
