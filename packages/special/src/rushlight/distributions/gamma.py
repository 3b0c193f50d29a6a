"""The gamma distribution."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor

from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """The gamma distribution.

    Args:
        concentration: Shape, positive, a number or a tensor.
        rate: Inverse scale, positive; broadcasts with `concentration`.
        validate_args: See `Distribution`.

    Example:
        >>> import rushlight as torch
        >>> gamma = torch.distributions.Gamma(2.0, 4.0)
        >>> gamma.mean, gamma.variance
        (tensor(0.5000), tensor(0.1250))
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support: Any = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Any:
        return self.concentration / self.rate.square()

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        drawn = rl._standard_gamma(self.concentration.expand(shape)) / self.rate
        return drawn.clamp(min=rl.finfo(drawn.dtype).tiny)  # 0 has no logarithm

    def log_prob(self, value: Tensor) -> Any:
        value = rl.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        return (
            rl.xlogy(self.concentration, self.rate)
            + rl.xlogy(self.concentration - 1, value)
            - self.rate * value
            - rl.lgamma(self.concentration)
        )

    def cdf(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return rl.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Any:
        return (
            self.concentration
            - self.rate.log()
            + rl.lgamma(self.concentration)
            + (1 - self.concentration) * rl.digamma(self.concentration)
        )
