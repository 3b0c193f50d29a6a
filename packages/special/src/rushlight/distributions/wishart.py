"""The Wishart distribution."""

from __future__ import annotations

import math
from typing import Any

import rushlight as rl
from rushlight import Size, Tensor

from . import constraints
from .distribution import Distribution
from .multivariate_normal import cholesky_factor, given_matrix, half_log_det, inverse_of_product
from .utils import _standard_normal, lazy_property

__all__ = ["Wishart"]


class Wishart(Distribution):
    """The Wishart distribution: sums of outer products of normal vectors, as of a sample covariance.

    Needs the wheel rushlight-linalg.

    Args:
        df: Degrees of freedom, above n - 1: a number or a tensor.
        covariance_matrix: Covariance (*, n, n) of the normal vectors, positive definite.
        precision_matrix: Its inverse.
        scale_tril: Its lower Cholesky factor. Just one of the three is given.
        validate_args: See `Distribution`.

    Raises:
        AssertionError: More or less than one matrix is given.
        ValueError: It has too few dimensions, or `df` is too small.

    Example:
        >>> import rushlight as torch
        >>> torch.distributions.Wishart(torch.tensor(2.0), torch.eye(2)).mean
        tensor([[2., 0.],
                [0., 2.]])
    """

    support = constraints.positive_definite
    has_rsample = True

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = given_matrix(covariance_matrix, precision_matrix, scale_tril, AssertionError)
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        df = rl.as_tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch_shape = Size(rl.broadcast_shapes(matrix.shape[:-2], df.shape))
        event_shape = matrix.shape[-2:]
        if not (df > event_shape[-1] - 1).all():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event_shape[-1] - 1}.")
        self.df, self.__dict__[name] = df, matrix
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self.df = df.expand(batch_shape)
        self.__dict__[name] = matrix.expand(batch_shape + event_shape)
        self._factor = cholesky_factor(name, matrix)  # not broadcast

    @property
    def arg_constraints(self) -> Any:
        """Constraint of each parameter, by name."""
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[-1] - 1),
        }

    @lazy_property
    def scale_tril(self) -> Any:
        """Lower Cholesky factor of the covariance."""
        return self._factor.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """Covariance of the normal vectors."""
        return (self._factor @ self._factor.mT).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def precision_matrix(self) -> Any:
        """Inverse of the covariance."""
        return inverse_of_product(self._factor).expand(self._batch_shape + self._event_shape)

    @property
    def mean(self) -> Any:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Any:
        factor = self.df - self._event_shape[-1] - 1
        return factor.masked_fill(factor <= 0, rl.nan)[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Any:
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df[..., None, None] * (covariance.square() + outer)

    def rsample(self, sample_shape: Any = ()) -> Any:
        # Bartlett's decomposition (1933): roots of chi-squared numbers on the diagonal, normal ones below it.
        n, batch_shape = self._event_shape[-1], Size(sample_shape) + self._batch_shape
        dtype, device = self._factor.dtype, self._factor.device
        df = self.df.unsqueeze(-1) - rl.arange(n, dtype=dtype, device=device)
        chi2 = 2 * rl._standard_gamma((0.5 * df).expand((*batch_shape, n)))
        lower = _standard_normal((*batch_shape, n * (n - 1) // 2), dtype, device)
        rows, columns = rl.tril_indices(n, n, -1, device=device)
        noise = chi2.clamp(min=rl.finfo(dtype).tiny).sqrt().diag_embed()
        noise = noise.flatten(-2).index_copy(-1, rows * n + columns, lower).unflatten(-1, (n, n))
        factor = self._factor @ noise
        return factor @ factor.mT

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        n, df = self._event_shape[-1], self.df
        factor = rl.linalg.cholesky(value)
        trace = rl.linalg.solve_triangular(self._factor, factor, upper=False).square().sum((-2, -1))
        return (df - n - 1) * half_log_det(factor) - 0.5 * trace - self._log_normalizer()

    def entropy(self) -> Any:
        n, df = self._event_shape[-1], self.df
        return self._log_normalizer() - (df - n - 1) / 2 * self.mean_log_det() + n * df / 2

    def mean_log_det(self) -> Any:
        """Mean of the logarithm of the determinant."""
        n = self._event_shape[-1]
        halves = rl.arange(n, dtype=self.df.dtype, device=self.df.device) / 2
        digammas = rl.digamma((self.df / 2).unsqueeze(-1) - halves).sum(-1)
        return digammas + n * math.log(2) + 2 * half_log_det(self._factor)

    def _log_normalizer(self) -> Any:
        n, df = self._event_shape[-1], self.df
        return df * (n / 2 * math.log(2) + half_log_det(self._factor)) + rl.mvlgamma(df / 2, n)
