"""The LKJ distribution of Cholesky factors of correlation matrices."""

from __future__ import annotations

import math
from typing import Any

import rushlight as rl
from rushlight import Size, Tensor

from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all, no_grad

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Lower Cholesky factors of correlation matrices of density `det ** (concentration - 1)`.

    Sampled by the onion method of Lewandowski, Kurowicka and Joe (2009).

    Args:
        dim: Size of the matrices, at least 2.
        concentration: Shape, positive, a number or a tensor: 1 is uniform over correlation matrices, more prefers weak
            correlations.
        validate_args: See `Distribution`.

    Raises:
        ValueError: `dim` is below 2.

    Example:
        >>> import rushlight as torch
        >>> torch.distributions.LKJCholesky(3, 0.5).sample().shape
        torch.Size([3, 3])
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, Size((dim, dim)), validate_args=validate_args)
        # Squares of the norms left of the diagonal: of row i Beta(i / 2, concentration + (dim - 1 - i) / 2).
        steps = rl.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        steps = rl.cat([steps.new_zeros((1,)), steps])
        last = self.concentration + 0.5 * (dim - 2)
        self._beta = Beta(0.5 * (steps + 1), last.unsqueeze(-1) - 0.5 * steps, validate_args=False)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._beta = self._beta.expand((*batch_shape, self.dim))
        return new

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            squares = self._beta.sample(sample_shape).unsqueeze(-1)
            shape = self._extended_shape(sample_shape)
            direction = rl.randn(shape, dtype=squares.dtype, device=squares.device).tril(-1)
            norm = direction.square().sum(-1, True).sqrt()
            below = squares.sqrt() * (direction / norm).masked_fill(norm == 0, 0)  # nothing is left of the first
            left = (1 - below.square().sum(-1)).clamp(min=rl.finfo(below.dtype).tiny)
            return below + left.sqrt().diag_embed()

    def log_prob(self, value: Tensor) -> Any:
        # The volume of correlation matrices of row i + 1 given those above it goes with the diagonal to the power of
        # dim - i - 1; the normaliser is a product of beta functions.
        if self._validate_args:
            self._validate_sample(value)
        n, concentration = self.dim, self.concentration
        order = rl.arange(2, n + 1, dtype=concentration.dtype, device=concentration.device)
        powers = 2 * (concentration - 1).unsqueeze(-1) + n - order
        unnormalized = (powers * value.diagonal(dim1=-2, dim2=-1)[..., 1:].log()).sum(-1)
        a = concentration + 0.5 * (n - 1)
        normalizer = 0.5 * (n - 1) * math.log(math.pi) + rl.mvlgamma(a - 0.5, n - 1) - (n - 1) * rl.lgamma(a)
        return unnormalized - normalizer
