"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

import rushlight as rl
from rushlight import Tensor

from . import constraints
from ._parameters import Odds, require_one, softplus
from .exp_family import ExponentialFamily
from .utils import broadcast_all, clamp_probs

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(Odds, ExponentialFamily):
    """The density on [0, 1] that is proportional to `probs ** x * (1 - probs) ** (1 - x)`.

    From Loaiza-Ganem and Cunningham (2019).

    Args:
        probs: Parameter in (0, 1), a number or a tensor.
        logits: Its log-odds; one of the two is given.
        lims: Unused; PyTorch takes Taylor series between these values of `probs`.
        validate_args: See `Distribution`.

    Example:
        >>> import rushlight as torch
        >>> torch.distributions.ContinuousBernoulli(torch.tensor(0.5)).mean
        tensor(0.5000)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        require_one(probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        super().__init__(self._param.shape, validate_args=validate_args)
        if probs is not None:
            self.probs = clamp_probs(self.probs)

    # All is told in the log-odds l, where nothing overflows: probs is (1 + tanh(l / 2)) / 2. Series stand for what is
    # 0 / 0 at l = 0.

    @property
    def mean(self) -> Any:
        near, l = self._near_zero(0.3)
        square = self.logits.square()
        series = self.logits * (1 / 12 - square * (1 / 720 - square * (1 / 30240 - square / 1209600)))
        return 0.5 + rl.where(near, series, 0.5 / (0.5 * l).tanh() - 1 / l)

    @property
    def variance(self) -> Any:
        near, l = self._near_zero(0.3)
        square = self.logits.square()
        series = 1 / 12 - square * (1 / 240 - square * (1 / 6048 - square * (1 / 172800 - square / 5322240)))
        down = -l.abs()
        return rl.where(near, series, 1 / l.square() - down.exp() / down.expm1().square())

    def rsample(self, sample_shape: Any = ()) -> Any:
        u = rl.rand(self._extended_shape(sample_shape), dtype=self._param.dtype, device=self._param.device)
        return self.icdf(u)

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return self.logits * value + self.log_density_at_zero()

    def cdf(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        value = value.clamp(0, 1)
        near, l = self._near_zero(1e-5)
        series = value * (1 + 0.5 * self.logits * (value - 1))
        down = -l.abs()
        falling = (down * rl.where(l > 0, 1 - value, value)).expm1() / down.expm1()
        return rl.where(near, series, rl.where(l > 0, 1 - falling, falling))

    def icdf(self, value: Tensor) -> Any:
        near, l = self._near_zero(1e-5)
        series = value * (1 + 0.5 * self.logits * (1 - value))
        down = -l.abs()
        u = rl.where(l > 0, 1 - value, value)
        # log(1 - u + u exp(down)): what cancels where it is near 1 does not where it is small, and the other way round.
        part = u * down.expm1()
        small = rl.logaddexp((-u).log1p(), u.log() + down)
        falling = rl.where(part > -0.5, part.clamp(min=-0.5).log1p(), small) / down
        return rl.where(near, series, rl.where(l > 0, 1 - falling, falling))

    def entropy(self) -> Any:
        return -self.logits * self.mean - self.log_density_at_zero()

    def log_density_at_zero(self) -> Any:
        """Logarithm of the density at 0: of `l coth(l / 2)`, the normaliser, over `1 + exp(l)`."""
        near, l = self._near_zero(1e-3)
        series = math.log(2) + self.logits.square() / 12
        return rl.where(near, series, (l / (0.5 * l).tanh()).log()) - softplus(self.logits)

    def _near_zero(self, limit: float) -> tuple[Any, Any]:
        """Where the log-odds are within a limit of 0, and they themselves with the limit for those."""
        near = self.logits.abs() < limit
        return near, self.logits.masked_fill(near, limit)
