// What a recurrent layer does for all its steps at once: products with the input and with the gradients.
#include "rnn.h"

#include <cstring>

#include "runtime.h"

namespace rl {
namespace {

const RnnTable& table() {
  static const RnnTable filled = [] {
    RnnTable t{};
    RL_ISA_CALL(fill_rnn, t);
    return t;
  }();
  return filled;
}
int type_index(DType dtype) { return dtype == DType::Float64; }

// Elements behind a pointer of the dtype.
struct At {
  DType dtype;
  const void* operator()(const void* p, int64_t i) const { return static_cast<const char*>(p) + i * itemsize(dtype); }
  void* operator()(void* p, int64_t i) const { return static_cast<char*>(p) + i * itemsize(dtype); }
};

// Gates that lie next to each other in `kept` and in the rows of the weights.
struct Span {
  int64_t gate, count, column;
};
// The input meets the candidate of a GRU beside the gates, the last state within them (see kept_of).
int input_spans(Cell cell, Span* spans) {
  if (cell != Cell::Gru) return spans[0] = {0, gates_of(cell), 0}, 1;
  spans[0] = {0, 2, 0};
  spans[1] = {2, 1, 3};
  return 2;
}

// h[row] = the state that each row goes on from.
void gather_states(DType dtype, const RnnShape& s, const void* h0, const void* out, void* h) {
  const At at{dtype};
  const size_t line = static_cast<size_t>(s.hidden * itemsize(dtype));
  for (int64_t i = 0; i < s.steps; ++i) {
    const int64_t step = step_at(s, i), rows = rows_at(s, step), old = continued(s, i);
    const int64_t before = i > 0 ? s.offset[step_at(s, i - 1)] : 0;
    std::memcpy(at(h, s.offset[step] * s.hidden), at(out, before * s.hidden), static_cast<size_t>(old) * line);
    std::memcpy(at(h, (s.offset[step] + old) * s.hidden), at(h0, old * s.hidden),
                static_cast<size_t>(rows - old) * line);
  }
}

// last[i] = what row i of the batch ends with.
void gather_last(DType dtype, const RnnShape& s, const void* all, void* last) {
  const At at{dtype};
  const size_t line = static_cast<size_t>(s.hidden * itemsize(dtype));
  for (int64_t i = 0; i < s.steps; ++i) {
    const int64_t step = step_at(s, i), end = i + 1 < s.steps ? continued(s, i + 1) : 0, rows = rows_at(s, step) - end;
    std::memcpy(at(last, end * s.hidden), at(all, (s.offset[step] + end) * s.hidden), static_cast<size_t>(rows) * line);
  }
}

// dw = dkept^T @ in, for the rows of weights of a span.
void weight_gradient(DType dtype, int64_t rows, int64_t hidden, int64_t kept, Span span, const void* dkept,
                     const void* in, int64_t width, void* dw) {
  const At at{dtype};
  GemmArgs g;
  g.m = span.count * hidden, g.n = width, g.k = rows;
  g.a = at(dkept, span.column * hidden), g.a_row = 1, g.a_col = kept * hidden;
  g.b = in, g.b_row = width, g.b_col = 1;
  g.c = at(dw, span.gate * hidden * width), g.c_row = width, g.c_col = 1;
  runtime.gemm(dtype, g);
}

}  // namespace

void rnn_forward(DType dtype, RnnForward f) {
  const RnnShape& s = f.shape;
  const int64_t gates = gates_of(s.cell) * s.hidden;
  GemmArgs g;
  g.m = all_rows(s), g.n = gates, g.k = s.inputs;
  g.a = f.x, g.a_row = s.inputs, g.a_col = 1;
  g.b = f.w_ih, g.b_row = 1, g.b_col = s.inputs;
  g.c = f.kept, g.c_row = kept_of(s.cell) * s.hidden, g.c_col = 1;
  if (f.b_ih != nullptr) g.bias = f.b_ih, g.bias_col = 1;
  runtime.gemm(dtype, g);
  // One step makes too little use of weights in panels.
  const Buffer<char> product(s.steps == 1 ? batch_of(s) * gates * itemsize(dtype) : 0);
  if (s.steps == 1) {
    f.product = product.data();
    g.k = s.hidden;
    g.a = f.h0, g.a_row = s.hidden;
    g.b = f.w_hh, g.b_col = s.hidden;
    g.c = product.data(), g.c_row = gates;
    g.bias = nullptr;
    runtime.gemm(dtype, g);
  }
  table().forward[type_index(dtype)][static_cast<int>(s.cell)](f);
  gather_last(dtype, s, f.out, f.hn);
  if (s.cell == Cell::Lstm) gather_last(dtype, s, f.cells, f.cn);
}

void rnn_backward(DType dtype, RnnBackward b) {
  const At at{dtype};
  const RnnShape& s = b.shape;
  const int64_t rows = all_rows(s), kept = kept_of(s.cell), gates = gates_of(s.cell);
  const size_t states = static_cast<size_t>(batch_of(s) * s.hidden * itemsize(dtype));
  const auto begin_with = [&](void* to, const void* from) {
    from != nullptr ? std::memcpy(to, from, states) : std::memset(to, 0, states);
  };
  begin_with(b.dh0, b.dhn);
  if (s.cell == Cell::Lstm) begin_with(b.dc0, b.dcn);
  const Buffer<char> dkept(rows * kept * s.hidden * itemsize(dtype));
  b.dkept = dkept.data();
  table().backward[type_index(dtype)][static_cast<int>(s.cell)](b);

  const auto sums = table().column_sums[type_index(dtype)];
  const Buffer<char> h(rows * s.hidden * itemsize(dtype));
  gather_states(dtype, s, b.h0, b.out, h.data());
  weight_gradient(dtype, rows, s.hidden, kept, {0, gates, 0}, b.dkept, h.data(), s.hidden, b.dw_hh);
  sums(rows, gates * s.hidden, kept * s.hidden, b.dkept, b.db_hh);
  Span spans[2];
  const int count = input_spans(s.cell, spans);
  for (int i = 0; i < count; ++i) {
    const Span span = spans[i];
    const void* dspan = at(b.dkept, span.column * s.hidden);
    weight_gradient(dtype, rows, s.hidden, kept, span, b.dkept, b.x, s.inputs, b.dw_ih);
    sums(rows, span.count * s.hidden, kept * s.hidden, dspan, at(b.db_ih, span.gate * s.hidden));
    if (b.dx == nullptr) continue;
    GemmArgs g;
    g.m = rows, g.n = s.inputs, g.k = span.count * s.hidden;
    g.a = dspan, g.a_row = kept * s.hidden, g.a_col = 1;
    g.b = at(b.w_ih, span.gate * s.hidden * s.inputs), g.b_row = s.inputs, g.b_col = 1;
    g.c = b.dx, g.c_row = s.inputs, g.c_col = 1;
    if (i > 0) g.beta = GemmScalar{};
    runtime.gemm(dtype, g);
  }
}

}  // namespace rl
