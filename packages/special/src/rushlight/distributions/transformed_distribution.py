"""Distributions of transformed values."""

from __future__ import annotations

from typing import Any

from rushlight import Size, Tensor

from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import _sum_rightmost, no_grad

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of values that transforms make of those of a base distribution.

    The density is that of the base at the inverse, over the absolute Jacobian determinant.

    Args:
        base_distribution: Distribution of what goes in.
        transforms: A transform, or a list of them, the first that applies first.
        validate_args: See `Distribution`.

    Raises:
        ValueError: `transforms` is something else, or takes values of more dimensions than the base has.

    Attributes:
        base_dist: The base, broadcast to the shape that the transforms need.
        transforms: The list.

    Example:
        >>> import rushlight as torch
        >>> from rushlight.distributions import ExpTransform, Normal, TransformedDistribution
        >>> TransformedDistribution(Normal(0.0, 1.0), ExpTransform()).cdf(torch.tensor(1.0))
        tensor(0.5000)
    """

    arg_constraints: Any = {}

    def __init__(
        self,
        base_distribution: Any,
        transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ) -> None:
        if isinstance(transforms, Transform):
            self.transforms = [transforms]
        elif isinstance(transforms, list):
            if not all(isinstance(t, Transform) for t in transforms):
                raise ValueError("transforms must be a Transform or a list of Transforms")
            self.transforms = transforms
        else:
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        base_event_dim = len(base_distribution.event_shape)
        whole = ComposeTransform(self.transforms)
        domain_dim, codomain_dim = whole.domain.event_dim, whole.codomain.event_dim
        if len(base_shape) < domain_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {domain_dim}, but got {base_shape}."
            )
        forward_shape = Size(whole.forward_shape(base_shape))
        expanded_shape = Size(whole.inverse_shape(forward_shape))
        if base_shape != expanded_shape:
            base_distribution = base_distribution.expand(expanded_shape[: len(expanded_shape) - base_event_dim])
        taken = domain_dim - base_event_dim
        self.base_dist: Any = Independent(base_distribution, taken) if taken > 0 else base_distribution
        cut = len(forward_shape) - (codomain_dim + max(base_event_dim - domain_dim, 0))
        super().__init__(forward_shape[:cut], forward_shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        shape = Size(batch_shape) + self._event_shape
        for transform in reversed(self.transforms):
            shape = Size(transform.inverse_shape(shape))
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        """The codomain of the last transform, or the support of the base if there is none."""
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        extra = len(self._event_shape) - support.event_dim
        return constraints.independent(support, extra) if extra > 0 else support

    @property
    def has_rsample(self) -> bool:
        """Whether the base has it."""
        return self.base_dist.has_rsample

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._forward(self.base_dist.rsample(sample_shape))

    def _forward(self, x: Any) -> Any:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        event_dim = len(self._event_shape)
        log_jacobian: Any = 0.0
        y = value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            term = transform.log_abs_det_jacobian(x, y)
            log_jacobian = log_jacobian + _sum_rightmost(term, event_dim - transform.domain.event_dim)
            y = x
        return _sum_rightmost(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape)) - log_jacobian

    def cdf(self, value: Tensor) -> Any:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._reversed_where_decreasing(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Any:
        return self._forward(self.base_dist.icdf(self._reversed_where_decreasing(value)))

    def _reversed_where_decreasing(self, probability: Tensor) -> Any:
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int) and sign == 1:
            return probability
        return sign * (probability - 0.5) + 0.5
