"""Elements in other places: windows as columns and back, channels as pixels and back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._op import COMPOSITE, FUNCTION, Op, Sample
from rushlight.nn._precision import wide
from rushlight.nn._windows import Sizes, offsets, pad, shifted

# -- windows as columns


def unfold_composite(
    input: Tensor, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, count: Sizes
) -> Tensor:
    padded = pad(input, [(p, p) for p in padding], 0)
    n = len(count)
    taps = [shifted(padded, offset, dilation, stride, count) for offset in offsets(tuple(kernel_size))]
    return rl.stack(taps, input.dim() - n).flatten(-n - 2, -n - 1).flatten(-n)


def fold_composite(
    input: Tensor, size: Sizes, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, count: Sizes
) -> Tensor:
    n = len(count)
    dtype, columns = input.dtype, wide(input)
    taps = columns.unflatten(-1, count).unflatten(-n - 1, (-1, math.prod(kernel_size)))
    image = columns.new_zeros([*size[:-n], *(s + 2 * p for s, p in zip(size[-n:], padding, strict=True))])
    for i, offset in enumerate(offsets(tuple(kernel_size))):
        shifted(image, offset, dilation, stride, count).add_(taps.select(-n - 1, i))
    for dim, (cut, length) in enumerate(zip(padding, size[-n:], strict=True), len(size) - n):
        image = image.narrow(dim, cut, length)
    return image.to(dtype).contiguous()


_WINDOWS = "int[] kernel_size, int[] stride, int[] padding, int[] dilation, int[] count"
_WINDOW_SAMPLE = ([3, 2], [2, 1], [1, 0], [1, 2], [4, 4])

unfold_windows = (
    Op(
        f"nn::unfold_windows(Tensor input, {_WINDOWS}) -> Tensor",
        method=False,
        out=False,
        doc="The windows of an image (*, C, H, W) as columns: (*, C * elements of a window, windows).",
    )
    .composite(unfold_composite)
    .grad(input="fold_windows(grad, shape(input), kernel_size, stride, padding, dilation, count)")
    .samples(lambda make, dtype: (Sample((make(2, 3, 7, 6), *_WINDOW_SAMPLE)),))
)
fold_windows = (
    Op(
        f"nn::fold_windows(Tensor input, int[] size, {_WINDOWS}) -> Tensor",
        method=False,
        out=False,
        doc="The sum of windows that overlap, an image of shape `size`: the adjoint of `unfold_windows`.",
    )
    .composite(fold_composite)
    .grad(input="unfold_windows(grad, kernel_size, stride, padding, dilation, count)")
    .samples(lambda make, dtype: (Sample((make(2, 18, 16), [2, 3, 7, 6], *_WINDOW_SAMPLE)),))
)


def _two(name: str, value: Any) -> tuple[int, int]:
    sizes = (value, value) if isinstance(value, int) else tuple(value)
    if len(sizes) == 1:
        sizes *= 2
    if len(sizes) != 2:
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(sizes)}")
    return sizes


def _windows(
    size: tuple[int, int], kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> tuple[Sizes, Sizes, Sizes, Sizes, Sizes]:
    """Kernel, stride, padding, dilation and count of windows, checked."""
    kernel, dilation = _two("kernel_size", kernel_size), _two("dilation", dilation)
    padding, stride = _two("padding", padding), _two("stride", stride)
    for name, (height, width), least in (
        ("kernel size should be greater than zero, but got kernel", kernel, 1),
        ("stride should be greater than zero, but got stride", stride, 1),
        ("dilation should be greater than zero, but got dilation", dilation, 1),
        ("padding should be non-negative, but got pad", padding, 0),
    ):
        if min(height, width) < least:
            raise RuntimeError(f"{name}_height: {height} {name.split()[-1]}_width: {width}")
    count = tuple(
        (s + 2 * p - d * (k - 1) - 1) // step + 1
        for s, p, d, k, step in zip(size, padding, dilation, kernel, stride, strict=True)
    )
    return kernel, stride, padding, dilation, count


def unfold_nd_composite(input: Tensor, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Tensor:
    if input.dim() not in (3, 4) or 0 in input.shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
            f"input, but got: {list(input.shape)}"
        )
    size = tuple(input.shape[-2:])
    kernel, stride, padding, dilation, count = _windows(size, kernel_size, dilation, padding, stride)
    if min(count) < 1:
        raise RuntimeError(
            f"Given input with spatial size {size}, kernel_size={kernel}, dilation={dilation}, padding={padding}, "
            f"calculated shape of the array of sliding blocks as {count}, but its components must be at least one."
        )
    return unfold_windows.operator(input, kernel, stride, padding, dilation, count)


def fold_nd_composite(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> Tensor:
    if input.dim() not in (2, 3) or 0 in input.shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {list(input.shape)}"
        )
    size = _two("output_size", output_size)
    kernel, stride, padding, dilation, count = _windows(size, kernel_size, dilation, padding, stride)
    if min(size) < 1:
        raise RuntimeError(f"fold: output_size must be positive, got output_size={size}.")
    area, rows = math.prod(kernel), input.size(-2)
    if rows % area:
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={rows} and kernel_size={kernel}."
        )
    if min(count) < 1 or math.prod(count) != input.size(-1):
        height, width = (max(c, 0) for c in count)
        raise RuntimeError(
            f"Given output_size={size}, kernel_size={kernel}, dilation={dilation}, padding={padding}, stride={stride}, "
            "expected size of input's dimension 2 to match the calculated number of sliding blocks "
            f"{height} * {width} = {height * width}, but got input.size(2)={input.size(-1)}."
        )
    shape = (*input.shape[:-2], rows // area, *size)
    return fold_windows.operator(input, shape, kernel, stride, padding, dilation, count)


_ARGUMENTS = "Any kernel_size, Any dilation=1, Any padding=0, Any stride=1"

unfold = (
    Op(
        f"nn::unfold(Tensor input, {_ARGUMENTS}) -> Tensor",
        family=COMPOSITE,
        method=False,
        out=False,
        doc="The windows of an image as columns, see `rushlight.nn.functional.unfold`.",
    )
    .composite(unfold_nd_composite)
    .samples(lambda make, dtype: (Sample((make(2, 3, 7, 6), 2)), Sample((make(3, 7, 6), (3, 2), 2, 1, 2))))
)
fold = (
    Op(
        f"nn::fold(Tensor input, Any output_size, {_ARGUMENTS}) -> Tensor",
        family=COMPOSITE,
        method=False,
        out=False,
        doc="The image that is the sum of its windows, see `rushlight.nn.functional.fold`.",
    )
    .composite(fold_nd_composite)
    .samples(
        lambda make, dtype: (Sample((make(2, 12, 30), (7, 6), 2)), Sample((make(18, 16), (7, 6), (3, 2), 1, 1, 2)))
    )
)


# -- channels as pixels


def _at_least_3d(name: str, factor_name: str, input: Tensor, factor: int) -> None:
    if input.dim() < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {input.dim()} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {factor_name}, but got {factor}")


def pixel_shuffle_composite(input: Tensor, upscale_factor: int) -> Tensor:
    _at_least_3d("pixel_shuffle", "upscale_factor", input, upscale_factor)
    *batch, channels, height, width = input.shape
    if channels % (upscale_factor * upscale_factor):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={channels} is not divisible by {upscale_factor * upscale_factor}"
        )
    parts = input.reshape(*batch, channels // upscale_factor**2, upscale_factor, upscale_factor, height, width)
    n = len(batch)
    shuffled = parts.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return shuffled.reshape(*batch, channels // upscale_factor**2, height * upscale_factor, width * upscale_factor)


def pixel_unshuffle_composite(input: Tensor, downscale_factor: int) -> Tensor:
    _at_least_3d("pixel_unshuffle", "downscale_factor", input, downscale_factor)
    *batch, channels, height, width = input.shape
    for side, length, dim in (("height", height, -2), ("width", width, -1)):
        if length % downscale_factor:
            raise RuntimeError(
                f"pixel_unshuffle expects {side} to be divisible by downscale_factor, but input.size({dim})={length} "
                f"is not divisible by {downscale_factor}"
            )
    height, width = height // downscale_factor, width // downscale_factor
    parts = input.reshape(*batch, channels, height, downscale_factor, width, downscale_factor)
    n = len(batch)
    shuffled = parts.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return shuffled.reshape(*batch, channels * downscale_factor**2, height, width)


def channel_shuffle_composite(input: Tensor, groups: int) -> Tensor:
    if input.dim() <= 2:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    channels = input.size(1)
    if channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )
    return input.unflatten(1, (groups, channels // groups)).transpose(1, 2).flatten(1, 2).contiguous()


def _record(name: str, argument: str, doc: str, composite: Callable[..., Tensor], grad: str | None, *shapes: Any) -> Op:
    family = COMPOSITE if grad is None else FUNCTION
    op = Op(f"{name}(Tensor input, int {argument}) -> Tensor", family=family, method=False, out=False, doc=doc)
    if grad is not None:
        op.grad(input=grad)
    return op.composite(composite).samples(
        lambda make, dtype: (Sample((make(*shape), factor)) for *shape, factor in shapes)
    )


pixel_shuffle = _record(
    "pixel_shuffle",
    "upscale_factor",
    """Turns channels into pixels (Shi et al., 2016).

    Args:
        input: (*, C * r * r, H, W).
        upscale_factor: r, a positive number.

    Returns:
        (*, C, H * r, W * r).
    """,
    pixel_shuffle_composite,
    "pixel_unshuffle(grad, upscale_factor)",
    (2, 8, 3, 2, 2),
    (9, 2, 2, 3),
)
pixel_unshuffle = _record(
    "pixel_unshuffle",
    "downscale_factor",
    """Turns pixels into channels: undoes `pixel_shuffle`.

    Args:
        input: (*, C, H * r, W * r).
        downscale_factor: r, a positive number.

    Returns:
        (*, C * r * r, H, W).
    """,
    pixel_unshuffle_composite,
    "pixel_shuffle(grad, downscale_factor)",
    (2, 2, 6, 4, 2),
    (1, 6, 6, 3),
)
channel_shuffle = _record(
    "channel_shuffle",
    "groups",
    """Mixes the channels of groups (Zhang et al., 2018): the first of each group come first, then the second.

    Args:
        input: (N, C, *).
        groups: How many groups the channels make; it divides C.

    Returns:
        The shape of `input`.
    """,
    channel_shuffle_composite,
    None,
    (2, 6, 3, 2),
    (1, 6, 2, 2, 3),
)
