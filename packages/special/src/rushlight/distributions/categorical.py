"""The categorical distribution."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Size, Tensor

from . import constraints
from ._parameters import Weights, require_one
from .distribution import Distribution, nan_like
from .utils import no_grad

__all__ = ["Categorical"]


class Categorical(Weights, Distribution):
    """The index of a category, from 0 to k - 1.

    Args:
        probs: Weights of the categories (*, k), not negative, with a positive sum; they are divided by it.
        logits: Their logarithms up to a constant, likewise (*, k); one of the two is given.
        validate_args: See `Distribution`.

    Raises:
        ValueError: Both or none are given, or what is given has no dimension.

    Example:
        >>> import rushlight as torch
        >>> torch.distributions.Categorical(torch.tensor([1.0, 3.0])).probs
        tensor([0.2500, 0.7500])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        require_one(probs, logits)
        given = logits if probs is None else probs
        if given.dim() < 1:
            raise ValueError(f"`{'logits' if probs is None else 'probs'}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = probs / probs.sum(-1, True)
        else:
            self.logits = logits - logits.logsumexp(-1, True)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """The integers from 0 to k - 1."""
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Any:
        return nan_like(self._param, self._batch_shape)

    @property
    def mode(self) -> Any:
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Any:
        return nan_like(self._param, self._batch_shape)

    def sample(self, sample_shape: Any = ()) -> Any:
        sample_shape = Size(sample_shape)
        with no_grad():
            drawn = rl.multinomial(self.probs.reshape(-1, self._num_events), sample_shape.numel(), True)
        return drawn.t().reshape(sample_shape + self._batch_shape)

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        index, logits = value.long().unsqueeze(-1), self.logits
        if index.shape[:-1] != logits.shape[:-1]:
            shape = rl.broadcast_shapes(index.shape[:-1], logits.shape[:-1])
            index, logits = index.expand((*shape, 1)), logits.expand((*shape, self._num_events))
        return logits.gather(-1, index).squeeze(-1)

    def entropy(self) -> Any:
        lowest = rl.finfo(self.logits.dtype).min  # 0 log 0 is 0
        return -(self.logits.clamp(min=lowest) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        values = rl.arange(self._num_events, dtype=rl.int64, device=self._param.device)
        values = values.view(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values
