"""Recurrent layers, whole and one step at a time."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import init
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
_NONLINEARITIES = {"tanh": "RNN_TANH", "relu": "RNN_RELU"}


class RNNBase(Module):
    """What recurrent layers share: parameters, the checks of an input, and the order of sequences.

    Args:
        mode: "LSTM", "GRU", "RNN_TANH" or "RNN_RELU".
        input_size: Features of the input.
        hidden_size: Features of the state.
        num_layers: Layers, each of which reads the states of the one before.
        bias: Whether there are biases.
        batch_first: Whether batches are (B, T, features) instead of (T, B, features). States are not affected.
        dropout: Probability of a zero in what one layer hands to the next, in training.
        bidirectional: Whether each layer goes both ways.
        proj_size: If positive, states are projected to that size (LSTM only).
        device: Where the parameters are made.
        dtype: Their type.

    Attributes:
        weight_ih_l[k]: (gates * hidden_size, in), uniform within ``1 / sqrt(hidden_size)`` as all of them; with the
            suffix ``_reverse`` that of the other direction.
        weight_hh_l[k]: (gates * hidden_size, hidden_size or proj_size).
        bias_ih_l[k]: (gates * hidden_size,).
        bias_hh_l[k]: (gates * hidden_size,).
        weight_hr_l[k]: (proj_size, hidden_size), with projections.
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= float(dropout) <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed, "
                f"got dropout={dropout}."
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=2,
            )
        if not isinstance(hidden_size, int):
            raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
        for name, size in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
            if size <= 0:
                raise ValueError(f"{name} must be greater than zero, got {name}={size}.")
        if proj_size < 0:
            raise ValueError(
                f"proj_size should be a positive integer or zero to disable projections, got proj_size={proj_size}."
            )
        if proj_size >= hidden_size:
            raise ValueError(
                f"proj_size has to be smaller than hidden_size, got proj_size={proj_size}, hidden_size={hidden_size}."
            )
        if mode not in _GATES:
            raise ValueError(f"Unrecognized RNN mode: {mode}. Use one of {', '.join(sorted(_GATES))}.")
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._all_weights: list[list[str]] = []
        gates, state_size = _GATES[mode] * hidden_size, proj_size or hidden_size
        directions = ("", "_reverse") if bidirectional else ("",)
        for layer in range(num_layers):
            for suffix in directions:
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (gates, state_size * len(directions) if layer else input_size),
                    "weight_hh": (gates, state_size),
                }
                if bias:
                    shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                self._all_weights.append([f"{name}_l{layer}{suffix}" for name in shapes])
                for name, shape in zip(self._all_weights[-1], shapes.values(), strict=True):
                    setattr(self, name, Parameter(rl.empty(shape, device=device, dtype=dtype)))
        self.reset_parameters()

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights(self) -> list[Tensor]:
        return [weight for weights in self.all_weights for weight in weights]

    def flatten_parameters(self) -> None:
        """Does nothing: parameters are fast as they lie."""

    def reset_parameters(self) -> None:
        """Draws new initial values."""
        bound = 1 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        """Sizes, and what is not the default."""
        text = f"{self.input_size}, {self.hidden_size}"
        for name, default in (
            ("proj_size", 0),
            ("num_layers", 1),
            ("bias", True),
            ("batch_first", False),
            ("dropout", 0),
            ("bidirectional", False),
        ):
            value = getattr(self, name)
            if value != default:
                text += f", {name}={value}"
        return text

    # -- checks

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raises unless the input fits the layer.

        Raises:
            ValueError: The dtype is not that of the weights.
            RuntimeError: Dimensions or features do not fit.
        """
        weight = self._flat_weights[0]
        if input.dtype != weight.dtype and not rl.is_autocast_enabled(input.device.type):
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). Convert input: "
                f"input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        expected = 3 if batch_sizes is None else 2
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
                f" (input {list(input.shape)} to {self})"
            )

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The size of the states that belong to an input."""
        batch = int(batch_sizes[0]) if batch_sizes is not None else input.size(0 if self.batch_first else 1)
        return (self.num_layers * (1 + self.bidirectional), batch, self.proj_size or self.hidden_size)

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Raises RuntimeError with `msg` unless `hx` has the expected size."""
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raises unless input and states fit the layer and each other."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The states in another order of the batch."""
        return hx if permutation is None else hx.index_select(1, permutation)

    # -- the forward pass, from a state that is a tensor; an LSTM has two

    _operator: Any

    def _states(self, hx: Any) -> tuple[Tensor, ...]:
        return (hx,)

    def _as_hx(self, states: tuple[Tensor, ...]) -> Any:
        return states[0]

    def _state_sizes(self) -> tuple[int, ...]:
        return (self.hidden_size,)

    def _check_dims(self, states: tuple[Tensor, ...], batched: bool) -> None:
        dims, kind = (3, "batched 3-D") if batched else (2, "unbatched 2-D")
        if states[0].dim() != dims:
            raise RuntimeError(f"For {kind} input, hx should also be {dims}-D but got {states[0].dim()}-D tensor")

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Runs all layers over a sequence.

        Args:
            input: (T, B, in), (B, T, in) with `batch_first`, (T, in), or a PackedSequence.
            hx: First states, (layers * directions, B, features) or without B for an unbatched input; zeros by
                default.

        Returns:
            The states of the last layer at all steps, shaped as the input, and the last states of all layers.

        Raises:
            ValueError: The input has another number of dimensions or another dtype.
            RuntimeError: Sizes do not fit.
        """
        batch_sizes = order = back = None
        batched = True
        packed = not isinstance(input, Tensor)
        if packed:
            data, batch_sizes, order, back = input
        else:
            data = input
            if data.dim() not in (2, 3):
                noun = " tensor" if self.mode.startswith("RNN") else ""
                raise ValueError(
                    f"{type(self).__name__}: Expected input to be 2D or 3D, got {data.dim()}D{noun} instead"
                )
            batched = data.dim() == 3
            batch_dim = 0 if self.batch_first else 1
            if not batched:
                data = data.unsqueeze(batch_dim)
        if hx is None:
            layers, batch, _ = self.get_expected_hidden_size(data, batch_sizes)
            states = tuple(
                rl.zeros(layers, batch, size, dtype=data.dtype, device=data.device) for size in self._state_sizes()
            )
        else:
            states = self._states(hx)
            if not packed:
                self._check_dims(states, batched)
            if not batched:
                states = tuple(state.unsqueeze(1) for state in states)
            states = self._states(self.permute_hidden(self._as_hx(states), order))
        self.check_forward_args(data, self._as_hx(states), batch_sizes)
        settings = (self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        if batch_sizes is not None:
            out, *last = self._operator(data, batch_sizes.to(data.device), self._as_hx(states), *settings)
            hidden = self.permute_hidden(self._as_hx(tuple(last)), back)
            return type(input)(out, batch_sizes, order, back), hidden
        out, *last = self._operator(data, self._as_hx(states), *settings, self.batch_first)
        if not batched:
            out, last = out.squeeze(batch_dim), [state.squeeze(1) for state in last]
        return out, self._as_hx(tuple(last))


class RNN(RNNBase):
    """A plain recurrent network: ``h' = tanh(w_ih x + b_ih + w_hh h + b_hh)`` at each step.

    Args:
        input_size: Features of the input.
        hidden_size: Features of the state.
        num_layers: Layers, each of which reads the states of the one before.
        nonlinearity: "tanh" or "relu".
        bias: Whether there are biases.
        batch_first: Whether batches are (B, T, features) instead of (T, B, features).
        dropout: Probability of a zero in what one layer hands to the next, in training.
        bidirectional: Whether each layer goes both ways.
        device: Where the parameters are made.
        dtype: Their type.

    Example:
        >>> import rushlight as torch
        >>> out, h = torch.nn.RNN(10, 20, 2)(torch.zeros(5, 3, 10))
        >>> out.shape, h.shape
        (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        **options: Any,
    ) -> None:
        _refuse_projection(options)
        if nonlinearity not in _NONLINEARITIES:
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        self.nonlinearity = nonlinearity
        super().__init__(
            _NONLINEARITIES[nonlinearity], input_size, hidden_size, num_layers, bias, batch_first, dropout,
            bidirectional, device=device, dtype=dtype,
        )  # fmt: skip

    @property
    def _operator(self) -> Any:
        return rl.rnn_tanh if self.mode == "RNN_TANH" else rl.rnn_relu


def _refuse_projection(options: dict[str, Any]) -> None:
    if "proj_size" in options:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
    if options:
        raise TypeError(f"unexpected keyword argument '{next(iter(options))}'")


class LSTM(RNNBase):
    """A long short-term memory: gates decide what each step forgets, takes in and shows.

    S. Hochreiter and J. Schmidhuber, Long Short-Term Memory (1997); projections: H. Sak et al. (2014).

    Args:
        input_size: Features of the input.
        hidden_size: Features of state and cell.
        num_layers: Layers, each of which reads the states of the one before.
        bias: Whether there are biases.
        batch_first: Whether batches are (B, T, features) instead of (T, B, features).
        dropout: Probability of a zero in what one layer hands to the next, in training.
        bidirectional: Whether each layer goes both ways.
        proj_size: If positive, states are projected to that size.
        device: Where the parameters are made.
        dtype: Their type.

    Example:
        >>> import rushlight as torch
        >>> out, (h, c) = torch.nn.LSTM(10, 20, 2)(torch.zeros(5, 3, 10))
        >>> out.shape, c.shape
        (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device,
            dtype,
        )  # fmt: skip

    @property
    def _operator(self) -> Any:
        return rl.lstm

    def _states(self, hx: Any) -> tuple[Tensor, ...]:
        if not isinstance(hx, (tuple, list)) or len(hx) != 2:
            raise RuntimeError("lstm expects two hidden states")
        return tuple(hx)

    def _as_hx(self, states: tuple[Tensor, ...]) -> Any:
        return states

    def _state_sizes(self) -> tuple[int, ...]:
        return (self.proj_size or self.hidden_size, self.hidden_size)

    def _check_dims(self, states: tuple[Tensor, ...], batched: bool) -> None:
        dims, kind = (3, "batched 3-D") if batched else (2, "unbatched 2-D")
        if any(state.dim() != dims for state in states):
            raise RuntimeError(
                f"For {kind} input, hx and cx should also be {dims}-D but got "
                f"({states[0].dim()}-D, {states[1].dim()}-D) tensors"
            )

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The size of the cells that belong to an input."""
        return (*self.get_expected_hidden_size(input, batch_sizes)[:2], self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raises unless input, states and cells fit the layer and each other."""
        self.check_input(input, batch_sizes)
        expected = self.get_expected_hidden_size(input, batch_sizes)
        self.check_hidden_size(hidden[0], expected, "Expected hidden[0] size {}, got {}")
        expected = self.get_expected_cell_size(input, batch_sizes)
        self.check_hidden_size(hidden[1], expected, "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """States and cells in another order of the batch."""
        return hx if permutation is None else tuple(state.index_select(1, permutation) for state in hx)


class GRU(RNNBase):
    """A gated recurrent unit: gates decide how much of the state each step resets and renews.

    K. Cho et al., Learning Phrase Representations using RNN Encoder-Decoder (2014).

    Args:
        input_size: Features of the input.
        hidden_size: Features of the state.
        num_layers: Layers, each of which reads the states of the one before.
        bias: Whether there are biases.
        batch_first: Whether batches are (B, T, features) instead of (T, B, features).
        dropout: Probability of a zero in what one layer hands to the next, in training.
        bidirectional: Whether each layer goes both ways.
        device: Where the parameters are made.
        dtype: Their type.

    Example:
        >>> import rushlight as torch
        >>> out, h = torch.nn.GRU(10, 20, 2)(torch.zeros(5, 3, 10))
        >>> out.shape, h.shape
        (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        **options: Any,
    ) -> None:
        _refuse_projection(options)
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device=device,
            dtype=dtype,
        )  # fmt: skip

    @property
    def _operator(self) -> Any:
        return rl.gru


class RNNCellBase(Module):
    """What the cells share.

    Args:
        input_size: Features of the input.
        hidden_size: Features of the state.
        bias: Whether there are biases.
        num_chunks: How many gates there are.
        device: Where the parameters are made.
        dtype: Their type.

    Attributes:
        weight_ih: (num_chunks * hidden_size, input_size), uniform within ``1 / sqrt(hidden_size)`` as all of them.
        weight_hh: (num_chunks * hidden_size, hidden_size).
        bias_ih: (num_chunks * hidden_size,), or None.
        bias_hh: (num_chunks * hidden_size,), or None.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gates = num_chunks * hidden_size
        self.weight_ih = Parameter(rl.empty((gates, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(rl.empty((gates, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(rl.empty(gates, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new initial values."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        """Sizes, and what is not the default."""
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def _batch(self, input: Tensor, hx: Any, count: int = 1) -> tuple[bool, Tensor, list[Tensor]]:
        """Whether the input is one element, the input as a batch, and the states, zeros where none are given."""
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        states = [] if hx is None else [hx] if count == 1 else list(hx)
        for i, state in enumerate(states):
            if state.dim() not in (1, 2):
                what = f"hx[{i}]" if count > 1 else "hidden"
                raise ValueError(f"{name}: Expected {what} to be 1D or 2D, got {state.dim()}D instead")
        single = input.dim() == 1
        if single:
            input, states = input.unsqueeze(0), [state.unsqueeze(0) for state in states]
        if hx is None:
            zeros = rl.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
            states = [zeros] * count
        return single, input, states

    def _weights(self) -> tuple[Any, ...]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh


_CELL_FORWARD = """One step.

        Args:
            input: (B, input_size) or (input_size,).
            hx: {0}, (B, hidden_size) or (hidden_size,); zeros by default.

        Returns:
            The new {1}.

        Raises:
            ValueError: The input has another number of dimensions.
            RuntimeError: Sizes do not fit.
        """


class RNNCell(RNNCellBase):
    """One step of a plain recurrent network: ``tanh(w_ih x + b_ih + w_hh h + b_hh)``.

    Args:
        input_size: Features of the input.
        hidden_size: Features of the state.
        bias: Whether there are biases.
        nonlinearity: "tanh" or "relu".
        device: Where the parameters are made.
        dtype: Their type.

    Example:
        >>> import rushlight as torch
        >>> torch.nn.RNNCell(10, 20)(torch.zeros(3, 10)).shape
        torch.Size([3, 20])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in _NONLINEARITIES:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        single, input, (state,) = self._batch(input, hx)
        cell = rl.rnn_tanh_cell if self.nonlinearity == "tanh" else rl.rnn_relu_cell
        result = cell(input, state, *self._weights())
        return result.squeeze(0) if single else result

    forward.__doc__ = _CELL_FORWARD.format("The state", "state")


class LSTMCell(RNNCellBase):
    """One step of a long short-term memory.

    Args:
        input_size: Features of the input.
        hidden_size: Features of state and cell.
        bias: Whether there are biases.
        device: Where the parameters are made.
        dtype: Their type.

    Example:
        >>> import rushlight as torch
        >>> h, c = torch.nn.LSTMCell(10, 20)(torch.zeros(3, 10))
        >>> h.shape
        torch.Size([3, 20])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        if isinstance(hx, Tensor):
            raise TypeError("lstm_cell(): argument 'hx' (position 2) must be tuple of Tensors, not Tensor")
        single, input, states = self._batch(input, hx, 2)
        h, c = rl.lstm_cell(input, states, *self._weights())
        return (h.squeeze(0), c.squeeze(0)) if single else (h, c)

    forward.__doc__ = _CELL_FORWARD.format("State and cell, each", "state and cell")


class GRUCell(RNNCellBase):
    """One step of a gated recurrent unit.

    Args:
        input_size: Features of the input.
        hidden_size: Features of the state.
        bias: Whether there are biases.
        device: Where the parameters are made.
        dtype: Their type.

    Example:
        >>> import rushlight as torch
        >>> torch.nn.GRUCell(10, 20)(torch.zeros(3, 10)).shape
        torch.Size([3, 20])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        single, input, (state,) = self._batch(input, hx)
        result = rl.gru_cell(input, state, *self._weights())
        return result.squeeze(0) if single else result

    forward.__doc__ = _CELL_FORWARD.format("The state", "state")
