"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor

from . import constraints
from .exp_family import ExponentialFamily

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution: points of the simplex.

    Args:
        concentration: Tensor (*, k), positive.
        validate_args: See `Distribution`.

    Raises:
        ValueError: `concentration` has no dimension.

    Example:
        >>> import rushlight as torch
        >>> torch.distributions.Dirichlet(torch.tensor([1.0, 3.0])).mean
        tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Any:
        excess = (self.concentration - 1).clamp(min=0)
        corner = rl.zeros_like(excess).scatter(-1, self.concentration.argmax(-1, True), 1)
        mode = rl.where((excess > 0).any(-1, True), excess / excess.sum(-1, True), corner)
        return mode.masked_fill((self.concentration == 1).all(-1, True), rl.nan)

    @property
    def variance(self) -> Any:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.square() * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return rl._sample_dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return (
            rl.xlogy(self.concentration - 1, value).sum(-1)
            + rl.lgamma(self.concentration.sum(-1))
            - rl.lgamma(self.concentration).sum(-1)
        )

    def entropy(self) -> Any:
        total, k = self.concentration.sum(-1), self.concentration.shape[-1]
        return (
            rl.lgamma(self.concentration).sum(-1)
            - rl.lgamma(total)
            - (k - total) * rl.digamma(total)
            - ((self.concentration - 1) * rl.digamma(self.concentration)).sum(-1)
        )
