// Legendre functions as spherical harmonics take them, in pairs of doubles, since a recurrence and the cosine of an
// angle next to a pole both lose digits.
#include <rushlight/loop.h>

#include "kernels.h"
#include "pairs.h"
#include "segments.h"

namespace rl {
namespace RL_ISA {
namespace {

constexpr double kMaxDegree = 1 << 20;  // beyond, NaN: no call runs for hours

struct Turn {
  Pair sin, cos;
};

// Taylor's series of what multiples of pi / 2 leave, the late terms in double.
Turn turn(double x) {
  if (!(vm::abs(x) < vm::kTrigLimit)) return {{::sin(x), 0}, {::cos(x), 0}};
  const auto t = vm::trig_reduced(x);
  const Pair one{1, 0}, r{t.r, t.tail}, square = r * r;
  double s = 1, c = 1;
  for (int k = 10; k > 4; --k) {
    s = 1 - square.hi * s / (2 * k * (2 * k + 1));
    c = 1 - square.hi * c / ((2 * k - 1) * 2 * k);
  }
  Pair sine{s, 0}, cosine{c, 0};
  for (int k = 4; k > 0; --k) {
    sine = one - square * sine / Pair{2.0 * k * (2 * k + 1), 0};
    cosine = one - square * cosine / Pair{(2.0 * k - 1) * 2 * k, 0};
  }
  sine = r * sine;
  const Pair zero{0, 0}, parts[] = {sine, cosine, zero - sine, zero - cosine};
  return {parts[t.n & 3], parts[(t.n + 1) & 3]};
}

// sqrt((2 n + 1) / (4 pi) (n - m)! / (n + m)!) P_n^m(cos(phi)), with the phase of Condon and Shortley: DLMF 14.10.3 for
// functions with the same norm, up from n = m.
double polar(double m, double n, double phi) {
  if (phi != phi || m != ::rint(m) || n != ::rint(n) || !(n <= kMaxDegree)) return kNan;
  const double order = vm::abs(m);
  if (order > n) return 0;
  const Turn t = turn(phi);
  const Pair sine = t.sin.hi < 0 ? Pair{-t.sin.hi, -t.sin.lo} : t.sin;
  Pair before{0, 0}, now{0.28209479177387814, 3.83386490329147e-18};  // sqrt(1 / (4 pi))
  Pair square{1, 0};
  for (double k = 1; k <= order; ++k) {
    square = square * Pair{2 * k + 1, 0} / Pair{2 * k, 0};
    now = now * sine;
  }
  now = now * root_of(square);
  Pair weight{0, 0};
  for (double k = order + 1; k <= n; ++k) {
    const Pair next = root_of(Pair{(k - order) * (k + order), 0} / Pair{(2 * k - 1) * (2 * k + 1), 0});
    const Pair value = (t.cos * now - weight * before) / next;
    before = now;
    now = value;
    weight = next;
  }
  const double y = now.hi + now.lo;
  return m > 0 && ::fmod(m, 2) != 0 ? -y : y;
}

void dense(char* out, const char* const* in, int64_t n, const void*) {
  const double* operands[] = {reinterpret_cast<const double*>(in[0]), reinterpret_cast<const double*>(in[1]),
                              reinterpret_cast<const double*>(in[2])};
  for (int64_t i = 0; i < n; ++i) {
    reinterpret_cast<double*>(out)[i] = polar(operands[0][i], operands[1][i], operands[2][i]);
  }
}

void run(char* const* data, const int64_t* strides, int64_t n, const void* params) {
  constexpr Cell kCell = cell_of<double>();
  static constexpr Plan kPlan{dense, 1, 3, {kCell, kCell, kCell, kCell}};
  run_plan(kPlan, data, strides, n, params);
}

}  // namespace

void fill_harmonic(LoopTable& table) { table.set("special::_polar", DType::Float64, run); }

}  // namespace RL_ISA
}  // namespace rl
