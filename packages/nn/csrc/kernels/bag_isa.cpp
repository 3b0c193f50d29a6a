// Bags of embeddings, compiled once per instruction set.
#include "bag.h"

#include "runtime.h"
#include "rushlight/simd.h"

namespace rl {
namespace RL_ISA {
namespace {

constexpr int64_t kGrain = 1 << 14;  // elements that are worth a thread

// Asks for the row of an index that comes soon: rows of a large table are far apart.
template <class T>
RL_INLINE inline void prefetch(const Bags& g, int64_t i, int64_t end, const T* table) {
  constexpr int64_t kAhead = 8, kLine = 64 / static_cast<int64_t>(sizeof(T)), kMost = 8 * kLine;
  if (i + kAhead >= end) return;
  const T* row = table + g.indices[i + kAhead] * g.width;
  for (int64_t j = 0; j < least(g.width, kMost); j += kLine) __builtin_prefetch(row + j);
}

// What the rows of a bag are multiplied by, without their factors.
template <class T>
T share(const Bags& g, int64_t bag) {
  if (g.mode != BagMode::Mean) return 1;
  int64_t count = 0;
  for (int64_t i = g.bounds[bag]; i < g.bounds[bag + 1]; ++i) count += g.indices[i] != g.padding;
  return count > 1 ? T(1) / static_cast<T>(count) : T(1);
}

template <class T>
void max_bag(const Bags& g, int64_t bag, const T* table, T* y, int64_t* source) {
  bool first = true;
  for (int64_t i = g.bounds[bag]; i < g.bounds[bag + 1]; ++i) {
    const int64_t row = g.indices[i];
    if (row == g.padding) continue;
    const T* x = table + row * g.width;
    for (int64_t j = 0; j < g.width; ++j) {
      if (first || x[j] > y[j] || x[j] != x[j]) y[j] = x[j], source[j] = row;
    }
    first = false;
  }
}

template <class T>
void forward(const Bags& g, const void* table_, void* y_, int64_t* source) {
  const T *table = static_cast<const T*>(table_), *factors = static_cast<const T*>(g.factors);
  const int64_t length = g.bounds[g.bags] - g.bounds[0], each = g.bags == 0 ? 0 : length / g.bags + 1;
  parallel_for(0, g.bags, kGrain / (each * g.width + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t bag = begin; bag < end; ++bag) {
      T* y = static_cast<T*>(y_) + bag * g.width;
      for (int64_t j = 0; j < g.width; ++j) y[j] = T(0);
      if (g.mode == BagMode::Max) {
        for (int64_t j = 0; j < g.width; ++j) source[bag * g.width + j] = 0;
        max_bag(g, bag, table, y, source + bag * g.width);
        continue;
      }
      for (int64_t i = g.bounds[bag]; i < g.bounds[bag + 1]; ++i) {
        prefetch(g, i, g.bounds[g.bags], table);
        if (g.indices[i] == g.padding) continue;
        const T* x = table + g.indices[i] * g.width;
        const T by = factors == nullptr ? T(1) : factors[i];
        for (int64_t j = 0; j < g.width; ++j) y[j] += by * x[j];
      }
      const T all = share<T>(g, bag);
      if (all != T(1)) {
        for (int64_t j = 0; j < g.width; ++j) y[j] *= all;
      }
    }
  });
}

// Threads share the columns, so that none writes where another does.
template <class T>
void backward(const Bags& g, const void* dy_, const int64_t* source, void* dtable_) {
  const T *dy = static_cast<const T*>(dy_), *factors = static_cast<const T*>(g.factors);
  T* dtable = static_cast<T*>(dtable_);
  parallel_for(0, g.rows * g.width, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) dtable[i] = T(0);
  });
  const int64_t length = g.bounds[g.bags] - g.bounds[0];
  const int64_t grain = most(kGrain / (length + 1) + 1, parts(g.width, runtime.num_threads()));
  parallel_for(0, g.width, grain, [&](int64_t left, int64_t right) {
    for (int64_t bag = 0; bag < g.bags; ++bag) {
      const T* from = dy + bag * g.width;
      if (g.mode == BagMode::Max) {
        bool any = false;
        for (int64_t i = g.bounds[bag]; i < g.bounds[bag + 1]; ++i) any |= g.indices[i] != g.padding;
        for (int64_t j = left; any && j < right; ++j) dtable[source[bag * g.width + j] * g.width + j] += from[j];
        continue;
      }
      const T all = share<T>(g, bag);
      for (int64_t i = g.bounds[bag]; i < g.bounds[bag + 1]; ++i) {
        if (g.indices[i] == g.padding) continue;
        const T by = factors == nullptr ? all : all * factors[i];
        T* to = dtable + g.indices[i] * g.width;
        for (int64_t j = left; j < right; ++j) to[j] += by * from[j];
      }
    }
  });
}

template <class T>
void backward_factors(const Bags& g, const void* table_, const void* dy_, void* dfactors_) {
  const T *table = static_cast<const T*>(table_), *dy = static_cast<const T*>(dy_);
  T* dfactors = static_cast<T*>(dfactors_);
  parallel_for(0, g.bags, kGrain / (g.width + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t bag = begin; bag < end; ++bag) {
      for (int64_t i = g.bounds[bag]; i < g.bounds[bag + 1]; ++i) {
        T sum = 0;
        if (g.indices[i] != g.padding) {
          const T *x = table + g.indices[i] * g.width, *from = dy + bag * g.width;
          for (int64_t j = 0; j < g.width; ++j) sum += x[j] * from[j];
        }
        dfactors[i] = sum;
      }
    }
  });
}

}  // namespace

void fill_bag(BagTable& table) {
  table.forward[0] = forward<float>;
  table.forward[1] = forward<double>;
  table.backward[0] = backward<float>;
  table.backward[1] = backward<double>;
  table.backward_factors[0] = backward_factors<float>;
  table.backward_factors[1] = backward_factors<double>;
}

}  // namespace RL_ISA
}  // namespace rl
