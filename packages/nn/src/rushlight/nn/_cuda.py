"""Kernels of this wheel on CUDA: a norm in one launch, convolution by columns, pooling. NVRTC compiles them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

import rushlight as rl
from rushlight import Tensor
from rushlight.plugin import Kernel, backend, from_array, to_array
from rushlight.plugin.source import GROUP, Helpers, c_type

from . import _ops_conv, _ops_norm, _ops_pool
from ._precision import wide

if TYPE_CHECKING:
    from rushlight.backends.cuda import CUDA

Axes = tuple[int, ...]

# -- norms: the statistics of a line and what follows from them


def _computed(kernel: Callable[..., Any], like: Tensor, *arguments: Any) -> tuple[Tensor, ...]:
    """The results of an array kernel as tensors, on the GPU of a tensor among its arguments."""
    arrays = [to_array(each) if isinstance(each, Tensor) else each for each in arguments]
    return tuple(from_array(each, like.device) for each in cast("CUDA", backend("cuda")).compute(kernel, *arrays))


def _float(x: Any) -> Any:
    return x.astype(np.float32) if x is not None and x.dtype.itemsize == 2 else x


def _apply(x: Any, mean: Any, scale: Any, weight: Any, bias: Any) -> Any:
    result = (_float(x) - mean) * scale
    result = result if weight is None else result * _float(weight)
    result = result if bias is None else result + _float(bias)
    return result.astype(x.dtype)


def norm_array(xp: Any, x: Any, weight: Any, bias: Any, axes: Axes, eps: float) -> tuple[Any, Any, Any, Any]:
    """The result of a norm; the mean of each line along `axes`, its variance, and ``1 / sqrt(variance + eps)``."""
    mean = xp.mean(_float(x), axis=axes, keepdims=True)
    centred = _float(x) - mean
    variance = xp.mean(centred * centred, axis=axes, keepdims=True)
    scale = 1 / xp.sqrt(variance + eps)
    return _apply(x, mean, scale, weight, bias), mean, variance, scale


def known_norm_array(xp: Any, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, eps: float) -> tuple[Any, Any]:
    """The result of a norm with given statistics, and ``1 / sqrt(variance + eps)``."""
    scale = 1 / xp.sqrt(_float(variance) + eps)
    return _apply(x, _float(mean), scale, weight, bias), scale


def norm_backward_array(xp: Any, grad: Any, x: Any, weight: Any, mean: Any, scale: Any, axes: Axes) -> tuple[Any]:
    """The gradient of a norm with respect to its input."""
    normalized = (_float(x) - mean) * scale
    grad = _float(grad) if weight is None else _float(grad) * _float(weight)
    slope = xp.mean(grad * normalized, axis=axes, keepdims=True)
    return ((grad - xp.mean(grad, axis=axes, keepdims=True) - normalized * slope) * scale,)


def parameters_array(xp: Any, grad: Any, x: Any, mean: Any, scale: Any, axes: Axes) -> tuple[Any, Any]:
    """The gradients of a norm with respect to its scale and shift."""
    normalized = (_float(x) - mean) * scale
    return xp.sum(_float(grad) * normalized, axis=axes, keepdims=True), xp.sum(_float(grad), axis=axes, keepdims=True)


def _shaped(tensor: Tensor | None, shape: Sequence[int]) -> Tensor | None:
    return None if tensor is None else tensor.reshape(*shape)


def row_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    length: int,
    period: int,
    repeat: int,
    eps: float,
    centred: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    if repeat <= 0 or not input.numel() or input.is_complex() or not centred:
        return _ops_norm.row_norm_composite(input, weight, bias, length, period, repeat, eps, centred)
    shape = (-1, period, length // repeat, repeat)
    parameters = [_shaped(each, (1, *shape[1:3], 1)) for each in (weight, bias)]
    result, mean, _, scale = _computed(norm_array, input, input.reshape(shape), *parameters, (2, 3), eps)
    return result.reshape(input.shape), mean.reshape(-1), scale.reshape(-1)


def row_norm_backward(
    output_grad: Tensor,
    input: Tensor,
    weight: Tensor | None,
    mean: Tensor,
    scale: Tensor,
    length: int,
    period: int,
    repeat: int,
    centred: bool,
) -> tuple[Tensor, Tensor | None, Tensor]:
    if repeat <= 0 or not input.numel() or input.is_complex() or not centred:
        return _ops_norm._row_norm_backward(output_grad, input, weight, mean, scale, length, period, repeat, centred)
    shape = (-1, period, length // repeat, repeat)
    lines = [each.reshape(-1, period, 1, 1) for each in (mean, scale)]
    grad, x = output_grad.reshape(shape), input.reshape(shape)
    (result,) = _computed(norm_backward_array, input, grad, x, _shaped(weight, (1, *shape[1:3], 1)), *lines, (2, 3))
    weight_grad: Tensor | None
    weight_grad, bias_grad = _computed(parameters_array, input, grad, x, *lines, (0, 3))
    shape = (-1,) if weight is None else tuple(weight.shape)
    return (
        result.reshape(input.shape),
        _shaped(None if weight is None else weight_grad, shape),
        bias_grad.reshape(shape),
    )


def channel_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    if (
        not input.numel()
        or input.is_complex()
        or not (training or (running_mean is not None and running_var is not None))
    ):
        return _ops_norm.channel_norm_composite(input, weight, bias, running_mean, running_var, training, momentum, eps)
    x, lines = input.reshape(*input.shape[:2], -1), (1, -1, 1)
    parameters = [_shaped(each, lines) for each in (weight, bias)]
    if not training and running_mean is not None:
        statistics = [_shaped(each, lines) for each in (running_mean, running_var)]
        result, scale = _computed(known_norm_array, input, x, *parameters, *statistics, eps)
        mean = wide(running_mean).clone()
        return result.reshape(input.shape), mean, scale.reshape(-1)
    result, mean, variance, scale = (
        each.reshape(-1) for each in _computed(norm_array, input, x, *parameters, (0, 2), eps)
    )
    count = input.numel() // input.size(1)
    if running_mean is not None:
        running_mean.mul_(1 - momentum).add_(mean, alpha=momentum)
    if running_var is not None:
        running_var.mul_(1 - momentum).add_(variance, alpha=momentum * count / max(count - 1, 1))
    return result.reshape(input.shape), mean, scale


def channel_norm_backward(
    output_grad: Tensor, input: Tensor, weight: Tensor | None, mean: Tensor, scale: Tensor, training: bool
) -> tuple[Tensor, Tensor, Tensor]:
    if not training or not input.numel() or input.is_complex():
        return _ops_norm._channel_norm_backward(output_grad, input, weight, mean, scale, training)
    shape, lines = (*input.shape[:2], -1), (1, -1, 1)
    grad, x, mean, scale = output_grad.reshape(shape), input.reshape(shape), mean.reshape(lines), scale.reshape(lines)
    (result,) = _computed(norm_backward_array, input, grad, x, _shaped(weight, lines), mean, scale, (0, 2))
    weight_grad, bias_grad = _computed(parameters_array, input, grad, x, mean, scale, (0, 2))
    return result.reshape(input.shape), weight_grad.reshape(-1), bias_grad.reshape(-1)


# -- windows: three dimensions always, the first ones of size 1 where there are fewer

_WINDOWS = """
typedef struct { // the divisor is the number of channels for columns
  i64 work, size[3], kernel[3], count[3], stride[3], padding[3], dilation[3], column_step, item_step, divisor, include;
} Windows;

// The place in an image of what window `p` has at its place `k`; -1 in the padding
DEVICE i64 place_in_image(Windows g, i64 p, i64 k) {
  i64 place = 0, step = 1;
  for (int d = 2; d >= 0; --d) {
    const i64 x = p % g.count[d] * g.stride[d] - g.padding[d] + k % g.kernel[d] * g.dilation[d];
    if (x < 0 || x >= g.size[d]) return -1;
    place += x * step;
    step *= g.size[d];
    p /= g.count[d];
    k /= g.kernel[d];
  }
  return place;
}

// The window that has the element `x` of an image at its place `k`; -1 where there is none
DEVICE i64 window_over(Windows g, i64 x, i64 k) {
  i64 p = 0, step = 1;
  for (int d = 2; d >= 0; --d) {
    const i64 from = x % g.size[d] + g.padding[d] - k % g.kernel[d] * g.dilation[d];
    if (from < 0 || from % g.stride[d] || from / g.stride[d] >= g.count[d]) return -1;
    p += from / g.stride[d] * step;
    step *= g.count[d];
    x /= g.size[d];
    k /= g.kernel[d];
  }
  return p;
}

// By how much the sum of window `p` is divided
DEVICE i64 divisor_of(Windows g, i64 p) {
  if (g.divisor) return g.divisor;
  i64 result = 1;
  for (int d = 2; d >= 0; --d) {
    const i64 first = p % g.count[d] * g.stride[d] - g.padding[d], end = first + g.kernel[d];
    const i64 low = g.include ? -g.padding[d] : 0, high = g.size[d] + (g.include ? g.padding[d] : 0);
    result *= (end < high ? end : high) - (first > low ? first : low);
    p /= g.count[d];
  }
  return result;
}
"""

_BODIES = {
    "columns": """
KERNEL run(GLOBAL const STORED *image, GLOBAL STORED *columns, Windows g) {
  const i64 id = WORK_ITEM;
  if (id >= g.work) return;
  const i64 positions = g.count[0] * g.count[1] * g.count[2], window = g.kernel[0] * g.kernel[1] * g.kernel[2];
  const i64 p = id % positions, k = id / positions % window, rest = id / positions / window;
  const i64 channel = rest % g.divisor, item = rest / g.divisor, at = place_in_image(g, p, k);
  columns[item * g.item_step + (channel * window + k) * g.column_step + p] =
      at < 0 ? STORED() : image[rest * g.size[0] * g.size[1] * g.size[2] + at];
}
""",
    "image": """
KERNEL run(GLOBAL const STORED *columns, GLOBAL STORED *image, Windows g) {
  const i64 id = WORK_ITEM;
  if (id >= g.work) return;
  const i64 positions = g.count[0] * g.count[1] * g.count[2], window = g.kernel[0] * g.kernel[1] * g.kernel[2];
  const i64 area = g.size[0] * g.size[1] * g.size[2], x = id % area, plane = id / area;
  VALUE sum = VALUE();
  for (i64 k = 0; k < window; ++k) {
    const i64 p = window_over(g, x, k);
    if (p >= 0) sum = sum + LOAD(columns, (plane * window + k) * positions + p);
  }
  STORE(image, id, sum)
}
""",
    "max": """
KERNEL run(GLOBAL const STORED *image, GLOBAL STORED *best, GLOBAL i64 *index, Windows g) {
  const i64 id = WORK_ITEM;
  if (id >= g.work) return;
  const i64 positions = g.count[0] * g.count[1] * g.count[2], window = g.kernel[0] * g.kernel[1] * g.kernel[2];
  const i64 p = id % positions, from = id / positions * g.size[0] * g.size[1] * g.size[2];
  i64 where = -1;
  VALUE most = VALUE();
  for (i64 k = 0; k < window; ++k) {
    const i64 at = place_in_image(g, p, k);
    if (at < 0) continue;
    const VALUE x = LOAD(image, from + at);
    if (where < 0 || x > most || x != x) { most = x; where = at; }
  }
  STORE(best, id, most)
  index[id] = where;
}
""",
    "mean": """
KERNEL run(GLOBAL const STORED *image, GLOBAL STORED *mean, Windows g) {
  const i64 id = WORK_ITEM;
  if (id >= g.work) return;
  const i64 positions = g.count[0] * g.count[1] * g.count[2], window = g.kernel[0] * g.kernel[1] * g.kernel[2];
  const i64 p = id % positions, from = id / positions * g.size[0] * g.size[1] * g.size[2];
  VALUE sum = VALUE();
  for (i64 k = 0; k < window; ++k) {
    const i64 at = place_in_image(g, p, k);
    if (at >= 0) sum = sum + LOAD(image, from + at);
  }
  STORE(mean, id, sum / divisor_of(g, p))
}
""",
    "spread": """
KERNEL run(GLOBAL const STORED *mean, GLOBAL STORED *image, Windows g) {
  const i64 id = WORK_ITEM;
  if (id >= g.work) return;
  const i64 positions = g.count[0] * g.count[1] * g.count[2], window = g.kernel[0] * g.kernel[1] * g.kernel[2];
  const i64 area = g.size[0] * g.size[1] * g.size[2], x = id % area, from = id / area * positions;
  VALUE sum = VALUE();
  for (i64 k = 0; k < window; ++k) {
    const i64 p = window_over(g, x, k);
    if (p >= 0) sum = sum + LOAD(mean, from + p) / divisor_of(g, p);
  }
  STORE(image, id, sum)
}
""",
}

COLUMNS_LIMIT = 1 << 28
"""Bytes of columns at once, where a batch can be taken in parts."""


def _source(body: str, dtype: np.dtype) -> str:
    kind, helpers = c_type(dtype), Helpers()
    store = helpers.resolve(kind.store.format("p", "i", "x"), dtype)
    return (
        f"{helpers.text}#define STORED {kind.stored}\n#define VALUE {kind.value}\n"
        f"#define LOAD(p, i) {kind.load.format('p', 'i')}\n#define STORE(p, i, x) {store}\n{_WINDOWS}{_BODIES[body]}"
    )


def _three(values: Sequence[int], fill: int) -> list[int]:
    return [fill] * (3 - len(values)) + list(values)


class Windows(NamedTuple):
    """The windows over an image, as kernels take them; the steps and the last two are for some of them."""

    size: Sequence[int]
    kernel: Sequence[int]
    counts: Sequence[int]
    stride: Sequence[int]
    padding: Sequence[int]
    dilation: Sequence[int]
    column_step: int = 0
    item_step: int = 0
    divisor: int = 0
    include: bool = False


def _launch(body: str, arrays: Sequence[Tensor], work: int, windows: Windows) -> None:
    """Starts a kernel for `work` elements."""
    size, kernel, count, stride, padding, dilation, *rest = windows
    places = [*_three(size, 1), *_three(kernel, 1), *_three(count, 1), *_three(stride, 1), *_three(padding, 0)]
    geometry = np.array([work, *places, *_three(dilation, 1), *rest], np.int64)
    memory = [to_array(each) for each in arrays]
    cuda = cast("CUDA", backend("cuda"))
    with cuda.xp.cuda.Device(arrays[0].device.index or 0):
        cuda.launcher.run(_source(body, memory[0].dtype), [*memory, geometry], (work,), (GROUP,))


def _columns(image: Tensor, windows: Windows, groups: int, together: bool) -> Tensor:
    """What the windows of an image (N, C, *) see: (N, groups, C / groups * kernel, count).

    Args:
        image: The image.
        windows: The windows.
        groups: Of channels.
        together: Puts the items side by side: (groups, C / groups * kernel, N * count).
    """
    batch, channels = image.shape[:2]
    window, positions = math.prod(windows.kernel), math.prod(windows.counts)
    rows = channels // groups * window
    if window == 1 and list(windows.counts) == list(windows.size) and set(windows.stride) == {1}:
        found = image.reshape(batch, groups, rows, positions)
        return found.permute(1, 2, 0, 3).reshape(groups, rows, -1) if together else found
    columns = image.new_empty((groups, rows, batch * positions) if together else (batch, groups, rows, positions))
    steps = (batch * positions, positions) if together else (positions, groups * rows * positions)
    windows = windows._replace(column_step=steps[0], item_step=steps[1], divisor=channels)
    _launch("columns", (image.contiguous(), columns), columns.numel(), windows)
    return columns


def _parts(batch: int, bytes_each: int) -> list[slice]:
    """The items of a batch in parts whose columns fit the limit."""
    step = max(1, COLUMNS_LIMIT // max(bytes_each, 1))
    return [slice(first, first + step) for first in range(0, batch, step)]


def conv_forward(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    _ops_conv._check_steps("nn::conv_forward", stride, dilation, groups)
    out, _, *kernel = weight.shape
    count = [
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, k, s, p, d in zip(input.shape[2:], kernel, stride, padding, dilation, strict=True)
    ]
    if not input.numel() or not weight.numel() or min(count) < 1:
        return _ops_conv.conv_forward_composite(input, weight, bias, stride, padding, dilation, groups)
    windows = Windows(input.shape[2:], kernel, count, stride, padding, dilation)
    matrix = weight.reshape(groups, out // groups, -1)
    size = input.size(1) * math.prod(kernel) * math.prod(count) * input.itemsize
    parts = [matrix @ _columns(input[part], windows, groups, False) for part in _parts(input.size(0), size)]
    result = (rl.cat(parts) if len(parts) > 1 else parts[0]).reshape(input.size(0), out, *count)
    return result if bias is None else result + bias.reshape(-1, *[1] * len(count))


def conv_input(
    input: Tensor, weight: Tensor, bias: Tensor | None, size: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    _ops_conv._check_steps("nn::conv_input", stride, dilation, groups)
    if not input.numel() or not weight.numel():
        return _ops_conv.conv_input_composite(input, weight, bias, size, stride, padding, dilation, groups)
    if input.dtype in (rl.float16, rl.bfloat16):  # windows overlap: their sums are rounded once
        image = conv_input(wide(input), wide(weight), wide(bias), size, stride, padding, dilation, groups)
        return image.to(input.dtype)
    kernel, count = weight.shape[2:], input.shape[2:]
    matrix = weight.reshape(groups, weight.size(0) // groups, -1).transpose(1, 2)
    windows = Windows(size[2:], kernel, count, stride, padding, dilation)
    bytes_each = size[1] * math.prod(kernel) * math.prod(count) * input.itemsize
    images = []
    for part in _parts(input.size(0), bytes_each):
        items = input[part]
        columns = matrix @ items.reshape(items.size(0), groups, items.size(1) // groups, -1)
        images.append(input.new_empty((items.size(0), *size[1:])))
        _launch("image", (columns.contiguous(), images[-1]), images[-1].numel(), windows)
    result = rl.cat(images) if len(images) > 1 else images[0]
    return result if bias is None else result + bias.reshape(-1, *[1] * len(count))


def conv_weight(
    output_grad: Tensor, input: Tensor, size: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    _ops_conv._check_steps("nn::conv_weight", stride, dilation, groups)
    if not input.numel() or not output_grad.numel():
        return _ops_conv.conv_weight_composite(output_grad, input, size, stride, padding, dilation, groups)
    count, out = output_grad.shape[2:], size[0]
    windows = Windows(input.shape[2:], size[2:], count, stride, padding, dilation)
    total: Any = None
    for part in _parts(input.size(0), input.size(1) * math.prod(size[2:]) * math.prod(count) * input.itemsize):
        grad = output_grad[part].reshape(-1, groups, out // groups, math.prod(count))
        left = grad.permute(1, 2, 0, 3).reshape(groups, out // groups, -1)
        found = left @ _columns(input[part], windows, groups, True).transpose(1, 2)
        total = found if total is None else total + found
    return total.reshape(size)


def max_pool(
    input: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any, count: Any
) -> tuple[Tensor, Tensor]:
    if not input.numel() or input.is_complex() or input.dtype == rl.bool:
        return _ops_pool.max_pool_composite(input, kernel_size, stride, padding, dilation, count)
    n = len(kernel_size)
    best = input.new_empty((*input.shape[:-n], *count))
    index = rl.empty_like(best, dtype=rl.int64)
    windows = Windows(input.shape[-n:], kernel_size, count, stride, padding, dilation)
    _launch("max", (input.contiguous(), best, index), best.numel(), windows)
    return best, index


def avg_pool(
    input: Tensor, kernel_size: Any, stride: Any, padding: Any, count: Any, count_include_pad: bool, divisor: int
) -> Tensor:
    if not input.numel() or not input.is_floating_point():
        return _ops_pool.avg_pool_composite(input, kernel_size, stride, padding, count, count_include_pad, divisor)
    n = len(kernel_size)
    mean = input.new_empty((*input.shape[:-n], *count))
    windows = Windows(input.shape[-n:], kernel_size, count, stride, padding, (1,) * n)
    windows = windows._replace(divisor=divisor, include=count_include_pad)
    _launch("mean", (input.contiguous(), mean), mean.numel(), windows)
    return mean


def avg_unpool(
    input: Tensor,
    size: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    count: Any,
    count_include_pad: bool,
    divisor: int,
) -> Tensor:
    n = len(kernel_size)
    if not input.is_floating_point() or list(input.shape) != [*size[:-n], *count] or not math.prod(size):
        arguments = (input, size, kernel_size, stride, padding, count, count_include_pad, divisor)
        return _ops_pool.avg_unpool_composite(*arguments)
    image = input.new_empty(tuple(size))
    windows = Windows(size[-n:], kernel_size, count, stride, padding, (1,) * n)
    windows = windows._replace(divisor=divisor, include=count_include_pad)
    _launch("spread", (input.contiguous(), image), image.numel(), windows)
    return image


def kernels() -> list[Kernel]:
    """What replaces the records' compositions on GPUs."""
    return [
        Kernel("nn::row_norm", row_norm),
        Kernel("nn::row_norm_backward", row_norm_backward),
        Kernel("nn::channel_norm", channel_norm),
        Kernel("nn::channel_norm_backward", channel_norm_backward),
        Kernel("nn::conv_forward", conv_forward),
        Kernel("nn::conv_input", conv_input),
        Kernel("nn::conv_weight", conv_weight),
        Kernel("nn::max_pool", max_pool),
        Kernel("nn::avg_pool", avg_pool),
        Kernel("nn::avg_unpool", avg_unpool),
    ]
