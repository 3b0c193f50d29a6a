"""Errors of the special functions in units of the last place: rushlight's, SciPy's and PyTorch's where it is installed.

    python benchmarks/special_accuracy.py [--points 10000] [--only REGEX] [--write docs/special-accuracy.md]

The oracle is mpmath in 50 digits. Points are half even over an interval, half even in their logarithm, on both sides of
zero where the function has both; a second argument is even in its logarithm. Results next to a zero of the function are
left out: those that are less than a quarter of its size nearby. Maximum and 99.9th percentile.
"""

import argparse
import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np
import scipy.special

import rushlight

TINY = 1e-300


class Function(NamedTuple):
    """A function of mpmath, the interval of its last argument, and the name in SciPy."""

    exact: Callable[..., Any]
    low: float
    high: float
    scipy: str | None = None
    size: Callable[..., Any] | None = None
    """What results are compared with, to leave out those near zeros."""
    first: tuple[float, float] | int | None = None
    """The interval of an argument before, or its one value."""


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


def wave(x: Any) -> Any:
    """The amplitude of Bessel functions of order 0 and 1, but for a factor."""
    return mp.sqrt(1 / (abs(x) + 1))


FUNCTIONS = {
    "erf": Function(mp.erf, -6, 6, "erf"),
    "erfc": Function(mp.erfc, -6, 26.5, "erfc"),
    "erfcx": Function(lambda x: mp.exp(x * x) * mp.erfc(x), -26, 1e8, "erfcx"),
    "logerfc": Function(log_erfc, -6, 1e4),
    "logerfcx": Function(lambda x: x * x + log_erfc(x), -100, 1e4),
    "ndtr": Function(lambda x: mp.erfc(-x / mp.sqrt(2)) / 2, -37, 9, "ndtr"),
    "log_ndtr": Function(lambda x: log_erfc(-x / mp.sqrt(2)) - mp.log(2) if x < 0
                         else mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2), -1e3, 9, "log_ndtr"),
    "erfinv": Function(mp.erfinv, -0.999999, 0.999999, "erfinv"),
    "i0": Function(lambda x: mp.besseli(0, x), -700, 700, "i0"),
    "i1": Function(lambda x: mp.besseli(1, x), -700, 700, "i1"),
    "i0e": Function(lambda x: mp.exp(-abs(x)) * mp.besseli(0, x), -1e4, 1e4, "i0e"),
    "i1e": Function(lambda x: mp.exp(-abs(x)) * mp.besseli(1, x), -1e4, 1e4, "i1e"),
    "modified_bessel_k0": Function(lambda x: mp.besselk(0, x), TINY, 700, "k0"),
    "modified_bessel_k1": Function(lambda x: mp.besselk(1, x), TINY, 700, "k1"),
    "scaled_modified_bessel_k0": Function(lambda x: mp.exp(x) * mp.besselk(0, x), TINY, 1e4, "k0e"),
    "scaled_modified_bessel_k1": Function(lambda x: mp.exp(x) * mp.besselk(1, x), TINY, 1e4, "k1e"),
    "bessel_j0": Function(lambda x: mp.besselj(0, x), -1e3, 1e3, "j0", wave),
    "bessel_j1": Function(lambda x: mp.besselj(1, x), -1e3, 1e3, "j1", lambda x: min(wave(x), abs(x))),
    "bessel_y0": Function(lambda x: mp.bessely(0, x), TINY, 1e3, "y0", wave),
    "bessel_y1": Function(lambda x: mp.bessely(1, x), TINY, 1e3, "y1", wave),
    "spherical_bessel_j0": Function(lambda x: mp.sin(x) / x, -1e3, 1e3, None, lambda x: 1 / (abs(x) + 1)),
    "airy_ai": Function(mp.airyai, -50, 90, None, lambda x: (abs(x) + 1) ** -0.25 if x < 0 else 0),
    "gammaln": Function(lambda x: mp.log(abs(mp.gamma(x))), -50, 1e6, "gammaln", lambda x: 1 if x < 0 else 0),
    "digamma": Function(mp.digamma, -50, 1e6, "digamma", lambda x: 1),
    "polygamma": Function(mp.psi, -8, 1e6, "polygamma", lambda n, x: 1 if x < 0 else 0, 2),
    "zeta": Function(zeta, 1e-3, 1e4, "zeta", None, (1.01, 60)),
    "gammainc": Function(lambda a, x: mp.gammainc(a, 0, x, regularized=True), 1e-3, 300, "gammainc", None, (1e-2, 200)),
    "gammaincc": Function(lambda a, x: mp.gammainc(a, x, regularized=True), 1e-3, 300, "gammaincc", None, (1e-2, 200)),
    "ndtri": Function(lambda p: -mp.sqrt(2) * inverse_erfc(2 * p), TINY, 0.49, "ndtri"),
    "erfcinv": Function(inverse_erfc, TINY, 0.999, "erfcinv"),
    "logit": Function(lambda x: mp.log(x / (1 - x)), TINY, 0.9999999, "logit"),
    "expm1": Function(mp.expm1, -40, 700, "expm1"),
    "log1p": Function(mp.log1p, -0.9999999, 1e30, "log1p"),
    "exp2": Function(lambda x: mp.power(2, x), -1000, 1000, "exp2"),
    "sinc": Function(lambda x: mp.sincpi(x), -100, 100, None, lambda x: 1 / (abs(x) + 1)),
    "xlogy": Function(lambda x, y: x * mp.log(y), TINY, 1e30, "xlogy", None, (1e-30, 1e30)),
    "xlog1py": Function(lambda x, y: x * mp.log1p(y), TINY, 1e30, "xlog1py", None, (1e-30, 1e30)),
    "entr": Function(lambda x: -x * mp.log(x), TINY, 1e3, "entr"),
    "expit": Function(lambda x: 1 / (1 + mp.exp(-x)), -700, 40, "expit"),
}  # fmt: skip


def spread(low: float, high: float, count: int) -> np.ndarray:
    """Half of the points even, half of them even in the logarithm."""
    random = np.random.default_rng(0)

    def logarithmic(end: float, n: int) -> np.ndarray:
        return np.copysign(np.exp(random.uniform(np.log(1e-300), np.log(abs(end)), n)), end)

    ends = [end for end in (low, high) if abs(end) > TINY]
    parts = [logarithmic(end, count // 2 // len(ends)) for end in ends]
    return np.concatenate([random.uniform(low, high, count - sum(map(len, parts))), *parts])


def errors(results: np.ndarray, exact: list[Any]) -> np.ndarray:
    """In units of the last place of the exact values; infinite where a result is not finite and should be."""

    def error(result: Any, value: Any) -> float:
        with np.errstate(over="ignore"):
            rounded = results.dtype.type(float(value))
        if not np.isfinite(rounded) or not np.isfinite(result):
            return 0.0 if result == rounded else np.inf
        return float(abs(mp.mpf(float(result)) - value) / mp.mpf(float(np.spacing(abs(rounded)))))

    return np.array([error(result, value) for result, value in zip(results, exact, strict=True)])


def arguments_of(function: Function, points: int, dtype: Any) -> list[np.ndarray]:
    x = spread(function.low, function.high, points).astype(dtype)
    arguments = [x[x != 0]]
    if isinstance(function.first, tuple):
        logarithms = np.random.default_rng(1).uniform(*np.log(function.first), arguments[0].size)
        arguments.insert(0, np.exp(logarithms).astype(dtype))
    elif function.first is not None:
        arguments.insert(0, np.full(arguments[0].shape, function.first))
    return arguments


def evaluated(lib: Any, name: str, arguments: list[np.ndarray], function: Function) -> np.ndarray:
    """By a library of tensors."""
    tensors = [lib.from_numpy(a) for a in arguments]
    if isinstance(function.first, int):
        tensors[0] = function.first
    return getattr(lib.special, name)(*tensors).numpy()


def measure(name: str, function: Function, points: int, torch: Any) -> list[str]:
    """The cells of one row."""
    row = [f"`{name}`"]
    for dtype in (np.float64, np.float32):
        arguments = arguments_of(function, points, dtype)
        places = [
            [mp.mpf(float(v)) if a.dtype.kind == "f" else int(v) for a, v in zip(arguments, values, strict=True)]
            for values in zip(*arguments, strict=True)
        ]
        exact = [function.exact(*place) for place in places]
        # What is no normal number has less than a whole last place.
        keep = [i for i, value in enumerate(exact) if abs(value) > np.finfo(dtype).tiny]
        if function.size:
            keep = [i for i in keep if abs(exact[i]) > function.size(*places[i]) / 4]
        arguments, exact = [a[keep] for a in arguments], [exact[i] for i in keep]
        for results in (
            evaluated(rushlight, name, arguments, function),
            getattr(scipy.special, function.scipy)(*arguments) if function.scipy else None,
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
    options = parser.parse_args()
    mp.mp.dps = 50
    try:
        torch = importlib.import_module("torch")
    except ModuleNotFoundError:
        torch = None
    columns = ["function", *(f"{who} {bits}" for bits in (64, 32) for who in ("rushlight", "SciPy", "PyTorch"))]
    lines = [f"| {' | '.join(columns)} |", "| --- |" + " ---: |" * 6]
    for name, function in FUNCTIONS.items():
        if re.search(options.only, name):
            lines.append(f"| {' | '.join(measure(name, function, options.points, torch))} |")
            print(lines[-1], flush=True)
    if options.write:
        version = torch.__version__.partition("+")[0] if torch else "absent"
        title = "# Accuracy of the special functions\n\n"
        about = (
            f"{__doc__}".split("\n\n")[2].strip().replace("\n", "\n")
            + f"\n\nMade by `benchmarks/special_accuracy.py` with {options.points} points a function, SciPy"
            f" {scipy.__version__}, PyTorch {version}.\n\n"
        )
        options.write.write_text(title + about + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
