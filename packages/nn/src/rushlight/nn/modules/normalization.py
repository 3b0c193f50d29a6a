"""Normalisation within each sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as F, init
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class LayerNorm(Module):
    """Normalises over the last dimensions to mean 0 and variance 1, then scales and shifts elementwise.

    Args:
        normalized_shape: The last dimensions; a number stands for one dimension.
        eps: Added to the variance.
        elementwise_affine: Whether scale and shift are learned.
        bias: Whether there is a shift.
        device: Where the parameters are made.
        dtype: Their type.

    Attributes:
        weight: `normalized_shape`, the scale, first 1.
        bias: `normalized_shape`, the shift, first 0.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape = shape
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, wanted in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            self.register_parameter(name, Parameter(rl.empty(shape, device=device, dtype=dtype)) if wanted else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets scale 1 and shift 0."""
        if self.elementwise_affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """(*, *normalized_shape) to the same shape."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The arguments."""
        options = f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        return f"{self.normalized_shape}, eps={self.eps}, {options}"


class GroupNorm(Module):
    """Normalises each group of channels to mean 0 and variance 1, then scales and shifts each channel.

    Args:
        num_groups: How many groups the channels make.
        num_channels: C, the number of channels, a multiple of `num_groups`.
        eps: Added to the variance.
        affine: Whether scale and shift are learned.
        device: Where the parameters are made.
        dtype: Their type.
        bias: Whether there is a shift.

    Attributes:
        weight: (C,), the scale, first 1.
        bias: (C,), the shift, first 0.
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(
                name, Parameter(rl.empty(num_channels, device=device, dtype=dtype)) if wanted else None
            )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets scale 1 and shift 0."""
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) to the same shape."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The arguments."""
        options = f"affine={self.affine}, bias={self.bias is not None}"
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, {options}"


class RMSNorm(Module):
    """Divides by the root of the mean square over the last dimensions (Zhang and Sennrich, 2019), then scales.

    Args:
        normalized_shape: The last dimensions; a number stands for one dimension.
        eps: Added to the mean square. Default: the spacing of numbers at 1 in the type of the input.
        elementwise_affine: Whether a scale is learned.
        device: Where the parameter is made.
        dtype: Its type.

    Attributes:
        weight: `normalized_shape`, the scale, first 1.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        weight = Parameter(rl.empty(self.normalized_shape, device=device, dtype=dtype)) if elementwise_affine else None
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the scale to 1."""
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """(*, *normalized_shape) to the same shape."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class LocalResponseNorm(Module):
    """``x / (k + alpha * mean of the squares of neighbouring channels) ** beta`` (Krizhevsky et al., 2012).

    Args:
        size: How many channels the mean is over; missing ones count as zeros.
        alpha: See above.
        beta: See above.
        k: See above.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) to the same shape."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """`LocalResponseNorm` of images (N, C, H, W) over the channels on both sides of each, an odd number.

    Args:
        size: The divisor of the sum, and how many channels it is over; of an even number one less.
        alpha: As there.
        beta: As there.
        k: As there.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, H, W) to the same shape."""
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected 4D input, got {input.dim()}D input instead.")
        reach = (self.size - 1) // 2
        window = 2 * reach + 1
        squares = (input * input).flatten(2).unsqueeze(1)
        means = F.avg_pool2d(squares, (window, 1), 1, (reach, 0), divisor_override=self.size)
        return input / means.mul(self.alpha).add(self.k).pow(self.beta).reshape(input.shape)
