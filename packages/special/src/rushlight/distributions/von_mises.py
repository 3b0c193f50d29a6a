"""The von Mises distribution."""

from __future__ import annotations

import math
from typing import Any

import rushlight as rl
from rushlight import Tensor

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, lazy_property, no_grad

__all__ = ["VonMises"]


class VonMises(Distribution):
    """The von Mises distribution of angles, the normal distribution's like on the circle.

    Args:
        loc: Mean angle in radians, a number or a tensor.
        concentration: Concentration, positive; broadcasts with `loc`.
        validate_args: See `Distribution`.

    Example:
        >>> import rushlight as torch
        >>> torch.distributions.VonMises(0.0, 1.0).sample((3,)).shape
        torch.Size([3])
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        """Mean of the angle on the circle."""
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @lazy_property
    def variance(self) -> Any:
        """Variance on the circle: 1 less the mean resultant length."""
        return 1 - rl.special.i1e(self.concentration) / rl.special.i0e(self.concentration)

    def sample(self, sample_shape: Any = ()) -> Any:
        # Rejection from a wrapped Cauchy distribution (Best and Fisher, 1979), in double.
        shape = self._extended_shape(sample_shape)
        with no_grad():
            loc, k, r = self.loc.double(), self._bounded_concentration, self._proposal_r
            angle = rl.full(shape, rl.nan, dtype=loc.dtype, device=loc.device)
            done = r.isnan().expand(shape)
            while not done.all():
                u1, u2, u3 = rl.rand((3, *shape), dtype=loc.dtype, device=loc.device).unbind()
                z = (math.pi * u1).cos()
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                accept = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
                angle = rl.where(accept, (u3 - 0.5).sign() * f.acos(), angle)
                done = done | accept
            return ((angle + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    @property
    def _bounded_concentration(self) -> Any:
        """Beyond the bounds are the uniform distribution and a point, to rounding."""
        return self.concentration.double().clamp(1e-10, 1e15)

    @lazy_property
    def _proposal_r(self) -> Any:
        k = self._bounded_concentration
        tau = 1 + (1 + 4 * k.square()).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * k)
        return rl.where(k < 1e-5, 1 / k + k, (1 + rho.square()) / (2 * rho))

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return (
            self.concentration * ((value - self.loc).cos() - 1)
            - rl.special.i0e(self.concentration).log()
            - math.log(2 * math.pi)
        )
