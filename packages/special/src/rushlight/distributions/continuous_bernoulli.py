"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

import rushlight as rl
from rushlight import Tensor

from . import constraints
from ._parameters import Odds, require_one, softplus
from .exp_family import ExponentialFamily
from .utils import broadcast_all, clamp_probs

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(Odds, ExponentialFamily):
    """The density on [0, 1] that is proportional to `probs ** x * (1 - probs) ** (1 - x)`.

    From Loaiza-Ganem and Cunningham (2019).

    Args:
        probs: Parameter in (0, 1), a number or a tensor.
        logits: Its log-odds; one of the two is given.
        lims: Between these values of `probs`, where the formulas are 0 / 0, Taylor series about 1/2 stand for them.
        validate_args: See `Distribution`.

    Example:
        >>> import rushlight as torch
        >>> torch.distributions.ContinuousBernoulli(torch.tensor(0.5)).mean
        tensor(0.5000)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        require_one(probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
            checks = self._validate_args if validate_args is None else validate_args
            if checks and not constraints.unit_interval.check(self.probs).all():
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        else:
            (self.logits,) = broadcast_all(logits)
        self._lims = lims
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        cut, x = self._cut, self.probs - 0.5
        exact = cut / (2 * cut - 1) + 1 / ((-cut).log1p() - cut.log())
        return rl.where(self._stable, exact, 0.5 + (1 / 3 + 16 / 45 * x.square()) * x)

    @property
    def stddev(self) -> Any:
        return self.variance.sqrt()

    @property
    def variance(self) -> Any:
        cut, x = self._cut, (self.probs - 0.5).square()
        exact = cut * (cut - 1) / (1 - 2 * cut).square() + 1 / ((-cut).log1p() - cut.log()).square()
        return rl.where(self._stable, exact, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def rsample(self, sample_shape: Any = ()) -> Any:
        u = rl.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device)
        return self.icdf(u)

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return self.logits * value - softplus(self.logits) + self._log_normalizer()

    def cdf(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        cut, value = self._cut, value.clamp(0, 1)
        exact = (cut.pow(value) * (1 - cut).pow(1 - value) + cut - 1) / (2 * cut - 1)
        return rl.where(self._stable, exact, value)

    def icdf(self, value: Tensor) -> Any:
        cut = self._cut
        exact = ((-cut + value * (2 * cut - 1)).log1p() - (-cut).log1p()) / (cut.log() - (-cut).log1p())
        return rl.where(self._stable, exact, value)

    def entropy(self) -> Any:
        log_failure = (-self.probs).log1p()
        return self.mean * (log_failure - self.probs.log()) - self._log_normalizer() - log_failure

    @property
    def _stable(self) -> Any:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    @property
    def _cut(self) -> Any:
        """The probabilities, or the lower limit where they are near 1/2: what is finite and not used there."""
        return rl.where(self._stable, self.probs, self._lims[0])

    def _log_normalizer(self) -> Any:
        """log(2 atanh(1 - 2 p) / (1 - 2 p))."""
        cut, x = self._cut, (self.probs - 0.5).square()
        exact = ((-cut).log1p() - cut.log()).abs().log() - (1 - 2 * cut).abs().log()
        return rl.where(self._stable, exact, math.log(2) + (4 / 3 + 104 / 45 * x) * x)
