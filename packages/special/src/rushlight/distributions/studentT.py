"""Student's t distribution."""
# ruff: noqa: N999  # PyTorch's path

from __future__ import annotations

import math
from typing import Any

import rushlight as rl
from rushlight import Tensor

from . import constraints
from .distribution import Distribution
from .utils import _standard_normal, broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t distribution.

    Args:
        df: Degrees of freedom, positive, a number or a tensor.
        loc: Mean; broadcasts with `df`.
        scale: Scale, positive; likewise.
        validate_args: See `Distribution`.

    Example:
        >>> import rushlight as torch
        >>> torch.distributions.StudentT(4.0).variance
        tensor(2.)
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.loc.masked_fill(self.df <= 1, rl.nan)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        variance = self.scale.square() * self.df / (self.df - 2)
        return variance.masked_fill(self.df <= 2, rl.inf).masked_fill(self.df <= 1, rl.nan)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        normal = _standard_normal(shape, self.df.dtype, self.df.device)
        chi2 = 2 * rl._standard_gamma((0.5 * self.df).expand(shape))
        chi2 = chi2.clamp(min=rl.finfo(chi2.dtype).tiny)
        return self.loc + self.scale * (normal * (chi2 / self.df).rsqrt())

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        return -0.5 * (self.df + 1) * (y.square() / self.df).log1p() - self._log_normalizer()

    def entropy(self) -> Any:
        half = 0.5 * (self.df + 1)
        return half * (rl.digamma(half) - rl.digamma(0.5 * self.df)) + self._log_normalizer()

    def _log_normalizer(self) -> Any:
        """log(scale sqrt(df) B(df / 2, 1 / 2))."""
        half = 0.5 * self.df
        return (
            self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi) + rl.lgamma(half) - rl.lgamma(half + 0.5)
        )
