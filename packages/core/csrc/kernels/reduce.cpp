#include "reduce.h"

#include <algorithm>
#include <cstring>

#include "../allocator.h"
#include "../determinism.h"
#include "../parallel.h"

namespace rl {
namespace {

struct Dim {
  int64_t size, stride;  // stride of the input in bytes
  int64_t out;           // kept dimensions: stride of the output in elements
};

constexpr int64_t kGrain = 40000;               // elements of cost 1 that are worth a thread
constexpr int64_t kShortRow = 256;              // below, rows are gathered into blocks
constexpr int64_t kMaxAcc = 32;                 // bytes of an accumulator
constexpr int64_t kLoadedColumns = 64;          // columns of a block that is loaded through the buffer
constexpr int64_t kBufferBytes = 128 << 10;     // kReduceRow or kReduceRows * kLoadedColumns of the widest type
constexpr int64_t kColumnTileBytes = 16 << 10;  // accumulators of a tile of columns stay in the first-level cache

int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

int64_t count(const Dim* dims, int n) {
  int64_t total = 1;
  for (int d = 0; d < n; ++d) total *= dims[d].size;
  return total;
}

// The sum over dimensions of the i-th index, the last varying fastest, times a stride. The first needs no division.
int64_t place_of(const Dim* dims, int n, int64_t i, int64_t Dim::* stride) {
  int64_t place = 0;
  for (int d = n - 1; d > 0; --d) {
    place += i % dims[d].size * (dims[d].*stride);
    i /= dims[d].size;
  }
  return n > 0 ? place + i * (dims[0].*stride) : 0;
}
int64_t offset_of(const Dim* dims, int n, int64_t i) { return place_of(dims, n, i, &Dim::stride); }
int64_t out_index(const Dim* dims, int n, int64_t i) { return place_of(dims, n, i, &Dim::out); }

// Merges neighbours that are one run of memory (and, where kept, of the output).
int merge_dims(Dim* dims, int n) {
  int last = 0;
  for (int d = 1; d < n; ++d) {
    Dim &outer = dims[last], &inner = dims[d];
    if (outer.stride == inner.size * inner.stride && outer.out == inner.size * inner.out) {
      outer = {outer.size * inner.size, inner.stride, inner.out};
    } else {
      dims[++last] = inner;
    }
  }
  return n == 0 ? 0 : last + 1;
}

// A binary counter of partial results: blocks that enter in order are merged as the nodes of one fixed tree, and the
// result over an aligned power of two of blocks is a node of it. That is what threads compute apart.
class Cascade {
 public:
  // Room for `blocks` blocks of m outputs.
  static int64_t bytes_for(const ReduceKernel& kernel, int64_t blocks, int64_t m) {
    int64_t levels = 2;
    while (blocks >>= 1) ++levels;
    return levels * m * kernel.acc_size;
  }

  Cascade(const ReduceKernel& kernel, char* levels, int64_t m)
      : kernel_(kernel), next_(levels), first_(levels), m_(m), bytes_(m * kernel.acc_size) {}

  // Where the result of the next block goes, before push().
  char* slot() { return next_; }

  void push() {
    next_ += bytes_;
    for (int64_t b = blocks_++; b & 1; b >>= 1) merge_top();
  }

  char* finish() {
    while (next_ - first_ > bytes_) merge_top();
    return first_;
  }

 private:
  void merge_top() {
    next_ -= bytes_;
    kernel_.merge(next_ - bytes_, next_, m_);
  }

  const ReduceKernel& kernel_;
  char *next_, *first_;
  int64_t m_, bytes_, blocks_ = 0;
};

class Reduction {
 public:
  Reduction(const ReduceKernel& kernel, const char* in, char* out, const ReduceParams& params)
      : kernel_(kernel), params_(params), in_(in), out_(out) {}

  void add_dims(int ndim, const int64_t* shape, const int64_t* strides, uint64_t mask);
  void run();

 private:
  void row_block(const char* in, int64_t n, int64_t start, char* acc, char* buffer) const;
  void dense_columns(const char* in, int64_t n, int64_t row_stride, int64_t m, int64_t start, char* acc,
                     char* buffer) const;
  void column_block(const char* in, int64_t n, int64_t m, int64_t start, char* acc, char* buffer) const;
  void reduce_blocks(int64_t offset, int64_t m, int64_t first, int64_t last, Cascade& cascade, char* buffer) const;
  void reduce_runs(int64_t offset, int64_t first, int64_t last, Cascade& cascade, char* buffer) const;
  void choose_columns();
  void store(const char* acc, int64_t m, int64_t index) const;
  void run_rows(int64_t work) const;

  const ReduceKernel& kernel_;
  ReduceParams params_;
  const char* in_;
  char* out_;
  Dim kept_[64], reduced_[64];  // outermost first
  int nkept_ = 0, nreduced_ = 0;

  // One output at a time along rows, or tiles of neighbouring outputs down the columns.
  bool columns_ = false;
  Dim column_{1, 0, 0};
  int64_t unroll_ = 1;                                  // rows of a narrow, dense matrix that are laid side by side
  int64_t runs_ = 1;                                    // rows in one block, where they are short
  int64_t inner_blocks_ = 1, block_size_ = kReduceRow;  // of the innermost reduced dimension
};

void Reduction::add_dims(int ndim, const int64_t* shape, const int64_t* strides, uint64_t mask) {
  int64_t out = 1;
  for (int d = ndim - 1; d >= 0; --d) {
    if (mask >> d & 1) continue;
    kept_[d] = {shape[d], strides[d], out};  // in place for now
    out *= shape[d];
  }
  for (int d = 0; d < ndim; ++d) {
    if (shape[d] == 1) continue;
    if (mask >> d & 1) {
      reduced_[nreduced_++] = {shape[d], strides[d], 0};
    } else {
      kept_[nkept_++] = kept_[d];
    }
  }
  if (!kernel_.positional && nreduced_ > 1) {
    std::stable_sort(reduced_, reduced_ + nreduced_,
                     [](const Dim& a, const Dim& b) { return magnitude(a.stride) > magnitude(b.stride); });
  }
  nkept_ = merge_dims(kept_, nkept_);
  nreduced_ = merge_dims(reduced_, nreduced_);
  const int64_t total = count(reduced_, nreduced_);
  if (nreduced_ == 0 || total == 0) {
    reduced_[0] = {total, 0, 0};
    nreduced_ = 1;
  }
}

void Reduction::choose_columns() {
  if (nkept_ == 0) return;
  int best = 0;
  for (int d = 1; d < nkept_; ++d) {
    if (magnitude(kept_[d].stride) <= magnitude(kept_[best].stride)) best = d;
  }
  const Dim& inner = reduced_[nreduced_ - 1];
  const bool nearer = magnitude(kept_[best].stride) < magnitude(inner.stride);
  const bool by_shape = !g_determinism.batch_invariant;  // the way of one output may depend on how many there are
  const bool short_rows = by_shape && inner.size < 16 && kept_[best].size > inner.size;
  if (!nearer && !short_rows) return;
  columns_ = true;
  column_ = kept_[best];
  for (int d = best; d + 1 < nkept_; ++d) kept_[d] = kept_[d + 1];
  --nkept_;
  block_size_ = kReduceRows;
  if (by_shape && !kernel_.positional && column_.size < 32 && inner.stride == column_.size * column_.stride) {
    while (unroll_ * column_.size < 64) unroll_ *= 2;
    block_size_ *= unroll_;
  }
}

void Reduction::row_block(const char* in, int64_t n, int64_t start, char* acc, char* buffer) const {
  const int64_t stride = reduced_[nreduced_ - 1].stride;
  if (!(kernel_.direct && stride == itemsize(kernel_.in))) {
    kernel_.load(in, stride, n, buffer);
    in = buffer;
  }
  kernel_.row(in, n, start, acc, params_);
}

// n rows of m columns.
void Reduction::dense_columns(const char* in, int64_t n, int64_t row_stride, int64_t m, int64_t start, char* acc,
                              char* buffer) const {
  if (kernel_.direct && column_.stride == itemsize(kernel_.in)) {
    return kernel_.columns(in, n, row_stride, m, start, acc, params_);
  }
  for (int64_t j = 0; j < m; j += kLoadedColumns) {
    const int64_t k = std::min(kLoadedColumns, m - j), bytes = k * kernel_.wide_size;
    for (int64_t r = 0; r < n; ++r) {
      kernel_.load(in + r * row_stride + j * column_.stride, column_.stride, k, buffer + r * bytes);
    }
    kernel_.columns(buffer, n, bytes, k, start, acc + j * kernel_.acc_size, params_);
  }
}

// The same; a narrow matrix is read as one of n / unroll_ rows, and its groups of columns are merged after.
void Reduction::column_block(const char* in, int64_t n, int64_t m, int64_t start, char* acc, char* buffer) const {
  const int64_t stride = reduced_[nreduced_ - 1].stride;
  if (unroll_ == 1 || n < unroll_) return dense_columns(in, n, stride, m, start, acc, buffer);
  alignas(64) char wide[2 * 64 * kMaxAcc], rest[32 * kMaxAcc];
  const int64_t rows = n / unroll_;
  dense_columns(in, rows, stride * unroll_, m * unroll_, start, wide, buffer);
  for (int64_t half = unroll_ / 2; half >= 1; half /= 2) {
    kernel_.merge(wide, wide + half * m * kernel_.acc_size, half * m);
  }
  if (n % unroll_ != 0) {
    dense_columns(in + rows * unroll_ * stride, n % unroll_, stride, m, start, rest, buffer);
    kernel_.merge(wide, rest, m);
  }
  std::memcpy(acc, wide, static_cast<size_t>(m * kernel_.acc_size));
}

void Reduction::reduce_blocks(int64_t offset, int64_t m, int64_t first, int64_t last, Cascade& cascade,
                              char* buffer) const {
  if (runs_ > 1) return reduce_runs(offset, first, last, cascade, buffer);
  const Dim& inner = reduced_[nreduced_ - 1];
  for (int64_t b = first; b < last;) {
    const int64_t outer = inner_blocks_ == 1 ? b : b / inner_blocks_;
    const char* in = in_ + offset + offset_of(reduced_, nreduced_ - 1, outer);
    const int64_t run_end = std::min(last, (outer + 1) * inner_blocks_);
    for (; b < run_end; ++b) {
      const int64_t start = (b - outer * inner_blocks_) * block_size_;
      const int64_t n = std::min(block_size_, inner.size - start);
      const char* at = in + start * inner.stride;
      if (columns_) {
        column_block(at, n, m, start, cascade.slot(), buffer);
      } else {
        row_block(at, n, start, cascade.slot(), buffer);
      }
      cascade.push();
    }
  }
}

// Blocks of runs_ short rows, gathered.
void Reduction::reduce_runs(int64_t offset, int64_t first, int64_t last, Cascade& cascade, char* buffer) const {
  const Dim& inner = reduced_[nreduced_ - 1];
  const int64_t total = count(reduced_, nreduced_ - 1);
  for (int64_t b = first; b < last; ++b) {
    const int64_t begin = b * runs_, end = std::min(total, begin + runs_);
    char* to = buffer;
    for (int64_t r = begin; r < end; ++r, to += inner.size * kernel_.wide_size) {
      kernel_.load(in_ + offset + offset_of(reduced_, nreduced_ - 1, r), inner.stride, inner.size, to);
    }
    kernel_.row(buffer, (end - begin) * inner.size, 0, cascade.slot(), params_);
    cascade.push();
  }
}

// Writes m results whose outputs are column_.out apart.
void Reduction::store(const char* acc, int64_t m, int64_t index) const {
  const int64_t out_size = itemsize(kernel_.out), second_size = itemsize(kernel_.in);
  char* second = params_.second;
  if (m == 1 || column_.out == 1) {
    return kernel_.finish(acc, m, out_ + index * out_size, second ? second + index * second_size : nullptr, params_);
  }
  for (int64_t j = 0; j < m; ++j, index += column_.out) {
    kernel_.finish(acc + j * kernel_.acc_size, 1, out_ + index * out_size,
                   second ? second + index * second_size : nullptr, params_);
  }
}

// Dense rows of one block each, finished some at a time.
void Reduction::run_rows(int64_t work) const {
  constexpr int64_t kAtOnce = 64;
  const Dim &rows = kept_[0], &inner = reduced_[nreduced_ - 1];
  parallel_for(0, rows.size, std::max<int64_t>(1, kGrain / work), [&](int64_t begin, int64_t end) {
    alignas(64) char acc[kAtOnce * kMaxAcc];
    for (int64_t i = begin; i < end; i += kAtOnce) {
      const int64_t n = std::min(kAtOnce, end - i);
      if (kernel_.rows != nullptr) {
        kernel_.rows(in_ + i * rows.stride, n, rows.stride, inner.size, acc, params_);
      } else {
        for (int64_t r = 0; r < n; ++r)
          kernel_.row(in_ + (i + r) * rows.stride, inner.size, 0, acc + r * kernel_.acc_size, params_);
      }
      char* second = params_.second ? params_.second + i * itemsize(kernel_.in) : nullptr;
      kernel_.finish(acc, n, out_ + i * itemsize(kernel_.out), second, params_);
    }
  });
}

void Reduction::run() {
  choose_columns();
  const Dim& inner = reduced_[nreduced_ - 1];
  inner_blocks_ = std::max<int64_t>(1, (inner.size + block_size_ - 1) / block_size_);
  if (!columns_ && nreduced_ > 1 && inner.size < kShortRow && !kernel_.positional)
    runs_ = kReduceRow / std::max<int64_t>(1, inner.size);
  const int64_t blocks = (count(reduced_, nreduced_ - 1) * inner_blocks_ + runs_ - 1) / runs_;
  const int64_t outer = count(kept_, nkept_);
  const int64_t elements = count(reduced_, nreduced_);
  const int64_t work = std::max<int64_t>(1, elements) * kernel_.cost;  // of one output
  params_.count = elements;

  // Tiles of outputs, smaller where there would be too few for the threads.
  int64_t tile = 1;
  if (columns_) {
    tile = std::min(column_.size, std::max<int64_t>(64, kColumnTileBytes / kernel_.acc_size));
    const int64_t tiles = (column_.size + tile - 1) / tile;
    tile = (column_.size + tiles - 1) / tiles;
  }
  const int64_t tiles = (column_.size + tile - 1) / tile;

  // Groups of blocks, if tiles alone do not occupy the threads.
  int64_t group = blocks;
  const int64_t wanted = 8 * num_threads();
  if (outer * tiles < wanted && work * outer * column_.size > 2 * kGrain) {
    group = 1;
    while (outer * tiles * (blocks / group) > 2 * wanted || work * tile / blocks * group < kGrain / 2) {
      if (group >= blocks) break;
      group *= 2;
    }
  }
  const int64_t groups = (blocks + group - 1) / group;
  const int64_t tasks = outer * tiles * groups;
  if (tasks == 0) return;

  const bool loads = runs_ > 1 || !kernel_.direct || (columns_ ? column_.stride : inner.stride) != itemsize(kernel_.in);
  if (!columns_ && !loads && blocks == 1 && nkept_ == 1 && kept_[0].out == 1) return run_rows(work);
  const int64_t acc_bytes = tile * kernel_.acc_size;
  Scratch partial(groups > 1 ? static_cast<size_t>(tasks * acc_bytes) : 0);
  const int64_t task_work = std::max<int64_t>(1, work * tile / groups);
  parallel_for(0, tasks, std::max<int64_t>(1, kGrain / task_work), [&](int64_t begin, int64_t end) {
    const int64_t level_bytes = Cascade::bytes_for(kernel_, group, tile);
    Scratch memory(static_cast<size_t>(level_bytes + (loads ? kBufferBytes : 0)));
    char *levels = memory.as<char>(), *buffer = levels + level_bytes;
    for (int64_t t = begin; t < end; ++t) {
      const int64_t unit = groups == 1 ? t : t / groups, g = t - unit * groups;
      const int64_t o = tiles == 1 ? unit : unit / tiles, j = (unit - o * tiles) * tile;
      const int64_t m = std::min(tile, column_.size - j);
      Cascade cascade(kernel_, levels, m);
      reduce_blocks(offset_of(kept_, nkept_, o) + j * column_.stride, m, g * group, std::min(blocks, (g + 1) * group),
                    cascade, buffer);
      const char* acc = cascade.finish();
      if (groups == 1) {
        store(acc, m, out_index(kept_, nkept_, o) + j * column_.out);
      } else {
        std::memcpy(partial.as<char>() + t * acc_bytes, acc, static_cast<size_t>(m * kernel_.acc_size));
      }
    }
  });
  if (groups == 1) return;
  Scratch levels(static_cast<size_t>(Cascade::bytes_for(kernel_, groups, tile)));
  for (int64_t t = 0; t < outer * tiles; ++t) {
    const int64_t j = t % tiles * tile, m = std::min(tile, column_.size - j);
    Cascade cascade(kernel_, levels.as<char>(), m);
    for (int64_t g = 0; g < groups; ++g) {
      std::memcpy(cascade.slot(), partial.as<char>() + (t * groups + g) * acc_bytes,
                  static_cast<size_t>(m * kernel_.acc_size));
      cascade.push();
    }
    store(cascade.finish(), m, out_index(kept_, nkept_, t / tiles) + j * column_.out);
  }
}

ReduceTable make_table() {
  ReduceTable table;
  RL_ISA_CALL(fill_reduce, table);
  return table;
}

}  // namespace

const ReduceKernel& find_reduce(Reduce op, DType in) {
  static const ReduceTable table = make_table();
  return table.kernels[static_cast<int>(op)][static_cast<int>(in)];
}

void run_reduce(const ReduceKernel& kernel, const char* in, int ndim, const int64_t* shape, const int64_t* strides,
                uint64_t reduced, char* out, const ReduceParams& params) {
  // Small and contiguous inputs are reduced without a plan.
  if (ndim == 1 && reduced == 1 && shape[0] <= kReduceRow && kernel.direct && strides[0] == itemsize(kernel.in)) {
    alignas(64) char acc[kMaxAcc];
    ReduceParams counted = params;
    counted.count = shape[0];
    kernel.row(in, shape[0], 0, acc, counted);
    return kernel.finish(acc, 1, out, counted.second, counted);
  }
  Reduction reduction(kernel, in, out, params);
  reduction.add_dims(ndim, shape, strides, reduced);
  reduction.run();
}

}  // namespace rl
