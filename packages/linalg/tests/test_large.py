"""Large matrices, which other routines factor than small ones: residuals, options, singular input."""

import pytest

import rushlight as torch

L = torch.linalg
DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)
each_order = pytest.mark.parametrize("n", [95, 96, 131, 260])


def random(dtype, *shape, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def assert_small(residual, *factors):
    """The residual is rounding: a few units of the product of the norms."""
    scale = torch.finfo(residual.dtype).eps
    for factor in factors:
        scale *= max(L.matrix_norm(factor).item(), 1)
    assert L.matrix_norm(residual).item() <= 20 * scale


@each_dtype
@each_order
def test_lu_and_solutions(dtype, n):
    a, b = random(dtype, n, n), random(dtype, n, 70, seed=1)
    for m in (a, a[:, : n // 2], a[: n // 2]):
        p, lower, upper = L.lu(m)
        assert_small(p @ lower @ upper - m, lower, upper)
    x = L.solve(a, b)
    assert_small(a @ x - b, a, x)
    inverse = L.inv(a)
    assert_small(a @ inverse - torch.eye(n, dtype=dtype), a, inverse)
    factors = L.lu_factor(a)
    for adjoint in (False, True):
        op = a.mH if adjoint else a
        x = L.lu_solve(*factors, b, adjoint=adjoint)
        assert_small(op @ x - b, a, x)
        x = L.lu_solve(*factors, b.mT, adjoint=adjoint, left=False)
        assert_small(x @ op - b.mT, a, x)


@each_dtype
@each_order
def test_cholesky_and_triangles(dtype, n):
    a, b = random(dtype, n, n), random(dtype, n, 70, seed=1)
    positive = a @ a.mH / n + torch.eye(n, dtype=dtype)
    lower = L.cholesky(positive)
    assert_small(lower @ lower.mH - positive, positive)
    assert lower.triu(1).abs().max().item() == 0
    upper = L.cholesky(positive, upper=True)
    assert_small(upper.mH @ upper - positive, positive)
    for triangle in (lower, lower.mT.contiguous(), lower.mT, upper, upper.mT):
        is_upper = triangle[0, -1].abs().item() > 0
        for unit in (False, True):
            t = triangle - triangle.diagonal().diag() + torch.eye(n, dtype=dtype) if unit else triangle
            if unit:
                t = t / n + torch.eye(n, dtype=dtype) * (1 - 1 / n)
            x = L.solve_triangular(t, b, upper=is_upper, unitriangular=unit)
            assert_small(t @ x - b, t, x)
            x = L.solve_triangular(t, b.mT, upper=is_upper, left=False, unitriangular=unit)
            assert_small(x @ t - b.mT, t, x)


@each_dtype
@each_order
@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (2, 1)], ids=str)
def test_qr_and_least_squares(dtype, n, shape):
    m, k = n * shape[0], n * shape[1]
    a, b = random(dtype, m, k), random(dtype, m, 3, seed=1)
    for mode in ("reduced", "complete"):
        q, r = L.qr(a, mode)
        assert_small(q @ r - a, a)
        assert_small(q.mH @ q - torch.eye(q.shape[-1], dtype=dtype), q)
    factors, tau = torch.geqrf(a)
    if m >= k:
        assert_small(L.householder_product(factors, tau) - L.qr(a).Q, q)
    for driver in ("gelsy", "gels"):
        x = L.lstsq(a, b, driver=driver).solution
        expected = L.pinv(a) @ b
        assert L.matrix_norm(x - expected).item() <= 1e4 * n * torch.finfo(dtype).eps * L.matrix_norm(expected).item()


def test_singular_matrices():
    a = torch.zeros(200, 200)
    a[0, 0] = 1
    assert L.lu_factor_ex(a).info.item() == 2
    assert L.inv_ex(a).info.item() == 2
    assert L.cholesky_ex(a).info.item() == 2
    assert L.det(a).item() == 0
    b = random(torch.float64, 200, 120) @ random(torch.float64, 120, 150, seed=1)
    solution, _, rank, _ = L.lstsq(b, b[:, :2])
    assert rank.item() == 120
    assert L.matrix_norm(b @ solution - b[:, :2]).item() < 1e-8


def test_batches_of_large_matrices():
    a = random(torch.float64, 3, 120, 120)
    for one, whole in zip(a, zip(L.inv(a), *L.qr(a), L.solve(a, a), strict=True), strict=True):
        for x, y in zip(whole, (L.inv(one), *L.qr(one), L.solve(one, one)), strict=True):
            assert L.matrix_norm(x - y).item() < 1e-8
