"""Errors in units of the last place against mpmath, at points spread over the whole domain."""

import math

import mpmath as mp
import numpy as np
import pytest

import rushlight as torch

SPECIAL = torch.special


def erfcx(x):
    return mp.exp(x * x) * mp.erfc(x)


# Function of mpmath, interval, greatest error in float64.
FUNCTIONS = {
    "erfc": (mp.erfc, -6, 26.5, 4),
    "erfcx": (erfcx, -26, 1e8, 4),
    "logerfc": (lambda x: mp.log(mp.erfc(x)) if x > 0.1 else mp.log1p(-mp.erf(x)), -6, 1e4, 4),
    "ndtr": (lambda x: mp.erfc(-x / mp.sqrt(2)) / 2, -37, 9, 4),
    "log_ndtr": (lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2), -1e3, -1e-3, 4),
    "erfinv": (mp.erfinv, -0.9999, 0.9999, 4),
    "i0": (lambda x: mp.besseli(0, x), -700, 700, 4),
    "i1": (lambda x: mp.besseli(1, x), -700, 700, 4),
    "i0e": (lambda x: mp.exp(-abs(x)) * mp.besseli(0, x), -1e4, 1e4, 4),
    "i1e": (lambda x: mp.exp(-abs(x)) * mp.besseli(1, x), -1e4, 1e4, 4),
    "modified_bessel_k0": (lambda x: mp.besselk(0, x), 1e-30, 700, 4),
    "modified_bessel_k1": (lambda x: mp.besselk(1, x), 1e-30, 700, 4),
    "scaled_modified_bessel_k0": (lambda x: mp.exp(x) * mp.besselk(0, x), 1e-30, 1e4, 4),
    "scaled_modified_bessel_k1": (lambda x: mp.exp(x) * mp.besselk(1, x), 1e-30, 1e4, 4),
    "spherical_bessel_j0": (lambda x: mp.sin(x) / x, -3, 3, 4),
    "airy_ai": (mp.airyai, 0, 90, 4),
    "gammaln": (mp.loggamma, 1e-30, 1e6, 4),
    "digamma": (mp.digamma, 1e-30, 1e6, 2),
    "entr": (lambda x: -x * mp.log(x), 1e-30, 1e3, 1),
    "exp2": (lambda x: mp.power(2, x), -1020, 1020, 1),
    "logit": (lambda x: mp.log(x / (1 - x)), 1e-30, 1 - 1e-9, 2),
}


def points(low, high, count=60):
    random = np.random.default_rng(0)
    start = max(low, 1e-30)
    near = np.exp(random.uniform(np.log(start), np.log(high), count)) if high > start else np.empty(0)
    return np.concatenate([random.uniform(low, high, count), near])


def ulps(results, exact):
    spacing = [np.spacing(abs(results.dtype.type(float(value)))) for value in exact]
    return np.array(
        [float(abs(mp.mpf(float(r)) - e)) / float(s) for r, e, s in zip(results, exact, spacing, strict=True)]
    )


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_units_in_the_last_place(name, dtype):
    function, low, high, limit = FUNCTIONS[name]
    if dtype is np.float32:
        low, high, limit = max(low, -9), min(high, 9), 2
    x = points(low, high).astype(dtype)
    with mp.workdps(50):
        exact = [function(mp.mpf(float(value))) for value in x]
        worst = ulps(getattr(SPECIAL, name)(torch.from_numpy(x)).numpy(), exact)
    assert worst.max() <= limit, f"at {x[worst.argmax()]!r}"


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("kind", ["j", "y"])
def test_bessel_functions_beside_their_amplitude(kind, order):
    x = np.append(points(1e-3, 1e3), [5.088716961575577, 178.0482846917506, 4e8])
    function = mp.besselj if kind == "j" else mp.bessely
    with mp.workdps(50):
        exact = [function(order, mp.mpf(float(value))) for value in x]
        result = getattr(SPECIAL, f"bessel_{kind}{order}")(torch.from_numpy(x)).numpy()
        error = ulps(result, exact)
    beside = np.abs(np.array(exact, dtype=float)) * np.sqrt(np.abs(x))
    # Beyond 8 the phase has digits to spare.
    assert error[beside > np.where(np.abs(x) > 8, 0.02, 0.25)].max() <= 4
    assert (error * np.minimum(beside, 1)).max() <= 4


@pytest.mark.parametrize(("a_range", "x_range"), [((1e-3, 20), None), ((20, 2000), None), ((1e-3, 3), (1e-3, 5))])
def test_incomplete_gamma(a_range, x_range):
    random = np.random.default_rng(0)
    a = np.exp(random.uniform(*np.log(a_range), 60))
    near = np.abs(a * (1 + 2 * random.normal(size=60) / np.sqrt(a + 1)))
    x = near if x_range is None else np.exp(random.uniform(*np.log(x_range), 60))
    with mp.workdps(40):
        lower = [mp.gammainc(mp.mpf(p), 0, mp.mpf(q), regularized=True) for p, q in zip(a, x, strict=True)]
        found = SPECIAL.gammainc(torch.from_numpy(a), torch.from_numpy(x)).numpy()
        rest = SPECIAL.gammaincc(torch.from_numpy(a), torch.from_numpy(x)).numpy()
        assert ulps(found, lower).max() <= 4
        assert ulps(rest, [1 - value for value in lower]).max() <= 4


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_spherical_harmonics_next_to_the_poles(dtype):
    random = np.random.default_rng(0)
    n = random.integers(0, 30, 60)
    m = random.integers(-n, n + 1)
    theta, phi = random.uniform(-7, 7, 60).astype(dtype), np.exp(random.uniform(-9, 1.1, 60)).astype(dtype)
    found = SPECIAL.sph_harm(*map(torch.from_numpy, (m, n, theta, phi))).numpy()
    with mp.workdps(50):
        exact = [mp.spherharm(*map(mp.mpmathify, map(float, place))) for place in zip(n, m, phi, theta, strict=True)]
    limits = np.finfo(dtype)
    for part in (np.real, np.imag):
        expected = np.array([float(part(complex(value))) for value in exact])
        size = np.array([float(abs(value)) for value in exact])
        assert (np.abs(part(found) - expected) <= 2 * limits.eps * size + limits.smallest_subnormal).all()


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize(("dtype", "least"), [(np.float64, 708), (np.float32, 87.3)])
def test_softmax_of_large_differences(dtype, least, dim):
    random = np.random.default_rng(0)
    x = np.exp(random.uniform(-7, 6, (60, 2)))
    x[:, 1] = x[:, 0] - random.uniform(0, least, 60)
    x = x.astype(dtype)
    with mp.workdps(50):
        exact = [1 / (1 + mp.exp(mp.mpf(float(a)) - mp.mpf(float(b)))) for a, b in x]
        found = SPECIAL.softmax(torch.from_numpy(x if dim else x.T.copy()), dim).numpy()
        assert ulps(found[:, 1] if dim else found[1], exact).max() <= (4 if dtype is np.float64 else 2)


def test_box_cox_next_to_its_zeros():
    random = np.random.default_rng(0)
    x, power = np.exp(random.normal(0, 2, 60)), np.exp(random.uniform(-40, 3, 60)) * random.choice([-1, 1], 60)
    with mp.workdps(50):
        exact = [mp.expm1(p * mp.log(v)) / p for v, p in zip(map(mp.mpf, x), map(mp.mpf, power), strict=True)]
        found = SPECIAL.boxcox(torch.from_numpy(x), torch.from_numpy(power)).numpy()
        assert ulps(found, exact).max() <= 4
    assert SPECIAL.boxcox(torch.tensor([2.0, 0.0, 0.0]), torch.tensor([0.0, 2.0, -2.0])).tolist() == pytest.approx(
        [math.log(2), -0.5, -math.inf]
    )


def test_float32_rounds_once():
    random = np.random.default_rng(0)
    a, b, x = (random.uniform(0.1, 1, 50).astype(np.float32) * scale for scale in (40, 40, 1))
    wide = SPECIAL.betainc(*(torch.from_numpy(v.astype(np.float64)) for v in (a, b, x)))
    assert (SPECIAL.betainc(*map(torch.from_numpy, (a, b, x))) == wide.float()).all()
    wide = SPECIAL.multigammaln(torch.from_numpy(2 + a).double(), 3)
    assert (SPECIAL.multigammaln(torch.from_numpy(2 + a), 3) == wide.float()).all()


def test_zeta_and_polygamma():
    random = np.random.default_rng(0)
    s, q = 1 + np.exp(random.uniform(-6, 3, 40)), np.exp(random.uniform(-5, 5, 40))
    # Where the expansion wants terms before it, a step rounds, and small terms are added to a large one.
    s, q = (
        np.append(s, [57.77, 41.780636744473405, 3.6471496910221926]),
        np.append(q, [40.06, 31.07238983863103, 0.0017]),
    )
    with mp.workdps(50):
        exact = [mp.zeta(mp.mpf(a), mp.mpf(b)) for a, b in zip(s, q, strict=True)]
        assert ulps(SPECIAL.zeta(torch.from_numpy(s), torch.from_numpy(q)).numpy(), exact).max() <= 4
        for n in (1, 2, 3, 8):
            exact = [mp.psi(n, mp.mpf(value)) for value in q]
            assert ulps(SPECIAL.polygamma(n, torch.from_numpy(q)).numpy(), exact).max() <= 6
