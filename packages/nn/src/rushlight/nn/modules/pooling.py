"""Layers that reduce windows to one number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import _single

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "MaxPool1d",
    "MaxPool2d", "MaxPool3d",
]  # fmt: skip

Size = int | tuple[int, ...]


class _MaxPoolNd(Module):
    _pool: Callable[..., Any]

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        """(N, C, *) or (C, *) to the same with fewer elements."""
        return self._pool(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


_MAX_DOC = """The maximum of each window of a {n}d input.

    Args:
        kernel_size: Size of the window.
        stride: Step from window to window. Default: `kernel_size`.
        padding: Elements of minus infinity on both sides.
        dilation: Step inside the window.
        return_indices: Whether the flat positions of the maxima are returned too.
        ceil_mode: Whether a last, partial window counts.
    """


class MaxPool1d(_MaxPoolNd):
    __doc__ = _MAX_DOC.format(n=1)
    _pool = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPoolNd):
    __doc__ = _MAX_DOC.format(n=2)
    _pool = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPoolNd):
    __doc__ = _MAX_DOC.format(n=3)
    _pool = staticmethod(F.max_pool3d)


class AvgPool1d(Module):
    """The mean of each window of a 1d input.

    Args:
        kernel_size: Size of the window.
        stride: Step from window to window. Default: `kernel_size`.
        padding: Zeros on both sides.
        ceil_mode: Whether a last, partial window counts.
        count_include_pad: Whether the zeros count in the mean.
    """

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(kernel_size if stride is None else stride)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, L) or (C, L) to the same with fewer elements."""
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

    def extra_repr(self) -> str:
        """Window, stride and padding."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPoolNd(Module):
    _pool: Callable[..., Tensor]

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) or (C, *) to the same with fewer elements."""
        return self._pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        """Window, stride and padding."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


_AVG_DOC = """The mean of each window of a {n}d input.

    Args:
        kernel_size: Size of the window.
        stride: Step from window to window. Default: `kernel_size`.
        padding: Zeros on both sides.
        ceil_mode: Whether a last, partial window counts.
        count_include_pad: Whether the zeros count in the mean.
        divisor_override: Divides the sum instead of the size of the window.
    """


class AvgPool2d(_AvgPoolNd):
    __doc__ = _AVG_DOC.format(n=2)
    _pool = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPoolNd):
    __doc__ = _AVG_DOC.format(n=3)
    _pool = staticmethod(F.avg_pool3d)


class _AdaptiveAvgPoolNd(Module):
    _pool: Callable[..., Tensor]

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) or (C, *) to the same with `output_size`."""
        return self._pool(input, self.output_size)

    def extra_repr(self) -> str:
        """The size of the output."""
        return f"output_size={self.output_size}"


_ADAPTIVE_DOC = """The means of windows of a {n}d input, chosen such that the output has a given size.

    Args:
        output_size: Sizes of the output; a number stands for all of them, None for that of the input.
    """


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    __doc__ = _ADAPTIVE_DOC.format(n=1)
    _pool = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    __doc__ = _ADAPTIVE_DOC.format(n=2)
    _pool = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    __doc__ = _ADAPTIVE_DOC.format(n=3)
    _pool = staticmethod(F.adaptive_avg_pool3d)
