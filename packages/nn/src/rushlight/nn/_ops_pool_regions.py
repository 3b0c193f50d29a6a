"""Maxima of regions whose bounds follow from the size of the output, or from random numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

import rushlight as rl
from rushlight import Tensor
from rushlight._op import COMPOSITE, Op, Sample
from rushlight.nn._windows import Sizes, expand

_ORDINALS = {1: "2D or 3D", 2: "3D or 4D", 3: "4D or 5D"}


def max_regions_composite(input: Tensor, begin: Tensor, end: Tensor, count: Sizes) -> tuple[Tensor, Tensor]:
    n = len(count)
    if not 1 <= n <= input.dim():
        raise RuntimeError(f"nn::max_regions: expected a size for one or more dimensions, got count={list(count)}.")
    sizes = input.shape[-n:]
    places: Any = 0
    first = 0
    for dim, (size, out) in enumerate(zip(sizes, count, strict=True)):
        low, high = (bound.narrow(1, first, out) for bound in (begin, end))
        first += out
        longest = size if input.is_meta else int((high - low).max()) if low.numel() else 0
        line = rl.minimum(low.unsqueeze(2) + rl.arange(longest, device=input.device), high.unsqueeze(2) - 1)
        shape = [-1] + [1] * (2 * n)
        shape[1 + dim], shape[1 + n + dim] = out, longest
        places = places * size + line.reshape(shape)
    areas, length = math.prod(count), math.prod(places.shape[-n:])
    flat = input.reshape(-1, 1, math.prod(sizes))
    index = places.reshape(-1, areas, length).expand(flat.size(0), areas, length)
    values, at = flat.expand(-1, areas, -1).gather(2, index).max(2)
    whole = (*input.shape[:-n], *count)
    return values.reshape(whole), index.gather(2, at.unsqueeze(2)).reshape(whole)


def _region_samples(make: Any, dtype: Any) -> Any:
    if not (dtype.is_complex or dtype == rl.bool):
        yield Sample((make(2, 3, 5, 4), make.tensor([[0, 2, 0, 1, 3]]), make.tensor([[3, 5, 2, 3, 4]]), [2, 3]))
        yield Sample((make(1, 2, 5), make.tensor([[0, 2], [1, 3]]), make.tensor([[2, 4], [3, 5]]), [2]))


max_regions = (
    Op(
        "nn::max_regions(Tensor input, Tensor begin, Tensor end, int[] count) -> (Tensor, Tensor)",
        method=False,
        out=False,
        doc="""The maximum of each of `count` regions over the last dimensions, and its flat position.

        The bounds are (1, sum(count)) for all planes or (planes, sum(count)): those of the first dimension, then
        those of the next.
        """,
    )
    .composite(max_regions_composite)
    .grad(input="max_unpool(grads[0], results[1], shape(input), count)", begin=None, end=None)
    .samples(_region_samples)
)


def _adaptive_max_pool(n: int) -> Callable[..., tuple[Tensor, Tensor]]:
    def adaptive_max_pool(input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
        name = f"adaptive_max_pool{n}d"
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(f"{name}: Expected {_ORDINALS[n]} tensor, but got {list(input.shape)}")
        count = expand("output_size", output_size, n)
        if min(count) < 0 or max(count) >= 2**31:
            raise RuntimeError(
                f"{name}: elements of output_size must be greater than or equal to 0 but received {list(count)}. They "
                "must be below 2^31."
            )
        if 0 in input.shape[-n:] or (0 in input.shape and input.size(0) and input.dim() == n + 2):
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{list(input.shape)}"
            )
        _check_floats(name, input)
        begin, end = map(rl.from_numpy, _adaptive_bounds(tuple(input.shape[-n:]), tuple(count)))
        return max_regions.operator(input, begin.to(input.device), end.to(input.device), count)

    return adaptive_max_pool


@lru_cache(256)
def _adaptive_bounds(sizes: Sizes, count: Sizes) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Where regions of nearly equal size begin and end that tile the image."""
    lines = [(np.arange(out), size, out) for size, out in zip(sizes, count, strict=True)]
    begin = np.concatenate([i * size // max(out, 1) for i, size, out in lines])
    end = np.concatenate([-(-(i + 1) * size // max(out, 1)) for i, size, out in lines])
    return begin[None], end[None]


def _indices(values: Any, like: Tensor) -> Tensor:
    return rl.tensor(values, dtype=rl.int64, device=like.device)


def _check_floats(name: str, input: Tensor) -> None:
    if not input.is_floating_point():
        raise NotImplementedError(f'"{name}" not implemented for {input.dtype}. Convert the input to floats.')


def _fractional_max_pool(n: int) -> Callable[..., tuple[Tensor, Tensor]]:
    def fractional_max_pool(
        input: Tensor, kernel_size: Any, output_size: Any, random_samples: Tensor
    ) -> tuple[Tensor, Tensor]:
        name = f"fractional_max_pool{n}d"
        if input.dim() not in (n + 1, n + 2) or 0 in input.shape[-n - 1 :]:
            raise RuntimeError(
                f"{name}: Expected {n + 1}D or {n + 2}D tensor, but got: {list(input.shape)}. Only the batch may be "
                "empty."
            )
        kernel, count = expand("kernel_size", kernel_size, n), expand("output_size", output_size, n)
        _check_floats(name, input)
        for letter, size, k, out in zip("DHW"[-n:], input.shape[-n:], kernel, count, strict=True):
            if k < 1 or out < 1:
                raise RuntimeError(f"{name}: sizes must be greater than zero, got kernel_size={k}, output_size={out}.")
            if out + k - 1 > size:
                raise RuntimeError(
                    f"{name}: out({letter}) pool size {k} too large relative to input size {size}, "
                    f"got output_size={out}."
                )
        planes = (1 if input.dim() == n + 1 else input.size(0), input.size(-n - 1))
        if tuple(random_samples.shape) != (*planes, n):
            raise RuntimeError(
                f"{name}: expected _random_samples of shape {[*planes, n]}, got {list(random_samples.shape)}."
            )
        if random_samples.dtype != input.dtype:
            raise RuntimeError(f"Expect _random_samples to have the same dtype as input, got {random_samples.dtype}.")
        begin = _fractional_begins(random_samples.reshape(-1, n), input.shape[-n:], kernel, count)
        length = [k for k, out in zip(kernel, count, strict=True) for _ in range(out)]
        return max_regions.operator(input, begin, begin + _indices(length, input), count)

    return fractional_max_pool


def _fractional_begins(samples: Tensor, sizes: Sequence[int], kernel: Sizes, count: Sizes) -> Tensor:
    """Where the regions of each plane begin, in pseudo-random steps (Graham, 2014)."""
    order = [1, 0] if len(count) == 2 else range(len(count))  # of two dimensions the last one's number comes first
    begins = []
    for column, size, k, out in zip(order, sizes, kernel, count, strict=True):
        sample = samples.select(1, column).unsqueeze(1)
        step = (size - k) / (out - 1) if out > 1 else 0.0
        line = rl.arange(out - 1, device=samples.device)
        step = rl.tensor(step, dtype=sample.dtype, device=samples.device)
        inner = ((line + sample) * step).to(rl.int64) - (sample * step).to(rl.int64)
        begins += [inner, rl.full((samples.size(0), 1), size - k, dtype=rl.int64, device=samples.device)]
    return rl.cat(begins, 1)


def _adaptive_record(n: int) -> Op:
    image = (7, 6, 5)[:n]
    return (
        Op(
            f"{'' if n == 1 else 'nn::'}adaptive_max_pool{n}d(Tensor input, Any output_size) -> (Tensor, Tensor)",
            family=COMPOSITE,
            method=False,
            out=False,
            doc=f"The maxima of regions of a {n}d input, chosen such that the output has a given size, and their flat "
            "positions.",
        )
        .composite(_adaptive_max_pool(n))
        .samples(lambda make, dtype: (Sample((make(2, 3, *image), 1)), Sample((make(3, *image), 3))))
    )


def _fractional_record(n: int) -> Op:
    image = (7, 6, 5)[:n]

    def samples(make: Any, dtype: Any) -> Any:
        if dtype.is_floating_point:
            yield Sample((make(2, 3, *image), 2, 3, make(2, 3, n, low=0, high=1, requires_grad=False)))
            yield Sample((make(3, *image), 3, 1, make(1, 3, n, low=0, high=1, requires_grad=False)))

    return (
        Op(
            f"nn::fractional_max_pool{n}d(Tensor input, Any kernel_size, Any output_size, Tensor random_samples) -> "
            "(Tensor, Tensor)",
            family=COMPOSITE,
            method=False,
            out=False,
            doc=f"The maxima of regions of a {n}d input at pseudo-random steps, and their flat positions.",
        )
        .composite(_fractional_max_pool(n))
        .samples(samples)
    )


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = map(_adaptive_record, (1, 2, 3))
fractional_max_pool2d, fractional_max_pool3d = map(_fractional_record, (2, 3))


def max_unpool_nd_composite(input: Tensor, indices: Tensor, size: Sequence[int]) -> Tensor:
    n = len(size)
    if indices.dtype != rl.int64:
        raise RuntimeError(f"elements in indices should be type int64 but got: {indices.dtype}")
    if input.dim() not in (n + 1, n + 2) or 0 in input.shape[-n - 1 :]:
        raise RuntimeError(
            f"max_unpool{n}d: Expected input to be a {n + 1}d or {n + 2}d Tensor, but got: {list(input.shape)}. Only "
            "the batch may be empty."
        )
    if input.shape != indices.shape:
        raise RuntimeError(
            "Expected shape of indices to be same as that of the input tensor "
            f"({list(input.shape)}) but got indices tensor with shape: {list(indices.shape)}"
        )
    _check_floats(f"max_unpool{n}d", input)
    volume = math.prod(size)
    if indices.numel() and not input.is_meta:
        least, greatest = int(indices.min()), int(indices.max())
        if least < 0 or greatest >= volume:
            raise RuntimeError(
                f"Found an invalid max index: {least if least < 0 else greatest} (output volumes are of size "
                f"{'x'.join(map(str, size))})."
            )
    flat = rl.zeros([*input.shape[:-n], volume], dtype=input.dtype, device=input.device)
    return flat.scatter(-1, indices.flatten(-n), input.flatten(-n)).unflatten(-1, tuple(size))


max_unpool_nd = (
    Op(
        "nn::max_unpool_nd(Tensor input, Tensor indices, int[] size) -> Tensor",
        family=COMPOSITE,
        method=False,
        out=False,
        doc="Zeros of the spatial shape `size`, of which each element is put at its flat position.",
    )
    .composite(max_unpool_nd_composite)
    .samples(
        lambda make, dtype: (
            Sample((make(2, 1, 3, 2), make.tensor([[[[0, 5], [4, 1], [2, 3]]]] * 2), [3, 2])),
            Sample((make(1, 3), make.tensor([[0, 4, 1]]), [5])),
        )
    )
)
