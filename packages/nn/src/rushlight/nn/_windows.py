"""Windows over the last dimensions of a tensor, as convolution and pooling see them, made of slices."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import rushlight as rl
from rushlight import Tensor

Sizes = tuple[int, ...]


def expand(name: str, value: int | Sequence[int], n: int) -> Sizes:
    """One number per dimension, from one number or a sequence."""
    sizes = (value,) * n if isinstance(value, int) else tuple(value)
    if sizes and isinstance(sizes[0], bool):
        raise TypeError(f"argument '{name}' must be tuple of ints, got {name}={value}. Use integers.")
    if len(sizes) == 1:
        sizes *= n
    if len(sizes) != n:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {n} values, but got {list(sizes)}"
        )
    return sizes


def pad(input: Tensor, sides: Sequence[tuple[int, int]], value: float) -> Tensor:
    """The input with `sides` (before, after) elements of one value around its last dimensions."""

    def border(dim: int, count: int) -> list[Tensor]:
        shape = [*input.shape]
        shape[dim] = count
        return [rl.full(shape, value, dtype=input.dtype, device=input.device)] if count else []

    for dim, (before, after) in enumerate(sides, input.dim() - len(sides)):
        if before or after:
            input = rl.cat([*border(dim, before), input, *border(dim, after)], dim)
    return input


def offsets(kernel: Sizes) -> Iterator[Sizes]:
    """The positions in a window, in order of memory."""
    return itertools.product(*map(range, kernel))


def shifted(input: Tensor, offset: Sizes, dilation: Sizes, stride: Sizes, count: Sizes) -> Tensor:
    """The element at `offset` of each of `count` windows: a view."""
    for dim, (at, step, stride_, n) in enumerate(
        zip(offset, dilation, stride, count, strict=True), input.dim() - len(offset)
    ):
        start = at * step
        slices = [slice(None)] * input.dim()
        slices[dim] = slice(start, start + (n - 1) * stride_ + 1, stride_)
        input = input[tuple(slices)]
    return input
