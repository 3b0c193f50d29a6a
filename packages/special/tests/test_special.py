"""The special functions against SciPy and mpmath, at poles and infinities; gradients where autograd is installed."""

import math

import mpmath
import numpy as np
import pytest
import scipy.special

import rushlight as torch
from rushlight.testing import assert_close

ORACLES = {
    "erf": (mpmath.erf, (-6, 6)),
    "erfc": (mpmath.erfc, (-6, 20)),
    "expit": (lambda x: 1 / (1 + mpmath.exp(-x)), (-40, 40)),
    "gammaln": (lambda x: mpmath.log(abs(mpmath.gamma(x))), (-9.9, 50)),
    "digamma": (mpmath.digamma, (-9.9, 50)),
}


@pytest.mark.parametrize("name", ORACLES)
def test_float64_against_mpmath(name):
    oracle, (low, high) = ORACLES[name]
    x = np.random.default_rng(0).uniform(low, high, 300)
    with mpmath.workdps(40):
        expected = np.array([float(oracle(mpmath.mpf(float(v)))) for v in x])
    # Near a zero of the function the error is relative to what cancels.
    np.testing.assert_allclose(
        getattr(torch.special, name)(torch.from_numpy(x)).numpy(), expected, rtol=2e-14, atol=1e-14
    )


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.bool], ids=str)
def test_other_dtypes_compute_in_float(name, dtype):
    x = torch.tensor([1, 2, 3]).to(dtype)
    result = getattr(torch.special, name)(x)
    assert result.dtype is (dtype if dtype.is_floating_point else torch.float32)
    expected = getattr(scipy.special, name)(x.to(torch.float64).numpy())
    tolerance = {torch.float16: 2e-3, torch.bfloat16: 2e-2}.get(dtype, 1e-6)
    np.testing.assert_allclose(result.to(torch.float64).numpy(), expected, rtol=tolerance)


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("erf", math.inf, 1), ("erf", -math.inf, -1), ("erfc", math.inf, 0), ("erfc", -math.inf, 2),
        ("expit", -math.inf, 0), ("expit", math.inf, 1), ("gammaln", 0, math.inf), ("gammaln", -2, math.inf),
        ("gammaln", math.inf, math.inf), ("digamma", 0.0, -math.inf), ("digamma", -0.0, math.inf),
        ("digamma", -1, math.nan), ("digamma", math.inf, math.inf),
    ],
)  # fmt: skip
def test_edges(name, x, expected):
    assert_close(getattr(torch.special, name)(torch.tensor(float(x))), torch.tensor(float(expected)), equal_nan=True)


@pytest.mark.parametrize("name", ORACLES)
def test_nan_comes_through(name):
    assert torch.special.__dict__[name](torch.tensor(math.nan)).isnan()


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_polygamma(order):
    x = np.random.default_rng(1).uniform(-4.9, 30, 100)
    with mpmath.workdps(40):
        expected = np.array([float(mpmath.polygamma(order, mpmath.mpf(float(v)))) for v in x])
    np.testing.assert_allclose(torch.special.polygamma(order, torch.from_numpy(x)).numpy(), expected, rtol=1e-11)
    assert torch.special.polygamma(1, torch.tensor(-1.0)).item() == math.inf


def test_names_of_the_module_itself():
    x = torch.tensor([0.5, 1.5])
    assert_close(torch.erf(x), torch.special.erf(x))
    assert_close(x.lgamma(), torch.special.gammaln(x))
    assert_close(x.clone().digamma_(), torch.special.digamma(x))


@pytest.mark.parametrize("name", ORACLES)
def test_gradients(name):
    autograd = pytest.importorskip("rushlight.autograd")
    x = torch.tensor([0.3, 1.7, 4.2], dtype=torch.float64, requires_grad=True)
    assert autograd.gradcheck(getattr(torch.special, name), x)
    assert autograd.gradgradcheck(getattr(torch.special, name), x)


@pytest.mark.parametrize("power", [0, 0.5, 2])
def test_boxcox_takes_a_number_for_the_power(power):
    x = torch.tensor([1.0, 4.0])
    assert torch.equal(torch.special.boxcox(x, power), torch.special.boxcox(x, torch.tensor(float(power))))
