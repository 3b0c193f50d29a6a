"""One step of an optimiser over all parameters of a group.

The composites below define the arithmetic, operation by operation as in PyTorch; kernels of a device fuse it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._op import COMPOSITE, Op, Sample


def _real(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Complex tensors as real ones with a further dimension: both parts are stepped alike."""
    return [rl.view_as_real(tensor) if tensor.is_complex() else tensor for tensor in tensors]


def _sgd_samples(make: Any, dtype: Any) -> Any:
    if dtype.is_floating_point or dtype.is_complex:
        yield Sample(([make(3, 4)], [make(3, 4)], []), {"lr": 0.1})
        lists = tuple([make(3, 4), make()] for _ in range(3))
        yield Sample(lists, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True})


def _adam_samples(make: Any, dtype: Any) -> Any:
    if dtype.is_floating_point:
        moments: Any = [make(3, 4)], [make(3, 4, low=0, high=1)]
        yield Sample(
            ([make(3, 4)], [make(3, 4)], *moments, [], [rl.tensor(3.0)]),
            {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1},
        )


def sgd_step_composite(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    momentum_buffers: Sequence[Tensor],
    *,
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
) -> None:
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


sgd_step_ = (
    Op(
        "nn::sgd_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] momentum_buffers, *, float lr, "
        "float momentum=0.0, float dampening=0.0, float weight_decay=0.0, bool nesterov=False, bool maximize=False, "
        "bool is_first_step=False) -> ()",
        family=COMPOSITE,
        method=False,
        out=False,
        differentiable=False,
        doc="One step of stochastic gradient descent; with `is_first_step` the momentum buffers are written only.",
    )
    .composite(sgd_step_composite)
    .samples(_sgd_samples)
)


def adam_step_composite(
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
    weight_decay: float,
    eps: float,
    amsgrad: bool,
    maximize: bool,
    decoupled_weight_decay: bool,
) -> None:
    params, grads, exp_avgs, exp_avg_sqs = map(_real, (params, grads, exp_avgs, exp_avg_sqs))
    max_exp_avg_sqs = _real(max_exp_avg_sqs)
    for i, (param, grad) in enumerate(zip(params, grads, strict=True)):
        if maximize:
            grad = -grad
        steps[i].add_(1)
        if param.is_meta:
            continue
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


adam_step_ = (
    Op(
        "nn::adam_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] exp_avgs, Tensor(c!)[] exp_avg_sqs, "
        "Tensor(d!)[] max_exp_avg_sqs, Tensor(e!)[] steps, *, float lr, float beta1, float beta2, "
        "float weight_decay=0.0, float eps=1e-08, bool amsgrad=False, bool maximize=False, "
        "bool decoupled_weight_decay=False) -> ()",
        family=COMPOSITE,
        method=False,
        out=False,
        differentiable=False,
        doc="One step of Adam; `steps` count how often each parameter was stepped and are raised by one first.",
    )
    .composite(adam_step_composite)
    .samples(_adam_samples)
)
