#include "ctc.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime.h"

namespace rl {
namespace {

template <class T>
constexpr T kNever = -std::numeric_limits<T>::infinity();

template <class T>
T log_sum(T a, T b, T c) {
  const T most = std::max(a, std::max(b, c));
  if (most == kNever<T>) return most;
  return most + std::log(std::exp(a - most) + std::exp(b - most) + std::exp(c - most));
}

// The sequence of labels of one sample, with blanks around them.
struct States {
  const int64_t* target;
  int64_t blank, count;
  States(const Ctc& c, int64_t n)
      : target(c.targets + n * c.longest), blank(c.blank), count(2 * c.target_lengths[n] + 1) {}
  int64_t label(int64_t s) const { return s % 2 == 0 ? blank : target[s / 2]; }
  // Whether state s may follow state s - 2.
  bool skips(int64_t s) const { return s % 2 == 1 && s >= 3 && target[s / 2] != target[s / 2 - 1]; }
};

// f(n) for each sample, on the thread pool.
template <class F>
void each_sample(const Ctc& c, F f) {
  parallel_for(0, c.batch, 4096 / (c.steps * (2 * c.longest + 1) + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) f(n);
  });
}

template <class T>
void forward(const Ctc& c, T* loss, T* history) {
  const T* log_probs = static_cast<const T*>(c.log_probs);
  const int64_t width = 2 * c.longest + 1;
  each_sample(c, [&](int64_t n) {
    const States states(c, n);
    T* own = history + n * c.steps * width;
    std::fill_n(own, c.steps * width, kNever<T>);
    for (int64_t t = 0; t < c.input_lengths[n]; ++t) {
      const T* emitted = log_probs + (t * c.batch + n) * c.classes;
      T* now = own + t * width;
      if (t == 0) {
        for (int64_t s = 0; s < std::min<int64_t>(states.count, 2); ++s) now[s] = emitted[states.label(s)];
        continue;
      }
      const T* before = now - width;
      for (int64_t s = 0; s < states.count; ++s) {
        const T reached =
            log_sum(before[s], s >= 1 ? before[s - 1] : kNever<T>, states.skips(s) ? before[s - 2] : kNever<T>);
        now[s] = reached + emitted[states.label(s)];
      }
    }
    if (c.input_lengths[n] == 0) {
      loss[n] = states.count == 1 ? T(0) : -kNever<T>;
      return;
    }
    const T* last = own + (c.input_lengths[n] - 1) * width;
    const T label = states.count >= 2 ? last[states.count - 2] : kNever<T>;
    loss[n] = -log_sum(last[states.count - 1], label, kNever<T>);
  });
}

template <class T>
void backward(const Ctc& c, const T* dloss, const T* loss, const T* history, bool zero_infinity, T* grad) {
  const T* log_probs = static_cast<const T*>(c.log_probs);
  const int64_t width = 2 * c.longest + 1;
  each_sample(c, [&](int64_t n) {
    const States states(c, n);
    const int64_t steps = c.input_lengths[n];
    const Buffer<T> buffer(2 * width);
    T *later = buffer.data(), *now = later + width;  // beta with what is emitted, of step t + 1 and of step t
    for (int64_t t = c.steps - 1; t >= 0; --t) {
      const T* emitted = log_probs + (t * c.batch + n) * c.classes;
      T* to = grad + (t * c.batch + n) * c.classes;
      if (t >= steps || (zero_infinity && loss[n] == -kNever<T>)) {
        std::fill_n(to, c.classes, T(0));
        continue;
      }
      for (int64_t k = 0; k < c.classes; ++k) to[k] = std::exp(emitted[k]);
      const T* forward = history + (n * c.steps + t) * width;
      for (int64_t s = 0; s < states.count; ++s) {
        T left;
        if (t == steps - 1) {
          left = s >= states.count - 2 ? T(0) : kNever<T>;
        } else {
          left = log_sum(later[s], s + 1 < states.count ? later[s + 1] : kNever<T>,
                         s + 2 < states.count && states.skips(s + 2) ? later[s + 2] : kNever<T>);
        }
        to[states.label(s)] -= std::exp(forward[s] + left + loss[n]);
        now[s] = left + emitted[states.label(s)];
      }
      for (int64_t k = 0; k < c.classes; ++k) to[k] *= dloss[n];
      std::swap(now, later);
    }
  });
}

}  // namespace

void ctc(DType dtype, const Ctc& c, void* loss, void* history) {
  if (dtype == DType::Float64) return forward(c, static_cast<double*>(loss), static_cast<double*>(history));
  forward(c, static_cast<float*>(loss), static_cast<float*>(history));
}

void ctc_backward(DType dtype, const Ctc& c, const void* dloss, const void* loss, const void* history,
                  bool zero_infinity, void* grad) {
  if (dtype == DType::Float64) {
    return backward(c, static_cast<const double*>(dloss), static_cast<const double*>(loss),
                    static_cast<const double*>(history), zero_infinity, static_cast<double*>(grad));
  }
  backward(c, static_cast<const float*>(dloss), static_cast<const float*>(loss), static_cast<const float*>(history),
           zero_infinity, static_cast<float*>(grad));
}

}  // namespace rl
