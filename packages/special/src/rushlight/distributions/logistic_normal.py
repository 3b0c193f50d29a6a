"""The logistic-normal distribution."""

from __future__ import annotations

from typing import Any

from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Points of the simplex: a stick is broken at logistic functions of normal numbers.

    Args:
        loc: Means (*, k - 1).
        scale: Standard deviations, positive; broadcast with `loc`.
        validate_args: See `Distribution`.

    Example:
        >>> import rushlight as torch
        >>> torch.distributions.LogisticNormal(torch.zeros(2), torch.ones(2)).sample().shape
        torch.Size([3])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Any:
        """Means of the normal numbers."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Any:
        """Standard deviations of the normal numbers."""
        return self.base_dist.base_dist.scale
