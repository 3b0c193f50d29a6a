// The steps of recurrent layers, compiled once per instruction set. The weights of the state are copied into panels,
// one for each block of units with all their gates, so that the product of a block runs from the first cache and its
// nonlinearities follow at once. Rows of a batch do not depend on each other: threads share them out and go through
// all steps without waiting, unless there are so few that they share the units of each step instead.
#include "rnn.h"
#include "runtime.h"
#include "tiles.h"
#include "vecmath.h"

namespace rl {
namespace RL_ISA {
namespace {

constexpr double kThreadWork = 1 << 16;            // multiplications that are worth a thread
constexpr int64_t kPanelBytes = int64_t{1} << 20;  // of all panels, that the second cache holds

// f(number, first row, end, first block, end): the order of the numbers is that of the steps.
template <class F>
void each_step(const RnnShape& s, int64_t blocks, int64_t panel_bytes, const F& f) {
  const int64_t threads = runtime.num_threads(), batch = batch_of(s);
  const double work = static_cast<double>(s.hidden * s.hidden * gates_of(s.cell));
  if (threads == 1 || batch >= 4 * threads || (batch >= threads && panel_bytes <= kPanelBytes) || work < kThreadWork) {
    const bool alone = work * static_cast<double>(all_rows(s)) < kThreadWork * static_cast<double>(threads);
    const int64_t shares = alone ? 1 : least(threads, most(batch, 1));
    parallel_for(0, shares, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < s.steps; ++i) f(i, batch * begin / shares, batch * end / shares, 0, blocks);
    });
    return;
  }
  for (int64_t i = 0; i < s.steps; ++i) {
    parallel_for(0, blocks, parts(blocks, threads), [&](int64_t begin, int64_t end) { f(i, 0, batch, begin, end); });
  }
}

// ---- forward

template <class T, Cell C>
class Forward {
  static constexpr int64_t G = gates_of(C), K = kept_of(C), L = kLanes<T>;
  static constexpr int V = G == 1 ? kVecs : 1, N = static_cast<int>(G) * V;  // vectors of a gate, and of a panel's row

 public:
  explicit Forward(const RnnForward& f)
      : f_(f),
        s_(f.shape),
        blocks_(parts(s_.hidden, V * L)),
        panels_(f.product != nullptr ? 0 : blocks_ * s_.hidden * N * L) {}

  void run() {
    if (f_.product == nullptr) fill_panels();
    each_step(s_, blocks_, static_cast<int64_t>(sizeof(T)) * blocks_ * s_.hidden * N * L,
              [&](int64_t i, int64_t row, int64_t row_end, int64_t block, int64_t block_end) {
                const int64_t step = step_at(s_, i), end = least(row_end, rows_at(s_, step)), middle = continued(s_, i);
                const int64_t before = i > 0 ? s_.offset[step_at(s_, i - 1)] * s_.hidden : 0;
                const T *out = static_cast<const T*>(f_.out), *cells = static_cast<const T*>(f_.cells);
                rows(step, row, least(end, middle), block, block_end, out + before, cells + before);
                rows(step, most(row, middle), end, block, block_end, static_cast<const T*>(f_.h0),
                     static_cast<const T*>(f_.c0));
              });
  }

 private:
  void fill_panels() {
    const T* w = static_cast<const T*>(f_.w_hh);
    const int64_t hidden = s_.hidden;
    parallel_for(0, blocks_, (1 << 15) / (hidden * N * L) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        T* panel = panels_.data() + b * hidden * N * L;
        const int64_t first = b * V * L, count = least(V * L, hidden - first);
        if (count < V * L) {
          for (int64_t i = 0; i < hidden * N * L; ++i) panel[i] = T(0);
        }
        for (int64_t g = 0; g < G; ++g) {
          transpose(w + (g * hidden + first) * hidden, hidden, count, hidden, panel + g * V * L, N * L);
        }
      }
    });
  }

  // The rows [begin, end) of a step, which go on from `h` and `c`.
  void rows(int64_t step, int64_t begin, int64_t end, int64_t block, int64_t block_end, const T* h, const T* c) const {
    const int64_t hidden = s_.hidden, at = s_.offset[step];
    if (begin >= end) return;
    for (int64_t b = block; b < block_end; ++b) {
      const int64_t first = b * V * L;
      if (f_.product != nullptr) {
        const T* product = static_cast<const T*>(f_.product);
        for (int64_t i = begin; i < end; ++i) {
          T sums[N * L];
          for (int64_t g = 0; g < G; ++g) {
            for (int64_t v = 0; v < V; ++v) {
              const int64_t unit = first + v * L, count = least(L, hidden - unit);
              if (count > 0) store(sums + (g * V + v) * L, get(product + (i * G + g) * hidden + unit, count));
            }
          }
          row(at + i, first, sums, h + i * hidden, c + i * hidden);
        }
        continue;
      }
      each_tile<N>(end - begin, [&](int64_t top, int64_t count) {
        T sums[kTileRows<N> * N * L];
        const T* panel = panels_.data() + b * hidden * N * L;
        run_tile<T, N>(count, hidden, {h + (begin + top) * hidden, hidden, 1}, {panel, N * L}, sums, N * L, false);
        for (int64_t x = 0; x < count; ++x) {
          const int64_t i = begin + top + x;
          row(at + i, first, sums + x * N * L, h + i * hidden, c + i * hidden);
        }
      });
    }
  }

  // The units of one block in one row. `sums` is their product with the state.
  void row(int64_t at, int64_t first, const T* sums, const T* h, const T* c) const {
    const int64_t hidden = s_.hidden;
    const T* bias = static_cast<const T*>(f_.b_hh);
    T* out = static_cast<T*>(f_.out) + at * hidden;
    T* kept = static_cast<T*>(f_.kept) + at * K * hidden;
    for (int64_t v = 0; v < V; ++v) {
      const int64_t unit = first + v * L, n = least(L, hidden - unit);
      if (n <= 0) break;
      const auto state = [&](int64_t g) RL_INLINE {
        const Vec<T> sum = load(sums + (g * V + v) * L);
        return bias != nullptr ? sum + get(bias + g * hidden + unit, n) : sum;
      };
      const auto input = [&](int64_t g) RL_INLINE { return get(kept + g * hidden + unit, n); };
      const auto keep = [&](int64_t g, Vec<T> value) RL_INLINE { put<T>(kept + g * hidden + unit, value, n); };
      if constexpr (C == Cell::Lstm) {
        const Vec<T> i = sigmoid<T>(input(0) + state(0)), forget = sigmoid<T>(input(1) + state(1));
        const Vec<T> g = tanh<T>(input(2) + state(2)), o = sigmoid<T>(input(3) + state(3));
        const Vec<T> cell = forget * get(c + unit, n) + i * g;
        keep(0, i), keep(1, forget), keep(2, g), keep(3, o);
        put<T>(static_cast<T*>(f_.cells) + at * hidden + unit, cell, n);
        put<T>(out + unit, o * tanh<T>(cell), n);
      } else if constexpr (C == Cell::Gru) {
        const Vec<T> r = sigmoid<T>(input(0) + state(0)), z = sigmoid<T>(input(1) + state(1));
        const Vec<T> from_state = state(2), candidate = tanh<T>(input(2) + r * from_state);
        keep(0, r), keep(1, z), keep(2, candidate), keep(3, from_state);
        put<T>(out + unit, candidate + z * (get(h + unit, n) - candidate), n);
      } else {
        const Vec<T> sum = input(0) + state(0);
        keep(0, C == Cell::Tanh ? tanh<T>(sum) : sum < T(0) ? Vec<T>{} : sum);
      }
    }
  }

  const RnnForward& f_;
  const RnnShape& s_;
  const int64_t blocks_;
  const Buffer<T> panels_;
};

// ---- backward

template <class T, Cell C>
class Backward {
  static constexpr int64_t G = gates_of(C), K = kept_of(C), L = kLanes<T>;
  static constexpr int N = kVecs;

 public:
  explicit Backward(const RnnBackward& b)
      : b_(b), s_(b.shape), blocks_(parts(s_.hidden, N * L)), panels_(blocks_ * G * s_.hidden * N * L) {}

  void run() {
    fill_panels();
    const int64_t bytes = static_cast<int64_t>(sizeof(T)) * blocks_ * G * s_.hidden * N * L;
    each_step(s_, blocks_, bytes, [&](int64_t n, int64_t row, int64_t row_end, int64_t block, int64_t block_end) {
      const int64_t i = s_.steps - 1 - n, step = step_at(s_, i), end = least(row_end, rows_at(s_, step));
      const int64_t middle = i + 1 < s_.steps ? continued(s_, i + 1) : 0;
      rows(i, row, least(end, middle), block, block_end, i + 1 < s_.steps ? s_.offset[step_at(s_, i + 1)] : 0);
      rows(i, most(row, middle), end, block, block_end, -1);
    });
    // The first states, when all units of the first gates are there.
    each_step(s_, blocks_, bytes, [&](int64_t i, int64_t row, int64_t row_end, int64_t block, int64_t block_end) {
      const int64_t step = step_at(s_, i), begin = most(row, continued(s_, i)), end = least(row_end, rows_at(s_, step));
      for (int64_t b = block; b < block_end; ++b) {
        product(begin, end, s_.offset[step], b, [&](int64_t at, int64_t unit, int64_t n, Vec<T> sum) RL_INLINE {
          T* dh = static_cast<T*>(b_.dh0) + at * s_.hidden + unit;
          put<T>(dh, get(dh, n) + sum, n);
        });
      }
    });
  }

 private:
  void fill_panels() {
    const T* w = static_cast<const T*>(b_.w_hh);
    const int64_t hidden = s_.hidden;
    parallel_for(0, blocks_, (1 << 15) / (hidden * G * N * L) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        T* panel = panels_.data() + b * G * hidden * N * L;
        for (int64_t k = 0; k < G * hidden; ++k, panel += N * L) {
          for (int64_t v = 0; v < N; ++v) {
            const int64_t unit = (b * N + v) * L, count = least(L, hidden - unit);
            store(panel + v * L, count > 0 ? get(w + k * hidden + unit, count) : Vec<T>{});
          }
        }
      }
    });
  }

  // f(row, unit, lanes, sum): the gradients of the gates at `next`, taken back through the weights.
  template <class F>
  void product(int64_t begin, int64_t end, int64_t next, int64_t block, const F& f) const {
    const int64_t hidden = s_.hidden;
    if (begin >= end) return;
    const T *gates = static_cast<const T*>(b_.dkept) + (next + begin) * K * hidden,
            *panel = panels_.data() + block * G * hidden * N * L;
    each_tile<N>(end - begin, [&](int64_t top, int64_t count) {
      T sums[kTileRows<N> * N * L];
      run_tile<T, N>(count, G * hidden, {gates + top * K * hidden, K * hidden, 1}, {panel, N * L}, sums, N * L, false);
      for (int64_t x = 0; x < count; ++x) {
        each_vector(block, [&](int64_t v, int64_t unit, int64_t n)
                               RL_INLINE { f(begin + top + x, unit, n, load(sums + (x * N + v) * L)); });
      }
    });
  }
  template <class F>
  void each_vector(int64_t block, const F& f) const {
    for (int64_t v = 0; v < N; ++v) {
      const int64_t unit = (block * N + v) * L, n = least(L, s_.hidden - unit);
      if (n > 0) f(v, unit, n);
    }
  }

  // Rows of the step that was carried out as number i. Those that went on did so at row `next` and on; -1: they ended.
  void rows(int64_t i, int64_t begin, int64_t end, int64_t block, int64_t block_end, int64_t next) const {
    if (begin >= end) return;
    for (int64_t b = block; b < block_end; ++b) {
      if (next >= 0) {
        product(begin, end, next, b,
                [&](int64_t at, int64_t unit, int64_t n, Vec<T> sum) RL_INLINE { units(i, at, unit, n, sum); });
        continue;
      }
      for (int64_t row = begin; row < end; ++row) {
        each_vector(b, [&](int64_t, int64_t unit, int64_t n) RL_INLINE { units(i, row, unit, n, Vec<T>{}); });
      }
    }
  }

  // dh0 and dc0 carry what reaches a state other than through the weights.
  void units(int64_t i, int64_t row, int64_t unit, int64_t n, Vec<T> dh) const {
    const int64_t hidden = s_.hidden, at = s_.offset[step_at(s_, i)] + row, here = at * hidden + unit;
    const bool starts = row >= continued(s_, i);
    const int64_t before = (starts ? row : s_.offset[step_at(s_, i - 1)] + row) * hidden + unit;
    const auto kept = [&](int64_t g)
                          RL_INLINE { return get(static_cast<const T*>(b_.kept) + (at * K + g) * hidden + unit, n); };
    const auto give = [&](int64_t g, Vec<T> value)
                          RL_INLINE { put<T>(static_cast<T*>(b_.dkept) + (at * K + g) * hidden + unit, value, n); };
    T* carried = static_cast<T*>(b_.dh0) + row * hidden + unit;
    dh += get(carried, n);
    if (b_.dout != nullptr) dh += get(static_cast<const T*>(b_.dout) + here, n);
    if constexpr (C == Cell::Lstm) {
      const Vec<T> in = kept(0), forget = kept(1), g = kept(2), o = kept(3);
      const Vec<T> t = tanh<T>(get(static_cast<const T*>(b_.cells) + here, n));
      const Vec<T> last = get((starts ? static_cast<const T*>(b_.c0) : static_cast<const T*>(b_.cells)) + before, n);
      T* dc0 = static_cast<T*>(b_.dc0) + row * hidden + unit;
      const Vec<T> dc = get(dc0, n) + dh * o * (T(1) - t * t);
      give(0, dc * g * in * (T(1) - in));
      give(1, dc * last * forget * (T(1) - forget));
      give(2, dc * in * (T(1) - g * g));
      give(3, dh * t * o * (T(1) - o));
      put<T>(dc0, dc * forget, n);
      put<T>(carried, Vec<T>{}, n);
    } else if constexpr (C == Cell::Gru) {
      const Vec<T> r = kept(0), z = kept(1), candidate = kept(2), from_state = kept(3);
      const Vec<T> last = get((starts ? static_cast<const T*>(b_.h0) : static_cast<const T*>(b_.out)) + before, n);
      const Vec<T> dcandidate = dh * (T(1) - z) * (T(1) - candidate * candidate);
      give(0, dcandidate * from_state * r * (T(1) - r));
      give(1, dh * (last - candidate) * z * (T(1) - z));
      give(2, dcandidate * r);
      give(3, dcandidate);
      put<T>(carried, dh * z, n);
    } else {
      const Vec<T> h = get(static_cast<const T*>(b_.out) + here, n);
      give(0, C == Cell::Tanh ? dh * (T(1) - h * h) : h <= T(0) ? Vec<T>{} : dh);
      put<T>(carried, Vec<T>{}, n);
    }
  }

  const RnnBackward& b_;
  const RnnShape& s_;
  const int64_t blocks_;
  const Buffer<T> panels_;
};

template <class T>
void column_sums(int64_t rows, int64_t columns, int64_t row, const void* in, void* out) {
  constexpr int64_t wide = 4 * kLanes<T>;
  parallel_for(0, parts(columns, wide), (1 << 15) / (rows * wide + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin * wide; j < least(columns, end * wide); j += wide) {
      Vec<T> sum[4];
      repeat<4>([&](auto v) RL_INLINE { sum[v.value] = Vec<T>{}; });
      const auto each = [&](const auto& f) RL_INLINE {
        repeat<4>([&](auto v) RL_INLINE {
          const int64_t at = j + v.value * kLanes<T>, n = least(kLanes<T>, columns - at);
          if (n > 0) f(at, n, sum[v.value]);
        });
      };
      const T* from = static_cast<const T*>(in);
      for (int64_t i = 0; i < rows; ++i, from += row) {
        each([&](int64_t at, int64_t n, Vec<T>& s) RL_INLINE { s += get(from + at, n); });
      }
      each([&](int64_t at, int64_t n, Vec<T>& s) RL_INLINE { put<T>(static_cast<T*>(out) + at, s, n); });
    }
  });
}

template <class T, Cell C>
void fill_cell(RnnTable& table, int type) {
  table.forward[type][static_cast<int>(C)] = [](const RnnForward& f) { Forward<T, C>(f).run(); };
  table.backward[type][static_cast<int>(C)] = [](const RnnBackward& b) { Backward<T, C>(b).run(); };
}
template <class T>
void fill_type(RnnTable& table, int type) {
  fill_cell<T, Cell::Lstm>(table, type);
  fill_cell<T, Cell::Gru>(table, type);
  fill_cell<T, Cell::Tanh>(table, type);
  fill_cell<T, Cell::Relu>(table, type);
  table.column_sums[type] = column_sums<T>;
}

}  // namespace

void fill_rnn(RnnTable& table) {
  fill_type<float>(table, 0);
  fill_type<double>(table, 1);
}

}  // namespace RL_ISA
}  // namespace rl
