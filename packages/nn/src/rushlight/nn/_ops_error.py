"""Losses of single elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight._op import COMPOSITE, Op, Sample, pointwise


def _smooth_l1_array(xp: Any, x: Any, target: Any, beta: float) -> Any:
    distance = xp.abs(x - target)
    return xp.where(distance < beta, distance * distance * (0.5 / beta), distance - 0.5 * beta)


def _huber_array(xp: Any, x: Any, target: Any, delta: float) -> Any:
    distance = xp.abs(x - target)
    return xp.where(distance < delta, 0.5 * distance * distance, delta * (distance - 0.5 * delta))


def _record(schema: str, doc: str, array: Callable[..., Any], self: str, target: str, *arguments: Any) -> Op:
    def samples(make: Any, dtype: Any) -> Any:
        if dtype.is_floating_point:
            yield Sample((make(3, 4), make(3, 4), *arguments))

    return (
        Op(f"nn::{schema} -> Tensor", family=pointwise(), method=False, doc=doc)
        .array(lambda xp, x, *rest: array(xp, x, *rest).astype(x.dtype))
        .grad(self=self, target=target)
        .samples(samples)
    )


_squared_error = _record(
    "_squared_error(Tensor self, Tensor target)",
    "``(self - target) ** 2``.",
    lambda xp, x, target: (x - target) * (x - target),
    "grad * 2 * (self - target)",
    "grad * 2 * (target - self)",
)
_smooth_l1 = _record(
    "_smooth_l1(Tensor self, Tensor target, Scalar beta)",
    "``d ** 2 / (2 * beta)`` where d = ``|self - target|`` < `beta`, else ``d - beta / 2``.",
    _smooth_l1_array,
    "grad * clamp((self - target) / beta, -1, 1)",
    "grad * clamp((target - self) / beta, -1, 1)",
    0.7,
)
_huber = _record(
    "_huber(Tensor self, Tensor target, Scalar delta)",
    "``d ** 2 / 2`` where d = ``|self - target|`` < `delta`, else ``delta * (d - delta / 2)``.",
    _huber_array,
    "grad * clamp(self - target, -delta, delta)",
    "grad * clamp(target - self, -delta, delta)",
    0.7,
)
_bce_logits = _record(
    "_bce_logits(Tensor self, Tensor target)",
    "The binary cross-entropy of ``sigmoid(self)``, exact for large scores.",
    lambda xp, x, target: xp.maximum(x, 0) - target * x + xp.log1p(xp.exp(-xp.abs(x))),
    "grad * (sigmoid(self) * (1 - target) - sigmoid(-self) * target)",
    "-grad * self",
)
_soft_margin = _record(
    "_soft_margin(Tensor self, Tensor target)",
    "``log(1 + exp(-target * self))``.",
    lambda xp, x, target: xp.log1p(xp.exp(-target * x)),
    "-grad * target * sigmoid(-target * self)",
    "-grad * where(sigmoid(-target * self) == 0, 0, self) * sigmoid(-target * self)",
)
_absolute_error = (
    Op(
        "nn::_absolute_error(Tensor self, Tensor target) -> Tensor",
        family=COMPOSITE,
        method=False,
        out=False,
        doc="``abs(self - target)``.",
    )
    .composite(lambda self, target: (self - target).abs())
    .samples(lambda make, dtype: (Sample((make(3, 4), make(3, 4))),))
)
