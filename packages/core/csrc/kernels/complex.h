// Complex arithmetic for the kernels: a plain struct, so that its loops vectorise and no std template is shared
// between instruction sets.
#pragma once
#include "rushlight/loop.h"

namespace rl {
namespace RL_ISA {

template <class T>
static inline Complex<T> operator+(Complex<T> a, Complex<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
static inline Complex<T> operator-(Complex<T> a, Complex<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T>
static inline Complex<T> operator-(Complex<T> a) {
  return {-a.re, -a.im};
}
template <class T>
static inline Complex<T> operator*(Complex<T> a, Complex<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
// R. L. Smith, Algorithm 116: Complex division (1962), without its branch.
template <class T>
static inline Complex<T> operator/(Complex<T> a, Complex<T> b) {
  const bool wide = __builtin_fabs(b.re) >= __builtin_fabs(b.im);
  const T large = wide ? b.re : b.im, small = wide ? b.im : b.re;
  const bool zero = (b.re == 0) & (b.im == 0);  // each part is divided by zero then
  const T ratio = small / large;
  const T denominator = zero ? T(0) : large + small * ratio;
  const T re = zero ? a.re : wide ? a.re + a.im * ratio : a.re * ratio + a.im;
  const T im = zero ? a.im : wide ? a.im - a.re * ratio : a.im * ratio - a.re;
  return {re / denominator, im / denominator};
}
template <class T>
static inline bool operator==(Complex<T> a, Complex<T> b) {
  return (a.re == b.re) & (a.im == b.im);
}
template <class T>
static inline bool operator!=(Complex<T> a, Complex<T> b) {
  return !(a == b);
}

}  // namespace RL_ISA
}  // namespace rl
