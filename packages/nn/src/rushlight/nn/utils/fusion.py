"""Batch normalisation with fixed statistics folded into the layer before it."""

from __future__ import annotations

import copy
from typing import TypeVar

from rushlight import Tensor
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]

M = TypeVar("M", bound=Module)


def fuse_conv_bn_eval(conv: M, bn: Module, transpose: bool = False) -> M:
    """A convolution that computes ``bn(conv(x))``.

    Args:
        conv: A convolution, in eval mode.
        bn: Batch norm with running statistics, in eval mode.
        transpose: Whether `conv` is a transposed convolution.

    Returns:
        A copy of `conv` with other weights.

    Raises:
        AssertionError: One of both is in training mode, or `bn` has no running statistics.

    Example:
        >>> import rushlight as torch
        >>> conv, bn = torch.nn.Conv2d(1, 2, 3).eval(), torch.nn.BatchNorm2d(2).eval()
        >>> x = torch.rand(1, 1, 5, 5)
        >>> torch.allclose(torch.nn.utils.fuse_conv_bn_eval(conv, bn)(x), bn(conv(x)), atol=1e-6)
        True
    """
    return _fused(conv, bn, 1 if transpose else 0)


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a convolution that computes batch norm too.

    Args:
        conv_w: (out, in, *), or (in, out, *) if `transpose`: the weight of the convolution.
        conv_b: (out,) its bias, or None.
        bn_rm: (out,) the running mean.
        bn_rv: (out,) the running variance.
        bn_eps: Added to the variance.
        bn_w: (out,) the weight of batch norm. None: ones.
        bn_b: (out,) its bias. None: zeros.
        transpose: Whether the convolution is a transposed one.
    """
    return _fused_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 1 if transpose else 0)


def fuse_linear_bn_eval(linear: M, bn: Module) -> M:
    """A linear layer that computes ``bn(linear(x))``.

    Args:
        linear: The layer, in eval mode.
        bn: Batch norm with running statistics, in eval mode, over the features of `linear` or over one feature.

    Raises:
        AssertionError: One of both is in training mode, the features differ, or `bn` has no running statistics.
    """
    if bn.num_features not in (1, linear.out_features):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"{linear.out_features} and {bn.num_features}"
        )
    return _fused(linear, bn, 0)


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor,
    bn_b: Tensor,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a linear layer that computes batch norm too; arguments as in `fuse_conv_bn_weights`."""
    return _fused_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def _fused(layer: M, bn: Module, dim: int) -> M:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("Fusion needs batch norm's running statistics: track_running_stats=True")
    layer = copy.deepcopy(layer)
    layer.weight, layer.bias = _fused_weights(
        layer.weight, layer.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, dim
    )
    return layer


def _fused_weights(
    weight: Tensor,
    bias: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    eps: float,
    gain: Tensor | None,
    shift: Tensor | None,
    dim: int,
) -> tuple[Parameter, Parameter]:
    scale = (variance + eps).rsqrt()
    if gain is not None:
        scale = scale * gain
    new_bias = ((0 if bias is None else bias) - mean) * scale
    if shift is not None:
        new_bias = new_bias + shift
    shape = [1] * weight.dim()
    shape[dim] = -1
    new_weight = (weight * scale.reshape(shape)).to(weight.dtype)
    trained = bias is not None and bias.requires_grad
    new_bias = new_bias.expand(weight.size(dim)) if new_bias.dim() and len(new_bias) == 1 else new_bias
    return (
        Parameter(new_weight.detach(), weight.requires_grad),
        Parameter(new_bias.to(weight.dtype if bias is None else bias.dtype).detach().clone(), trained),
    )
