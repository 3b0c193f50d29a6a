"""The relaxed categorical distribution."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Size, Tensor

from . import constraints
from .categorical import Categorical
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    """The logarithm of a `RelaxedOneHotCategorical` value.

    Args:
        temperature: Temperature, positive.
        probs: Weights of the categories (*, k), not negative; they are divided by their sum.
        logits: Their logarithms up to a constant; one of the two is given.
        validate_args: See `Distribution`.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector  # of which only vectors whose exponentials sum to 1 have a density
    has_rsample = True
    _parts = ("_categorical",)

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    @property
    def param_shape(self) -> Size:
        """Shape of the probabilities."""
        return self._categorical.param_shape

    @property
    def logits(self) -> Any:
        """Logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Any:
        """Probabilities of the categories."""
        return self._categorical.probs

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape, logits = self._extended_shape(sample_shape), self.logits
        u = clamp_probs(rl.rand(shape, dtype=logits.dtype, device=logits.device))
        scores = (logits - (-u.log()).log()) / self.temperature
        return scores.log_softmax(-1)

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        k = self._event_shape[0]
        temperature = rl.as_tensor(self.temperature, dtype=value.dtype, device=value.device)
        log_scale = rl.lgamma(value.new_full((), float(k))) + (k - 1) * temperature.log()
        return (self.logits - value * temperature).log_softmax(-1).sum(-1) + log_scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """A one-hot vector relaxed to the simplex, so that samples are differentiable.

    The Concrete or Gumbel-softmax distribution (Maddison et al., 2017; Jang et al., 2017).

    Args:
        temperature: Temperature, positive: the lower, the closer to one-hot vectors the values are.
        probs: Weights of the categories (*, k), not negative; they are divided by their sum.
        logits: Their logarithms up to a constant; one of the two is given.
        validate_args: See `Distribution`.

    Example:
        >>> import rushlight as torch
        >>> relaxed = torch.distributions.RelaxedOneHotCategorical(torch.tensor(2.0), torch.tensor([0.1, 0.2, 0.7]))
        >>> relaxed.rsample().sum().round(decimals=4)
        tensor(1.)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Any:
        """Temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        """Logarithms of the probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        """Probabilities of the categories."""
        return self.base_dist.probs
