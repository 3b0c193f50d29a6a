#include "softmax.h"

#include "vecmath.h"

namespace rl {
namespace RL_ISA {
namespace {

constexpr int kLanes = 32;  // more than the compiler unrolls: it vectorises the loop over them instead

template <class T>
T larger(T a, T b) {
  return b > a ? b : a;
}

// The sum or the largest of f(i), by `merge`: over independent lanes, then the remainder.
template <class T, class Merge, class F>
T fold(int64_t n, T start, Merge merge, F f) {
  T lanes[kLanes];
  for (int l = 0; l < kLanes; ++l) lanes[l] = start;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) lanes[l] = merge(lanes[l], f(i + l));
  }
  for (int l = 0; i < n; ++i, ++l) lanes[l] = merge(lanes[l], f(i));
  for (int half = kLanes / 2; half >= 1; half /= 2) {
    for (int l = 0; l < half; ++l) lanes[l] = merge(lanes[l], lanes[l + half]);
  }
  return lanes[0];
}

// The sum of exp(x - shift), whose terms are kept in `terms` unless it is null.
template <class T>
T sum_of_exp(const T* x, T shift, int64_t n, T* terms) {
  constexpr int64_t kBlock = 256;
  T buffer[kBlock];
  T sum = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t m = n - begin < kBlock ? n - begin : kBlock;
    const T* from = x + begin;
    T* to = terms != nullptr ? terms + begin : buffer;
#pragma GCC ivdep
    for (int64_t i = 0; i < m; ++i) to[i] = vm::exp(from[i] - shift);
    sum += fold(m, T(0), [](T a, T b) { return a + b; }, [=](int64_t i) { return to[i]; });
  }
  return sum;
}

template <Softmax op, class T>
void row(const T* x, const T* grad, T* out, int64_t n) {
  [[maybe_unused]] const auto plus = [](T a, T b) { return a + b; };
  if constexpr (op == Softmax::SoftmaxBackward) {
    const T dot = fold(n, T(0), plus, [=](int64_t i) { return grad[i] * x[i]; });
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = (grad[i] - dot) * x[i];
  } else if constexpr (op == Softmax::LogSoftmaxBackward) {
    const T sum = fold(n, T(0), plus, [=](int64_t i) { return grad[i]; });
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = grad[i] - vm::exp(x[i]) * sum;
  } else {
    const T top = fold(n, -vm::Real<T>::kInf, larger<T>, [=](int64_t i) { return x[i]; });
    if constexpr (op == Softmax::Softmax) {
      const T scale = 1 / sum_of_exp(x, top, n, out);
      for (int64_t i = 0; i < n; ++i) out[i] *= scale;
    } else if constexpr (op == Softmax::LogSoftmax) {
      const T shift = vm::log(sum_of_exp<T>(x, top, n, nullptr));
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - top) - shift;
    } else {
      const T shift = vm::abs(top) == vm::Real<T>::kInf ? T(0) : top;
      *out = vm::log(sum_of_exp<T>(x, shift, n, nullptr)) + shift;
    }
  }
}

// Calls f(j, at) for every column, row after row; `at` is the place in memory.
template <class F>
void each(int64_t n, int64_t stride, int64_t m, F f) {
  for (int64_t i = 0; i < n; ++i) {
#pragma GCC ivdep
    for (int64_t j = 0; j < m; ++j) f(j, i * stride + j);
  }
}

template <Softmax op, class T>
void columns(const T* x, const T* grad, T* out, int64_t n, int64_t stride, int64_t m) {
  T sum[kSoftmaxColumns] = {}, top[kSoftmaxColumns];
  if constexpr (op == Softmax::SoftmaxBackward) {
    each(n, stride, m, [&](int64_t j, int64_t at) { sum[j] += grad[at] * x[at]; });
    each(n, stride, m, [&](int64_t j, int64_t at) { out[at] = (grad[at] - sum[j]) * x[at]; });
  } else if constexpr (op == Softmax::LogSoftmaxBackward) {
    each(n, stride, m, [&](int64_t j, int64_t at) { sum[j] += grad[at]; });
    each(n, stride, m, [&](int64_t j, int64_t at) { out[at] = grad[at] - vm::exp(x[at]) * sum[j]; });
  } else {
    for (int64_t j = 0; j < m; ++j) top[j] = -vm::Real<T>::kInf;
    each(n, stride, m, [&](int64_t j, int64_t at) { top[j] = larger(top[j], x[at]); });
    if constexpr (op == Softmax::Softmax) {
      each(n, stride, m, [&](int64_t j, int64_t at) {
        out[at] = vm::exp(x[at] - top[j]);
        sum[j] += out[at];
      });
      for (int64_t j = 0; j < m; ++j) sum[j] = 1 / sum[j];
      each(n, stride, m, [&](int64_t j, int64_t at) { out[at] *= sum[j]; });
    } else if constexpr (op == Softmax::LogSoftmax) {
      each(n, stride, m, [&](int64_t j, int64_t at) { sum[j] += vm::exp(x[at] - top[j]); });
      for (int64_t j = 0; j < m; ++j) sum[j] = vm::log(sum[j]);
      each(n, stride, m, [&](int64_t j, int64_t at) { out[at] = (x[at] - top[j]) - sum[j]; });
    } else {
      for (int64_t j = 0; j < m; ++j) top[j] = vm::abs(top[j]) == vm::Real<T>::kInf ? T(0) : top[j];
      each(n, stride, m, [&](int64_t j, int64_t at) { sum[j] += vm::exp(x[at] - top[j]); });
      for (int64_t j = 0; j < m; ++j) out[j] = vm::log(sum[j]) + top[j];
    }
  }
}

template <Softmax op, class T>
void loop(const T* x, const T* grad, T* out, int64_t n, int64_t stride, int64_t m) {
  m == 1 && stride == 1 ? row<op>(x, grad, out, n) : columns<op>(x, grad, out, n, stride, m);
}

template <Softmax op>
void add(SoftmaxTable& table) {
  table.floats[static_cast<int>(op)] = loop<op, float>;
  table.doubles[static_cast<int>(op)] = loop<op, double>;
}

}  // namespace

void fill_softmax(SoftmaxTable& table) {
  add<Softmax::Softmax>(table);
  add<Softmax::LogSoftmax>(table);
  add<Softmax::LogSumExp>(table);
  add<Softmax::SoftmaxBackward>(table);
  add<Softmax::LogSoftmaxBackward>(table);
}

}  // namespace RL_ISA
}  // namespace rl
