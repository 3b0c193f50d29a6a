"""Pooling: windows reduced to one number."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._op import COMPOSITE, Op, Sample
from rushlight.nn._precision import check_floats, wide
from rushlight.nn._windows import Sizes, expand, offsets, pad, shifted

_ORDINALS = {1: "2D or 3D", 2: "3D or 4D", 3: "4D or 5D"}


def _geometry(
    name: str, input: Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, n: int
) -> tuple[Sizes, Sizes, Sizes, Sizes, Sizes]:
    """Kernel, stride, padding, dilation and size of the output, checked."""
    if input.dim() not in (n + 1, n + 2):
        raise RuntimeError(f"{name}: Expected {_ORDINALS[n]} (unbatched or batched) tensor, got {list(input.shape)}.")
    if 0 in input.shape[-n - 1 :]:
        raise RuntimeError(
            f"{name}: Expected input's non-batch dimensions to have positive length, got {list(input.shape)}."
        )
    kernel = expand("kernel_size", kernel, n)
    stride = expand("stride", stride, n) if stride != () and stride != [] and stride is not None else kernel
    padding, dilation = expand("padding", padding, n), expand("dilation", dilation, n)
    if min(kernel) <= 0:
        raise RuntimeError(f"kernel size should be greater than zero, but got kernel_size={list(kernel)}")
    if min(stride) <= 0:
        raise RuntimeError("stride should not be zero")
    if min(dilation) <= 0:
        raise RuntimeError(f"dilation should be greater than zero, but got dilation={list(dilation)}")
    if min(padding) < 0:
        raise RuntimeError(f"pad must be non-negative, but got pad: {min(padding)}")
    count = []
    for size, k, s, p, d in zip(input.shape[-n:], kernel, stride, padding, dilation, strict=True):
        if p > ((k - 1) * d + 1) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and "
                f"dilation={d}"
            )
        space = size + 2 * p - d * (k - 1) - 1
        out = (-(-space // s) if ceil_mode else space // s) + 1
        if ceil_mode and (out - 1) * s >= size + p:  # the last window would begin in the padding
            out -= 1
        if out < 1:
            raise RuntimeError(
                f"Given input size: {tuple(input.shape)}. Calculated output size: {out}. Output size is too small"
            )
        count.append(out)
    return kernel, stride, padding, dilation, tuple(count)


def _cover(
    input: Tensor, padding: Sizes, kernel: Sizes, stride: Sizes, dilation: Sizes, count: Sizes, value: float
) -> Tensor:
    """The input padded as far as the last window reaches."""
    sides = []
    for size, p, k, s, d, n in zip(input.shape[-len(kernel) :], padding, kernel, stride, dilation, count, strict=True):
        reach = (n - 1) * s + d * (k - 1) + 1
        sides.append((p, max(0, reach - size - p)))
    return pad(input, sides, value)


def max_pool_composite(
    input: Tensor, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, count: Sizes
) -> tuple[Tensor, Tensor]:
    if input.is_complex() or input.dtype == rl.bool:
        raise NotImplementedError(f"max_pool: not implemented for {input.dtype}. Convert the input to a real dtype.")
    low = -math.inf if input.dtype.is_floating_point else rl.iinfo(input.dtype).min
    sizes = input.shape[-len(kernel_size) :]
    where = rl.arange(math.prod(sizes), device=input.device).reshape(sizes)
    values = _cover(input, padding, kernel_size, stride, dilation, count, low)
    where = _cover(where, padding, kernel_size, stride, dilation, count, 0)
    best = index = None
    for offset in offsets(tuple(kernel_size)):
        value = shifted(values, offset, dilation, stride, count)
        at = shifted(where, offset, dilation, stride, count)
        if best is None or index is None:
            best, index = value, at.expand(value.shape)
            continue
        greater = (value > best) | (value != value)
        best, index = rl.where(greater, value, best), rl.where(greater, at, index)
    return best.contiguous(), index.contiguous()  # type: ignore[union-attr]


def max_unpool_composite(input: Tensor, indices: Tensor, size: Sizes, window: Sizes) -> Tensor:
    n = len(window)
    flat = rl.zeros([*size[:-n], math.prod(size[-n:])], dtype=input.dtype, device=input.device)
    return flat.scatter_add(-1, indices.flatten(-n), input.flatten(-n)).reshape(size)


def _divisors(
    input: Tensor, sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, count: Sizes, include_pad: bool
) -> Tensor:
    """How many elements of each window count, of shape `count`."""
    divisors = rl.ones([1] * len(sizes), dtype=input.dtype, device=input.device)
    for dim, (size, k, s, p, m) in enumerate(zip(sizes, kernel, stride, padding, count, strict=True)):
        low, high = (-p, size + p) if include_pad else (0, size)
        lengths = [min(i * s - p + k, high) - max(i * s - p, low) for i in range(m)]
        line = rl.tensor(lengths, dtype=input.dtype, device=input.device)
        divisors = divisors * line.reshape([-1 if d == dim else 1 for d in range(len(sizes))])
    return divisors


def _averaged(
    input: Tensor,
    sizes: Sizes,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    count: Sizes,
    include_pad: bool,
    divisor: int,
) -> Tensor:
    by = divisor or _divisors(input, sizes, kernel, stride, padding, count, include_pad)
    return rl.div(input, by, rounding_mode="trunc") if input.dtype == rl.int64 else input / by


def avg_pool_composite(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    count: Sizes,
    count_include_pad: bool,
    divisor: int,
) -> Tensor:
    if not (input.is_floating_point() or input.is_complex() or input.dtype == rl.int64):
        raise NotImplementedError(f"avg_pool: not implemented for {input.dtype}. Convert the input to floats or int64.")
    sizes, ones = input.shape[-len(kernel_size) :], (1,) * len(kernel_size)
    padded = _cover(wide(input), padding, kernel_size, stride, ones, count, 0)
    total: Any = 0
    for offset in offsets(tuple(kernel_size)):
        total = total + shifted(padded, offset, ones, stride, count)
    mean = _averaged(total, sizes, kernel_size, stride, padding, count, count_include_pad, divisor)
    return mean.to(input.dtype)


def avg_unpool_composite(
    input: Tensor,
    size: Sizes,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    count: Sizes,
    count_include_pad: bool,
    divisor: int,
) -> Tensor:
    n = len(kernel_size)
    ones = (1,) * n
    if list(input.shape) != [*size[: len(size) - n], *count]:
        raise RuntimeError(f"avg_unpool: {list(input.shape)} does not fit size={list(size)} and count={list(count)}.")
    dtype, input = input.dtype, wide(input)
    shares = _averaged(input, size[-n:], kernel_size, stride, padding, count, count_include_pad, divisor)
    image = rl.zeros(size, dtype=input.dtype, device=input.device)
    padded = _cover(image, padding, kernel_size, stride, ones, count, 0).clone()
    for offset in offsets(tuple(kernel_size)):
        shifted(padded, offset, ones, stride, count).add_(shares)
    for dim, (cut, length) in enumerate(zip(padding, size[-n:], strict=True), len(size) - n):
        padded = padded.narrow(dim, cut, length)
    return padded.to(dtype).contiguous()


def _max_pool(n: int) -> Callable[..., Any]:
    def max_pool(
        input: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
    ) -> tuple[Tensor, Tensor]:
        windows = _geometry(f"max_pool{n}d", input, kernel_size, stride, padding, dilation, ceil_mode, n)
        return max_pool_windows.operator(input, *windows)

    return max_pool


def _avg_pool(n: int) -> Callable[..., Tensor]:
    def avg_pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None = None,
    ) -> Tensor:
        kernel, stride, padding, _, count = _geometry(
            f"avg_pool{n}d", input, kernel_size, stride, padding, 1, ceil_mode, n
        )
        if divisor_override == 0:
            raise RuntimeError("divisor must be not zero")
        return avg_pool_windows.operator(
            input, kernel, stride, padding, count, count_include_pad, divisor_override or 0
        )

    return avg_pool


def adaptive_pool_composite(input: Tensor, output_size: Sizes) -> Tensor:
    dtype, input = input.dtype, wide(input)
    for dim, out in enumerate(output_size, input.dim() - len(output_size)):
        size = input.size(dim)
        if out == size or out == 0:
            input = input.narrow(dim, 0, out)
            continue
        place = rl.arange(out, device=input.device)
        begin, end = place * size // out, -(-(place + 1) * size // out)
        places = begin.unsqueeze(1) + rl.arange(-(-size // out) + 1, device=input.device)
        windows = input.index_select(dim, places.clamp(max=size - 1).flatten()).unflatten(dim, places.shape)
        inside = (places < end.unsqueeze(1)).reshape(*places.shape, *[1] * (input.dim() - 1 - dim))
        length = (end - begin).reshape(-1, *[1] * (input.dim() - 1 - dim))
        input = rl.where(inside, windows, 0).sum(dim + 1) / length
    return input.to(dtype)


def adaptive_unpool_composite(input: Tensor, size: Sizes, output_size: Sizes) -> Tensor:
    n = len(output_size)
    dtype, input = input.dtype, wide(input)
    for dim, (out, length) in enumerate(zip(output_size, size[-n:], strict=True), len(size) - n):
        image = rl.zeros([*input.shape[:dim], length, *input.shape[dim + 1 :]], dtype=input.dtype, device=input.device)
        for i in range(out):
            begin, end = i * length // out, -(-(i + 1) * length // out)
            image.narrow(dim, begin, end - begin).add_(input.narrow(dim, i, 1) / (end - begin))
        input = image
    return input.to(dtype)


def _adaptive_avg_pool(n: int) -> Callable[..., Tensor]:
    def adaptive_avg_pool(input: Tensor, output_size: Any) -> Tensor:
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(f"adaptive_avg_pool{n}d: Expected {_ORDINALS[n]} tensor, but got {list(input.shape)}")
        check_floats(f"adaptive_avg_pool{n}d", input)
        sizes = expand("output_size", output_size, n)
        if min(sizes) < 0:
            raise RuntimeError(f"adaptive_avg_pool{n}d: elements of output_size must be greater than or equal to 0")
        if min(input.shape[-n:]) == 0:
            raise RuntimeError(
                f"adaptive_avg_pool{n}d(): Expected input to have non-zero size for non-batch dimensions, but input "
                f"has sizes {list(input.shape)}"
            )
        return adaptive_pool_windows.operator(input, sizes)

    return adaptive_avg_pool


_WINDOWS = "int[] kernel_size, int[] stride, int[] padding"


def _window_samples(name: str) -> Callable[..., Any]:
    def samples(make: Any, dtype: Any) -> Any:
        if not (dtype.is_floating_point or name == "max_pool"):
            return
        windows = ([3, 2], [2, 1], [1, 0])
        count, size = [4, 5], [2, 3, 7, 6]
        if name == "max_pool":
            yield Sample((make(*size), *windows, [1, 1], count))
        elif name == "max_unpool":
            yield Sample((make(2, 3, 2), make.tensor([[[0, 5], [5, 1], [2, 2]]] * 2), [2, 3, 6], [3]))
        elif name == "avg_pool":
            yield Sample((make(*size), *windows, count, True, 0))
            yield Sample((make(*size), *windows, count, False, 0))
        else:
            yield Sample((make(2, 3, *count), size, *windows, count, True, 0))
            yield Sample((make(2, 3, *count), size, *windows, count, True, 5))

    return samples


max_pool_windows = (
    Op(
        f"nn::max_pool(Tensor input, {_WINDOWS}, int[] dilation, int[] count) -> (Tensor, Tensor)",
        method=False,
        out=False,
        doc="The maximum of each of `count` windows over the last dimensions, and its flat position.",
    )
    .composite(max_pool_composite)
    .grad(input="max_unpool(grads[0], results[1], shape(input), kernel_size)")
    .samples(_window_samples("max_pool"))
)
max_unpool = (
    Op(
        "nn::max_unpool(Tensor input, Tensor indices, int[] size, int[] window) -> Tensor",
        items=("input", "indices", "size"),
        method=False,
        out=False,
        doc="Zeros of shape `size`, to which each element is added at its flat position in the last dimensions.",
    )
    .composite(max_unpool_composite)
    .grad(
        input=lambda grad, indices, window: (
            grad.flatten(-len(window)).gather(-1, indices.flatten(-len(window))).reshape(indices.shape)
        )
    )
    .samples(_window_samples("max_unpool"))
)
avg_pool_windows = (
    Op(
        f"nn::avg_pool(Tensor input, {_WINDOWS}, int[] count, bool count_include_pad, int divisor) -> Tensor",
        items=("input",),
        method=False,
        out=False,
        doc="The mean of each of `count` windows over the last dimensions; `divisor` 0 is the size of the window.",
    )
    .composite(avg_pool_composite)
    .grad(
        input="avg_unpool(grad, shape(input), kernel_size, stride, padding, count, count_include_pad, divisor)",
    )
    .samples(_window_samples("avg_pool"))
)
avg_unpool = (
    Op(
        f"nn::avg_unpool(Tensor input, int[] size, {_WINDOWS}, int[] count, bool count_include_pad, int divisor) "
        "-> Tensor",
        items=("input", "size"),
        method=False,
        out=False,
        doc="The gradient of `avg_pool` with respect to its input of shape `size`.",
    )
    .composite(avg_unpool_composite)
    .grad(input="avg_pool(grad, kernel_size, stride, padding, count, count_include_pad, divisor)")
    .samples(_window_samples("avg_unpool"))
)
adaptive_pool_windows = (
    Op(
        "nn::adaptive_pool(Tensor input, int[] output_size) -> Tensor",
        items=("input",),
        method=False,
        out=False,
        doc="The means of windows over the last dimensions that give an output of `output_size`.",
    )
    .composite(adaptive_pool_composite)
    .grad(input="adaptive_unpool(grad, shape(input), output_size)")
    .samples(lambda make, dtype: (Sample((make(2, 3, 7, 6), [1, 1])), Sample((make(3, 7, 6), [3, 4]))))
)
adaptive_unpool = (
    Op(
        "nn::adaptive_unpool(Tensor input, int[] size, int[] output_size) -> Tensor",
        items=("input", "size"),
        method=False,
        out=False,
        doc="The gradient of `adaptive_pool` with respect to its input of shape `size`.",
    )
    .composite(adaptive_unpool_composite)
    .grad(input="adaptive_pool(grad, output_size)")
    .samples(lambda make, dtype: [Sample((make(2, 3, 3, 4), [2, 3, 7, 6], [3, 4]))] if dtype.is_floating_point else [])
)


def _max_records(n: int) -> tuple[Op, Op]:
    arguments = "Tensor input, Any kernel_size, Any stride=None, Any padding=0, Any dilation=1, bool ceil_mode=False"
    image = (7, 6, 5)[:n]

    def samples(make: Any, dtype: Any) -> Any:
        yield Sample((make(2, 3, *image), 2))
        yield Sample((make(3, *image), 3, 2, 1))
        yield Sample((make(1, 2, *image), 2, 2, 0, 1, True))
        yield Sample((make(1, 2, *image), 2, 1, 1, 2))

    composite = _max_pool(n)
    doc = f"The maximum of each window of a {n}d input (N, C, *) or (C, *)"
    with_indices = Op(
        f"nn::max_pool{n}d_with_indices({arguments}) -> (Tensor, Tensor)",
        family=COMPOSITE,
        method=False,
        out=False,
        doc=f"{doc}, and its flat position.",
    )
    plain = Op(f"max_pool{n}d({arguments}) -> Tensor", family=COMPOSITE, method=False, out=False, doc=f"{doc}.")
    return (
        with_indices.composite(composite).samples(samples),
        plain.composite(lambda *args: composite(*args)[0]).samples(samples),
    )


def _avg_record(n: int) -> Op:
    divisor = "" if n == 1 else ", int? divisor_override=None"
    image = (7, 6, 5)[:n]
    return (
        Op(
            f"{'' if n == 1 else 'nn::'}avg_pool{n}d(Tensor input, Any kernel_size, Any stride=None, Any padding=0, "
            f"bool ceil_mode=False, bool count_include_pad=True{divisor}) -> Tensor",
            family=COMPOSITE,
            exact=True,
            method=False,
            doc=f"The mean of each window of a {n}d input (N, C, *) or (C, *).",
        )
        .composite(_avg_pool(n))
        .samples(
            lambda make, dtype: (
                Sample((make(2, 3, *image), 2)),
                Sample((make(3, *image), 3, 2, 1)),
                Sample((make(3, *image), 3, 2, 1, True, False)),
            )
        )
    )


def _adaptive_record(n: int) -> Op:
    image = (7, 6, 5)[:n]
    return (
        Op(
            f"{'' if n == 1 else 'nn::'}adaptive_avg_pool{n}d(Tensor input, Any output_size) -> Tensor",
            family=COMPOSITE,
            method=False,
            out=False,
            doc=f"The means of windows of a {n}d input, chosen such that the output has a given size.",
        )
        .composite(_adaptive_avg_pool(n))
        .samples(
            lambda make, dtype: (
                () if not dtype.is_floating_point else (Sample((make(2, 3, *image), 1)), Sample((make(3, *image), 3)))
            )
        )
    )


max_pool1d_with_indices, max_pool1d = _max_records(1)
max_pool2d_with_indices, max_pool2d = _max_records(2)
max_pool3d_with_indices, max_pool3d = _max_records(3)
avg_pool1d, avg_pool2d, avg_pool3d = map(_avg_record, (1, 2, 3))
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = map(_adaptive_record, (1, 2, 3))
