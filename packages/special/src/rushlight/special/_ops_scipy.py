"""Functions that SciPy computes (CuPy on CUDA), with gradients in every argument."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight.plugin import COMPOSITE, Op, Sample, pointwise

from ._ops_gamma import gammaln
from ._records import document, far_slope, host, in_double, samples, scipy_reference, slope

OPS: list[Op] = []
Above = tuple[float | None]  # a gradient by `slope`, with its argument


def _function(
    name: str,
    summary: str,
    parameters: dict[str, tuple[float, float]],
    example: str,
    *,
    array: Callable[..., Any] | None = None,
    **grads: str | Above | Callable[..., Any] | None,
) -> Op:
    """Makes the record of a function of tensors, all but the first of which may be numbers.

    Args:
        name: As in SciPy.
        summary: First line of the docstring.
        parameters: Their names, and ranges for the samples.
        example: "arguments -> what is printed".
        array: Array kernel, where it is not the function of that name.
        **grads: Gradient rules by parameter; a tuple stands for `slope` with that `above`.
    """
    names = list(parameters)
    shown = {p: "Real tensor." if i == 0 else "Real tensor or number." for i, p in enumerate(names)}
    op = Op(
        f"special::{name}({', '.join(f'Tensor {p}' for p in names)}) -> Tensor",
        family=pointwise("float"),
        numbers=len(names) > 1,
        doc=document(name, summary, shown, example, "SciPy's kernel, CuPy's on CUDA."),
    )
    op.array(array or host(name)).samples(samples(*parameters.values()), None if array else scipy_reference(name))
    for parameter, rule in grads.items():
        op.grad(**{parameter: _by_slope(op, names, parameter, rule[0]) if isinstance(rule, tuple) else rule})
    OPS.append(op)
    return op


def _by_slope(op: Op, names: list[str], parameter: str, above: float | None) -> Callable[..., Any]:
    by_position = slope(op, names.index(parameter), above=above)

    def rule(**arguments: Any) -> Any:
        return by_position(arguments["grad"], *(arguments[name] for name in names))

    kind = inspect.Parameter.KEYWORD_ONLY
    rule.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in ("grad", *names)])  # type: ignore[attr-defined]
    return rule


def _composite(schema: str, doc: str, fn: Callable[..., Any], sampler: Any, reference: Any) -> Op:
    op = Op(f"special::{schema}", family=COMPOSITE, out=False, doc=doc).composite(fn).samples(sampler, reference)
    OPS.append(op)
    return op


# -- beta and gamma

_A, _B, _UNIT = (0.5, 5.0), (0.5, 4.0), (0.1, 0.9)
_function(
    "beta",
    "Beta function, gamma(a) gamma(b) / gamma(a + b).",
    {"a": _A, "b": _B},
    "rushlight.tensor([1.0, 2.0]), 3 -> tensor([0.3333, 0.0833])",
    a="grad * result * (digamma(a) - digamma(a + b))",
    b="grad * result * (digamma(b) - digamma(a + b))",
)
_function(
    "betaln",
    "Logarithm of the absolute value of the beta function.",
    {"a": _A, "b": _B},
    "rushlight.tensor([1.0, 2.0]), 3 -> tensor([-1.0986, -2.4849])",
    a="grad * (digamma(a) - digamma(a + b))",
    b="grad * (digamma(b) - digamma(a + b))",
)
_function(
    "betainc",
    "Regularized incomplete beta function.",
    {"a": _A, "b": _B, "x": _UNIT},
    "rushlight.tensor([1.0, 2.0]), 3, 0.5 -> tensor([0.8750, 0.6875])",
    a=(0,),
    b=(0,),
    x="grad * exp((a - 1) * log(x) + (b - 1) * log1p(-x) - betaln(a, b))",
)
_function(
    "betaincinv",
    "The x for which `betainc(a, b, x)` is y.",
    {"a": _A, "b": _B, "y": _UNIT},
    "rushlight.tensor([1.0, 2.0]), 3, 0.5 -> tensor([0.2063, 0.3857])",
    a=(0,),
    b=(0,),
    y="grad * exp(betaln(a, b) - (a - 1) * log(result) - (b - 1) * log1p(-result))",
)
_function(
    "gammaincinv",
    "The x for which `gammainc(a, x)` is y.",
    {"a": _A, "y": _UNIT},
    "rushlight.tensor([1.0, 2.0]), 0.5 -> tensor([0.6931, 1.6783])",
    a=(0,),
    y="grad * exp(gammaln(a) + result - (a - 1) * log(result))",
)
_function(
    "gammainccinv",
    "The x for which `gammaincc(a, x)` is y.",
    {"a": _A, "y": _UNIT},
    "rushlight.tensor([1.0, 2.0]), 0.1 -> tensor([2.3026, 3.8897])",
    a=(0,),
    y="-grad * exp(gammaln(a) + result - (a - 1) * log(result))",
)
_function(
    "rgamma",
    "Reciprocal of the gamma function, 0 at its poles.",
    {"x": (-3.9, 5.0)},
    "rushlight.tensor([-1.0, 4.0]) -> tensor([0.0000, 0.1667])",
    x=lambda grad, x, result: grad * _rgamma_slope(x, result),
)
_function(
    "binom",
    "Binomial coefficient of real arguments.",
    {"n": (3.0, 9.0), "k": (0.5, 2.5)},
    "rushlight.tensor([4.0, 5.0]), 2 -> tensor([ 6., 10.])",
    n="grad * result * (digamma(n + 1) - digamma(n - k + 1))",
    k="grad * result * (digamma(n - k + 1) - digamma(k + 1))",
)
_function(
    "poch",
    "Pochhammer symbol, gamma(z + m) / gamma(z).",
    {"z": _A, "m": _B},
    "rushlight.tensor([1.0, 2.0]), 3 -> tensor([ 6., 24.])",
    z="grad * result * (digamma(z + m) - digamma(z))",
    m="grad * result * digamma(z + m)",
)
_function(
    "zetac",
    "Riemann's zeta function less 1.",
    {"x": (1.5, 9.0)},
    "rushlight.tensor([2.0, 4.0]) -> tensor([0.6449, 0.0823])",
    x=(1,),
)
_complex_digamma = _function(
    "_complex_digamma",
    "digamma of real and complex numbers.",
    {"x": (0.5, 5.0)},
    "rushlight.tensor([1.0]) -> tensor([-0.5772])",
    array=host("psi"),
    x=lambda grad, x: grad * _trigamma(x).conj(),
)
_function(
    "loggamma",
    "Principal branch of the logarithm of the gamma function, of real and complex numbers.",
    {"x": _A},
    "rushlight.tensor([-1.5, 4.0]) -> tensor([   nan, 1.7918])",
    x="grad * conj(_complex_digamma(x))",
)


# dawsn(x) = sum_k c[k] x^-(1 + 2 k), DLMF 7.12.2 with the sign of 7.5.1
_DAWSN = [0.5]
for _k in range(1, 18):
    _DAWSN.append(_DAWSN[-1] * (2 * _k - 1) / 2)


def _dawsn_slope(x: Any, value: Any) -> Any:
    if x.is_complex():
        return (1 - 2 * x * value).conj()
    far = x.abs() > 8
    near = 1 - 2 * x.where(~far, 0) * value
    return far_slope(x.abs().where(far, 8), _DAWSN, 1, 2).where(far, near)


def _spence_slope(x: Any) -> Any:
    t = x - 1
    near = t.abs() < 0.1  # where log(x) / (1 - x) is a series, whose derivatives do not cancel
    small = t.where(near, 0)
    series: Any = 0.0
    for k in range(18, 0, -1):
        series = 1 / k - small * series
    value = (-series).where(near, x.log() / -t.where(~near, 1))
    return value.conj() if value.is_complex() else value


def _trigamma(z: Any) -> Any:
    """The derivative of digamma, by reflection, fifteen steps up and the asymptotic series: of any order, of any z."""
    import rushlight

    reflected = (z.real if z.is_complex() else z) < 0.5
    w = rushlight.where(reflected, 1 - z, z)
    total = rushlight.zeros_like(w)
    for _ in range(15):
        total = total + 1 / (w * w)
        w = w + 1
    square, series = 1 / (w * w), 7 / 6
    for bernoulli in (-691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6):
        series = bernoulli + square * series
    total = total + 1 / w + square / 2 + square / w * series
    sine = rushlight.where(reflected, (math.pi * z).sin(), 1)
    return rushlight.where(reflected, (math.pi / sine) ** 2 - total, total)


def _rgamma_slope(x: Any, value: Any) -> Any:
    if x.is_complex():
        return (-value * _complex_digamma.operator(x)).conj()
    pole = (x <= 0) & (x == x.floor())  # of gamma, where the product is 0 times infinity
    at_pole = (math.pi * x).cos() * gammaln.operator(1 - x).exp()
    return at_pole.where(pole, -value * _complex_digamma.operator(x))


# -- Bessel functions of any order

_ORDER, _X = (-2.0, 3.0), (0.5, 9.0)
for _name, _what, _printed, _rule in (
    ("jv", "Bessel function of the first kind", "tensor([0.5767, 0.4913])", "0.5 * (jv(v - 1, x) - jv(v + 1, x))"),
    ("yv", "Bessel function of the second kind", "tensor([-0.1070, -0.3956])", "0.5 * (yv(v - 1, x) - yv(v + 1, x))"),
    (
        "iv",
        "Modified Bessel function of the first kind",
        "tensor([1.5906, 1.0995])",
        "0.5 * (iv(v - 1, x) + iv(v + 1, x))",
    ),
    (
        "ive",
        "Scaled modified Bessel function of the first kind, exp(-|x|) iv(v, x),",
        "tensor([0.2153, 0.1488])",
        "(0.5 * (ive(v - 1, x) + ive(v + 1, x)) - sgn(x) * result)",
    ),
    (
        "kv",
        "Modified Bessel function of the second kind",
        "tensor([0.1399, 0.1799])",
        "-0.5 * (kv(v - 1, x) + kv(v + 1, x))",
    ),
    (
        "kve",
        "Scaled modified Bessel function of the second kind, exp(x) kv(v, x),",
        "tensor([1.0335, 1.3293])",
        "(result - 0.5 * (kve(v - 1, x) + kve(v + 1, x)))",
    ),
    (
        "struve",
        "Struve function",
        "tensor([0.6468, 0.4507])",
        "0.5 * (struve(v - 1, x) - struve(v + 1, x) + (0.5 * x) ** v * 0.5641895835477563 * rgamma(v + 1.5))",
    ),
):
    _function(
        _name,
        f"{_what} of real order v.",
        {"v": _ORDER if _name != "struve" else _B, "x": _X},
        f"rushlight.tensor([1.0, 1.5]), 2 -> {_printed}",
        v=(None,),
        x=f"grad * {_rule}",
    )

# -- integrals

_function(
    "ellipk",
    "Complete elliptic integral of the first kind, of the parameter m.",
    {"m": (0.1, 0.9)},
    "rushlight.tensor([0.0, 0.5]) -> tensor([1.5708, 1.8541])",
    m="grad * where(abs(m) < 0.2, pi / 8 * hyp2f1(0 * m + 1.5, 1.5, 2, clamp(m, -0.2, 0.2)), "
    "(ellipe(m) / (1 - m) - result) / (2 * where(abs(m) < 0.2, 1, m)))",
)
_function(
    "ellipe",
    "Complete elliptic integral of the second kind, of the parameter m.",
    {"m": (0.1, 0.9)},
    "rushlight.tensor([0.0, 0.5]) -> tensor([1.5708, 1.3506])",
    m="grad * where(abs(m) < 0.2, -pi / 8 * hyp2f1(0 * m + 0.5, 1.5, 2, clamp(m, -0.2, 0.2)), "
    "(result - ellipk(m)) / (2 * where(abs(m) < 0.2, 1, m)))",
)
_function(
    "ellipkinc",
    "Incomplete elliptic integral of the first kind, of the amplitude phi and the parameter m.",
    {"phi": (0.1, 1.4), "m": (0.1, 0.9)},
    "rushlight.tensor([0.5, 1.0]), 0.5 -> tensor([0.5105, 1.0832])",
    phi="grad * rsqrt(1 - m * sin(phi) ** 2)",
    m="grad * where(m == 0, (2 * phi - sin(2 * phi)) / 8, (ellipeinc(phi, m) - (1 - m) * result"
    " - m * sin(2 * phi) * rsqrt(1 - m * sin(phi) ** 2) / 2) / (2 * m * (1 - m)))",
)
_function(
    "ellipeinc",
    "Incomplete elliptic integral of the second kind, of the amplitude phi and the parameter m.",
    {"phi": (0.1, 1.4), "m": (0.1, 0.9)},
    "rushlight.tensor([0.5, 1.0]), 0.5 -> tensor([0.4899, 0.9273])",
    phi="grad * sqrt(1 - m * sin(phi) ** 2)",
    m="grad * where(m == 0, (sin(2 * phi) - 2 * phi) / 8, (result - ellipkinc(phi, m)) / (2 * m))",
)
_function(
    "expi",
    "Exponential integral Ei.",
    {"x": (0.5, 4.0)},
    "rushlight.tensor([0.5, 2.0]) -> tensor([0.4542, 4.9542])",
    x="grad * conj(exp(x) / x)",
)
_function(
    "exp1",
    "Exponential integral E1.",
    {"x": (0.5, 4.0)},
    "rushlight.tensor([0.5, 2.0]) -> tensor([0.5598, 0.0489])",
    x="-grad * conj(exp(-x) / x)",
)
_function(
    "expn",
    "Generalized exponential integral of integer order n.",
    {"n": (1, 1), "x": (0.5, 4.0)},
    "rushlight.tensor([1.0, 3.0]), 2 -> tensor([0.0489, 0.0301])",
    n=None,
    x="grad * where(n == 0, -result * (1 + 1 / x), -expn(clamp(n - 1, 0), x))",
)
_function(
    "dawsn",
    "Dawson's integral, exp(-x^2) times the integral of exp(t^2) from 0 to x.",
    {"x": (-4.0, 4.0)},
    "rushlight.tensor([0.5, 2.0]) -> tensor([0.4244, 0.3013])",
    x=lambda grad, x, result: grad * _dawsn_slope(x, result),
)
_function(
    "spence",
    "Spence's function, the integral of log(t) / (1 - t) from 1 to x.",
    {"x": (0.1, 4.0)},
    "rushlight.tensor([0.0, 2.0]) -> tensor([ 1.6449, -0.8225])",
    array=lambda xp, x: xp.where(x == xp.inf, -xp.inf, host("spence")(xp, x)),
    x=lambda grad, x: grad * _spence_slope(x),
)
_function(
    "kolmogorov",
    "Complement of the distribution function of Kolmogorov's limit distribution.",
    {"x": (0.4, 2.0)},
    "rushlight.tensor([0.5, 1.0]) -> tensor([0.9639, 0.2700])",
    x=(0,),
)
_function(
    "owens_t",
    "Owen's T function.",
    {"h": (-3.0, 3.0), "a": (-3.0, 3.0)},
    "rushlight.tensor([0.5, 1.0]), 2 -> tensor([0.1416, 0.0785])",
    h="-grad * exp(-0.5 * h * h) * erf(a * h * 0.7071067811865476) * 0.19947114020071635",
    a="grad * exp(-0.5 * h * h * (1 + a * a)) / (2 * pi * (1 + a * a))",
)
_fresnel_sine = _function(
    "_fresnel_sine",
    "Fresnel's sine integral.",
    {"x": (-4.0, 4.0)},
    "rushlight.tensor([1.0]) -> tensor([0.4383])",
    array=lambda xp, x: host("fresnel")(xp, x)[0],
    x="grad * conj(sin(x * x * (pi / 2)))",
)
_fresnel_cosine = _function(
    "_fresnel_cosine",
    "Fresnel's cosine integral.",
    {"x": (-4.0, 4.0)},
    "rushlight.tensor([1.0]) -> tensor([0.7799])",
    array=lambda xp, x: host("fresnel")(xp, x)[1],
    x="grad * conj(cos(x * x * (pi / 2)))",
)

# -- hypergeometric functions and what is made of them

_function(
    "hyp1f1",
    "Confluent hypergeometric function.",
    {"a": _A, "b": _B, "x": (-3.0, 3.0)},
    "rushlight.tensor([1.0, 2.0]), 3, 0.5 -> tensor([1.1898, 1.4051])",
    a=(None,),
    b=(0,),
    x="grad * (a / b) * hyp1f1(a + 1, b + 1, x)",
)
_function(
    "hyp2f1",
    "Gauss's hypergeometric function.",
    {"a": _A, "b": _B, "c": (5.0, 9.0), "x": (-0.8, 0.8)},
    "rushlight.tensor([1.0, 2.0]), 2, 3, 0.5 -> tensor([1.5452, 2.4548])",
    a=(None,),
    b=(None,),
    c=(0,),
    x="grad * (a * b / c) * hyp2f1(a + 1, b + 1, c + 1, x)",
)
_function(
    "lpmv",
    "Associated Legendre function of integer order m and real degree v, for |x| <= 1.",
    {"m": (1, 1), "v": (2.0, 5.0), "x": (-0.9, 0.9)},
    "rushlight.tensor([0.0, 1.0]), 2, 0.5 -> tensor([-0.1250, -1.2990])",
    m=None,
    v=(None,),
    x="grad * (v * x * result - (v + m) * lpmv(m, v - 1, x)) / (x * x - 1)",
)


def _box_cox(xp: Any, x: Any, lmbda: Any) -> Any:
    if "c" in (x.dtype.kind, lmbda.dtype.kind):
        raise NotImplementedError(f'"special::boxcox" not implemented for {x.dtype} and {lmbda.dtype}')
    x, lmbda = in_double(x), in_double(lmbda)
    with xp.errstate(all="ignore"):
        log = xp.log(x)
        small = xp.abs(lmbda * log) < 1
        near = xp.expm1(xp.where(small, lmbda * log, 0)) / lmbda
        power, root = x**lmbda, x ** (lmbda / 2)  # the power may overflow where the quotient does not
        beyond = xp.where(power < xp.inf, (power - 1) / lmbda, root / lmbda * root)
        return xp.where(lmbda == 0, log, xp.where(small, near, beyond))


_function(
    "boxcox",
    "Box-Cox transformation, (x^lmbda - 1) / lmbda, and log(x) for lmbda 0.",
    {"x": (0.5, 4.0), "lmbda": (0.1, 2.0)},
    "rushlight.tensor([1.0, 4.0]), 0.5 -> tensor([0., 2.])",
    array=_box_cox,
    x="grad * x ** (lmbda - 1)",
    lmbda="grad * where(abs(lmbda * log(x)) < 0.001, log(x) ** 2 * (0.5 + lmbda * log(x) / 3), "
    "(x ** lmbda * log(x) - result) / lmbda)",
)

# -- complex values

_wofz = _function(
    "_wofz",
    "wofz of a complex number.",
    {"z": (-2.0, 2.0)},
    "rushlight.tensor([0j]) -> tensor([1.+0.j])",
    array=host("wofz"),
    z=lambda grad, z, result: grad * (-2 * z * result + 2j / math.sqrt(math.pi)).conj(),
)
_lambertw = (
    Op("special::_lambertw(Tensor self, int k, float tol) -> Tensor", family=pointwise("float"), out=False)
    .array(lambda xp, z, k, tol: host("lambertw")(xp, z, k, tol))
    .grad(self="grad * conj(where(self == 0, 1, result / (self * (1 + result))))")
    .samples(lambda make, dtype: [Sample((make(3, 4, low=0.5, high=3), 0, 1e-8))] if dtype.is_complex else [])
)
OPS.append(_lambertw)


def _complex(x: Any) -> Any:
    if x.is_complex():
        return x
    double = x.dtype is rushlight.float64
    return x.to(rushlight.complex128 if double else rushlight.complex64)


def _pair(x: Any) -> tuple[Any, Any]:
    return _fresnel_sine.operator(x), _fresnel_cosine.operator(x)


def _voigt(x: Any, sigma: Any, gamma: Any) -> Any:
    dtype = rushlight.promote_types(rushlight.promote_types(x.dtype, sigma.dtype), gamma.dtype)
    if dtype.is_complex:
        raise NotImplementedError(f'"special::voigt_profile" not implemented for {dtype}')
    if dtype.is_floating_point and dtype.itemsize < 8:
        return _voigt(x.double(), sigma.double(), gamma.double()).to(dtype)
    no_width = sigma == 0
    width = sigma.where(~no_width, 1)
    scaled = rushlight.complex(*rushlight.broadcast_tensors(x / width, gamma / width)) / math.sqrt(2)
    profile = _wofz.operator(scaled).real / (width * math.sqrt(2 * math.pi))
    return (gamma / (math.pi * (x * x + gamma * gamma))).where(no_width, profile)


def _polar_of_arrays(xp: Any, m: Any, n: Any, phi: Any) -> Any:
    order = xp.abs(m)
    log_scale = host("gammaln")(xp, n - order + 1) - host("gammaln")(xp, n + order + 1)
    size = xp.exp(log_scale / 2) * xp.sqrt((2 * n + 1) / (4 * math.pi)) * host("lpmv")(xp, order, n, xp.cos(phi))
    size = xp.where((m >= 0) | (order % 2 == 0), size, -size)
    return xp.where(order > n, 0, size)


_polar = (
    Op("special::_polar(Tensor m, Tensor n, Tensor phi) -> Tensor", family=pointwise("float"), method=False, out=False)
    .array(_polar_of_arrays)
    .grad(
        phi="grad * 0.5 * (sqrt((n - m) * (n + m + 1)) * _polar(m + 1, n, phi)"
        " - sqrt((n + m) * (n - m + 1)) * _polar(m - 1, n, phi))"
    )
    .samples(samples((1, 1), (2, 2), (0.1, 3.0)))
)
OPS.append(_polar)


def _harmonic(m: Any, n: Any, theta: Any, phi: Any) -> Any:
    angles = rushlight.promote_types(theta.dtype, phi.dtype)
    if angles.is_complex or m.is_complex() or n.is_complex():
        raise NotImplementedError(f'"special::sph_harm" not implemented for {angles}')
    dtype = angles if angles.is_floating_point else rushlight.get_default_dtype()
    m, n, theta, phi = (t.double() for t in (m, n, theta, phi))
    # Of the azimuth in two parts, whose multiples do not round.
    coarse = theta.detach().float().double()
    size, angle, rest = rushlight.broadcast_tensors(_polar.operator(m, n, phi), m * coarse, m * (theta - coarse))
    real = angle.cos() * rest.cos() - angle.sin() * rest.sin()
    imaginary = angle.sin() * rest.cos() + angle.cos() * rest.sin()
    # There is no complex dtype of the size of halves.
    result = rushlight.complex128 if dtype is rushlight.float64 else rushlight.complex64
    return rushlight.complex(size * real, size * imaginary).to(result)


_ARGUMENT = """

Args:
    input: Real or complex tensor of any shape.
"""
_composite(
    "wofz(Tensor self) -> Tensor",
    f"""Faddeeva function, exp(-z^2) erfc(-i z).
{_ARGUMENT}
Returns:
    Complex tensor of the same shape.

Example:
    >>> rushlight.special.wofz(rushlight.tensor([0.0, 1.0]))
    tensor([1.0000+0.0000j, 0.3679+0.6072j])
""",
    lambda self: _wofz.operator(_complex(self)),
    samples((-2.0, 2.0)),
    scipy_reference("wofz"),
)
_composite(
    "lambertw(Tensor self, int k=0, float tol=1e-8) -> Tensor",
    f"""Lambert W function, the solution w of w exp(w) = z on branch k.
{_ARGUMENT}    k: Branch.
    tol: Relative tolerance of the iteration.

Returns:
    Complex tensor of the same shape.

Example:
    >>> rushlight.special.lambertw(rushlight.tensor([0.0, 1.0]))
    tensor([0.0000+0.j, 0.5671+0.j])
""",
    lambda self, k, tol: _lambertw.operator(_complex(self), k, tol),
    lambda make, dtype: [Sample((make(3, 4, low=0.5, high=3),))],
    lambda z, k=0, tol=1e-8: scipy_reference("lambertw")(z, k, tol),
)
_composite(
    "fresnel(Tensor self) -> (Tensor, Tensor)",
    """Fresnel's integrals S and C, of sin(pi t^2 / 2) and cos(pi t^2 / 2) from 0 to x.

Args:
    input: Real tensor of any shape.

Returns:
    S and C, tensors of the same shape.

Example:
    >>> rushlight.special.fresnel(rushlight.tensor([1.0]))
    (tensor([0.4383]), tensor([0.7799]))
""",
    _pair,
    samples((-4.0, 4.0)),
    scipy_reference("fresnel"),
)
_composite(
    "voigt_profile(Tensor x, Tensor sigma, Tensor gamma) -> Tensor",
    """Voigt profile, the convolution of a normal density with a Cauchy density.

Args:
    x: Real tensor.
    sigma: Standard deviation of the normal density.
    gamma: Half width of the Cauchy density.

Returns:
    Tensor of the broadcast shape.

Example:
    >>> rushlight.special.voigt_profile(*rushlight.tensor([[0.0, 1.0], [1.0, 1.0], [0.5, 0.5]]))
    tensor([0.2790, 0.2002])
""",
    _voigt,
    samples((-3.0, 3.0), (0.5, 2.0), (0.5, 2.0)),
    scipy_reference("voigt_profile"),
)
_composite(
    "sph_harm(Tensor m, Tensor n, Tensor theta, Tensor phi) -> Tensor",
    """Spherical harmonic of degree n and order m, with the phase of Condon and Shortley.

Args:
    m: Order, whole numbers with |m| <= n.
    n: Degree, whole numbers.
    theta: Azimuth in [0, 2 pi].
    phi: Polar angle in [0, pi].

Returns:
    Complex tensor of the broadcast shape; 0 where |m| > n, NaN where one is not whole.

Source: the recurrence of degrees (DLMF 14.10.3) in pairs of doubles.

Example:
    >>> one = rushlight.tensor([1.0])
    >>> rushlight.special.sph_harm(one, 2 * one, 0 * one, one)
    tensor([-0.3512-0.j])
""",
    _harmonic,
    samples((1, 1), (2, 2), (0.1, 6.0), (0.1, 3.0)),
    lambda m, n, theta, phi: scipy_reference("sph_harm_y")(n.astype(int), m.astype(int), phi, theta),
)
