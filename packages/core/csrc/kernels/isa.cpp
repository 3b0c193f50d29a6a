#include "isa.h"

#include <cstdlib>
#include <cstring>

namespace rl {
namespace {

Isa detect() {
  Isa best = Isa::Base;
#if defined(RL_HAVE_AVX2)
  // The features of x86-64-v3 and x86-64-v4; the built-in also checks that the system saves their registers.
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
      __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c")) {
    best = Isa::Avx2;
  }
#endif
#if defined(RL_HAVE_AVX512)
  if (best == Isa::Avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    best = Isa::Avx512;
  }
#endif
  return best;
}

Isa choose() {
  const Isa best = detect();
  const char* wanted = std::getenv("RUSHLIGHT_ISA");
  if (wanted == nullptr) return best;
  const Isa limit = std::strcmp(wanted, "base") == 0   ? Isa::Base
                    : std::strcmp(wanted, "avx2") == 0 ? Isa::Avx2
                                                       : Isa::Avx512;
  return limit < best ? limit : best;
}

}  // namespace

Isa isa() {
  static const Isa chosen = choose();
  return chosen;
}

}  // namespace rl
