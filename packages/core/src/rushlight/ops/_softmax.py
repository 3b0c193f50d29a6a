"""Softmax, its logarithm, and the logarithm of a sum of exponentials."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._op import REDUCTION, Op, Sample
from ._reduction import _axis, _over_dims


def _along_dims(make: Any, dtype: Any) -> Any:
    for shape, dims in (
        ((3, 4), (0, 1)),
        ((2, 3, 4), (0, 1, -1)),
        ((5,), (0,)),
        ((), (0,)),
        ((0, 3), (0, 1)),
        ((40, 50), (0, 1)),
    ):
        for dim in dims:
            yield Sample((make(*shape, low=-5, high=5), dim))
    yield Sample((make(4, 3, low=-500, high=500).t(), 0))


def _pairs(make: Any, dtype: Any) -> Any:
    for shape, dim in (((3, 4), 0), ((3, 4), 1), ((2, 3, 4), 1)) if dtype.is_floating_point else ():
        yield Sample((make(*shape), make(*shape, low=-1, high=1), dim))


softmax = (
    Op(
        "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
        family=REDUCTION,
        doc="""`exp(input)` divided by its sum along `dim`, without overflow.

        Args:
            input: Floating tensor of any shape.
            dim: Dimension along which the results sum to 1.
            dtype: Dtype to convert to first.

        Returns:
            Tensor of the same shape.

        Example:
            >>> rushlight.zeros(2, 2).softmax(1)
            tensor([[0.5000, 0.5000],
                    [0.5000, 0.5000]])
        """,
    )
    .array(lambda xp, x, dim, dtype: _softmax(xp, x, dim, dtype))
    .grad(self="_softmax_backward(grad, result, dim)")
    .samples(_along_dims)
)
log_softmax = (
    Op(
        "log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
        family=REDUCTION,
        doc="The logarithm of `softmax`, also where that underflows.",
    )
    .array(lambda xp, x, dim, dtype: _log_softmax(xp, x, dim, dtype))
    .grad(self="_log_softmax_backward(grad, result, dim)")
    .samples(_along_dims)
)
softmax_backward = (
    Op(
        "_softmax_backward(Tensor grad_output, Tensor output, int dim) -> Tensor",
        family=REDUCTION,
        function=False,
        method=False,
        out=False,
        doc="The gradient of `softmax` from its output.",
    )
    .array(lambda xp, grad, y, dim: (grad - xp.sum(grad * y, axis=_axis_of(y, dim), keepdims=True)) * y)
    .grad(
        grad_output="_softmax_backward(grad, output, dim)",
        output="grad * (grad_output - sum(grad_output * output, dim, True)) - grad_output * sum(grad * output, dim, "
        "True)",
    )
    .samples(_pairs)
)
log_softmax_backward = (
    Op(
        "_log_softmax_backward(Tensor grad_output, Tensor output, int dim) -> Tensor",
        family=REDUCTION,
        function=False,
        method=False,
        out=False,
        doc="The gradient of `log_softmax` from its output.",
    )
    .array(lambda xp, grad, y, dim: grad - xp.exp(y) * xp.sum(grad, axis=_axis_of(y, dim), keepdims=True))
    .grad(
        grad_output="grad - sum(grad * exp(output), dim, True)",
        output="-grad * exp(output) * sum(grad_output, dim, True)",
    )
    .samples(_pairs)
)
logsumexp = (
    Op(
        "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
        exact=False,
        family=REDUCTION,
        doc="`log(sum(exp(input)))` over the dimensions of `dim`, without overflow; integers compute in the default "
        "dtype.",
    )
    .array(lambda xp, x, dim, keepdim: _logsumexp(xp, x, _axis(dim), keepdim))
    .grad(
        self="unsqueeze_reduced(grad, self, dim, keepdim)"
        " * conj(exp(self - unsqueeze_reduced(where(result == -inf, 0, result), self, dim, keepdim)))"
    )
    .samples(_over_dims(whole=False))
)


def _axis_of(x: Any, dim: int) -> Any:
    return dim if x.ndim else None


def _shifted(xp: Any, x: Any, dim: int, dtype: Any) -> Any:
    x = x if dtype is None else x.astype(dtype)
    if x.dtype.kind not in "fc":
        raise NotImplementedError(f'"softmax" not implemented for {x.dtype}. Pass dtype=, or convert to floats.')
    return x - xp.max(x, axis=_axis_of(x, dim), keepdims=True) if x.size else x


def _softmax(xp: Any, x: Any, dim: int, dtype: Any) -> Any:
    e = xp.exp(_shifted(xp, x, dim, dtype))
    return e / xp.sum(e, axis=_axis_of(x, dim), keepdims=True)


def _log_softmax(xp: Any, x: Any, dim: int, dtype: Any) -> Any:
    shifted = _shifted(xp, x, dim, dtype)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=_axis_of(x, dim), keepdims=True))


def _logsumexp(xp: Any, x: Any, axis: Any, keepdim: bool) -> Any:
    if x.dtype.kind in "iub":
        x = x.astype(np.float32)
    axis = axis if x.ndim else None
    with np.errstate(divide="ignore"):
        if not x.size:
            return xp.log(xp.sum(xp.exp(x), axis=axis, keepdims=keepdim))
        top = xp.max(xp.real(x), axis=axis, keepdims=True)
        top = xp.where(xp.isinf(top), xp.zeros_like(top), top)
        total = xp.log(xp.sum(xp.exp(x - top), axis=axis, keepdims=True)) + top
    return total if keepdim else xp.squeeze(total, axis=axis)
