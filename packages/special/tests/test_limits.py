"""Gradients of every record in every floating argument: first, second and forward against mpmath, and at limits."""

import math

import mpmath as mp
import pytest

import rushlight as torch
from rushlight.special import _ops

autograd = pytest.importorskip("rushlight.autograd")
SPECIAL = torch.special
INF, NAN = math.inf, math.nan
ROOT = mp.sqrt(mp.pi)


def ndtr(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def erfcinv(y):
    return mp.findroot(lambda x: mp.erfc(x) - y, float(mp.erfinv(1 - y)))


def lower(a, x):
    return mp.gammainc(a, 0, x, regularized=True)


def upper(a, x):
    return mp.gammainc(a, x, mp.inf, regularized=True)


def inside(a, b, x):
    return mp.betainc(a, b, 0, x, regularized=True)


def inverse(function, guess, low=0, high=mp.inf):
    """The inverse in the last argument, near what SciPy finds."""

    def solve(*args):
        import scipy.special

        start = mp.mpf(float(getattr(scipy.special, guess)(*(float(mp.re(a)) for a in args))))
        return mp.findroot(lambda x: function(*args[:-1], x) - args[-1], start, tol=1e-70, verify=False)

    return solve


def chebyshev(kind):
    u = mp.chebyu
    return {
        "t": lambda x, n: mp.chebyt(n, x),
        "u": lambda x, n: u(n, x),
        "v": lambda x, n: u(n, x) - (u(n - 1, x) if n else 0),
        "w": lambda x, n: u(n, x) + (u(n - 1, x) if n else 0),
    }[kind]


def shifted(function):
    return lambda x, n: function(2 * x - 1, n)


def owens_t(h, a):
    return mp.quad(lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, a]) / (2 * mp.pi)


def kolmogorov(x):
    return 2 * mp.nsum(lambda k: (-1) ** (int(k) - 1) * mp.exp(-2 * k * k * x * x), [1, mp.inf], method="d")


def voigt(x, sigma, gamma):
    z = (x + 1j * gamma) / (sigma * mp.sqrt(2))
    return mp.re(mp.exp(-z * z) * mp.erfc(-1j * z)) / (sigma * mp.sqrt(2 * mp.pi))


def boxcox(x, k):
    return (mp.power(x, k) - 1) / k if k else mp.log(x)


def dawsn(x):
    return ROOT / 2 * mp.exp(-x * x) * mp.erfi(x)


def erfcx(x):
    return mp.exp(x * x) * mp.erfc(x)


def multigammaln(a, p):
    return p * (p - 1) * mp.log(mp.pi) / 4 + sum(mp.loggamma(a - mp.mpf(j) / 2) for j in range(int(p)))


def laguerre(x, n):
    return sum(mp.binomial(n, k) * (-x) ** k / mp.factorial(k) for k in range(n + 1))


def polynomial(function, unit=False):
    points = (
        ((0.3, 0), (0.3, 1), (-0.7, 2), (0.45, 5), (-0.2, 8), (0.9, 20))
        if unit
        else ((0.3, 0), (1.7, 1), (-0.7, 2), (2.4, 5))
    )
    ends = ((1.0, 0), (1.0, 1), (1.0, 4), (-1.0, 3), (0.0, 0), (0.0, 3))
    return (function, points + ends)


# name: function of mpmath, points at which it is differentiated there.
LINE = (-7.3, -2.2, -0.6, -1e-3, 0.0, 1e-200, 2e-3, 0.8, 3.1, 9.4)
HALF = (1e-3, 0.05, 0.7, 1.6, 4.4, 13.0)
UNIT = (1e-4, 0.03, 0.31, 0.5, 0.77, 0.996)
ONE = {
    "i0": (lambda x: mp.besseli(0, x), LINE),
    "i1": (lambda x: mp.besseli(1, x), LINE),
    "i0e": (lambda x: mp.besseli(0, x) * mp.exp(-x), (1e-3, 0.6, 4.0, 44.0, 1e4)),
    "i1e": (lambda x: mp.besseli(1, x) * mp.exp(-x), (1e-3, 0.6, 4.0, 44.0, 1e4)),
    "modified_bessel_k0": (lambda x: mp.besselk(0, x), HALF),
    "modified_bessel_k1": (lambda x: mp.besselk(1, x), HALF),
    "scaled_modified_bessel_k0": (lambda x: mp.besselk(0, x) * mp.exp(x), (*HALF, 300.0)),
    "scaled_modified_bessel_k1": (lambda x: mp.besselk(1, x) * mp.exp(x), (*HALF, 300.0)),
    "bessel_j0": (lambda x: mp.besselj(0, x), LINE),
    "bessel_j1": (lambda x: mp.besselj(1, x), LINE),
    "bessel_y0": (lambda x: mp.bessely(0, x), HALF),
    "bessel_y1": (lambda x: mp.bessely(1, x), HALF),
    "spherical_bessel_j0": (lambda x: mp.sinc(x), LINE),
    "airy_ai": (mp.airyai, LINE),
    "_airy_ai_prime": (lambda x: mp.airyai(x, derivative=1), LINE),
    "erf": (mp.erf, LINE),
    "erfc": (mp.erfc, LINE),
    "erfcx": (erfcx, (-3.0, -0.4, 0.0, 1e-3, 0.9, 6.0, 12.0, 1e5)),
    "logerfc": (lambda x: mp.log(mp.erfc(x)), (-3.0, -0.4, 0.0, 1e-3, 0.9, 6.0, 12.0, 1e5)),
    "logerfcx": (lambda x: x * x + mp.log(mp.erfc(x)), (-3.0, -0.4, 0.0, 1e-3, 0.9, 6.0, 12.0)),
    "erfinv": (mp.erfinv, (-0.99, -0.4, 0.0, 1e-3, 0.6, 0.9999)),
    "erfcinv": (erfcinv, (1e-8, 0.1, 0.7, 1.0, 1.9)),
    "ndtr": (ndtr, LINE),
    "ndtri": (lambda y: -mp.sqrt(2) * erfcinv(2 * y), UNIT),
    "log_ndtr": (lambda x: mp.log(ndtr(x)), (*LINE, -1e5)),
    "expit": (lambda x: 1 / (1 + mp.exp(-x)), LINE),
    "entr": (lambda x: -x * mp.log(x), HALF),
    "logit": (lambda x: mp.log(x / (1 - x)), UNIT),
    "gammaln": (lambda x: mp.log(abs(mp.gamma(x))) if mp.im(x) == 0 else mp.loggamma(x), (*HALF, -0.5, -3.3)),
    "digamma": (mp.digamma, (*HALF, -0.5, -3.3)),
    "_trigamma": (lambda x: mp.polygamma(1, x), (*HALF, -0.5, -3.3)),
    "rgamma": (mp.rgamma, (-3.0, -2.0, -0.5, 0.0, 1.0, 4.4, 30.0)),
    "zetac": (lambda x: mp.zeta(x) - 1, (1.001, 1.5, 4.0, 20.0, 0.0, 0.5, -0.5, -3.2)),
    "_complex_digamma": (mp.digamma, (*HALF, -0.5, -3.3)),
    "loggamma": (mp.loggamma, HALF),
    "ellipk": (mp.ellipk, (-30.0, -0.7, -1e-9, 0.0, 1e-5, 0.19, 0.21, 0.9, 0.9999)),
    "ellipe": (mp.ellipe, (-30.0, -0.7, -1e-9, 0.0, 1e-5, 0.19, 0.21, 0.9, 0.9999)),
    "expi": (mp.ei, (*HALF, -0.5, -3.3)),
    "exp1": (mp.e1, HALF),
    "dawsn": (dawsn, (-9.0, -0.7, 0.0, 1e-3, 2.0, 7.9, 8.1, 1e4)),
    "spence": (lambda x: mp.polylog(2, 1 - x), (1e-3, 0.4, 0.95, 1.0, 1.05, 2.0, 30.0)),
    "kolmogorov": (kolmogorov, (0.3, 0.5, 0.8, 1.0, 2.0)),
    "_fresnel_sine": (mp.fresnels, (-4.0, 0.0, 0.3, 2.0)),
    "_fresnel_cosine": (mp.fresnelc, (-4.0, 0.0, 0.3, 2.0)),
}
ONE |= {
    "modified_bessel_i0": ONE["i0"],
    "modified_bessel_i1": ONE["i1"],
    "psi": ONE["digamma"],
}
BESSEL = ((0.0, 2.1), (-0.4, 2.1), (0.5, 1e-6), (3.0, 40.0), (12.0, 5.0), (2.0, 0.3), (1.5, 7.0), (-2.0, 1.3))
GAMMA = (
    (2.5, 1.7),
    (0.01, 0.3),
    (0.5, 1e-8),
    (1e-8, 2.0),
    (30.0, 20.0),
    (30.0, 60.0),
    (0.3, 12.0),
    (1e3, 980.0),
    (1e5, 1.001e5),
    (1.0, 1.0),
)
ELLIPTIC = ((0.8, 0.0), (0.8, 1e-7), (0.8, 0.5), (1.5, 0.99), (0.3, 1.0), (0.4, -3.0), (2.5, 0.3), (1e-3, 0.6))
MANY = {
    "xlogy": (lambda x, y: x * mp.log(y), ((0.7, 1.9), (-1.2, 0.3), (0.0, 2.0))),
    "xlog1py": (lambda x, y: x * mp.log1p(y), ((0.7, 1.9), (-1.2, -0.3), (0.0, 2.0))),
    "gammainc": (lower, GAMMA),
    "gammaincc": (upper, GAMMA),
    "gammaincinv": (inverse(lower, "gammaincinv"), ((2.5, 0.7), (0.4, 0.3), (0.1, 0.9), (30.0, 0.01), (400.0, 0.6))),
    "gammainccinv": (inverse(upper, "gammainccinv"), ((2.5, 0.7), (0.4, 0.3), (0.1, 0.9), (30.0, 0.01), (400.0, 0.6))),
    "zeta": (mp.zeta, ((1.05, 2.0), (1.00001, 0.7), (2.0, 1.0), (2.5, 0.01), (6.0, 30.0), (20.0, 1.5), (3.0, 1e4))),
    "beta": (mp.beta, ((0.7, 1.9), (1e-5, 2.0), (30.0, 2.0), (5.0, 1e-3), (-0.5, 1.2))),
    "betaln": (lambda a, b: mp.log(mp.beta(a, b)), ((0.7, 1.9), (1e-5, 2.0), (30.0, 2.0), (5.0, 1e-3), (1e6, 0.5))),
    "betainc": (inside, ((1.5, 2.5, 0.3), (0.01, 2.0, 0.9), (0.5, 0.5, 1e-9), (40.0, 3.0, 0.8), (300.0, 200.0, 0.6),
        (2.0, 0.05, 0.999), (1.0, 1.0, 0.5))),
    "betaincinv": (inverse(inside, "betaincinv"), ((1.5, 2.5, 0.3), (0.3, 2.0, 0.9), (40.0, 3.0, 0.1),
        (300.0, 200.0, 0.6))),
    "binom": (mp.binomial, ((4.0, 2.0), (5.5, 1.2), (30.0, 15.0), (0.5, 0.0), (3.0, -0.5), (-1.5, 2.0), (3.0, 5.0),
        (4.0, -1.0), (7.0, 7.0))),
    "poch": (mp.rf, ((1.0, 3.0), (0.5, 2.2), (20.0, 0.0), (-2.5, 3.0), (3.0, -1.5), (-2.0, 2.0), (-2.0, 4.0))),
    "jv": (mp.besselj, BESSEL),
    "yv": (mp.bessely, BESSEL),
    "iv": (mp.besseli, BESSEL),
    "ive": (lambda v, x: mp.besseli(v, x) * mp.exp(-x), (*BESSEL, (0.3, 900.0))),
    "kv": (mp.besselk, BESSEL),
    "kve": (lambda v, x: mp.besselk(v, x) * mp.exp(x), (*BESSEL, (0.3, 900.0))),
    "struve": (mp.struveh, ((0.5, 2.1), (0.0, 1e-3), (3.0, 20.0), (1.0, 0.5), (-0.3, 4.0))),
    "ellipkinc": (mp.ellipf, ELLIPTIC),
    "ellipeinc": (mp.ellipe, ELLIPTIC),
    "expn": (mp.expint, ((0, 0.7), (1, 0.7), (2, 0.7), (3, 1e-3), (5, 20.0))),
    "owens_t": (owens_t, ((0.5, 2.0), (0.0, 0.7), (-2.0, -1.0), (3.0, 0.0), (1.0, 9.0))),
    "hyp1f1": (mp.hyp1f1, ((0.7, 1.9, 1.3), (1.0, 3.0, 0.5), (-2.0, 1.5, 2.0), (0.5, 1.5, -8.0), (2.0, 2.0, 1.0),
        (0.0, 1.2, 0.4), (0.3, 2.0, 0.0), (1.5, 0.1, 3.0), (3.0, -0.5, 1.1))),
    "hyp2f1": (mp.hyp2f1, ((0.7, 1.1, 1.9, 0.3), (1.0, 2.0, 3.0, 0.5), (-2.0, 1.0, 2.5, 0.8), (0.5, 0.5, 3.5, 0.9),
        (0.5, 2.0, 1.5, -0.7), (0.0, 1.0, 2.0, 0.5), (0.3, 0.4, 0.7, 0.0))),
    "lpmv": (lambda m, v, x: mp.legenp(v, m, x), ((0, 2.0, 0.5), (1, 2.0, 0.5), (2, 3.7, -0.4), (1, 0.6, 0.9),
        (0, 3.0, 0.0))),
    "boxcox": (boxcox, ((2.5, 1e-9), (2.5, 0.0), (0.3, 0.7), (4.0, -1.5), (1.0, 0.5), (2.5, 3e-4), (2.5, 2e-3))),
    "voigt_profile": (voigt, ((0.3, 1.2, 0.5), (-2.0, 0.4, 0.1), (5.0, 1.0, 2.0), (0.0, 1.0, 0.3), (1.0, 2.0, 1e-9))),
    "_polygamma": (mp.polygamma, ((2, 0.7), (3, 5.0), (5, 1.4), (2, -0.5), (2, 1e-3))),
    "multigammaln": (multigammaln, ((2.0, 1), (2.0, 3), (7.5, 4))),
    "legendre_polynomial_p": polynomial(lambda x, n: mp.legendre(n, x), True),
    "laguerre_polynomial_l": polynomial(laguerre),
    "hermite_polynomial_h": polynomial(lambda x, n: mp.hermite(n, x)),
    "hermite_polynomial_he": polynomial(lambda x, n: mp.power(2, -mp.mpf(n) / 2) * mp.hermite(n, x / mp.sqrt(2))),
}  # fmt: skip
MANY["polygamma"] = MANY["_polygamma"]
MANY["_betaincc"] = (lambda a, b, x: 1 - inside(a, b, x), MANY["betainc"][1])
for _kind in "tuvw":
    MANY[f"chebyshev_polynomial_{_kind}"] = polynomial(chebyshev(_kind), True)
    MANY[f"shifted_chebyshev_polynomial_{_kind}"] = (
        shifted(chebyshev(_kind)),
        tuple(((x + 1) / 2, n) for x, n in polynomial(None, True)[1]),
    )
TABLE = {name: (function, tuple((x,) for x in points)) for name, (function, points) in ONE.items()} | MANY

# Arguments that choose a function among others: they have no gradient, which the documentation says.
WITHOUT = {(name, 1) for name in TABLE if "_polynomial_" in name} | {("expn", 0), ("lpmv", 0)}
NOT_TENSORS = {("polygamma", 0), ("_polygamma", 0), ("multigammaln", 1)}
# Of several results or complex ones, and halves of the rules of others, whose second derivatives go through them.
ELSEWHERE = {"fresnel", "wofz", "_wofz", "lambertw", "_lambertw", "sph_harm"}
HALVES = {"_gaussian_backward", "_logit_backward", "_gegenbauer", "_laguerre", "_polar"}


def records():
    names = {}
    for op in _ops.records():
        name = op.schema.partition("::")[2].partition("(")[0]
        names.setdefault(name.partition(".")[0], op)
    return names


def operator(name):
    return records()[name].operator


def arguments(name, values):
    return [
        int(v) if (name, i) in NOT_TENSORS else torch.tensor(float(v), dtype=torch.float64)
        for i, v in enumerate(values)
    ]


def cases(fixed=False):
    for name, (_, points) in TABLE.items():
        for at in range(len(points[0])):
            if (name, at) not in NOT_TENSORS and ((name, at) in WITHOUT) is fixed:
                yield pytest.param(name, at, id=f"{name}-{at}")


def exact(function, values, at):
    """The value and two derivatives in one argument, by differences in 90 digits."""
    with mp.workdps(90):
        points = [v if isinstance(v, int) else mp.mpf(v) for v in values]
        x = points[at]
        step = mp.mpf(10) ** -18 * (abs(x) if abs(x) > 1e-100 else 1)

        def shifted(distance):
            return mp.re(function(*points[:at], x + distance, *points[at + 1 :]))

        low, value, high = shifted(-step), shifted(0 * step), shifted(step)
        return float((high - low) / (2 * step)), float((high - 2 * value + low) / step**2)


def test_every_record_is_in_the_table():
    assert set(records()) == set(TABLE) | ELSEWHERE | HALVES


@pytest.mark.parametrize(("name", "at"), list(cases()))
def test_derivatives(name, at):
    function, points = TABLE[name]
    op = operator(name)
    for values in points:
        if (name, at, values) in JUMPS:
            continue
        first, second = exact(function, values, at)
        args = arguments(name, values)
        x = args[at].requires_grad_()
        slope = torch.autograd.grad(op(*args), x, create_graph=True)[0]
        assert slope.item() == pytest.approx(first, rel=1e-9, abs=1e-15), values
        curvature = torch.autograd.grad(slope, x)[0].item() if slope.requires_grad else 0.0
        assert curvature == pytest.approx(second, rel=1e-6, abs=1e-13), values
        args[at] = x.detach()
        _, tangent = torch.autograd.functional.jvp(
            lambda x, args=args: op(*args[:at], x, *args[at + 1 :]), args[at], torch.ones_like(x)
        )
        assert tangent.item() == pytest.approx(slope.item(), rel=1e-13), values


@pytest.mark.parametrize(("name", "at"), list(cases(fixed=True)))
def test_arguments_without_gradient(name, at):
    args = arguments(name, TABLE[name][1][0])
    args[at].requires_grad_()
    assert not operator(name)(*args).requires_grad
    assert "without gradient" in records()[name].doc


# Fixed points at which the function of the argument jumps: rising factorials from a pole.
JUMPS = {("poch", 1, (-2.0, 2.0)), ("poch", 1, (-2.0, 4.0))}

# name, arguments, the one to differentiate in, the derivative's limit from inside the domain.
EULER = 0.5772156649015329
LIMITS = [
    ("i0", (INF,), 0, INF), ("i0e", (INF,), 0, 0), ("i1e", (-INF,), 0, 0), ("i0e", (1e300,), 0, 0),
    ("modified_bessel_k0", (0.0,), 0, -INF), ("modified_bessel_k1", (0.0,), 0, -INF),
    ("modified_bessel_k1", (-0.0,), 0, -INF), ("scaled_modified_bessel_k0", (0.0,), 0, -INF),
    ("scaled_modified_bessel_k1", (-0.0,), 0, -INF), ("scaled_modified_bessel_k0", (-1e300,), 0, NAN),
    ("scaled_modified_bessel_k1", (-INF,), 0, NAN), ("modified_bessel_k0", (INF,), 0, 0),
    ("bessel_j0", (INF,), 0, 0), ("bessel_y1", (0.0,), 0, INF), ("bessel_y0", (0.0,), 0, INF),
    ("bessel_j1", (5e-324,), 0, 0.5), ("spherical_bessel_j0", (INF,), 0, 0), ("airy_ai", (INF,), 0, 0),
    ("erf", (INF,), 0, 0), ("erfc", (-INF,), 0, 0), ("erfcx", (INF,), 0, 0), ("erfcx", (-INF,), 0, -INF),
    ("logerfc", (INF,), 0, -INF), ("logerfcx", (-INF,), 0, -INF), ("erfinv", (1.0,), 0, INF),
    ("erfcinv", (0.0,), 0, -INF), ("erfinv", (5e-324,), 0, math.sqrt(math.pi) / 2), ("ndtr", (-INF,), 0, 0),
    ("ndtri", (0.0,), 0, INF), ("log_ndtr", (-INF,), 0, INF), ("log_ndtr", (INF,), 0, 0), ("expit", (INF,), 0, 0),
    ("entr", (0.0,), 0, INF), ("entr", (-1.0,), 0, NAN), ("logit", (0.0,), 0, INF), ("logit", (2.0,), 0, NAN),
    ("gammaln", (0.0,), 0, -INF), ("gammaln", (INF,), 0, INF), ("digamma", (0.0,), 0, INF),
    ("digamma", (-2.0,), 0, INF), ("digamma", (INF,), 0, 0), ("rgamma", (INF,), 0, 0), ("rgamma", (0.0,), 0, 1),
    ("zetac", (1.0,), 0, -INF), ("zetac", (INF,), 0, 0), ("ellipk", (1.0,), 0, INF), ("ellipk", (-INF,), 0, 0),
    ("ellipe", (1.0,), 0, -INF), ("ellipe", (-INF,), 0, 0), ("ellipe", (2.0,), 0, NAN), ("expi", (0.0,), 0, INF),
    ("expi", (INF,), 0, INF), ("exp1", (0.0,), 0, -INF), ("exp1", (-1.0,), 0, NAN), ("exp1", (INF,), 0, 0),
    ("dawsn", (INF,), 0, 0), ("spence", (0.0,), 0, -INF), ("spence", (-1.0,), 0, NAN), ("kolmogorov", (0.0,), 0, 0),
    ("kolmogorov", (-1.0,), 0, 0), ("kolmogorov", (INF,), 0, 0), ("xlogy", (0.0, 0.0), 0, 0),
    ("xlogy", (1.0, 0.0), 1, INF), ("xlog1py", (0.0, -1.0), 1, 0),
    # Gamma(a, x) is a times E1(x) near a = 0, and the density at x = 0 depends on a.
    ("gammainc", (0.0, 1.0), 0, -float(mp.e1(1))), ("gammaincc", (0.0, 3.0), 0, float(mp.e1(3))),
    ("gammaincc", (1e-310, 0.5), 0, float(mp.e1(0.5))), ("gammainc", (1.0, 0.0), 1, 1), ("gammainc",
        (0.5, 0.0), 1, INF),
    ("gammainc", (2.0, 0.0), 1, 0), ("gammainc", (2.0, 0.0), 0, 0), ("gammainc", (2.0, INF), 0, 0),
    ("gammainc", (2.0, INF), 1, 0), ("gammainc", (INF, 1.0), 0, 0), ("gammainc", (INF, 1.0), 1, 0),
    ("gammainc", (-1.0, 1.0), 1, NAN), ("gammainc", (1.0, -1.0), 0, NAN), ("gammainc", (1.0, -1.0), 1, NAN),
    # The median of a gamma distribution is a - 1/3.
    ("gammaincinv", (1e6, 0.5), 0, 1.0), ("gammainc", (1e15, 1e15), 1, 1 / math.sqrt(2e15 * math.pi)),
    ("gammainc", (1e15, 1e15), 0, -1 / math.sqrt(2e15 * math.pi)),
    ("gammaincinv", (1.0, 0.0), 1, 1), ("gammaincinv", (2.0, 0.0), 1, INF), ("gammaincinv", (0.5, 0.0), 1, 0),
    ("gammaincinv", (2.0, 0.0), 0, 0), ("gammaincinv", (2.0, 1.0), 0, INF), ("gammainccinv", (2.0, 1.0), 0, 0),
    ("zeta", (1.0, 1.0), 0, -INF), ("zeta", (0.5, 1.0), 0, NAN), ("zeta", (INF, 1.0), 0, 0), ("zeta", (INF, 2.0), 0, 0),
    ("zeta", (2.0, INF), 0, 0), ("zeta", (2.0, 0.0), 1, -INF), ("zeta", (3.0, -0.5), 0, NAN),
    ("zeta", (2.0, 1.0), 0, float(mp.zeta(2, derivative=1))),
    ("beta", (1e300, 0.5), 0, 0), ("beta", (0.0, 1.0), 0, -INF), ("betaln", (0.0, 1.0), 0, -INF),
    ("betaln", (1e300, 1e300), 0, -math.log(2)), ("betainc", (1.0, 2.0, 0.0), 2, 2), ("betainc",
        (0.5, 2.0, 0.0), 2, INF),
    ("betainc", (2.0, 2.0, 0.0), 2, 0), ("betainc", (2.0, 0.5, 1.0), 2, INF), ("betainc", (2.0, 3.0, 1.0), 0, 0),
    ("betainc", (1.0, 1.0, 1.0), 2, 1), ("betainc", (2.0, 3.0, 0.0), 1, 0),
    # I(a, 1, x) = x^a
    ("betainc", (0.0, 1.0, 0.5), 0, -math.log(2)), ("betainc", (1e-310, 1.0, 0.5), 0, -math.log(2)),
    ("betainc", (1.0, 0.0, 0.5), 1, math.log(2)), ("betainc", (1e10, 1e10, 0.5), 0, -0.5 / math.sqrt(math.pi * 1e10)),
    ("betaincinv", (2.0, 2.0, 0.0), 0, 0), ("betaincinv", (2.0, 2.0, 1.0), 1, 0), ("betaincinv", (1.0, 1.0, 0.0), 2, 1),
    ("binom", (5.0, 6.0), 0, 1 / 6), ("binom", (5.0, 0.0), 1, 137 / 60), ("binom", (-1.0, 2.0), 0, NAN),
    ("poch", (-2.0, 2.0), 0, -3), ("poch", (0.0, 0.0), 0, 0), ("poch", (0.0, 2.0), 0, 1), ("poch",
        (1e10, 2.0), 0, 2e10),
    ("jv", (1.0, 0.0), 1, 0.5), ("jv", (0.5, 0.0), 1, INF), ("jv", (2.0, 0.0), 0, 0),
    # J(v, x) is (x / 2)^v / gamma(v + 1) near x = 0.
    ("jv", (0.0, 1e-300), 0, math.log(5e-301) + EULER), ("jv", (2.0, -1.0), 0, NAN),
    ("yv", (0.0, 1e-300), 0, -math.pi / 2), ("yv", (1.0, 0.0), 1, INF), ("iv", (1.0, 0.0), 1, 0.5),
    ("ive", (0.0, 0.0), 1, 0), ("ive", (1.0, 1e5), 1, float(mp.diff(MANY["ive"][0], (1, 1e5), (0, 1)))),
    ("kv", (0.0, 0.0), 1, -INF), ("kv", (0.0, 2.0), 0, 0), ("kve", (1.0, 0.0), 1, -INF), ("kv", (0.0, INF), 1, 0),
    ("struve", (0.0, 0.0), 1, 2 / math.pi), ("ellipkinc", (math.pi / 2, 0.0), 1, math.pi / 8),
    ("ellipkinc", (0.0, 0.5), 1, 0), ("ellipkinc", (1.0, -INF), 1, 0), ("ellipkinc", (1.0, 1.5), 1, NAN),
    ("ellipeinc", (math.pi / 2, 1.0), 0, 0), ("ellipeinc", (2.0, 1.0), 1, -INF),
    ("owens_t", (0.0, 0.0), 1, 0.5 / math.pi), ("owens_t", (INF, 1.0), 0, 0), ("owens_t", (0.0, INF), 1, 0),
    ("owens_t", (1.0, INF), 0, -math.exp(-0.5) / math.sqrt(8 * math.pi)),
    ("hyp1f1", (0.0, 1.0, 0.0), 0, 0), ("hyp1f1", (2.0, 5.0, 0.0), 2, 0.4), ("hyp2f1", (1.0, 1.0, 2.0, 0.0), 3, 0.5),
    ("hyp2f1", (1.0, 1.0, 2.0, 0.0), 2, 0), ("hyp2f1", (-2.0, 1.0, 3.0, 1.0), 3, -1 / 3 * 1),
    ("boxcox", (1.0, 0.0), 1, 0), ("boxcox", (2.0, 5e-324), 1, math.log(2) ** 2 / 2), ("boxcox", (0.0, 1.0), 0, 1),
    ("voigt_profile", (0.0, 0.0, 1.0), 0, 0), ("voigt_profile", (1.0, 0.0, 1.0), 2, 0),
    ("voigt_profile", (1.0, 1.0, 0.0), 0, -math.exp(-0.5) / math.sqrt(2 * math.pi)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "values", "at", "expected"), LIMITS, ids=[f"{name}-{at}-{values}" for name, values, at, _ in LIMITS]
)
def test_limits(name, values, at, expected):
    args = arguments(name, values)
    x = args[at].requires_grad_()
    slope = torch.autograd.grad(operator(name)(*args), x)[0].item()
    assert slope == pytest.approx(expected, rel=1e-6, abs=1e-20, nan_ok=True)
