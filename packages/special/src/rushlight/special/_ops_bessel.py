"""Bessel functions of order 0 and 1, and Airy's function."""

from __future__ import annotations

from typing import Any

from rushlight.plugin import Op

from ._records import library, unary

_SEGMENTS = "polynomials on segments; beyond 8 in 1/x (DLMF 10.17, 10.40)."


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
        "grad * where(self == 0, 0.5, i0(self) - result / self)",
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
    "grad * (i1e(self) - sgn(self) * result)",
    "rushlight.tensor([0.0, 1000.0]) -> tensor([1.0000, 0.0126])",
    source=_SEGMENTS,
)
i1e = unary(
    "i1e",
    "Scaled modified Bessel function exp(-|x|) I1(x).",
    (-9, 9),
    "grad * where(self == 0, 0.5, i0e(self) - result * (sgn(self) + 1 / self))",
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
    "-grad * (modified_bessel_k0(self) + result / self)",
    "rushlight.tensor([0.0, 2.0]) -> tensor([   inf, 0.1399])",
    scipy="k1",
    source="DLMF 10.31 below 1, polynomials in 1/x beyond.",
)
scaled_modified_bessel_k0 = unary(
    "scaled_modified_bessel_k0",
    "Scaled modified Bessel function exp(x) K0(x).",
    (0.1, 9),
    "grad * (result - scaled_modified_bessel_k1(self))",
    "rushlight.tensor([0.0, 1000.0]) -> tensor([   inf, 0.0396])",
    scipy="k0e",
)
scaled_modified_bessel_k1 = unary(
    "scaled_modified_bessel_k1",
    "Scaled modified Bessel function exp(x) K1(x).",
    (0.1, 9),
    "grad * (result * (1 - 1 / self) - scaled_modified_bessel_k0(self))",
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
    "grad * where(self == 0, 0.5, bessel_j0(self) - result / self)",
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
    "grad * (bessel_y0(self) - result / self)",
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
    source="polynomials on segments of [-8, 4); DLMF 9.7 beyond.",
)
_airy_ai_prime = unary(
    "_airy_ai_prime",
    "Derivative of Airy's function Ai.",
    (-12, 6),
    "grad * self * airy_ai(self)",
    "rushlight.tensor([0.0, 1.0]) -> tensor([-0.2588, -0.1591])",
    array=lambda xp, x: library(x, "airy")(x)[1],
)


def _spherical_slope(x: Any, value: Any) -> Any:
    # Near 0, where cos(x) - sin(x) / x cancels, by its series.
    z = x * x
    series = 1.0
    for k in range(6, 0, -1):
        series = 1 - z / (2 * k * (2 * k + 3)) * series
    return (x * series / -3).where(x.abs() < 0.5, (x.cos() - value) / x)


OPS = [value for value in globals().values() if isinstance(value, Op)]
