"""The multivariate normal distribution with a covariance of low rank plus a diagonal."""

from __future__ import annotations

import math
from typing import Any

import rushlight as rl
from rushlight import Size, Tensor

from . import constraints
from .distribution import Distribution
from .multivariate_normal import half_log_det, products
from .utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """The multivariate normal distribution of covariance `cov_factor @ cov_factor.mT + diag(cov_diag)`.

    Determinant and inverse are those of an m by m matrix, by the matrix determinant lemma and Woodbury's identity.
    Needs the wheel rushlight-linalg.

    Args:
        loc: Mean (*, n).
        cov_factor: Factor (*, n, m), m smaller than n where it is to pay.
        cov_diag: Diagonal (*, n), positive.
        validate_args: See `Distribution`.

    Raises:
        ValueError: Something has too few dimensions or the sizes do not fit.

    Example:
        >>> import rushlight as torch
        >>> normal = torch.distributions.LowRankMultivariateNormal(torch.zeros(2), torch.ones(2, 1), torch.ones(2))
        >>> normal.covariance_matrix
        tensor([[2., 1.],
                [1., 2.]])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            batch_shape = Size(rl.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]))
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from error
        self.loc = loc.expand(batch_shape + event_shape)
        self.cov_factor = cov_factor.expand(batch_shape + cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(batch_shape + event_shape)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._factor, self._diag = cov_factor, cov_diag  # not broadcast
        self._capacitance_tril = capacitance_tril(cov_factor, cov_diag)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @lazy_property
    def variance(self) -> Any:
        """Variance of each element."""
        return (self._factor.square().sum(-1) + self._diag).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Any:
        """Lower Cholesky factor of the covariance."""
        # Of D^1/2 (1 + D^-1/2 W W' D^-1/2) D^1/2, whose middle is well conditioned.
        root = self._diag.sqrt().unsqueeze(-1)
        scaled = self._factor / root
        identity = rl.eye(self._event_shape[0], dtype=scaled.dtype, device=scaled.device)
        factor = root * rl.linalg.cholesky(scaled @ scaled.mT + identity)
        return factor.expand(self._batch_shape + self._event_shape * 2)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """Covariance."""
        covariance = self._factor @ self._factor.mT + self._diag.diag_embed()
        return covariance.expand(self._batch_shape + self._event_shape * 2)

    @lazy_property
    def precision_matrix(self) -> Any:
        """Inverse of the covariance."""
        scaled = self._factor.mT / self._diag.unsqueeze(-2)
        half = rl.linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        precision = self._diag.reciprocal().diag_embed() - half.mT @ half
        return precision.expand(self._batch_shape + self._event_shape * 2)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        dtype, device = self.loc.dtype, self.loc.device
        along_factor = _standard_normal(shape[:-1] + self.cov_factor.shape[-1:], dtype, device)
        along_axes = _standard_normal(shape, dtype, device)
        drawn = products(self._factor, along_factor)
        return self.loc + drawn + self._diag.sqrt() * along_axes

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        distance = low_rank_mahalanobis(self._factor, self._diag, value - self.loc, self._capacitance_tril)
        log_det = low_rank_log_det(self._diag, self._capacitance_tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + log_det + distance)

    def entropy(self) -> Any:
        log_det = low_rank_log_det(self._diag, self._capacitance_tril)
        entropy = 0.5 * (self._event_shape[0] * (1 + math.log(2 * math.pi)) + log_det)
        return entropy.expand(self._batch_shape)


def capacitance_tril(factor: Any, diag: Any) -> Any:
    """Cholesky factor of `1 + W' D^-1 W`, m by m."""
    identity = rl.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
    return rl.linalg.cholesky(identity + (factor.mT / diag.unsqueeze(-2)) @ factor)


def low_rank_log_det(diag: Any, capacitance: Any) -> Any:
    """Logarithm of the determinant of `W W' + D`."""
    return 2 * half_log_det(capacitance) + diag.log().sum(-1)


def low_rank_mahalanobis(factor: Any, diag: Any, difference: Any, capacitance: Any) -> Any:
    """`difference' (W W' + D)^-1 difference`, a tensor of the shape of the batch of vectors."""
    scaled = difference / diag
    inner = rl.linalg.solve_triangular(capacitance, factor.mT @ scaled.unsqueeze(-1), upper=False)
    return (difference * scaled).sum(-1) - inner.square().sum((-2, -1))
