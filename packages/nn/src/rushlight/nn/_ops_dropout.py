"""Dropout in its variants; noise is drawn in PyTorch's order, so equal seeds drop the same elements."""

from __future__ import annotations

import math
from collections.abc import Callable

import rushlight as rl
from rushlight import Tensor
from rushlight._op import COMPOSITE, Op, Sample

_ALPHA = 1.7580993408473766  # minus the limit of SELU at minus infinity


def _dropped(input: Tensor, p: float, train: bool, features: bool, alpha: bool) -> Tensor:
    if p < 0 or p > 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
    if p == 0 or not train or input.numel() == 0:
        return input
    if p == 1:
        return input * rl.zeros((), dtype=input.dtype, device=input.device)
    if features:
        noise = rl.empty(_feature_shape(input), dtype=input.dtype, device=input.device)
    else:
        noise = rl.empty_like(input)  # drawn in the memory order of the input
    noise.bernoulli_(1 - p)
    if not alpha:
        return input * noise.div_(1 - p)
    scale = 1 / math.sqrt((_ALPHA * _ALPHA * p + 1) * (1 - p))
    shift = noise.add(-1).mul_(_ALPHA * scale).add_(_ALPHA * scale * p)
    return input * noise.mul_(scale) + shift


def _feature_shape(input: Tensor) -> list[int]:
    if input.dim() < 2:
        raise RuntimeError(f"Feature dropout requires at least 2 dimensions in the input, got {input.dim()}.")
    return [*input.shape[:2]] + [1] * (input.dim() - 2)


def _record(name: str, doc: str, composite: Callable[..., Tensor]) -> Op:
    return (
        Op(
            f"{name}(Tensor input, float p, bool train) -> Tensor",
            family=COMPOSITE,
            method=False,
            inplace=True,
            out=False,
            doc=doc,
        )
        .composite(composite)
        .samples(lambda make, dtype: (Sample((make(3, 4), 0.5, False)), Sample((make(3, 4), 0.0, True))))
    )


dropout = _record(
    "dropout",
    "Zeroes elements with probability `p` and scales the others by ``1 / (1 - p)``, if `train`.",
    lambda input, p, train: _dropped(input, p, train, False, False),
)
feature_dropout = _record(
    "feature_dropout",
    "Dropout of whole channels of an input (N, C, *).",
    lambda input, p, train: _dropped(input, p, train, True, False),
)
alpha_dropout = _record(
    "alpha_dropout",
    "Dropout that keeps mean and variance of SELU networks.",
    lambda input, p, train: _dropped(input, p, train, False, True),
)
feature_alpha_dropout = _record(
    "feature_alpha_dropout",
    "Alpha dropout of whole channels of an input (N, C, *).",
    lambda input, p, train: _dropped(input, p, train, True, True),
)
