"""Gradients at zeros, poles, ties, infinities and in the tails, against mpmath and by mathematics."""

import math

import mpmath
import numpy as np
import pytest

import rushlight as torch
from rushlight.autograd import grad
from rushlight.autograd.functional import hessian
from rushlight.plugin import plugins, require

require("autograd", "rushlight.autograd")
INF, NAN = math.inf, math.nan
needs_nn = pytest.mark.skipif(all(p.name != "nn" for p in plugins()), reason="needs rushlight-nn")


def functional(name):
    return lambda *args: getattr(torch.nn.functional, name)(*args)


def derivatives(function, points, dtype=torch.float64):
    x = torch.tensor(points, dtype=dtype, requires_grad=True)
    (first,) = grad(function(x).sum(), x, create_graph=True)
    second = grad(first.sum(), x)[0] if first.requires_grad else torch.zeros_like(x)
    return first.tolist(), second.tolist()


def gradients(function, *values, dtype=torch.float64):
    leaves = [torch.tensor(v, dtype=dtype, requires_grad=True) for v in values]
    return [g.tolist() for g in grad(function(*leaves).sum(), leaves)]


SIZES = [1e-30, 1e-16, 1e-8, 1e-4, 0.009, 0.1, 0.3, 0.7, 0.99, 1 - 1e-9, 1.5, 3.0, 6.5, 9.0, 20.0, 40.0, 90.0, 350.0]
FUNCTIONS = {
    "acos": mpmath.acos,
    "acosh": mpmath.acosh,
    "asin": mpmath.asin,
    "asinh": mpmath.asinh,
    "atan": mpmath.atan,
    "atanh": mpmath.atanh,
    "cos": mpmath.cos,
    "cosh": mpmath.cosh,
    "erf": mpmath.erf,
    "erfc": mpmath.erfc,
    "exp": mpmath.exp,
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "log": mpmath.log,
    "log10": mpmath.log10,
    "log1p": mpmath.log1p,
    "log2": lambda x: mpmath.log(x, 2),
    "reciprocal": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "sin": mpmath.sin,
    "sinc": lambda x: mpmath.sinc(mpmath.pi * x),
    "sinh": mpmath.sinh,
    "sqrt": mpmath.sqrt,
    "tan": mpmath.tan,
}


def compare(function, exact, points):
    for point, *found in zip(points, *derivatives(function, points), strict=True):
        with mpmath.workdps(400):
            x = mpmath.mpf(point)
            step = abs(x) * mpmath.mpf(10) ** -60
            low, middle, high = exact(x - step), exact(x), exact(x + step)
            if any(isinstance(v, mpmath.mpc) for v in (low, middle, high)):
                continue  # not real there
            expected = [float((high - low) / (2 * step)), float((high - 2 * middle + low) / step**2)]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-290, err_msg=f"at {point}")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tails_of_functions_of_one_number(name):
    if not callable(getattr(torch, name, None)):
        pytest.skip("comes with rushlight-special")
    compare(getattr(torch, name), FUNCTIONS[name], [*SIZES, *(-size for size in SIZES)])


@needs_nn
@pytest.mark.parametrize(
    ("name", "exact"),
    [
        ("logsigmoid", lambda x: -mpmath.log1p(mpmath.exp(-x))),
        ("silu", lambda x: x / (1 + mpmath.exp(-x))),
        ("elu", lambda x: x if x > 0 else mpmath.expm1(x)),
    ],
)
def test_tails_of_activations(name, exact):
    compare(functional(name), exact, [*SIZES, *(-size for size in SIZES)])


def test_sinc():
    first, second = derivatives(torch.sinc, [0.0, 1.0, -2.0, 1e5, 1e10, 1e100])
    assert first[:1] == [0]
    np.testing.assert_allclose(first[1:], [-1, -0.5, 1e-5, 1e-10, 1e-100], rtol=1e-12)
    np.testing.assert_allclose(second, [-(math.pi**2) / 3, 2, -0.5, -2e-10, -2e-20, -2e-200], rtol=1e-9)


@needs_nn
def test_logsigmoid_at_40():
    for point in (40.0, -40.0):
        assert derivatives(functional("logsigmoid"), [point])[1] == [pytest.approx(-4.248354255291589e-18, rel=1e-14)]


def test_tiny_and_huge_complex_numbers():
    tiny, huge = 1e-300, 1e300
    points = [0j, complex(tiny, 0), complex(tiny, tiny), complex(0, 3e-320), complex(huge, huge)]
    unit = [0, 1, (1 + 1j) / math.sqrt(2), 1j, (1 + 1j) / math.sqrt(2)]
    np.testing.assert_allclose(gradients(torch.abs, points, dtype=torch.complex128)[0], unit, rtol=1e-14)
    turned = gradients(torch.angle, points[:3] + points[4:], dtype=torch.complex128)[0]
    np.testing.assert_allclose(turned, [0, 1j / tiny, (-1 + 1j) / 2 / tiny, (-1 + 1j) / 2 / huge], rtol=1e-14)
    across = gradients(lambda z: torch.sgn(z).real, points[:3] + points[4:], dtype=torch.complex128)[0]
    slope = (0.5 - 0.5j) / math.sqrt(2)
    np.testing.assert_allclose(across, [0, 0, slope / tiny, slope / huge], rtol=1e-14, atol=1e-310)


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        # ties share
        (torch.max, [1.0, 1.0, 0.0], [0.5, 0.5, 0]),
        (torch.min, [INF, INF], [0.5, 0.5]),
        (lambda x: torch.amax(x, 0), [2.0, 1.0, 2.0], [0.5, 0, 0.5]),
        (torch.max, [1.0, NAN, 0.0], [0, 1, 0]),
        (lambda x: torch.amin(x, 0), [1.0, NAN, 0.0], [0, 1, 0]),
        # products with zeros
        (torch.prod, [0.0, 2.0, 3.0], [6, 0, 0]),
        (torch.prod, [0.0, 0.0, 3.0], [0, 0, 0]),
        (lambda x: torch.cumprod(x, 0), [2.0, 0.0, 3.0], [1, 2 + 6, 0]),
        # norms and distances at their kink, and where squares leave the range
        (torch.norm, [0.0, 0.0], [0, 0]),
        (torch.norm, [3e-200, 4e-200], [0.6, 0.8]),
        (torch.norm, [3e200, 4e200], [0.6, 0.8]),
        (torch.std, [1.0, 1.0, 1.0], [0, 0, 0]),
        # sums of exponentials that are all zero, or infinite
        (lambda x: torch.logsumexp(x, 0), [-INF, -INF], [0, 0]),
        (lambda x: torch.logsumexp(x, 0), [-INF, 0.0], [0, 1]),
        (lambda x: torch.logcumsumexp(x, 0), [-INF, -INF, 0.0], [0, 0, 1]),
        (lambda x: torch.softmax(x, 0)[0], [0.0, -INF], [0, 0]),
        # powers
        (lambda x: x**0, [0.0, INF, NAN], [0, 0, 0]),
        (lambda x: x**2, [0.0, -3.0], [0, -6]),
        (lambda x: 0**x, [0.0, 1.0], [0, 0]),
        (lambda x: 2**x, [-INF, 0.0], [0, math.log(2)]),
        # infinities
        (torch.tanh, [INF, -INF], [0, 0]),
        (torch.sigmoid, [INF, -INF], [0, 0]),
        (torch.atan, [INF, -INF], [0, 0]),
        (torch.asinh, [INF, -INF], [0, 0]),
        (torch.exp, [-INF], [0]),
        (torch.log, [INF, 0.0], [0, INF]),
        (torch.reciprocal, [INF, 0.0], [0, -INF]),
        (torch.asin, [1.0, -1.0], [INF, INF]),
    ],
)
def test_limits_of_one_argument(function, values, expected):
    np.testing.assert_allclose(gradients(function, values)[0], expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("function", "left", "right", "by_left", "by_right"),
    [
        (torch.maximum, [1.0, INF], [1.0, INF], [0.5, 0.5], [0.5, 0.5]),
        (torch.minimum, [-INF, 2.0], [-INF, 3.0], [0.5, 1], [0.5, 0]),
        (torch.hypot, [0.0, 3e-200, 3e200], [0.0, 4e-200, 4e200], [0, 0.6, 0.6], [0, 0.8, 0.8]),
        (torch.atan2, [0.0, 1e-200, 1e200], [0.0, 1e-200, 1e200], [0, 5e199, 5e-201], [0, -5e199, -5e-201]),
        (torch.atan2, [1.0, INF], [INF, 1.0], [0, 0], [0, 0]),
        (torch.logaddexp, [-INF, INF, 0.0, 800.0], [-INF, INF, -INF, -800.0], [0.5, 0.5, 1, 1], [0.5, 0.5, 0, 0]),
        (torch.logaddexp2, [-INF, INF, 0.0, 800.0], [-INF, INF, -INF, -800.0], [0.5, 0.5, 1, 1], [0.5, 0.5, 0, 0]),
        (torch.pow, [0.0, 0.0, 0.0], [0.0, 1.0, 2.0], [0, 1, 0], [0, 0, 0]),
        (torch.dist, [1.0, 2.0], [1.0, 2.0], [0, 0], [0, 0]),
    ],
)
def test_limits_of_two_arguments(function, left, right, by_left, by_right):
    found = gradients(function, left, right)
    np.testing.assert_allclose(found[0], by_left, rtol=1e-14)
    np.testing.assert_allclose(found[1], by_right, rtol=1e-14)


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        (torch.prod, [0.0, 0.0, 3.0], [[0, 3, 0], [3, 0, 0], [0, 0, 0]]),
        (torch.prod, [0.0, 2.0, 3.0], [[0, 3, 2], [3, 0, 0], [2, 0, 0]]),
        (lambda x: torch.cumprod(x, 0)[2], [2.0, 0.0, 0.0], [[0, 0, 0], [0, 0, 2], [0, 2, 0]]),
        (
            lambda x: torch.cumprod(x, 0)[3],
            [2.0, 0.0, 3.0, 4.0],
            [[0, 12, 0, 0], [12, 0, 8, 6], [0, 8, 0, 0], [0, 6, 0, 0]],
        ),
        (lambda x: torch.logaddexp(x[0], x[1]), [1.0, 1.0], [[0.25, -0.25], [-0.25, 0.25]]),
    ],
)
def test_second_derivatives_at_zeros_and_ties(function, values, expected):
    np.testing.assert_allclose(hessian(function, torch.tensor(values, dtype=torch.float64)), expected, atol=1e-14)


@needs_nn
def test_losses_at_the_ends_of_their_range():
    f = torch.nn.functional
    zero, one = torch.zeros(2, dtype=torch.float64), torch.tensor([0.0, 1.0], dtype=torch.float64)
    assert gradients(lambda x: f.binary_cross_entropy_with_logits(x, one, reduction="sum"), [-800.0, 800.0])[0] == [
        0,
        0,
    ]
    assert gradients(lambda x: f.l1_loss(x, zero, reduction="sum"), [0.0, 1.0])[0] == [0, 1]
    assert gradients(lambda x: f.kl_div(zero.detach(), x, reduction="sum"), [0.0, 1.0])[0] == [0, 1]
    assert gradients(lambda x: f.cross_entropy(x, torch.tensor([0])), [[0.0, -INF]])[0] == [[0, 0]]


@pytest.mark.skipif(all(p.name != "special" for p in plugins()), reason="needs rushlight-special")
def test_functions_of_special_at_their_ends():
    x, y = [0.0, 0.0, 0.0, 2.0], [0.0, 1.0, INF, 4.0]
    by_x, by_y = gradients(torch.special.xlogy, x, y)
    np.testing.assert_allclose(by_x, [0, 0, INF, math.log(4)])
    np.testing.assert_allclose(by_y, [0, 0, 0, 0.5])
    by_x, by_y = gradients(torch.special.xlog1py, x, [v - 1 for v in y])
    np.testing.assert_allclose(by_x, [0, 0, INF, math.log(4)])
    np.testing.assert_allclose(by_y, [0, 0, 0, 0.5])
    first, second = derivatives(torch.special.log_ndtr, [-40.0, 0.0, 40.0, 1e10])
    np.testing.assert_allclose(first, [40.02496884720841, math.sqrt(2 / math.pi), 0, 0], rtol=1e-12, atol=1e-290)
    np.testing.assert_allclose(second[2:], [0, 0], atol=1e-290)
