// Distances between the rows of two matrices, in the p-norm of their difference.
#pragma once
#include <cstdint>

#include "rushlight/isa.h"

namespace rl {

enum class Norm : uint8_t { Count, One, Two, Other, Largest };  // p = 0, 1, 2, any, infinity
constexpr int kNumNorms = 5;

template <class T>
struct DistanceLoops {
  // out[j] = |a - b[j]| for one row `a` of m elements and n rows `b`, which come transposed: (m, n).
  using Distances = void (*)(const T* a, const T* b, T* out, int64_t n, int64_t m, T p);
  // out = sum over j of grad[j] times the derivative of |a - b[j]|, whose value is distances[j], by a; b is (n, m).
  using Gradient = void (*)(const T* a, const T* b, const T* grad, const T* distances, T* out, int64_t n, int64_t m,
                            T p);
  Distances distances[kNumNorms];
  Gradient gradient[kNumNorms];
};

struct DistanceTable {
  DistanceLoops<float> floats;
  DistanceLoops<double> doubles;
};

}  // namespace rl

RL_ISA_DECLARE(fill_distances, DistanceTable)
