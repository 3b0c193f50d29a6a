"""Orthogonal polynomials against SciPy and closed forms, their degrees and derivatives."""

import numpy as np
import pytest
import scipy.special

import rushlight as torch
from rushlight.testing import assert_close

SPECIAL = torch.special
SCIPY = {
    "chebyshev_polynomial_t": "eval_chebyt", "chebyshev_polynomial_u": "eval_chebyu",
    "shifted_chebyshev_polynomial_t": "eval_sh_chebyt", "shifted_chebyshev_polynomial_u": "eval_sh_chebyu",
    "hermite_polynomial_h": "eval_hermite", "hermite_polynomial_he": "eval_hermitenorm",
    "laguerre_polynomial_l": "eval_laguerre", "legendre_polynomial_p": "eval_legendre",
}  # fmt: skip
NAMES = [
    *SCIPY, "chebyshev_polynomial_v", "chebyshev_polynomial_w", "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
]  # fmt: skip


@pytest.mark.parametrize("name", SCIPY)
def test_values(name):
    x = np.random.default_rng(0).uniform(-1.5, 1.5, (40, 1))
    n = np.arange(12)
    expected = getattr(scipy.special, SCIPY[name])(n, x)
    result = getattr(SPECIAL, name)(torch.from_numpy(x), torch.from_numpy(n))
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("degree", [3, 40, 1023, 1024, 1025, 5000, 10**9])
def test_chebyshev_of_any_degree(degree):
    angle = np.array([0.3, 1.1, 2.5])
    x = torch.from_numpy(np.cos(angle))
    expected = {
        "t": np.cos(degree * angle), "u": np.sin((degree + 1) * angle) / np.sin(angle),
        "v": np.cos((degree + 0.5) * angle) / np.cos(angle / 2),
        "w": np.sin((degree + 0.5) * angle) / np.sin(angle / 2),
    }  # fmt: skip
    for letter, values in expected.items():
        result = getattr(SPECIAL, f"chebyshev_polynomial_{letter}")(x, degree).numpy()
        np.testing.assert_allclose(result, values, atol=1e-15 * max(degree, 10) ** 1.3)


@pytest.mark.parametrize("letter", "tuvw")
def test_chebyshev_beyond_the_interval_and_at_its_ends(letter):
    x = torch.tensor([-1.001, -1.0, 1.0, 1.001], dtype=torch.float64)
    polynomial = getattr(SPECIAL, f"chebyshev_polynomial_{letter}")
    for degree in (1029, 1030):  # by the closed form
        two = [polynomial(x, degree - k) for k in (0, 1, 2)]
        assert_close(two[0], 2 * x * two[1] - two[2], rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_degrees(name):
    polynomial = getattr(SPECIAL, name)
    x = torch.tensor([0.3, 0.7], dtype=torch.float64)
    assert polynomial(x, -1).tolist() == [0, 0]
    assert polynomial(x, 0).tolist() == [1, 1]
    assert_close(polynomial(x, 2.7), polynomial(x, 2))
    assert_close(polynomial(0.3, torch.tensor([3.0, 4.0], dtype=torch.float64)), polynomial(x[0], torch.tensor([3, 4])))
    if "chebyshev" not in name:
        assert polynomial(x, 2**21).isnan().all()  # rather than for minutes


@pytest.mark.parametrize("name", NAMES)
def test_derivatives(name):
    autograd = pytest.importorskip("rushlight.autograd")
    polynomial = getattr(SPECIAL, name)
    x = torch.tensor([-0.8, 0.1, 0.6, 1.4], dtype=torch.float64, requires_grad=True)
    for degree in (0, 1, 4):
        assert autograd.gradcheck(lambda x, n=degree: polynomial(x, n), x)
        assert autograd.gradgradcheck(lambda x, n=degree: polynomial(x, n), x)


def test_derivatives_where_they_are_limits():
    pytest.importorskip("rushlight.autograd")
    x = torch.tensor([-1.0, 1.0], dtype=torch.float64, requires_grad=True)
    for name, expected in {"legendre_polynomial_p": [-10.0, 10.0], "chebyshev_polynomial_u": [-40.0, 40.0]}.items():
        slope = torch.autograd.grad(getattr(SPECIAL, name)(x, 4).sum(), x)[0]
        assert slope.tolist() == expected
    zero = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.grad(SPECIAL.laguerre_polynomial_l(zero, 3), zero)[0].item() == -3
