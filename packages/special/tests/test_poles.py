"""Poles, signed zeros, infinities, subnormal numbers and NaN: limits where they exist, else mpmath."""

import math

import mpmath as mp
import numpy as np
import pytest

import rushlight as torch

SPECIAL = torch.special
INF, NAN = math.inf, math.nan

# Results at 0, -0, inf, -inf. Where the sides of a pole differ, the sign of 0 chooses; where they do and there is no
# sign, as at negative integers, NaN; outside of the domain, and where a function oscillates without end, NaN. `sinc` is
# NaN at infinity, as in PyTorch and NumPy.
LIMITS = {
    "airy_ai": (mp.airyai(0), mp.airyai(0), 0, 0),
    "bessel_j0": (1, 1, 0, 0),
    "bessel_j1": (0, -0.0, 0, 0),
    "bessel_y0": (-INF, -INF, 0, NAN),
    "bessel_y1": (-INF, -INF, 0, NAN),
    "digamma": (-INF, INF, INF, NAN),
    "entr": (0, 0, -INF, -INF),
    "erf": (0, -0.0, 1, -1),
    "erfc": (1, 1, 0, 2),
    "erfcinv": (INF, INF, NAN, NAN),
    "erfcx": (1, 1, 0, INF),
    "erfinv": (0, -0.0, NAN, NAN),
    "exp2": (1, 1, INF, 0),
    "expit": (0.5, 0.5, 1, 0),
    "expm1": (0, -0.0, INF, -1),
    "gammaln": (INF, INF, INF, INF),
    "i0": (1, 1, INF, INF),
    "i0e": (1, 1, 0, 0),
    "i1": (0, -0.0, INF, -INF),
    "i1e": (0, -0.0, 0, -0.0),
    "log1p": (0, -0.0, INF, NAN),
    "log_ndtr": (mp.log(0.5), mp.log(0.5), 0, -INF),
    "logerfc": (-0.0, 0, -INF, math.log(2)),
    "logerfcx": (0, 0, -INF, INF),
    "logit": (-INF, -INF, NAN, NAN),
    "modified_bessel_i0": (1, 1, INF, INF),
    "modified_bessel_i1": (0, -0.0, INF, -INF),
    "modified_bessel_k0": (INF, INF, 0, NAN),
    "modified_bessel_k1": (INF, INF, 0, NAN),
    "ndtr": (0.5, 0.5, 1, 0),
    "ndtri": (-INF, -INF, NAN, NAN),
    "psi": (-INF, INF, INF, NAN),
    "scaled_modified_bessel_k0": (INF, INF, 0, NAN),
    "scaled_modified_bessel_k1": (INF, INF, 0, NAN),
    "sinc": (1, 1, NAN, NAN),
    "spherical_bessel_j0": (1, 1, 0, 0),
    # Computed by SciPy
    "dawsn": (0, -0.0, 0, -0.0),
    "ellipe": (mp.pi / 2, mp.pi / 2, NAN, INF),
    "ellipk": (mp.pi / 2, mp.pi / 2, NAN, 0),
    "exp1": (INF, INF, 0, NAN),
    "expi": (-INF, -INF, INF, 0),
    "kolmogorov": (1, 1, 0, 1),
    "loggamma": (INF, INF, INF, NAN),
    "spence": (mp.pi**2 / 6, mp.pi**2 / 6, -INF, NAN),
    "zetac": (-1.5, -1.5, 0, NAN),
}

# Functions of one variable at values, and poles in the middle of a domain.
VALUES = {
    "digamma": (mp.digamma, [1e-310, -1e-310, 5e-308, -0.5, -1.5, 1e300]),
    "erfc": (mp.erfc, [5e-324, -30.0, 26.5]),
    "erfinv": (mp.erfinv, [5e-324, -1e-300, 1 - 2.0**-53]),
    "exp2": (lambda x: mp.power(2, x), [-1074.0, -1073.5, 1023.5, 5e-324]),
    "expm1": (mp.expm1, [5e-324, -1e-310, 1e-300, 709.7]),
    "gammaln": (lambda x: mp.re(mp.loggamma(x)), [1e-310, -1e-310, 5e-324, -0.5, 1e300, 1e305]),
    "i0": (lambda x: mp.besseli(0, x), [712.0, -712.0, 1e-300]),
    "i1": (lambda x: mp.besseli(1, x), [712.0, -712.0, 1e-300, 5e-324]),
    "log1p": (mp.log1p, [5e-324, -1e-310, 1e300, -1 + 2.0**-53]),
    "logit": (lambda x: mp.log(x / (1 - x)), [5e-324, 1e-310, 1 - 2.0**-53]),
    "log_ndtr": (lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2), [-1e5, -38.0]),
    "modified_bessel_k0": (lambda x: mp.besselk(0, x), [5e-324, 1e-300, 700.0, 742.0]),
    "modified_bessel_k1": (lambda x: mp.besselk(1, x), [1e-300, 700.0]),
    "ndtr": (lambda x: mp.erfc(-x / mp.sqrt(2)) / 2, [-30.0, -38.0, 5e-324]),
    "sinc": (mp.sincpi, [5e-324, 1e-300]),
    "bessel_y1": (lambda x: mp.bessely(1, x), [1e-300, 1e-8]),
    "bessel_y0": (lambda x: mp.bessely(0, x), [5e-324, 1e-300, 1e-8]),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), [-26.6, 1e4, 5e-324]),
}

POLES = [
    (lambda t: SPECIAL.digamma(t(-1.0)), NAN), (lambda t: SPECIAL.psi(t(-7.0)), NAN),
    (lambda t: SPECIAL.gammaln(t(-1.0)), INF), (lambda t: SPECIAL.gammaln(t(-1e17)), INF),
    (lambda t: SPECIAL.logit(t(1.0)), INF), (lambda t: SPECIAL.logit(t(-0.5)), NAN),
    (lambda t: SPECIAL.logit(t(1.5)), NAN), (lambda t: SPECIAL.log1p(t(-1.0)), -INF),
    (lambda t: SPECIAL.erfinv(t(1.0)), INF), (lambda t: SPECIAL.erfinv(t(-1.0)), -INF),
    (lambda t: SPECIAL.erfcinv(t(2.0)), -INF), (lambda t: SPECIAL.ndtri(t(1.0)), INF),
    (lambda t: SPECIAL.ndtri(t(-0.1)), NAN),
    *((lambda t, n=n, x=x: SPECIAL.polygamma(n, t(x)), INF if n % 2 else -INF)
      for n in (1, 2, 3, 4) for x in (-1.0, -2.0, -30.0)),
    *((lambda t, n=n: SPECIAL.polygamma(n, t(0.0)), INF if n % 2 else -INF) for n in (1, 2, 3, 4)),
    *((lambda t, n=n: SPECIAL.polygamma(n, t(-0.0)), INF) for n in (1, 2, 3, 4)),
    *((lambda t, n=n: SPECIAL.polygamma(n, t(INF)), 0) for n in (1, 2, 3, 4)),
    *((lambda t, n=n: SPECIAL.polygamma(n, t(-INF)), NAN) for n in (1, 2, 3, 4)),
    (lambda t: SPECIAL.log_ndtr(t(-1e100)), -5e199), (lambda t: SPECIAL.logerfc(t(1e100)), -1e200),
    (lambda t: SPECIAL.zeta(t(2.0), t(INF)), 0), (lambda t: SPECIAL.zeta(t(1.0), t(2.0)), INF),
    (lambda t: SPECIAL.zeta(t(0.5), t(2.0)), NAN), (lambda t: SPECIAL.zeta(t(3.0), t(0.0)), INF),
    (lambda t: SPECIAL.zeta(t(2.0), t(-3.0)), INF), (lambda t: SPECIAL.zeta(t(INF), t(1.0)), 1),
    (lambda t: SPECIAL.zeta(t(INF), t(2.0)), 0), (lambda t: SPECIAL.zeta(t(INF), t(0.5)), INF),
    (lambda t: SPECIAL.zeta(t(2.5), t(-0.5)), NAN),
    (lambda t: SPECIAL.gammainc(t(0.0), t(1.0)), 1), (lambda t: SPECIAL.gammainc(t(0.0), t(0.0)), NAN),
    (lambda t: SPECIAL.gammainc(t(1.0), t(0.0)), 0), (lambda t: SPECIAL.gammainc(t(1.0), t(INF)), 1),
    (lambda t: SPECIAL.gammainc(t(INF), t(1.0)), 0), (lambda t: SPECIAL.gammainc(t(INF), t(INF)), NAN),
    (lambda t: SPECIAL.gammainc(t(-1.0), t(1.0)), NAN), (lambda t: SPECIAL.gammainc(t(1.0), t(-1.0)), NAN),
    (lambda t: SPECIAL.gammaincc(t(0.0), t(1.0)), 0), (lambda t: SPECIAL.gammaincc(t(1.0), t(0.0)), 1),
    (lambda t: SPECIAL.gammaincc(t(1.0), t(INF)), 0), (lambda t: SPECIAL.gammaincc(t(INF), t(1.0)), 1),
    (lambda t: SPECIAL.xlogy(t(0.0), t(0.0)), 0), (lambda t: SPECIAL.xlogy(t(0.0), t(INF)), 0),
    (lambda t: SPECIAL.xlogy(t(1.0), t(0.0)), -INF), (lambda t: SPECIAL.xlogy(t(0.0), t(NAN)), NAN),
    (lambda t: SPECIAL.xlog1py(t(0.0), t(-1.0)), 0), (lambda t: SPECIAL.xlog1py(t(1.0), t(-1.0)), -INF),
    (lambda t: SPECIAL.xlog1py(t(0.0), t(NAN)), NAN),
    (lambda t: SPECIAL.multigammaln(t(1.0), 3), INF), (lambda t: SPECIAL.multigammaln(t(INF), 3), INF),
    (lambda t: SPECIAL.boxcox(t(0.0), t(2.0)), -0.5), (lambda t: SPECIAL.boxcox(t(0.0), t(-2.0)), -INF),
    (lambda t: SPECIAL.boxcox(t(INF), t(-2.0)), 0.5), (lambda t: SPECIAL.boxcox(t(INF), t(2.0)), INF),
    (lambda t: SPECIAL.boxcox(t(-1.0), t(0.5)), NAN), (lambda t: SPECIAL.boxcox(t(INF), t(0.0)), INF),
    (lambda t: SPECIAL.beta(t(0.0), t(1.0)), INF), (lambda t: SPECIAL.betainc(t(1.0), t(2.0), t(0.0)), 0),
    (lambda t: SPECIAL.betainc(t(1.0), t(2.0), t(1.0)), 1), (lambda t: SPECIAL.betainc(t(1.0), t(2.0), t(1.5)), NAN),
    (lambda t: SPECIAL.rgamma(t(-3.0)), 0), (lambda t: SPECIAL.ellipk(t(1.0)), INF),
    (lambda t: SPECIAL.ellipe(t(1.0)), 1), (lambda t: SPECIAL.zetac(t(1.0)), INF),
    (lambda t: SPECIAL.expn(t(0.0), t(0.0)), INF), (lambda t: SPECIAL.expn(t(3.0), t(0.0)), 0.5),
    (lambda t: SPECIAL.owens_t(t(INF), t(1.0)), 0), (lambda t: SPECIAL.owens_t(t(0.0), t(INF)), 0.25),
    (lambda t: SPECIAL.gammaincinv(t(2.0), t(0.0)), 0), (lambda t: SPECIAL.gammaincinv(t(2.0), t(1.0)), INF),
    (lambda t: SPECIAL.gammainccinv(t(2.0), t(0.0)), INF), (lambda t: SPECIAL.gammainccinv(t(2.0), t(1.0)), 0),
]  # fmt: skip


def tensor(x):
    return torch.tensor(x, dtype=torch.float64)


def same(result, expected, units=4):
    expected = float(expected)
    if math.isnan(expected) or math.isinf(expected):
        return result == expected or (math.isnan(result) and math.isnan(expected))
    if expected == 0:
        return result == 0 and math.copysign(1, result) == math.copysign(1, expected)
    return abs(result - expected) <= units * np.spacing(abs(expected))


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_zeros_and_infinities(name, dtype):
    # The places are at the end of a row, where a kernel's vectors and remainder both meet them.
    places = torch.tensor([0.0, -0.0, INF, -INF], dtype=dtype)
    for x in (places, torch.cat([torch.full((16,), 0.5, dtype=dtype), places])):
        results = getattr(SPECIAL, name)(x).tolist()[-4:]
        for place, result, expected in zip(places.tolist(), results, LIMITS[name], strict=True):
            rounded = float(torch.tensor(float(expected), dtype=dtype))
            units = 4 if dtype is torch.float64 else 2**31
            # At infinity the sign of 0 is left open: many of these oscillate.
            tends_to_0 = math.isinf(place) and rounded == 0 == result
            assert tends_to_0 or same(result, rounded, units), f"at {place}: {result}"


@pytest.mark.parametrize("name", LIMITS)
def test_nan_comes_through(name):
    assert getattr(SPECIAL, name)(tensor([NAN, 0.5])).isnan().tolist()[0]


@pytest.mark.parametrize("name", VALUES)
def test_ends_of_the_range(name):
    function, places = VALUES[name]
    with mp.workdps(60):
        for x in places:
            exact = function(mp.mpf(x))
            result = getattr(SPECIAL, name)(tensor(x)).item()
            assert same(result, exact), f"at {x!r}: {result!r}, not {float(exact)!r}"


@pytest.mark.parametrize("place", range(len(POLES)))
def test_poles(place):
    call, expected = POLES[place]
    result = call(tensor).item()
    assert result == expected or (math.isnan(result) and math.isnan(expected)), result
