"""Convolutions and transposed convolutions in one to three dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as F, init
from rushlight.nn.modules.lazy import LazyModuleMixin
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import _ntuple
from rushlight.nn.parameter import Parameter, UninitializedParameter

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d", "LazyConv2d",
    "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
]  # fmt: skip

Size = int | tuple[int, ...]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What all convolutions share: parameters, their initial values and the printed form."""

    _ndim: int
    transposed = False
    bias: Tensor | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size,
        padding: Size | str,
        dilation: Size,
        output_padding: Size,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        sizes = _ntuple(self._ndim)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = sizes(kernel_size)
        self.stride = sizes(stride)
        self.padding = padding if isinstance(padding, str) else sizes(padding)
        self.dilation = sizes(dilation)
        self.output_padding = sizes(output_padding)
        self.groups = groups
        self.padding_mode = padding_mode
        if self.padding not in ("same", "valid") and isinstance(self.padding, str):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of ['same', 'valid']")
        if self.padding == "same" and any(step != 1 for step in self.stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"padding_mode must be one of {list(_PADDING_MODES)}, but got padding_mode='{padding_mode}'"
            )
        # For F.pad, which counts from the last dimension.
        self._reversed_padding_repeated_twice = [side for pair in reversed(self._both_sides()) for side in pair]
        channels = (in_channels, out_channels // groups) if self.transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(rl.empty((*channels, *self.kernel_size), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(rl.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _both_sides(self) -> list[tuple[int, int]]:
        """The padding before and after, for each dimension."""
        if self.padding == "valid":
            return [(0, 0)] * self._ndim
        if self.padding != "same":
            return [(int(size), int(size)) for size in self.padding]
        totals = [step * (size - 1) for step, size in zip(self.dilation, self.kernel_size, strict=True)]
        return [(total // 2, total - total // 2) for total in totals]

    def reset_parameters(self) -> None:
        """Draws new initial values."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = self.weight.size(1) * math.prod(self.kernel_size)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        """Channels, kernel size and stride, and what is not the default."""
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * self._ndim:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self._ndim:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * self._ndim:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class _Conv(_ConvNd):
    _convolve: Callable[..., Tensor]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size | str = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            0,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.padding_mode == "zeros":
            return self._convolve(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)
        padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        return self._convolve(padded, weight, bias, self.stride, 0, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        """(N, in_channels, *) or (in_channels, *) to the same with out_channels."""
        return self._conv_forward(input, self.weight, self.bias)


_CONV_DOC = """{n}d convolution (cross-correlation) of an input with `out_channels` learned filters.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Size of the filters.
        stride: Step from window to window.
        padding: Elements added on both sides, ``"same"`` (as many as keep the size) or ``"valid"`` (none).
        dilation: Step inside the window.
        groups: Blocks into which the channels fall, each convolved by itself.
        bias: Whether a learned number is added to each channel.
        padding_mode: What is added: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.
        device: Where the parameters are made.
        dtype: Their type.

    Attributes:
        weight: (out_channels, in_channels / groups, *kernel_size), uniform within ``1 / sqrt(fan_in)``.
        bias: (out_channels,), likewise, or None.
    """


class Conv1d(_Conv):
    __doc__ = _CONV_DOC.format(n=1)
    _ndim = 1
    _convolve = staticmethod(F.conv1d)


class Conv2d(_Conv):
    __doc__ = _CONV_DOC.format(n=2)
    _ndim = 2
    _convolve = staticmethod(F.conv2d)


class Conv3d(_Conv):
    __doc__ = _CONV_DOC.format(n=3)
    _ndim = 3
    _convolve = staticmethod(F.conv3d)


class _ConvTranspose(_ConvNd):
    transposed = True
    _convolve: Callable[..., Tensor]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        output_padding: Size = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Size = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(self, input: Tensor, output_size: list[int]) -> list[int]:
        """The output padding that gives `output_size`, which the stride alone leaves open."""
        n = self._ndim
        if len(output_size) == input.dim():
            output_size = list(output_size[-n:])
        if len(output_size) != n:
            raise ValueError(
                f"{type(self).__name__}: for {input.dim()}D input, output_size must have {n} or {input.dim()} elements "
                f"(got {len(output_size)})"
            )
        least = [
            (size - 1) * self.stride[d] - 2 * self.padding[d] + self.dilation[d] * (self.kernel_size[d] - 1) + 1
            for d, size in enumerate(input.shape[-n:])
        ]
        greatest = [size + self.stride[d] - 1 for d, size in enumerate(least)]
        if any(not low <= size <= high for low, size, high in zip(least, output_size, greatest, strict=True)):
            raise ValueError(
                f"requested an output size of {list(output_size)}, but valid sizes range from {least} to {greatest} "
                f"(for an input of {tuple(input.shape[-n:])})"
            )
        return [size - low for size, low in zip(output_size, least, strict=True)]

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        """(N, in_channels, *) or (in_channels, *) to the same with out_channels."""
        output_padding = self.output_padding if output_size is None else self._output_padding(input, output_size)
        return self._convolve(
            input, self.weight, self.bias, self.stride, self.padding, output_padding, self.groups, self.dilation
        )


_TRANSPOSED_DOC = """{n}d transposed convolution: the gradient of `Conv{n}d` with respect to its input, as a layer.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Size of the filters.
        stride: Step between the windows of neighbouring inputs.
        padding: Elements cut off on both sides of the output.
        output_padding: Elements added at the end of the output, to choose among the sizes that a stride allows.
        groups: Blocks into which the channels fall, each convolved by itself.
        bias: Whether a learned number is added to each channel.
        dilation: Step inside the window.
        padding_mode: ``"zeros"``.
        device: Where the parameters are made.
        dtype: Their type.

    Attributes:
        weight: (in_channels, out_channels / groups, *kernel_size), uniform within ``1 / sqrt(fan_in)``.
        bias: (out_channels,), likewise, or None.
    """


class ConvTranspose1d(_ConvTranspose):
    __doc__ = _TRANSPOSED_DOC.format(n=1)
    _ndim = 1
    _convolve = staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTranspose):
    __doc__ = _TRANSPOSED_DOC.format(n=2)
    _ndim = 2
    _convolve = staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_ConvTranspose):
    __doc__ = _TRANSPOSED_DOC.format(n=3)
    _ndim = 3
    _convolve = staticmethod(F.conv_transpose3d)


class _LazyConvNd(LazyModuleMixin):
    """What all lazy convolutions share."""

    in_channels: int
    weight: Any
    bias: Any

    def _make_lazy(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self.out_channels = out_channels
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draws new initial values, once the parameters have shapes."""
        if not self.has_uninitialized_params() and self.in_channels:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Takes the number of channels from an input (N, in_channels, *) or (in_channels, *)."""
        own: Any = self
        if not self.has_uninitialized_params():
            self.in_channels = self.in_channels or input.shape[-own._ndim - 1]
            return
        if input.dim() not in (own._ndim + 1, own._ndim + 2):
            raise RuntimeError(
                f"Expected {own._ndim + 1}D (unbatched) or {own._ndim + 2}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {input.shape}"
            )
        self.in_channels = input.shape[-own._ndim - 1]
        if self.in_channels % own.groups:
            raise ValueError("in_channels must be divisible by groups")
        inner = self.out_channels // own.groups, self.in_channels // own.groups
        channels = (self.in_channels, inner[0]) if own.transposed else (self.out_channels, inner[1])
        self.weight.materialize((*channels, *own.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


class _LazyConv(_LazyConvNd):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size | str = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._make_lazy(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvNd):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        output_padding: Size = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Size = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode)
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """`Conv1d` whose `in_channels` are those of its first input; the other arguments are the same."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """`Conv2d` whose `in_channels` are those of its first input; the other arguments are the same."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """`Conv3d` whose `in_channels` are those of its first input; the other arguments are the same."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """`ConvTranspose1d` whose `in_channels` are those of its first input; the other arguments are the same."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """`ConvTranspose2d` whose `in_channels` are those of its first input; the other arguments are the same."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """`ConvTranspose3d` whose `in_channels` are those of its first input; the other arguments are the same."""

    cls_to_become = ConvTranspose3d
