"""The generalized Pareto distribution."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """The generalized Pareto distribution: how far values exceed a high threshold (Pickands, 1975).

    Args:
        loc: Smallest value, a number or a tensor.
        scale: Scale, positive; broadcasts with `loc`.
        concentration: Shape: a power law where positive, exponential at 0, bounded where negative.
        validate_args: See `Distribution`.

    Example:
        >>> import rushlight as torch
        >>> torch.distributions.GeneralizedPareto(0.0, 1.0, 0.5).mean
        tensor(2.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """Numbers from `loc`, up to the end that a negative concentration sets."""
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, end.masked_fill(self.concentration >= 0, rl.inf))

    @property
    def mean(self) -> Any:
        k = self.concentration
        return (self.loc + self.scale / (1 - k)).masked_fill(k >= 1, rl.nan)

    @property
    def mode(self) -> Any:
        end = self.loc - self.scale / self.concentration  # where the density rises without a bound
        return rl.where(self.concentration < -1, end, self.loc)

    @property
    def variance(self) -> Any:
        k = self.concentration
        return (self.scale / (1 - k)).square().div(1 - 2 * k).masked_fill(k >= 0.5, rl.nan)

    def rsample(self, sample_shape: Any = ()) -> Any:
        u = rl.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.icdf(u)

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return -(1 + self.concentration) * self._log_ratio((value - self.loc) / self.scale) - self.scale.log()

    def log_survival_function(self, value: Tensor) -> Any:
        """Logarithm of the probability of values above `value`; arguments as in `log_prob`."""
        return -self._log_ratio(((value - self.loc) / self.scale).clamp(min=0))

    def log_cdf(self, value: Tensor) -> Any:
        """Logarithm of `cdf`."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return -self.log_survival_function(value).expm1()

    def icdf(self, value: Tensor) -> Any:
        k, log_survival = self._away_from_zero(), (-value).log1p()
        near_zero = -log_survival * (1 - 0.5 * self.concentration * log_survival.clamp(min=-1e8))
        z = rl.where(self._exponential, near_zero, (-k * log_survival).expm1() / k)
        return self.loc + self.scale * z

    def entropy(self) -> Any:
        return self.scale.log() + self.concentration + 1

    def _log_ratio(self, z: Any) -> Any:
        """log(1 + k z) / k, which is z where k is 0; infinite beyond the end of a negative k."""
        k = self._away_from_zero()
        near_zero = z * (1 - 0.5 * self.concentration * z.clamp(max=1e8))  # two terms, for the gradient
        return rl.where(self._exponential, near_zero, (k * z).clamp(min=-1).log1p() / k)

    @property
    def _exponential(self) -> Any:
        return self.concentration.abs() < 1e-8

    def _away_from_zero(self) -> Any:
        return self.concentration.masked_fill(self._exponential, 1)
