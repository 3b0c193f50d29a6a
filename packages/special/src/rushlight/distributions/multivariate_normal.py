"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any

import rushlight as rl
from rushlight import Size, Tensor

from . import constraints
from .distribution import Distribution
from .utils import _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]


class MultivariateNormal(Distribution):
    """The multivariate normal distribution; needs the wheel rushlight-linalg.

    Args:
        loc: Mean (*, n).
        covariance_matrix: Covariance (*, n, n), positive definite.
        precision_matrix: Its inverse.
        scale_tril: Its lower Cholesky factor: the form that all others are brought to, so the fastest. Just one of the
            three is given.
        validate_args: See `Distribution`.

    Raises:
        ValueError: More or less than one matrix is given, or one has too few dimensions.

    Example:
        >>> import rushlight as torch
        >>> normal = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
        >>> normal.log_prob(torch.zeros(2))
        tensor(-1.8379)
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = given_matrix(covariance_matrix, precision_matrix, scale_tril, ValueError)
        if matrix.dim() < 2:
            what = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueError(f"{what} must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = Size(rl.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1]))
        self.loc, self.__dict__[name] = loc, matrix
        super().__init__(batch_shape, loc.shape[-1:], validate_args=validate_args)
        self.loc = loc.expand((*batch_shape, -1))
        self.__dict__[name] = matrix.expand((*batch_shape, -1, -1))
        self._factor = cholesky_factor(name, matrix)  # not broadcast

    @lazy_property
    def scale_tril(self) -> Any:
        """Lower Cholesky factor of the covariance."""
        return self._factor.expand(self._batch_shape + self._event_shape * 2)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """Covariance."""
        return (self._factor @ self._factor.mT).expand(self._batch_shape + self._event_shape * 2)

    @lazy_property
    def precision_matrix(self) -> Any:
        """Inverse of the covariance."""
        return inverse_of_product(self._factor).expand(self._batch_shape + self._event_shape * 2)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return self._factor.square().sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        noise = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + products(self._factor, noise)

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        constant = 0.5 * self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * mahalanobis(self._factor, value - self.loc) - half_log_det(self._factor) - constant

    def entropy(self) -> Any:
        constant = 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi))
        return (half_log_det(self._factor) + constant).expand(self._batch_shape)


def given_matrix(
    covariance_matrix: Any, precision_matrix: Any, scale_tril: Any, error: type[Exception]
) -> tuple[str, Any]:
    """Name and value of the one matrix that is given."""
    matrices = {
        "scale_tril": scale_tril, "covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix
    }  # fmt: skip
    given = [(name, matrix) for name, matrix in matrices.items() if matrix is not None]
    if len(given) != 1:
        raise error("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
    return given[0]


def cholesky_factor(name: str, matrix: Any) -> Any:
    """The lower Cholesky factor of the covariance, from the matrix of a name."""
    if name == "scale_tril":
        return matrix
    if name == "covariance_matrix":
        return rl.linalg.cholesky(matrix)
    # With rows and columns in reverse order, a lower factor of the precision is an upper one: the inverse of ours.
    upper = rl.linalg.cholesky(matrix.flip((-2, -1))).flip((-2, -1)).mT
    identity = rl.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    return rl.linalg.solve_triangular(upper, identity, upper=False)


def inverse_of_product(factor: Any) -> Any:
    """The inverse of `factor @ factor.mT`, of a lower triangular factor."""
    identity = rl.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
    inverse = rl.linalg.solve_triangular(factor, identity.expand(factor.shape), upper=False)
    return inverse.mT @ inverse


def half_log_det(factor: Any) -> Any:
    """Half the logarithm of the determinant of `factor @ factor.mT`."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def products(matrix: Any, vectors: Any) -> Any:
    """`matrix @ vector` for each vector (*, n), of matrices (*batch, m, n)."""
    return vectors @ matrix.mT if matrix.dim() == 2 else (matrix @ vectors.unsqueeze(-1)).squeeze(-1)


def mahalanobis(factor: Any, difference: Any) -> Any:
    """Squares of the norms of `factor^-1 difference`.

    Args:
        factor: Lower triangular matrices (*batch, n, n).
        difference: Vectors (*samples, *batch, n), or of any shape that broadcasts.

    Returns:
        Tensor of the shape of the batch of vectors.
    """
    batch = factor.shape[:-2]
    samples = difference.dim() - 1 - len(batch)
    if samples <= 0 or difference.shape[samples:-1] != batch:
        return rl.linalg.solve_triangular(factor, difference.unsqueeze(-1), upper=False).square().sum((-2, -1))
    # Samples are the columns of one right side, so that nothing is broadcast.
    columns = difference.reshape((-1, *difference.shape[samples:])).movedim(0, -1)
    solved = rl.linalg.solve_triangular(factor, columns, upper=False)
    return solved.square().sum(-2).movedim(-1, 0).reshape(difference.shape[:-1])
