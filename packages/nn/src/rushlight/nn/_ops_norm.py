"""Normalisation to mean 0 and variance 1."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight as rl
from rushlight import Tensor
from rushlight._op import COMPOSITE, Op, Sample


def _normalized(input: Tensor, dims: Sequence[int], eps: float) -> Tensor:
    centred = input - input.mean(dims, keepdim=True)
    return centred * rl.rsqrt((centred * centred).mean(dims, keepdim=True) + eps)


def _check_channels(name: str, tensor: Tensor | None, channels: int) -> None:
    if tensor is not None and tensor.numel() != channels:
        raise RuntimeError(f"{name} should contain {channels} elements not {tensor.numel()}")


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
    if input.dim() < 2:
        raise RuntimeError(f"batch_norm: expected an input (N, C, *), got {list(input.shape)}.")
    channels = input.size(1)
    for name, tensor in (
        ("weight", weight),
        ("bias", bias),
        ("running_mean", running_mean),
        ("running_var", running_var),
    ):
        _check_channels(name, tensor, channels)
    shape = [1, channels] + [1] * (input.dim() - 2)
    dims = [0, *range(2, input.dim())]
    if training:
        mean = input.mean(dims)
        centred = input - mean.reshape(shape)
        variance = (centred * centred).mean(dims)
        count = input.numel() // max(channels, 1)
        with rl.no_grad():
            if running_mean is not None:
                running_mean.mul_(1 - momentum).add_(mean.detach(), alpha=momentum)
            if running_var is not None:
                running_var.mul_(1 - momentum).add_(variance.detach(), alpha=momentum * count / max(count - 1, 1))
    else:
        if running_mean is None or running_var is None:
            raise RuntimeError("Expected running_mean and running_var to be defined when training=False")
        centred = input - running_mean.reshape(shape)
        variance = running_var
    scale = rl.rsqrt(variance + eps)
    if weight is not None:
        scale = scale * weight
    result = centred * scale.reshape(shape)
    return result if bias is None else result + bias.reshape(shape)


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
            Sample((make(4, 3), make(3), make(3), None, None, True, 0.1, 1e-5, False)),
            Sample((make(2, 3, 4, 5), make(3), make(3), make(3), make(3, low=1, high=2), False, 0.1, 1e-5, False)),
        )
    )
)


def layer_norm_composite(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    shape = list(normalized_shape)
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
    for name, tensor in (("weight", weight), ("bias", bias)):
        if tensor is not None and list(tensor.shape) != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(tensor.shape)} and normalized_shape = {shape}"
            )
    result = _normalized(input, list(range(-len(shape), 0)), eps)
    if weight is not None:
        result = result * weight
    return result if bias is None else result + bias


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
            Sample((make(2, 3, 4), [4], make(4), make(4))),
            Sample((make(2, 3, 4), [3, 4])),
        )
    )
)


def group_norm_composite(
    input: Tensor, num_groups: int, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    channels = input.size(1)
    if num_groups <= 0 or channels % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.shape)} and num_groups={num_groups}"
        )
    for name, tensor in (("weight", weight), ("bias", bias)):
        _check_channels(name, tensor, channels)
    grouped = input.reshape(input.size(0), num_groups, -1)
    result = _normalized(grouped, [-1], eps).reshape(input.shape)
    shape = [1, channels] + [1] * (input.dim() - 2)
    if weight is not None:
        result = result * weight.reshape(shape)
    return result if bias is None else result + bias.reshape(shape)


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
    .samples(lambda make, dtype: (Sample((make(2, 6, 4), 3, make(6), make(6))), Sample((make(2, 4, 3, 2), 2))))
)
