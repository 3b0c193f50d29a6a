"""The Kumaraswamy distribution."""

from __future__ import annotations

from typing import Any

import rushlight as rl

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """The Kumaraswamy distribution: much like the beta distribution, with a distribution function in closed form.

    Args:
        concentration1: First parameter (alpha), positive, a number or a tensor.
        concentration0: Second parameter (beta), positive; broadcasts with it.
        validate_args: See `Distribution`.

    Example:
        >>> import rushlight as torch
        >>> torch.distributions.Kumaraswamy(1.0, 3.0).mean
        tensor(0.2500)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(rl.zeros_like(self.concentration0), rl.ones_like(self.concentration0), validate_args=False)
        transforms = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self._moment(1)

    @property
    def mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        inner = ((a - 1) / (a * b - 1)).pow(a.reciprocal())
        return inner.masked_fill((a < 1) | (b < 1), rl.nan)

    @property
    def variance(self) -> Any:
        return self._moment(2) - self.mean.square()

    def entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        harmonic = rl.digamma(b + 1) + euler_constant  # the b-th harmonic number
        return 1 - b.reciprocal() + (1 - a.reciprocal()) * harmonic - a.log() - b.log()

    def _moment(self, n: int) -> Any:
        """B B(1 + n / a, b), the n-th moment."""
        b, argument = self.concentration0, 1 + n / self.concentration1
        return (b.log() + rl.lgamma(argument) + rl.lgamma(b) - rl.lgamma(argument + b)).exp()
