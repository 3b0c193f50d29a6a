"""Derivatives of functions of complex numbers at 0, of tiny and huge ones and on both sides of cuts, against mpmath."""

import itertools
import math

import mpmath
import pytest
from mpmath import mpc, mpf

import rushlight as torch
from rushlight.autograd import forward_ad, grad
from rushlight.plugin import require

require("autograd", "rushlight.autograd")
PARTS = [s * v for v in (0.0, 1e-300, 1e-160, 1e-8, 0.5, 1.0, 1 + 2**-52, 2.0, 1e160, 1e300) for s in (1, -1)]
POINTS = [complex(x, y) for x, y in itertools.product(PARTS, repeat=2)]
sqrt, exp, ln = mpmath.sqrt, mpmath.exp, mpmath.log


def up_to(size):
    return [z for z in POINTS if abs(z) <= size]


def root(z):
    return sqrt(1 - z) * sqrt(1 + z)


def circle(z):
    return sqrt(1 + mpc(0, 1) * z) * sqrt(1 - mpc(0, 1) * z)


def logistic(z):
    return 1 / (1 + exp(-z))


def sinc_slope(z):
    a = mpmath.pi * z
    if abs(a) < 1e-30:
        return -mpmath.pi * a / 3
    return mpmath.pi * (a * mpmath.cos(a) - mpmath.sin(a)) / a**2


def of_power(p):
    p = mpf(p)
    return lambda z: p * z ** (p - 1), lambda z: p * (p - 1) * z ** (p - 2)


# name: (first derivative, second derivative[, largest magnitude[, absolute error]])
EXACT = {
    "reciprocal": (lambda z: -1 / z**2, lambda z: 2 / z**3),
    "sqrt": (lambda z: 1 / sqrt(z) / 2, lambda z: -1 / sqrt(z) / z / 4),
    "rsqrt": (lambda z: -1 / sqrt(z) / z / 2, lambda z: 3 / sqrt(z) / z**2 / 4),
    "log": (lambda z: 1 / z, lambda z: -1 / z**2),
    "log2": (lambda z: 1 / z / ln(2), lambda z: -1 / z**2 / ln(2)),
    "log10": (lambda z: 1 / z / ln(10), lambda z: -1 / z**2 / ln(10)),
    "log1p": (lambda z: 1 / (1 + z), lambda z: -1 / (1 + z) ** 2),
    "asin": (lambda z: 1 / root(z), lambda z: z / root(z) ** 3),
    "acos": (lambda z: -1 / root(z), lambda z: -z / root(z) ** 3),
    "atan": (lambda z: 1 / (1 + z * z), lambda z: -2 * z / (1 + z * z) ** 2),
    "asinh": (lambda z: 1 / circle(z), lambda z: -z / circle(z) ** 3),
    "acosh": (
        lambda z: 1 / sqrt(z - 1) / sqrt(z + 1),
        lambda z: -z / (sqrt(z - 1) * sqrt(z + 1)) ** 3,
        math.inf,
        1e-15,
    ),
    "atanh": (lambda z: 1 / (1 - z * z), lambda z: 2 * z / (1 - z * z) ** 2),
    "exp": (exp, exp, 9),
    "sin": (mpmath.cos, lambda z: -mpmath.sin(z), 9),
    "cos": (lambda z: -mpmath.sin(z), lambda z: -mpmath.cos(z), 9),
    "tan": (lambda z: 1 / mpmath.cos(z) ** 2, lambda z: 2 * mpmath.tan(z) / mpmath.cos(z) ** 2, 9),
    "sinh": (mpmath.cosh, mpmath.sinh, 9),
    "cosh": (mpmath.sinh, mpmath.cosh, 9),
    "tanh": (lambda z: 1 / mpmath.cosh(z) ** 2, lambda z: -2 * mpmath.tanh(z) / mpmath.cosh(z) ** 2, 9),
    "sigmoid": (
        lambda z: logistic(z) * logistic(-z),
        lambda z: logistic(z) * logistic(-z) * (1 - 2 * logistic(z)),
        9,
        1e-16,
    ),
    "square": (lambda z: 2 * z, lambda z: 2),
    "sinc": (sinc_slope, None, 9),
}
POWERS = [0.5, 1.5, 2, 2.5, 3, -1, -0.5]


def exactly(z):
    """Zeros as numbers that are next to nothing and have their sign."""
    return mpc(*(mpf(v) if v else math.copysign(1, v) * mpf(10) ** -1000 for v in (z.real, z.imag)))


def check(function, first, second, points, rtol=1e-12, atol=1e-307):
    leaf = torch.tensor(points, dtype=torch.complex128, requires_grad=True)
    (slopes,) = grad(function(leaf).real.sum(), leaf, create_graph=True)
    found = [slopes.tolist(), None]
    if second is not None:
        found[1] = grad(slopes.real.sum(), leaf)[0].tolist() if slopes.requires_grad else [0j] * len(points)
    wrong = []
    with mpmath.workdps(60):
        for order, (exact, values) in enumerate(zip((first, second), found, strict=True), 1):
            for z, value in zip(points, values or (), strict=exact is not None):
                try:
                    expected = mpmath.conj(exact(exactly(z)))
                except ZeroDivisionError:
                    continue
                if abs(expected) > 1e307:
                    continue  # there complex numbers have many infinities
                if not abs(mpc(value) - expected) <= rtol * abs(expected) + atol:
                    wrong.append(f"derivative {order} at {z} is {complex(expected)}, not {value}")
    assert not wrong, f"{len(wrong)} of {len(points)} points:\n" + "\n".join(wrong[:: max(1, len(wrong) // 30)])


@pytest.mark.parametrize("name", EXACT)
def test_derivatives(name):
    first, second, largest, atol = (*EXACT[name], *(math.inf, 1e-307)[len(EXACT[name]) - 2 :])
    check(getattr(torch, name), first, second, up_to(largest), atol=atol)


@pytest.mark.parametrize("exponent", POWERS)
def test_powers(exponent):
    # Elsewhere they are exponentials of products with logarithms, which have no more digits.
    check(lambda z: z**exponent, *of_power(exponent), [z for z in up_to(9) if abs(z) >= 1e-8], 1e-11)


def test_magnitude_and_angle():
    sizes = [1e-300, 1e-160, 1.0, 1e160, 1e300]
    points = [complex(x * size, y * size) for size in sizes for x, y in [(1, 0), (0, -1), (3, 4), (-5, 12), (1e-8, -1)]]
    leaf = torch.tensor(points, dtype=torch.complex128, requires_grad=True)
    for function, exact in (
        (torch.abs, lambda z: z / abs(z)),
        (torch.angle, lambda z: mpc(0, 1) / mpmath.conj(z)),
        (lambda z: torch.sgn(z).real, lambda z: (1 - mpmath.re(z / abs(z)) * z / abs(z)) / abs(z)),
    ):
        (slopes,) = grad(function(leaf).sum(), leaf)
        for z, value in zip(points, slopes.tolist(), strict=True):
            expected = exact(mpc(z))
            assert abs(mpc(value) - expected) <= 1e-14 / (abs(mpc(z)) if function is not torch.abs else 1), z


@pytest.mark.parametrize("name", ["asin", "asinh", "atan", "atanh", "reciprocal", "angle"])
def test_forward_mode_agrees(name):
    points = [z for z in up_to(1e160) if abs(z) > 1e-150 and abs(z) != 1]
    z = torch.tensor(points, dtype=torch.complex128, requires_grad=True)
    function = getattr(torch, name)
    value = function(z)
    (slopes,) = grad((value.real if value.is_complex() else value).sum(), z)
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(
            function(forward_ad.make_dual(z.detach(), torch.ones_like(z.detach())))
        ).tangent
    for forward, backward in zip(tangent.real.tolist(), slopes.real.tolist(), strict=True):
        assert forward == pytest.approx(backward, rel=1e-14, abs=1e-300)
