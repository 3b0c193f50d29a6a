"""Functions that SciPy computes (CuPy on CUDA), with gradients in every argument."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight.plugin import COMPOSITE, Op, Sample, pointwise

from ._gamma_rules import (
    digamma_rise,
    gamma_density,
    gammaincc_slope,
    rgamma_slope,
    trigamma,
    zetac_slope,
)
from ._records import (
    document,
    far_slope,
    host,
    in_double,
    of_real_orders,
    of_tensors,
    pole_distance,
    samples,
    scipy_reference,
    slope,
)

OPS: list[Op] = []
Difference = tuple[Any, ...]  # a gradient by `slope`, with its further arguments


def _function(
    name: str,
    summary: str,
    parameters: dict[str, tuple[float, float]],
    example: str,
    *,
    array: Callable[..., Any] | None = None,
    of_complex: bool = False,
    **grads: str | Difference | Callable[..., Any] | None,
) -> Op:
    """Makes the record of a function of tensors, all but the first of which may be numbers.

    Args:
        name: As in SciPy.
        summary: First line of the docstring.
        parameters: Their names, and ranges for the samples.
        example: "arguments -> what is printed".
        array: Array kernel, where it is not the function of that name.
        of_complex: Whether the last argument may be complex.
        **grads: Gradient rules by parameter; a tuple stands for `slope` with these arguments.
    """
    names = list(parameters)
    shown = {p: "Real tensor" if i == 0 else "Real tensor or number" for i, p in enumerate(names)}
    if of_complex:
        shown[names[-1]] = shown[names[-1]].replace("Real", "Real or complex")
    shown = {p: text + (", without gradient." if grads[p] is None else ".") for p, text in shown.items()}
    op = Op(
        f"special::{name}({', '.join(f'Tensor {p}' for p in names)}) -> Tensor",
        family=pointwise("float"),
        numbers=len(names) > 1,
        doc=document(name, summary, shown, example, "SciPy's kernel, CuPy's on CUDA."),
    )
    op.array(array or (of_real_orders(name) if of_complex else host(name)))
    op.samples(samples(*parameters.values()), None if array else scipy_reference(name))
    for parameter, rule in grads.items():
        if isinstance(rule, tuple):
            rule = _by_slope(op, names, parameter, *rule)
        op.grad(**{parameter: of_tensors(rule) if callable(rule) else rule})
    OPS.append(op)
    return op


def _by_slope(op: Op, names: list[str], parameter: str, *options: Any) -> Callable[..., Any]:
    by_position = slope(op, names.index(parameter), *options)

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
    a=lambda grad, a, b, result: -grad * result * digamma_rise(a, b),
    b=lambda grad, a, b, result: -grad * result * digamma_rise(b, a),
)
betaln = _function(
    "betaln",
    "Logarithm of the absolute value of the beta function.",
    {"a": _A, "b": _B},
    "rushlight.tensor([1.0, 2.0]), 3 -> tensor([-1.0986, -2.4849])",
    a=lambda grad, a, b: -grad * digamma_rise(a, b),
    b=lambda grad, a, b: -grad * digamma_rise(b, a),
)
_betaincc: Op = _function(
    "_betaincc",
    "1 - betainc.",
    {"a": _A, "b": _B, "x": _UNIT},
    "rushlight.tensor([1.0, 2.0]), 3, 0.5 -> tensor([0.1250, 0.3125])",
    array=lambda xp, a, b, x: _beyond(xp, a, b, x),
    a=lambda grad, a, b, x: -_betainc_slope(0)(grad, a, b, x),
    b=lambda grad, a, b, x: -_betainc_slope(1)(grad, a, b, x),
    x=lambda grad, a, b, x: -grad * _beta_density(a, b, x),
)
_betainc = _function(
    "betainc",
    "Regularized incomplete beta function.",
    {"a": _A, "b": _B, "x": _UNIT},
    "rushlight.tensor([1.0, 2.0]), 3, 0.5 -> tensor([0.8750, 0.6875])",
    a=lambda grad, a, b, x: _betainc_slope(0)(grad, a, b, x),
    b=lambda grad, a, b, x: _betainc_slope(1)(grad, a, b, x),
    x=lambda grad, a, b, x: grad * _beta_density(a, b, x),
)
_function(
    "betaincinv",
    "The x for which `betainc(a, b, x)` is y.",
    {"a": _A, "b": _B, "y": _UNIT},
    "rushlight.tensor([1.0, 2.0]), 3, 0.5 -> tensor([0.2063, 0.3857])",
    a=lambda grad, a, b, result: grad * _betaincinv_slope(0, a, b, result),
    b=lambda grad, a, b, result: grad * _betaincinv_slope(1, a, b, result),
    y=lambda grad, a, b, result: grad / _beta_density(a, b, result),
)
_function(
    "gammaincinv",
    "The x for which `gammainc(a, x)` is y.",
    {"a": _A, "y": _UNIT},
    "rushlight.tensor([1.0, 2.0]), 0.5 -> tensor([0.6931, 1.6783])",
    a=lambda grad, a, result: grad * _of_inverse(gammaincc_slope(a, result), gamma_density(a, result), result),
    y=lambda grad, a, result: grad / gamma_density(a, result),
)
_function(
    "gammainccinv",
    "The x for which `gammaincc(a, x)` is y.",
    {"a": _A, "y": _UNIT},
    "rushlight.tensor([1.0, 2.0]), 0.1 -> tensor([2.3026, 3.8897])",
    a=lambda grad, a, result: grad * _of_inverse(gammaincc_slope(a, result), gamma_density(a, result), result),
    y=lambda grad, a, result: -grad / gamma_density(a, result),
)


def _beyond(xp: Any, a: Any, b: Any, x: Any) -> Any:
    try:
        return host("betaincc")(xp, a, b, x)
    except AttributeError:  # of CuPy
        return host("betainc")(xp, b, a, 1 - x)


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    return (rushlight.special.xlogy(a - 1, x) + rushlight.special.xlog1py(b - 1, -x) - betaln.operator(a, b)).exp()


def _of_inverse(slope: Any, density: Any, value: Any) -> Any:
    """The derivative of an inverse in a parameter; nothing moves the ends of its range."""
    end = (value == 0) | (slope == 0)
    return (slope / density.where(~end, 1)).where(~(end | value.isinf()), value.where(value.isinf(), 0))


def _betaincinv_slope(at: int, a: Any, b: Any, value: Any) -> Any:
    slope = _betainc_slope(at)(rushlight.ones_like(value), a, b, value)
    return _of_inverse(-slope, _beta_density(a, b, value), value)


def _betainc_slope(at: int) -> Callable[..., Any]:
    """The rule of `betainc` in a (`at` 0) or b (1)."""

    def rate(a: Any, b: Any, x: Any) -> Any:
        if at:
            a, b, log_x = b, a, (-x).log1p()
        else:
            log_x = x.log()
        return (log_x + (b / a).log1p()).abs() + (b / (a * (a + b))).sqrt() + 1.5 / a

    difference = slope(_betainc, at, rate, _betaincc.operator)

    def rule(grad: Any, a: Any, b: Any, x: Any) -> Any:
        inner = (x > 0) & (x < 1)
        return difference(grad, a.clamp(min=1e-30), b.clamp(min=1e-30), x.where(inner, 0.5)).where(inner, 0)

    return rule


rgamma = _function(
    "rgamma",
    "Reciprocal of the gamma function, 0 at its poles.",
    {"x": (-3.9, 5.0)},
    "rushlight.tensor([-1.0, 4.0]) -> tensor([0.0000, 0.1667])",
    of_complex=True,
    x=lambda grad, x, result: (
        grad * ((-result * _complex_digamma.operator(x)).conj() if x.is_complex() else rgamma_slope(x))
    ),
)
_function(
    "binom",
    "Binomial coefficient of real arguments.",
    {"n": (3.0, 9.0), "k": (0.5, 2.5)},
    "rushlight.tensor([4.0, 5.0]), 2 -> tensor([ 6., 10.])",
    n=lambda grad, n, k, result: grad * _binom_slope(n, k, result)[0],
    k=lambda grad, n, k, result: grad * _binom_slope(n, k, result)[1],
)
_function(
    "poch",
    "Pochhammer symbol, gamma(z + m) / gamma(z).",
    {"z": _A, "m": _B},
    "rushlight.tensor([1.0, 2.0]), 3 -> tensor([ 6., 24.])",
    z=lambda grad, z, m, result: grad * _poch_slope(z, m, result),
    m="grad * result * digamma(z + m)",
)
_function(
    "zetac",
    "Riemann's zeta function less 1.",
    {"x": (1.5, 9.0)},
    "rushlight.tensor([2.0, 4.0]) -> tensor([0.6449, 0.0823])",
    x=lambda grad, x: grad * zetac_slope(x),
)


def _is_pole(x: Any) -> Any:
    return (x <= 0) & (x == x.floor())


def _binom_slope(n: Any, k: Any, value: Any) -> tuple[Any, Any]:
    """The derivatives in n and k; where a gamma function of the denominator is at a pole, 1 / gamma has a slope."""
    low, high, top = k + 1, n - k + 1, n + 1
    zero = _is_pole(low) | _is_pole(high)
    of_top = 1 / rgamma.operator(top.where(zero, 1))
    at_low, at_high = of_top * rgamma.operator(low), of_top * rgamma.operator(high)
    in_n = at_low * (rgamma_slope(high) + rgamma.operator(high) * rushlight.special.digamma(top.where(zero, 1)))
    in_k = at_high * rgamma_slope(low) - at_low * rgamma_slope(high)
    low, high, k = (t.where(~zero, 1) for t in (low, high, k))
    return in_n.where(zero, value * digamma_rise(high, k)), in_k.where(zero, value * digamma_rise(low, high - low))


def _poch_slope(z: Any, m: Any, value: Any) -> Any:
    """The derivative in z; at the poles of both gamma functions, as those of a polynomial of degree m."""
    start, end = _is_pole(z), _is_pole(z + m)
    both, first, none = start & end, start & ~end, ~start & ~end
    reflected = digamma_rise(1 - z.where(both, 0), -m.where(both, 0))
    rise = digamma_rise(z.where(none, 1), m.where(none, 0))
    end = (z + m).where(first, 1)
    zero = (rgamma_slope(z) + rgamma.operator(z) * rushlight.special.digamma(end)) / rgamma.operator(end)
    return zero.where(first, value * reflected.where(both, rise))


_complex_digamma: Op = _function(
    "_complex_digamma",
    "digamma of real and complex numbers.",
    {"x": (0.5, 5.0)},
    "rushlight.tensor([1.0]) -> tensor([-0.5772])",
    array=host("psi"),
    x=lambda grad, x: grad * trigamma(x).conj(),
)
_function(
    "loggamma",
    "Principal branch of the logarithm of the gamma function, of real and complex numbers.",
    {"x": _A},
    "rushlight.tensor([-1.5, 4.0]) -> tensor([   nan, 1.7918])",
    of_complex=True,
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


# -- Bessel functions of any order

_ORDER, _X = (-2.0, 3.0), (0.5, 9.0)


def _bessel_rate(v: Any, x: Any) -> Any:
    return 1.6 + (0.5 * x.abs().clamp(1e-300, 1e300)).log().abs() + v.abs().log1p()


for _name, _what, _printed, _rule in (
    ("jv", "Bessel function of the first kind", "tensor([0.5767, 0.4913])", "0.5 * (jv(v - 1, x) - jv(v + 1, x))"),
    (
        "yv",
        "Bessel function of the second kind",
        "tensor([-0.1070, -0.3956])",
        "where((x == 0) & isinf(result), inf, 0.5 * (yv(v - 1, x) - yv(v + 1, x)))",
    ),
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
        "where(x == 0, -inf, result - 0.5 * (kve(v - 1, x) + kve(v + 1, x)))",
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
        of_complex=_name not in ("ive", "struve"),
        v=(_bessel_rate,),
        x=f"grad * conj({_rule})",
    )

# -- integrals

_function(
    "ellipk",
    "Complete elliptic integral of the first kind, of the parameter m.",
    {"m": (0.1, 0.9)},
    "rushlight.tensor([0.0, 0.5]) -> tensor([1.5708, 1.8541])",
    m=lambda grad, m: grad * _ellipk_slope(m),
)
_function(
    "ellipe",
    "Complete elliptic integral of the second kind, of the parameter m.",
    {"m": (0.1, 0.9)},
    "rushlight.tensor([0.0, 0.5]) -> tensor([1.5708, 1.3506])",
    m=lambda grad, m: grad * _ellipe_slope(m),
)
_function(
    "ellipkinc",
    "Incomplete elliptic integral of the first kind, of the amplitude phi and the parameter m.",
    {"phi": (0.1, 1.4), "m": (0.1, 0.9)},
    "rushlight.tensor([0.5, 1.0]), 0.5 -> tensor([0.5105, 1.0832])",
    phi="grad * rsqrt(1 - m * sin(phi) ** 2)",
    m=lambda grad, phi, m: grad * _incomplete(phi, m, _ellipk_slope),
)
_function(
    "ellipeinc",
    "Incomplete elliptic integral of the second kind, of the amplitude phi and the parameter m.",
    {"phi": (0.1, 1.4), "m": (0.1, 0.9)},
    "rushlight.tensor([0.5, 1.0]), 0.5 -> tensor([0.4899, 0.9273])",
    phi="grad * sqrt(1 - m * sin(phi) ** 2)",
    m=lambda grad, phi, m: grad * _incomplete(phi, m, _ellipe_slope),
)


def _ellipk_slope(m: Any, sine: Any = 1, square: Any = None) -> Any:
    """The derivative in m of F, of K by default, for sin(phi) and cos(phi)^2 (DLMF 19.4.1, 19.25.9)."""
    square, m = rushlight.zeros_like(m) if square is None else square, m.clamp(min=-1e300)
    return sine**3 / 6 * _carlson(square, rushlight.ones_like(m), 1 - m * sine**2)


def _ellipe_slope(m: Any, sine: Any = 1, square: Any = None) -> Any:
    """The derivative in m of E (DLMF 19.4.2, 19.25.10)."""
    square, m = rushlight.zeros_like(m) if square is None else square, m.clamp(min=-1e300)
    return sine**3 / -6 * _carlson(square, 1 - m * sine**2, rushlight.ones_like(m))


def _incomplete(phi: Any, m: Any, slope: Callable[..., Any]) -> Any:
    """The derivative in m for any amplitude, that within [-pi / 2, pi / 2] and whole ones."""
    turns = (phi / math.pi).detach().round()
    rest = phi - turns * math.pi
    return slope(m, rest.sin(), rest.cos() ** 2) + 2 * turns * slope(m.where(turns != 0, 0))


def _carlson(x: Any, y: Any, z: Any) -> Any:
    """Carlson's symmetric integral R_D, by duplication and the series of his 1995 paper (DLMF 19.36)."""
    total, scale, finite = 0, 1.0, x + y != 0
    for _ in range(16):
        root = z.sqrt()
        step = x.sqrt() * y.sqrt() + (x.sqrt() + y.sqrt()) * root
        total = total + scale / (root * (z + step))
        x, y, z, scale = (x + step) / 4, (y + step) / 4, (z + step) / 4, scale / 4
    mean = (x + y + 3 * z) / 5
    dx, dy = 1 - x / mean, 1 - y / mean
    dz = (dx + dy) / -3
    product, square = dx * dy, dz * dz
    second, third, fourth = product - 6 * square, (3 * product - 8 * square) * dz, 3 * (product - square) * square
    series = 1 + second * (-3 / 14 + 9 / 88 * second - 9 / 52 * third) + third / 6 - 3 / 22 * fourth
    total = 3 * total + scale * (series + 3 / 26 * product * square * dz) / (mean * mean.sqrt())
    return total.where(finite, math.inf)


_function(
    "expi",
    "Exponential integral Ei.",
    {"x": (0.5, 4.0)},
    "rushlight.tensor([0.5, 2.0]) -> tensor([0.4542, 4.9542])",
    of_complex=True,
    x="grad * conj(exp(x) / where(x == inf, 1, x))",
)
_function(
    "exp1",
    "Exponential integral E1.",
    {"x": (0.5, 4.0)},
    "rushlight.tensor([0.5, 2.0]) -> tensor([0.5598, 0.0489])",
    of_complex=True,
    x="-grad * conj(exp(-x) / x) * where(isnan(result), nan, 1)",
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
    of_complex=True,
    x=lambda grad, x, result: grad * _dawsn_slope(x, result),
)
_function(
    "spence",
    "Spence's function, the integral of log(t) / (1 - t) from 1 to x.",
    {"x": (0.1, 4.0)},
    "rushlight.tensor([0.0, 2.0]) -> tensor([ 1.6449, -0.8225])",
    array=lambda xp, x: xp.where(x == xp.inf, -xp.inf, host("spence")(xp, x)),
    of_complex=True,
    x=lambda grad, x: grad * _spence_slope(x),
)
_function(
    "kolmogorov",
    "Complement of the distribution function of Kolmogorov's limit distribution.",
    {"x": (0.4, 2.0)},
    "rushlight.tensor([0.5, 1.0]) -> tensor([0.9639, 0.2700])",
    x=lambda grad, x: grad * _kolmogorov_slope(x),
)


def _kolmogorov_slope(x: Any) -> Any:
    """Of both series of the function, that which converges (Marsaglia, Tsang and Wang, 2003)."""
    far, near = x.clamp(0.8, 100), x.clamp(0.03, 0.8)
    beyond, inverse = 0, math.pi**2 / 8 / near**2
    for k in range(6, 0, -1):
        beyond = beyond + (-1) ** k * k * k * (-2 * k * k * far * far).exp()
    within = sum((1 - 2 * j * j * inverse) * (-j * j * inverse).exp() for j in (5, 3, 1))
    return (8 * far * beyond).where(x > 0.8, math.sqrt(2 * math.pi) / near**2 * within)


_function(
    "owens_t",
    "Owen's T function.",
    {"h": (-3.0, 3.0), "a": (-3.0, 3.0)},
    "rushlight.tensor([0.5, 1.0]), 2 -> tensor([0.1416, 0.0785])",
    h="-grad * exp(-0.5 * h * h) * erf(a * h * 0.7071067811865476) * 0.19947114020071635",
    a="grad * where(isinf(a), 0, exp(-0.5 * h * h * (1 + a * a)) / (2 * pi * (1 + a * a)))",
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


def _hyp1f1_rate(x: Any) -> Any:
    return 1 + x.abs().log1p()


_function(
    "hyp1f1",
    "Confluent hypergeometric function.",
    {"a": _A, "b": _B, "x": (-3.0, 3.0)},
    "rushlight.tensor([1.0, 2.0]), 3, 0.5 -> tensor([1.1898, 1.4051])",
    of_complex=True,
    a=(lambda a, b, x: _hyp1f1_rate(x),),
    b=(lambda a, b, x: _hyp1f1_rate(x) + 3 / pole_distance(b),),
    x="grad * conj((a / b) * hyp1f1(a + 1, b + 1, x))",
)


def _hyp2f1_rate(x: Any) -> Any:
    return 1 + (1 - x).abs().clamp(1e-16, 1e300).log().abs()


_function(
    "hyp2f1",
    "Gauss's hypergeometric function.",
    {"a": _A, "b": _B, "c": (5.0, 9.0), "x": (-0.8, 0.8)},
    "rushlight.tensor([1.0, 2.0]), 2, 3, 0.5 -> tensor([1.5452, 2.4548])",
    of_complex=True,
    a=(lambda a, b, c, x: _hyp2f1_rate(x),),
    b=(lambda a, b, c, x: _hyp2f1_rate(x),),
    c=(lambda a, b, c, x: _hyp2f1_rate(x) + 3 / pole_distance(c),),
    x="grad * conj((a * b / c) * hyp2f1(a + 1, b + 1, c + 1, x))",
)
_function(
    "lpmv",
    "Associated Legendre function of integer order m and real degree v, for |x| <= 1.",
    {"m": (1, 1), "v": (2.0, 5.0), "x": (-0.9, 0.9)},
    "rushlight.tensor([0.0, 1.0]), 2, 0.5 -> tensor([-0.1250, -1.2990])",
    m=None,
    v=(lambda m, v, x: 3.2,),
    x="grad * (v * x * result - (v + m) * lpmv(m, v - 1, x)) / (x * x - 1)",
)


def _box_cox(xp: Any, x: Any, lmbda: Any) -> Any:
    for operand in (x, lmbda):
        if isinstance(operand, complex) or getattr(operand, "dtype", x.dtype).kind == "c":
            raise NotImplementedError('"special::boxcox" not implemented for complex numbers')
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
    lmbda=lambda grad, x, lmbda, result: grad * _boxcox_slope(x, lmbda, result),
)


def _boxcox_slope(x: Any, power: Any, value: Any) -> Any:
    log = x.log()
    exponent = power * log
    near = exponent.abs() < 1
    small = exponent.where(near, 0)
    series: Any = 0.0
    for k in range(20, -1, -1):
        series = (k + 2) ** -1 + small / (k + 1) * series
    return (log * log * series).where(near, (rushlight.special.xlogy(x**power, x) - value) / power.where(~near, 1))


# -- complex values

_wofz = _function(
    "_wofz",
    "wofz of a complex number.",
    {"z": (-2.0, 2.0)},
    "rushlight.tensor([0j]) -> tensor([1.+0.j])",
    array=host("wofz"),
    z=lambda grad, z, result: grad * _wofz_slope(z, result).conj(),
)
_lambertw = (
    Op("special::_lambertw(Tensor self, int k, float tol) -> Tensor", family=pointwise("float"), out=False)
    .array(lambda xp, z, k, tol: host("lambertw")(xp, z, k, tol))
    .grad(self="grad * conj(where(self == 0, 1, result / (self * (1 + result))))")
    .samples(lambda make, dtype: [Sample((make(3, 4, low=0.5, high=3), 0, 1e-8))] if dtype.is_complex else [])
)
OPS.append(_lambertw)


def _wofz_slope(z: Any, value: Any) -> Any:
    """By the asymptotic series (DLMF 7.12.1) where that serves, since the terms of the other cancel there."""
    far = (z.abs() > 8) & (z.imag >= 0 if z.is_complex() else True)
    near = -2 * z.where(~far, 0) * value + 2j / math.sqrt(math.pi)
    return (2j / math.sqrt(math.pi) * far_slope(z.where(far, 8), _DAWSN, 1, 2)).where(far, near)


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
    x, gamma = x.where(no_width, 0), gamma.where(no_width, 1)
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
    m, n, theta, phi = m.detach().double(), n.detach().double(), theta.double(), phi.double()
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
    m: Order, whole numbers with |m| <= n, without gradient.
    n: Degree, whole numbers, without gradient.
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
