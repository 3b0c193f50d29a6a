// The linear maps of Winograd's F(4 x 4, 3 x 3) for one line (Lavin and Gray, Fast Algorithms for Convolutional Neural
// Networks, 2016), with the points 0, +-5/8, +-3/2 and infinity, whose error is half of that of the usual 0, +-1, +-2:
// include in an ISA source only (see isa.h).
#pragma once

#include "rushlight/simd.h"

namespace rl {
namespace RL_ISA {
namespace {

constexpr double kA = 0.625, kA2 = kA * kA, kB = 1.5, kB2 = kB * kB;
constexpr double kScale0 = 1 / (kA2 * kB2), kScaleA = 1 / (2 * kA2 * (kA2 - kB2)),
                 kScaleB = 1 / (2 * kB2 * (kB2 - kA2));

struct OfInput {
  static constexpr int from = 6, to = 6;
  template <class T>
  RL_INLINE static void line(const Vec<T>* d, Vec<T>* v) {
    const Vec<T> a_even = d[4] - T(kB2) * d[2], a_odd = T(kA) * (d[3] - T(kB2) * d[1]);
    const Vec<T> b_even = d[4] - T(kA2) * d[2], b_odd = T(kB) * (d[3] - T(kA2) * d[1]);
    v[0] = d[4] - T(kA2 + kB2) * d[2] + T(kA2 * kB2) * d[0];
    v[1] = a_even + a_odd;
    v[2] = a_even - a_odd;
    v[3] = b_even + b_odd;
    v[4] = b_even - b_odd;
    v[5] = d[5] - T(kA2 + kB2) * d[3] + T(kA2 * kB2) * d[1];
  }
};
struct OfWeight {
  static constexpr int from = 3, to = 6;
  template <class T>
  RL_INLINE static void line(const Vec<T>* g, Vec<T>* u) {
    const Vec<T> a_even = T(kScaleA) * (g[0] + T(kA2) * g[2]), a_odd = T(kScaleA * kA) * g[1];
    const Vec<T> b_even = T(kScaleB) * (g[0] + T(kB2) * g[2]), b_odd = T(kScaleB * kB) * g[1];
    u[0] = T(kScale0) * g[0];
    u[1] = a_even + a_odd;
    u[2] = a_even - a_odd;
    u[3] = b_even + b_odd;
    u[4] = b_even - b_odd;
    u[5] = g[2];
  }
};
struct OfSums {
  static constexpr int from = 6, to = 4;
  template <class T>
  RL_INLINE static void line(const Vec<T>* m, Vec<T>* y) {
    const Vec<T> a_even = m[1] + m[2], a_odd = m[1] - m[2], b_even = m[3] + m[4], b_odd = m[3] - m[4];
    y[0] = m[0] + a_even + b_even;
    y[1] = T(kA) * a_odd + T(kB) * b_odd;
    y[2] = T(kA2) * a_even + T(kB2) * b_even;
    y[3] = T(kA * kA2) * a_odd + T(kB * kB2) * b_odd + m[5];
  }
};
// The transposes of OfSums and OfWeight, for the gradient of the weights.
struct OfOutputGradient {
  static constexpr int from = 4, to = 6;
  template <class T>
  RL_INLINE static void line(const Vec<T>* y, Vec<T>* m) {
    const Vec<T> a_even = y[0] + T(kA2) * y[2], a_odd = T(kA) * (y[1] + T(kA2) * y[3]);
    const Vec<T> b_even = y[0] + T(kB2) * y[2], b_odd = T(kB) * (y[1] + T(kB2) * y[3]);
    m[0] = y[0];
    m[1] = a_even + a_odd;
    m[2] = a_even - a_odd;
    m[3] = b_even + b_odd;
    m[4] = b_even - b_odd;
    m[5] = y[3];
  }
};
struct OfWeightSums {
  static constexpr int from = 6, to = 3;
  template <class T>
  RL_INLINE static void line(const Vec<T>* u, Vec<T>* g) {
    const Vec<T> a_even = T(kScaleA) * (u[1] + u[2]), a_odd = T(kScaleA) * (u[1] - u[2]);
    const Vec<T> b_even = T(kScaleB) * (u[3] + u[4]), b_odd = T(kScaleB) * (u[3] - u[4]);
    g[0] = T(kScale0) * u[0] + a_even + b_even;
    g[1] = T(kA) * a_odd + T(kB) * b_odd;
    g[2] = T(kA2) * a_even + T(kB2) * b_even + u[5];
  }
};

// The map of a square, by its columns, then its rows: `get(i, j)` reads a vector of it, `put(i, j, v)` takes one of the
// result.
template <class T, class Transform, class Get, class Put>
RL_INLINE inline void transform_square(const Get& get, const Put& put) {
  constexpr int from = Transform::from, to = Transform::to;
  Vec<T> half[to][from];
  for (int j = 0; j < from; ++j) {
    Vec<T> column[from], out[to];
    repeat<from>([&](auto i) RL_INLINE { column[i.value] = get(i.value, j); });
    Transform::template line<T>(column, out);
    repeat<to>([&](auto i) RL_INLINE { half[i.value][j] = out[i.value]; });
  }
  for (int i = 0; i < to; ++i) {
    Vec<T> out[to];
    Transform::template line<T>(half[i], out);
    repeat<to>([&](auto j) RL_INLINE { put(i, j.value, out[j.value]); });
  }
}

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
