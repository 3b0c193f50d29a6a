"""Initial values of parameters; each function writes its argument in place and returns it.

The order in which random numbers are drawn is PyTorch's, so equal seeds give equal values.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import rushlight as rl
from rushlight import Tensor

if TYPE_CHECKING:
    from rushlight import Generator

__all__ = [
    "calculate_gain", "constant", "constant_", "dirac", "dirac_", "eye", "eye_", "kaiming_normal",
    "kaiming_normal_", "kaiming_uniform", "kaiming_uniform_", "normal", "normal_", "ones_", "orthogonal",
    "orthogonal_", "sparse", "sparse_", "trunc_normal_", "uniform", "uniform_", "xavier_normal", "xavier_normal_",
    "xavier_uniform", "xavier_uniform_", "zeros_",
]  # fmt: skip

_LINEAR = {f"conv{transposed}{n}d" for transposed in ("", "_transpose") for n in (1, 2, 3)} | {"linear", "sigmoid"}
_GAINS = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4, **dict.fromkeys(_LINEAR, 1)}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which weights before a nonlinearity should grow to keep the variance.

    Args:
        nonlinearity: ``"linear"``, ``"conv1d"`` and the like, ``"sigmoid"``, ``"tanh"``, ``"relu"``, ``"selu"`` or
            ``"leaky_relu"``.
        param: The negative slope of leaky_relu. Default: 0.01.

    Raises:
        ValueError: The name is unknown, or `param` is no number.
    """
    if nonlinearity == "leaky_relu":
        if param is None:
            param = 0.01
        elif isinstance(param, bool) or not isinstance(param, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + param**2))
    if nonlinearity not in _GAINS:
        raise ValueError(
            f"Unsupported nonlinearity {nonlinearity}. Use one of {', '.join(sorted([*_GAINS, 'leaky_relu']))}."
        )
    return _GAINS[nonlinearity]


def _fans(tensor: Tensor) -> tuple[int, int]:
    """(fan_in, fan_out): how many inputs an output depends on, and the reverse."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    out, inputs, *window = tensor.shape
    field = math.prod(window)
    return inputs * field, out * field


def _fan(tensor: Tensor, mode: str) -> int:
    if not isinstance(mode, str) or mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _fans(tensor)[mode.lower() == "fan_out"]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fills with values uniform in [a, b)."""
    with rl.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fills with normally distributed values."""
    with rl.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fills with normally distributed values, drawn again until they lie in [a, b]."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=2,
        )

    def cdf(x: float) -> float:
        return (1.0 + math.erf((x - mean) / std / math.sqrt(2.0))) / 2.0

    peak = min(max(mean, a), b)

    def draw() -> tuple[Tensor, Tensor]:
        """Candidates, and which of them count."""
        values = rl.empty_like(tensor)
        if cdf(b) - cdf(a) >= 0.3:
            values.normal_(mean, std, generator=generator)
            return values, (values >= a) & (values <= b)
        values.uniform_(a, b, generator=generator)
        density = rl.exp((((peak - mean) / std) ** 2 - ((values - mean) / std) ** 2) / 2)
        return values, rl.empty_like(tensor).uniform_(generator=generator) <= density

    with rl.no_grad():
        values, done = draw()
        while not bool(done.all()):
            more, good = draw()
            values = rl.where(done, values, more)
            done = done | good
        return tensor.copy_(values)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills with one value."""
    with rl.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fills with 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fills with 0."""
    with rl.no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """Fills a matrix with the identity.

    Raises:
        ValueError: The tensor is no matrix.
    """
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with rl.no_grad():
        return tensor.copy_(rl.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fills the weight of a convolution such that it passes on as many input channels as it can.

    Args:
        tensor: (out, in / groups, *), with 3 to 5 dimensions.
        groups: Groups of the convolution, each of which passes on its own channels.

    Raises:
        ValueError: The shape is not that of a weight, or `groups` does not divide `out`.
    """
    if tensor.dim() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    out, inputs, *window = tensor.shape
    if out % groups:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = out // groups
    centre = tuple(size // 2 for size in window)
    with rl.no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, inputs)):
                tensor[(group * per_group + channel, channel, *centre)] = 1
    return tensor


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fills with uniform values of variance ``2 * gain**2 / (fan_in + fan_out)`` (Glorot and Bengio, 2010)."""
    bound = math.sqrt(3.0) * (gain * math.sqrt(2.0 / float(sum(_fans(tensor)))))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fills with normal values of variance ``2 * gain**2 / (fan_in + fan_out)`` (Glorot and Bengio, 2010)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(sum(_fans(tensor)))), generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    return calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fills with uniform values that keep the variance through a nonlinearity (He et al., 2015).

    Args:
        tensor: (fan_out, fan_in, *); an empty one is left alone.
        a: Negative slope of leaky_relu.
        mode: ``"fan_in"`` keeps the variance of the forward pass, ``"fan_out"`` that of the backward pass.
        nonlinearity: As in `calculate_gain`.
        generator: Where the numbers come from. Default: the global generator.
    """
    if tensor.numel() == 0:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fills with normal values that keep the variance through a nonlinearity; arguments as in `kaiming_uniform_`."""
    if tensor.numel() == 0:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fills with a random matrix with orthonormal rows or columns, times `gain` (Saxe et al., 2013).

    Args:
        tensor: At least two dimensions; those after the first count as one.
        gain: The factor.
        generator: Where the numbers come from. Default: the global generator.
    """
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    columns = tensor.numel() // rows
    with rl.no_grad():
        values = rl.empty(rows, columns, dtype=tensor.dtype, device=tensor.device).normal_(0, 1, generator=generator)
        wide = rows < columns
        q, r = np.linalg.qr(values.t().cpu().numpy() if wide else values.cpu().numpy())
        q *= np.sign(np.diagonal(r))
        return tensor.copy_(rl.from_numpy(q.T if wide else q).reshape(tensor.shape)).mul_(gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fills a matrix with normal values, and a share `sparsity` of each column with zeros (Martens, 2010)."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with rl.no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[rl.randperm(rows)[:zeros], column] = 0
    return tensor


def _old_name(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    name = function.__name__

    @functools.wraps(function)
    def old(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(
            f"`nn.init.{name[:-1]}` is now deprecated in favor of `nn.init.{name}`.", FutureWarning, stacklevel=2
        )
        return function(*args, **kwargs)

    old.__name__ = old.__qualname__ = name[:-1]
    old.__doc__ = f"`{name}` by its old name."
    return old


uniform = _old_name(uniform_)
normal = _old_name(normal_)
constant = _old_name(constant_)
eye = _old_name(eye_)
dirac = _old_name(dirac_)
xavier_uniform = _old_name(xavier_uniform_)
xavier_normal = _old_name(xavier_normal_)
kaiming_uniform = _old_name(kaiming_uniform_)
kaiming_normal = _old_name(kaiming_normal_)
orthogonal = _old_name(orthogonal_)
sparse = _old_name(sparse_)
