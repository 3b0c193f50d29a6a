"""The Bernoulli distribution."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor

from . import constraints
from ._parameters import Odds, require_one, softplus
from .exp_family import ExponentialFamily
from .utils import broadcast_all, no_grad

__all__ = ["Bernoulli"]


class Bernoulli(Odds, ExponentialFamily):
    """1 with a probability, else 0.

    Args:
        probs: Probability of 1, a number or a tensor.
        logits: Its log-odds; one of the two is given.
        validate_args: See `Distribution`.

    Example:
        >>> import rushlight as torch
        >>> torch.distributions.Bernoulli(0.25).log_prob(torch.tensor([0.0, 1.0])).exp()
        tensor([0.7500, 0.2500])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        require_one(probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        return (self.probs > 0.5).to(self.probs).masked_fill(self.probs == 0.5, rl.nan)

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            return rl.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return self.logits * value - softplus(self.logits)

    def entropy(self) -> Any:
        return softplus(self.logits) - self.logits * self.probs

    def enumerate_support(self, expand: bool = True) -> Any:
        values = rl.arange(2, dtype=self._param.dtype, device=self._param.device)
        values = values.view(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values
