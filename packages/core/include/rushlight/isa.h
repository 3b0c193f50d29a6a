// Run-time choice of the instruction set that the kernels were compiled for.
//
// An ISA source is compiled once per instruction set with -DRL_ISA=base|avx2|avx512. All its code lives in
// rl::RL_ISA, and it exports one function that fills a table:
//
//   RL_ISA_DECLARE(fill_pointwise, LoopTable)   // in a header, outside every namespace: the declarations
//   RL_ISA_CALL(fill_pointwise, table);         // in a plain source: calls the best one that this machine can run
//
// Such a source must not instantiate std templates or inline functions with external linkage: the linker keeps one
// copy of each, and it may be the one compiled for a newer machine.
#pragma once

#include <cstdlib>
#include <cstring>

namespace rl {

enum class Isa : int { Base = 0, Avx2 = 1, Avx512 = 2 };

// The best instruction set that was compiled in, that this CPU has and that the environment variable RUSHLIGHT_ISA
// (base, avx2 or avx512) allows.
inline Isa isa() {
  static const Isa chosen = [] {
    Isa best = Isa::Base;
#if defined(RL_HAVE_AVX2)
    // The features of x86-64-v3 and x86-64-v4, as far as all compilers have names for them: what has AVX2 has the
    // rest. The built-in also checks that the system saves their registers.
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
        __builtin_cpu_supports("bmi2")) {
      best = Isa::Avx2;
    }
#endif
#if defined(RL_HAVE_AVX512)
    if (best == Isa::Avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
      best = Isa::Avx512;
    }
#endif
    const char* wanted = std::getenv("RUSHLIGHT_ISA");
    if (wanted == nullptr) return best;
    const Isa limit = std::strcmp(wanted, "base") == 0   ? Isa::Base
                      : std::strcmp(wanted, "avx2") == 0 ? Isa::Avx2
                                                         : Isa::Avx512;
    return limit < best ? limit : best;
  }();
  return chosen;
}

}  // namespace rl

#if defined(RL_HAVE_AVX2)
#define RL_ISA_DECLARE_AVX2(fn, Table) \
  namespace avx2 {                     \
  void fn(Table&);                     \
  }
#define RL_ISA_CALL_AVX2(fn, table) ::rl::isa() == ::rl::Isa::Avx2 ? ::rl::avx2::fn(table):
#else
#define RL_ISA_DECLARE_AVX2(fn, Table)
#define RL_ISA_CALL_AVX2(fn, table)
#endif

#if defined(RL_HAVE_AVX512)
#define RL_ISA_DECLARE_AVX512(fn, Table) \
  namespace avx512 {                     \
  void fn(Table&);                       \
  }
#define RL_ISA_CALL_AVX512(fn, table) ::rl::isa() == ::rl::Isa::Avx512 ? ::rl::avx512::fn(table):
#else
#define RL_ISA_DECLARE_AVX512(fn, Table)
#define RL_ISA_CALL_AVX512(fn, table)
#endif

#define RL_ISA_DECLARE(fn, Table)  \
  namespace rl {                   \
  namespace base {                 \
  void fn(Table&);                 \
  }                                \
  RL_ISA_DECLARE_AVX2(fn, Table)   \
  RL_ISA_DECLARE_AVX512(fn, Table) \
  }
#define RL_ISA_CALL(fn, table) (RL_ISA_CALL_AVX512(fn, table) RL_ISA_CALL_AVX2(fn, table)::rl::base::fn(table))
