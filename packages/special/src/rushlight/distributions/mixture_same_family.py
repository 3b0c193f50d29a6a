"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any

from rushlight import Size, Tensor

from . import constraints
from .categorical import Categorical
from .distribution import Distribution
from .utils import no_grad

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture: which component a value is drawn from is drawn first.

    Args:
        mixture_distribution: Categorical over the components.
        component_distribution: The components, along the rightmost batch dimension.
        validate_args: See `Distribution`.

    Raises:
        ValueError: The distributions are of other kinds, or their shapes do not fit.

    Example:
        >>> import rushlight as torch
        >>> from rushlight.distributions import Categorical, MixtureSameFamily, Normal
        >>> MixtureSameFamily(Categorical(torch.ones(2)), Normal(torch.tensor([-1.0, 1.0]), 0.1)).mean
        tensor(0.)
    """

    arg_constraints: Any = {}

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")
        mixture_shape, batch_shape = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        for i, j in zip(reversed(mixture_shape), reversed(batch_shape), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixture_shape}) is not compatible with "
                    f"`component_distribution.batch_shape`({batch_shape})"
                )
        count, components = mixture_distribution.param_shape[-1], component_distribution.batch_shape[-1]
        if count != components:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal `component_distribution.batch_shape[-1]` "
                f"({components})"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._num_component = components
        super().__init__(batch_shape, component_distribution.event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._component_distribution = self._component_distribution.expand((*batch_shape, self._num_component))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        return new

    @constraints.dependent_property
    def support(self) -> Any:
        """What every component supports."""
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution over the components."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    @property
    def mean(self) -> Any:
        return self._over_components(self._component_distribution.mean)

    @property
    def variance(self) -> Any:
        components = self._component_distribution
        spread = (components.mean - self.mean.unsqueeze(self._component_dim)).square()
        return self._over_components(components.variance + spread)

    def cdf(self, x: Tensor) -> Any:
        probabilities = self._component_distribution.cdf(x.unsqueeze(self._component_dim))
        return (probabilities * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(x)
        log_probs = self._component_distribution.log_prob(x.unsqueeze(self._component_dim))
        return (log_probs + self._mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            component = self._mixture_distribution.sample(sample_shape)
            drawn = self._component_distribution.sample(sample_shape)
            events = len(self._event_shape)
            index = component.reshape((*component.shape, *[1] * (events + 1)))
            cut = len(shape) - events
            index = index.expand(shape[:cut] + Size((1,)) + self._event_shape)
            return drawn.gather(self._component_dim, index).squeeze(self._component_dim)

    @property
    def _component_dim(self) -> int:
        return -1 - len(self._event_shape)

    def _over_components(self, values: Any) -> Any:
        probs = self._mixture_distribution.probs
        probs = probs.reshape((*probs.shape, *[1] * len(self._event_shape)))
        return (probs * values).sum(self._component_dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"
