// Normalisation, cross entropy and optimiser steps, compiled once per instruction set. Sums run over fixed pieces of
// the input, so that the number of threads does not change a result.
#include "norm.h"
#include "runtime.h"
#include "vecmath.h"

namespace rl {
namespace RL_ISA {
namespace {

constexpr int64_t kGrain = 1 << 15;  // elements that are worth a thread

inline int64_t grain_of(int64_t elements) { return kGrain / (elements + 1) + 1; }

template <class T>
inline T value_or(const void* p, int64_t i, T otherwise) {
  return p != nullptr ? static_cast<const T*>(p)[i] : otherwise;
}

// The sum of f(vector at i) over [0, n); f sees zeros behind the end only if it takes a count.
template <class T, class F>
inline double sum_of(int64_t n, const F& f) {
  Vec<T> sum[4];
  repeat<4>([&](auto x) RL_INLINE { sum[x.value] = Vec<T>{}; });
  int64_t i = 0;
  for (; i + 4 * kLanes<T> <= n; i += 4 * kLanes<T>) {
    repeat<4>([&](auto x) RL_INLINE { sum[x.value] += f(i + x.value * kLanes<T>, kLanes<T>); });
  }
  for (; i < n; i += kLanes<T>) sum[0] += f(i, least(n - i, kLanes<T>));
  return static_cast<double>(sum_lanes<T>((sum[0] + sum[1]) + (sum[2] + sum[3])));
}
// v with the lanes from `count` on set to zero.
template <class T>
inline Vec<T> keep(Vec<T> v, int64_t count) {
  if (count == kLanes<T>) return v;
  T part[kLanes<T>];
  store(part, v);
  return load(part, count);
}

struct Spread {
  double mean, variance, scale;  // 1 / sqrt(variance + eps), where the variance may have left the range
};

template <class T>
inline bool in_range(double square) {
  return square > (sizeof(T) == 4 ? 0x1p-100 : 0x1p-900) && square <= __DBL_MAX__;
}

// Of elements whose squares, or the sum of them, left the range of their type: floats go in doubles, doubles in units.
template <class F>
Spread far_spread(int64_t n, double eps, bool centred, const F& at) {
  double top = 0, mean = 0, variance = 0;
  for (int64_t i = 0; i < n; ++i) top = __builtin_fmax(top, __builtin_fabs(at(i)));
  const double unit = top > 0x1p500 ? 0x1p600 : top < 0x1p-400 && eps == 0 ? 0x1p-600 : 1, factor = 1 / unit;
  for (int64_t i = 0; centred && i < n; ++i) mean += at(i) * factor;
  mean /= static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) variance += (at(i) * factor - mean) * (at(i) * factor - mean);
  variance /= static_cast<double>(n);
  return {mean * unit, variance * unit * unit, factor / __builtin_sqrt(variance + eps * factor * factor)};
}

// ---- batch norm

template <class T>
void update_running(const BatchNorm& b, int64_t c, double mean, double variance, int64_t n) {
  const auto move = [&](void* p, double value) {
    if (p == nullptr) return;
    T& x = static_cast<T*>(p)[c];
    x = static_cast<T>((1 - b.momentum) * static_cast<double>(x) + b.momentum * value);
  };
  move(b.running_mean, mean);
  move(b.running_var, variance * static_cast<double>(n) / static_cast<double>(n > 1 ? n - 1 : 1));
}

template <class T>
void batch_norm_channel(const BatchNorm& b, int64_t c) {
  const T* x = static_cast<const T*>(b.x) + c * b.inner;
  T* y = static_cast<T*>(b.y) + c * b.inner;
  const int64_t row = b.channels * b.inner, n = b.outer * b.inner;
  double mean = 0, variance = 0;
  if (b.training) {
    for (int64_t o = 0; o < b.outer; ++o) {
      mean += sum_of<T>(b.inner, [&](int64_t i, int64_t count) RL_INLINE { return get(x + o * row + i, count); });
    }
    mean /= static_cast<double>(n);
    const T centre = static_cast<T>(mean);
    for (int64_t o = 0; o < b.outer; ++o) {
      variance += sum_of<T>(b.inner, [&](int64_t i, int64_t count) RL_INLINE {
        const Vec<T> v = keep<T>(get(x + o * row + i, count) - centre, count);
        return v * v;
      });
    }
    variance /= static_cast<double>(n);
  } else {
    mean = static_cast<double>(static_cast<const T*>(b.running_mean)[c]);
    variance = static_cast<double>(static_cast<const T*>(b.running_var)[c]);
  }
  double scale = 1 / __builtin_sqrt(variance + b.eps);
  if (b.training) {
    if (!in_range<T>(variance + b.eps)) {
      const Spread far = far_spread(
          n, b.eps, true, [&](int64_t i) RL_INLINE { return static_cast<double>(x[i / b.inner * row + i % b.inner]); });
      mean = far.mean, variance = far.variance, scale = far.scale;
    }
    update_running<T>(b, c, mean, variance, n);
  }
  static_cast<T*>(b.mean)[c] = static_cast<T>(mean);
  static_cast<T*>(b.scale)[c] = static_cast<T>(scale);
  const T factor = static_cast<T>(scale) * value_or<T>(b.weight, c, 1), centre = static_cast<T>(mean);
  const T shift = value_or<T>(b.bias, c, 0);
  for (int64_t o = 0; o < b.outer; ++o) {
    for (int64_t i = 0; i < b.inner; i += kLanes<T>) {
      const int64_t count = least(b.inner - i, kLanes<T>);
      put<T>(y + o * row + i, (get(x + o * row + i, count) - centre) * factor + shift, count);
    }
  }
}

// Channels next to each other in memory: the lanes are channels.
template <class T>
void batch_norm_lanes(const BatchNorm& b, int64_t c, int64_t count) {
  const T* x = static_cast<const T*>(b.x) + c;
  T* y = static_cast<T*>(b.y) + c;
  Vec<T> mean{}, variance{};
  if (b.training) {
    for (int64_t o = 0; o < b.outer; ++o) mean += load(x + o * b.channels, count);
    mean /= static_cast<T>(b.outer);
    for (int64_t o = 0; o < b.outer; ++o) {
      const Vec<T> v = load(x + o * b.channels, count) - mean;
      variance += v * v;
    }
    variance /= static_cast<T>(b.outer);
  } else {
    mean = load(static_cast<const T*>(b.running_mean) + c, count);
    variance = load(static_cast<const T*>(b.running_var) + c, count);
  }
  T scale[kLanes<T>] = {}, shift[kLanes<T>] = {};
  for (int64_t i = 0; i < count; ++i) {
    const double square = static_cast<double>(variance[i]) + b.eps;
    Spread spread{static_cast<double>(mean[i]), static_cast<double>(variance[i]), 1 / __builtin_sqrt(square)};
    if (b.training) {
      if (!in_range<T>(square)) {
        spread = far_spread(b.outer, b.eps, true,
                            [&](int64_t o) RL_INLINE { return static_cast<double>(x[o * b.channels + i]); });
        mean[i] = static_cast<T>(spread.mean);
      }
      update_running<T>(b, c + i, spread.mean, spread.variance, b.outer);
    }
    scale[i] = static_cast<T>(spread.scale);
    static_cast<T*>(b.scale)[c + i] = scale[i];
    scale[i] *= value_or<T>(b.weight, c + i, 1);
    shift[i] = value_or<T>(b.bias, c + i, 0);
  }
  store(static_cast<T*>(b.mean) + c, mean, count);
  const Vec<T> factor = load(scale), bias = load(shift);
  for (int64_t o = 0; o < b.outer; ++o) {
    store<T>(y + o * b.channels, (load(x + o * b.channels, count) - mean) * factor + bias, count);
  }
}

// Channels of this layout are done a vector at a time.
inline bool channels_last(int64_t inner, int64_t channels) { return inner == 1 && channels > 1; }

template <class T>
void batch_norm(const BatchNorm& b) {
  if (channels_last(b.inner, b.channels)) {
    parallel_for(0, parts(b.channels, kLanes<T>), grain_of(b.outer * kLanes<T>), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * kLanes<T>; i < least(end * kLanes<T>, b.channels); i += kLanes<T>) {
        batch_norm_lanes<T>(b, i, least(b.channels - i, kLanes<T>));
      }
    });
    return;
  }
  parallel_for(0, b.channels, grain_of(b.outer * b.inner), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) batch_norm_channel<T>(b, c);
  });
}

template <class T>
void batch_norm_backward_channel(const BatchNormBackward& b, int64_t c) {
  const int64_t row = b.channels * b.inner, offset = c * b.inner;
  const T *x = static_cast<const T*>(b.x) + offset, *dy = static_cast<const T*>(b.dy) + offset;
  const T mean = static_cast<const T*>(b.mean)[c], scale = static_cast<const T*>(b.scale)[c];
  double sum = 0, product = 0;
  for (int64_t o = 0; o < b.outer; ++o) {
    sum += sum_of<T>(b.inner, [&](int64_t i, int64_t n) RL_INLINE { return get(dy + o * row + i, n); });
    product += sum_of<T>(b.inner, [&](int64_t i, int64_t n) RL_INLINE {
      return get(dy + o * row + i, n) * (get(x + o * row + i, n) - mean);
    });
  }
  product *= static_cast<double>(scale);
  if (b.dweight != nullptr) static_cast<T*>(b.dweight)[c] = static_cast<T>(product);
  if (b.dbias != nullptr) static_cast<T*>(b.dbias)[c] = static_cast<T>(sum);
  if (b.dx == nullptr) return;
  T* dx = static_cast<T*>(b.dx) + offset;
  const double n = static_cast<double>(b.outer * b.inner);
  const T factor = scale * value_or<T>(b.weight, c, 1);
  const T mean_dy = b.training ? static_cast<T>(sum / n) : T(0);
  const T slope = b.training ? static_cast<T>(product / n) * scale : T(0);
  for (int64_t o = 0; o < b.outer; ++o) {
    for (int64_t i = 0; i < b.inner; i += kLanes<T>) {
      const int64_t count = least(b.inner - i, kLanes<T>), at = o * row + i;
      put<T>(dx + at, (get(dy + at, count) - mean_dy - (get(x + at, count) - mean) * slope) * factor, count);
    }
  }
}

template <class T>
void batch_norm_backward_lanes(const BatchNormBackward& b, int64_t c, int64_t count) {
  const T *x = static_cast<const T*>(b.x) + c, *dy = static_cast<const T*>(b.dy) + c;
  const Vec<T> mean = load(static_cast<const T*>(b.mean) + c, count),
               scale = load(static_cast<const T*>(b.scale) + c, count);
  Vec<T> sum{}, product{};
  for (int64_t o = 0; o < b.outer; ++o) {
    const Vec<T> v = load(dy + o * b.channels, count);
    sum += v;
    product += v * (load(x + o * b.channels, count) - mean);
  }
  product *= scale;
  if (b.dweight != nullptr) store<T>(static_cast<T*>(b.dweight) + c, product, count);
  if (b.dbias != nullptr) store<T>(static_cast<T*>(b.dbias) + c, sum, count);
  if (b.dx == nullptr) return;
  const Vec<T> factor = b.weight != nullptr ? scale * load(static_cast<const T*>(b.weight) + c, count) : scale;
  const T n = b.training ? T(1) / static_cast<T>(b.outer) : T(0);
  const Vec<T> mean_dy = sum * n, slope = product * n * scale;
  for (int64_t o = 0; o < b.outer; ++o) {
    const int64_t at = o * b.channels;
    store<T>(static_cast<T*>(b.dx) + c + at,
             (load(dy + at, count) - mean_dy - (load(x + at, count) - mean) * slope) * factor, count);
  }
}

template <class T>
void batch_norm_backward(const BatchNormBackward& b) {
  if (channels_last(b.inner, b.channels)) {
    parallel_for(0, parts(b.channels, kLanes<T>), grain_of(b.outer * kLanes<T>), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * kLanes<T>; i < least(end * kLanes<T>, b.channels); i += kLanes<T>) {
        batch_norm_backward_lanes<T>(b, i, least(b.channels - i, kLanes<T>));
      }
    });
    return;
  }
  parallel_for(0, b.channels, grain_of(b.outer * b.inner), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) batch_norm_backward_channel<T>(b, c);
  });
}

// ---- row norm

// f(i, count, weight) over the vectors of a row; the weight is a vector, or the same number in all lanes.
template <class T, class F>
inline void each_weighted(int64_t length, int64_t repeat_, const T* weight, T otherwise, const F& f) {
  if (repeat_ == 1) {
    for (int64_t i = 0; i < length; i += kLanes<T>) {
      const int64_t count = least(length - i, kLanes<T>);
      f(i, count, weight != nullptr ? get(weight + i, count) : splat(otherwise));
    }
    return;
  }
  for (int64_t begin = 0, c = 0; begin < length; begin += repeat_, ++c) {
    const Vec<T> w = splat(weight != nullptr ? weight[c] : otherwise);
    for (int64_t i = begin; i < begin + repeat_; i += kLanes<T>) f(i, least(begin + repeat_ - i, kLanes<T>), w);
  }
}

template <class T>
void row_norm(const RowNorm& r) {
  const int64_t channels = r.length / r.repeat;  // of a row
  parallel_for(0, r.rows, grain_of(r.length), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* x = static_cast<const T*>(r.x) + row * r.length;
      T* y = static_cast<T*>(r.y) + row * r.length;
      const double n = static_cast<double>(r.length);
      T mean = 0;
      if (r.centred)
        mean = static_cast<T>(sum_of<T>(r.length, [&](int64_t i, int64_t c) RL_INLINE { return get(x + i, c); }) / n);
      const double variance = sum_of<T>(r.length,
                                        [&](int64_t i, int64_t c) RL_INLINE {
                                          const Vec<T> v = keep<T>(get(x + i, c) - mean, c);
                                          return v * v;
                                        }) /
                              n;
      T scale = static_cast<T>(1 / __builtin_sqrt(variance + r.eps));
      if (!in_range<T>(variance + r.eps)) {
        const Spread far =
            far_spread(r.length, r.eps, r.centred, [&](int64_t i) RL_INLINE { return static_cast<double>(x[i]); });
        mean = static_cast<T>(far.mean), scale = static_cast<T>(far.scale);
      }
      static_cast<T*>(r.mean)[row] = mean;
      static_cast<T*>(r.scale)[row] = scale;
      const int64_t first = row % r.period * channels;
      const T* weight = r.weight != nullptr ? static_cast<const T*>(r.weight) + first : nullptr;
      const T* bias = r.bias != nullptr ? static_cast<const T*>(r.bias) + first : nullptr;
      each_weighted<T>(r.length, r.repeat, weight, T(1), [&](int64_t i, int64_t count, Vec<T> w) RL_INLINE {
        Vec<T> v = (get(x + i, count) - mean) * scale * w;
        if (bias != nullptr) v += r.repeat == 1 ? get(bias + i, count) : splat(bias[i / r.repeat]);
        put<T>(y + i, v, count);
      });
    }
  });
}

template <class T>
void row_norm_dx(const RowNormBackward& r) {
  const int64_t channels = r.length / r.repeat;
  parallel_for(0, r.rows, grain_of(r.length), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T *x = static_cast<const T*>(r.x) + row * r.length, *dy = static_cast<const T*>(r.dy) + row * r.length;
      T* dx = static_cast<T*>(r.dx) + row * r.length;
      const T mean = static_cast<const T*>(r.mean)[row], scale = static_cast<const T*>(r.scale)[row];
      const T* weight = r.weight != nullptr ? static_cast<const T*>(r.weight) + row % r.period * channels : nullptr;
      Vec<T> sum{}, product{};
      each_weighted<T>(r.length, r.repeat, weight, T(1), [&](int64_t i, int64_t count, Vec<T> w) RL_INLINE {
        const Vec<T> g = get(dy + i, count) * w;
        sum += g;
        product += g * (get(x + i, count) - mean);
      });
      const T n = static_cast<T>(r.length), mean_g = r.centred ? sum_lanes<T>(sum) / n : T(0);
      const T slope = sum_lanes<T>(product) / n * scale * scale;
      each_weighted<T>(r.length, r.repeat, weight, T(1), [&](int64_t i, int64_t count, Vec<T> w) RL_INLINE {
        put<T>(dx + i, (get(dy + i, count) * w - mean_g - (get(x + i, count) - mean) * slope) * scale, count);
      });
    }
  });
}

// Weights that belong to one element of a row each: the lanes are weights.
template <class T>
void row_norm_weights_lanes(const RowNormBackward& r) {
  const int64_t columns = r.period * r.length;
  parallel_for(0, parts(columns, kLanes<T>), grain_of(r.rows / r.period * kLanes<T>), [&](int64_t begin, int64_t end) {
    for (int64_t j = begin * kLanes<T>; j < least(end * kLanes<T>, columns); j += kLanes<T>) {
      // With several rows a period a vector may straddle rows; then it goes lane by lane.
      const int64_t count = least(columns - j, kLanes<T>);
      T dw[kLanes<T>] = {}, db[kLanes<T>] = {};
      if (j / r.length == (j + count - 1) / r.length) {
        Vec<T> w{}, b{};
        for (int64_t row = j / r.length; row < r.rows; row += r.period) {
          const int64_t at = row * r.length + j % r.length;
          const Vec<T> g = load(static_cast<const T*>(r.dy) + at, count);
          b += g;
          w += g * (load(static_cast<const T*>(r.x) + at, count) - static_cast<const T*>(r.mean)[row]) *
               static_cast<const T*>(r.scale)[row];
        }
        store(dw, w);
        store(db, b);
      } else {
        for (int64_t i = 0; i < count; ++i) {
          for (int64_t row = (j + i) / r.length; row < r.rows; row += r.period) {
            const int64_t at = row * r.length + (j + i) % r.length;
            const T g = static_cast<const T*>(r.dy)[at];
            db[i] += g;
            dw[i] += g * (static_cast<const T*>(r.x)[at] - static_cast<const T*>(r.mean)[row]) *
                     static_cast<const T*>(r.scale)[row];
          }
        }
      }
      for (int64_t i = 0; i < count; ++i) {
        if (r.dweight != nullptr) static_cast<T*>(r.dweight)[j + i] = dw[i];
        if (r.dbias != nullptr) static_cast<T*>(r.dbias)[j + i] = db[i];
      }
    }
  });
}

template <class T>
void row_norm_weights_channels(const RowNormBackward& r) {
  const int64_t channels = r.length / r.repeat;
  parallel_for(0, r.period * channels, grain_of(r.rows / r.period * r.repeat), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      double dw = 0, db = 0;
      for (int64_t row = c / channels; row < r.rows; row += r.period) {
        const int64_t at = row * r.length + c % channels * r.repeat;
        const T *x = static_cast<const T*>(r.x) + at, *dy = static_cast<const T*>(r.dy) + at;
        const T mean = static_cast<const T*>(r.mean)[row];
        db += sum_of<T>(r.repeat, [&](int64_t i, int64_t n) RL_INLINE { return get(dy + i, n); });
        dw += sum_of<T>(r.repeat,
                        [&](int64_t i, int64_t n) RL_INLINE { return get(dy + i, n) * (get(x + i, n) - mean); }) *
              static_cast<double>(static_cast<const T*>(r.scale)[row]);
      }
      if (r.dweight != nullptr) static_cast<T*>(r.dweight)[c] = static_cast<T>(dw);
      if (r.dbias != nullptr) static_cast<T*>(r.dbias)[c] = static_cast<T>(db);
    }
  });
}

template <class T>
void row_norm_backward(const RowNormBackward& r) {
  if (r.dx != nullptr) row_norm_dx<T>(r);
  if (r.dweight == nullptr && r.dbias == nullptr) return;
  r.repeat == 1 ? row_norm_weights_lanes<T>(r) : row_norm_weights_channels<T>(r);
}

// ---- cross entropy

template <class T>
inline Vec<T> greater(Vec<T> a, Vec<T> b) {
  return (b > a) | (b != b) ? b : a;  // a NaN wins
}

template <class T>
double weight_sum(const void* weight, int64_t classes) {
  if (weight == nullptr) return static_cast<double>(classes);
  double sum = 0;
  for (int64_t c = 0; c < classes; ++c) sum += static_cast<double>(static_cast<const T*>(weight)[c]);
  return sum;
}

// What a row of scores comes to: the greatest, the logarithm of the sum of exponentials of what the others are below
// it, and the weighted sum of how far they are below it. Apart, since the greatest may be too large to add to.
template <class T>
struct RowSums {
  T greatest, log_total, below;
};

template <class T>
RowSums<T> sum_row(const T* x, const T* weight, int64_t n, bool smooth) {
  Vec<T> top = splat(x[0]);
  for (int64_t i = 0; i < n; i += kLanes<T>) {
    const int64_t count = least(n - i, kLanes<T>);
    if (count == kLanes<T>) {
      top = greater<T>(top, load(x + i));
    } else {
      for (int64_t j = 0; j < count; ++j) top = greater<T>(top, splat(x[i + j]));
    }
  }
  T greatest = top[0];
  for (int i = 1; i < kLanes<T>; ++i) greatest = top[i] > greatest || top[i] != top[i] ? top[i] : greatest;
  if (greatest == -static_cast<T>(__builtin_inf())) greatest = T(0);  // then all are minus infinity
  const double total = sum_of<T>(n, [&](int64_t i, int64_t count) RL_INLINE {
    return keep<T>(exp_negative<T>(get(x + i, count) - greatest), count);
  });
  double below = 0;
  if (smooth) {
    below = sum_of<T>(n, [&](int64_t i, int64_t count) RL_INLINE {
      const Vec<T> v = keep<T>(greatest - get(x + i, count), count);
      return weight != nullptr ? v * get(weight + i, count) : v;
    });
  }
  return {greatest, static_cast<T>(__builtin_log(total)), static_cast<T>(below)};
}

// The same for `count` positions next to each other, whose classes lie `stride` apart.
template <class T>
void sum_lanes_of_rows(const T* x, const T* weight, int64_t n, int64_t stride, int64_t count, bool smooth,
                       RowSums<T>* out) {
  Vec<T> top = load(x, count), total{}, below{};
  for (int64_t c = 1; c < n; ++c) top = greater<T>(top, load(x + c * stride, count));
  top = top == -static_cast<T>(__builtin_inf()) ? Vec<T>{} : top;
  for (int64_t c = 0; c < n; ++c) {
    const Vec<T> v = load(x + c * stride, count);
    total += exp_negative<T>(v - top);
    if (smooth) below += weight != nullptr ? (top - v) * weight[c] : top - v;
  }
  for (int64_t i = 0; i < count; ++i) {
    out[i] = {top[i], static_cast<T>(__builtin_log(static_cast<double>(total[i]))), below[i]};
  }
}

// f(first position, count) over the positions (outer, inner), in pieces that lie next to each other.
template <class T, class F>
void each_piece(int64_t outer, int64_t inner, int64_t classes, const F& f) {
  const int64_t width = inner == 1 ? 1 : kLanes<T>, pieces = parts(inner, width);
  parallel_for(0, outer * pieces, grain_of(classes * width), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t i = p % pieces * width;
      f(p / pieces, i, least(inner - i, width));
    }
  });
}

template <class T>
void cross_entropy(const CrossEntropy& g) {
  const double all = weight_sum<T>(g.weight, g.classes);
  const T keep_share = static_cast<T>(1 - g.smoothing),
          spread = static_cast<T>(g.smoothing / static_cast<double>(g.classes));
  const T* weight = static_cast<const T*>(g.weight);
  each_piece<T>(g.outer, g.inner, g.classes, [&](int64_t o, int64_t i, int64_t count) {
    const T* x = static_cast<const T*>(g.x) + o * g.classes * g.inner + i;
    RowSums<T> sums[kLanes<T>];
    if (g.inner == 1) {
      sums[0] = sum_row<T>(x, weight, g.classes, g.smoothing != 0);
    } else {
      sum_lanes_of_rows<T>(x, weight, g.classes, g.inner, count, g.smoothing != 0, sums);
    }
    for (int64_t j = 0; j < count; ++j) {
      const int64_t at = o * g.inner + i + j, target = g.target[at];
      const T greatest = sums[j].greatest, log_total = sums[j].log_total;
      static_cast<T*>(g.greatest)[at] = greatest;
      static_cast<T*>(g.log_total)[at] = log_total;
      T loss = 0, factor = 0;
      if (target != g.ignore_index) {
        factor = weight != nullptr ? weight[target] : T(1);
        loss = factor * keep_share * (greatest - x[target * g.inner + j] + log_total);
        if (g.smoothing != 0) loss += spread * (static_cast<T>(all) * log_total + sums[j].below);
      }
      static_cast<T*>(g.loss)[at] = loss;
      static_cast<T*>(g.factor)[at] = factor;
    }
  });
}

template <class T>
void cross_entropy_backward(const CrossEntropyBackward& g) {
  const double all = weight_sum<T>(g.weight, g.classes);
  const T keep_share = static_cast<T>(1 - g.smoothing),
          spread = static_cast<T>(g.smoothing / static_cast<double>(g.classes));
  const T* weight = static_cast<const T*>(g.weight);
  each_piece<T>(g.outer, g.inner, g.classes, [&](int64_t o, int64_t i, int64_t count) {
    const int64_t first = o * g.classes * g.inner + i;
    const T* x = static_cast<const T*>(g.x) + first;
    T* dx = static_cast<T*>(g.dx) + first;
    T slope[kLanes<T>] = {}, share[kLanes<T>] = {};  // of softmax, and of the target
    T greatest[kLanes<T>] = {}, log_total[kLanes<T>] = {};
    T even[kLanes<T>] = {};  // of every class, by smoothing
    for (int64_t j = 0; j < count; ++j) {
      const int64_t at = o * g.inner + i + j, target = g.target[at];
      greatest[j] = static_cast<const T*>(g.greatest)[at];
      log_total[j] = static_cast<const T*>(g.log_total)[at];
      if (target == g.ignore_index) continue;
      const T dloss =
          static_cast<T>(static_cast<double>(static_cast<const T*>(g.dloss)[at * g.dloss_stride]) / g.divisor);
      share[j] = dloss * keep_share * (weight != nullptr ? weight[target] : T(1));
      even[j] = dloss * spread;
      slope[j] = share[j] + even[j] * static_cast<T>(all);
    }
    if (g.inner == 1) {
      for (int64_t c = 0; c < g.classes; c += kLanes<T>) {
        const int64_t n = least(g.classes - c, kLanes<T>);
        Vec<T> v = exp_negative<T>(get(x + c, n) - greatest[0] - log_total[0]) * slope[0];
        if (even[0] != T(0)) v -= weight != nullptr ? get(weight + c, n) * even[0] : splat(even[0]);
        put<T>(dx + c, v, n);
      }
    } else {
      const Vec<T> top = load(greatest), logs = load(log_total), factor = load(slope), spreads = load(even);
      for (int64_t c = 0; c < g.classes; ++c) {
        Vec<T> v = exp_negative<T>(load(x + c * g.inner, count) - top - logs) * factor;
        if (g.smoothing != 0) v -= weight != nullptr ? spreads * weight[c] : spreads;
        store<T>(dx + c * g.inner, v, count);
      }
    }
    for (int64_t j = 0; j < count; ++j) {
      const int64_t target = g.target[o * g.inner + i + j];
      if (target != g.ignore_index) dx[target * g.inner + j] -= share[j];
    }
  });
}

// ---- optimisers

template <class T>
void sgd(const SgdStep& s) {
  const T lr = static_cast<T>(s.lr), momentum = static_cast<T>(s.momentum), decay = static_cast<T>(s.weight_decay);
  const T fresh = s.first ? T(1) : static_cast<T>(1 - s.dampening), kept = s.first ? T(0) : momentum;
  const T sign = s.maximize ? T(-1) : T(1);
  parallel_for(0, s.n, kGrain, [&](int64_t begin, int64_t end) {
    T* param = static_cast<T*>(s.param);
    const T* grad = static_cast<const T*>(s.grad);
    T* buffer = static_cast<T*>(s.buffer);
    if (buffer == nullptr) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) param[i] -= lr * (sign * grad[i] + decay * param[i]);
      return;
    }
    const T direct = s.nesterov ? T(1) : T(0), through = s.nesterov ? momentum : T(1);
    if (s.first) {
      for (int64_t i = begin; i < end; ++i) buffer[i] = T(0);  // what was in it may not be a number
    }
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) {
      const T g = sign * grad[i] + decay * param[i];
      const T b = kept * buffer[i] + fresh * g;
      buffer[i] = b;
      param[i] -= lr * (direct * g + through * b);
    }
  });
}

template <class T>
void adam(const AdamStep& s) {
  const double correction1 = 1 - __builtin_pow(s.beta1, s.step), correction2 = 1 - __builtin_pow(s.beta2, s.step);
  const T rate = static_cast<T>(s.lr / correction1), root = static_cast<T>(1 / __builtin_sqrt(correction2));
  const T share1 = static_cast<T>(1 - s.beta1), beta2 = static_cast<T>(s.beta2), share2 = static_cast<T>(1 - s.beta2);
  const T shrink = s.decoupled ? static_cast<T>(1 - s.lr * s.weight_decay) : T(1);
  const T decay = s.decoupled ? T(0) : static_cast<T>(s.weight_decay), eps = static_cast<T>(s.eps);
  const T sign = s.maximize ? T(-1) : T(1);
  parallel_for(0, s.n, kGrain / 2, [&](int64_t begin, int64_t end) {
    T *param = static_cast<T*>(s.param), *average = static_cast<T*>(s.average), *square = static_cast<T*>(s.square);
    T* greatest = static_cast<T*>(s.greatest);
    const T* grad = static_cast<const T*>(s.grad);
    const auto step = [&](auto amsgrad) RL_INLINE {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) {
        const T g = sign * grad[i] + decay * param[i];
        const T m = average[i] + (g - average[i]) * share1;
        T v = square[i] * beta2 + g * g * share2;
        average[i] = m;
        square[i] = v;
        if constexpr (amsgrad.value != 0) {
          v = v > greatest[i] || v != v ? v : greatest[i];
          greatest[i] = v;
        }
        T denominator;
        if constexpr (sizeof(T) == 4) {
          denominator = __builtin_sqrtf(v) * root + eps;
        } else {
          denominator = __builtin_sqrt(v) * root + eps;
        }
        param[i] = shrink * param[i] - rate * (m / denominator);
      }
    };
    greatest != nullptr ? step(Constant<1>{}) : step(Constant<0>{});
  });
}

}  // namespace

void fill_norm(NormTable& t) {
  t.batch_norm[0] = batch_norm<float>, t.batch_norm[1] = batch_norm<double>;
  t.batch_norm_backward[0] = batch_norm_backward<float>, t.batch_norm_backward[1] = batch_norm_backward<double>;
  t.row_norm[0] = row_norm<float>, t.row_norm[1] = row_norm<double>;
  t.row_norm_backward[0] = row_norm_backward<float>, t.row_norm_backward[1] = row_norm_backward<double>;
  t.cross_entropy[0] = cross_entropy<float>, t.cross_entropy[1] = cross_entropy<double>;
  t.cross_entropy_backward[0] = cross_entropy_backward<float>,
  t.cross_entropy_backward[1] = cross_entropy_backward<double>;
  t.sgd[0] = sgd<float>, t.sgd[1] = sgd<double>;
  t.adam[0] = adam<float>, t.adam[1] = adam<double>;
}

}  // namespace RL_ISA
}  // namespace rl
