"""Covariance and correlation of variables that are the rows of a matrix."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .. import _C
from .._op import COMPOSITE, Op, Sample
from ._half import rounded_once


def _check_weights(name: str, weights: Any, observations: int) -> None:
    if weights.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weights.ndim} dimensions"
        )
    floating = name == "aweights"
    if weights.is_floating_point() is not floating or weights.is_complex() or weights.dtype is _C.bool:
        raise RuntimeError(
            f"cov(): expected {name} to have {'floating point' if floating else 'integral'} dtype but got {name} with "
            f"{weights.dtype} dtype"
        )
    if weights.numel() != observations:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got "
            f"{weights.numel()} != {observations}"
        )
    if not weights.is_meta and bool((weights < 0).any()):
        raise RuntimeError(f"cov(): {name} cannot be negative")


@rounded_once
def _cov(x: Any, correction: int, fweights: Any, aweights: Any) -> Any:
    if x.ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {x.ndim} dimensions"
        )
    if x.dtype is _C.bool:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    if x.ndim < 2:
        x = x.reshape(1, -1)
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(_C.get_default_dtype())
    observations = x.shape[1]
    weights = None
    if fweights is not None:
        _check_weights("fweights", fweights, observations)
        weights = fweights.reshape(-1)
    if aweights is not None:
        _check_weights("aweights", aweights, observations)
        weights = aweights.reshape(-1) if weights is None else weights * aweights.reshape(-1)
    if weights is None:
        total: Any = observations
        mean = x.sum(1, keepdim=True) / observations if observations else x.sum(1, keepdim=True)
    else:
        total = weights.sum()
        if not total.is_meta and not bool(total):
            raise RuntimeError("cov(): weights sum to zero, can't be normalized")
        mean = (x * weights).sum(1, keepdim=True) / total
    if weights is not None and aweights is not None and correction:
        freedom = total - correction * (weights * aweights.reshape(-1)).sum() / total
    else:
        freedom = total - correction
    is_known = not (isinstance(freedom, _C.Tensor) and freedom.is_meta)
    if is_known and freedom <= 0:
        warnings.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.",
            stacklevel=3,
        )
        freedom = 0.0 if not isinstance(freedom, _C.Tensor) else freedom * 0
    deviations = x - mean
    weighted = deviations if weights is None else deviations * weights
    return (weighted @ deviations.t().conj() / freedom).squeeze()


@rounded_once
def _corrcoef(x: Any) -> Any:
    if x.ndim > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {x.ndim} dimensions"
        )
    covariance = _cov(x, 1, None, None)
    if covariance.ndim == 0:
        return covariance / covariance  # 1, or NaN
    spread = (covariance.diagonal().real if covariance.is_complex() else covariance.diagonal()).sqrt()
    scaled = covariance / spread.unsqueeze(1) / spread.unsqueeze(0)
    # Rounding must not bring a coefficient out of [-1, 1].
    if scaled.is_complex():
        from ._creation import complex_

        return complex_.operator(scaled.real.clamp(-1, 1), scaled.imag.clamp(-1, 1))
    return scaled.clamp(-1, 1)


cov = (
    Op(
        "cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor",
        family=COMPOSITE,
        out=False,
        doc="""Covariances of variables.

        Args:
            input: Matrix (variables, observations), or a vector of observations of one variable.
            correction: Degrees of freedom to take away from the number of observations.
            fweights: How often each observation was made, integers.
            aweights: Importance of each observation, floating-point.

        Returns:
            Matrix (variables, variables), or a 0-d tensor for one variable.

        Raises:
            RuntimeError: The input has more than two dimensions or is bool, or weights do not fit.

        Example:
            >>> rushlight.cov(rushlight.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
            tensor([[ 1., -1.],
                    [-1.,  1.]])
        """,
    )
    .composite(lambda self, *, correction, fweights, aweights: _cov(self, correction, fweights, aweights))
    .samples(
        lambda make, dtype: [
            Sample((make(3, 5),)),
            Sample((make(5),)),
            Sample((make(3, 5),), {"correction": 0, "fweights": _C.tensor([1, 2, 1, 3, 1], device=make.device)}),
            Sample((make(2, 3),), {"aweights": _C.tensor([0.5, 1.0, 2.0], device=make.device)}),
        ],
        lambda x, correction=1, fweights=None, aweights=None: np.cov(
            x, ddof=correction, fweights=fweights, aweights=aweights
        ),
    )
)
corrcoef = (
    Op(
        "corrcoef(Tensor self) -> Tensor",
        family=COMPOSITE,
        out=False,
        doc="Pearson's correlation coefficients of the variables that are the rows of a matrix, see `cov`.",
    )
    .composite(_corrcoef)
    .samples(lambda make, dtype: [Sample((make(3, 5),)), Sample((make(5),))], np.corrcoef)
)
