"""The multinomial distribution."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Size, Tensor

from . import constraints
from .binomial import Binomial
from .categorical import Categorical
from .distribution import Distribution
from .utils import no_grad

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """How often each category is drawn in a number of independent trials.

    Args:
        total_count: Number of trials, an int: the same for the whole batch. `log_prob` takes any number.
        probs: Weights of the categories (*, k), not negative; they are divided by their sum.
        logits: Their logarithms up to a constant; one of the two is given.
        validate_args: See `Distribution`.

    Raises:
        NotImplementedError: `total_count` is not an int.

    Example:
        >>> import rushlight as torch
        >>> multinomial = torch.distributions.Multinomial(2, torch.tensor([0.5, 0.5]))
        >>> multinomial.log_prob(torch.tensor([1.0, 1.0])).exp()
        tensor(0.5000)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _parts = ("_categorical",)

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
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

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        """Counts that sum to `total_count` at most."""
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Any:
        return self.probs * self.total_count

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        sample_shape = Size(sample_shape)
        with no_grad():
            drawn = self._categorical.sample(Size((self.total_count,)) + sample_shape).movedim(0, -1)
            counts = self.probs.new_zeros(self._extended_shape(sample_shape))
            return counts.scatter_add_(-1, drawn, self.probs.new_ones(()).expand_as(drawn))

    def entropy(self) -> Any:
        n = rl.tensor(float(self.total_count), dtype=self.probs.dtype, device=self.probs.device)
        counts = Binomial(n.expand(self.probs.shape), self.probs, validate_args=False)
        values = counts.enumerate_support(expand=False)[1:]
        log_factorials = (counts.log_prob(values).exp() * rl.lgamma(values + 1)).sum((0, -1))
        return n * self._categorical.entropy() - rl.lgamma(n + 1) + log_factorials

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        impossible = (value == 0) & (self.logits == -rl.inf)  # and not drawn: 0 log 0 is 0
        logits = self.logits.masked_fill(impossible, 0)
        log_ways = rl.lgamma(value.sum(-1) + 1) - rl.lgamma(value + 1).sum(-1)
        return log_ways + (logits * value).sum(-1)
