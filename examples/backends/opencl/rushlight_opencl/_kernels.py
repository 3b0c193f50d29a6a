"""Kernels in place of the records' own: convolutions as one product of matrices each, and random numbers drawn here."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight.plugin import Kernel, backend, from_array

# -- convolution through im2col


def _windows(image: Tensor, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> Tensor:
    """What each window of (N, C, *sizes) sees, as a view: (N, C, *kernel, *count)."""
    steps = image.stride()
    count = [
        (size - dil * (k - 1) - 1) // step + 1
        for size, k, step, dil in zip(image.shape[2:], kernel, stride, dilation, strict=True)
    ]
    inside = [s * dil for s, dil in zip(steps[2:], dilation, strict=True)]
    between = [s * step for s, step in zip(steps[2:], stride, strict=True)]
    shape = (*image.shape[:2], *kernel, *count)
    return image.as_strided(shape, (*steps[:2], *inside, *between), image.storage_offset())


def _padded(image: Tensor, padding: Sequence[int]) -> Tensor:
    if not any(padding):
        return image
    sizes = [size + 2 * p for size, p in zip(image.shape[2:], padding, strict=True)]
    wide = image.new_zeros((*image.shape[:2], *sizes))
    _inner(wide, padding, image.shape[2:]).copy_(image)
    return wide


def _inner(image: Tensor, padding: Sequence[int], sizes: Sequence[int]) -> Tensor:
    for dim, (p, size) in enumerate(zip(padding, sizes, strict=True), 2):
        image = image.narrow(dim, p, size)
    return image


def _columns(image: Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> tuple[Tensor, Any]:
    """The windows as columns of a matrix for each group: (groups, C / groups * kernel, N * count), and the count."""
    windows = _windows(_padded(image, padding), kernel, stride, dilation)
    batch, channels, count = windows.shape[0], windows.shape[1], windows.shape[2 + len(kernel) :]
    windows = windows.reshape(batch, groups, channels // groups * math.prod(kernel), math.prod(count))
    return windows.permute(1, 2, 0, 3).reshape(groups, windows.shape[2], -1), count


def _by_group(output: Tensor, groups: int) -> Tensor:
    """(N, C, *count) as (groups, C / groups, N * count)."""
    batch, channels = output.shape[:2]
    return (
        output.reshape(batch, groups, channels // groups, -1)
        .permute(1, 2, 0, 3)
        .reshape(groups, channels // groups, -1)
    )


def conv_forward(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    columns, count = _columns(input, weight.shape[2:], stride, padding, dilation, groups)
    out, batch = weight.shape[0], input.shape[0]
    result = weight.reshape(groups, out // groups, -1) @ columns
    result = result.reshape(out, batch, *count).transpose(0, 1)
    return result.contiguous() if bias is None else result + bias.reshape(-1, *[1] * len(count))


def conv_weight(
    output_grad: Tensor, input: Tensor, size: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    columns, _ = _columns(input, size[2:], stride, padding, dilation, groups)
    return (_by_group(output_grad, groups) @ columns.transpose(1, 2)).reshape(size)


def conv_input(
    input: Tensor, weight: Tensor, bias: Tensor | None, size: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    kernel, count, batch = weight.shape[2:], input.shape[2:], input.shape[0]
    columns = weight.reshape(groups, weight.shape[0] // groups, -1).transpose(1, 2) @ _by_group(input, groups)
    columns = columns.reshape(size[1], math.prod(kernel), batch, *count)
    wide = input.new_zeros((batch, size[1], *(n + 2 * p for n, p in zip(size[2:], padding, strict=True))))
    windows = _windows(wide, kernel, stride, dilation)
    for k, at in enumerate(
        itertools.product(*map(range, kernel))
    ):  # windows overlap, but not at one place of the kernel
        windows[(slice(None), slice(None), *at)] += columns[:, k].transpose(0, 1)
    result = _inner(wide, padding, size[2:]).contiguous()
    return result if bias is None else result + bias.reshape(-1, *[1] * len(count))


# -- random numbers


def _drawn(name: str, law: str, finish: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def kernel(self: Tensor, *arguments: Any, generator: Any = None) -> Tensor:
        if generator is not None or self.is_complex():  # a stream of the host
            host = rushlight.empty(self.shape, dtype=self.dtype)
            return self.copy_(getattr(host, name)(*arguments, generator=generator))
        dtype = "float64" if self.dtype == rushlight.float64 else "float32"
        drawn = backend("opencl").generator.draw(law, tuple(self.shape), dtype, self.device.index or 0)
        return self.copy_(finish(from_array(drawn, self.device), *arguments))

    return kernel


def kernels() -> list[Kernel]:
    """What replaces the records' own kernels on this device."""
    return [
        Kernel("nn::conv_forward", conv_forward),
        Kernel("nn::conv_weight", conv_weight),
        Kernel("nn::conv_input", conv_input),
        Kernel("uniform_", _drawn("uniform_", "uniform", lambda x, low=0.0, high=1.0: x * (high - low) + low)),
        Kernel("normal_", _drawn("normal_", "normal", lambda x, mean=0.0, std=1.0: x * std + mean)),
        Kernel("bernoulli_.float", _drawn("bernoulli_", "uniform", lambda x, p=0.5: x < p)),
    ]
