"""Gradients at zeros, poles, ties, infinities and in the tails, against mpmath and by mathematics."""

import functools
import math

import mpmath
import numpy as np
import pytest

import rushlight as torch
from rushlight.autograd import grad
from rushlight.autograd.functional import hessian
from rushlight.plugin import operators, plugins, require

require("autograd", "rushlight.autograd")
INF, NAN, SQRT_HALF = math.inf, math.nan, math.sqrt(0.5)
needs_nn = pytest.mark.skipif(all(p.name != "nn" for p in plugins()), reason="needs rushlight-nn")
needs_special = pytest.mark.skipif(all(p.name != "special" for p in plugins()), reason="needs rushlight-special")


def functional(name, **options):
    return lambda *args: getattr(torch.nn.functional, name)(*args, **options)


def derivatives(function, points, dtype=torch.float64):
    x = torch.tensor(points, dtype=dtype, requires_grad=True)
    (first,) = grad(function(x).sum(), x, create_graph=True)
    second = grad(first.sum(), x)[0] if first.requires_grad else torch.zeros_like(x)
    return first.tolist(), second.tolist()


def gradients(function, *values, dtype=torch.float64):
    leaves = [torch.tensor(v, dtype=dtype, requires_grad=True) for v in values]
    return [g.tolist() for g in grad(function(*leaves).sum(), leaves)]


def softplus(x):
    return mpmath.log1p(mpmath.exp(-abs(x))) + max(x, 0)


def near_one(f):
    """A function that comes so close to 1 that differences need many digits."""
    exact = functools.partial(f)
    exact.digits = 800
    return exact


@near_one
def normal(x):
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def scaled(f, sign):
    return lambda x: f(x) * mpmath.exp(sign * abs(x))


def bessel(f, order):
    return lambda x: f(order, x)


TINY = [1e-300, 1e-30, 1e-16, 1e-8]
MIDDLE = [1e-4, 0.009, 0.1, 0.3, 0.7, 0.99, 1 - 1e-9, 1.5, 3.0, 6.5, 9.0, 20.0, 40.0, 90.0, 350.0]
SIZES = [*TINY, *MIDDLE, 1e5, 1e10, 1e100, 1e300]
SMOOTH = [*TINY[1:], *MIDDLE]  # for functions that mpmath takes long to compute
POSITIVE = [1e-8, 1e-4, 0.3, 1.5, 6.5, 20.0, 90.0]
BENT = 0.044715 * mpmath.sqrt(2 / mpmath.pi)
ZERO, GONE = (0, 0), (NAN, NAN)  # derivatives at an infinity; GONE: there are none

# name: (exact, derivatives at +inf, at -inf[, sizes[, signs]])
ELEMENTARY = {
    "abs": (abs, (1, 0), (-1, 0)),
    "acos": (mpmath.acos, GONE, GONE),
    "acosh": (mpmath.acosh, ZERO, GONE),
    "asin": (mpmath.asin, GONE, GONE),
    "asinh": (mpmath.asinh, ZERO, ZERO),
    "atan": (mpmath.atan, ZERO, ZERO),
    "atanh": (mpmath.atanh, None, None),  # a function on (-1, 1)
    "cos": (mpmath.cos, GONE, GONE),
    "cosh": (mpmath.cosh, (INF, INF), (-INF, INF)),
    "exp": (mpmath.exp, (INF, INF), ZERO),
    "exp2": (lambda x: mpmath.mpf(2) ** x, (INF, INF), ZERO),
    "expm1": (near_one(mpmath.expm1), (INF, INF), ZERO),
    "log": (mpmath.log, ZERO, None),
    "log10": (mpmath.log10, ZERO, None),
    "log1p": (mpmath.log1p, ZERO, None),
    "log2": (lambda x: mpmath.log(x, 2), ZERO, None),
    "reciprocal": (lambda x: 1 / x, ZERO, ZERO),
    "rsqrt": (lambda x: 1 / mpmath.sqrt(x), ZERO, GONE),
    "sigmoid": (near_one(lambda x: 1 / (1 + mpmath.exp(-x))), ZERO, ZERO),
    "sin": (mpmath.sin, GONE, GONE),
    "sinc": (lambda x: mpmath.sinc(mpmath.pi * x), None, None),  # NaN at infinity, as in NumPy
    "sinh": (mpmath.sinh, (INF, INF), (INF, -INF)),
    "sqrt": (mpmath.sqrt, ZERO, GONE),
    "square": (lambda x: x * x, (INF, 2), (-INF, 2)),
    "tan": (mpmath.tan, GONE, GONE),
    "tanh": (near_one(mpmath.tanh), ZERO, ZERO),
}
ACTIVATIONS = {
    "celu": (near_one(lambda x: x if x > 0 else mpmath.expm1(x)), (1, 0), ZERO),
    "elu": (near_one(lambda x: x if x > 0 else mpmath.expm1(x)), (1, 0), ZERO),
    "gelu": (near_one(lambda x: x * normal(x)), (1, 0), ZERO, SMOOTH),
    "gelu_tanh": (near_one(lambda x: x / (1 + mpmath.exp(-2 * (BENT / 0.044715 * x + BENT * x**3)))), (1, 0), ZERO),
    "logsigmoid": (near_one(lambda x: -softplus(-x)), ZERO, (1, 0)),
    "mish": (near_one(lambda x: x * mpmath.tanh(softplus(x))), (1, 0), ZERO),
    "silu": (near_one(lambda x: x / (1 + mpmath.exp(-x))), (1, 0), ZERO),
    "softplus": (lambda x: x if x > 20 else softplus(x), (1, 0), ZERO, [*TINY, *MIDDLE[:10], 90.0]),
    "softsign": (lambda x: x / (1 + abs(x)), ZERO, ZERO),
    "tanhshrink": (near_one(lambda x: x - mpmath.tanh(x)), (1, 0), (1, 0)),
}
SPECIAL = {
    "airy_ai": (mpmath.airyai, ZERO, None, [1e-8, 0.3, 1.5, 3.0, 6.5, 20.0]),
    "bessel_j0": (bessel(mpmath.besselj, 0), ZERO, ZERO, SMOOTH),
    "bessel_j1": (bessel(mpmath.besselj, 1), ZERO, ZERO, SMOOTH),
    "bessel_y0": (bessel(mpmath.bessely, 0), ZERO, None, POSITIVE, [1]),
    "bessel_y1": (bessel(mpmath.bessely, 1), ZERO, None, POSITIVE, [1]),
    "dawsn": (lambda x: mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-x * x) * mpmath.erfi(x), ZERO, ZERO, SMOOTH[:-2]),
    "digamma": (mpmath.digamma, ZERO, None, POSITIVE, [1]),
    "ellipe": (mpmath.ellipe, None, None, [1e-8, 1e-4, 0.1, 0.3, 0.7, 0.99]),
    "ellipk": (mpmath.ellipk, None, None, [1e-8, 1e-4, 0.1, 0.3, 0.7, 0.99]),
    "entr": (lambda x: -x * mpmath.log(x), (-INF, 0), None),
    "erf": (near_one(mpmath.erf), ZERO, ZERO, SMOOTH),
    "erfc": (near_one(mpmath.erfc), ZERO, ZERO, SMOOTH),
    "erfcinv": (lambda x: mpmath.erfinv(1 - x), None, None, [1e-16, 1e-8, 0.009, 0.3, 0.99, 1.5], [1]),
    "erfcx": (near_one(lambda x: mpmath.exp(x * x) * mpmath.erfc(x)), ZERO, (-INF, INF), SMOOTH),
    "erfinv": (mpmath.erfinv, None, None, [1e-16, 1e-8, 0.009, 0.3, 0.99]),
    "exp1": (mpmath.e1, ZERO, None, POSITIVE, [1]),
    "expi": (mpmath.ei, None, ZERO, POSITIVE),
    "gammaln": (lambda x: mpmath.log(abs(mpmath.gamma(x))), (INF, 0), None, POSITIVE, [1]),
    "i0": (bessel(mpmath.besseli, 0), (INF, INF), (-INF, INF), SMOOTH),
    "i0e": (scaled(bessel(mpmath.besseli, 0), -1), ZERO, ZERO, [*SMOOTH, 1e4]),
    "i1": (bessel(mpmath.besseli, 1), None, None, SMOOTH),  # inf - inf in the second one at infinity
    "i1e": (scaled(bessel(mpmath.besseli, 1), -1), ZERO, ZERO, [*SMOOTH, 1e4]),
    "log_ndtr": (near_one(lambda x: mpmath.log(normal(x))), ZERO, (INF, -1), SMOOTH),
    "logerfc": (near_one(lambda x: mpmath.log(mpmath.erfc(x))), (-INF, -2), ZERO, SMOOTH),
    "logerfcx": (near_one(lambda x: x * x + mpmath.log(mpmath.erfc(x))), ZERO, (-INF, 2), SMOOTH),
    "logit": (lambda x: mpmath.log(x / (1 - x)), None, None, [1e-300, 1e-16, 1e-8, 0.009, 0.3, 0.7, 1 - 1e-9], [1]),
    "modified_bessel_k0": (bessel(mpmath.besselk, 0), ZERO, None, POSITIVE, [1]),
    "modified_bessel_k1": (bessel(mpmath.besselk, 1), ZERO, None, POSITIVE, [1]),
    "ndtr": (normal, ZERO, ZERO, SMOOTH),
    "ndtri": (lambda p: -mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * p), None, None, [1e-8, 0.009, 0.3, 0.99], [1]),
    "scaled_modified_bessel_k0": (scaled(bessel(mpmath.besselk, 0), 1), ZERO, None, POSITIVE, [1]),
    "scaled_modified_bessel_k1": (scaled(bessel(mpmath.besselk, 1), 1), ZERO, None, POSITIVE, [1]),
    "spence": (lambda x: mpmath.polylog(2, 1 - x).real, None, None, [1e-8, 0.1, 0.7, 1 - 1e-9, 1.5, 3.0, 9.0], [1]),
    "spherical_bessel_j0": (mpmath.sinc, None, None, SMOOTH),
}
# Their gradients are computed from the result alone, which keeps no digits of what is left of 1 (docs/decisions/0014):
# off by a rounding of the largest slope instead of by one of their own.
FROM_RESULT = {"expm1", "sigmoid", "tanh", "tanhshrink"}
# Constant or linear by pieces: the second derivative is zero and the first one is tested with the values.
BY_PIECES = {
    *("ceil", "clamp", "deg2rad", "floor", "frac", "neg", "rad2deg", "relu", "round", "round.decimals", "sgn", "sign"),
    *("trunc", "hardshrink", "threshold", "nn::hardsigmoid", "nn::hardswish", "nn::hardtanh", "nn::leaky_relu"),
    *("nn::softshrink", "_nan_to_num", "_threshold_backward", "angle", "conj_physical"),
}
# Tested as part of the functions above, or of which names.
PARTS = {
    *(
        "_asin_backward",
        "_atan_backward",
        "_asinh_backward",
        "_one_minus_square",
        "_sigmoid_backward",
        "_tanh_backward",
    ),
    *("nn::gelu_exact", "nn::gelu_exact_backward", "nn::gelu_tanh_backward"),
    *("nn::logistic", "nn::log_sigmoid", "nn::mish_backward", "nn::silu_backward", "pow.Scalar", "pow.Tensor_Scalar"),
    *("special::_airy_ai_prime", "special::_logit_backward", "special::_polygamma"),
    *("special::_gaussian_backward", "special::_trigamma"),
    *("special::expit", "special::modified_bessel_i0", "special::modified_bessel_i1", "special::psi"),
}
# Their gradients have no tails that cancel, or are finite differences (see `special._records.slope`).
OTHERS = {
    *("special::_complex_digamma", "special::_fresnel_cosine", "special::_fresnel_sine", "special::_lambertw"),
    *("special::_wofz", "special::kolmogorov", "special::loggamma", "special::rgamma", "special::zetac"),
}


def exact_derivatives(exact, point):
    """The first two derivatives by central differences, with digits enough for them; None where it is not real."""
    scale = abs(int(mpmath.log10(abs(point))))
    with mpmath.workdps(100 + 3 * scale + getattr(exact, "digits", 0)):
        x = mpmath.mpf(point)
        step = min(abs(x), 1) * mpmath.mpf(10) ** -25
        values = [exact(x + k * step) for k in (-1, 0, 1)]
        if any(isinstance(v, mpmath.mpc) for v in values):
            return None
        low, middle, high = values
        return [float((high - low) / (2 * step)), float((high - 2 * middle + low) / step**2)]


def compare(function, exact, far_right, far_left, sizes=SIZES, signs=(1, -1), rtol=1e-10, atol=1e-290):
    points = [sign * size for sign in signs for size in sizes]
    for point, *found in zip(points, *derivatives(function, points), strict=True):
        expected = exact_derivatives(exact, point)
        if expected is not None:
            np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol, err_msg=f"at {point}")
    for point, expected in ((INF, far_right), (-INF, far_left)):
        if expected is not None:
            found = [d[0] for d in derivatives(function, [point])]
            np.testing.assert_allclose(found, expected, atol=1e-290, err_msg=f"at {point}")


def tolerance(name):
    return {"atol": 3e-16} if name in FROM_RESULT else {}


@pytest.mark.parametrize("name", ELEMENTARY)
def test_tails_of_elementary_functions(name):
    compare(getattr(torch, name), *ELEMENTARY[name], **tolerance(name))


@needs_nn
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_tails_of_activations(name):
    base, _, form = name.partition("_")
    compare(functional(base, **{"approximate": form} if form else {}), *ACTIVATIONS[name], **tolerance(name))


@needs_special
@pytest.mark.parametrize("name", SPECIAL)
def test_tails_of_special_functions(name):
    compare(getattr(torch.special, name), *SPECIAL[name], rtol=1e-9)


def test_every_function_of_one_number_is_tested():
    tested = {*ELEMENTARY, *BY_PIECES, *PARTS, *OTHERS}
    tested |= {f"nn::{name}" for name in ACTIVATIONS} | {f"special::{name}" for name in SPECIAL}
    for name, record in operators().items():
        tensors = record.schema.partition("->")[0].count("Tensor ")
        if record.differentiable and record.family.name == "pointwise" and tensors == 1:
            assert name in tested, f"add {name} to a table of this file"


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


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_the_largest_magnitude_of_complex_numbers(dtype):
    values = np.random.default_rng(0).standard_normal((200, 5, 2)).view(complex)[..., 0]
    (found,) = gradients(lambda z: torch.norm(z, INF, 1), values, dtype=dtype)
    largest = np.abs(values) == np.abs(values).max(1, keepdims=True)
    np.testing.assert_allclose(found, np.where(largest, values / np.abs(values), 0), rtol=1e-6)


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
        (torch.hypot, [INF, 1.0, INF], [1.0, -INF, -INF], [1, 0, SQRT_HALF], [0, -1, -SQRT_HALF]),
        (torch.pow, [0.0, 0.0, 0.0], [0.0, 1.0, 2.0], [0, 1, 0], [0, 0, 0]),
        (torch.pow, [0.0, 0.5, 2.0, INF, INF], [INF, INF, -INF, -INF, -1.0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]),
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
        (lambda x: torch.logaddexp(x[0], x[1]), [INF, INF], [[0, 0], [0, 0]]),
        (lambda x: torch.logaddexp2(x[0], x[1]), [-INF, -INF], [[0, 0], [0, 0]]),
        (lambda x: torch.atan2(x[0], x[1]), [1.0, INF], [[0, 0], [0, 0]]),
        (lambda x: torch.hypot(x[0], x[1]), [1.0, INF], [[0, 0], [0, 0]]),
        (lambda x: torch.pow(x[0], x[1]), [0.0, 3.0], [[0, 0], [0, 0]]),
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


@needs_special
def test_functions_of_special_at_their_ends():
    x, y = [0.0, 0.0, 0.0, 2.0], [0.0, 1.0, INF, 4.0]
    by_x, by_y = gradients(torch.special.xlogy, x, y)
    np.testing.assert_allclose(by_x, [0, 0, INF, math.log(4)])
    np.testing.assert_allclose(by_y, [0, 0, 0, 0.5])
    by_x, by_y = gradients(torch.special.xlog1py, x, [v - 1 for v in y])
    np.testing.assert_allclose(by_x, [0, 0, INF, math.log(4)])
    np.testing.assert_allclose(by_y, [0, 0, 0, 0.5])
    first, second = derivatives(torch.special.spherical_bessel_j0, [0.0, 1e-5, INF])
    np.testing.assert_allclose(first, [0, -1e-5 / 3, 0], rtol=1e-9)
    np.testing.assert_allclose(second[:2], [-1 / 3, -1 / 3], rtol=1e-9)
    assert derivatives(torch.special.ellipk, [0.0])[1] == pytest.approx([9 * math.pi / 64])
    assert derivatives(torch.special.ellipe, [0.0])[1] == pytest.approx([-3 * math.pi / 64])
    assert derivatives(torch.special.i1, [800.0, -INF])[0] == [INF, INF]
    first, second = derivatives(torch.special.log_ndtr, [-40.0, 0.0, 40.0, 1e10])
    np.testing.assert_allclose(first, [40.02496884720841, math.sqrt(2 / math.pi), 0, 0], rtol=1e-12, atol=1e-290)
    np.testing.assert_allclose(second[2:], [0, 0], atol=1e-290)
