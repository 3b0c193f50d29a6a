"""The binomial distribution."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor

from . import constraints
from ._parameters import Odds, require_one, softplus
from .distribution import Distribution
from .utils import broadcast_all, no_grad

__all__ = ["Binomial"]


class Binomial(Odds, Distribution):
    """The number of successes in independent trials.

    Args:
        total_count: Number of trials, a number or a tensor of integers.
        probs: Probability of a success, that broadcasts with `total_count`.
        logits: Its log-odds; one of the two is given.
        validate_args: See `Distribution`.

    Example:
        >>> import rushlight as torch
        >>> binomial = torch.distributions.Binomial(3, torch.tensor([0.5]))
        >>> binomial.log_prob(torch.tensor([1.0])).exp()
        tensor([0.3750])
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        require_one(probs, logits)
        if probs is not None:
            self.total_count, self.probs = broadcast_all(total_count, probs)
        else:
            self.total_count, self.logits = broadcast_all(total_count, logits)
        self.total_count = self.total_count.type_as(self._param)
        super().__init__(self._param.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """The integers up to `total_count`."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        return ((self.total_count + 1) * self.probs).floor().minimum(self.total_count)

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return rl.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        log_choices = rl.lgamma(n + 1) - rl.lgamma(value + 1) - rl.lgamma(n - value + 1)
        return log_choices + value * self.logits - n * softplus(self.logits)

    def entropy(self) -> Any:
        self._one_count("Inhomogeneous total count not supported by `entropy`.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        count = self._one_count("Inhomogeneous total count not supported by `enumerate_support`.")
        values = rl.arange(1 + count, dtype=self._param.dtype, device=self._param.device)
        values = values.view(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values

    def _one_count(self, otherwise: str) -> int:
        count = int(self.total_count.max())
        if not count == self.total_count.min():
            raise NotImplementedError(otherwise)
        return count
