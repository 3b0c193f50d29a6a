"""Error functions and the normal distribution."""

from __future__ import annotations

import math
from typing import Any

from rushlight.plugin import Op, Sample, pointwise

from ._records import far_slope, library, unary

_SLOPE = 2 / math.sqrt(math.pi)  # of erf at 0
_DENSITY = 1 / math.sqrt(2 * math.pi)  # of the normal distribution at 0

_gaussian_backward = (
    Op(
        "special::_gaussian_backward(Tensor grad_output, Tensor self, float scale, float rate) -> Tensor",
        family=pointwise("float"),
        method=False,
        out=False,
    )
    .array(lambda xp, grad, x, scale, rate: grad * scale * xp.exp(-rate * xp.clip(x, -64, 64) ** 2))
    .grad(
        grad_output="_gaussian_backward(grad, self, scale, rate)",
        self="grad * result * (-2 * rate) * where(result == 0, 0, self)",
    )
    .samples(lambda make, dtype: (Sample((make(3, 4), make(3, 4), 2.0, rate)) for rate in (0.5, -0.5)))
)

erf = unary(
    "erf",
    "Error function, 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.",
    (-3, 3),
    f"_gaussian_backward(grad, self, {_SLOPE!r}, 1)",
    "rushlight.tensor([0.0, 1.0]) -> tensor([0.0000, 0.8427])",
    aliases=("erf",),
    inplace=True,
)
erfc = unary(
    "erfc",
    "Complementary error function 1 - erf(x), to full relative accuracy where it is small.",
    (-3, 3),
    f"_gaussian_backward(grad, self, {-_SLOPE!r}, 1)",
    "rushlight.tensor([0.0, 1.0]) -> tensor([1.0000, 0.1573])",
    aliases=("erfc",),
    inplace=True,
    source="erfcx by polynomials on segments, exp(-x^2) of a square in two parts.",
)
erfcx = unary(
    "erfcx",
    "Scaled complementary error function exp(x^2) erfc(x).",
    (-2, 20),
    lambda grad, self, result: grad * _erfcx_slope(self, result),
    "rushlight.tensor([0.0, 30.0]) -> tensor([1.0000, 0.0188])",
)
logerfc = unary(
    "logerfc",
    "Logarithm of erfc(x), finite for all finite x.",
    (-3, 9),
    f"grad * where(self > 1e8, -2 * self, {-2 / math.sqrt(math.pi)!r} * where(self < 0, "
    "exp(-(clamp(self, -28, 0) ** 2)) / erfc(clamp(self, max=0)), 1 / erfcx(clamp(self, 0, 1e8))))",
    "rushlight.tensor([0.0, 30.0]) -> tensor([  -0.0000, -903.9741])",
    array=lambda xp, x: library(x, "log_ndtr")(-math.sqrt(2) * x) + math.log(2),
)
logerfcx = unary(
    "logerfcx",
    "Logarithm of erfcx(x), finite for all finite x.",
    (-3, 9),
    lambda grad, self: grad * _logerfcx_slope(self),
    "rushlight.tensor([0.0, 30.0]) -> tensor([ 0.0000, -3.9741])",
    array=lambda xp, x: xp.where(x > -9, xp.log(library(x, "erfcx")(x)), x * x + math.log(2)),
)
erfinv = unary(
    "erfinv",
    "Inverse of erf on [-1, 1]; infinite at the ends, NaN outside.",
    (-0.95, 0.95),
    f"_gaussian_backward(grad, result, {1 / _SLOPE!r}, -1)",
    "rushlight.tensor([0.0, 0.5, -1.0]) -> tensor([0.0000, 0.4769,   -inf])",
    aliases=("erfinv",),
    inplace=True,
    source="polynomials in x^2, and in sqrt(-log(1 - |x|)) in the tails.",
)
erfcinv = unary(
    "erfcinv",
    "Inverse of erfc on [0, 2].",
    (0.05, 1.95),
    f"_gaussian_backward(grad, result, {-1 / _SLOPE!r}, -1)",
    "rushlight.tensor([1.0, 1e-20]) -> tensor([0.0000, 6.6016])",
)
ndtr = unary(
    "ndtr",
    "Distribution function of the standard normal distribution.",
    (-4, 4),
    f"_gaussian_backward(grad, self, {_DENSITY!r}, 0.5)",
    "rushlight.tensor([-30.0, 0.0, 1.0], dtype=rushlight.float64)"
    " -> tensor([4.9067e-198, 5.0000e-01, 8.4134e-01], dtype=torch.float64)",
)
ndtri = unary(
    "ndtri",
    "Quantile of the standard normal distribution, the inverse of `ndtr`.",
    (0.05, 0.95),
    f"_gaussian_backward(grad, result, {1 / _DENSITY!r}, -0.5)",
    "rushlight.tensor([0.025, 0.5, 1.0]) -> tensor([-1.9600,  0.0000,     inf])",
)
log_ndtr = unary(
    "log_ndtr",
    "Logarithm of `ndtr`, finite for all finite x.",
    (-9, 4),
    f"grad * where(self < -1e8, -self, {math.sqrt(2 / math.pi)!r} * where(self > 0, "
    "exp(-0.5 * clamp(self, 0, 40) ** 2) / (2 * ndtr(clamp(self, min=0))), "
    f"1 / erfcx(clamp(self, -1e8, 0) * {-math.sqrt(0.5)!r})))",
    "rushlight.tensor([-30.0, 0.0]) -> tensor([-454.3213,   -0.6931])",
)


# erfcx(x) = sum_k c[k] x^-(1 + 2 k), DLMF 7.12.1
_ERFCX = [1 / math.sqrt(math.pi)]
for _k in range(1, 18):
    _ERFCX.append(_ERFCX[-1] * (1 - 2 * _k) / 2)


def _erfcx_slope(x: Any, value: Any) -> Any:
    far = x > 8
    near = 2 * x.where(~far, 0) * value - 2 / math.sqrt(math.pi)
    return far_slope(x.where(far, 8), _ERFCX, 1, 2).where(far, near)


def _logerfcx_slope(x: Any) -> Any:
    right, left = x.clamp(0, 1e8), x.clamp(-28, 0)
    value = erfcx.operator(right)
    beyond = 2 * x - 2 / math.sqrt(math.pi) * (-left * left).exp() / erfc.operator(left)
    return (-1 / x.where(x > 1e8, 1)).where(x > 1e8, (_erfcx_slope(right, value) / value).where(x > 0, beyond))


OPS = [value for value in globals().values() if isinstance(value, Op)]
