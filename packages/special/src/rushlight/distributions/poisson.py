"""The Poisson distribution."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor

from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all, no_grad

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """The number of events at a constant rate.

    Args:
        rate: Mean number, not negative, a number or a tensor.
        validate_args: See `Distribution`.

    Example:
        >>> import rushlight as torch
        >>> torch.distributions.Poisson(2.0).log_prob(torch.tensor(0.0))
        tensor(-2.)
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.rate

    @property
    def mode(self) -> Any:
        return self.rate.floor()

    @property
    def variance(self) -> Any:
        return self.rate

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            return rl.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return rl.xlogy(value, self.rate) - self.rate - rl.lgamma(value + 1)
