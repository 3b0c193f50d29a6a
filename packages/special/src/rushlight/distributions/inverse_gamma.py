"""The inverse gamma distribution."""

from __future__ import annotations

from typing import Any

import rushlight as rl

from . import constraints
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """The reciprocal of a gamma number.

    Args:
        concentration: Shape, positive, a number or a tensor.
        rate: Inverse scale of the gamma number, positive; broadcasts with `concentration`.
        validate_args: See `Distribution`.

    Example:
        >>> import rushlight as torch
        >>> torch.distributions.InverseGamma(3.0, 4.0).mean
        tensor(2.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args=validate_args)

    @property
    def concentration(self) -> Any:
        """Shape."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Any:
        """Inverse scale of the gamma number, and scale of this one."""
        return self.base_dist.rate

    @property
    def mean(self) -> Any:
        return (self.rate / (self.concentration - 1)).masked_fill(self.concentration <= 1, rl.inf)

    @property
    def mode(self) -> Any:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Any:
        excess = self.concentration - 1
        variance = (self.rate / excess).square() / (excess - 1)
        return variance.masked_fill(self.concentration <= 2, rl.inf)

    def entropy(self) -> Any:
        a = self.concentration
        return a + self.rate.log() + rl.lgamma(a) - (1 + a) * rl.digamma(a)
