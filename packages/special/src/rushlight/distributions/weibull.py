"""The Weibull distribution."""

from __future__ import annotations

from typing import Any

import rushlight as rl

from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """The Weibull distribution: a power of an exponential number.

    Args:
        scale: Scale (lambda), positive, a number or a tensor.
        concentration: Shape (k), positive; broadcasts with `scale`.
        validate_args: See `Distribution`.

    Example:
        >>> import rushlight as torch
        >>> torch.distributions.Weibull(2.0, 1.0).mean
        tensor(2.)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(rl.ones_like(self.scale), validate_args=validate_args)
        transforms = [
            PowerTransform(exponent=self.concentration_reciprocal),
            AffineTransform(loc=0, scale=self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.scale * rl.lgamma(1 + self.concentration_reciprocal).exp()

    @property
    def mode(self) -> Any:
        k = self.concentration
        return (self.scale * ((k - 1) / k).pow(k.reciprocal())).masked_fill(k <= 1, 0)

    @property
    def variance(self) -> Any:
        inverse = self.concentration_reciprocal
        second = rl.lgamma(1 + 2 * inverse).exp()
        return self.scale.square() * (second - (2 * rl.lgamma(1 + inverse)).exp())

    def entropy(self) -> Any:
        inverse = self.concentration_reciprocal
        return euler_constant * (1 - inverse) + (self.scale * inverse).log() + 1
