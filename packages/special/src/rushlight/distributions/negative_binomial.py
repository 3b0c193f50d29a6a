"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor

from . import constraints
from ._parameters import Odds, require_one, softplus
from .distribution import Distribution
from .utils import broadcast_all, no_grad

__all__ = ["NegativeBinomial"]


class NegativeBinomial(Odds, Distribution):
    """The number of successes before a number of failures.

    Args:
        total_count: Number of failures, positive, not necessarily whole: a number or a tensor.
        probs: Probability of a success, in [0, 1); broadcasts with `total_count`.
        logits: Its log-odds; one of the two is given.
        validate_args: See `Distribution`.

    Example:
        >>> import rushlight as torch
        >>> torch.distributions.NegativeBinomial(3.0, torch.tensor(0.5)).mean
        tensor(3.)
    """

    arg_constraints = {
        "total_count": constraints.nonnegative,
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        require_one(probs, logits)
        if probs is not None:
            self.total_count, self.probs = broadcast_all(total_count, probs)
        else:
            self.total_count, self.logits = broadcast_all(total_count, logits)
        self.total_count = self.total_count.type_as(self._param)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Any:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self) -> Any:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Any = ()) -> Any:
        # A Poisson number whose rate is a gamma number of scale exp(logits).
        shape = self._extended_shape(sample_shape)
        with no_grad():
            rate = rl._standard_gamma(self.total_count.expand(shape)) / (-self.logits).exp()
            return rl.poisson(rate.clamp(min=rl.finfo(rate.dtype).tiny))

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        # log B(n, value + 1) has a pole at n = 0 that cancels where value is 0 too.
        log_ways = rl.lgamma(n + value) - rl.lgamma(1 + value) - rl.lgamma(n)
        log_ways = log_ways.masked_fill(n + value == 0, 0)
        return log_ways - n * softplus(self.logits) - value * softplus(-self.logits)
