"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

import rushlight as rl
from rushlight import Tensor

from . import constraints
from .cauchy import Cauchy
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform

__all__ = ["HalfCauchy"]


class HalfCauchy(TransformedDistribution):
    """The absolute value of a Cauchy number of median 0.

    Args:
        scale: Half width at half maximum of that, positive, a number or a tensor.
        validate_args: See `Distribution`.

    Example:
        >>> import rushlight as torch
        >>> torch.distributions.HalfCauchy(1.0).cdf(torch.tensor(1.0))
        tensor(0.5000)
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Any:
        """Half width at half maximum of the Cauchy number."""
        return self.base_dist.scale

    @property
    def mean(self) -> Any:
        return rl.full_like(self.scale, rl.inf)

    @property
    def mode(self) -> Any:
        return rl.zeros_like(self.scale)

    @property
    def variance(self) -> Any:
        return self.base_dist.variance

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        value = rl.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        return (self.base_dist.log_prob(value) + math.log(2)).masked_fill(value < 0, -rl.inf)

    def cdf(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return 2 / math.pi * rl.atan(value / self.scale)

    def icdf(self, value: Tensor) -> Any:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Any:
        return self.base_dist.entropy() - math.log(2)
