"""The categorical distribution over one-hot vectors."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Size, Tensor

from . import constraints
from .categorical import Categorical
from .distribution import Distribution

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Distribution):
    """A category as a vector of k that is 1 at its place, else 0.

    Args:
        probs: Weights of the categories (*, k), not negative; they are divided by their sum.
        logits: Their logarithms up to a constant; one of the two is given.
        validate_args: See `Distribution`.

    Example:
        >>> import rushlight as torch
        >>> torch.distributions.OneHotCategorical(torch.tensor([0.0, 1.0])).sample()
        tensor([0., 1.])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True
    _parts = ("_categorical",)

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits, validate_args=validate_args)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    @property
    def probs(self) -> Any:
        """Probabilities of the categories."""
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        """Logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        """Shape of the probabilities."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        return self._one_hot(self.probs.argmax(-1))

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Any:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        n = self._event_shape[0]
        values = rl.eye(n, dtype=self._categorical._param.dtype, device=self._categorical._param.device)
        values = values.view(n, *[1] * len(self._batch_shape), n)
        return values.expand(n, *self._batch_shape, n) if expand else values

    def _one_hot(self, index: Any) -> Any:
        zeros = self._categorical._param.new_zeros((*index.shape, *self._event_shape))
        return zeros.scatter_(-1, index.unsqueeze(-1), 1)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot vectors with the gradient of the probabilities: the straight-through estimator (Bengio et al., 2013).

    Args:
        probs: Weights of the categories (*, k), not negative; they are divided by their sum.
        logits: Their logarithms up to a constant; one of the two is given.
        validate_args: See `Distribution`.
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Any:
        samples = self.sample(sample_shape)
        probs = self._categorical.probs  # cached, so that gradients arrive at what was given
        return samples + (probs - probs.detach())
