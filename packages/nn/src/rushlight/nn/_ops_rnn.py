"""Recurrent layers: LSTM, GRU and the plain RNN, whole or one step at a time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._op import COMPOSITE, Op, Sample
from rushlight.nn._ops_linear import linear
from rushlight.nn._precision import wide
from rushlight.nn._recompute import gradients

# The cells, as the native kernels number them (csrc/kernels/rnn.h), and their gates.
LSTM, GRU, TANH, RELU = range(4)
_GATES = (4, 3, 1, 1)
States = tuple[Tensor, ...]

# -- one layer in one direction

_HALVES = (rl.float16, rl.bfloat16)


def _step(cell: int, gates: Tensor, states: States, weight: Tensor, bias: Tensor | None) -> tuple[States, Tensor]:
    """One step from what the input adds to the gates: the new states, and what is kept for the gradient."""
    h = states[0]
    hidden = linear.operator(h, weight, bias)
    if cell == GRU:
        (r, z, candidate), (from_r, from_z, from_state) = gates.chunk(3, 1), hidden.chunk(3, 1)
        r, z = rl.sigmoid(r + from_r), rl.sigmoid(z + from_z)
        candidate = rl.tanh(candidate + r * from_state)
        return (candidate + z * (h - candidate),), rl.cat([r, z, candidate, from_state], 1)
    gates = gates + hidden
    if cell != LSTM:
        return ((rl.tanh if cell == TANH else rl.relu)(gates),), gates[:, :0]
    i, forget, candidate, o = gates.chunk(4, 1)
    i, forget, candidate, o = rl.sigmoid(i), rl.sigmoid(forget), rl.tanh(candidate), rl.sigmoid(o)
    c = forget * states[1] + i * candidate
    return (o * rl.tanh(c), c), rl.cat([i, forget, candidate, o], 1)


def _unroll(
    cell: int,
    input: Tensor,
    states: States,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
    w_hr: Tensor | None,
    batch_sizes: Tensor | None,
    reverse: bool,
) -> tuple[Tensor, States, Tensor, Tensor]:
    """All steps, one after the other: the outputs, the last states, and what the gradient needs."""
    if batch_sizes is not None:
        sizes = batch_sizes.tolist()
    else:
        sizes = [input.size(-2)] * (input.size(0) if input.dim() == 3 else 1)
    if not sizes:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    rows = input.reshape(-1, input.size(-1))
    if min(sizes) < 0 or sum(sizes) != rows.size(0) or any(a < b for a, b in itertools.pairwise(sizes)):
        raise RuntimeError(f"batch_sizes must not grow and must add up to {rows.size(0)}, got batch_sizes={sizes}.")
    if any(state.size(0) != sizes[0] for state in states):
        raise RuntimeError(f"Expected states for {sizes[0]} sequences, got {[list(s.shape) for s in states]}.")
    gates = linear.operator(rows, w_ih, b_ih).split(sizes)
    steps = range(len(sizes))
    kept: list[Any] = [None] * len(sizes)
    outputs, cells = kept.copy(), kept.copy()
    current, ended = tuple(state[:0] for state in states), []
    for t in reversed(steps) if reverse else steps:
        size, before = sizes[t], current[0].size(0)
        if size < before:
            ended.append([state[size:] for state in current])
            current = tuple(state[:size] for state in current)
        elif size > before:
            current = tuple(rl.cat([now, first[before:size]]) for now, first in zip(current, states, strict=True))
        current, kept[t] = _step(cell, gates[t], current, w_hh, b_hh)
        if w_hr is not None:
            current = (linear.operator(current[0], w_hr), *current[1:])
        outputs[t], cells[t] = current[0], current[-1]
    ended.append(list(current))
    last = tuple(rl.cat(parts) for parts in zip(*reversed(ended), strict=True))
    return rl.cat(outputs).reshape(*input.shape[:-1], last[0].size(1)), last, rl.cat(kept), rl.cat(cells)


def _to(results: Sequence[Any], dtype: Any) -> tuple[Any, ...]:
    return tuple(x if x is None else x.to(dtype) for x in results)


def lstm_layer_composite(
    input: Tensor,
    hx: Tensor,
    cx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
    batch_sizes: Tensor | None,
    reverse: bool,
) -> tuple[Tensor, ...]:
    if input.dtype in _HALVES:
        tensors = map(wide, (input, hx, cx, w_ih, w_hh, b_ih, b_hh))
        return _to(lstm_layer.operator(*tensors, batch_sizes, reverse), input.dtype)
    out, (h, c), kept, cells = _unroll(LSTM, input, (hx, cx), w_ih, w_hh, b_ih, b_hh, None, batch_sizes, reverse)
    return out, h, c, kept, cells


def recurrent_layer_composite(
    cell: int,
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
    batch_sizes: Tensor | None,
    reverse: bool,
) -> tuple[Tensor, ...]:
    if input.dtype in _HALVES:
        tensors = map(wide, (input, hx, w_ih, w_hh, b_ih, b_hh))
        return _to(recurrent_layer.operator(cell, *tensors, batch_sizes, reverse), input.dtype)
    out, (h,), kept, _ = _unroll(cell, input, (hx,), w_ih, w_hh, b_ih, b_hh, None, batch_sizes, reverse)
    return out, h, kept


def lstm_layer_grad(
    grads: Sequence[Tensor | None],
    input: Tensor,
    hx: Tensor,
    cx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
    batch_sizes: Tensor | None,
    reverse: bool,
    results: Sequence[Tensor],
    needs: Sequence[bool],
) -> Sequence[Tensor | None]:
    inputs = (input, hx, cx, w_ih, w_hh, b_ih, b_hh)
    if rl.is_grad_enabled():
        return gradients(partial(lstm_layer_composite, batch_sizes=batch_sizes, reverse=reverse), inputs, grads[:3])
    out, _, _, kept, cells = results
    arguments = (*inputs, batch_sizes, reverse)
    return _present(lstm_layer_backward.operator(*grads[:3], out, kept, cells, needs[0], *arguments), b_ih, b_hh)


def recurrent_layer_grad(
    grads: Sequence[Tensor | None],
    cell: int,
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
    batch_sizes: Tensor | None,
    reverse: bool,
    results: Sequence[Tensor],
    needs: Sequence[bool],
) -> Sequence[Tensor | None]:
    inputs = (input, hx, w_ih, w_hh, b_ih, b_hh)
    if rl.is_grad_enabled():
        layer = partial(recurrent_layer_composite, cell, batch_sizes=batch_sizes, reverse=reverse)
        return gradients(layer, inputs, grads[:2])
    out, _, kept = results
    arguments = (cell, *inputs, batch_sizes, reverse)
    return _present(recurrent_layer_backward.operator(*grads[:2], out, kept, needs[0], *arguments), b_ih, b_hh)


def _present(grads: Sequence[Any], b_ih: Tensor | None, b_hh: Tensor | None) -> Sequence[Any]:
    """The gradients without those of biases that are not there."""
    if b_ih is not None and b_hh is not None:
        return grads
    return (*grads[:-2], None if b_ih is None else grads[-2], None if b_hh is None else grads[-1])


def _layer_backward(layer: Callable[..., Any], inputs: Sequence[Any], grads: Sequence[Any]) -> tuple[Any, ...]:
    """The gradients of a layer in the order of its inputs, zeros where there are none."""
    own = [wide(x) for x in inputs]
    with rl.no_grad():
        found = gradients(layer, own, [wide(grad) for grad in grads])
    return tuple(
        x if x is None else (rl.zeros_like(y) if x is None else x).to(y.dtype)
        for x, y in zip(found, inputs, strict=True)
    )


def lstm_layer_backward_composite(
    out_grad: Tensor | None,
    hn_grad: Tensor | None,
    cn_grad: Tensor | None,
    out: Tensor,
    kept: Tensor,
    cells: Tensor,
    needs_input: bool,
    *arguments: Any,
) -> tuple[Any, ...]:
    inputs, rest = arguments[:7], arguments[7:]
    return _layer_backward(lambda *own: lstm_layer_composite(*own, *rest), inputs, (out_grad, hn_grad, cn_grad))


def recurrent_layer_backward_composite(
    out_grad: Tensor | None,
    hn_grad: Tensor | None,
    out: Tensor,
    kept: Tensor,
    needs_input: bool,
    cell: int,
    *arguments: Any,
) -> tuple[Any, ...]:
    inputs, rest = arguments[:6], arguments[6:]
    return _layer_backward(lambda *own: recurrent_layer_composite(cell, *own, *rest), inputs, (out_grad, hn_grad))


def _layer_arguments(make: Any, cell: int) -> list[Any]:
    """Input, states and parameters of a small layer."""
    inputs, hidden, gates = 3, 5, _GATES[cell]
    states = [make(2, hidden) for _ in range(1 + (cell == LSTM))]
    weights = [make(gates * hidden, inputs), make(gates * hidden, hidden)]
    return [make(4, 2, inputs), *states, *weights, make(gates * hidden), make(gates * hidden)]


def _layer_samples(cell: int) -> Callable[..., Any]:
    leading = () if cell == LSTM else (cell,)

    def samples(make: Any, dtype: Any) -> Any:
        if not dtype.is_floating_point:
            return
        arguments = _layer_arguments(make, cell)
        yield Sample((*leading, *arguments, None, False))
        yield Sample((*leading, *arguments[:-2], None, None, None, True))

    return samples


def _backward_samples(cell: int) -> Callable[..., Any]:
    def samples(make: Any, dtype: Any) -> Any:
        if not dtype.is_floating_point or dtype.itemsize < 4:
            return
        arguments = [x.detach() for x in _layer_arguments(make, cell)]
        if cell == LSTM:
            out, h, c, kept, cells = lstm_layer.operator(*arguments, None, False)
            grads = [rl.ones_like(x) for x in (out, h, c)]
            yield Sample((*grads, out, kept, cells, True, *arguments, None, False))
        else:
            out, h, kept = recurrent_layer.operator(cell, *arguments, None, False)
            yield Sample((rl.ones_like(out), rl.ones_like(h), out, kept, True, cell, *arguments, None, False))

    return samples


_WEIGHTS = "Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh"
_LSTM_ARGUMENTS = f"Tensor input, Tensor hx, Tensor cx, {_WEIGHTS}, Tensor? batch_sizes, bool reverse"
_ARGUMENTS = f"int cell, Tensor input, Tensor hx, {_WEIGHTS}, Tensor? batch_sizes, bool reverse"

lstm_layer = (
    Op(
        f"nn::lstm_layer({_LSTM_ARGUMENTS}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
        method=False,
        out=False,
        auxiliary=2,
        doc="""One layer of an LSTM in one direction (S. Hochreiter and J. Schmidhuber, Long Short-Term Memory, 1997).

        Args:
            input: (T, B, in); (B, in) for one step; (sum of batch_sizes, in), packed.
            hx: (B, hidden), the first states.
            cx: (B, hidden), the first cells.
            w_ih: (4 * hidden, in), for the gates input, forget, candidate and output.
            w_hh: (4 * hidden, hidden).
            b_ih: (4 * hidden,).
            b_hh: (4 * hidden,).
            batch_sizes: Rows of each step, which never grow; None where all have B.
            reverse: Whether the last step comes first.

        Returns:
            The states of all steps, the last states and cells, and for the gradient gates and cells of all steps.
        """,
    )
    .composite(lstm_layer_composite)
    .grad(("input", "hx", "cx", "w_ih", "w_hh", "b_ih", "b_hh"), lstm_layer_grad)
    .samples(_layer_samples(LSTM))
)
lstm_layer_backward = (
    Op(
        "nn::lstm_layer_backward(Tensor? out_grad, Tensor? hn_grad, Tensor? cn_grad, Tensor out, Tensor kept, "
        f"Tensor cells, bool needs_input, {_LSTM_ARGUMENTS}) "
        "-> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
        method=False,
        out=False,
        differentiable=False,
        doc="Gradients of `lstm_layer` with respect to its tensors; None for the input unless `needs_input`.",
    )
    .composite(lstm_layer_backward_composite)
    .samples(_backward_samples(LSTM))
)
recurrent_layer = (
    Op(
        f"nn::recurrent_layer({_ARGUMENTS}) -> (Tensor, Tensor, Tensor)",
        method=False,
        out=False,
        auxiliary=1,
        doc="""One layer of a GRU (K. Cho et al., 2014) or plain RNN in one direction, as `lstm_layer`.

        `cell` is 1 for the GRU, whose gates are reset, update and candidate, 2 for tanh and 3 for relu.
        """,
    )
    .composite(recurrent_layer_composite)
    .grad(("input", "hx", "w_ih", "w_hh", "b_ih", "b_hh"), recurrent_layer_grad)
    .samples(lambda make, dtype: (s for cell in (GRU, TANH, RELU) for s in _layer_samples(cell)(make, dtype)))
)
recurrent_layer_backward = (
    Op(
        "nn::recurrent_layer_backward(Tensor? out_grad, Tensor? hn_grad, Tensor out, Tensor kept, bool needs_input, "
        f"{_ARGUMENTS}) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
        method=False,
        out=False,
        differentiable=False,
        doc="Gradients of `recurrent_layer` with respect to its tensors; None for the input unless `needs_input`.",
    )
    .composite(recurrent_layer_backward_composite)
    .samples(lambda make, dtype: (s for cell in (GRU, TANH, RELU) for s in _backward_samples(cell)(make, dtype)))
)


# -- stacks of layers


def _stack(
    name: str,
    cell: int,
    input: Tensor,
    states: Sequence[Tensor],
    batch_sizes: Tensor | None,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Tensor, ...]:
    directions = 1 + bidirectional
    count = num_layers * directions
    plain = 4 if has_biases else 2
    projected = cell == LSTM and states[0].size(-1) != states[1].size(-1)
    per = plain + projected
    if len(params) != count * per:
        raise RuntimeError(f"{name}: expected {per} params for each of {count} layers, got {len(params)} params.")
    if any(state.dim() != 3 or state.size(0) != count for state in states):
        raise RuntimeError(
            f"{name}: expected hx of size ({count}, batch, hidden), got {[list(state.shape) for state in states]}."
        )
    ends = []
    for layer in range(num_layers):
        outputs = []
        for i in range(layer * directions, (layer + 1) * directions):
            own = [state.select(0, i) for state in states]
            weights: list[Any] = [*params[i * per : i * per + plain], *[None] * (4 - plain)]
            reverse = i % directions == 1
            if projected:
                weights += [params[i * per + plain], batch_sizes, reverse]
                out, last, _, _ = _unroll(cell, input, tuple(own), *weights)
            elif cell == LSTM:
                out, *last = lstm_layer.operator(input, *own, *weights, batch_sizes, reverse)[:3]
            else:
                out, *last = recurrent_layer.operator(cell, input, *own, *weights, batch_sizes, reverse)[:2]
            outputs.append(out)
            ends.append(last)
        input = outputs[0] if len(outputs) == 1 else rl.cat(outputs, -1)
        if dropout and train and layer < num_layers - 1:
            input = rl.dropout(input, dropout, True)
    return input, *(last[0].unsqueeze(0) if count == 1 else rl.stack(last) for last in zip(*ends, strict=True))


def _composites(name: str, cell: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def states_of(hx: Any) -> Sequence[Tensor]:
        if cell == LSTM and len(hx) != 2:
            raise RuntimeError("lstm expects two hidden states")
        return hx if cell == LSTM else (hx,)

    def on_input(input: Tensor, hx: Any, params: Any, *options: Any) -> tuple[Tensor, ...]:
        *settings, batch_first = options
        if input.dim() != 3:
            raise RuntimeError(f"{name}: expected a 3-D input, got input of size {list(input.shape)}.")
        steps = input.transpose(0, 1) if batch_first else input
        out, *last = _stack(name, cell, steps, states_of(hx), None, params, *settings)
        return out.transpose(0, 1) if batch_first else out, *last

    def on_data(data: Tensor, batch_sizes: Tensor, hx: Any, params: Any, *settings: Any) -> tuple[Tensor, ...]:
        if data.dim() != 2:
            raise RuntimeError(f"{name}: expected packed data in 2 dimensions, got data of size {list(data.shape)}.")
        return _stack(name, cell, data, states_of(hx), batch_sizes, params, *settings)

    return on_input, on_data


def _stack_samples(cell: int, packed: bool) -> Callable[..., Any]:
    def samples(make: Any, dtype: Any) -> Any:
        if not dtype.is_floating_point:
            return
        gates, hidden = _GATES[cell], 3
        params = [
            make(*shape)
            for inputs in (2, 2, 2 * hidden, 2 * hidden)
            for shape in ((gates * hidden, inputs), (gates * hidden, hidden), (gates * hidden,), (gates * hidden,))
        ]
        states = [make(4, 2, hidden) for _ in range(2 if cell == LSTM else 1)]
        hx = states if cell == LSTM else states[0]
        data = (make(3, 2), make.tensor([2, 1])) if packed else (make(2, 3, 2),)
        yield Sample((*data, hx, params, True, 2, 0.0, False, True, *(() if packed else (True,))))

    return samples


_SETTINGS = "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"


def _stack_records(name: str, cell: int, what: str) -> tuple[Op, Op]:
    hx, results = ("Tensor[] hx", "Tensor, Tensor, Tensor") if cell == LSTM else ("Tensor hx", "Tensor, Tensor")
    on_input, on_data = _composites(name, cell)
    doc = f"""{what} of several layers, in one or both directions, with dropout between them.

    Also called with the data and batch_sizes of a PackedSequence, without `batch_first`.

    Args:
        input: (T, B, in), or (B, T, in) with `batch_first`.
        hx: {"First states and cells" if cell == LSTM else "First states"}, (layers * directions, B, hidden).
        params: w_ih, w_hh and, with biases, b_ih and b_hh of each layer and direction.
        has_biases: Whether there are biases.
        num_layers: How many layers.
        dropout: Probability of a zero between two layers.
        train: Whether there is dropout at all.
        bidirectional: Whether each layer goes both ways.
        batch_first: Whether the batch is the first dimension.

    Returns:
        The states of the last layer at all steps, and the last {"states and cells" if cell == LSTM else "states"} of
        all layers.
    """
    options: dict[str, Any] = {"family": COMPOSITE, "method": False, "out": False}
    return (
        Op(f"{name}.input(Tensor input, {hx}, {_SETTINGS}, bool batch_first) -> ({results})", doc=doc, **options)
        .composite(on_input)
        .samples(_stack_samples(cell, False)),
        Op(
            f"{name}.data(Tensor data, Tensor batch_sizes, {hx}, {_SETTINGS}) -> ({results})",
            doc=doc,
            dynamic=True,
            **options,
        )
        .composite(on_data)
        .samples(_stack_samples(cell, True)),
    )


lstm, lstm_data = _stack_records("lstm", LSTM, "An LSTM")
gru, gru_data = _stack_records("gru", GRU, "A GRU")
rnn_tanh, rnn_tanh_data = _stack_records("rnn_tanh", TANH, "An RNN with tanh")
rnn_relu, rnn_relu_data = _stack_records("rnn_relu", RELU, "An RNN with relu")


# -- cells


def _check_cell(cell: int, input: Tensor, states: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor) -> None:
    if input.dim() != 2:
        raise RuntimeError(f"expected an input (batch, features), got input of size {list(input.shape)}.")
    if input.size(1) != w_ih.size(1):
        raise RuntimeError(f"input has inconsistent input_size: got {input.size(1)} expected {w_ih.size(1)}")
    for i, state in enumerate(states):
        if state.dim() != 2 or state.size(0) != input.size(0):
            raise RuntimeError(
                f"Input batch size {input.size(0)} doesn't match hidden{i} batch size "
                f"{state.size(0) if state.dim() else 0}"
            )
        if state.size(1) != w_hh.size(1):
            raise RuntimeError(f"hidden{i} has inconsistent hidden_size: got {state.size(1)}, expected {w_hh.size(1)}")


def lstm_cell_composite(
    input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None
) -> tuple[Tensor, Tensor]:
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    _check_cell(LSTM, input, hx, w_ih, w_hh)
    _, h, c, *_ = lstm_layer.operator(input, *hx, w_ih, w_hh, b_ih, b_hh, None, False)
    return h, c


def _cell_composite(cell: int) -> Callable[..., Tensor]:
    def composite(
        input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None
    ) -> Tensor:
        _check_cell(cell, input, [hx], w_ih, w_hh)
        return recurrent_layer.operator(cell, input, hx, w_ih, w_hh, b_ih, b_hh, None, False)[1]

    return composite


def _cell_record(name: str, cell: int, what: str) -> Op:
    hx, results = ("Tensor[] hx", "(Tensor, Tensor)") if cell == LSTM else ("Tensor hx", "Tensor")

    def samples(make: Any, dtype: Any) -> Any:
        if not dtype.is_floating_point:
            return
        gates, states = _GATES[cell], [make(2, 4) for _ in range(2 if cell == LSTM else 1)]
        weights = (make(gates * 4, 3), make(gates * 4, 4), make(gates * 4), make(gates * 4))
        for count in (4, 2):
            yield Sample((make(2, 3), states if cell == LSTM else states[0], *weights[:count]))

    return (
        Op(
            f"{name}(Tensor input, {hx}, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> {results}",
            family=COMPOSITE,
            method=False,
            out=False,
            doc=f"""One step of {what}.

            Args:
                input: (B, in).
                hx: {"State and cell" if cell == LSTM else "The state"}, (B, hidden).
                w_ih: ({_GATES[cell]} * hidden, in).
                w_hh: ({_GATES[cell]} * hidden, hidden).
                b_ih: ({_GATES[cell]} * hidden,).
                b_hh: ({_GATES[cell]} * hidden,).

            Returns:
                The new {"state and cell" if cell == LSTM else "state"}, (B, hidden).
            """,
        )
        .composite(lstm_cell_composite if cell == LSTM else _cell_composite(cell))
        .samples(samples)
    )


lstm_cell = _cell_record("lstm_cell", LSTM, "an LSTM")
gru_cell = _cell_record("gru_cell", GRU, "a GRU")
rnn_tanh_cell = _cell_record("rnn_tanh_cell", TANH, "an RNN with tanh")
rnn_relu_cell = _cell_record("rnn_relu_cell", RELU, "an RNN with relu")
