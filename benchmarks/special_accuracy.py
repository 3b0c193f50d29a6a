"""Errors of the special functions in units of the last place: rushlight's, SciPy's and PyTorch's where it is installed.

    python benchmarks/special_accuracy.py [--points 10000] [--only REGEX] [--write docs/special-accuracy.md]
                                          [--cache FOLDER]

The oracle is mpmath in 50 digits. Points are half even over the interval of the last argument, half even in their
logarithm, on both sides of zero where the function has both; an argument before is even in its logarithm, an order or
degree over the whole numbers from 0 to 20. Results next to a zero of the function are left out: those that are less
than a quarter of its size nearby, or of the terms that cancel there. Maximum and 99.9th percentile.
"""

import argparse
import importlib
import pickle
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np
import scipy.special

import rushlight

TINY = 1e-300
DEGREES = range(21)


class Function(NamedTuple):
    """A function of mpmath, and where it is looked at.

    An argument is an interval or a range of whole numbers.
    """

    exact: Callable[..., Any]
    arguments: tuple[tuple[float, float] | range, ...]
    scipy: str | Callable[..., Any] | None = None
    size: Callable[..., Any] | None = None
    """What results are compared with, to leave out those near zeros."""
    call: Callable[..., Any] | None = None
    """Of `special` and the arguments, where it is not the function of that name."""


def one(*args: Any) -> int:
    return 1


def log_erfc(x: Any) -> Any:
    return mp.log(mp.erfc(x)) if x > 0.1 else mp.log1p(-mp.erf(x))


def inverse_erfc(y: Any) -> Any:
    """By Newton's method on log(erfc), from the first term of its expansion."""
    x = mp.mpf(scipy.special.erfcinv(float(y)))
    for _ in range(4):
        x += (mp.log(mp.erfc(x)) - mp.log(y)) * mp.erfc(x) * mp.exp(x * x) * mp.sqrt(mp.pi) / 2
    return x


def zeta(s: Any, q: Any) -> Any:
    """With digits for what mpmath adds up to 1 before it takes the rest away."""
    with mp.workdps(60 + int(s * mp.log10(q + 1))):
        return mp.zeta(s, q)


def riemann_less_1(x: Any) -> Any:
    with mp.workdps(120):
        return mp.zeta(x) - 1


def wave(x: Any) -> Any:
    """The amplitude of Bessel functions of order 0 and 1, but for a factor."""
    return mp.sqrt(1 / (abs(x) + 1))


def waves(v: Any, x: Any) -> Any:
    """The amplitude of Bessel functions of any order; 0 before the first zero, which is beyond v."""
    return mp.sqrt(1 / x) if x > v else 0


def lower_gamma(a: Any, x: Any) -> Any:
    return mp.gammainc(a, 0, x, regularized=True)


def upper_gamma(a: Any, x: Any) -> Any:
    return mp.gammainc(a, x, regularized=True)


def beta_share(a: Any, b: Any, x: Any) -> Any:
    return mp.betainc(a, b, 0, x, regularized=True)


def inverse(function: Callable[..., Any], slope: Callable[..., Any], start: Callable[..., float]) -> Callable[..., Any]:
    """Of a distribution function in its last argument: Newton's method on the logarithm, from a float."""

    def root(*args: Any) -> Any:
        *parameters, y = args
        x = mp.mpf(float(start(*map(float, args))))
        for _ in range(3):
            value = function(*parameters, x)
            x -= value * mp.log(value / y) / slope(*parameters, x)
        return x

    return root


def gamma_density(a: Any, x: Any) -> Any:
    return mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a))


def beta_density(a: Any, b: Any, x: Any) -> Any:
    return x ** (a - 1) * (1 - x) ** (b - 1) / mp.beta(a, b)


def kolmogorov(x: Any) -> Any:
    if x < 0.8:  # by the functional equation of theta functions
        terms = (mp.exp(-(((2 * k + 1) * mp.pi) ** 2) / (8 * x * x)) for k in range(20))
        return 1 - mp.sqrt(2 * mp.pi) / x * mp.fsum(terms)
    return 2 * mp.fsum((-1) ** (k - 1) * mp.exp(-2 * k * k * x * x) for k in range(1, 20))


def owens_t(h: Any, a: Any) -> Any:
    def density(t: Any) -> Any:
        return mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t)

    ends = [end for end in (0, 1 / (4 * h), 1 / h, 4 / h, 16 / h) if end < a]
    return mp.quad(density, [*ends, a]) / (2 * mp.pi)


def faddeeva(z: Any) -> Any:
    return mp.exp(-z * z) * mp.erfc(-1j * z)


def voigt(x: Any, sigma: Any, gamma: Any) -> Any:
    return faddeeva(mp.mpc(x, gamma) / (sigma * mp.sqrt(2))).real / (sigma * mp.sqrt(2 * mp.pi))


def legendre(m: Any, v: Any, x: Any) -> Any:
    return mp.legenp(v, m, x, type=2)


def spherical_harmonic(m: Any, n: Any, phi: Any) -> Any:
    """At azimuth 0."""
    scale = mp.sqrt((2 * n + 1) / (4 * mp.pi) * mp.factorial(n - m) / mp.factorial(n + m))
    return scale * mp.re(legendre(m, n, mp.cos(phi)))


def steps(first: Callable[..., Any], following: Callable[..., Any], x: Any, n: int) -> tuple[Any, Any]:
    """A polynomial of degree n, and the greatest size of what its last step adds up."""
    before, now, size = mp.mpf(0), mp.mpf(1), mp.mpf(1)
    for k in range(n):
        terms = (first(x),) if k == 0 else following(x, k, now, before)
        before, now, size = now, sum(terms), sum(map(abs, terms))
    return now, size


def polynomial(
    name: str, first: Callable[..., Any], following: Callable[..., Any], in_scipy: str | None, shifted: bool = False
) -> Function:
    def both(n: int, x: Any) -> tuple[Any, Any]:
        return steps(first, following, 2 * x - 1 if shifted else x, n)

    return Function(
        lambda n, x: both(n, x)[0],
        (DEGREES, (-1, 2)),
        in_scipy,
        lambda n, x: both(n, x)[1],
        lambda special, n, x: getattr(special, name)(x, n),
    )


def chebyshev() -> dict[str, Function]:
    firsts = {
        "t": lambda x: x, "u": lambda x: 2 * x, "v": lambda x: 2 * x - 1, "w": lambda x: 2 * x + 1
    }  # fmt: skip
    found = {}
    for shifted in (False, True):
        for kind, first in firsts.items():
            name = f"{'shifted_' if shifted else ''}chebyshev_polynomial_{kind}"
            in_scipy = f"eval_{'sh_' if shifted else ''}cheby{kind}" if kind in "tu" else None
            found[name] = polynomial(name, first, lambda x, k, now, before: (2 * x * now, -before), in_scipy, shifted)
    return found


@cache
def roots_of_bessel(special: Any) -> np.ndarray:
    return np.array([np.asarray(special.jn_zeros(n, 480)) for n in DEGREES])


def root_of_bessel(n: int, k: int) -> Any:
    x = mp.mpf(float(roots_of_bessel(scipy.special)[n, k - 1]))
    for _ in range(2):
        x -= mp.besselj(n, x) / mp.besselj(n, x, 1)
    return x


def polygamma(special: Any, n: Any, x: Any) -> Any:
    """Which takes one order for all elements."""
    result = 0 * x
    for order in sorted({*n.tolist()}):
        result[n == order] = special.polygamma(order, x[n == order])
    return result


A, B, UNIT, ORDER = (1e-2, 200), (1e-2, 200), (TINY, 0.999999), (1e-2, 50)

FUNCTIONS = {
    # Error functions and the normal distribution
    "erf": Function(mp.erf, ((-6, 6),), "erf"),
    "erfc": Function(mp.erfc, ((-6, 26.5),), "erfc"),
    "erfcx": Function(lambda x: mp.exp(x * x) * mp.erfc(x), ((-26, 1e8),), "erfcx"),
    "logerfc": Function(log_erfc, ((-6, 1e4),)),
    "logerfcx": Function(lambda x: x * x + log_erfc(x), ((-100, 1e4),)),
    "ndtr": Function(lambda x: mp.erfc(-x / mp.sqrt(2)) / 2, ((-37, 9),), "ndtr"),
    "log_ndtr": Function(lambda x: log_erfc(-x / mp.sqrt(2)) - mp.log(2) if x < 0
                         else mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2), ((-1e3, 9),), "log_ndtr"),
    "erfinv": Function(mp.erfinv, ((-0.999999, 0.999999),), "erfinv"),
    "ndtri": Function(lambda p: -mp.sqrt(2) * inverse_erfc(2 * p), ((TINY, 0.49),), "ndtri"),
    "erfcinv": Function(inverse_erfc, ((TINY, 0.999),), "erfcinv"),
    # Bessel functions of order 0 and 1, Airy's
    "i0": Function(lambda x: mp.besseli(0, x), ((-700, 700),), "i0"),
    "i1": Function(lambda x: mp.besseli(1, x), ((-700, 700),), "i1"),
    "i0e": Function(lambda x: mp.exp(-abs(x)) * mp.besseli(0, x), ((-1e4, 1e4),), "i0e"),
    "i1e": Function(lambda x: mp.exp(-abs(x)) * mp.besseli(1, x), ((-1e4, 1e4),), "i1e"),
    "modified_bessel_i0": Function(lambda x: mp.besseli(0, x), ((-700, 700),), "i0"),
    "modified_bessel_i1": Function(lambda x: mp.besseli(1, x), ((-700, 700),), "i1"),
    "modified_bessel_k0": Function(lambda x: mp.besselk(0, x), ((TINY, 700),), "k0"),
    "modified_bessel_k1": Function(lambda x: mp.besselk(1, x), ((TINY, 700),), "k1"),
    "scaled_modified_bessel_k0": Function(lambda x: mp.exp(x) * mp.besselk(0, x), ((TINY, 1e4),), "k0e"),
    "scaled_modified_bessel_k1": Function(lambda x: mp.exp(x) * mp.besselk(1, x), ((TINY, 1e4),), "k1e"),
    "bessel_j0": Function(lambda x: mp.besselj(0, x), ((-1e3, 1e3),), "j0", wave),
    "bessel_j1": Function(lambda x: mp.besselj(1, x), ((-1e3, 1e3),), "j1", lambda x: min(wave(x), abs(x))),
    "bessel_y0": Function(lambda x: mp.bessely(0, x), ((TINY, 1e3),), "y0", wave),
    "bessel_y1": Function(lambda x: mp.bessely(1, x), ((TINY, 1e3),), "y1", wave),
    "spherical_bessel_j0": Function(lambda x: mp.sin(x) / x, ((-1e3, 1e3),), lambda x: scipy.special.spherical_jn(0, x),
                                    lambda x: 1 / (abs(x) + 1)),
    "airy_ai": Function(mp.airyai, ((-50, 90),), lambda x: scipy.special.airy(x)[0],
                        lambda x: (abs(x) + 1) ** -0.25 if x < 0 else 0),
    # Gamma and zeta
    "gammaln": Function(lambda x: mp.log(abs(mp.gamma(x))), ((-50, 1e6),), "gammaln", lambda x: 1 if x < 0 else 0),
    "multigammaln": Function(lambda x: 3 * mp.log(mp.pi) / 2 + sum(mp.loggamma(x - mp.mpf(j) / 2) for j in range(3)),
                             ((1.0001, 1e6),), None, lambda x: 2 + x, lambda special, x: special.multigammaln(x, 3)),
    "digamma": Function(mp.digamma, ((-50, 1e6),), "digamma", one),
    "psi": Function(mp.digamma, ((-50, 1e6),), "psi", one),
    "polygamma": Function(mp.psi, (range(1, 9), (-8, 1e6)), "polygamma",
                          lambda n, x: mp.factorial(n) if x < 0 else 0, polygamma),
    "zeta": Function(zeta, ((1.01, 60), (1e-3, 1e4)), "zeta"),
    "gammainc": Function(lower_gamma, (A, (1e-3, 300)), "gammainc"),
    "gammaincc": Function(upper_gamma, (A, (1e-3, 300)), "gammaincc"),
    # Elementary
    "logit": Function(lambda x: mp.log(x / (1 - x)), ((TINY, 0.9999999),), "logit"),
    "expit": Function(lambda x: 1 / (1 + mp.exp(-x)), ((-700, 40),), "expit"),
    "expm1": Function(mp.expm1, ((-40, 700),), "expm1"),
    "log1p": Function(mp.log1p, ((-0.9999999, 1e30),), "log1p"),
    "exp2": Function(lambda x: mp.power(2, x), ((-1000, 1000),), "exp2"),
    "sinc": Function(mp.sincpi, ((-100, 100),), np.sinc, lambda x: 1 / (abs(x) + 1)),
    "xlogy": Function(lambda x, y: x * mp.log(y), ((1e-30, 1e30), (TINY, 1e30)), "xlogy"),
    "xlog1py": Function(lambda x, y: x * mp.log1p(y), ((1e-30, 1e30), (TINY, 1e30)), "xlog1py"),
    "entr": Function(lambda x: -x * mp.log(x), ((TINY, 1e3),), "entr"),
    "logsumexp": Function(lambda x, y: mp.log(mp.exp(x) + mp.exp(y)), ((1e-3, 600), (-600, 600)),
                          lambda x, y: scipy.special.logsumexp([x, y], axis=0), one,
                          lambda special, x, y: special.logsumexp(stacked(x, y), 0)),
    "softmax": Function(lambda x, y: 1 / (1 + mp.exp(y - x)), ((1e-3, 600), (-80, 600)),
                        lambda x, y: scipy.special.softmax([x, y], axis=0)[0], None,
                        lambda special, x, y: special.softmax(stacked(x, y), 0)[0]),
    "log_softmax": Function(lambda x, y: -mp.log1p(mp.exp(y - x)), ((1e-3, 600), (-80, 600)),
                            lambda x, y: scipy.special.log_softmax([x, y], axis=0)[0], one,
                            lambda special, x, y: special.log_softmax(stacked(x, y), 0)[0]),
    # Orthogonal polynomials
    **chebyshev(),
    "hermite_polynomial_h": polynomial("hermite_polynomial_h", lambda x: 2 * x,
                                       lambda x, k, now, before: (2 * x * now, -2 * k * before), "eval_hermite"),
    "hermite_polynomial_he": polynomial("hermite_polynomial_he", lambda x: x,
                                        lambda x, k, now, before: (x * now, -k * before), "eval_hermitenorm"),
    "laguerre_polynomial_l": polynomial("laguerre_polynomial_l", lambda x: 1 - x, lambda x, k, now, before: (
        (2 * k + 1) * now / (k + 1), -x * now / (k + 1), -k * before / (k + 1)), "eval_laguerre"),
    "legendre_polynomial_p": polynomial("legendre_polynomial_p", lambda x: x, lambda x, k, now, before: (
        (2 * k + 1) * x * now / (k + 1), -k * before / (k + 1)), "eval_legendre"),
    # Computed by SciPy
    "beta": Function(mp.beta, (A, B), "beta"),
    "betaln": Function(lambda a, b: mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b), (A, B), "betaln", one),
    "betainc": Function(beta_share, (A, B, UNIT), "betainc"),
    "betaincinv": Function(inverse(beta_share, beta_density, scipy.special.betaincinv),
                           ((0.1, 50), (0.1, 50), (1e-9, 0.999)), "betaincinv"),
    "gammaincinv": Function(inverse(lower_gamma, gamma_density, scipy.special.gammaincinv),
                            ((0.1, 200), (1e-9, 0.999)), "gammaincinv"),
    "gammainccinv": Function(inverse(upper_gamma, lambda a, x: -gamma_density(a, x), scipy.special.gammainccinv),
                             ((0.1, 200), (1e-9, 0.999)), "gammainccinv"),
    "rgamma": Function(mp.rgamma, ((-50, 170),), "rgamma"),
    "binom": Function(mp.binomial, ((1e-2, 100), (1e-3, 100)), "binom", lambda n, k: 1 if k > n else 0),
    "poch": Function(mp.rf, (A, (1e-3, 50)), "poch"),
    "loggamma": Function(mp.loggamma, ((TINY, 1e6),), "loggamma"),
    "zetac": Function(riemann_less_1, ((1.0001, 200),), "zetac"),
    "jv": Function(mp.besselj, (ORDER, (1e-3, 500)), "jv", waves),
    "yv": Function(mp.bessely, (ORDER, (1e-3, 500)), "yv", waves),
    "iv": Function(mp.besseli, (ORDER, (1e-3, 600)), "iv"),
    "ive": Function(lambda v, x: mp.besseli(v, x) * mp.exp(-x), (ORDER, (1e-3, 5000)), "ive"),
    "kv": Function(mp.besselk, (ORDER, (1e-3, 600)), "kv"),
    "kve": Function(lambda v, x: mp.besselk(v, x) * mp.exp(x), (ORDER, (1e-3, 5000)), "kve"),
    "jn_zeros": Function(root_of_bessel, (DEGREES, range(1, 481)),
                         lambda n, k: roots_of_bessel(scipy.special)[n, k - 1], None,
                         lambda special, n, k: rushlight.from_numpy(
                             roots_of_bessel(special)[n.numpy(), k.numpy() - 1])),
    "ellipk": Function(mp.ellipk, ((-1e4, 0.999999),), "ellipk"),
    "ellipe": Function(mp.ellipe, ((-1e4, 0.999999),), "ellipe"),
    "ellipkinc": Function(mp.ellipf, ((1e-3, 1.57), (-100, 0.999)), "ellipkinc"),
    "ellipeinc": Function(mp.ellipe, ((1e-3, 1.57), (-100, 0.999)), "ellipeinc"),
    "expi": Function(mp.ei, ((-600, 700),), "expi", lambda x: 1 if 0 < x < 1 else 0),
    "exp1": Function(mp.e1, ((TINY, 700),), "exp1"),
    "expn": Function(mp.expint, (range(21), (1e-3, 700)), "expn"),
    "lambertw": Function(mp.lambertw, ((-0.36, 1e30),), "lambertw"),
    "wofz": Function(lambda x, y: faddeeva(mp.mpc(x, y)), ((1e-3, 30), (1e-3, 30)),
                     lambda x, y: scipy.special.wofz(x + 1j * y), None,
                     lambda special, x, y: special.wofz(rushlight.complex(x, y))),
    "dawsn": Function(lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x), ((-1e3, 1e3),), "dawsn"),
    "fresnel": Function(mp.fresnels, ((-50, 50),), lambda x: scipy.special.fresnel(x)[0], None,
                        lambda special, x: special.fresnel(x)[0]),
    "fresnel, C": Function(mp.fresnelc, ((-50, 50),), lambda x: scipy.special.fresnel(x)[1], None,
                           lambda special, x: special.fresnel(x)[1]),
    "hyp1f1": Function(mp.hyp1f1, ((0.1, 20), (0.1, 20), (-30, 30)), "hyp1f1"),
    "hyp2f1": Function(mp.hyp2f1, ((0.1, 10), (0.1, 10), (0.1, 10), (-0.99, 0.99)), "hyp2f1"),
    "lpmv": Function(legendre, (range(5), (4.5, 20), (-0.999, 0.999)), "lpmv",
                     lambda m, v, x: mp.gamma(v + m + 1) / mp.gamma(v + 1) / mp.sqrt(v)),
    "sph_harm": Function(spherical_harmonic, (range(4), range(4, 12), (1e-3, 3.14)),
                         lambda m, n, phi: scipy.special.sph_harm_y(n, m, phi, 0 * phi).real, one,
                         lambda special, m, n, phi: special.sph_harm(m, n, 0 * phi, phi).real),
    "spence": Function(lambda x: mp.re(mp.polylog(2, 1 - x)), ((TINY, 1e6),), "spence"),
    "struve": Function(mp.struveh, ((0.1, 20), (1e-3, 100)), "struve", lambda v, x: wave(x) if x > v else 0),
    "voigt_profile": Function(voigt, ((1e-3, 30), (0.1, 10), (1e-3, 30)), "voigt_profile"),
    "kolmogorov": Function(kolmogorov, ((0.05, 18),), "kolmogorov"),
    "owens_t": Function(owens_t, ((1e-3, 8), (1e-3, 8)), "owens_t"),
    "boxcox": Function(lambda x, p: mp.expm1(p * mp.log(x)) / p, ((1e-3, 1e3), (-20, 20)), "boxcox"),
}  # fmt: skip


def stacked(x: Any, y: Any) -> Any:
    return importlib.import_module(type(x).__module__.partition(".")[0]).stack([x, y])


def spread(low: float, high: float, count: int) -> np.ndarray:
    """Half of the points even, half of them even in the logarithm."""
    random = np.random.default_rng(0)

    def logarithmic(start: float, end: float, n: int) -> np.ndarray:
        return np.copysign(np.exp(random.uniform(np.log(start), np.log(abs(end)), n)), end)

    sides = [(low, high)] if low > 0 else [(TINY, end) for end in (low, high) if end]
    parts = [logarithmic(*side, count // 2 // len(sides)) for side in sides]
    return np.concatenate([random.uniform(low, high, count - sum(map(len, parts))), *parts])


def errors(results: np.ndarray, exact: list[Any]) -> np.ndarray:
    """In units of the last place of the exact values; infinite where a result is not finite and should be."""
    real = results.real.dtype.type

    def error(result: Any, value: Any) -> float:
        with np.errstate(over="ignore"):
            rounded = real(float(abs(value)))
        if not np.isfinite(rounded) or not np.isfinite(result):
            return 0.0 if abs(result) == rounded and (value.real > 0) == (result.real > 0) else np.inf
        return float(abs(mp.mpmathify(complex(result)) - value) / mp.mpf(float(np.spacing(rounded))))

    return np.array([error(result, value) for result, value in zip(results, exact, strict=True)])


def arguments_of(function: Function, points: int, dtype: Any) -> list[np.ndarray]:
    *before, last = function.arguments
    found = []
    for place, argument in enumerate(before, 1):
        random = np.random.default_rng(place)
        if isinstance(argument, tuple):
            found.append(np.exp(random.uniform(*np.log(argument), points)).astype(dtype))
        else:
            found.append(random.choice(argument, points))
    if isinstance(last, tuple):
        found.append(spread(*last, points).astype(dtype))
        keep = found[-1] != 0
        return [a[keep] for a in found]
    return [*found, np.random.default_rng(0).choice(last, points)]


def evaluated(lib: Any, name: str, arguments: list[np.ndarray], function: Function) -> np.ndarray:
    """By a library of tensors."""
    call = function.call or (lambda special, *args: getattr(special, name)(*args))
    return call(lib.special, *map(lib.from_numpy, arguments)).numpy()


def places_of(arguments: list[np.ndarray]) -> list[list[Any]]:
    convert = [(lambda v: mp.mpf(float(v))) if a.dtype.kind == "f" else int for a in arguments]
    return [[c(v) for c, v in zip(convert, values, strict=True)] for values in zip(*arguments, strict=True)]


def exact_values(name: str, function: Function, places: list[list[Any]], cached: Path | None) -> list[Any]:
    if cached and cached.exists():
        return pickle.loads(cached.read_bytes())
    exact = [function.exact(*place) for place in places]
    if cached:
        cached.write_bytes(pickle.dumps(exact))
    return exact


def measure(name: str, function: Function, points: int, torch: Any, folder: Path | None) -> list[str]:
    """The cells of one row."""
    row = [f"`{name}`"]
    for dtype in (np.float64, np.float32):
        arguments = arguments_of(function, points, dtype)
        places = places_of(arguments)
        cached = folder and folder / f"{name}-{np.dtype(dtype).name}-{points}.pickle"
        exact = exact_values(name, function, places, cached)
        # What is no normal number has less than a whole last place.
        keep = [i for i, value in enumerate(exact) if np.finfo(dtype).tiny < abs(value) < np.finfo(dtype).max]
        if function.size:
            keep = [i for i in keep if abs(exact[i]) > function.size(*places[i]) / 4]
        arguments, exact = [a[keep] for a in arguments], [exact[i] for i in keep]
        in_scipy = function.scipy if callable(function.scipy) else getattr(scipy.special, function.scipy or "", None)
        for results in (
            evaluated(rushlight, name, arguments, function),
            in_scipy(*arguments) if in_scipy else None,
            evaluated(torch, name, arguments, function) if torch and hasattr(torch.special, name) else None,
        ):
            if results is None:
                row.append("")
                continue
            found = errors(results, exact)
            row.append(f"{found.max():.3g} / {np.quantile(found, 0.999, method='higher'):.3g}")
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--cache", type=Path, help="keeps the oracle's values, which take most of the time")
    options = parser.parse_args()
    if options.cache:
        options.cache.mkdir(exist_ok=True)
    mp.mp.dps = 50
    try:
        torch = importlib.import_module("torch")
    except ModuleNotFoundError:
        torch = None
    columns = ["function", *(f"{who} {bits}" for bits in (64, 32) for who in ("rushlight", "SciPy", "PyTorch"))]
    lines = [f"| {' | '.join(columns)} |", "| --- |" + " ---: |" * 6]
    for name, function in FUNCTIONS.items():
        if re.search(options.only, name):
            lines.append(f"| {' | '.join(measure(name, function, options.points, torch, options.cache))} |")
            print(lines[-1], flush=True)
    if options.write:
        version = torch.__version__.partition("+")[0] if torch else "absent"
        title = "# Accuracy of the special functions\n\n"
        about = (
            f"{__doc__}".split("\n\n")[2].strip()
            + f"\n\nMade by `benchmarks/special_accuracy.py` with {options.points} points a function, SciPy"
            f" {scipy.__version__}, PyTorch {version}.\n\n"
        )
        options.write.write_text(title + about + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
