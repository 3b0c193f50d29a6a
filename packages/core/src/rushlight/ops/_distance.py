"""Distances between vectors, and bounds of their norms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _C
from .._op import COMPOSITE, Op, Sample
from ._dims import wrap_dim
from ._half import rounded_once

_MANY = 25  # rows from which a matrix product is faster than differences, as PyTorch has it


def _pairs_array(xp: Any, x1: Any, x2: Any, p: float) -> Any:
    size = xp.abs(x1[..., :, None] - x2[..., None, :, :])
    if p == 0:
        return (size != 0).sum(-2).astype(x1.dtype)
    if math.isinf(p):
        return size.max(-2, initial=0)
    return (size**p).sum(-2) ** (1 / p)


_loops = Op(
    "_cdist_loops(Tensor x1, Tensor x2, float p) -> Tensor",
    method=False,
    out=False,
    differentiable=False,
    doc="Distances of the rows of (B, P, M) to the columns of (B, M, R).",
).array(_pairs_array)
_loops_backward = Op(
    "_cdist_loops_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor distances) -> Tensor",
    method=False,
    out=False,
    differentiable=False,
    doc="The gradient of `_cdist` by `x1`.",
).composite(lambda grad, x1, x2, p, distances: _slopes(grad, x1, x2, p, distances).sum(-2))


def _distances(x1: Any, x2: Any, p: float, by_product: bool) -> Any:
    if not by_product:
        return _loops.operator(x1, x2.transpose(1, 2), p)
    from ._join import cat

    # |a - b|^2 = |a|^2 - 2 a b + |b|^2 is one product of longer rows; rounding may leave it below zero.
    square = lambda x: (x * x).sum(-1, keepdim=True)
    left = cat.operator([-2 * x1, square(x1), x1.new_ones(*x1.shape[:2], 1)], -1)
    right = cat.operator([x2, x2.new_ones(*x2.shape[:2], 1), square(x2)], -1)
    return (left @ right.transpose(1, 2)).clamp_(min=0).sqrt_()


def _nonzero_power(x: Any, exponent: float) -> Any:
    """Powers of what is not negative, 0 for 0."""
    zero = x == 0
    return (x.masked_fill(zero, 1) ** exponent).masked_fill(zero, 0)


def _slopes(grad: Any, x1: Any, x2: Any, p: float, distances: Any) -> Any:
    """The terms (B, P, R, M) of both gradients, in differentiable operators."""
    difference = x1.unsqueeze(2) - x2.unsqueeze(1)
    grad, distances = grad.unsqueeze(-1), distances.unsqueeze(-1)
    if p == 0:
        return difference * 0 * grad
    if math.isinf(p):
        return difference.sign() * (difference.abs() == distances) * grad
    same = distances == 0
    ratio, grad = difference / distances.masked_fill(same, 1), grad.masked_fill(same, 0)
    return grad * (ratio if p == 2 else ratio.sign() * _nonzero_power(ratio.abs(), p - 1))


def _distances_grad(
    grad: Any, x1: Any, x2: Any, p: float, by_product: bool, result: Any, needs: Sequence[bool]
) -> tuple[Any, Any]:
    import rushlight

    first, second = needs
    if rushlight.is_grad_enabled():  # to be differentiated again
        slopes = _slopes(grad, x1, x2, p, result)
        return slopes.sum(2) if first else None, -slopes.sum(1) if second else None
    if by_product:
        weight = grad * _nonzero_power(result, -1)
        return (
            x1 * weight.sum(2, keepdim=True) - weight @ x2 if first else None,
            x2 * weight.sum(1).unsqueeze(-1) - weight.transpose(1, 2) @ x1 if second else None,
        )
    return (
        _loops_backward.operator(grad, x1, x2, p, result) if first else None,
        _loops_backward.operator(grad.transpose(1, 2), x2, x1, p, result.transpose(1, 2)) if second else None,
    )


_cdist = (
    Op(
        "_cdist(Tensor x1, Tensor x2, float p, bool by_product) -> Tensor",
        method=False,
        out=False,
        doc="Distances of the rows of (B, P, M) to those of (B, R, M), for p = 2 perhaps by a matrix product.",
    )
    .composite(_distances)
    .grad(("x1", "x2"), _distances_grad)
)

_USE_MM = "use_mm_for_euclid_dist"
_MODES = (f"{_USE_MM}_if_necessary", _USE_MM, f"donot_{_USE_MM}")


def _check_cdist(x1: Any, x2: Any, p: float, compute_mode: str) -> None:
    if compute_mode not in _MODES:
        raise ValueError(
            f"{compute_mode} is not a valid value for compute_mode, which is one of {', '.join(sorted(_MODES))}."
        )
    for name, x in (("X1", x1), ("X2", x2)):
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
        if not x.is_floating_point():
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: dtype {x.dtype}")
        if x.dtype.itemsize == 2:
            raise NotImplementedError(f'"cdist" not implemented for dtype {x.dtype}. Convert with .float().')
    if x1.dtype is not x2.dtype:
        raise RuntimeError(
            f"expected scalar type {x1.dtype} but found {x2.dtype} (cdist). Convert one with .to(dtype)."
        )
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    if not p >= 0:
        raise RuntimeError(f"cdist only supports non-negative p values, got p={p}")


def _cdist_of(x1: Any, x2: Any, p: float, compute_mode: str) -> Any:
    from .._functions import broadcast_shapes

    _check_cdist(x1, x2, p, compute_mode)
    rows, others, m = x1.shape[-2], x2.shape[-2], x1.shape[-1]
    batch = broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    many = compute_mode == _USE_MM or (compute_mode == _MODES[0] and max(rows, others) > _MANY)
    x1, x2 = (x.expand(*batch, *x.shape[-2:]).reshape(math.prod(batch), n, m) for x, n in ((x1, rows), (x2, others)))
    return _cdist.operator(x1, x2, p, p == 2 and many).reshape(*batch, rows, others)


def _cdist_samples(make: Any, dtype: Any) -> Any:
    if dtype in (_C.float32, _C.float64):
        for p in (2.0, 1.0, 0.0, 3.0, 0.5, math.inf):
            yield Sample((make(3, 4), make(5, 4), p))
        yield Sample((make(2, 1, 3, 4), make(3, 5, 4)))
        yield Sample((make(2, 0), make(3, 0)))
        yield Sample((make(4, 3), make(5, 3)), {"compute_mode": _USE_MM})


cdist = (
    Op(
        f'cdist(Tensor x1, Tensor x2, float p=2.0, str compute_mode="{_MODES[0]}") -> Tensor',
        family=COMPOSITE,
        method=False,
        out=False,
        doc="""Distances between all rows of two matrices, or batches of them, in the p-norm.

        Args:
            x1: float32 or float64 tensor (*, P, M).
            x2: Tensor (*, R, M) of the same dtype, whose batch dimensions broadcast with those of `x1`.
            p: Exponent of the norm, from 0 (the number of elements that differ) to inf (the largest difference).
            compute_mode: Whether p=2 goes by a matrix product, which is fast, and inexact for points that are close:
                "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist", or "use_mm_for_euclid_dist_if_necessary",
                which does so for more than 25 rows.

        Returns:
            Tensor (*, P, R).

        Raises:
            RuntimeError: Shapes or dtypes do not fit, or `p` is negative.
            ValueError: `compute_mode` is unknown.

        Example:
            >>> rushlight.cdist(rushlight.tensor([[0.0, 0.0]]), rushlight.tensor([[3.0, 4.0]]))
            tensor([[5.]])
        """,
    )
    .composite(_cdist_of)
    .samples(
        _cdist_samples,
        lambda x1, x2, p=2.0, compute_mode="": _pairs_array(np, x1, np.swapaxes(x2, -1, -2), p),
    )
)


@rounded_once
def _renorm(x: Any, p: float, dim: int, maxnorm: float) -> Any:
    if p <= 0:
        raise RuntimeError(f"renorm: non-positive-norm not supported, got p={p}")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if x.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {x.ndim} dimensions")
    from ._reduction import vector_norm

    dim = wrap_dim(dim, x.ndim)
    norm = vector_norm.operator(x, p, [d for d in range(x.ndim) if d != dim], True)
    too_long = norm > maxnorm
    factor = (maxnorm / (norm + 1e-7)).masked_fill(~too_long, 1)
    return x * factor


def _np_renorm(x: Any, p: float, dim: int, maxnorm: float) -> Any:
    rest = tuple(d for d in range(x.ndim) if d != dim % x.ndim)
    norm = (np.abs(x) ** p).sum(rest, keepdims=True) ** (1 / p)
    return x * np.where(norm > maxnorm, maxnorm / (norm + 1e-7), 1)


renorm = (
    Op(
        "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
        family=COMPOSITE,
        exact=True,
        inplace=True,
        doc="""The slices along a dimension, scaled down where their p-norm exceeds a bound.

        Args:
            input: Floating or complex tensor of at least two dimensions.
            p: Exponent of the norm.
            dim: Dimension whose every index is a slice.
            maxnorm: The bound.

        Returns:
            Tensor of the shape of the input.

        Raises:
            RuntimeError: `p` is not positive, `maxnorm` is negative, or there are less than two dimensions.
        """,
    )
    .composite(_renorm)
    .samples(
        lambda make, dtype: (
            Sample((make(3, 4, 2), p, dim, 5.0)) for p, dim in ((2, 0), (1, 1), (3.5, -1)) if dtype.itemsize > 1
        ),
        _np_renorm,
    )
)
