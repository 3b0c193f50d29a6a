// Parts of vectors and complex numbers in real parts, for ISA sources (see rushlight/isa.h).
#pragma once
#include <rushlight/simd.h>

#include <complex>

namespace rl {
namespace RL_ISA {
namespace {

// How a vector's worth of memory is read and written: all of it, or the part that exists.
struct Whole {
  template <class R>
  Vec<R> get(const R* p) const {
    return load(p);
  }
  template <class R>
  void put(R* p, Vec<R> v) const {
    store(p, v);
  }
};
struct Part {
  int64_t n;
  template <class R>
  Vec<R> get(const R* p) const {
    return load(p, n);
  }
  template <class R>
  void put(R* p, Vec<R> v) const {
    store(p, v, n);
  }
};
template <class R, class F>
RL_INLINE inline void by_vectors(int64_t begin, int64_t end, const F& body) {
  for (; begin + kLanes<R> <= end; begin += kLanes<R>) body(begin, Whole{});
  if (begin < end) body(begin, Part{end - begin});
}

// ---- complex numbers, or real ones whose imaginary part is never looked at

template <class R, int P>
struct Number {
  R re, im;
  static Number at(const R* p) { return {p[0], P == 2 ? p[P - 1] : R(0)}; }
  void to(R* p) const {
    p[0] = re;
    if (P == 2) p[P - 1] = im;
  }
  Number conj() const { return {re, -im}; }
  Number operator+(Number b) const { return {re + b.re, im + b.im}; }
  Number operator-(Number b) const { return {re - b.re, im - b.im}; }
  Number operator*(Number b) const {
    if constexpr (P == 1)
      return {re * b.re, 0};
    else
      return {re * b.re - im * b.im, re * b.im + im * b.re};
  }
};

// What the parts of a turned vector are multiplied by, so that they add up to the vector times a number.
template <class R, int P>
struct Factor {
  Vec<R> part[P];
  explicit Factor(Number<R, P> x) {
    part[0] = splat(x.re);
    if constexpr (P == 2) part[1] = splat(x.im);
  }
  Factor() = default;
};

// The product of a column's adjoint and a vector, from the sums of the column times the turned vector.
template <class R, int P>
Number<R, P> adjoint_dot(const Vec<R> (&sums)[P]) {
  return {sum_lanes<R>(sums[0]), P == 2 ? -sum_lanes<R>(sums[P - 1]) : R(0)};
}

// (-im, re) of the pairs (re, im).
template <class R>
RL_INLINE inline Vec<R> turned(Vec<R> x) {
#if defined(__clang__)
  Vec<R> swapped;
  for (int i = 0; i < kLanes<R>; ++i) swapped[i] = x[i ^ 1];
#else
  Vec<IntOf<R>> order;
  repeat<kLanes<R>>([&](auto i) RL_INLINE { order[i.value] = i.value ^ 1; });
  const Vec<R> swapped = __builtin_shuffle(x, order);
#endif
  Vec<R> sign;
  repeat<kLanes<R>>([&](auto i) RL_INLINE { sign[i.value] = i.value % 2 ? R(1) : R(-1); });
  return swapped * sign;
}
// Smith, "Algorithm 116: complex division" (1962).
template <class R, int P>
Number<R, P> operator/(Number<R, P> a, Number<R, P> b) {
  if constexpr (P == 1) return {a.re / b.re, 0};
  const bool wide = (b.re < 0 ? -b.re : b.re) >= (b.im < 0 ? -b.im : b.im);
  const R ratio = wide ? b.im / b.re : b.re / b.im, length = wide ? b.re + b.im * ratio : b.im + b.re * ratio;
  return wide ? Number<R, P>{(a.re + a.im * ratio) / length, (a.im - a.re * ratio) / length}
              : Number<R, P>{(a.re * ratio + a.im) / length, (a.im * ratio - a.re) / length};
}

template <class R>
R square_root(R x) {
  return sizeof(R) == 8 ? static_cast<R>(__builtin_sqrt(x)) : static_cast<R>(__builtin_sqrtf(x));
}

// ---- transposes

template <class R, int P, class T>
void transpose_elements(int64_t m, int64_t n, const T* from, int64_t ld, T* to, int64_t ld_to) {
  using Element = std::conditional_t<P * sizeof(R) == 4, float, double>;  // a complex float as a double
  if constexpr (P * sizeof(R) == sizeof(Element)) {
    transpose(reinterpret_cast<const Element*>(from), ld, m, n, reinterpret_cast<Element*>(to), ld_to);
  } else {
    constexpr int64_t kSide = 4;  // a line of memory
    const auto* source = reinterpret_cast<const R*>(from);
    auto* target = reinterpret_cast<R*>(to);
    for (int64_t i0 = 0; i0 < m; i0 += kSide)
      for (int64_t j = 0; j < n; ++j)
        for (int64_t i = i0; i < least(i0 + kSide, m); ++i)
          std::memcpy(target + (j * ld_to + i) * P, source + (i * ld + j) * P, P * sizeof(R));
  }
}

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
