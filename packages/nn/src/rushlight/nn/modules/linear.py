"""Layers that multiply by a matrix."""

from __future__ import annotations

import math
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as F, init
from rushlight.nn.modules.lazy import LazyModuleMixin
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter, UninitializedParameter

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """Returns its input, whatever arguments it is made with: a placeholder.

    Args:
        *args: Unused.
        **kwargs: Unused.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """The input."""
        return input


class Linear(Module):
    """``input @ weight.T + bias``.

    Args:
        in_features: Length of the input's last dimension.
        out_features: That of the output.
        bias: Whether there is one.
        device: Where the parameters are made.
        dtype: Their type.

    Attributes:
        weight: (out_features, in_features), uniform within ``1 / sqrt(in_features)``.
        bias: (out_features,), likewise, or None.

    Example:
        >>> import rushlight as torch
        >>> torch.nn.Linear(20, 30)(torch.zeros(128, 20)).shape
        torch.Size([128, 30])
    """

    in_features: int
    out_features: int
    weight: Tensor

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(rl.empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(rl.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new initial values."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """(*, in_features) to (*, out_features)."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Sizes and whether there is a bias."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """`Linear` under the name that the output projection of `MultiheadAttention` has in PyTorch's files and texts.

    Args:
        in_features: Length of the input's last dimension.
        out_features: That of the output.
        bias: Whether there is one.
        device: Where the parameters are made.
        dtype: Their type.
    """


class Bilinear(Module):
    """``input1 @ weight[k] @ input2 + bias[k]`` for each output k.

    Args:
        in1_features: Length of the last dimension of the first input.
        in2_features: That of the second.
        out_features: That of the output.
        bias: Whether there is one.
        device: Where the parameters are made.
        dtype: Their type.

    Attributes:
        weight: (out_features, in1_features, in2_features), uniform within ``1 / sqrt(in1_features)``.
        bias: (out_features,), likewise, or None.
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(rl.empty((out_features, in1_features, in2_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(rl.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new initial values."""
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """(*, in1_features) and (*, in2_features) to (*, out_features)."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Sizes and whether there is a bias."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class LazyLinear(LazyModuleMixin, Linear):
    """`Linear` whose `in_features` is that of its first input.

    Args:
        out_features: Length of the output's last dimension.
        bias: Whether there is one.
        device: Where the parameters are made.
        dtype: Their type.

    Example:
        >>> import rushlight as torch
        >>> layer = torch.nn.LazyLinear(30)
        >>> layer(torch.zeros(128, 20)).shape
        torch.Size([128, 30])
        >>> layer
        Linear(in_features=20, out_features=30, bias=True)
    """

    cls_to_become = Linear
    weight: Any
    bias: Any

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draws new initial values, once the parameters have shapes."""
        if not self.has_uninitialized_params() and self.in_features:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Takes the length of the last dimension from an input (*, in_features)."""
        if not self.has_uninitialized_params():
            self.in_features = self.in_features or input.shape[-1]
            return
        self.in_features = input.shape[-1]
        self.weight.materialize((self.out_features, self.in_features))
        if self.bias is not None:
            self.bias.materialize((self.out_features,))
        self.reset_parameters()
