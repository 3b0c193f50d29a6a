// Arithmetic of unevaluated sums of two doubles, for ISA sources: T. J. Dekker, A floating-point technique for
// extending the precision (1971).
#pragma once
#include <rushlight/vecmath.h>

namespace rl {
namespace RL_ISA {
namespace {

using vm::Pair;

RL_INLINE Pair sum_of(double a, double b) {
  const double s = a + b, c = s - a;
  return {s, (a - (s - c)) + (b - c)};
}

RL_INLINE Pair operator+(Pair a, Pair b) {
  const Pair s = sum_of(a.hi, b.hi);
  return vm::exact_sum(s.hi, s.lo + (a.lo + b.lo));
}

RL_INLINE Pair operator-(Pair a, Pair b) { return a + Pair{-b.hi, -b.lo}; }

RL_INLINE Pair operator*(Pair a, Pair b) {
  const Pair p = vm::exact_product(a.hi, b.hi);
  return {p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi)};
}

RL_INLINE Pair operator/(Pair a, Pair b) {
  const double quotient = a.hi / b.hi;
  const Pair back = vm::exact_product(quotient, b.hi);
  return {quotient, (((a.hi - back.hi) - back.lo) + (a.lo - quotient * b.lo)) / b.hi};
}

RL_INLINE Pair root_of(Pair a) {
  const double root = vm::sqrt(a.hi);
  const Pair square = vm::exact_product(root, root);
  return {root, root > 0 ? (((a.hi - square.hi) - square.lo) + a.lo) / (2 * root) : 0};
}

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
