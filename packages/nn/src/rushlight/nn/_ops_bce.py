"""Binary cross-entropy of probabilities."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor
from rushlight._op import COMPOSITE, Op, Sample, pointwise
from rushlight.nn._precision import check_floats


def _bce_array(xp: Any, x: Any, target: Any) -> Any:
    log_x = xp.where(x == 0, -100, xp.maximum(xp.log(xp.where(x == 0, 1, x)), -100))
    log_rest = xp.where(x == 1, -100, xp.maximum(xp.log1p(-xp.where(x == 1, 0, x)), -100))
    return ((target - 1) * log_rest - target * log_x).astype(x.dtype)


def _shares(make: Any, dtype: Any) -> Any:
    if dtype.is_floating_point:
        yield Sample((make(3, 4, low=0.1, high=0.9), make(3, 4, low=0.1, high=0.9)))


_bce = (
    Op(
        "nn::_bce(Tensor self, Tensor target) -> Tensor",
        family=pointwise(),
        method=False,
        doc="Elementwise binary cross-entropy; logarithms count as at least -100.",
    )
    .array(_bce_array)
    .grad(
        self="grad * (self - target) / clamp((1 - self) * self, min=1e-12)",
        # The inner bounds keep the slopes of the logarithms finite, which count for nothing there.
        target="grad * (clamp(log(clamp(1 - self, min=1e-45)), min=-100) - clamp(log(clamp(self, min=1e-45)), "
        "min=-100))",
    )
    .samples(_shares)
)


def binary_cross_entropy_composite(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int) -> Tensor:
    check_floats("binary_cross_entropy", self, target=target)
    if not self.is_meta and not bool(((self >= 0) & (self <= 1)).all()):
        raise RuntimeError("all elements of input should be between 0 and 1")
    loss = _bce.operator(self, target)
    if weight is not None:
        loss = loss * weight
    return loss if reduction == 0 else loss.mean() if reduction == 1 else loss.sum()


binary_cross_entropy = (
    Op(
        "nn::binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
        family=COMPOSITE,
        method=False,
        out=False,
        doc="Binary cross-entropy of probabilities in [0, 1]; `reduction` is 0 (none), 1 (mean) or 2 (sum).",
    )
    .composite(binary_cross_entropy_composite)
    .samples(_shares)
)
