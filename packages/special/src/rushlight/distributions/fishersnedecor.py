"""Fisher's F distribution."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor

from . import constraints
from .beta import log_beta
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """Fisher's F distribution: the ratio of two chi-squared numbers, each over its degrees of freedom.

    Args:
        df1: Degrees of freedom of the numerator, positive, a number or a tensor.
        df2: Degrees of freedom of the denominator; broadcasts with `df1`.
        validate_args: See `Distribution`.

    Example:
        >>> import rushlight as torch
        >>> torch.distributions.FisherSnedecor(1.0, 4.0).mean
        tensor(2.)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return (self.df2 / (self.df2 - 2)).masked_fill(self.df2 <= 2, rl.nan)

    @property
    def mode(self) -> Any:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return mode.masked_fill(self.df1 <= 2, rl.nan)

    @property
    def variance(self) -> Any:
        a, b = self.df1, self.df2
        variance = 2 * b.square() * (a + b - 2) / (a * (b - 2).square() * (b - 4))
        return variance.masked_fill(b <= 4, rl.nan)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        above, below = (rl._standard_gamma((0.5 * df).expand(shape)) / df for df in (self.df1, self.df2))
        tiny = rl.finfo(below.dtype).tiny
        return (above / below.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        half1, half2, ratio = 0.5 * self.df1, 0.5 * self.df2, self.df1 / self.df2
        return (
            half1 * ratio.log()
            - log_beta(half1, half2)
            + (half1 - 1) * value.log()
            - (half1 + half2) * (ratio * value).log1p()
        )
