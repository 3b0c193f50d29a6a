"""Derivatives in orders and shapes against mpmath, and functions whose values are complex against SciPy."""

import math

import mpmath as mp
import numpy as np
import pytest
import scipy.special

import rushlight as torch
from rushlight.testing import assert_close

SPECIAL = torch.special


def lower(a, x):
    return mp.gammainc(a, 0, x, regularized=True)


# Function of mpmath, arguments, the one to differentiate in.
PARAMETERS = {
    "iv": (mp.besseli, (1.3, 2.1), 0),
    "jv": (mp.besselj, (-0.4, 2.1), 0),
    "yv": (mp.bessely, (0.0, 2.1), 0),
    "kv": (mp.besselk, (2.0, 0.7), 0),
    "struve": (mp.struveh, (0.5, 2.1), 0),
    "gammainc": (lower, (2.5, 1.7), 0),
    "gammaincc": (lambda a, x: 1 - lower(a, x), (0.01, 0.3), 0),
    "zeta": (mp.zeta, (1.05, 2.0), 0),
    "betainc": (lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True), (1.5, 2.5, 0.3), 1),
    "hyp1f1": (mp.hyp1f1, (0.7, 1.9, 1.3), 0),
    "hyp2f1": (mp.hyp2f1, (0.7, 1.1, 1.9, 0.3), 2),
    "ellipkinc": (mp.ellipf, (0.8, 0.0), 1),
    "beta": (mp.beta, (0.7, 1.9), 1),
    "rgamma": (mp.rgamma, (-3.0,), 0),
    "boxcox": (lambda x, k: (x**k - 1) / k if k else mp.log(x), (2.5, 1e-9), 1),
}


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_derivatives_in_parameters(name, dtype):
    pytest.importorskip("rushlight.autograd")
    function, values, at = PARAMETERS[name]
    args = [torch.tensor(value, dtype=dtype) for value in values]
    args[at].requires_grad_()
    slope = torch.autograd.grad(getattr(SPECIAL, name)(*args), args[at])[0]
    with mp.workdps(30):
        exact = mp.diff(lambda v: function(*(v if i == at else mp.mpf(u) for i, u in enumerate(values))), values[at])
    assert slope.item() == pytest.approx(float(exact), rel=1e-9 if dtype is torch.float64 else 2e-5, abs=1e-10)


def test_second_derivative_in_an_order():
    pytest.importorskip("rushlight.autograd")
    order = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    first = torch.autograd.grad(SPECIAL.iv(order, 2.0), order, create_graph=True)[0]
    with mp.workdps(30):
        exact = float(mp.diff(lambda v: mp.besseli(v, 2), 1.5, 2))
    assert torch.autograd.grad(first, order)[0].item() == pytest.approx(exact, rel=1e-7)


def test_complex_values():
    x = np.linspace(-2, 3, 7)
    assert_close(SPECIAL.wofz(torch.from_numpy(x)), torch.from_numpy(scipy.special.wofz(x)))
    assert_close(SPECIAL.lambertw(torch.from_numpy(x)), torch.from_numpy(scipy.special.lambertw(x)))
    m, n = np.array([[-2.0], [0.0], [1.0], [2.0]]), np.array([2.0, 3.0])
    expected = scipy.special.sph_harm_y(n.astype(int), m.astype(int), 0.7, 1.9)
    result = SPECIAL.sph_harm(*(torch.from_numpy(v) for v in (m, n, np.array(1.9), np.array(0.7))))
    assert_close(result, torch.from_numpy(expected))


COMPLEX = [("jv", (1.5,)), ("yv", (-0.4,)), ("iv", (2.0,)), ("kv", (0.0,)), ("kve", (1.5,)), ("hyp1f1", (0.5, 1.5)),
           ("hyp2f1", (0.5, 1.0, 1.5)), ("loggamma", ()), ("rgamma", ()), ("dawsn", ()), ("expi", ()), ("exp1", ()),
           ("spence", ())]  # fmt: skip


@pytest.mark.parametrize(("name", "parameters"), COMPLEX, ids=[name for name, _ in COMPLEX])
def test_complex_arguments(name, parameters):
    autograd = pytest.importorskip("rushlight.autograd")
    z = torch.tensor([0.3 + 0.4j, -0.2 + 0.6j, 0.7 - 0.5j], dtype=torch.complex128, requires_grad=True)
    real = [torch.tensor(p, dtype=torch.float64, requires_grad=True) for p in parameters]
    function = getattr(SPECIAL, name)
    assert_close(
        function(*real, z).detach(), torch.from_numpy(getattr(scipy.special, name)(*parameters, z.detach().numpy()))
    )
    assert autograd.gradcheck(function, (*real, z))
    if real:
        with pytest.raises(NotImplementedError, match="complex orders"):
            function(real[0] + 1j, *real[1:], z)


def test_a_voigt_profile_without_normal_part():
    result = SPECIAL.voigt_profile(torch.tensor(1.0), torch.tensor(0.0), torch.tensor(0.5))
    assert result.item() == pytest.approx(0.5 / (math.pi * 1.25), rel=1e-6)


def test_zeros_of_bessel_functions():
    zeros = SPECIAL.jn_zeros(1, 3)
    assert zeros.shape == (3,)
    assert SPECIAL.bessel_j1(zeros).abs().max() < 1e-15
    with pytest.raises(ValueError, match="nt"):
        SPECIAL.jn_zeros(1, -1)


def test_absurd_sizes_raise():
    with pytest.raises(RuntimeError, match="p is too large"):
        SPECIAL.multigammaln(torch.ones(2), 10**9)
    with pytest.raises(RuntimeError, match="greater than or equal to 1"):
        torch.mvlgamma(torch.ones(2), 0)
    with pytest.raises(RuntimeError, match="does not support negative n"):
        torch.polygamma(-1, torch.ones(2))
