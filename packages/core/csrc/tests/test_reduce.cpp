// Reductions against plain loops in long double, over layouts, sizes and thread counts.
#include "../kernels/reduce.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "../parallel.h"
#include "check.h"

namespace {

using rl::DType;
using rl::Reduce;

uint32_t g_seed = 1;
double random_unit() {
  g_seed = g_seed * 1664525u + 1013904223u;
  return static_cast<double>(g_seed >> 8) / (1 << 24);
}

struct Layout {
  std::vector<int64_t> shape, order;  // order: dimensions from the outermost in memory
  std::vector<int64_t> strides(int64_t item, int64_t gap) const {
    std::vector<int64_t> s(shape.size());
    int64_t step = item * gap;
    for (size_t i = order.size(); i-- > 0;) {
      s[order[i]] = step;
      step *= shape[order[i]];
    }
    return s;
  }
};

template <class T, class F>
void for_each(const std::vector<T>& data, const Layout& l, const std::vector<int64_t>& strides, uint64_t mask, F&& f) {
  int64_t total = 1;
  for (int64_t n : l.shape) total *= n;
  for (int64_t i = 0; i < total; ++i) {
    int64_t rest = i, offset = 0, out = 0, step = 1, along = 0, reduced_step = 1;
    for (size_t d = l.shape.size(); d-- > 0;) {
      const int64_t x = rest % l.shape[d];
      rest /= l.shape[d];
      offset += x * strides[d];
      if (mask >> d & 1) {
        along += x * reduced_step;
        reduced_step *= l.shape[d];
      } else {
        out += x * step;
        step *= l.shape[d];
      }
    }
    f(out, along, data[offset / static_cast<int64_t>(sizeof(T))]);
  }
}

template <class T>
void check(DType dtype, const Layout& l, uint64_t mask, int64_t gap) {
  int64_t total = 1, outputs = 1;
  for (size_t d = 0; d < l.shape.size(); ++d) {
    total *= l.shape[d];
    if (!(mask >> d & 1)) outputs *= l.shape[d];
  }
  const int64_t count = outputs > 0 ? total / outputs : 0;
  std::vector<T> data(static_cast<size_t>(total * gap + 1));
  for (T& x : data) x = static_cast<T>(random_unit() * 100 - (std::is_unsigned<T>::value ? 0 : 50));
  const auto strides = l.strides(sizeof(T), gap);
  const int ndim = static_cast<int>(l.shape.size());
  auto run = [&](Reduce op, void* out, const rl::ReduceParams& params) {
    const rl::ReduceKernel& k = rl::find_reduce(op, dtype);
    CHECK(k.acc_size > 0);
    rl::run_reduce(k, reinterpret_cast<const char*>(data.data()), ndim, l.shape.data(), strides.data(), mask,
                   static_cast<char*>(out), params);
  };
  auto close = [&](long double got, long double want, long double scale) {
    CHECK(std::abs(got - want) <=
          scale * 8 * std::numeric_limits<T>::epsilon() + (std::is_integral<T>::value ? 0 : 1e-30L));
  };
  std::vector<long double> sum(outputs), magnitude(outputs), squares(outputs), top(outputs, -1e30L);
  std::vector<int64_t> place(outputs), nonzero(outputs);
  for_each(data, l, strides, mask, [&](int64_t o, int64_t i, T v) {
    sum[o] += v;
    magnitude[o] += std::abs(static_cast<long double>(v));
    squares[o] += static_cast<long double>(v) * v;
    nonzero[o] += v != 0;
    if (v > top[o]) top[o] = v, place[o] = i;
  });
  constexpr bool kInt = std::is_integral<T>::value;
  std::vector<int64_t> ints(outputs);
  std::vector<T> values(outputs), again(outputs);
  if constexpr (kInt) {
    run(Reduce::Sum, ints.data(), {});
    for (int64_t o = 0; o < outputs; ++o) CHECK(ints[o] == static_cast<int64_t>(sum[o]));
  } else {
    for (int threads : {1, 2, 5}) {
      rl::set_num_threads(threads);
      run(Reduce::Sum, (threads == 1 ? values : again).data(), {});
      if (threads != 1 && outputs > 0) CHECK(std::memcmp(values.data(), again.data(), sizeof(T) * outputs) == 0);
    }
    rl::set_num_threads(2);
    for (int64_t o = 0; o < outputs; ++o) close(values[o], sum[o], magnitude[o]);
    run(Reduce::Norm2, values.data(), {});
    for (int64_t o = 0; o < outputs; ++o) close(values[o], std::sqrt(squares[o]), std::sqrt(squares[o]));
    run(Reduce::Norm1, values.data(), {});
    for (int64_t o = 0; o < outputs; ++o) close(values[o], magnitude[o], magnitude[o]);
    rl::ReduceParams params;
    params.second = reinterpret_cast<char*>(again.data());
    run(Reduce::Var, values.data(), params);
    for (int64_t o = 0; o < outputs && count > 1; ++o) {
      const long double mean = sum[o] / count;
      close(values[o], (squares[o] - mean * sum[o]) / (count - 1), 4 * squares[o] / (count - 1));
      close(again[o], mean, 4 * magnitude[o] / count);
    }
  }
  run(Reduce::CountNonzero, ints.data(), {});
  for (int64_t o = 0; o < outputs; ++o) CHECK(ints[o] == nonzero[o]);
  std::vector<char> truth(outputs);
  run(Reduce::Any, truth.data(), {});
  for (int64_t o = 0; o < outputs; ++o) CHECK(truth[o] == (nonzero[o] > 0));
  run(Reduce::All, truth.data(), {});
  for (int64_t o = 0; o < outputs; ++o) CHECK(truth[o] == (nonzero[o] == count));
  if (count == 0) return;
  run(Reduce::Amax, values.data(), {});
  for (int64_t o = 0; o < outputs; ++o) CHECK(values[o] == static_cast<T>(top[o]));
  bool one_dim = false;
  for (size_t d = 0; d < l.shape.size(); ++d) one_dim |= mask == (uint64_t{1} << d);
  if (!one_dim) return;
  rl::ReduceParams params;
  params.second = reinterpret_cast<char*>(again.data());
  run(Reduce::ArgMax, ints.data(), params);
  for (int64_t o = 0; o < outputs; ++o) CHECK(ints[o] == place[o] && again[o] == values[o]);
}

void check_layouts(const Layout& l) {
  for (uint64_t mask = 0; mask < (uint64_t{1} << l.shape.size()); ++mask) {
    for (int64_t gap : {1, 2}) {
      check<float>(DType::Float32, l, mask, gap);
      check<double>(DType::Float64, l, mask, gap);
      check<uint8_t>(DType::UInt8, l, mask, gap);
      check<int8_t>(DType::Int8, l, mask, gap);
      check<int16_t>(DType::Int16, l, mask, gap);
      check<int32_t>(DType::Int32, l, mask, gap);
      check<int64_t>(DType::Int64, l, mask, gap);
    }
  }
}

void test_nan_and_infinity() {
  const float nan = std::nanf(""), inf = INFINITY;
  for (int64_t n : {3, 70, 5000, 100000}) {
    std::vector<float> v(n, -inf);
    const int64_t shape[] = {n}, stride[] = {4};
    auto run = [&](Reduce op, void* out, char* second = nullptr) {
      rl::ReduceParams params;
      params.second = second;
      rl::run_reduce(rl::find_reduce(op, DType::Float32), reinterpret_cast<char*>(v.data()), 1, shape, stride, 1,
                     static_cast<char*>(out), params);
    };
    float x;
    int64_t i;
    run(Reduce::Amax, &x);
    CHECK(x == -inf);
    run(Reduce::ArgMax, &i, reinterpret_cast<char*>(&x));
    CHECK(i == 0 && x == -inf);
    v[n / 2] = nan;
    v[n - 1] = nan;
    run(Reduce::ArgMin, &i, reinterpret_cast<char*>(&x));
    CHECK(i == n / 2 && x != x);
    run(Reduce::Amin, &x);
    CHECK(x != x);
    v.assign(n, 1e30f);
    v[1] = nan;
    run(Reduce::NanSum, &x);
    CHECK(std::abs(x / (1e30f * (n - 1)) - 1) < 1e-5f);
    v[1] = 1e30f;
    run(Reduce::Norm2, &x);
    CHECK(std::abs(x / (1e30f * std::sqrt(static_cast<float>(n))) - 1) < 1e-5f);
  }
}

}  // namespace

int main() {
  check_layouts({{5}, {0}});
  check_layouts({{70001}, {0}});
  check_layouts({{0}, {0}});
  check_layouts({{3, 0, 2}, {0, 1, 2}});
  check_layouts({{1, 7, 1, 33}, {0, 1, 2, 3}});
  check_layouts({{300, 700}, {0, 1}});
  check_layouts({{700, 300}, {1, 0}});
  check_layouts({{30000, 3}, {0, 1}});
  check_layouts({{3, 30000}, {0, 1}});
  check_layouts({{6, 50, 7, 31}, {0, 1, 2, 3}});
  check_layouts({{6, 50, 7, 31}, {2, 0, 3, 1}});
  check_layouts({{17, 129, 65}, {1, 2, 0}});
  test_nan_and_infinity();
  std::puts("reduce: ok");
}
