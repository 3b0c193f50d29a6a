"""Losses and distances that are functions of rushlight itself too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._op import COMPOSITE, Op, Sample
from rushlight.nn._ops_activation import log_sigmoid
from rushlight.nn._ops_error import _bce_logits
from rushlight.nn._precision import check_floats, wide


def reduced(loss: Tensor, reduction: int) -> Tensor:
    """The loss itself (0), its mean (1) or its sum (2)."""
    return loss if reduction == 0 else loss.mean() if reduction == 1 else loss.sum()


def _record(schema: str, doc: str, composite: Callable[..., Tensor], samples: Callable[..., Any]) -> Op:
    return (
        Op(f"{schema} -> Tensor", family=COMPOSITE, method=False, out=False, doc=doc)
        .composite(composite)
        .samples(lambda make, dtype: samples(make) if dtype.is_floating_point else ())
    )


_REDUCTION = "reduction: 0 (none), 1 (mean) or 2 (sum)."


def _signs(make: Any) -> Tensor:
    return make.tensor([1, -1, 1])


# -- distances


def pairwise_distance_composite(x1: Tensor, x2: Tensor, p: float, eps: float, keepdim: bool) -> Tensor:
    return (x1 - x2 + eps).norm(p, -1, keepdim)


pairwise_distance = _record(
    "pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False)",
    """The `p`-norm of ``x1 - x2 + eps`` along the last dimension.

    Args:
        x1: (*, D).
        x2: (*, D), broadcast with `x1`.
        p: The norm.
        eps: Added to the difference.
        keepdim: Whether the last dimension stays, with size 1.

    Returns:
        (*), or (*, 1) with `keepdim`.
    """,
    pairwise_distance_composite,
    lambda make: (Sample((make(3, 4), make(3, 4))), Sample((make(2, 3, 4), make(4), 1.0, 0.0, True))),
)


def pdist_composite(input: Tensor, p: float) -> Tensor:
    if input.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.dim()}D")
    if not input.is_floating_point():
        raise RuntimeError(f"pdist only supports floating-point dtypes, got {input.dtype}.")
    if not p >= 0:
        raise RuntimeError(f"pdist only supports non-negative p values, got p={p}.")
    rows = input.size(0)
    first, second = rl.triu_indices(rows, rows, 1, device=input.device).unbind(0)
    distances = rl.cdist(wide(input), wide(input), p, "donot_use_mm_for_euclid_dist")
    return distances.reshape(-1).index_select(0, first * rows + second).to(input.dtype)


pdist = _record(
    "pdist(Tensor input, float p=2)",
    """The `p`-norm distances of all pairs of rows.

    Args:
        input: (N, D), floating point.
        p: The norm, not negative.

    Returns:
        (N * (N - 1) / 2,): the rows 0 and 1, 0 and 2, ..., 1 and 2, ...

    Raises:
        RuntimeError: The input is not 2-D, or `p` is negative.
    """,
    pdist_composite,
    lambda make: (Sample((make(4, 3),)), Sample((make(4, 3), 1.0)), Sample((make(3, 2), float("inf")))),
)

# -- losses


def bce_with_logits_composite(
    self: Tensor, target: Tensor, weight: Tensor | None, pos_weight: Tensor | None, reduction: int
) -> Tensor:
    if pos_weight is None:
        loss = _bce_logits.operator(self, target)
    else:
        loss = (target - 1) * log_sigmoid.operator(-self) - pos_weight * target * log_sigmoid.operator(self)
    return reduced(loss if weight is None else loss * weight, reduction)


binary_cross_entropy_with_logits = _record(
    "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, "
    "int reduction=1)",
    f"""Binary cross-entropy of the sigmoid of scores, exact for large ones.

    Args:
        input: Scores, any shape.
        target: Probabilities, of the input's shape.
        weight: A factor, broadcast to the input's shape.
        pos_weight: The factor of the positives, likewise.
        {_REDUCTION}
    """,
    bce_with_logits_composite,
    lambda make: (
        Sample((make(3, 4), make(3, 4, low=0, high=1))),
        Sample((make(3, 4), make(3, 4, low=0, high=1), make(4, low=1, high=2), make(4, low=1, high=2), 2)),
    ),
)


def kl_div_composite(self: Tensor, target: Tensor, reduction: int, log_target: bool) -> Tensor:
    if log_target:
        return reduced(target.exp() * (target - self), reduction)
    safe = rl.where(target > 0, target, rl.ones_like(target))
    return reduced(target * (safe.log() - self), reduction)


kl_div = _record(
    "kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False)",
    f"""The Kullback-Leibler divergence ``target * (log(target) - input)``.

    Args:
        input: Log probabilities.
        target: Probabilities, or their logarithms if `log_target`.
        {_REDUCTION}
        log_target: See `target`.
    """,
    kl_div_composite,
    lambda make: (
        Sample((make(3, 4, low=-3, high=-1), make(3, 4, low=0.1, high=1))),
        Sample((make(3, 4, low=-3, high=-1), make(3, 4, low=-3, high=-1), 2), {"log_target": True}),
    ),
)


def poisson_nll_composite(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Tensor:
    loss = input.exp() - target * input if log_input else input - target * rl.log(input + eps)
    if full:
        positive = rl.where(target > 1, target, rl.ones_like(target))
        stirling = positive * positive.log() - positive + 0.5 * rl.log(2 * rl.pi * positive)
        loss = loss + rl.where(target > 1, stirling, rl.zeros_like(stirling))
    return reduced(loss, reduction)


poisson_nll_loss = _record(
    "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction)",
    f"""Negative log likelihood of counts under Poisson distributions.

    Args:
        input: Rates, or their logarithms if `log_input`.
        target: Counts.
        log_input: See `input`.
        full: Whether Stirling's approximation of ``log(target!)`` is added.
        eps: Added to rates before their logarithm.
        {_REDUCTION}
    """,
    poisson_nll_composite,
    lambda make: (
        Sample((make(3, 4), make(3, 4, low=2, high=4), True, True, 1e-8, 1)),
        Sample((make(3, 4, low=1, high=2), make(3, 4, low=2, high=4), False, False, 1e-8, 2)),
    ),
)


def margin_ranking_composite(input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: int) -> Tensor:
    return reduced((-target * (input1 - input2) + margin).clamp(min=0), reduction)


margin_ranking_loss = _record(
    "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1)",
    f"""``max(0, -target * (input1 - input2) + margin)``: which of two inputs should be greater.

    Args:
        input1: Any shape.
        input2: The same shape.
        target: 1 where `input1` should be greater, else -1.
        margin: By how much.
        {_REDUCTION}
    """,
    margin_ranking_composite,
    lambda make: (Sample((make(3), make(3), _signs(make), 0.5)),),
)


def hinge_embedding_composite(self: Tensor, target: Tensor, margin: float, reduction: int) -> Tensor:
    zeros = rl.zeros_like(self)
    near = rl.where(target != 1, (margin - self).clamp(min=0), zeros)
    return reduced(near + rl.where(target != -1, self, zeros), reduction)


hinge_embedding_loss = _record(
    "hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=1)",
    f"""The input where `target` is 1, ``max(0, margin - input)`` where it is -1.

    Args:
        input: Distances, any shape.
        target: 1 or -1, of the input's shape.
        margin: See above.
        {_REDUCTION}
    """,
    hinge_embedding_composite,
    lambda make: (Sample((make(3), _signs(make))),),
)


def cosine_embedding_composite(input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: int) -> Tensor:
    if target.dim() > 1:
        raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported, got {list(target.shape)}.")
    if target.dim() + 1 != input1.dim() or target.dim() + 1 != input2.dim():
        raise RuntimeError(
            f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    # The squares of the lengths have 1e-12 added.
    lengths = (rl.norm(x, 2, -1, keepdim=True) for x in (input1, input2))
    unit1, unit2 = (x / rl.hypot(n, n.new_full((), 1e-6)) for x, n in zip((input1, input2), lengths, strict=True))
    cosine = (unit1 * unit2).sum(-1)
    zeros = rl.zeros_like(cosine)
    loss = rl.where(target == 1, 1 - cosine, zeros) + rl.where(target == -1, (cosine - margin).clamp(min=0), zeros)
    return reduced(loss, reduction)


cosine_embedding_loss = _record(
    "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1)",
    f"""1 - cosine where `target` is 1, ``max(0, cosine - margin)`` where it is -1.

    Args:
        input1: (N, D) or (D,).
        input2: The same shape.
        target: (N,) or ().
        margin: See above.
        {_REDUCTION}
    """,
    cosine_embedding_composite,
    lambda make: (Sample((make(3, 4), make(3, 4), _signs(make))),),
)


def triplet_margin_composite(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float, p: float, eps: float, swap: bool, reduction: int
) -> Tensor:
    dims = anchor.dim(), positive.dim(), negative.dim()
    if len(set(dims)) != 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {dims[0]}D, positive {dims[1]}D, and negative {dims[2]}D inputs"
        )
    near = pairwise_distance_composite(anchor, positive, p, eps, False)
    far = pairwise_distance_composite(anchor, negative, p, eps, False)
    if swap:
        far = rl.minimum(far, pairwise_distance_composite(positive, negative, p, eps, False))
    return reduced((near - far + margin).clamp(min=0), reduction)


triplet_margin_loss = _record(
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, "
    "float eps=1e-06, bool swap=False, int reduction=1)",
    f"""``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` with the `p`-norm distance d.

    Args:
        anchor: (N, D) or (D,).
        positive: The same shape.
        negative: The same shape.
        margin: See above.
        p: The norm.
        eps: Added to differences.
        swap: Whether the negative's distance is the lesser of those to anchor and positive.
        {_REDUCTION}
    """,
    triplet_margin_composite,
    lambda make: (Sample((make(3, 4), make(3, 4), make(3, 4), 1.0, 2, 1e-6, True)),),
)


# -- margins between classes


def _check_classes(name: str, input: Tensor, target: Tensor, whole: bool) -> None:
    expected = input.shape if whole else input.shape[:-1]
    if input.dim() > 2 or 0 in input.shape[-1:]:
        raise RuntimeError(
            f"{name}: Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}"
        )
    if target.shape != expected and not (not whole and input.dim() < 2 and tuple(target.shape) == (1,)):
        raise RuntimeError(
            f"{name}: inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}"
        )
    check_floats(name, input)
    if target.dtype != rl.int64:
        raise RuntimeError(f"expected scalar type Long but found {target.dtype}")


def multi_margin_composite(
    self: Tensor, target: Tensor, p: Any, margin: float, weight: Tensor | None, reduction: int
) -> Tensor:
    if p not in (1, 2):
        raise RuntimeError(f"multi_margin_loss: only p == 1 and p == 2 supported, got p={p}.")
    _check_classes("multi_margin_loss", self, target, whole=False)
    check_floats("multi_margin_loss", self, weight=weight)
    classes = self.size(-1) if self.dim() else 1
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(f"inconsistent weight size: {list(weight.shape)}, expected [{classes}].")
    if target.numel() and not target.is_meta and not 0 <= int(target.min()) <= int(target.max()) < classes:
        raise RuntimeError(f"target out of range, got classes from {int(target.min())} to {int(target.max())}.")
    rows, index = wide(self).reshape(-1, classes), target.reshape(-1, 1)
    violation = (margin - rows.gather(1, index) + rows).clamp(min=0)
    violation = violation if p == 1 else violation * violation
    if weight is not None:
        violation = violation * wide(weight).index_select(0, index.squeeze(1)).unsqueeze(1)
    loss = rl.where(rl.arange(classes, device=self.device) == index, 0, violation).sum(1) / classes
    return reduced(loss if self.dim() == 2 else loss.reshape(()), reduction).to(self.dtype)


multi_margin_loss = _record(
    "nn::multi_margin_loss(Tensor self, Tensor target, Scalar p=1, float margin=1.0, Tensor? weight=None, "
    "int reduction=1)",
    "The hinge loss of one class against the others, see `rushlight.nn.functional.multi_margin_loss`.",
    multi_margin_composite,
    lambda make: (
        Sample((make(3, 4), make.tensor([1, 0, 3]))),
        Sample((make(4), make.tensor(2), 2, 0.5, make(4, low=1, high=2, requires_grad=False), 0)),
    ),
)


def multilabel_margin_composite(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    _check_classes("multilabel_margin_loss", self, target, whole=True)
    classes = self.size(-1) if self.dim() else 1
    if target.numel() and not target.is_meta and not -1 <= int(target.min()) <= int(target.max()) < classes:
        raise RuntimeError(f"target out of range, got classes from {int(target.min())} to {int(target.max())}.")
    rows, index = wide(self).reshape(-1, classes), target.reshape(-1, classes)
    listed = (index >= 0).cumprod(1) != 0  # until the first -1
    index = rl.where(listed, index, 0)
    marked = rl.zeros(rows.shape, dtype=rl.int64, device=self.device).scatter_add(1, index, listed.to(rl.int64)) > 0
    margins = (1 - rows.gather(1, index).unsqueeze(2) + rows.unsqueeze(1)).clamp(min=0)
    counts = listed.unsqueeze(2) & ~marked.unsqueeze(1)
    loss = rl.where(counts, margins, 0).sum((1, 2)) / classes
    return reduced(loss if self.dim() == 2 else loss.reshape(()), reduction).to(self.dtype)


multilabel_margin_loss = _record(
    "nn::multilabel_margin_loss(Tensor self, Tensor target, int reduction=1)",
    "The hinge loss of several classes against the others, see `rushlight.nn.functional.multilabel_margin_loss`.",
    multilabel_margin_composite,
    lambda make: (
        Sample((make(2, 4), make.tensor([[3, 0, -1, 1], [1, -1, 2, 0]]))),
        Sample((make(4), make.tensor([3, 0, -1, 1]), 0)),
    ),
)
