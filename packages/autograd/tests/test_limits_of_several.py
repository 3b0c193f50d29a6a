"""Derivatives of functions of several numbers at zeros, ties, infinities and the ends of the range, against mpmath.

The exact derivatives are formulas, evaluated with 60 digits and exponents without end. At 0 and at an infinity they are
limits: the formula at 10^-1000 and 10^-2000 (or their reciprocals), with all signs of zeros, and one argument going as
fast as the other or as its square. Where these agree the limit has to come out; where they do not there is none, and
the table says what is expected, if anything.
"""

import itertools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field

import mpmath
import pytest
from mpmath import mpf

import rushlight as torch
from rushlight.autograd import grad
from rushlight.plugin import operators, plugins, require

require("autograd", "rushlight.autograd")
INF = math.inf
LEAST, TINY, HUGE = 5e-324, 2.3e-308, 1e300
BELOW, ABOVE = 1 - 2**-53, 1 + 2**-52
SIZES = [0.0, LEAST, TINY, 1e-200, 0.5, BELOW, 1.0, ABOVE, 2.0, 3.0, 1e200, HUGE, INF]
PAIRS = list(itertools.product([s * v for v in SIZES for s in (1, -1)], repeat=2))
TRIPLES = list(itertools.product([0.0, -0.0, LEAST, -TINY, 0.5, 1.0, -1.0, 1e200, -HUGE, INF, -INF], repeat=3))
OF_GRADS = list(itertools.product([0.0, 1.0, -2.5, 1e-100], [s * v for v in SIZES for s in (1, -1)]))
ln, exp, sqrt = mpmath.log, mpmath.exp, mpmath.sqrt
needs_nn = pytest.mark.skipif(all(p.name != "nn" for p in plugins()), reason="needs rushlight-nn")
needs_special = pytest.mark.skipif(all(p.name != "special" for p in plugins()), reason="needs rushlight-special")

# -- what is expected


@dataclass
class Case:
    """Exact derivatives: of x and y `(fx, fy, fxx, fxy, fyy)`, of more arguments likewise.

    Attributes:
        exact: The derivatives of mpf's, None for those that are not tested; None outside the domain.
        without: The derivatives, of floats, where there is no limit; None: nothing is expected.
        points: Where to test.
        rtol: Largest relative error.
        atol: Largest absolute error.
        scale: What the error of the second derivatives is relative to, by the point; None: to each one.
        call: The function, where it is not the operator of the name.
        signed: Whether zeros are approached from the side of their sign alone.
    """

    exact: Callable
    without: Callable = lambda *at: None
    points: list = field(default_factory=lambda: PAIRS)
    rtol: float = 1e-12
    atol: float = 1e-307
    scale: Callable | None = None
    call: Callable | None = None
    signed: bool = False

    def expected(self, point):
        return [agreed(column) for column in zip(*self.approaches(point), strict=True)]

    def approaches(self, point):
        """For each way to the point the derivatives' limits along it."""
        ends = [x == 0 or math.isinf(x) for x in point]
        signs = [(1, -1) if x == 0 and not self.signed else (math.copysign(1, x),) for x in point]
        powers = [(1, 2) if end and sum(ends) > 1 else (1,) for end in ends]
        for way in itertools.product(*powers):
            if sum(ends) > 1 and all(p == 2 for p, end in zip(way, ends, strict=True) if end):
                continue
            for sign in itertools.product(*signs):
                near, far = (self.exact(*approached(point, way, sign, mpf(10) ** n)) or () for n in (1000, 2000))
                if near:
                    yield [limit(a, b) for a, b in zip(near, far, strict=True)]


def approached(point, way, sign, scale):
    for x, power, s in zip(point, way, sign, strict=True):
        yield s * scale**power if math.isinf(x) else s / scale**power if x == 0 else mpf(x)


NO_LIMIT, UNTESTED = "no limit", "untested"


def limit(near, far):
    if near is None or far is None:
        return UNTESTED
    near, far = mpf(near), mpf(far)
    if abs(far) < abs(near) * 0.75 or far == 0:
        return 0.0
    if abs(far) > abs(near) * 1.5:
        return INF * mpmath.sign(far)
    return float(far) if abs(far - near) <= abs(far) * 1e-15 else NO_LIMIT


def agreed(limits):
    limits = [v for v in limits if v != UNTESTED]
    if not limits:
        return UNTESTED
    first = limits[0]
    if NO_LIMIT in limits or not all(v == first or math.isclose(v, first, rel_tol=1e-15) for v in limits):
        return NO_LIMIT
    return first


# -- what is found


def derivatives(function, points):
    """The values and for each point the derivatives `(fx, fy, fxx, fxy, fyx, fyy)`, and likewise of more arguments."""
    leaves = [torch.tensor(column, dtype=torch.float64, requires_grad=True) for column in zip(*points, strict=True)]
    values = function(*leaves)

    def slopes(y):
        if not y.requires_grad:
            return [torch.zeros_like(x) for x in leaves]
        found = grad(y.sum(), leaves, create_graph=True, allow_unused=True)
        return [torch.zeros_like(x) if g is None else g for g, x in zip(found, leaves, strict=True)]

    first = slopes(values)
    second = [g for f in first for g in slopes(f)]
    return values.tolist(), list(zip(*(g.tolist() for g in first + second), strict=True))


def close(found, expected, case, scale):
    return found == expected or math.isclose(found, expected, rel_tol=case.rtol, abs_tol=case.atol + case.rtol * scale)


def check(function, case):
    count = len(case.points[0])
    pairs = list(itertools.combinations_with_replacement(range(count), 2))
    wrong = []
    with mpmath.workdps(60):
        for point, value, found in zip(case.points, *derivatives(function, case.points), strict=True):
            expected = [] if math.isnan(value) else case.expected(point)
            if not expected:
                continue  # not in the domain
            if NO_LIMIT in expected:
                fallback = case.without(*point) or [None] * len(expected)
                expected = [f if e == NO_LIMIT else e for e, f in zip(expected, fallback, strict=True)]
            first, second = expected[:count], dict(zip(pairs, expected[count:], strict=True))
            wanted = first + [second[min(i, j), max(i, j)] for i in range(count) for j in range(count)]
            names = ["f" + "xyz"[i] for i in range(count)]
            names += [a + b[1] for a in names for b in names]
            scale = float(case.scale(*map(mpf, point))) if case.scale and not any(map(math.isinf, point)) else 0
            for name, f, w in zip(names, found, wanted, strict=True):
                if w not in (None, UNTESTED) and not close(f, w, case, scale if len(name) == 3 else 0):
                    wrong.append(f"{name}{point} is {w}, not {f}")
    assert not wrong, f"{len(wrong)} of {len(case.points)} points:\n" + "\n".join(wrong[:: max(1, len(wrong) // 40)])


# -- the tables


def sign(x):
    return mpmath.sign(x)


def second_order_of_larger(bigger):
    def exact(x, y):
        share = 0.5 if x == y else float(bigger(x, y))
        return share, 1 - share, 0, 0, 0

    return exact


def by_pieces(first):
    """Derivatives of what is linear by pieces."""

    def exact(*at):
        slopes = first(*at)
        return slopes and (*slopes, *[0] * (len(at) * (len(at) + 1) // 2))

    return exact


def bilinear(*factors):
    return lambda x, y: factors


def slope_of(first, second, third):
    """Derivatives of grad * f'(x)."""
    return lambda g, x: (first(x), g * second(x), 0, second(x), g * third(x))


def hypot(x, y):
    r = sqrt(x * x + y * y)
    return x / r, y / r, y * y / r**3, -x * y / r**3, x * x / r**3


def hypot_without(x, y):
    if x == y == 0:
        return 0, 0, 0, 0, 0
    if math.isinf(x) and math.isinf(y):
        return math.copysign(math.sqrt(0.5), x), math.copysign(math.sqrt(0.5), y), 0, 0, 0
    return None


def atan2(x, y):
    r2 = x * x + y * y
    return y / r2, -x / r2, -2 * x * y / r2**2, (x - y) * (x + y) / r2**2, 2 * x * y / r2**2


def power(x, y):
    rest = ln(abs(x))
    end, large = abs(rest) > 2000, abs(y) > 2**53
    if (x < 0 and (y != mpmath.floor(y) or large)) or (abs(x) == 1 and large):
        return None  # not defined, a sign that rounding gives, or an edge
    if end and 0 < abs(y) < mpf(10) ** -900:
        return [mpmath.nan] * 5
    if end and any(0 < abs(y - k) < 0.1 for k in range(3)):
        return None  # too slow
    f = exp(y * rest) * (-1 if x < 0 and y % 2 else 1)
    by_y = (f * rest, f / x * (1 + y * rest), f * rest**2) if x > 0 else (None, None, None)
    return (
        y * f / x if in_range(f / x) else None,
        by_y[0],
        y * (y - 1) * f / x / x if in_range(f / x / x) else None,
        *by_y[1:],
    )


def logaddexp(base):
    def exact(x, y):
        rate = ln(base)
        low = 1 / (1 + exp(rate * abs(x - y)))
        p, q = (1 - low, low) if x > y else (low, 1 - low)
        return p, q, rate * p * q, -rate * p * q, rate * p * q

    return exact


def half(x, y):
    return (0.5, 0.5, None, None, None) if x == y else None


def tied(x, y):
    return (0.5, 0.5, 0, 0, 0) if x == y else None


def in_range(x):
    """Whether a double holds it: a chain of products with a factor that none does keeps no other one's zero."""
    return abs(x) < mpf(2) ** 1024


def clamped(x, low, high):
    if low == high and x < low:
        return 0, 0, 0  # as in PyTorch: `min` has no gradient where it is not less than `max`
    return (0, 0, 1) if x > high or low > high else (0, 1, 0) if x < low else (1, 0, 0)


CORE = {
    "add.Tensor": Case(bilinear(1, 1, 0, 0, 0)),
    "sub.Tensor": Case(bilinear(1, -1, 0, 0, 0)),
    "mul.Tensor": Case(lambda x, y: (y, x, 0, 1, 0)),
    "div.Tensor": Case(lambda x, y: (1 / y, -x / y**2, 0, -1 / y**2, 2 * x / y**3 if in_range(1 / y) else None)),
    "_div_trunc": Case(bilinear(0, 0, 0, 0, 0)),
    "_div_floor": Case(bilinear(0, 0, 0, 0, 0)),
    "remainder.Tensor": Case(by_pieces(lambda x, y: (1, -mpmath.floor(x / y)))),
    "fmod.Tensor": Case(by_pieces(lambda x, y: (1, -mpmath.floor(abs(x / y)) * sign(x / y)))),
    "ldexp": Case(lambda x, y: (2**y, x * 2**y * ln(2), 0, 2**y * ln(2), x * 2**y * ln(2) ** 2)),
    "nextafter": Case(by_pieces(lambda x, y: (float(x != y), 0))),
    "pow.Tensor_Tensor": Case(power, lambda x, y: (0, 0, 0, None, 0) if x == y == 0 else None, signed=True),
    "maximum": Case(second_order_of_larger(lambda x, y: x > y), tied),
    "minimum": Case(second_order_of_larger(lambda x, y: x < y), tied),
    "fmax": Case(by_pieces(lambda x, y: (1, 0) if x >= y else (0, 1)), lambda x, y: (1, 0, 0, 0, 0)),
    "fmin": Case(by_pieces(lambda x, y: (1, 0) if x <= y else (0, 1)), lambda x, y: (1, 0, 0, 0, 0)),
    "atan2": Case(
        atan2, lambda x, y: (0, 0, 0, 0, 0) if x == y == 0 else None, scale=lambda x, y: 1 / (x * x + y * y or 1)
    ),
    "hypot": Case(hypot, hypot_without),
    "copysign.Tensor": Case(
        by_pieces(lambda x, y: (sign(x) * sign(y), 0)),
        lambda x, y: (0 if x == 0 else math.copysign(1, x) * math.copysign(1, y), 0, 0, 0, 0),
    ),
    "logaddexp": Case(logaddexp(mpmath.e), half),
    "logaddexp2": Case(logaddexp(2), half),
    "clamp_min.Tensor": Case(by_pieces(lambda x, y: (1, 0) if x >= y else (0, 1)), lambda x, y: (1, 0, 0, 0, 0)),
    "clamp_max.Tensor": Case(by_pieces(lambda x, y: (1, 0) if x <= y else (0, 1)), lambda x, y: (1, 0, 0, 0, 0)),
    "lerp.Scalar": Case(
        bilinear(mpf(1) - mpf(0.3), mpf(0.3), 0, 0, 0), call=lambda x, y: torch.lerp(x, y, 0.3), rtol=1e-15
    ),
    "where.self": Case(
        bilinear(1, 0, 0, 0, 0), call=lambda x, y: torch.where(torch.ones(len(x), dtype=torch.bool), x, y)
    ),
    "_threshold_backward": Case(
        by_pieces(lambda g, x: (float(x > 1), 0)),
        call=lambda g, x: operators()["_threshold_backward"].operator(g, x, 1),
    ),
    "_tanh_backward": Case(lambda g, y: (1 - y * y, -2 * g * y, 0, -2 * y, -2 * g), points=OF_GRADS, atol=3e-16),
    "_sigmoid_backward": Case(
        lambda g, y: (y * (1 - y), g * (1 - 2 * y), 0, 1 - 2 * y, -2 * g), points=OF_GRADS, atol=3e-16
    ),
    "_asin_backward": Case(
        slope_of(
            lambda x: 1 / sqrt(1 - x * x),
            lambda x: x / sqrt(1 - x * x) ** 3,
            lambda x: (1 + 2 * x * x) / sqrt(1 - x * x) ** 5,
        ),
        points=[(g, x) for g, x in OF_GRADS if abs(x) < 1],
    ),
    "_atan_backward": Case(
        slope_of(
            lambda x: 1 / (1 + x * x),
            lambda x: -2 * x / (1 + x * x) ** 2,
            lambda x: (6 * x * x - 2) / (1 + x * x) ** 3,
        ),
        points=OF_GRADS,
    ),
    "_asinh_backward": Case(
        slope_of(
            lambda x: (1 + x * x) ** mpf(-0.5),
            lambda x: -x * (1 + x * x) ** mpf(-1.5),
            lambda x: (2 * x * x - 1) * (1 + x * x) ** mpf(-2.5),
        ),
        points=OF_GRADS,
    ),
    "_clamp_between": Case(
        by_pieces(clamped),
        points=TRIPLES,
    ),
    "lerp.Tensor": Case(lambda x, y, w: (1 - w, w, y - x, 0, 0, -1, 0, 1, 0), points=TRIPLES),
    "addcmul": Case(
        lambda x, y, z: (1, 2 * z, 2 * y, 0, 0, 0, 0, 2, 0),
        points=TRIPLES,
        call=lambda x, y, z: torch.addcmul(x, y, z, value=2),
    ),
    "addcdiv": Case(
        lambda x, y, z: (1, 2 / z, -2 * y / z**2, 0, 0, 0, 0, -2 / z**2, 4 * y / z**3 if in_range(2 / z) else None),
        points=TRIPLES,
        call=lambda x, y, z: torch.addcdiv(x, y, z, value=2),
    ),
}
# The derivatives of others, tested with them.
PARTS = {"_direction", "_inversion", "_pow_by_self", "_pow_by_exponent"}


def bce(x, t):
    return (1 - t) / (1 - x) - t / x, ln((1 - x) / x), (1 - t) / (1 - x) ** 2 + t / x**2, -1 / (1 - x) / x, 0


def bce_logits(x, t):
    low = 1 / (1 + exp(abs(x)))  # of the smaller side
    p, q = (1 - low, low) if x > 0 else (low, 1 - low)
    return p * (1 - t) - q * t, -x, p * q, -1, 0


def soft_margin(x, t):
    low = 1 / (1 + exp(abs(t * x)))
    p, q = (low, 1 - low) if t * x > 0 else (1 - low, low)  # the sigmoid of -t x, and what is left of 1
    first = -t * p, -x * p, t * t * p * q
    return *first, *((None, None) if abs(x) > mpf(10) ** 900 else (-p + t * x * p * q, x * x * p * q))


def even(slope, curve):
    """Of functions of x - y, which is rounded."""

    def exact(x, y):
        d = x - y if abs(x - y) > HUGE or x * y == 0 else mpf(float(x - y))
        return slope(d), -slope(d), curve(d), -curve(d), curve(d)

    return exact


def nn_operator(name):
    assert torch.nn  # loads its records
    return operators()[f"nn::{name}"].operator


# Closer to 0 and 1 the product of both shares counts as 1e-12, as in PyTorch.
SHARES = list(itertools.product([1e-11, 1e-8, 0.25, 0.5, 1 - 1e-9, 1 - 2**-36], [0.0, 1e-300, 0.5, 1.0]))
SCORES = list(itertools.product([s * v for v in SIZES for s in (1, -1)], [0.0, LEAST, 0.25, 1.0, -1.0, 3.0]))
LOSSES = {
    "_bce": Case(bce, points=SHARES, scale=lambda x, t: 1 / x / (1 - x)),
    "_bce_logits": Case(bce_logits, points=SCORES),
    "_soft_margin": Case(soft_margin, points=SCORES),
    "_squared_error": Case(even(lambda d: 2 * d, lambda d: 2)),
    "_smooth_l1": Case(
        even(lambda d: max(-1, min(1, d / 2)), lambda d: 0.5 if abs(d) <= 2 else 0),
        call=lambda x, y: nn_operator("_smooth_l1")(x, y, 2),
    ),
    "_huber": Case(
        even(lambda d: max(-2, min(2, d)), lambda d: 1 if abs(d) <= 2 else 0),
        call=lambda x, y: nn_operator("_huber")(x, y, 2),
    ),
}


@needs_nn
@pytest.mark.parametrize("name", LOSSES)
def test_losses_of_single_elements(name):
    case = LOSSES[name]
    check(case.call or nn_operator(name), case)


def prelu(x, w):
    return (1, 0, 0, 0, 0) if x > 0 else (w, x, 0, 1, 0)


def weighted_bce_logits(x, t, w):
    low = 1 / (1 + exp(abs(x)))
    q, factor = low if x > 0 else 1 - low, 1 + (w - 1) * t  # the sigmoid of -x
    p = (1 - low) if x > 0 else low
    return (1 - t) * p - w * t * q, None, None, factor * p * q, *[None] * 5


def gaussian_nll(x, t, v):
    d = x - t
    first = d / v, -d / v, (1 - d * d / v) / v / 2
    return *first, 1 / v, -1 / v, -d / v**2, 1 / v, d / v**2, (d * d / v - mpf(0.5)) / v**2


def kl_div_of_logs(x, t):
    return -exp(t), exp(t) * (t - x + 1), 0, -exp(t), exp(t) * (t - x + 2)


def functional(name, **options):
    return lambda *args: getattr(torch.nn.functional, name)(*args, reduction="none", **options)


REAL = [0.0, -0.0, 1e-300, -1e-300, 0.5, -1.0, 3.0, -40.0, 600.0]
COUNTS = list(itertools.product(REAL, [0.0, 1.0, 1e10]))
FUNCTIONS = {
    "prelu": Case(
        prelu,
        lambda x, w: (w, 0, 0, None, 0) if x == 0 else None,
        points=list(itertools.product([*REAL, -INF, HUGE, -HUGE, -LEAST], [0.0, 0.25, -1.0, HUGE])),
        call=lambda x, w: torch.nn.functional.prelu(x[None], w)[0],
    ),
    "kl_div": Case(
        lambda x, t: (-t, ln(t) + 1 - x, 0, -1, 1 / t),
        points=list(itertools.product(REAL, [1e-300, 0.5, 1.0])),
        call=functional("kl_div"),
    ),
    "kl_div of logarithms": Case(
        kl_div_of_logs,
        points=list(itertools.product(REAL, [-800.0, -1.0, 0.0, 1.0, 600.0])),
        call=functional("kl_div", log_target=True),
    ),
    "poisson_nll_loss": Case(
        lambda x, t: (exp(x) - t, -x, exp(x), -1, 0), points=COUNTS, call=functional("poisson_nll_loss")
    ),
    "poisson_nll_loss of rates": Case(
        lambda x, t: (1 - t / x, -ln(x), t / x**2, -1 / x, 0),
        points=list(itertools.product([1e-100, 1e-8, 1.0, 1e100], [0.0, 1.0, 1e10])),
        call=functional("poisson_nll_loss", log_input=False, eps=0),
    ),
    "gaussian_nll_loss": Case(
        gaussian_nll,
        points=list(itertools.product([0.0, -0.0, 1e-300, -3.0, 1e100], [0.0, 1e-100, 1e100], [1e-5, 1.0, 1e100])),
        call=functional("gaussian_nll_loss"),
    ),
    "binary_cross_entropy_with_logits": Case(
        weighted_bce_logits,
        points=list(itertools.product([*REAL, -800.0, HUGE, -HUGE, INF, -INF], [0.0, 0.5, 1.0], [1.0, 3.0])),
        call=lambda x, t, w: functional("binary_cross_entropy_with_logits", pos_weight=w)(x, t),
    ),
}


@needs_nn
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_nn(name):
    check(FUNCTIONS[name].call, FUNCTIONS[name])


def test_parts_of_complex_numbers():
    angles = [0.0, -0.0, LEAST, 1e-200, -0.5, 3.0, 1e5]
    polar = Case(
        lambda r, a: (mpmath.cos(a), -r * mpmath.sin(a), 0, -mpmath.sin(a), -r * mpmath.cos(a)),
        points=list(itertools.product([0.0, -0.0, LEAST, TINY, 1.0, 1e200, HUGE], angles)),
    )
    check(lambda r, a: torch.polar(r, a).real, polar)
    check(lambda x, y: torch.complex(x, y).imag, Case(bilinear(0, 1, 0, 0, 0)))


@needs_nn
def test_binary_cross_entropy_at_0_and_1():
    points = list(itertools.product([0.0, 1.0, 1e-300, 1e-13, BELOW], [0.0, 0.5, 1.0]))
    _, found = derivatives(nn_operator("_bce"), points)
    for (x, t), (by_x, by_t, *second) in zip(points, found, strict=True):
        assert by_x == pytest.approx((x - t) / max(x * (1 - x), 1e-12))
        assert by_t == pytest.approx(max(-100, math.log1p(-x) if x < 1 else -INF) - max(-100, math.log(x or 1e-99)))
        assert all(map(math.isfinite, second)), (x, t, second)


def x_log(log, inner):
    def exact(x, y):
        z = inner + y
        if z <= 0:
            return None
        if abs(x) < mpf(10) ** -900 and z < mpf(10) ** -900:
            return [mpmath.nan] * 5
        return log(y), x / z, 0, 1 / z, -x / z**2 if in_range(1 / z) else None

    return exact


def product_without(x, y):
    return (0, 0, 0, None, 0) if x == 0 else None  # x log(y) is 0 where x is, so are its slopes


TIMES_LOG = {
    "xlogy": Case(x_log(ln, 0), product_without, signed=True),
    "xlog1py": Case(x_log(mpmath.log1p, 1), product_without, signed=True),
}


@needs_special
@pytest.mark.parametrize("name", TIMES_LOG)
def test_products_with_a_logarithm(name):
    check(getattr(torch.special, name), TIMES_LOG[name])


@pytest.mark.parametrize("name", CORE)
def test_records_of_core(name):
    case = CORE[name]
    check(case.call or operators()[name].operator, case)


def differentiable_tensors(record):
    tensors = re.findall(r"Tensor\S* (\w+)", record.schema.partition("->")[0])
    return [t for t in tensors if not any(t in names and rule is None for names, rule in (record.grads or {}).items())]


def test_every_record_of_several_numbers_is_tested():
    tested = {*CORE, *PARTS, *(f"nn::{name}" for name in LOSSES)}
    for name, record in operators().items():
        if record.namespace not in (None, "nn") or not record.differentiable or record.family.name != "pointwise":
            continue
        if len(differentiable_tensors(record)) < 2:
            continue
        slope_of_an_activation = name.startswith("nn::") and name.endswith("_backward")  # see test_limits.py
        assert name in tested or slope_of_an_activation, f"add {name} to a table of this file"
