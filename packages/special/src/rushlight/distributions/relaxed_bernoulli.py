"""The relaxed Bernoulli distribution."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor

from . import constraints
from ._parameters import Odds, require_one, softplus
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(Odds, Distribution):
    """The logit of a `RelaxedBernoulli` number: a logistic number over the temperature.

    Args:
        temperature: Temperature, positive.
        probs: Probability of 1, a number or a tensor.
        logits: Its log-odds; one of the two is given.
        validate_args: See `Distribution`.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        require_one(probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        probs = clamp_probs(self.probs)
        u = clamp_probs(rl.rand(self._extended_shape(sample_shape), dtype=probs.dtype, device=probs.device))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        difference = self.logits - value * self.temperature
        temperature = rl.as_tensor(self.temperature, dtype=difference.dtype, device=difference.device)
        return temperature.log() + difference - 2 * softplus(difference)


class RelaxedBernoulli(TransformedDistribution):
    """A Bernoulli number relaxed to the unit interval, so that samples are differentiable.

    The Concrete distribution (Maddison et al., 2017; Jang et al., 2017) of two categories.

    Args:
        temperature: Temperature, positive: the lower, the closer to 0 and 1 the values are.
        probs: Probability of 1, a number or a tensor.
        logits: Its log-odds; one of the two is given.
        validate_args: See `Distribution`.

    Example:
        >>> import rushlight as torch
        >>> relaxed = torch.distributions.RelaxedBernoulli(torch.tensor(2.0), torch.tensor([0.1, 0.9]))
        >>> relaxed.rsample((3,)).shape
        torch.Size([3, 2])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Any:
        """Temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        """Log-odds of 1."""
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        """Probability of 1."""
        return self.base_dist.probs
