// Kernels of recurrent layers.
#include <cstring>
#include <vector>

#include "bind.h"
#include "kernels/rnn.h"

namespace rl {
namespace {

bool fail(const Call& c, const char* rule) {
  PyErr_Format(PyExc_RuntimeError, "%s: %s.", c.op->name, rule);
  return false;
}

bool is_matrix(const Tensor* t, int64_t rows, int64_t columns) {
  return t->ndim == 2 && t->sizes[0] == rows && t->sizes[1] == columns;
}

// Sizes of the batch at each step, as a packed sequence has them, to where each step begins.
bool read_steps(const Call& c, const Tensor* input, Tensor* sizes, std::vector<int64_t>* offset) {
  offset->assign(1, 0);
  if (sizes == nullptr) {
    const int64_t steps = input->ndim == 3 ? input->sizes[0] : 1;
    for (int64_t t = 1; t <= steps; ++t) offset->push_back(t * input->sizes[input->ndim - 2]);
    return steps > 0 || fail(c, "Expected sequence length to be larger than 0 in RNN");
  }
  if (sizes->dtype != DType::Int64 || sizes->ndim != 1 || sizes->numel == 0 || input->ndim != 2 || !sizes->is_cpu()) {
    return fail(c, "batch_sizes must be a 1-D int64 tensor on the CPU with at least one element, the input 2-D");
  }
  const Owned held = contiguous(sizes);
  if (!held) return false;
  const auto* size = reinterpret_cast<const int64_t*>(held.data());
  for (int64_t t = 0; t < sizes->numel; ++t) {
    if (size[t] < 1 || size[t] > size[t > 0 ? t - 1 : 0] || size[t] > input->sizes[0] - offset->back()) {
      return fail(c, "batch_sizes must be positive, must not grow and must add up to the rows of the input");
    }
    offset->push_back(offset->back() + size[t]);
  }
  return offset->back() == input->sizes[0] ||
         fail(c, "batch_sizes must be positive, must not grow and must add up to the rows of the input");
}

// What the ops of this file have in common, from the arguments that they begin with.
struct Layer {
  Owned x, h0, c0, w_ih, w_hh, b_ih, b_hh;
  std::vector<int64_t> offset;
  RnnShape shape;
  bool native = true;

  // The arguments from `first` on: input, hx[, cx], w_ih, w_hh, b_ih, b_hh, batch_sizes, reverse.
  bool read(const Call& c, int first, Cell cell) {
    const bool lstm = cell == Cell::Lstm;
    const Arg* a = c.args + first;
    Tensor *input = a[0].tensor, *hx = a[1].tensor, *cx = lstm ? a[2].tensor : nullptr;
    a += lstm ? 3 : 2;
    Tensor *in = a[0].tensor, *state = a[1].tensor, *sizes = tensor_or_null(a[4]);
    for (const Tensor* t : {hx, cx, in, state, tensor_or_null(a[2]), tensor_or_null(a[3])}) {
      native = native && (t == nullptr || t->dtype == input->dtype);
    }
    native = native && is_native(input) && input->ndim >= 2 && input->ndim <= 3;
    if (!native) return true;
    if (!read_steps(c, input, sizes, &offset)) return false;
    const int64_t inputs = input->sizes[input->ndim - 1], hidden = state->ndim == 2 ? state->sizes[1] : 0;
    const int64_t gates = gates_of(cell) * hidden, batch = offset[1];
    if (hidden == 0 || !is_matrix(state, gates, hidden) || !is_matrix(in, gates, inputs) ||
        !is_matrix(hx, batch, hidden) || (lstm && !is_matrix(cx, batch, hidden))) {
      return fail(c, "input, states and weights do not fit");
    }
    for (int i = 2; i < 4; ++i) {
      if (a[i].is_tensor() && a[i].tensor->numel != gates) return fail(c, "a bias needs one number per gate and unit");
    }
    shape = {cell, a[5].to_bool(), inputs, hidden, static_cast<int64_t>(offset.size()) - 1, offset.data()};
    x = contiguous(input), h0 = contiguous(hx), w_ih = contiguous(in), w_hh = contiguous(state);
    if (lstm) c0 = contiguous(cx);
    b_ih = contiguous_or_none(a[2]), b_hh = contiguous_or_none(a[3]);
    return x && h0 && w_ih && w_hh && !PyErr_Occurred();
  }
  // Hidden states for every row of the input.
  Owned states() const {
    int64_t sizes[3] = {x->sizes[0], x->sizes[1]};
    sizes[x->ndim - 1] = shape.hidden;
    return empty(x->ndim, sizes, x->dtype);
  }
  Owned kept(int64_t factor) const {
    const int64_t sizes[2] = {all_rows(shape), factor * shape.hidden};
    return empty(2, sizes, x->dtype);
  }
  int64_t work() const { return all_rows(shape) * gates_of(shape.cell) * shape.hidden * (shape.inputs + shape.hidden); }
};

// The cells of nn::recurrent_layer by number.
bool read_cell(const Call& c, const Arg& a, Cell* cell) {
  const int64_t number = a.to_int();
  if (number < 1 || number > 3) return fail(c, "cell must be 1 (GRU), 2 (tanh) or 3 (relu)");
  *cell = static_cast<Cell>(number);
  return true;
}

RnnForward forward_of(const Layer& l) {
  RnnForward f{};
  f.shape = l.shape;
  f.x = l.x.data(), f.h0 = l.h0.data(), f.c0 = l.c0.data();
  f.w_ih = l.w_ih.data(), f.w_hh = l.w_hh.data(), f.b_ih = l.b_ih.data(), f.b_hh = l.b_hh.data();
  return f;
}

// nn::lstm_layer(input, hx, cx, w_ih, w_hh, b_ih, b_hh, batch_sizes, reverse): all states, the last ones, and for the
// gradient the gates and cells of each step.
PyObject* lstm_layer_kernel(Call& c) {
  Layer l;
  if (!l.read(c, 0, Cell::Lstm)) return nullptr;
  if (!l.native) return run_composite(c);
  Owned out = l.states(), hn = empty_like(l.h0.tensor()), cn = empty_like(l.c0.tensor()), kept = l.kept(4),
        cells = l.kept(1);
  if (!out || !hn || !cn || !kept || !cells) return nullptr;
  RnnForward f = forward_of(l);
  f.out = out.data(), f.hn = hn.data(), f.cn = cn.data(), f.kept = kept.data(), f.cells = cells.data();
  if (!run_unlocked(l.work(), [&] { rnn_forward(l.x->dtype, f); })) return nullptr;
  return tuple_of({&out, &hn, &cn, &kept, &cells});
}

// nn::recurrent_layer(cell, input, hx, w_ih, w_hh, b_ih, b_hh, batch_sizes, reverse)
PyObject* recurrent_layer_kernel(Call& c) {
  Layer l;
  Cell cell;
  if (!read_cell(c, c.args[0], &cell) || !l.read(c, 1, cell)) return nullptr;
  if (!l.native) return run_composite(c);
  Owned out = l.states(), hn = empty_like(l.h0.tensor()), kept = l.kept(cell == Cell::Gru ? 4 : 0);
  if (!out || !hn || !kept) return nullptr;
  RnnForward f = forward_of(l);
  f.out = out.data(), f.hn = hn.data(), f.kept = cell == Cell::Gru ? kept.data() : out.data();
  if (!run_unlocked(l.work(), [&] { rnn_forward(l.x->dtype, f); })) return nullptr;
  return tuple_of({&out, &hn, &kept});
}

// An optional gradient of a result of that many elements.
bool read_gradient(const Call& c, const Arg& a, const Tensor* like, int64_t numel, Owned* out) {
  if (!a.is_tensor()) return true;
  if (a.tensor->dtype != like->dtype || a.tensor->numel != numel) return fail(c, "gradients and results do not fit");
  *out = contiguous(a.tensor);
  return static_cast<bool>(*out);
}

// The gradients of both ops. `grads` leads to those of out, hn[, cn], `results` to out, [cells,] kept.
PyObject* backward(Call& c, const Layer& l, const Arg* grads, const Arg* results, bool needs_input) {
  const bool lstm = l.shape.cell == Cell::Lstm;
  const int64_t rows = all_rows(l.shape), hidden = l.shape.hidden, states = batch_of(l.shape) * hidden;
  Owned dout, dhn, dcn, out, cells, kept;
  const int64_t keeps = l.shape.cell == Cell::Gru || lstm ? 4 : 0;
  if (!read_gradient(c, grads[0], l.x.tensor(), rows * hidden, &dout) ||
      !read_gradient(c, grads[1], l.x.tensor(), states, &dhn) ||
      (lstm && !read_gradient(c, grads[2], l.x.tensor(), states, &dcn)) ||
      !read_gradient(c, results[0], l.x.tensor(), rows * hidden, &out) ||
      !read_gradient(c, results[1], l.x.tensor(), rows * hidden * keeps, &kept) ||
      (lstm && !read_gradient(c, results[2], l.x.tensor(), rows * hidden, &cells))) {
    return nullptr;
  }
  const int64_t gates = gates_of(l.shape.cell) * hidden;
  Owned dx, dh0 = empty_like(l.h0.tensor()), dc0, dw_ih = empty_like(l.w_ih.tensor()),
            dw_hh = empty_like(l.w_hh.tensor()), db_ih = empty(1, &gates, l.x->dtype),
            db_hh = empty(1, &gates, l.x->dtype);
  if (needs_input) dx = empty_like(l.x.tensor());
  if (lstm) dc0 = empty_like(l.c0.tensor());
  if (!dh0 || !dw_ih || !dw_hh || !db_ih || !db_hh || PyErr_Occurred()) return nullptr;
  RnnBackward b{};
  b.shape = l.shape;
  b.x = l.x.data(), b.w_ih = l.w_ih.data(), b.w_hh = l.w_hh.data(), b.h0 = l.h0.data(), b.c0 = l.c0.data();
  b.out = out.data(), b.cells = cells.data(), b.kept = kept.data();
  b.dout = dout.data(), b.dhn = dhn.data(), b.dcn = dcn.data();
  b.dx = dx.data(), b.dh0 = dh0.data(), b.dc0 = dc0.data(), b.dw_ih = dw_ih.data(), b.dw_hh = dw_hh.data();
  b.db_ih = db_ih.data(), b.db_hh = db_hh.data();
  if (!run_unlocked(l.work(), [&] { rnn_backward(l.x->dtype, b); })) return nullptr;
  return lstm ? tuple_of({&dx, &dh0, &dc0, &dw_ih, &dw_hh, &db_ih, &db_hh})
              : tuple_of({&dx, &dh0, &dw_ih, &dw_hh, &db_ih, &db_hh});
}

// nn::lstm_layer_backward(out_grad, hn_grad, cn_grad, out, kept, cells, needs_input, <arguments of nn::lstm_layer>)
PyObject* lstm_layer_backward_kernel(Call& c) {
  Layer l;
  if (!l.read(c, 7, Cell::Lstm)) return nullptr;
  return l.native ? backward(c, l, c.args, c.args + 3, c.args[6].to_bool()) : run_composite(c);
}

// nn::recurrent_layer_backward(out_grad, hn_grad, out, kept, needs_input, <arguments of nn::recurrent_layer>)
PyObject* recurrent_layer_backward_kernel(Call& c) {
  Layer l;
  Cell cell;
  if (!read_cell(c, c.args[5], &cell) || !l.read(c, 6, cell)) return nullptr;
  return l.native ? backward(c, l, c.args, c.args + 2, c.args[4].to_bool()) : run_composite(c);
}

}  // namespace

bool register_rnn() {
  return api->register_kernel("nn::lstm_layer", "cpu", lstm_layer_kernel) == 0 &&
         api->register_kernel("nn::lstm_layer_backward", "cpu", lstm_layer_backward_kernel) == 0 &&
         api->register_kernel("nn::recurrent_layer", "cpu", recurrent_layer_kernel) == 0 &&
         api->register_kernel("nn::recurrent_layer_backward", "cpu", recurrent_layer_backward_kernel) == 0;
}

}  // namespace rl
