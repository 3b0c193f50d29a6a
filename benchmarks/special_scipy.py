"""Times the special functions beside SciPy's on the same values: a million of them, as float32 and float64.

    python benchmarks/special_scipy.py [--only REGEX] [--rounds 5] [--threads N]

A round times both libraries in turn, each at its best of a few calls; the ratio of a row is the median over the rounds,
below 1 rushlight is faster. SciPy's functions take NumPy arrays and run on one thread.
"""

import argparse
import math
import re
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.special

import rushlight

COUNT = 1_000_000


class Row(NamedTuple):
    ours: Callable[..., Any]
    scipys: Callable[..., Any]
    ranges: tuple[str, ...]


def values(kind: str, dtype: Any) -> np.ndarray:
    random = np.random.default_rng(len(kind))
    low, high = {
        "unit": (0.001, 0.999), "symmetric": (-0.995, 0.995), "wide": (-10, 10), "positive": (0.05, 20.05),
        "above 1": (1.05, 11.05), "parameter": (0.5, 10.5), "rows": (-10, 10),
    }[kind]  # fmt: skip
    found = random.uniform(low, high, COUNT).astype(dtype)
    return found.reshape(1000, -1) if kind == "rows" else found


def rows() -> Iterator[tuple[str, Row]]:
    ours, scipys = rushlight.special, scipy.special
    ranges = {
        "unit": "logit ndtri",
        "symmetric": "erfinv",
        "positive": "entr gammaln log1p digamma psi",
        "wide": "erf erfc erfcx exp2 expit expm1 i0 i0e i1 i1e ndtr log_ndtr sinc round",
    }
    for kind, names in ranges.items():
        for name in names.split():
            yield name, Row(getattr(ours, name), getattr(scipys, name), (kind,))
    for name, theirs in {
        "bessel_j0": "j0", "bessel_j1": "j1", "modified_bessel_i0": "i0", "modified_bessel_i1": "i1",
    }.items():  # fmt: skip
        yield name, Row(getattr(ours, name), getattr(scipys, theirs), ("wide",))
    for name, theirs in {
        "bessel_y0": "y0", "bessel_y1": "y1", "modified_bessel_k0": "k0", "modified_bessel_k1": "k1",
        "scaled_modified_bessel_k0": "k0e", "scaled_modified_bessel_k1": "k1e",
    }.items():  # fmt: skip
        yield name, Row(getattr(ours, name), getattr(scipys, theirs), ("positive",))
    yield "spherical_bessel_j0", Row(ours.spherical_bessel_j0, lambda x: scipys.spherical_jn(0, x), ("wide",))
    yield "airy_ai", Row(ours.airy_ai, lambda x: scipys.airy(x)[0], ("wide",))
    for name, kinds in {
        "xlog1py": ("positive", "parameter"), "xlogy": ("positive", "parameter"), "zeta": ("above 1", "parameter"),
        "gammainc": ("parameter", "positive"), "gammaincc": ("parameter", "positive"),
    }.items():  # fmt: skip
        yield name, Row(getattr(ours, name), getattr(scipys, name), kinds)
    for n in (1, 3):
        yield f"polygamma, {n}", Row(partial(ours.polygamma, n), partial(scipys.polygamma, n), ("positive",))
    yield "multigammaln, 3", Row(lambda x: ours.multigammaln(x, 3), lambda x: scipys.multigammaln(x, 3), ("above 1",))
    for name in ("logsumexp", "softmax", "log_softmax"):
        yield name, Row(partial(getattr(ours, name), dim=1), partial(getattr(scipys, name), axis=1), ("rows",))
    for name, theirs in {
        "chebyshev_polynomial_t": "chebyt", "chebyshev_polynomial_u": "chebyu", "hermite_polynomial_h": "hermite",
        "hermite_polynomial_he": "hermitenorm", "laguerre_polynomial_l": "laguerre",
        "legendre_polynomial_p": "legendre", "shifted_chebyshev_polynomial_t": "sh_chebyt",
        "shifted_chebyshev_polynomial_u": "sh_chebyu",
    }.items():  # fmt: skip
        yield f"{name}, 5", Row(partial(getattr(ours, name), n=5), partial(getattr(scipys, f"eval_{theirs}"), 5),
                                ("symmetric",))  # fmt: skip


def best(call: Callable[[], Any], budget: float = 0.05) -> float:
    """Microseconds of the fastest call within the budget in seconds."""
    times: list[float] = []
    start = time.perf_counter()
    while not times or time.perf_counter() - start < budget:
        before = time.perf_counter()
        call()
        times.append(time.perf_counter() - before)
    return min(times) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, help="of rushlight, its default otherwise")
    options = parser.parse_args()
    if options.threads:
        rushlight.set_num_threads(options.threads)

    print(f"{'row':40} {'SciPy us':>12} {'rushlight us':>12} {'ratio':>7}")
    ratios = []
    for name, row in rows():
        for dtype in (np.float32, np.float64):
            label = f"{name} {np.dtype(dtype).name}"
            if not re.search(options.only, label):
                continue
            arrays = [values(kind, dtype) for kind in row.ranges]
            tensors = [rushlight.from_numpy(array) for array in arrays]
            calls = partial(row.scipys, *arrays), partial(row.ours, *tensors)
            pairs = [[best(call) for call in calls] for _ in range(options.rounds)]
            ratios.append(statistics.median(ours / scipys for scipys, ours in pairs))
            scipys, ours = map(statistics.median, zip(*pairs, strict=True))
            print(f"{label:40} {scipys:12.1f} {ours:12.1f} {ratios[-1]:7.3f}", flush=True)
    if ratios:
        print(f"geometric mean of {len(ratios)} ratios {math.exp(statistics.fmean(map(math.log, ratios))):.3f}")


if __name__ == "__main__":
    main()
