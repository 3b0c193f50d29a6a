"""Normalisation to mean 0 and variance 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._op import COMPOSITE, Op, Sample
from rushlight.nn._precision import check_floats, wide


def _check_channels(name: str, tensor: Tensor | None, channels: int) -> None:
    if tensor is not None and tensor.numel() != channels:
        raise RuntimeError(f"{name} should contain {channels} elements not {tensor.numel()}")


def _statistics(make: Any) -> tuple[Tensor, Tensor]:
    """Samples of running mean and variance, which never require gradients."""
    return make(3, requires_grad=False), make(3, low=1, high=2, requires_grad=False)


def _scale(rows: Tensor, dims: list[int], eps: float) -> Tensor:
    """``1 / sqrt(mean(rows^2) + eps)``, in units where the squares leave the range."""
    if not rows.numel():
        return rl.rsqrt((rows * rows).mean(dims, keepdim=True) + eps)
    largest, bound = rl.norm(rows.detach(), math.inf, dims, keepdim=True), rl.finfo(rows.dtype).max ** 0.25
    tiny = (largest < 1 / bound) & (largest != 0) if eps == 0 else largest < 0
    unit = largest.masked_fill(~tiny & ~((largest > bound) & largest.isfinite()), 1)
    parts = rows / unit
    return rl.rsqrt((parts * parts).mean(dims, keepdim=True) + eps / unit / unit) / unit


def channel_norm_composite(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    dtype, input = input.dtype, wide(input)
    channels = input.size(1)
    shape = [1, channels] + [1] * (input.dim() - 2)
    dims = [0, *range(2, input.dim())]
    if training:
        mean = input.mean(dims)
        centred = input - mean.reshape(shape)
        scale = _scale(centred, dims, eps).reshape(-1)
        count = input.numel() // max(channels, 1)
        with rl.no_grad():
            if running_mean is not None and count:
                running_mean.mul_(1 - momentum).add_(mean.detach(), alpha=momentum)
            if running_var is not None and count:
                variance = (centred * centred).mean(dims)
                running_var.mul_(1 - momentum).add_(variance, alpha=momentum * count / max(count - 1, 1))
    else:
        if running_mean is None or running_var is None:
            raise RuntimeError("Expected running_mean and running_var to be defined when training=False")
        mean, scale = wide(running_mean), rl.rsqrt(wide(running_var) + eps)
        centred = input - mean.reshape(shape)
    result = centred * (scale if weight is None else scale * weight).reshape(shape)
    if bias is not None:
        result = result + bias.reshape(shape)
    return result.to(dtype), mean.clone(), scale


def _channel_norm_backward(
    output_grad: Tensor, input: Tensor, weight: Tensor | None, mean: Tensor, scale: Tensor, training: bool
) -> tuple[Tensor, Tensor, Tensor]:
    output_grad, input, weight = wide(output_grad), wide(input), wide(weight)
    shape = [1, -1] + [1] * (input.dim() - 2)
    dims = [0, *range(2, input.dim())]
    normalized = (input - mean.reshape(shape)) * scale.reshape(shape)
    weight_grad, bias_grad = (output_grad * normalized).sum(dims), output_grad.sum(dims)
    factor = (scale if weight is None else scale * weight).reshape(shape)
    if not training:
        return output_grad * factor, weight_grad, bias_grad
    count = input.numel() // max(input.size(1), 1)
    centred = output_grad - bias_grad.reshape(shape) / count - normalized * (weight_grad.reshape(shape) / count)
    return centred * factor, weight_grad, bias_grad


def channel_norm_grad(
    grads: Sequence[Tensor],
    input: Tensor,
    weight: Tensor | None,
    training: bool,
    eps: float,
    result1: Tensor,
    result2: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    if not rl.is_grad_enabled():
        return channel_norm_backward.operator(grads[0], input, weight, result1, result2, training)
    # The gradient is to be differentiated: the statistics are functions of the input again.
    if training:
        input = wide(input)
        dims = [0, *range(2, input.dim())]
        mean = input.mean(dims)
        centred = input - mean.reshape([1, -1] + [1] * (input.dim() - 2))
        scale = _scale(centred, dims, eps).reshape(-1)
    else:
        mean, scale = result1, result2
    return _channel_norm_backward(grads[0], input, weight, mean, scale, training)


_STATISTICS = "Tensor mean, Tensor scale"

channel_norm = (
    Op(
        "nn::channel_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
        "bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        method=False,
        out=False,
        auxiliary=2,
        doc="Batch normalisation, the mean of each channel and the factor ``1 / sqrt(var + eps)``.",
    )
    .composite(channel_norm_composite)
    .grad(("input", "weight", "bias"), channel_norm_grad)
    .samples(
        lambda make, dtype: (
            ()
            if not dtype.is_floating_point
            else (
                Sample((make(4, 3), make(3), make(3), None, None, True, 0.1, 1e-5)),
                Sample((make(2, 3, 4, 5), None, None, *_statistics(make), False, 0.1, 1e-5)),
            )
        )
    )
)
channel_norm_backward = (
    Op(
        f"nn::channel_norm_backward(Tensor output_grad, Tensor input, Tensor? weight, {_STATISTICS}, bool training) "
        "-> (Tensor, Tensor, Tensor)",
        method=False,
        out=False,
        differentiable=False,
        doc="Gradients of `batch_norm` with respect to input, weight and bias.",
    )
    .composite(_channel_norm_backward)
    .samples(
        lambda make, dtype: (
            ()
            if not dtype.is_floating_point or dtype.itemsize < 4
            else (
                Sample((make(4, 3), make(4, 3), make(3), make(3), make(3, low=1, high=2), training))
                for training in (True, False)
            )
        )
    )
)


def batch_norm_composite(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    if input.dim() < 2 and input.numel():
        raise RuntimeError(f"batch_norm: expected an input (N, C, *), got {list(input.shape)}.")
    statistics = {"running_mean": running_mean, "running_var": running_var}
    check_floats("batch_norm", input, mixed=True, weight=weight, bias=bias, **statistics)
    channels = input.size(1) if input.dim() > 1 else 0
    for name, tensor in {"weight": weight, "bias": bias, **statistics}.items():
        _check_channels(name, tensor, channels)
    if input.dim() < 2:
        return input.clone()
    return channel_norm.operator(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


batch_norm = (
    Op(
        "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
        "bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
        family=COMPOSITE,
        method=False,
        out=False,
        doc="""Normalises each channel, then scales and shifts it; with `training` running statistics are updated.

        Args:
            input: (N, C, *).
            weight: (C,), the scale.
            bias: (C,), the shift.
            running_mean: (C,), used if not `training`, else updated.
            running_var: (C,), likewise.
            training: Whether the statistics are those of the batch.
            momentum: Weight of the batch in the running statistics.
            eps: Added to the variance.
            cudnn_enabled: Unused.
        """,
    )
    .composite(batch_norm_composite)
    .samples(
        lambda make, dtype: (
            ()
            if not dtype.is_floating_point
            else (
                Sample((make(4, 3), make(3), make(3), None, None, True, 0.1, 1e-5, False)),
                Sample((make(2, 3, 4, 5), make(3), make(3), *_statistics(make), False, 0.1, 1e-5, False)),
            )
        )
    )
)


def _channels(name: str, length: int, repeat: int) -> int:
    """How many channels a row has whose elements each stand `repeat` times."""
    if repeat <= 0:
        raise RuntimeError(f"{name}: a channel has at least one element in a row, got repeat={repeat}.")
    return length // repeat


def _mean(rows: Tensor, centred: bool) -> Tensor:
    return rows.mean(1, keepdim=True) if centred else rows.new_zeros(rows.size(0), 1)


def row_norm_composite(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    length: int,
    period: int,
    repeat: int,
    eps: float,
    centred: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    rows = wide(input).reshape(-1, length)
    mean = _mean(rows, centred)
    rows = rows - mean
    scale = _scale(rows, [1], eps)
    channels = _channels("nn::row_norm", length, repeat)
    result = (rows * scale).reshape(-1, period, channels, repeat)
    shape = (period, channels, 1)
    if weight is not None:
        result = result * weight.reshape(shape)
    if bias is not None:
        result = result + bias.reshape(shape)
    return result.reshape(input.shape).to(input.dtype), mean.reshape(-1), scale.reshape(-1)


def _row_norm_backward(
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
    output_grad, input, weight = wide(output_grad), wide(input), wide(weight)
    shape = (-1, period, _channels("nn::row_norm_backward", length, repeat), repeat)
    normalized = (input.reshape(-1, length) - mean.reshape(-1, 1)) * scale.reshape(-1, 1)
    grad = output_grad.reshape(shape)
    bias_grad = grad.sum((0, 3)).reshape(-1 if weight is None else weight.shape)
    weight_grad = None if weight is None else (grad * normalized.reshape(shape)).sum((0, 3)).reshape(weight.shape)
    if weight is not None:
        grad = grad * weight.reshape(period, shape[2], 1)
    grad = grad.reshape(-1, length)
    slope = (grad * normalized).mean(1, keepdim=True)
    input_grad = (grad - _mean(grad, centred) - normalized * slope) * scale.reshape(-1, 1)
    return input_grad.reshape(input.shape), weight_grad, bias_grad


def row_norm_grad(
    grads: Sequence[Tensor],
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    length: int,
    period: int,
    repeat: int,
    eps: float,
    centred: bool,
    result1: Tensor,
    result2: Tensor,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    if not rl.is_grad_enabled():
        found = row_norm_backward.operator(grads[0], input, weight, result1, result2, length, period, repeat, centred)
    else:  # the gradient is to be differentiated: the statistics are functions of the input again
        rows = wide(input).reshape(-1, length)
        mean = _mean(rows, centred)
        scale = _scale(rows - mean, [1], eps)
        found = _row_norm_backward(grads[0], input, weight, mean, scale, length, period, repeat, centred)
    return found[0], found[1], None if bias is None else found[2].reshape(bias.shape)


row_norm = (
    Op(
        "nn::row_norm(Tensor input, Tensor? weight, Tensor? bias, int length, int period, int repeat, float eps, "
        "bool centred=True) -> (Tensor, Tensor, Tensor)",
        method=False,
        out=False,
        auxiliary=2,
        doc="""Normalises rows of `length` elements, and gives the mean and ``1 / sqrt(var + eps)`` of each.

        Element `i` of row `r` takes entry ``(r % period) * (length / repeat) + i / repeat`` of weight and bias. What is
        not `centred` keeps its mean, for which 0 stands.
        """,
    )
    .composite(row_norm_composite)
    .grad(("input", "weight", "bias"), row_norm_grad)
    .samples(
        lambda make, dtype: (
            ()
            if not dtype.is_floating_point
            else (
                Sample((make(2, 3, 4), make(4), make(4), 4, 1, 1, 1e-5)),
                Sample((make(2, 6, 5), make(6), make(6), 15, 2, 5, 1e-5)),
            )
        )
    )
)
row_norm_backward = (
    Op(
        f"nn::row_norm_backward(Tensor output_grad, Tensor input, Tensor? weight, {_STATISTICS}, int length, "
        "int period, int repeat, bool centred=True) -> (Tensor, Tensor, Tensor)",
        method=False,
        out=False,
        differentiable=False,
        doc="Gradients of `row_norm` with respect to input, weight (None without one) and bias.",
    )
    .composite(_row_norm_backward)
    .samples(
        lambda make, dtype: (
            ()
            if not dtype.is_floating_point or dtype.itemsize < 4
            else (Sample((make(2, 6, 5), make(2, 6, 5), make(6), make(4), make(4, low=1, high=2), 15, 2, 5)),)
        )
    )
)


def layer_norm_composite(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    shape = list(normalized_shape)
    _check_normalized(input, shape, {"weight": weight, "bias": bias})
    check_floats("layer_norm", input, mixed=True, weight=weight, bias=bias)
    return row_norm.operator(input, weight, bias, math.prod(shape), 1, 1, eps)[0]


def _check_normalized(input: Tensor, shape: list[int], parameters: dict[str, Tensor | None]) -> None:
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    if list(input.shape[-len(shape) :]) != shape:
        raise RuntimeError(
            f"Given normalized_shape={shape}, expected input with shape [*, {', '.join(map(str, shape))}], but got "
            f"input of size{list(input.shape)}"
        )
    for name, tensor in parameters.items():
        if tensor is not None and list(tensor.shape) != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(tensor.shape)} and normalized_shape = {shape}"
            )


layer_norm = (
    Op(
        "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
        "bool cudnn_enable=True) -> Tensor",
        family=COMPOSITE,
        method=False,
        out=False,
        doc="Normalises over the last dimensions, of sizes `normalized_shape`, then scales and shifts elementwise.",
    )
    .composite(lambda input, shape, weight, bias, eps, _: layer_norm_composite(input, shape, weight, bias, eps))
    .samples(
        lambda make, dtype: (
            ()
            if not dtype.is_floating_point
            else (
                Sample((make(2, 3, 4), [4], make(4), make(4))),
                Sample((make(2, 3, 4), [3, 4])),
            )
        )
    )
)


def group_norm_composite(
    input: Tensor, num_groups: int, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    check_floats("group_norm", input, mixed=True, weight=weight, bias=bias)
    channels = input.size(1)
    if num_groups <= 0 or channels % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.shape)} and num_groups={num_groups}"
        )
    for name, tensor in (("weight", weight), ("bias", bias)):
        _check_channels(name, tensor, channels)
    inner = math.prod(input.shape[2:])
    return row_norm.operator(input, weight, bias, channels // num_groups * inner, num_groups, inner, eps)[0]


group_norm = (
    Op(
        "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
        "bool cudnn_enabled=True) -> Tensor",
        family=COMPOSITE,
        method=False,
        out=False,
        doc="Normalises each group of channels of an input (N, C, *), then scales and shifts each channel.",
    )
    .composite(lambda input, groups, weight, bias, eps, _: group_norm_composite(input, groups, weight, bias, eps))
    .samples(
        lambda make, dtype: (
            ()
            if not dtype.is_floating_point
            else (Sample((make(2, 6, 4), 3, make(6), make(6))), Sample((make(2, 4, 3, 2), 2)))
        )
    )
)


def instance_norm_composite(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    if input.dim() < 2:
        raise RuntimeError(f"instance_norm: expected an input (N, C, *), got {list(input.shape)}.")
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    if not use_input_stats:
        return batch_norm_composite(input, weight, bias, running_mean, running_var, False, momentum, eps, cudnn_enabled)
    channels, inner = input.size(1), math.prod(input.shape[2:])
    statistics = {"running_mean": running_mean, "running_var": running_var}
    check_floats("instance_norm", input, mixed=True, weight=weight, bias=bias, **statistics)
    for name, tensor in {"weight": weight, "bias": bias, **statistics}.items():
        _check_channels(name, tensor, channels)
    if not input.numel():
        return input.clone()
    with rl.no_grad():
        rows = wide(input.detach()).reshape(input.size(0), channels, inner)
        if running_mean is not None:
            running_mean.mul_(1 - momentum).add_(rows.mean((0, 2)), alpha=momentum)
        if running_var is not None:
            running_var.mul_(1 - momentum).add_(rows.var(2).mean(0), alpha=momentum)
    return row_norm.operator(input, weight, bias, inner, channels, inner, eps)[0]


instance_norm = (
    Op(
        "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
        "bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
        family=COMPOSITE,
        method=False,
        out=False,
        doc="""Normalises each channel of each sample, then scales and shifts it (Ulyanov et al., 2016).

        Args:
            input: (N, C, *).
            weight: (C,), the scale.
            bias: (C,), the shift.
            running_mean: (C,), updated with `use_input_stats`, else used.
            running_var: (C,), likewise.
            use_input_stats: Whether the statistics are those of the input.
            momentum: Weight of the input in the running statistics.
            eps: Added to the variance.
            cudnn_enabled: Unused.
        """,
    )
    .composite(instance_norm_composite)
    .samples(
        lambda make, dtype: (
            ()
            if not dtype.is_floating_point
            else (
                Sample((make(2, 3, 4), make(3), make(3), None, None, True, 0.1, 1e-5, False)),
                Sample((make(2, 3, 4, 5), None, None, *_statistics(make), False, 0.1, 1e-5, False)),
            )
        )
    )
)


def rms_norm_composite(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, eps: float | None
) -> Tensor:
    shape = list(normalized_shape)
    _check_normalized(input, shape, {"weight": weight})
    if not (input.is_floating_point() or input.is_complex()):
        raise NotImplementedError(f'"rms_norm" not implemented for {input.dtype}. Convert the input to floats.')
    smallest = rl.finfo(wide(input).dtype).eps if eps is None else eps
    if input.is_floating_point() and (weight is None or weight.dtype is input.dtype):
        return row_norm.operator(input, weight, None, math.prod(shape), 1, 1, smallest, False)[0]
    rows = wide(input)
    result = rows * _scale(rows, list(range(-len(shape), 0)), smallest)
    return (result if weight is None else result * weight).to(input.dtype)


rms_norm = (
    Op(
        "rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
        family=COMPOSITE,
        method=False,
        out=False,
        doc="""Divides by the root of the mean square over the last dimensions (Zhang and Sennrich, 2019), then scales.

        Args:
            input: (*, *normalized_shape).
            normalized_shape: The last dimensions.
            weight: `normalized_shape`, the scale.
            eps: Added to the mean square. Default: the spacing of numbers at 1 in the type of the input.
        """,
    )
    .composite(rms_norm_composite)
    .samples(
        lambda make, dtype: (
            ()
            if not dtype.is_floating_point
            else (Sample((make(2, 3, 4), [4], make(4))), Sample((make(2, 3, 4), [3, 4], None, 1e-5)))
        )
    )
)
