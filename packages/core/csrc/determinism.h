// What rushlight.use_deterministic_algorithms asks for: set from Python, read by kernels on any thread.
#pragma once
#include <atomic>

namespace rl {

struct Determinism {
  std::atomic<bool> on{false};               // ops whose result the order of threads decides raise
  std::atomic<bool> warn_only{false};        // they warn instead
  std::atomic<bool> fills_memory{true};      // with `on`, memory that would be uninitialised holds a known value
  std::atomic<bool> batch_invariant{false};  // a row's result does not depend on the rows beside it
};

inline Determinism g_determinism;

}  // namespace rl
