#include "softmax.h"

#include "rushlight/half.h"
#include "rushlight/vecmath.h"

#if defined(__AVX512F__)
#include "tabled.h"
#endif

namespace rl {
namespace RL_ISA {
namespace {

constexpr int kLanes = 32;  // more than the compiler unrolls: it vectorises the loop over them instead

template <class T>
T larger(T a, T b) {
  return b > a ? b : a;
}

template <int kHalf, class T, class Merge>
T merged(T* lanes, Merge merge) {
  for (int l = 0; l < kHalf; ++l) lanes[l] = merge(lanes[l], lanes[l + kHalf]);
  if constexpr (kHalf == 1) {
    return lanes[0];
  } else {
    return merged<kHalf / 2>(lanes, merge);
  }
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
  return merged<kLanes / 2>(lanes, merge);
}

// Where e^x is no normal number any more.
template <class T>
constexpr T kLeast = sizeof(T) == 4 ? T(-87.33654) : T(-708.3964185322641);

// What x - shift loses by rounding, for d = x - shift: nothing where d is not finite.
template <class V>
RL_INLINE V lost_by(V d, V x, V shift) {
  const V part = d - x;
  return (x - (d - part)) - (shift + part);
}

// e^(x - shift) for x <= shift, and 0 where that is no normal number.
template <class T>
RL_INLINE T weight(T x, T shift) {
  const T d = x - shift;
  const bool some = d >= kLeast<T>;
  const T y = vm::exp<0, true>(some ? d : T(0)), weighted = y + y * lost_by(d, x, shift);
  return some ? weighted : d != d ? d : T(0);
}

#if defined(__AVX512F__)

// Calls f(place, lanes) for the vectors of a row; only the last one is masked, since masked stores are not forwarded to
// loads.
template <class T, class F>
RL_INLINE void each_vector(int64_t begin, int64_t end, F f) {
  constexpr int64_t kWidth = 64 / sizeof(T);
  int64_t i = begin;
  for (; i + kWidth <= end; i += kWidth) f(i, tabled::AllLanes());
  if (i < end) f(i, static_cast<tabled::Mask<T>>((1u << (end - i)) - 1));
}

template <class T>
T largest(const T* x, int64_t n) {
  auto top = tabled::filled(-vm::Real<T>::kInf);
  const auto least = top;
  each_vector<T>(0, n, [&](int64_t i, auto lanes) { top = tabled::larger(tabled::load(x + i, lanes, least), top); });
  return tabled::largest(top);
}

// The sum of e^(x - shift), whose terms are kept in `terms` unless it is null.
template <class T>
T sum_of_exp(const T* x, T shift, int64_t n, T* terms) {
  constexpr int64_t kBlock = 512;  // bounds the rounding of the sums
  const auto least = tabled::filled(-vm::Real<T>::kInf), by = tabled::filled(shift), one = tabled::filled(T(1));
  auto sum = tabled::filled(T(0));
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    auto part = tabled::filled(T(0));
    each_vector<T>(begin, n - begin < kBlock ? n : begin + kBlock, [&](int64_t i, auto lanes) {
      const auto from = tabled::load(x + i, lanes, least), d = from - by;
      const auto y = tabled::exp(d, kLeast<T>);
      const auto term = y + y * tabled::smaller(lost_by(d, from, by), one);  // NaN where x is infinite, and y 0
      if (terms != nullptr) tabled::store(terms + i, lanes, term);
      part += term;
    });
    sum += part;
  }
  return tabled::sum(sum);
}

template <class T>
void multiply(const T* x, T factor, int64_t n, T* out) {
  const auto by = tabled::filled(factor);
  each_vector<T>(0, n,
                 [&](int64_t i, auto lanes) { tabled::store(out + i, lanes, tabled::load(x + i, lanes, by) * by); });
}

#else

template <class T>
T largest(const T* x, int64_t n) {
  return fold(n, -vm::Real<T>::kInf, larger<T>, [=](int64_t i) { return x[i]; });
}

// Writes e^(x - shift) for n elements, a multiple of kLanes, and adds them up lane by lane.
template <class T>
RL_INLINE void add_terms(const T* x, T shift, int64_t n, T* terms, T* lanes) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) terms[i] = weight(x[i], shift);
  for (int64_t i = 0; i < n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) lanes[l] += terms[i + l];
  }
}

// The sum of e^(x - shift), whose terms are kept in `terms` unless it is null.
template <class T>
T sum_of_exp(const T* x, T shift, int64_t n, T* terms) {
  constexpr int64_t kBlock = 8 * kLanes;
  T buffer[kBlock], group[kLanes];
  T sum = 0;
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t m = n - i < kBlock ? n - i : kBlock, whole = m & -kLanes;
    T lanes[kLanes] = {};
    add_terms(x + i, shift, whole, terms != nullptr ? terms + i : buffer, lanes);
    if (whole < m) {  // one exponential costs as much as a group of them
      for (int l = 0; l < kLanes; ++l) group[l] = -vm::Real<T>::kInf;
      __builtin_memcpy(group, x + i + whole, (m - whole) * sizeof(T));
      add_terms(group, shift, kLanes, buffer, lanes);
      if (terms != nullptr) __builtin_memcpy(terms + i + whole, buffer, (m - whole) * sizeof(T));
    }
    sum += merged<kLanes / 2>(lanes, [](T a, T b) { return a + b; });
  }
  return sum;
}

template <class T>
void multiply(const T* x, T factor, int64_t n, T* out) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] * factor;
}

#endif

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
    const T top = largest(x, n);
    if constexpr (op == Softmax::Softmax) {
      // Rows rarely start at a cache line, and what is stored across two lines is slow to load again.
      constexpr int64_t kShort = 512;
      alignas(64) T aligned[kShort];
      T* terms = n <= kShort ? aligned : out;
      multiply(terms, 1 / sum_of_exp(x, top, n, terms), n, out);
    } else if constexpr (op == Softmax::LogSoftmax) {
      const T shift = vm::log(sum_of_exp<T>(x, top, n, nullptr));
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - top) - shift;
    } else {
      const bool infinite = vm::abs(top) == vm::Real<T>::kInf;
      *out = infinite ? vm::log(fold(n, T(0), plus, [=](int64_t i) { return vm::exp(x[i]); }))
                      : vm::log(sum_of_exp<T>(x, top, n, nullptr)) + top;
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
        out[at] = weight(x[at], top[j]);
        sum[j] += out[at];
      });
      for (int64_t j = 0; j < m; ++j) sum[j] = 1 / sum[j];
      each(n, stride, m, [&](int64_t j, int64_t at) { out[at] *= sum[j]; });
    } else if constexpr (op == Softmax::LogSoftmax) {
      each(n, stride, m, [&](int64_t j, int64_t at) { sum[j] += weight(x[at], top[j]); });
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

template <class H>
void widen_all(const void* in, float* out, int64_t n) {
  widen(static_cast<const H*>(in), out, n);
}
template <class H>
void narrow_all(const float* in, void* out, int64_t n) {
  narrow(in, static_cast<H*>(out), n);
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
  table.halves = {widen_all<Half>, narrow_all<Half>};
  table.bhalves = {widen_all<BHalf>, narrow_all<BHalf>};
}

}  // namespace RL_ISA
}  // namespace rl
