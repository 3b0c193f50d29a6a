"""One step of an optimiser over all parameters of a group.

The composites below define the arithmetic, operation by operation as in PyTorch; kernels of a device fuse it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import rushlight as rl
from rushlight import Tensor


def _real(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Complex tensors as real ones with a further dimension: both parts are stepped alike."""
    return [rl.view_as_real(tensor) if tensor.is_complex() else tensor for tensor in tensors]


def sgd_step_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    momentum_buffers: Sequence[Tensor],
    *,
    lr: float,
    momentum: float = 0.0,
    dampening: float = 0.0,
    weight_decay: float = 0.0,
    nesterov: bool = False,
    maximize: bool = False,
    is_first_step: bool = False,
) -> None:
    """Stochastic gradient descent; with `is_first_step` the momentum buffers are written only."""
    for i, (param, grad) in enumerate(zip(params, grads, strict=True)):
        if maximize:
            grad = -grad
        if weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        if momentum != 0:
            buffer = momentum_buffers[i]
            if is_first_step:
                buffer.copy_(grad)
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - dampening)
            grad = grad.add(buffer, alpha=momentum) if nesterov else buffer
        param.add_(grad, alpha=-lr)


def adam_step_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    exp_avgs: Sequence[Tensor],
    exp_avg_sqs: Sequence[Tensor],
    max_exp_avg_sqs: Sequence[Tensor],
    steps: Sequence[Tensor],
    *,
    lr: float,
    beta1: float,
    beta2: float,
    weight_decay: float = 0.0,
    eps: float = 1e-8,
    amsgrad: bool = False,
    maximize: bool = False,
    decoupled_weight_decay: bool = False,
) -> None:
    """Adam; `steps` count how often each parameter was stepped and are raised by one first."""
    params, grads, exp_avgs, exp_avg_sqs = map(_real, (params, grads, exp_avgs, exp_avg_sqs))
    max_exp_avg_sqs = _real(max_exp_avg_sqs)
    for i, (param, grad) in enumerate(zip(params, grads, strict=True)):
        if maximize:
            grad = -grad
        steps[i].add_(1)
        step = steps[i].item()
        if weight_decay != 0:
            if decoupled_weight_decay:
                param.mul_(1 - lr * weight_decay)
            else:
                grad = grad.add(param, alpha=weight_decay)
        exp_avgs[i].lerp_(grad, 1 - beta1)
        exp_avg_sqs[i].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        second = exp_avg_sqs[i]
        if amsgrad:
            second = rl.maximum(max_exp_avg_sqs[i], second, out=max_exp_avg_sqs[i])
        denominator = (second.sqrt() / math.sqrt(1 - beta2**step)).add_(eps)
        param.addcdiv_(exp_avgs[i], denominator, value=-lr / (1 - beta1**step))
