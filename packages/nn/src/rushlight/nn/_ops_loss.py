"""Negative log likelihood of classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._op import COMPOSITE, Op, Sample
from rushlight.nn._precision import check_floats, wide


def _checked(name: str, input: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
    """The target, of the input's shape without its classes."""
    if input.dim() < 1:
        raise RuntimeError(f"{name}: expected an input (N, C, *) or (C,), got {list(input.shape)}.")
    dim = _class_dim(input)
    expected = list(input.shape)
    del expected[dim]
    if not expected and list(target.shape) == [1]:
        target = target.reshape(())
    if list(target.shape) != expected:
        if input.dim() == 2 and target.dim() == 1:
            raise ValueError(
                f"Expected input batch_size ({input.size(0)}) to match target batch_size ({target.size(0)})."
            )
        if input.dim() == 1 and target.dim() == 1:
            raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {target.size(0)}")
        raise RuntimeError(f"Expected target size {expected}, got {list(target.shape)}")
    if target.dtype not in (rl.int64, rl.uint8):
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {target.dtype}. Pass class numbers as int64."
        )
    check_floats(name, input, weight=weight)
    if weight is not None and (weight.dim() != 1 or weight.numel() != input.size(dim)):
        raise RuntimeError(
            f"weight tensor should be defined either for all {input.size(dim)} classes or no classes but got weight "
            f"tensor of shape: {list(weight.shape)}"
        )
    return target


def _class_dim(input: Tensor) -> int:
    return 1 if input.dim() > 1 else 0


def _reduce(loss: Tensor, factors: Tensor, reduction: int) -> Tensor:
    if reduction == 0:
        return loss
    return loss.sum() if reduction == 2 else loss.sum() / factors.sum()


def _picked(log_p: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, dim: int) -> tuple[Tensor, Tensor]:
    """Minus the entries at the targets times their factors, and the factors, 0 where ignored."""
    counts = target != ignore_index
    chosen = rl.where(counts, target, 0).to(rl.int64)
    if chosen.numel() and not chosen.is_meta:
        least, greatest = int(chosen.min()), int(chosen.max())
        if least < 0 or greatest >= log_p.size(dim):
            raise IndexError(f"Target {least if least < 0 else greatest} is out of bounds.")
    factors = counts.to(log_p.dtype)
    if weight is not None:
        factors = factors * weight.index_select(0, chosen.reshape(-1)).reshape(chosen.shape)
    entries = log_p.gather(dim, chosen.unsqueeze(dim)).squeeze(dim)
    return -rl.where(counts, entries, 0) * factors, factors


def nll_loss_composite(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> Tensor:
    target = _checked("nll_loss", self, target, weight)
    return _reduce(*_picked(self, target, weight, ignore_index, _class_dim(self)), reduction)


def _classes(make: Any, dtype: Any) -> Any:
    if not dtype.is_floating_point:
        return
    target = make.tensor([1, 0, 3])
    yield Sample((make(3, 4), target))
    yield Sample((make(3, 4), target, make(4, low=0.5, high=2), 2, 0))
    yield Sample((make(4), make.tensor(2), None, 0))
    yield Sample((make(2, 4, 3), make.tensor([[0, 1, 2], [3, 2, 1]])))


nll_loss_nd = (
    Op(
        "nn::nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) "
        "-> Tensor",
        family=COMPOSITE,
        method=False,
        out=False,
        doc="""Minus the log probabilities of the target classes.

        Args:
            input: Log probabilities (N, C, *) or (C,).
            target: Class numbers (N, *) or ().
            weight: (C,), a factor for each class.
            reduction: 0 (none), 1 (mean, weighted) or 2 (sum).
            ignore_index: A class number that does not count.
        """,
    )
    .composite(nll_loss_composite)
    .samples(_classes)
)


def class_loss_composite(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int, label_smoothing: float
) -> tuple[Tensor, Tensor, Tensor]:
    if not input.is_floating_point():
        raise NotImplementedError(f'"cross_entropy" not implemented for dtype {input.dtype}')
    dtype, input, weight = input.dtype, wide(input), wide(weight)
    dim = _class_dim(input)
    log_p = rl.log_softmax(input, dim)
    loss, factors = _picked(log_p, target, weight, ignore_index, dim)
    if label_smoothing != 0:
        spread = log_p if weight is None else log_p * _along(weight, dim, input.dim())
        smooth = rl.where(target != ignore_index, -spread.sum(dim), 0)
        loss = loss * (1 - label_smoothing) + smooth * (label_smoothing / max(input.size(dim), 1))
    total = factors.sum() if reduction == 1 else rl.ones((), dtype=input.dtype, device=input.device)
    return (loss if reduction == 0 else loss.sum() / total).to(dtype), _normalizers(input, dim), total


def _normalizers(input: Tensor, dim: int) -> Tensor:
    """The greatest scores, and the logarithms of the sums of exponentials of scores less those: too large to add up."""
    if not input.size(dim):
        greatest = input.sum(dim)
        return rl.stack([greatest, greatest - math.inf])
    greatest = input.detach().amax(dim)
    greatest = greatest.masked_fill(greatest == -math.inf, 0)
    return rl.stack([greatest, rl.logsumexp(input.detach() - greatest.unsqueeze(dim), dim)])


def _class_loss_backward(
    output_grad: Tensor,
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    normalizers: Tensor,  # for kernels; of functions that are differentiated again, softmax is
    total: Tensor,
    reduction: int,
    ignore_index: int,
    label_smoothing: float,
) -> Tensor:
    output_grad, input, weight = wide(output_grad), wide(input), wide(weight)
    dim = _class_dim(input)
    classes = input.size(dim)
    counts = target != ignore_index
    chosen = rl.where(counts, target, 0).to(rl.int64)
    probability = rl.softmax(input, dim)
    weights = rl.ones(classes, dtype=input.dtype, device=input.device) if weight is None else weight
    factors = counts.to(input.dtype) * weights.index_select(0, chosen.reshape(-1)).reshape(chosen.shape)
    slope = rl.where(counts, output_grad / total, 0)
    share = slope * factors * (1 - label_smoothing)
    even = slope * counts.to(input.dtype) * (label_smoothing / max(classes, 1))
    grad = probability * (share + even * weights.sum()).unsqueeze(dim)
    grad = grad - even.unsqueeze(dim) * _along(weights, dim, input.dim())
    return grad.scatter_add(dim, chosen.unsqueeze(dim), -share.unsqueeze(dim))


def class_loss_grad(
    grads: Sequence[Tensor],
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    label_smoothing: float,
    result1: Tensor,
    result2: Tensor,
) -> Tensor:
    rest = (reduction, ignore_index, label_smoothing)
    if not rl.is_grad_enabled():
        return class_loss_backward.operator(grads[0], input, target, weight, result1, result2, *rest)
    return _class_loss_backward(grads[0], input, target, weight, result1, result2, *rest)


_CLASS_LOSS = "int reduction, int ignore_index, float label_smoothing"


def _class_loss_samples(make: Any, dtype: Any) -> Any:
    target = make.tensor([1, 0, 3])
    yield Sample((make(3, 4), target, None, 1, -100, 0.0))
    yield Sample((make(3, 4), target, make(4, low=0.5, high=2), 1, 0, 0.1))
    yield Sample((make(2, 4, 3), make.tensor([[0, 1, 2], [3, 2, 1]]), None, 0, 2, 0.2))


def _class_loss_backward_samples(make: Any, dtype: Any) -> Any:
    if dtype.is_floating_point and dtype.itemsize >= 4:
        scores = make(3, 4)
        of_scores = _normalizers(scores, 1)
        yield Sample((make(), scores, make.tensor([1, 0, 3]), None, of_scores, make(low=1, high=2), 1, 0, 0.1))


class_loss = (
    Op(
        f"nn::class_loss(Tensor input, Tensor target, Tensor? weight, {_CLASS_LOSS}) -> (Tensor, Tensor, Tensor)",
        method=False,
        out=False,
        auxiliary=2,
        doc="Cross entropy with class numbers, the greatest scores and logarithms of sums of exponentials less those "
        "(2, *), and the divisor of the mean.",
    )
    .composite(class_loss_composite)
    .grad(input=class_loss_grad, target=None, weight=None)
    .samples(_class_loss_samples)
)
class_loss_backward = (
    Op(
        "nn::class_loss_backward(Tensor output_grad, Tensor input, Tensor target, Tensor? weight, Tensor normalizers, "
        f"Tensor total, {_CLASS_LOSS}) -> Tensor",
        method=False,
        out=False,
        differentiable=False,
        doc="The gradient of `class_loss` with respect to its input.",
    )
    .composite(_class_loss_backward)
    .samples(_class_loss_backward_samples)
)


def cross_entropy_loss_composite(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int, label_smoothing: float
) -> Tensor:
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if target.shape == self.shape and self.dim() > 0:
        return _soft_cross_entropy(self, target, weight, reduction, label_smoothing)
    target = _checked("cross_entropy", self, target, weight)
    return class_loss.operator(self, target, weight, reduction, ignore_index, label_smoothing)[0]


def _along(weight: Tensor, dim: int, ndim: int) -> Tensor:
    return weight.reshape([-1 if d == dim else 1 for d in range(ndim)])


def _soft_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: int, smoothing: float
) -> Tensor:
    """With probabilities as targets; the mean is over the batch."""
    if not target.is_floating_point():
        raise RuntimeError(f"Expected floating point type for target with class probabilities, got {target.dtype}")
    dim = _class_dim(input)
    classes = max(input.size(dim), 1)  # without classes the mean is NaN, as that of nothing is
    if smoothing:
        target = target * (1 - smoothing) + smoothing / classes
    loss = -rl.log_softmax(input, dim) * target
    if weight is not None:
        loss = loss * _along(weight, dim, input.dim())
    if reduction == 0:
        return loss.sum(dim)
    return loss.sum() if reduction == 2 else loss.sum() / (input.numel() // classes)


cross_entropy_loss = (
    Op(
        "nn::cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, "
        "int ignore_index=-100, float label_smoothing=0.0) -> Tensor",
        family=COMPOSITE,
        method=False,
        out=False,
        doc="""Negative log likelihood of the target classes under the softmax of the input.

        Args:
            input: Scores (N, C, *) or (C,).
            target: Class numbers (N, *) or (), or probabilities of the input's shape.
            weight: (C,), a factor for each class.
            reduction: 0 (none), 1 (mean, weighted) or 2 (sum).
            ignore_index: A class number that does not count.
            label_smoothing: Share of the target spread over all classes.
        """,
    )
    .composite(cross_entropy_loss_composite)
    .samples(
        lambda make, dtype: (
            ()
            if not dtype.is_floating_point
            else (
                *_classes(make, dtype),
                Sample((make(3, 4), make.tensor([1, 0, 3]), None, 1, -100, 0.1)),
                Sample((make(3, 4), make(3, 4, low=0, high=1))),
            )
        )
    )
)
