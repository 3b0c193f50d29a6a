// Recurrent layers on contiguous float32 or float64 memory: all steps of one layer in one direction.
#pragma once

#include <cstdint>

#include "rushlight/dtype.h"
#include "rushlight/isa.h"

namespace rl {

enum class Cell { Lstm, Gru, Tanh, Relu };

// Row i of step t stands at offset[t] + i. Steps never grow: the longest sequences come first.
struct RnnShape {
  Cell cell;
  bool reverse;
  int64_t inputs, hidden, steps;
  const int64_t* offset;  // steps + 1 of them
};

namespace {  // a copy for each source, since those of the ISA sources are compiled for different machines

// Rows of weights per unit: (i, f, g, o), (r, z, n) or one.
constexpr int64_t gates_of(Cell c) { return c == Cell::Lstm ? 4 : c == Cell::Gru ? 3 : 1; }
// Numbers per unit that a step keeps for the gradient: the gates, and of a GRU what r is multiplied with. A plain cell
// keeps only its output.
constexpr int64_t kept_of(Cell c) { return c == Cell::Lstm || c == Cell::Gru ? 4 : 1; }

inline int64_t all_rows(const RnnShape& s) { return s.offset[s.steps]; }
inline int64_t rows_at(const RnnShape& s, int64_t step) { return s.offset[step + 1] - s.offset[step]; }
inline int64_t batch_of(const RnnShape& s) { return rows_at(s, 0); }
// The step that is carried out as number i, and how many of its rows go on from the one before.
inline int64_t step_at(const RnnShape& s, int64_t i) { return s.reverse ? s.steps - 1 - i : i; }
inline int64_t continued(const RnnShape& s, int64_t i) {
  if (i == 0) return 0;
  const int64_t now = rows_at(s, step_at(s, i)), before = rows_at(s, step_at(s, i - 1));
  return now < before ? now : before;
}

}  // namespace

struct RnnForward {
  RnnShape shape;
  const void *x, *w_ih, *w_hh, *b_ih, *b_hh;  // (rows, inputs), (gates * hidden, *); biases may be null
  const void *h0, *c0;                        // (batch, hidden)
  void *out, *cells;                          // (rows, hidden)
  void* kept;                                 // (rows, kept * hidden); `out` itself for plain cells
  void *hn, *cn;                              // (batch, hidden)
  const void* product;                        // filled in: h0 @ w_hh^T where there is one step, else null
};

struct RnnBackward {
  RnnShape shape;
  const void *x, *w_ih, *w_hh, *h0, *c0, *out, *cells, *kept;
  const void *dout, *dhn, *dcn;  // may be null
  void* dx;                      // may be null
  void *dh0, *dc0, *dw_ih, *dw_hh, *db_ih, *db_hh;
  void* dkept;  // filled in: (rows, kept * hidden), gradients of what is added up before the nonlinearities
};

void rnn_forward(DType dtype, RnnForward f);
void rnn_backward(DType dtype, RnnBackward b);

struct RnnTable {  // float32, float64; by cell
  void (*forward[2][4])(const RnnForward&);
  void (*backward[2][4])(const RnnBackward&);
  // out[j] = the sum of column j of (rows, columns) with `row` elements from row to row.
  void (*column_sums[2])(int64_t rows, int64_t columns, int64_t row, const void* in, void* out);
};

}  // namespace rl

RL_ISA_DECLARE(fill_rnn, RnnTable)
