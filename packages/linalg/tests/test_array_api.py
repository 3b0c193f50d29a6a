"""Decompositions by the array API standard's names, arguments and results; NumPy's follow the same standard."""

import numpy as np
import pytest

import rushlight as torch
from rushlight import array_api as xp

DTYPES = ["float32", "float64", "complex64", "complex128"]
SHAPES = [(3, 3), (2, 3, 3), (0, 3, 3), (2, 0, 0)]


@pytest.fixture(params=[(dtype, shape) for dtype in DTYPES for shape in SHAPES], ids=str)
def matrix(request):
    """A stack of matrices, and Hermitian positive definite ones of the same shape."""
    dtype, shape = request.param
    random = np.random.default_rng(0)
    a = random.normal(size=shape) + (1j * random.normal(size=shape) if dtype.startswith("c") else 0)
    return a.astype(dtype), (a @ np.conj(np.swapaxes(a, -1, -2)) + np.eye(shape[-1])).astype(dtype)


def check(result, expected):
    expected = np.asarray(expected)
    assert tuple(result.shape) == expected.shape
    assert str(result.dtype) == f"torch.{expected.dtype.name}"
    tolerance = 2e-3 if expected.dtype.name in ("float32", "complex64") else 1e-10
    np.testing.assert_allclose(result.resolve_conj().numpy(), expected, tolerance, tolerance)


def test_functions(matrix):
    a, h = matrix
    for x, name, options in (
        (h, "cholesky", {}), (h, "cholesky", {"upper": True}), (a, "det", {}), (h, "eigvalsh", {}), (h, "inv", {}),
        (a, "pinv", {}), (a, "pinv", {"rtol": 1e-3}), (a, "svdvals", {}),
        *((a, "matrix_norm", {"ord": order, "keepdims": keep}) for order in ("fro", "nuc") for keep in (False, True)),
    ):  # fmt: skip
        check(getattr(xp.linalg, name)(torch.from_numpy(x), **options), getattr(np.linalg, name)(x, **options))
    for n in (0, 1, 3, -2):
        check(xp.linalg.matrix_power(torch.from_numpy(h), n), np.linalg.matrix_power(h, n))
    for b in (a, np.ones(a.shape[-1], a.dtype)):
        check(xp.linalg.solve(torch.from_numpy(h), torch.from_numpy(b)), np.linalg.solve(h, b))
    if a.shape[-1]:
        for options in ({}, {"rtol": 0.5}):
            check(xp.linalg.matrix_rank(torch.from_numpy(h), **options), np.linalg.matrix_rank(h, **options))
        for order in (1, -1, 2, -2, np.inf, -np.inf):
            norm = xp.linalg.matrix_norm(torch.from_numpy(a), ord=order)
            check(norm, np.linalg.matrix_norm(a, ord=order))


def test_decompositions(matrix):
    a, h = matrix
    x, symmetric = torch.from_numpy(a), torch.from_numpy(h)
    found = xp.linalg.eigh(symmetric)
    check(found.eigenvalues, np.linalg.eigvalsh(h))
    vectors = found.eigenvectors
    check((vectors * found.eigenvalues[..., None, :]) @ xp.conj(xp.matrix_transpose(vectors)), h)
    for mode in ("reduced", "complete"):
        found = xp.linalg.qr(x, mode=mode)
        check(found.Q @ found.R, a)
    found = xp.linalg.slogdet(x)
    check(found.sign * xp.exp(found.logabsdet), np.linalg.det(a))
    for full in (True, False):
        found = xp.linalg.svd(x[..., :2], full_matrices=full)
        assert found.U.shape[-1] == (a.shape[-1] if full else min(a.shape[-1], 2))
        k = found.S.shape[-1]
        check((found.U[..., :k] * found.S[..., None, :]) @ found.Vh[..., :k, :], a[..., :2])
