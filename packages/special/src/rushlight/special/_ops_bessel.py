"""Bessel functions of order 0 and 1, and Airy's function."""

from __future__ import annotations

import math
from typing import Any

from rushlight.plugin import Op

from ._records import far_slope, library, unary

_SEGMENTS = "polynomials on segments; beyond 8 in 1/x (DLMF 10.18, 10.40)."


def _i0(name: str, **options: Any) -> Op:
    return unary(
        name,
        "Modified Bessel function of the first kind, order 0.",
        (0, 9),
        "grad * i1(self)",
        "rushlight.tensor([0.0, 2.0]) -> tensor([1.0000, 2.2796])",
        scipy="i0",
        source=_SEGMENTS,
        **options,
    )


def _i1(name: str) -> Op:
    return unary(
        name,
        "Modified Bessel function of the first kind, order 1.",
        (0, 9),
        lambda grad, self, result: grad * (i0.operator(self) - _quotient(self, result, 1)),
        "rushlight.tensor([0.0, 2.0]) -> tensor([0.0000, 1.5906])",
        scipy="i1",
        source=_SEGMENTS,
    )


i0 = _i0("i0", aliases=("i0",), inplace=True)
i1 = _i1("i1")
modified_bessel_i0 = _i0("modified_bessel_i0")
modified_bessel_i1 = _i1("modified_bessel_i1")
i0e = unary(
    "i0e",
    "Scaled modified Bessel function exp(-|x|) I0(x).",
    (-9, 9),
    lambda grad, self, result: grad * _scaled_slope(self, i1e.operator(self) - self.sgn() * result, _I0E, odd=True),
    "rushlight.tensor([0.0, 1000.0]) -> tensor([1.0000, 0.0126])",
    source=_SEGMENTS,
)
i1e: Op = unary(
    "i1e",
    "Scaled modified Bessel function exp(-|x|) I1(x).",
    (-9, 9),
    lambda grad, self, result: grad * _i1e_slope(self, result),
    "rushlight.tensor([0.0, 1000.0]) -> tensor([0.0000, 0.0126])",
    source=_SEGMENTS,
)
modified_bessel_k0 = unary(
    "modified_bessel_k0",
    "Modified Bessel function of the second kind, order 0; NaN below zero, infinite at it.",
    (0.1, 9),
    "-grad * modified_bessel_k1(self)",
    "rushlight.tensor([0.0, 2.0]) -> tensor([   inf, 0.1139])",
    scipy="k0",
    source="DLMF 10.31 below 1, polynomials in 1/x beyond.",
)
modified_bessel_k1 = unary(
    "modified_bessel_k1",
    "Modified Bessel function of the second kind, order 1; NaN below zero, infinite at it.",
    (0.1, 9),
    "-grad * (modified_bessel_k0(self) + result / abs(self))",
    "rushlight.tensor([0.0, 2.0]) -> tensor([   inf, 0.1399])",
    scipy="k1",
    source="DLMF 10.31 below 1, polynomials in 1/x beyond.",
)
scaled_modified_bessel_k0 = unary(
    "scaled_modified_bessel_k0",
    "Scaled modified Bessel function exp(x) K0(x).",
    (0.1, 9),
    lambda grad, self, result: grad * _scaled_slope(self, _k0e_slope(self, result), _K0E),
    "rushlight.tensor([0.0, 1000.0]) -> tensor([   inf, 0.0396])",
    scipy="k0e",
)
scaled_modified_bessel_k1: Op = unary(
    "scaled_modified_bessel_k1",
    "Scaled modified Bessel function exp(x) K1(x).",
    (0.1, 9),
    lambda grad, self, result: (
        grad * _scaled_slope(self, result * (1 - 1 / self.abs()) - scaled_modified_bessel_k0.operator(self), _K1E)
    ),
    "rushlight.tensor([0.0, 1000.0]) -> tensor([   inf, 0.0396])",
    scipy="k1e",
)
bessel_j0 = unary(
    "bessel_j0",
    "Bessel function of the first kind, order 0.",
    (-20, 20),
    "-grad * bessel_j1(self)",
    "rushlight.tensor([0.0, 2.0]) -> tensor([1.0000, 0.2239])",
    scipy="j0",
    source=_SEGMENTS,
)
bessel_j1 = unary(
    "bessel_j1",
    "Bessel function of the first kind, order 1.",
    (-20, 20),
    lambda grad, self, result: grad * (bessel_j0.operator(self) - _quotient(self, result, -1)),
    "rushlight.tensor([0.0, 2.0]) -> tensor([0.0000, 0.5767])",
    scipy="j1",
    source=_SEGMENTS,
)
bessel_y0 = unary(
    "bessel_y0",
    "Bessel function of the second kind, order 0; NaN below zero, minus infinity at it.",
    (0.1, 20),
    "-grad * bessel_y1(self)",
    "rushlight.tensor([0.0, 2.0]) -> tensor([  -inf, 0.5104])",
    scipy="y0",
    source=_SEGMENTS,
)
bessel_y1 = unary(
    "bessel_y1",
    "Bessel function of the second kind, order 1; NaN below zero, minus infinity at it.",
    (0.1, 20),
    "grad * where(self == 0, inf, bessel_y0(self) - result / self)",
    "rushlight.tensor([0.0, 2.0]) -> tensor([   -inf, -0.1070])",
    scipy="y1",
    source=_SEGMENTS,
)
spherical_bessel_j0 = unary(
    "spherical_bessel_j0",
    "Spherical Bessel function of order 0, sin(x) / x.",
    (-20, 20),
    lambda grad, self, result: grad * _spherical_slope(self, result),
    "rushlight.tensor([0.0, 2.0]) -> tensor([1.0000, 0.4546])",
    array=lambda xp, x: library(x, "spherical_jn")(0, x),
)
airy_ai = unary(
    "airy_ai",
    "Airy's function Ai, the solution of y'' = x y that vanishes at infinity.",
    (-12, 6),
    "grad * _airy_ai_prime(self)",
    "rushlight.tensor([0.0, 1.0]) -> tensor([0.3550, 0.1353])",
    array=lambda xp, x: library(x, "airy")(x)[0],
    source="polynomials on segments of [-8, 4); DLMF 9.7 and 9.8 beyond.",
)
_airy_ai_prime = unary(
    "_airy_ai_prime",
    "Derivative of Airy's function Ai.",
    (-12, 6),
    "grad * where(isinf(self), 0, self) * airy_ai(self)",
    "rushlight.tensor([0.0, 1.0]) -> tensor([-0.2588, -0.1591])",
    array=lambda xp, x: library(x, "airy")(x)[1],
)


def _hankel(order: int, sign: int, factor: float) -> list[float]:
    """The first 18 coefficients of a scaled Bessel function in x^-(1/2 + k), DLMF 10.40.1 and 10.40.2."""
    coefficients = [factor]
    for k in range(1, 18):
        coefficients.append(coefficients[-1] * sign * (4 * order * order - (2 * k - 1) ** 2) / (8 * k))
    return coefficients


_I0E: list[float] = _hankel(0, -1, 1 / math.sqrt(2 * math.pi))
_I1E: list[float] = _hankel(1, -1, 1 / math.sqrt(2 * math.pi))
_K0E: list[float] = _hankel(0, 1, math.sqrt(math.pi / 2))
_K1E: list[float] = _hankel(1, 1, math.sqrt(math.pi / 2))


def _scaled_slope(x: Any, near: Any, coefficients: list[float], odd: bool = False) -> Any:
    """The derivative of a scaled function: a difference that cancels far out, where the series serves."""
    far = (x.abs() > 40) & ~near.isnan()
    beyond = far_slope(x.abs().where(far, 40), coefficients, 0.5, 1)
    return (beyond * x.sgn() if odd else beyond).where(far, near)


def _k0e_slope(x: Any, value: Any) -> Any:
    # K1 is the larger by far where both overflow.
    return value.where(x != 0, 0) - scaled_modified_bessel_k1.operator(x)


def _i1e_slope(x: Any, value: Any) -> Any:
    near = i0e.operator(x) - value * x.sgn() - _quotient(x, value, 1, (-x.abs()).exp())
    return _scaled_slope(x, near, _I1E)


def _quotient(x: Any, value: Any, sign: int, scale: Any = 1) -> Any:
    """I1(x) / x, or J1(x) / x for sign -1, times a scale that `value` has.

    Near 0 by its series (DLMF 10.2.2), whose derivatives do not cancel.
    """
    near = x.abs() < 1
    z = x.where(near, 0) ** 2 * (sign / 4)
    series = 1.0
    for k in range(9, 0, -1):
        series = 1 + z / (k * (k + 1)) * series
    finite = x.isfinite() & value.isfinite()
    return (series * scale / 2).where(near, value.where(finite, 0) / x.where(finite & ~near, 1))


def _spherical_slope(x: Any, value: Any) -> Any:
    # Near 0, where cos(x) - sin(x) / x cancels, by its series; at infinity 0 as well.
    x = x.masked_fill(x.isinf(), 0)
    near = x.abs() < 0.5
    small = x.where(near, 0)
    z = small * small
    series = 1.0
    for k in range(6, 0, -1):
        series = 1 - z / (2 * k * (2 * k + 3)) * series
    return (small * series / -3).where(near, (x.cos() - value) / x.masked_fill(near, 1))


OPS = [value for value in globals().values() if isinstance(value, Op)]
