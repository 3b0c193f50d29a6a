// Attention, compiled once per instruction set. Keys and values of a head are copied into panels once; then some
// queries at a time meet all keys, so that only their scores are in memory. The gradient computes the scores again
// (T. Dao et al., FlashAttention, 2022).
#include "attention.h"
#include "runtime.h"
#include "tiles.h"
#include "vecmath.h"

namespace rl {
namespace RL_ISA {
namespace {

template <class T>
constexpr int64_t kPanel = kVecs * kLanes<T>;  // columns of a panel
constexpr int64_t kBlockScores = 1 << 16;      // of a block of queries, which the second cache holds
constexpr int64_t kMostRows = 4 * kFloatRows;  // of a block
constexpr double kTaskWork = 1 << 16;          // multiplications that are worth a thread

// Queries of a block: as many as fit, in blocks of nearly equal height.
inline int64_t block_rows(int64_t queries, int64_t keys) {
  const int64_t fit = most(kFloatRows, least(kMostRows, kBlockScores / (keys + 1)));
  return parts(most(queries, 1), parts(most(queries, 1), fit));
}
template <class T>
int64_t padded(int64_t columns) {
  return parts(columns, kPanel<T>) * kPanel<T>;
}

// A matrix in panels of kPanel columns, zero behind the last.
template <class T>
void fill_panels(const T* from, int64_t row, int64_t rows, int64_t columns, T* to) {
  for (int64_t j = 0; j < columns; j += kPanel<T>) {
    for (int64_t i = 0; i < rows; ++i, to += kPanel<T>) {
      for (int64_t v = 0; v < kPanel<T>; v += kLanes<T>) {
        const int64_t n = least(kLanes<T>, columns - j - v);
        store(to + v, n > 0 ? get(from + i * row + j + v, n) : Vec<T>{});
      }
    }
  }
}
// The same for its transpose.
template <class T>
void fill_transposed(const T* from, int64_t row, int64_t rows, int64_t columns, T* to) {
  for (int64_t i = 0; i < rows; i += kPanel<T>, to += columns * kPanel<T>) {
    const int64_t count = least(kPanel<T>, rows - i);
    if (count < kPanel<T>) {
      for (int64_t x = 0; x < columns * kPanel<T>; ++x) to[x] = T(0);
    }
    transpose(from + i * row, row, count, columns, to, kPanel<T>);
  }
}

// c = a @ b or c += a @ b, b in panels of `depth` rows, of which k are used.
template <class T>
void product(int64_t rows, int64_t k, StridedA<T> a, const T* b, int64_t depth, int64_t columns, T* c, int64_t c_row,
             bool add = false) {
  for (int64_t j = 0; j < columns; j += kPanel<T>, b += depth * kPanel<T>) {
    each_tile<kVecs>(rows, [&](int64_t i, int64_t height) {
      (columns - j > kLanes<T> ? run_tile<T, kVecs, kFloatRows>
                               : run_tile<T, 1, kFloatRows>)(height, k, {a.data + i * a.row, a.row, a.column},
                                                             {b, kPanel<T>}, c + i * c_row + j, c_row, add);
    });
  }
}

// row = row * scale + mask over the keys that count; those behind them, up to `end`, are minus infinity.
template <class T>
void mask_row(const Attention& g, int64_t batch, int64_t head, int64_t query, int64_t end, T* row) {
  constexpr T lowest = -static_cast<T>(__builtin_inf());
  const int64_t count = g.causal ? least(query + 1, end) : end;
  const T scale = static_cast<T>(g.scale);
  const int64_t at = batch * g.mask_stride[0] + head * g.mask_stride[1] + query * g.mask_stride[2],
                step = g.mask_stride[3];
  if (g.mask == nullptr) {
    for (int64_t j = 0; j < count; ++j) row[j] *= scale;
  } else if (g.mask_is_bool) {
    const bool* mask = static_cast<const bool*>(g.mask) + at;
    for (int64_t j = 0; j < count; ++j) row[j] = mask[j * step] ? row[j] * scale : lowest;
  } else {
    const T* mask = static_cast<const T*>(g.mask) + at;
    for (int64_t j = 0; j < count; ++j) row[j] = row[j] * scale + mask[j * step];
  }
  for (int64_t j = count; j < end; ++j) row[j] = lowest;
}

template <class T>
inline Vec<T> greater(Vec<T> a, Vec<T> b) {
  return (b > a) | (b != b) ? b : a;  // a NaN wins
}

template <class T>
struct Sum {
  T top, total;
};
// row = e^(row - top) with the greatest element as top: 0 where that is minus infinity.
template <class T>
Sum<T> exponentials(T* row, int64_t n) {
  constexpr int64_t L = kLanes<T>;
  constexpr T lowest = -static_cast<T>(__builtin_inf());
  Vec<T> most_of = splat(lowest);
  int64_t j = 0;
  for (; j + L <= n; j += L) most_of = greater<T>(most_of, load(row + j));
  T top = lowest;
  const auto meet = [&](T x) { top = x > top || x != x ? x : top; };
  for (int64_t i = 0; i < L; ++i) meet(most_of[i]);
  for (; j < n; ++j) meet(row[j]);
  if (top == lowest) {
    for (j = 0; j < n; ++j) row[j] = T(0);
    return {T(0), T(0)};
  }
  Vec<T> total{};
  for (j = 0; j + L <= n; j += L) {
    const Vec<T> e = exp_negative<T>(load(row + j) - top);
    store(row + j, e);
    total += e;
  }
  T sum = sum_lanes<T>(total);
  if (j < n) {
    store(row + j, exp_negative<T>(load(row + j, n - j) - top), n - j);
    for (; j < n; ++j) sum += row[j];
  }
  return {top, sum};
}

template <class T>
const T* head_of(const void* p, const int64_t* stride, int64_t batch, int64_t head) {
  return static_cast<const T*>(p) + batch * stride[0] + head * stride[1];
}
template <class T>
T* head_of(void* p, const int64_t* stride, int64_t batch, int64_t head) {
  return static_cast<T*>(p) + batch * stride[0] + head * stride[1];
}
inline int64_t keys_of(const Attention& g, int64_t last_query) { return g.causal ? least(g.keys, last_query) : g.keys; }

template <class T>
void forward(const Attention& g) {
  const int64_t rows = block_rows(g.queries, g.keys), blocks = parts(g.queries, rows);
  const int64_t row = padded<T>(g.keys), out_row = padded<T>(g.width);
  const double work = static_cast<double>(rows * g.keys) * static_cast<double>(g.depth + g.width);
  const int64_t grain = most(static_cast<int64_t>(kTaskWork / (work + 1)) + 1,
                             parts(g.batch * g.heads * blocks, 4 * runtime.num_threads()));
  parallel_for(0, g.batch * g.heads * blocks, grain, [&](int64_t begin, int64_t end) {
    const Buffer<T> keys(row * g.depth), values(out_row * g.keys), scores(rows * row), sums(rows * out_row);
    int64_t filled = -1;
    for (int64_t x = begin; x < end; ++x) {
      const int64_t batch = x / blocks / g.heads, head = x / blocks % g.heads, of_keys = head / g.shared;
      const int64_t first = x % blocks * rows, count = least(rows, g.queries - first);
      if (filled != x / blocks / g.shared) {
        fill_transposed(head_of<T>(g.k, g.k_stride, batch, of_keys), g.k_stride[2], g.keys, g.depth, keys.data());
        fill_panels(head_of<T>(g.v, g.v_stride, batch, of_keys), g.v_stride[2], g.keys, g.width, values.data());
        filled = x / blocks / g.shared;
      }
      const int64_t n = keys_of(g, first + count);
      const T* q = head_of<T>(g.q, g.q_stride, batch, head) + first * g.q_stride[2];
      product<T>(count, g.depth, {q, g.q_stride[2], 1}, keys.data(), g.depth, n, scores.data(), row);
      T factor[kMostRows];
      for (int64_t i = 0; i < count; ++i) {
        T* line = scores.data() + i * row;
        mask_row(g, batch, head, first + i, n, line);
        const Sum<T> sum = exponentials(line, n);
        factor[i] = sum.total == T(0) ? T(0) : T(1) / sum.total;
        static_cast<T*>(g.normalizer)[(batch * g.heads + head) * g.queries + first + i] =
            sum.total == T(0) ? static_cast<T>(__builtin_inf())
                              : sum.top + static_cast<T>(__builtin_log(static_cast<double>(sum.total)));
      }
      product<T>(count, n, {scores.data(), row, 1}, values.data(), g.keys, g.width, sums.data(), out_row);
      for (int64_t i = 0; i < count; ++i) {
        T* out = head_of<T>(g.out, g.out_stride, batch, head) + (first + i) * g.out_stride[2];
        for (int64_t j = 0; j < g.width; j += kLanes<T>) {
          put<T>(out + j, load(sums.data() + i * out_row + j) * factor[i], least(kLanes<T>, g.width - j));
        }
      }
    }
  });
}

template <class T>
T dot(const T* a, const T* b, int64_t n) {
  Vec<T> sum{};
  for (int64_t j = 0; j < n; j += kLanes<T>) {
    const int64_t count = least(kLanes<T>, n - j);
    sum += get(a + j, count) * get(b + j, count);
  }
  return sum_lanes<T>(sum);
}

template <class T>
void put_rows(const T* from, int64_t row, int64_t rows, int64_t columns, T* to, int64_t to_row) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; j += kLanes<T>) {
      put<T>(to + i * to_row + j, load(from + i * row + j), least(kLanes<T>, columns - j));
    }
  }
}
template <class T>
void zero(T* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = T(0);
}

template <class T>
void backward(const AttentionBackward& b) {
  const Attention& g = b.forward;
  const int64_t rows = block_rows(g.queries, 2 * g.keys), row = padded<T>(g.keys);
  const int64_t depth_row = padded<T>(g.depth), width_row = padded<T>(g.width), shared_heads = g.heads / g.shared;
  const double work =
      static_cast<double>(g.queries * g.keys) * static_cast<double>((g.depth + g.width) * g.shared) * 2.5;
  const int64_t grain = static_cast<int64_t>(kTaskWork / (work + 1)) + 1;
  parallel_for(0, g.batch * shared_heads, grain, [&](int64_t begin, int64_t end) {
    const Buffer<T> across(row * g.depth), values(row * g.width), keys(depth_row * g.keys);
    const Buffer<T> dkeys(g.keys * depth_row), dvalues(g.keys * width_row);
    const Buffer<T> weights(rows * row), dscores(rows * row);
    const Buffer<T> queries(rows * depth_row), douts(rows * width_row), sums(rows * depth_row);
    for (int64_t x = begin; x < end; ++x) {
      const int64_t batch = x / shared_heads, of_keys = x % shared_heads;
      const T* k = head_of<T>(g.k, g.k_stride, batch, of_keys);
      fill_transposed(k, g.k_stride[2], g.keys, g.depth, across.data());
      fill_panels(k, g.k_stride[2], g.keys, g.depth, keys.data());
      fill_transposed(head_of<T>(g.v, g.v_stride, batch, of_keys), g.v_stride[2], g.keys, g.width, values.data());
      zero(dkeys.data(), g.keys * depth_row);
      zero(dvalues.data(), g.keys * width_row);
      for (int64_t head = of_keys * g.shared; head < (of_keys + 1) * g.shared; ++head) {
        const T* normalizer = static_cast<const T*>(g.normalizer) + (batch * g.heads + head) * g.queries;
        for (int64_t first = 0; first < g.queries; first += rows) {
          const int64_t count = least(rows, g.queries - first), n = keys_of(g, first + count);
          const T* q = head_of<T>(g.q, g.q_stride, batch, head) + first * g.q_stride[2];
          const T* out =
              head_of<T>(static_cast<const void*>(g.out), g.out_stride, batch, head) + first * g.out_stride[2];
          const T* dout = head_of<T>(b.dout, b.dout_stride, batch, head) + first * b.dout_stride[2];
          product<T>(count, g.depth, {q, g.q_stride[2], 1}, across.data(), g.depth, n, weights.data(), row);
          product<T>(count, g.width, {dout, b.dout_stride[2], 1}, values.data(), g.width, n, dscores.data(), row);
          for (int64_t i = 0; i < count; ++i) {
            T *weight = weights.data() + i * row, *dscore = dscores.data() + i * row;
            mask_row(g, batch, head, first + i, n, weight);
            const T across_keys = dot(out + i * g.out_stride[2], dout + i * b.dout_stride[2], g.width);
            const Vec<T> scale = splat(static_cast<T>(g.scale));
            for (int64_t j = 0; j < n; j += kLanes<T>) {
              const Vec<T> p = exp_negative<T>(load(weight + j) - normalizer[first + i]);
              store(weight + j, p);
              store(dscore + j, p * (load(dscore + j) - across_keys) * scale);
            }
          }
          product<T>(count, n, {dscores.data(), row, 1}, keys.data(), g.keys, g.depth, sums.data(), depth_row);
          put_rows(sums.data(), depth_row, count, g.depth,
                   head_of<T>(b.dq, b.dq_stride, batch, head) + first * b.dq_stride[2], b.dq_stride[2]);
          fill_panels(q, g.q_stride[2], count, g.depth, queries.data());
          fill_panels(dout, b.dout_stride[2], count, g.width, douts.data());
          product<T>(n, count, {dscores.data(), 1, row}, queries.data(), count, g.depth, dkeys.data(), depth_row, true);
          product<T>(n, count, {weights.data(), 1, row}, douts.data(), count, g.width, dvalues.data(), width_row, true);
        }
      }
      put_rows(dkeys.data(), depth_row, g.keys, g.depth, head_of<T>(b.dk, b.dk_stride, batch, of_keys), b.dk_stride[2]);
      put_rows(dvalues.data(), width_row, g.keys, g.width, head_of<T>(b.dv, b.dv_stride, batch, of_keys),
               b.dv_stride[2]);
    }
  });
}

}  // namespace

void fill_attention(AttentionTable& table) {
  table.forward[0] = forward<float>;
  table.forward[1] = forward<double>;
  table.backward[0] = backward<float>;
  table.backward[1] = backward<double>;
}

}  // namespace RL_ISA
}  // namespace rl
