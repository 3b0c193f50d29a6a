// Steps of optimisers in one pass, compiled once per instruction set.
#include "optim.h"
#include "runtime.h"
#include "rushlight/simd.h"

namespace rl {
namespace RL_ISA {
namespace {

constexpr int64_t kGrain = 1 << 14;  // elements that are worth a thread

inline float root_of(float x) { return __builtin_sqrtf(x); }
inline double root_of(double x) { return __builtin_sqrt(x); }

// step(i, gradient) gives what is subtracted from the parameter.
template <class T, class F>
inline void each(const OptimStep& s, const F& step) {
  const T shrink = static_cast<T>(s.shrink), decay = static_cast<T>(s.decay), sign = static_cast<T>(s.sign);
  parallel_for(0, s.n, kGrain, [&](int64_t begin, int64_t end) {
    T* param = static_cast<T*>(s.param);
    const T* grad = static_cast<const T*>(s.grad);
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) {
      const T p = param[i] * shrink;
      param[i] = p - step(i, sign * grad[i] + decay * param[i]);
    }
  });
}

template <class T>
void adagrad(const OptimStep& s) {
  T* sum = static_cast<T*>(s.state[0]);
  const T rate = static_cast<T>(s.rate), eps = static_cast<T>(s.number[0]);
  each<T>(s, [=](int64_t i, T g) RL_INLINE {
    const T total = sum[i] + g * g;
    sum[i] = total;
    return rate * (g / (root_of(total) + eps));
  });
}

template <class T>
void adadelta(const OptimStep& s) {
  T *square = static_cast<T*>(s.state[0]), *change = static_cast<T*>(s.state[1]);
  const T rate = static_cast<T>(s.rate), rho = static_cast<T>(s.number[0]), eps = static_cast<T>(s.number[1]);
  const T fresh = static_cast<T>(1 - s.number[0]);
  each<T>(s, [=](int64_t i, T g) RL_INLINE {
    const T v = square[i] * rho + g * g * fresh, u = change[i];
    square[i] = v;
    const T delta = root_of((u + eps) / (v + eps)) * g;
    change[i] = u * rho + delta * delta * fresh;
    return rate * delta;
  });
}

template <class T>
void adamax(const OptimStep& s) {
  T *mean = static_cast<T*>(s.state[0]), *top = static_cast<T*>(s.state[1]);
  const T rate = static_cast<T>(s.rate), fresh = static_cast<T>(1 - s.number[0]);
  const T beta2 = static_cast<T>(s.number[1]), eps = static_cast<T>(s.number[2]);
  each<T>(s, [=](int64_t i, T g) RL_INLINE {
    const T m = mean[i] + (g - mean[i]) * fresh, faded = top[i] * beta2, size = (g < T(0) ? -g : g) + eps;
    mean[i] = m;
    const T t = size > faded || size != size ? size : faded;
    top[i] = t;
    return rate * (m / t);
  });
}

template <class T>
void nadam(const OptimStep& s) {
  T *mean = static_cast<T*>(s.state[0]), *square = static_cast<T*>(s.state[1]);
  const T rate = static_cast<T>(s.rate), mean_rate = static_cast<T>(s.number[4]);
  const T fresh1 = static_cast<T>(1 - s.number[0]), beta2 = static_cast<T>(s.number[1]);
  const T fresh2 = static_cast<T>(1 - s.number[1]), eps = static_cast<T>(s.number[2]);
  const T root = static_cast<T>(s.number[3]);
  each<T>(s, [=](int64_t i, T g) RL_INLINE {
    const T m = mean[i] + (g - mean[i]) * fresh1, v = square[i] * beta2 + g * g * fresh2;
    mean[i] = m;
    square[i] = v;
    return (rate * g + mean_rate * m) / (root_of(v) * root + eps);
  });
}

template <class T>
void radam(const OptimStep& s) {
  T *mean = static_cast<T*>(s.state[0]), *square = static_cast<T*>(s.state[1]);
  const T rate = static_cast<T>(s.rate), fresh1 = static_cast<T>(1 - s.number[0]);
  const T beta2 = static_cast<T>(s.number[1]), fresh2 = static_cast<T>(1 - s.number[1]);
  const T eps = static_cast<T>(s.number[2]), rectified = static_cast<T>(s.number[3]);
  const bool adapts = s.number[3] != 0;
  each<T>(s, [=](int64_t i, T g) RL_INLINE {
    const T m = mean[i] + (g - mean[i]) * fresh1, v = square[i] * beta2 + g * g * fresh2;
    mean[i] = m;
    square[i] = v;
    return rate * m * (adapts ? rectified / (root_of(v) + eps) : T(1));
  });
}

template <class T>
void rmsprop(const OptimStep& s) {
  T *square = static_cast<T*>(s.state[0]), *buffer = static_cast<T*>(s.state[1]), *mean = static_cast<T*>(s.state[2]);
  const T rate = static_cast<T>(s.rate), alpha = static_cast<T>(s.number[0]), fresh = static_cast<T>(1 - s.number[0]);
  const T eps = static_cast<T>(s.number[1]), momentum = static_cast<T>(s.number[2]);
  const auto step = [&](auto centered, auto with_momentum) RL_INLINE {
    each<T>(s, [=](int64_t i, T g) RL_INLINE {
      T v = square[i] * alpha + g * g * fresh;
      square[i] = v;
      if constexpr (centered.value != 0) {
        const T m = mean[i] + (g - mean[i]) * fresh;
        mean[i] = m;
        v -= m * m;
      }
      T change = g / (root_of(v) + eps);
      if constexpr (with_momentum.value != 0) {
        change += momentum * buffer[i];
        buffer[i] = change;
      }
      return rate * change;
    });
  };
  if (mean != nullptr) {
    buffer != nullptr ? step(Constant<1>{}, Constant<1>{}) : step(Constant<1>{}, Constant<0>{});
  } else {
    buffer != nullptr ? step(Constant<0>{}, Constant<1>{}) : step(Constant<0>{}, Constant<0>{});
  }
}

}  // namespace

void fill_optim(OptimTable& t) {
  t.adagrad[0] = adagrad<float>, t.adagrad[1] = adagrad<double>;
  t.adadelta[0] = adadelta<float>, t.adadelta[1] = adadelta<double>;
  t.adamax[0] = adamax<float>, t.adamax[1] = adamax<double>;
  t.nadam[0] = nadam<float>, t.nadam[1] = nadam<double>;
  t.radam[0] = radam<float>, t.radam[1] = radam<double>;
  t.rmsprop[0] = rmsprop<float>, t.rmsprop[1] = rmsprop<double>;
}

}  // namespace RL_ISA
}  // namespace rl
