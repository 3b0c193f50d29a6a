"""One step of an optimiser over all parameters of a group.

The composites below define the arithmetic; kernels of a device fuse it into one pass. All of them are called as
``op(params, grads, *states, steps, **options)``: a list of tensors for each state of a parameter, empty where the
options make it unused, and one of how often each parameter was stepped.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._op import COMPOSITE, Op, Sample


def _real(tensor: Any) -> Any:
    """A complex tensor as a real one with a further dimension: both parts are stepped alike."""
    return rl.view_as_real(tensor) if tensor is not None and tensor.is_complex() else tensor


def _for_each(update: Callable[..., None]) -> Callable[..., None]:
    """The step of many parameters by the `update` of one, ``update(param, grad, *state, step, **options)``.

    What optimisers share is done before: the step is counted, the gradient turned round, the weight decayed.
    """

    @functools.wraps(update)
    def composite(
        params: Sequence[Tensor],
        grads: Sequence[Tensor],
        *states: Sequence[Tensor],
        lr: Any,
        maximize: bool,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        **options: Any,
    ) -> None:
        for tensors in zip_longest(params, grads, *states):
            param, grad, *state, step = map(_real, tensors)
            step.add_(1)
            if param.is_meta:
                continue
            if maximize:
                grad = -grad
            if decoupled_weight_decay:
                param.mul_(1 - lr * weight_decay)
            elif weight_decay != 0:
                grad = grad.add(param, alpha=weight_decay)
            update(param, grad, *state, step.item(), lr=lr, **options)

    return composite


def _samples(*states: int, **options: Any) -> Callable[..., Any]:
    """Samples of a step: one for each number of states that it may have."""

    def samples(make: Any, dtype: Any) -> Any:
        if dtype.is_floating_point:
            for count in states:
                lists = [[make(3, 4, low=0.5, high=1), make(low=0.5, high=1)] for _ in range(2 + count)]
                unused: list[Any] = [[]] * (max(states) - count)
                yield Sample((*lists, *unused, [rl.tensor(3.0), rl.tensor(7.0)]), {"lr": 0.1, **options})

    return samples


def _step_op(schema: str, doc: str) -> Op:
    return Op(schema, family=COMPOSITE, method=False, out=False, differentiable=False, doc=doc)


# -- stochastic gradient descent


def sgd_step_composite(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    momentum_buffers: Sequence[Tensor],
    *,
    lr: Any,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
) -> None:
    for param, grad, buffer in zip_longest(params, grads, momentum_buffers):
        if maximize:
            grad = -grad
        if weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        if buffer is not None:
            if is_first_step:
                buffer.copy_(grad)
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - dampening)
            grad = grad.add(buffer, alpha=momentum) if nesterov else buffer
        param.sub_(lr * grad)


def _sgd_samples(make: Any, dtype: Any) -> Any:
    if dtype.is_floating_point or dtype.is_complex:
        yield Sample(([make(3, 4)], [make(3, 4)], []), {"lr": 0.1})
        lists = tuple([make(3, 4), make()] for _ in range(3))
        yield Sample(lists, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True})


sgd_step_ = (
    _step_op(
        "nn::sgd_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] momentum_buffers, *, float lr, "
        "float momentum=0.0, float dampening=0.0, float weight_decay=0.0, bool nesterov=False, bool maximize=False, "
        "bool is_first_step=False) -> ()",
        "One step of stochastic gradient descent; with `is_first_step` the momentum buffers are written only.",
    )
    .composite(sgd_step_composite)
    .samples(_sgd_samples)
)


# -- Adam and its relatives


@_for_each
def adam_step_composite(
    param: Tensor,
    grad: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    max_exp_avg_sq: Tensor | None,
    step: float,
    *,
    lr: Any,
    beta1: float,
    beta2: float,
    eps: float,
) -> None:
    exp_avg.lerp_(grad, 1 - beta1)
    exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    second = exp_avg_sq
    if max_exp_avg_sq is not None:
        second = max_exp_avg_sq.copy_(rl.maximum(max_exp_avg_sq, exp_avg_sq))
    denominator = (second.sqrt() / math.sqrt(1 - beta2**step)).add_(eps)
    param.sub_(lr / (1 - beta1**step) * exp_avg / denominator)


adam_step_ = (
    _step_op(
        "nn::adam_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] exp_avgs, Tensor(c!)[] exp_avg_sqs, "
        "Tensor(d!)[] max_exp_avg_sqs, Tensor(e!)[] steps, *, float lr, float beta1, float beta2, "
        "float weight_decay=0.0, float eps=1e-08, bool maximize=False, bool decoupled_weight_decay=False) -> ()",
        "One step of Adam (Kingma and Ba, 2015), of AMSGrad where there are `max_exp_avg_sqs` (Reddi et al., 2018).",
    )
    .composite(adam_step_composite)
    .samples(_samples(2, 3, beta1=0.9, beta2=0.99, weight_decay=0.1))
)


@_for_each
def adamax_step_composite(
    param: Tensor,
    grad: Tensor,
    exp_avg: Tensor,
    exp_inf: Tensor,
    step: float,
    *,
    lr: Any,
    beta1: float,
    beta2: float,
    eps: float,
) -> None:
    exp_avg.lerp_(grad, 1 - beta1)
    exp_inf.copy_(rl.maximum(exp_inf * beta2, grad.abs().add_(eps)))
    param.sub_(lr / (1 - beta1**step) * exp_avg / exp_inf)


adamax_step_ = (
    _step_op(
        "nn::adamax_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] exp_avgs, Tensor(c!)[] exp_infs, "
        "Tensor(d!)[] steps, *, float lr, float beta1, float beta2, float weight_decay=0.0, float eps=1e-08, "
        "bool maximize=False) -> ()",
        "One step of Adamax, Adam with the greatest gradient for the second mean (Kingma and Ba, 2015).",
    )
    .composite(adamax_step_composite)
    .samples(_samples(2, beta1=0.9, beta2=0.99, weight_decay=0.1))
)


@_for_each
def nadam_step_composite(
    param: Tensor,
    grad: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    mu_product: Tensor,
    step: float,
    *,
    lr: Any,
    beta1: float,
    beta2: float,
    eps: float,
    momentum_decay: float,
) -> None:
    mu, next_mu = (beta1 * (1 - 0.5 * 0.96 ** (t * momentum_decay)) for t in (step, step + 1))
    product = mu_product.mul_(mu).item()
    exp_avg.lerp_(grad, 1 - beta1)
    exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    denominator = (exp_avg_sq / (1 - beta2**step)).sqrt() + eps
    param.sub_(lr * ((1 - mu) / (1 - product)) * grad / denominator)
    param.sub_(lr * (next_mu / (1 - product * next_mu)) * exp_avg / denominator)


nadam_step_ = (
    _step_op(
        "nn::nadam_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] exp_avgs, Tensor(c!)[] exp_avg_sqs, "
        "Tensor(d!)[] mu_products, Tensor(e!)[] steps, *, float lr, float beta1, float beta2, float weight_decay=0.0, "
        "float eps=1e-08, float momentum_decay=0.004, bool maximize=False, bool decoupled_weight_decay=False) -> ()",
        "One step of NAdam, Adam with Nesterov's momentum (Dozat, 2016).",
    )
    .composite(nadam_step_composite)
    .samples(
        lambda make, dtype: (
            Sample((*([make(3, 4, low=0.5, high=1)] for _ in range(4)), [rl.tensor(0.3)], [rl.tensor(3.0)]), options)
            for options in ({"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1},)
            if dtype.is_floating_point
        )
    )
)


@_for_each
def radam_step_composite(
    param: Tensor,
    grad: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    step: float,
    *,
    lr: Any,
    beta1: float,
    beta2: float,
    eps: float,
) -> None:
    exp_avg.lerp_(grad, 1 - beta1)
    exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    change = exp_avg / (1 - beta1**step)
    correction2 = 1 - beta2**step
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * beta2**step / correction2  # of the approximated simple moving average
    if length > 5:
        rectified = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
        change = change * (math.sqrt(rectified * correction2) / (exp_avg_sq.sqrt() + eps))
    param.sub_(lr * change)


radam_step_ = (
    _step_op(
        "nn::radam_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] exp_avgs, Tensor(c!)[] exp_avg_sqs, "
        "Tensor(d!)[] steps, *, float lr, float beta1, float beta2, float weight_decay=0.0, float eps=1e-08, "
        "bool maximize=False, bool decoupled_weight_decay=False) -> ()",
        "One step of RAdam, Adam with a rectified variance (Liu et al., 2020).",
    )
    .composite(radam_step_composite)
    .samples(_samples(2, beta1=0.9, beta2=0.99, weight_decay=0.1))
)


# -- steps scaled by the squares of gradients


@_for_each
def adagrad_step_composite(
    param: Tensor, grad: Tensor, sum: Tensor, step: float, *, lr: Any, lr_decay: float, eps: float
) -> None:
    sum.addcmul_(grad, grad)
    param.sub_(lr / (1 + (step - 1) * lr_decay) * grad / (sum.sqrt() + eps))


adagrad_step_ = (
    _step_op(
        "nn::adagrad_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] sums, Tensor(c!)[] steps, *, float lr, "
        "float lr_decay=0.0, float weight_decay=0.0, float eps=1e-10, bool maximize=False) -> ()",
        "One step of Adagrad (Duchi et al., 2011).",
    )
    .composite(adagrad_step_composite)
    .samples(_samples(1, lr_decay=0.1, weight_decay=0.1))
)


@_for_each
def adadelta_step_composite(
    param: Tensor, grad: Tensor, square_avg: Tensor, acc_delta: Tensor, step: float, *, lr: Any, rho: float, eps: float
) -> None:
    square_avg.mul_(rho).addcmul_(grad, grad, value=1 - rho)
    delta = ((acc_delta + eps) / (square_avg + eps)).sqrt() * grad
    acc_delta.mul_(rho).addcmul_(delta, delta, value=1 - rho)
    param.sub_(lr * delta)


adadelta_step_ = (
    _step_op(
        "nn::adadelta_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] square_avgs, Tensor(c!)[] acc_deltas, "
        "Tensor(d!)[] steps, *, float lr, float rho=0.9, float weight_decay=0.0, float eps=1e-06, "
        "bool maximize=False) -> ()",
        "One step of Adadelta (Zeiler, 2012).",
    )
    .composite(adadelta_step_composite)
    .samples(_samples(2, weight_decay=0.1))
)


@_for_each
def rmsprop_step_composite(
    param: Tensor,
    grad: Tensor,
    square_avg: Tensor,
    momentum_buffer: Tensor | None,
    grad_avg: Tensor | None,
    step: float,
    *,
    lr: Any,
    alpha: float,
    eps: float,
    momentum: float,
) -> None:
    square_avg.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
    second = square_avg
    if grad_avg is not None:
        grad_avg.lerp_(grad, 1 - alpha)
        second = square_avg.addcmul(grad_avg, grad_avg, value=-1)
    change = grad / (second.sqrt() + eps)
    if momentum_buffer is not None:
        change = momentum_buffer.mul_(momentum).add_(change)
    param.sub_(lr * change)


rmsprop_step_ = (
    _step_op(
        "nn::rmsprop_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] square_avgs, "
        "Tensor(c!)[] momentum_buffers, Tensor(d!)[] grad_avgs, Tensor(e!)[] steps, *, float lr, float alpha=0.99, "
        "float weight_decay=0.0, float eps=1e-08, float momentum=0.0, bool maximize=False) -> ()",
        "One step of RMSprop, with the variance of the gradient for its square where there are `grad_avgs`.",
    )
    .composite(rmsprop_step_composite)
    .samples(_samples(1, 2, 3, alpha=0.9, weight_decay=0.1, momentum=0.9))
)


# -- others


@_for_each
def asgd_step_composite(
    param: Tensor,
    grad: Tensor,
    ax: Tensor,
    mu: Tensor,
    eta: Tensor,
    step: float,
    *,
    lr: Any,
    lambd: float,
    alpha: float,
    t0: float,
) -> None:
    rate, share = eta.item(), mu.item()
    param.mul_(1 - lambd * rate)
    param.sub_(rate * grad)
    ax.add_((param - ax) * share)
    eta.fill_(float(lr) / (1 + lambd * float(lr) * step) ** alpha)
    mu.fill_(1 / max(1.0, step - t0))


asgd_step_ = (
    _step_op(
        "nn::asgd_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] axs, Tensor(c!)[] mus, Tensor(d!)[] etas, "
        "Tensor(e!)[] steps, *, float lr, float lambd=0.0001, float weight_decay=0.0, float alpha=0.75, "
        "float t0=1000000.0, bool maximize=False) -> ()",
        "One step of averaged stochastic gradient descent (Polyak and Juditsky, 1992).",
    )
    .composite(asgd_step_composite)
    .samples(
        lambda make, dtype: (
            Sample(([make(3, 4)], [make(3, 4)], [make(3, 4)], *([rl.tensor(x)] for x in (0.5, 0.1, 3.0))), {"lr": 0.1})
            for _ in range(dtype.is_floating_point)
        )
    )
)


@_for_each
def rprop_step_composite(
    param: Tensor,
    grad: Tensor,
    prev: Tensor,
    step_size: Tensor,
    step: float,
    *,
    lr: Any,
    eta_minus: float,
    eta_plus: float,
    step_size_min: float,
    step_size_max: float,
) -> None:
    agreement = grad * prev
    factor = rl.ones_like(grad).masked_fill_(agreement > 0, eta_plus).masked_fill_(agreement < 0, eta_minus)
    step_size.mul_(factor).clamp_(step_size_min, step_size_max)
    grad = grad.masked_fill(agreement < 0, 0)
    param.sub_(grad.sign() * step_size)
    prev.copy_(grad)


rprop_step_ = (
    _step_op(
        "nn::rprop_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] prevs, Tensor(c!)[] step_sizes, "
        "Tensor(d!)[] steps, *, float lr, float eta_minus=0.5, float eta_plus=1.2, float step_size_min=1e-06, "
        "float step_size_max=50.0, bool maximize=False) -> ()",
        "One step of resilient backpropagation (Riedmiller and Braun, 1993); `lr` is not used.",
    )
    .composite(rprop_step_composite)
    .samples(_samples(2))
)
