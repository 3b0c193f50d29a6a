#include "iterator.h"

#include <atomic>
#include <chrono>

#include "../parallel.h"
#include "copy.h"
#include "nest.h"

namespace rl {

Nest::Nest(int dims, const int64_t* sizes, int operands, const int64_t* const* steps) : nops(operands) {
  for (int d = dims - 1; d >= 0; --d) {
    numel *= sizes[d];
    if (sizes[d] == 1) continue;
    // Insertion, innermost first. Operands that broadcast along a dimension have no opinion.
    const auto belongs_inside = [&](int other) {
      for (int k = 0; k < nops; ++k) {
        const int64_t a = steps[k][d] < 0 ? -steps[k][d] : steps[k][d];
        const int64_t b = strides[other][k] < 0 ? -strides[other][k] : strides[other][k];
        if (a != b && a != 0 && b != 0) return a < b;
      }
      return false;
    };
    int at = ndim++;
    for (; at > 0 && belongs_inside(at - 1); --at) {
      shape[at] = shape[at - 1];
      for (int k = 0; k < nops; ++k) strides[at][k] = strides[at - 1][k];
    }
    shape[at] = sizes[d];
    for (int k = 0; k < nops; ++k) strides[at][k] = steps[k][d];
  }
  if (ndim == 0) {
    ndim = 1;
    shape[0] = 1;
    for (int k = 0; k < nops; ++k) strides[0][k] = 0;
  }
  int last = 0;
  for (int d = 1; d < ndim; ++d) {
    bool merges = true;
    for (int k = 0; k < nops; ++k) merges &= strides[d][k] == strides[last][k] * shape[last];
    if (merges) {
      shape[last] *= shape[d];
    } else {
      ++last;
      shape[last] = shape[d];
      for (int k = 0; k < nops; ++k) strides[last][k] = strides[d][k];
    }
  }
  ndim = last + 1;
}

namespace {

// Below this many elements not even the dearest loop is worth a second thread.
constexpr int64_t kSmall = 8192;
constexpr int64_t kProbe = 2048;
constexpr int kProbes = 8;
constexpr double kGrainNanoseconds = 2000;
constexpr double kRowNanoseconds =
    8;  // beside its elements, which the cost of a loop does not know when it has long rows

// Nanoseconds per element of a loop: the least of some probes, since the first ones also pay for cold memory. Two loops
// that share a slot take turns to learn.
struct LoopCost {
  std::atomic<Loop> loop{nullptr};
  std::atomic<int> probes{0};
  std::atomic<float> cost{0};

  void learn(float measured) {
    const int before = probes.load(std::memory_order_relaxed);
    const float least = cost.load(std::memory_order_relaxed);
    cost.store(before == 0 || measured < least ? measured : least, std::memory_order_relaxed);
    probes.store(before + 1, std::memory_order_relaxed);
  }
};

LoopCost& cost_of(Loop loop) {
  static LoopCost costs[256];
  LoopCost& slot = costs[(reinterpret_cast<uintptr_t>(loop) >> 4) % 256];
  if (slot.loop.load(std::memory_order_relaxed) != loop) {
    slot.loop.store(loop, std::memory_order_relaxed);
    slot.probes.store(0, std::memory_order_relaxed);
  }
  return slot;
}

int64_t nanoseconds() {
  using namespace std::chrono;
  return duration_cast<std::chrono::nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

void run_rows(Loop loop, const Nest& nest, char* const* data, const void* params, int64_t begin, int64_t end) {
  nest.walk(data, begin, end, [&](char* const* at, int64_t count) { loop(at, nest.strides[0], count, params); });
}

// ---- Short rows ----

constexpr int64_t kShortRow = 32;
constexpr int64_t kPackedBytes = 4096;

// Rows that are short beside the next dimension, which the output walks without a gap.
bool has_short_rows(const Nest& nest, const int64_t* sizes) {
  if (sizes == nullptr || nest.ndim < 2 || nest.shape[0] >= kShortRow || nest.shape[1] < kShortRow) return false;
  return nest.strides[0][0] == sizes[0] && nest.strides[1][0] == sizes[0] * nest.shape[0];
}

template <class T>
void pack_rows(const char* in, int64_t along, int64_t down, int64_t row, int64_t rows, char* out) {
  T* o = reinterpret_cast<T*>(out);
  for (int64_t r = 0; r < rows; ++r, in += down) {
    for (int64_t i = 0; i < row; ++i) *o++ = *reinterpret_cast<const T*>(in + i * along);
  }
}

struct Bits128 {
  uint64_t low, high;
};

void pack_rows(int64_t size, const char* in, int64_t along, int64_t down, int64_t row, int64_t rows, char* out) {
  switch (size) {
    case 1: return pack_rows<uint8_t>(in, along, down, row, rows, out);
    case 2: return pack_rows<uint16_t>(in, along, down, row, rows, out);
    case 4: return pack_rows<uint32_t>(in, along, down, row, rows, out);
    case 8: return pack_rows<uint64_t>(in, along, down, row, rows, out);
    default: return pack_rows<Bits128>(in, along, down, row, rows, out);
  }
}

// Several rows a call: operands that walk dimensions 0 and 1 without a gap as they are, the others through buffers.
void run_short_rows(Loop loop, const Nest& nest, char* const* data, const void* params, const int64_t* sizes,
                    int64_t begin, int64_t end) {
  alignas(64) char buffers[kMaxOperands][kPackedBytes];
  const int64_t row = nest.shape[0], most = kPackedBytes / (row * 16);
  bool direct[kMaxOperands];
  for (int k = 0; k < nest.nops; ++k) {
    direct[k] = nest.strides[0][k] == sizes[k] && nest.strides[1][k] == sizes[k] * row;
  }
  // The nest of whole rows, whose innermost dimension is dimension 1.
  Nest outer = nest;
  --outer.ndim;
  for (int d = 0; d < outer.ndim; ++d) {
    outer.shape[d] = nest.shape[d + 1];
    for (int k = 0; k < nest.nops; ++k) outer.strides[d][k] = nest.strides[d + 1][k];
  }
  outer.walk(data, begin / row, end / row, [&](char* const* at, int64_t rows) {
    for (int64_t r = 0; r < rows; r += most) {
      const int64_t m = rows - r < most ? rows - r : most;
      char* operands[kMaxOperands];
      for (int k = 0; k < nest.nops; ++k) {
        operands[k] = at[k] + r * nest.strides[1][k];
        if (direct[k]) continue;
        // What repeats in every row is packed once.
        if (r == 0 || nest.strides[1][k] != 0) {
          pack_rows(sizes[k], operands[k], nest.strides[0][k], nest.strides[1][k], row, m, buffers[k]);
        }
        operands[k] = buffers[k];
      }
      loop(operands, sizes, m * row, params);
    }
  });
}

// ---- Transposed inputs ----

constexpr int64_t kTileRows = 64;
constexpr int64_t kTileBytes = 32 * 1024;  // of a transposed input
constexpr int64_t kLeastRows = 8;          // below, turning does not pay
constexpr int64_t kTilesPerGrain = 4;
constexpr int kMaxTransposed = 2;

// Dense along dimension d, where the output is along the innermost one.
bool is_transposed(const Nest& nest, int k, int d, const int64_t* sizes) {
  return nest.strides[0][k] != sizes[k] && nest.strides[0][k] != 0 && nest.strides[d][k] == sizes[k];
}

// The dimension along which an input is dense instead of the innermost one; 0: there is none.
int transposed_dimension(const Nest& nest, const int64_t* sizes) {
  if (sizes == nullptr || nest.strides[0][0] != sizes[0] || nest.shape[0] < kShortRow) return 0;
  for (int d = 1; d < nest.ndim; ++d) {
    if (nest.shape[d] < kLeastRows) continue;
    for (int k = 1; k < nest.nops; ++k) {
      if (is_transposed(nest, k, d, sizes)) return d;
    }
  }
  return 0;
}

// By tiles whose transposed inputs are turned first: an element of theirs at a time would cost a line of the cache.
void run_tiles(Loop loop, const Nest& nest, char* const* data, const void* params, const int64_t* sizes, int d) {
  int64_t widest = 1;
  for (int k = 1; k < nest.nops; ++k) {
    if (is_transposed(nest, k, d, sizes) && sizes[k] > widest) widest = sizes[k];
  }
  const Nest::Tiles tiles{d, kTileBytes / (kTileRows * widest), kTileRows};
  parallel_for(0, nest.count(tiles), kTilesPerGrain, [&](int64_t begin, int64_t end) {
    alignas(64) char buffers[kMaxTransposed][kTileBytes];
    nest.walk(tiles, data, begin, end, [&](char* const* at, int64_t columns, int64_t rows) {
      char* operands[kMaxOperands];
      int64_t along[kMaxOperands], down[kMaxOperands];
      int turned = 0;
      for (int k = 0; k < nest.nops; ++k) {
        operands[k] = at[k], along[k] = nest.strides[0][k], down[k] = nest.strides[d][k];
        if (!is_transposed(nest, k, d, sizes) || turned == kMaxTransposed) continue;
        operands[k] = buffers[turned++], along[k] = sizes[k], down[k] = columns * sizes[k];
        find_transpose(sizes[k])(at[k], nest.strides[0][k], columns, rows, operands[k], down[k]);
      }
      for (int64_t r = 0; r < rows; ++r) {
        loop(operands, along, columns, params);
        for (int k = 0; k < nest.nops; ++k) operands[k] += down[k];
      }
    });
  });
}

}  // namespace

void run_pointwise(Loop loop, int ndim, const int64_t* shape, int nops, char* const* data,
                   const int64_t* const* strides, const void* params, const int64_t* sizes) {
  if (ndim <= 1 && (ndim == 0 || shape[0] < kSmall)) {
    int64_t steps[kMaxOperands];
    for (int k = 0; k < nops; ++k) steps[k] = ndim == 0 ? 0 : strides[k][0];
    return loop(data, steps, ndim == 0 ? 1 : shape[0], params);
  }
  const Nest nest(ndim, shape, nops, strides);
  if (nest.numel == 0) return;
  if (nest.numel >= kSmall) {
    if (const int d = transposed_dimension(nest, sizes)) return run_tiles(loop, nest, data, params, sizes, d);
  }
  // Work is cut at multiples of `unit` elements.
  const bool packs = has_short_rows(nest, sizes);
  const int64_t unit = packs ? nest.shape[0] : 1;
  const auto run = [&](int64_t begin, int64_t end) {
    packs ? run_short_rows(loop, nest, data, params, sizes, begin, end)
          : run_rows(loop, nest, data, params, begin, end);
  };
  if (nest.numel < kSmall || num_threads() == 1 || in_parallel_region()) return run(0, nest.numel);
  // The loops differ a hundredfold in cost: the first calls of a loop are timed.
  LoopCost& known = cost_of(loop);
  int64_t done = 0;
  if (known.probes.load(std::memory_order_relaxed) < kProbes) {
    const int64_t start = nanoseconds();
    done = kProbe / unit * unit;
    run(0, done);
    known.learn(static_cast<float>(nanoseconds() - start + 1) / static_cast<float>(done));
  }
  const double per_row = nest.ndim > 1 && !packs ? kRowNanoseconds / static_cast<double>(nest.shape[0]) : 0;
  const double cost = known.cost.load(std::memory_order_relaxed) + per_row;
  const int64_t rest = nest.numel - done;
  const int64_t least = static_cast<int64_t>(kGrainNanoseconds / cost) & -kProbe;
  const int64_t grain = !worth_threads(rest * cost) ? rest : least < kSmall ? kSmall : least;
  parallel_for(0, rest / unit, grain / unit,
               [&](int64_t begin, int64_t end) { run(begin * unit + done, end * unit + done); });
}

}  // namespace rl
