"""The beta distribution."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor

from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """The beta distribution.

    Args:
        concentration1: First parameter (alpha), positive, a number or a tensor.
        concentration0: Second parameter (beta), positive; broadcasts with it.
        validate_args: See `Distribution`.

    Example:
        >>> import rushlight as torch
        >>> torch.distributions.Beta(1.0, 3.0).mean
        tensor(0.2500)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        end = (a >= b).to(a).masked_fill((a == 1) & (b == 1), rl.nan)
        return rl.where((a > 1) & (b > 1), (a - 1) / (a + b - 2), end)

    @property
    def variance(self) -> Any:
        a, b = self.concentration1, self.concentration0
        total = a + b
        return a * b / (total.square() * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = (*self._extended_shape(sample_shape), 2)
        return rl._sample_dirichlet(rl.stack([self.concentration1, self.concentration0], -1).expand(shape)).select(
            -1, 0
        )

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        return rl.xlogy(a - 1, value) + rl.xlogy(b - 1, 1 - value) - log_beta(a, b)

    def entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        total = a + b
        return log_beta(a, b) - (a - 1) * rl.digamma(a) - (b - 1) * rl.digamma(b) + (total - 2) * rl.digamma(total)


def log_beta(a: Tensor, b: Tensor) -> Any:
    """Logarithm of the beta function."""
    return rl.lgamma(a) + rl.lgamma(b) - rl.lgamma(a + b)
