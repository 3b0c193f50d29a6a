"""Elementwise nonlinearities and softmax as layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid",
    "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax", "Softmax2d",
    "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]  # fmt: skip


class _Activation(Module):
    """A function without options."""

    _function: Callable[..., Tensor]

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return self._function(input)


class _InplaceActivation(_Activation):
    """A function that may write its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return self._function(input, self.inplace)

    def extra_repr(self) -> str:
        """Whether the input is written."""
        return "inplace=True" if self.inplace else ""


class Tanh(_Activation):
    """The hyperbolic tangent."""

    _function = staticmethod(F.tanh)


class Sigmoid(_Activation):
    """``1 / (1 + exp(-x))``."""

    _function = staticmethod(F.sigmoid)


class LogSigmoid(_Activation):
    """``log(1 / (1 + exp(-x)))``."""

    _function = staticmethod(F.logsigmoid)


class Softsign(_Activation):
    """``x / (1 + |x|)``."""

    _function = staticmethod(F.softsign)


class Tanhshrink(_Activation):
    """``x - tanh(x)``."""

    _function = staticmethod(F.tanhshrink)


class ReLU(_InplaceActivation):
    """max(0, x).

    Args:
        inplace: Whether the input is written.
    """

    _function = staticmethod(F.relu)


class SELU(_InplaceActivation):
    """The self-normalising ELU of Klambauer et al. (2017).

    Args:
        inplace: Whether the input is written.
    """

    _function = staticmethod(F.selu)


class SiLU(_InplaceActivation):
    """``x * sigmoid(x)``, also known as swish.

    Args:
        inplace: Whether the input is written.
    """

    _function = staticmethod(F.silu)


class Mish(_InplaceActivation):
    """``x * tanh(softplus(x))``.

    Args:
        inplace: Whether the input is written.
    """

    _function = staticmethod(F.mish)


class Hardsigmoid(_InplaceActivation):
    """``min(max(x + 3, 0), 6) / 6``.

    Args:
        inplace: Whether the input is written.
    """

    _function = staticmethod(F.hardsigmoid)

    def extra_repr(self) -> str:
        """Nothing."""
        return ""


class Hardswish(_InplaceActivation):
    """``x * hardsigmoid(x)``.

    Args:
        inplace: Whether the input is written.
    """

    _function = staticmethod(F.hardswish)

    def extra_repr(self) -> str:
        """Nothing."""
        return ""


class Hardtanh(Module):
    """x clamped to [`min_val`, `max_val`].

    Args:
        min_val: The least output.
        max_val: The greatest.
        inplace: Whether the input is written.
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        if max_val <= min_val:
            raise AssertionError(f"max_val ({max_val}) must be greater than min_val ({min_val})")
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        """The limits and whether the input is written."""
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class ReLU6(Hardtanh):
    """min(max(0, x), 6).

    Args:
        inplace: Whether the input is written.
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        """Whether the input is written."""
        return "inplace=True" if self.inplace else ""


class ELU(Module):
    """x where x > 0, else ``alpha * (exp(x) - 1)``.

    Args:
        alpha: See above.
        inplace: Whether the input is written.
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        """`alpha` and whether the input is written."""
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class CELU(ELU):
    """``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``.

    Args:
        alpha: See above.
        inplace: Whether the input is written.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return F.celu(input, self.alpha, self.inplace)


class LeakyReLU(Module):
    """x where x > 0, else ``negative_slope * x``.

    Args:
        negative_slope: See above.
        inplace: Whether the input is written.
    """

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        """`negative_slope` and whether the input is written."""
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class RReLU(Module):
    """x where x > 0, else x times a slope that is random in training and else the mean (Xu et al., 2015).

    Args:
        lower: The least slope.
        upper: The greatest slope.
        inplace: Whether the input is written.
    """

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The bounds and whether the input is written."""
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class PReLU(Module):
    """x where x > 0, else x times a learned slope.

    Args:
        num_parameters: 1, or a slope for each channel.
        init: First value of the slopes.
        device: Where they are made.
        dtype: Their type.

    Attributes:
        weight: (num_parameters,).
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(rl.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the first value again."""
        rl.nn.init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) to the same shape."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """How many slopes there are."""
        return f"num_parameters={self.num_parameters}"


class GLU(Module):
    """The first half of a dimension times the sigmoid of the second half.

    Args:
        dim: The dimension.
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """(*, 2n, *) to (*, n, *)."""
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        """The dimension."""
        return f"dim={self.dim}"


class GELU(Module):
    """x times the normal distribution function of x.

    Args:
        approximate: ``"tanh"`` for an approximation by it, else ``"none"``.
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """The approximation."""
        return f"approximate={self.approximate!r}"


class Hardshrink(Module):
    """x where ``|x| > lambd``, else 0.

    Args:
        lambd: See above.
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """`lambd`."""
        return str(self.lambd)


class Softshrink(Hardshrink):
    """x moved by `lambd` towards 0, which it does not pass.

    Args:
        lambd: See above.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return F.softshrink(input, self.lambd)


class Softplus(Module):
    """``log(1 + exp(beta * x)) / beta``; x itself above ``threshold / beta``.

    Args:
        beta: See above.
        threshold: See above.
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """`beta` and `threshold`."""
        return f"beta={self.beta}, threshold={self.threshold}"


class Threshold(Module):
    """x where x > `threshold`, else `value`.

    Args:
        threshold: See above.
        value: See above.
        inplace: Whether the input is written.
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        """`threshold`, `value` and whether the input is written."""
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class Softmax(Module):
    """``exp(x) / sum(exp(x))`` along a dimension.

    Args:
        dim: The dimension. Leaving it out is deprecated.
    """

    _function: Callable[..., Tensor] = staticmethod(F.softmax)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return self._function(input, self.dim, _stacklevel=5)

    def extra_repr(self) -> str:
        """The dimension."""
        return f"dim={self.dim}"


class Softmin(Softmax):
    """The softmax of ``-x``.

    Args:
        dim: The dimension. Leaving it out is deprecated.
    """

    _function = staticmethod(F.softmin)


class LogSoftmax(Softmax):
    """The logarithm of the softmax.

    Args:
        dim: The dimension. Leaving it out is deprecated.
    """

    _function = staticmethod(F.log_softmax)


class Softmax2d(Module):
    """The softmax over the channels of an image."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, H, W) or (C, H, W) to the same shape."""
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)
