"""Layers that reduce windows to one number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import _ntuple, _single

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d",
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


class _AdaptiveMaxPoolNd(_AdaptiveAvgPoolNd):
    _pool: Callable[..., Any]

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        """(N, C, *) or (C, *) to the same with `output_size`."""
        return self._pool(input, self.output_size, self.return_indices)


_ADAPTIVE_MAX_DOC = """The maxima of regions of a {n}d input, chosen such that the output has a given size.

    Args:
        output_size: Sizes of the output; a number stands for all of them, None for that of the input.
        return_indices: Whether the flat positions of the maxima are returned too.
    """


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    __doc__ = _ADAPTIVE_MAX_DOC.format(n=1)
    _pool = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    __doc__ = _ADAPTIVE_MAX_DOC.format(n=2)
    _pool = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    __doc__ = _ADAPTIVE_MAX_DOC.format(n=3)
    _pool = staticmethod(F.adaptive_max_pool3d)


class _FractionalMaxPoolNd(Module):
    _ndim: int
    _pool: Callable[..., Any]

    def __init__(
        self,
        kernel_size: Size,
        output_size: Size | None = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        name, sizes = type(self).__name__, _ntuple(self._ndim)
        self.kernel_size = sizes(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else sizes(output_size)
        self.output_ratio = None if output_ratio is None else sizes(output_ratio)
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        """(N, C, *) or (C, *) to the same with the output's sizes."""
        return self._pool(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


_FRACTIONAL_DOC = """The maxima of regions of a {n}d input at pseudo-random steps (Graham, 2014).

    Args:
        kernel_size: Size of the regions.
        output_size: Sizes of the output; or
        output_ratio: these sizes as shares of the input's, between 0 and 1.
        return_indices: Whether the flat positions of the maxima are returned too.
        _random_samples: (N, C, {n}), numbers from 0 to 1 that place the regions. Default: new ones in each call.
    """


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    __doc__ = _FRACTIONAL_DOC.format(n=2)
    _ndim = 2
    _pool = staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    __doc__ = _FRACTIONAL_DOC.format(n=3)
    _ndim = 3
    _pool = staticmethod(F.fractional_max_pool3d)


class _LPPoolNd(Module):
    _pool: Callable[..., Tensor]

    def __init__(
        self, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) or (C, *) to the same with fewer elements."""
        return self._pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


_LP_DOC = """The p-norm of each window of a {n}d input, ``(sum of x ** p) ** (1 / p)``.

    Args:
        norm_type: p.
        kernel_size: Size of the windows.
        stride: Step from window to window. Default: `kernel_size`.
        ceil_mode: Whether a last, partial window counts.
    """


class LPPool1d(_LPPoolNd):
    __doc__ = _LP_DOC.format(n=1)
    _pool = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPoolNd):
    __doc__ = _LP_DOC.format(n=2)
    _pool = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPoolNd):
    __doc__ = _LP_DOC.format(n=3)
    _pool = staticmethod(F.lp_pool3d)


class _MaxUnpoolNd(Module):
    _ndim: int
    _unpool: Callable[..., Tensor]

    def __init__(self, kernel_size: Size, stride: Size | None = None, padding: Size = 0) -> None:
        super().__init__()
        sizes = _ntuple(self._ndim)
        self.kernel_size = sizes(kernel_size)
        self.stride = sizes(kernel_size if stride is None else stride)
        self.padding = sizes(padding)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """Maxima (N, C, *) and their positions to an image (N, C, *), or both without N."""
        return self._unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        """Window, stride and padding."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


_UNPOOL_DOC = """Puts the maxima of `MaxPool{n}d` back to where they are from, among zeros.

    Args:
        kernel_size: Size of the windows.
        stride: Step from window to window. Default: `kernel_size`.
        padding: As that of the pooling.
    """


class MaxUnpool1d(_MaxUnpoolNd):
    __doc__ = _UNPOOL_DOC.format(n=1)
    _ndim = 1
    _unpool = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpoolNd):
    __doc__ = _UNPOOL_DOC.format(n=2)
    _ndim = 2
    _unpool = staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpoolNd):
    __doc__ = _UNPOOL_DOC.format(n=3)
    _ndim = 3
    _unpool = staticmethod(F.max_unpool3d)
