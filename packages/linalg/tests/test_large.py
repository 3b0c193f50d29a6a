"""Large matrices, which other routines factor than small ones: residuals, options, singular input."""

import numpy as np
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
@pytest.mark.parametrize("k", [1, 70])
def test_solutions_of_adjoints(dtype, n, k):
    a, b = random(dtype, n, n), random(dtype, n, k, seed=1)
    factors = L.lu_factor(a)
    x = L.lu_solve(*factors, b, adjoint=True)
    assert_small(a.mH @ x - b, a, x)
    x = L.lu_solve(*factors, b.mT, left=False, adjoint=True)
    assert_small(x @ a.mH - b.mT, a, x)


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
@pytest.mark.parametrize("n", [5, 60, 131])
def test_factors_do_not_depend_on_how_a_matrix_lies(dtype, n):
    wide = random(dtype, 2, n, 2 * n)
    for a in (wide[..., ::2], wide[..., :n].mT, wide[0, :, :n].expand(3, n, n)):
        positive = a @ a.mH / n + torch.eye(n, dtype=dtype)
        for function in (
            *(lambda x, upper=upper: L.cholesky(x, upper=upper) for upper in (False, True)),
            *(L.inv, L.det, L.lu_factor, lambda x: L.solve(x, wide[0, :, :7])),
        ):
            for lying in (positive.mT.contiguous().mT, positive.repeat_interleave(2, -1)[..., ::2]):
                torch.testing.assert_close(function(lying), function(positive))


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


@each_dtype
@pytest.mark.parametrize("count", [0, 31, 64, 90, 130])
def test_products_of_fewer_reflectors_than_columns(dtype, count):
    m, n = 150, 130
    a, tau = random(dtype, m, n) / n, random(dtype, count, seed=1)
    expected = np.eye(m, n, dtype=a.numpy().dtype)
    for i in reversed(range(count)):
        v = np.r_[np.zeros(i), 1, a.numpy()[i + 1 :, i]]
        expected = expected - tau.numpy()[i] * np.outer(v, v.conj() @ expected)
    q = L.householder_product(a, tau)
    assert_small(q - torch.from_numpy(expected).to(dtype), q)


def spectral_cases(dtype, n):
    """Matrices by what is hard in them, as arrays."""
    rng = np.random.default_rng(n)
    a = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if dtype.is_complex else 0)
    info = np.finfo(a.real.dtype if dtype.itemsize > 8 or dtype is torch.float64 else np.float32)
    fall = np.logspace(0, np.log10(info.tiny) * 0.9, n)
    yield from (a, a * fall, fall[:, None] * a * fall, fall[::-1, None] * a * fall[::-1])
    yield from (a / np.abs(a).max() * (float(info.max) / 8), a * float(info.tiny) * 1e3)
    yield from (a * 0, np.ones_like(a), np.eye(n), np.diag(a[0]), np.eye(n, k=1), np.outer(a[0], a[1]))
    yield np.where(np.arange(n) % 2, a, 0)


def assert_close(x, y):
    """Equal but for some roundings of the norm, whatever the scale."""
    assert x.shape == y.shape
    largest = max(y.abs().max().item(), torch.finfo(y.dtype).tiny)
    size = max(L.vector_norm(y / largest).item(), 1)
    assert ((x - y).abs().max() / largest).item() <= 20 * torch.finfo(y.dtype).eps * size


@each_dtype
@pytest.mark.parametrize("n", [32, 75])
def test_eigh(dtype, n):
    eye = torch.eye(n, dtype=dtype)
    for case in spectral_cases(dtype, n):
        a = torch.tensor(case).to(dtype)
        a = a / 2 + a.mH / 2
        for uplo in "LU":
            triangle = a.tril() if uplo == "L" else a.triu()
            w, v = L.eigh(triangle, uplo)
            assert_close(v * w @ v.mH, a)
            assert_close(v.mH @ v, eye)
            assert_close(L.eigvalsh(triangle, uplo), w)
            assert (w.diff() >= 0).all()


def symmetric(kind, n):
    x = np.random.default_rng(n).standard_normal((n, n))
    q = np.linalg.qr(x)[0]
    off = np.diag(np.ones(n - 1), 1)
    return {
        "random": lambda: x + x.T,
        "tiny": lambda: (x + x.T) * 1e-30,
        "ones": lambda: np.ones((n, n)),
        "zero": lambda: np.zeros((n, n)),
        "diagonal": lambda: np.diag(np.arange(n) - n / 2),
        "wilkinson": lambda: np.diag(np.abs(np.arange(n) - n // 2)) + off + off.T,
        "laplace": lambda: 2 * np.eye(n) - off - off.T,
        "clusters": lambda: (q * (1 + 1e-10 * (np.arange(n) < n // 3) + 4 * (np.arange(n) > n // 2))) @ q.T,
        "graded": lambda: (q * 10.0 ** -np.linspace(0, 20, n)) @ q.T,
    }[kind]()


@each_dtype
@pytest.mark.parametrize("n", [64, 97, 251])
@pytest.mark.parametrize(
    "kind", ["random", "tiny", "ones", "zero", "diagonal", "wilkinson", "laplace", "clusters", "graded"]
)
def test_eigh_of_merged_halves(dtype, n, kind):
    expected = symmetric(kind, n)
    a = torch.tensor(expected, dtype=dtype)
    values, vectors = L.eigh(a)
    bound, size = 3 * n * torch.finfo(dtype).eps, max(np.linalg.norm(expected, 2), 1e-300)  # a tenth of LAPACK's
    assert np.abs(values.numpy() - np.linalg.eigvalsh(expected)).max() <= bound * size
    assert L.matrix_norm(a @ vectors - vectors * values).item() <= bound * size
    assert L.matrix_norm(vectors.mH @ vectors - torch.eye(n, dtype=dtype)).item() <= bound
    assert (values.diff() >= 0).all()


@each_dtype
def test_qr_of_columns_of_any_size(dtype):
    large = {torch.float32: 1e30, torch.complex64: 1e30}.get(dtype, 1e280)
    a = random(dtype, 60, 40)
    scales = torch.tensor([1.0, large, 1 / large] + [1.0] * 37, dtype=dtype)
    q, r = L.qr(a * scales)
    assert_small(q.mH @ q - torch.eye(40, dtype=dtype), q)
    assert_small(q @ (r / scales) - a, a)
    q, r = L.qr(torch.zeros(40, 40, dtype=dtype))
    assert (q == torch.eye(40, dtype=dtype)).all()
    assert (r == 0).all()


@each_dtype
def test_least_squares_near_the_limit_of_rank(dtype):
    n = 100
    q, p = L.qr(random(dtype, n, n))[0], L.qr(random(dtype, n, n, seed=1))[0]
    b = random(dtype, n, 3, seed=2)
    for factor, rank in ((4, n), (0.25, n - 1)):
        values = torch.ones(n, dtype=dtype)
        values[-1] = factor * n * torch.finfo(dtype).eps
        a = (q * values) @ p
        answer = L.lstsq(a, b)
        assert answer.rank.item() == rank
        assert_small(a.mH @ (a @ answer.solution - b), a, answer.solution)


@each_dtype
@pytest.mark.parametrize("shape", [(33, 33), (64, 48), (48, 64), (40, 90), (90, 40)], ids=str)
def test_svd(dtype, shape):
    m, n = shape
    for case in spectral_cases(dtype, max(m, n)):
        a = torch.tensor(case[:m, :n]).to(dtype)
        for full in (False, True):
            u, s, vh = L.svd(a, full)
            k = s.shape[-1]
            assert_close(u[:, :k] * s @ vh[:k], a)
            assert_close(u.mH @ u, torch.eye(u.shape[1], dtype=dtype))
            assert_close(vh @ vh.mH, torch.eye(vh.shape[0], dtype=dtype))
        assert_close(L.svdvals(a), s)
        assert (s.diff() <= 0).all()


@each_dtype
def test_spectra_against_numpy(dtype):
    a = random(dtype, 3, 70, 70)
    wide = a.numpy().astype(np.complex128)
    hermitian = a + a.mH
    for x, y in (
        (L.svdvals(a), np.linalg.svd(wide, compute_uv=False)),
        (L.eigvalsh(hermitian), np.linalg.eigvalsh(hermitian.numpy().astype(np.complex128))),
    ):
        assert_close(x, torch.tensor(y).to(x.dtype))


@each_dtype
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_spectra_of_what_is_not_finite(dtype, value):
    a = random(dtype, 2, 40, 40)
    a[1, 30, 20] = value
    for op in (L.eigh, L.eigvalsh, L.svd, L.svdvals):
        with pytest.raises(L.LinAlgError, match=r"Batch element 1.*non-finite"):
            op(a)


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
