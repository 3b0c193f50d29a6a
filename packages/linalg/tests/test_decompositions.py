"""Decompositions rebuild their matrices, over dtypes, shapes, strides and options; errors; bad input."""

import numpy as np
import pytest

import rushlight as torch
from rushlight.testing import assert_close

L = torch.linalg
DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
SHAPES = [(3, 3), (5, 2), (2, 5), (1, 1), (3, 4, 2), (2, 2, 2, 3), (0, 3, 2), (3, 0), (0, 3), (70, 6, 6), (40, 40)]
SQUARE = [(3, 3), (1, 1), (0, 0), (4, 2, 2), (2, 3, 5, 5), (0, 3, 3), (70, 4, 4), (33, 33)]
BAD = [float("nan"), float("inf")]


def random(dtype, *shape, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if dtype.is_complex:
        x = x + 1j * rng.standard_normal(shape)
    return torch.from_numpy(np.asarray(x)).to(dtype)


def hermitian(dtype, *shape):
    a = random(dtype, *shape)
    return a + a.mH


def assert_orthonormal(q):
    assert_close(q.mH @ q, torch.eye(q.shape[-1], dtype=q.dtype).expand(*q.shape[:-2], -1, -1), rtol=1e-4, atol=1e-5)


def assert_same(actual, expected):
    assert_close(actual, expected, rtol=1e-4, atol=2e-5)


each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)
each_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)
each_square = pytest.mark.parametrize("shape", SQUARE, ids=str)


@each_dtype
@each_shape
def test_svd(dtype, shape):
    a = random(dtype, *shape)
    u, s, vh = L.svd(a, full_matrices=False)
    assert_same(u * s.unsqueeze(-2) @ vh, a)
    assert_orthonormal(u)
    assert_orthonormal(vh.mH)
    assert s.dtype == a.real.dtype if dtype.is_complex else dtype
    assert bool((s[..., :-1] >= s[..., 1:]).all())
    assert_same(L.svdvals(a), torch.from_numpy(np.linalg.svd(a.numpy(), compute_uv=False)))
    u, s, vh = L.svd(a)
    k = s.shape[-1]
    assert u.shape[-1] == a.shape[-2]
    assert vh.shape[-2] == a.shape[-1]
    assert_orthonormal(u)
    assert_orthonormal(vh.mH)
    assert_same(u[..., :k] * s.unsqueeze(-2) @ vh[..., :k, :], a)


@each_dtype
@each_shape
def test_qr(dtype, shape):
    a = random(dtype, *shape)
    for mode in ("reduced", "complete"):
        q, r = L.qr(a, mode)
        assert_same(q @ r, a)
        assert_orthonormal(q)
        assert_close(r, r.triu())
    only = L.qr(a, mode="r")
    assert only.Q.shape == (0,)
    assert_same(only.R, L.qr(a).R)


@each_dtype
@each_square
def test_eigh(dtype, shape):
    a = hermitian(dtype, *shape)
    values, vectors = L.eigh(a)
    assert_same(vectors * values.unsqueeze(-2) @ vectors.mH, a)
    assert_orthonormal(vectors)
    assert_same(L.eigvalsh(a), values)
    assert bool((values[..., :-1] <= values[..., 1:]).all())


@each_dtype
@pytest.mark.parametrize("uplo", ["L", "U", "l", "u"])
def test_eigh_reads_one_triangle(dtype, uplo):
    a = hermitian(dtype, 4, 4)
    half = a.tril() if uplo in "Ll" else a.triu()
    assert_same(L.eigvalsh(half, uplo), L.eigvalsh(a))
    values, vectors = L.eigh(half, UPLO=uplo)
    assert_same(vectors * values @ vectors.mH, a)


@each_dtype
@each_square
def test_eig(dtype, shape):
    a = random(dtype, *shape)
    values, vectors = L.eig(a)
    assert values.dtype.is_complex
    assert vectors.dtype.is_complex
    assert_same(a.to(vectors.dtype) @ vectors, vectors * values.unsqueeze(-2))
    norms = L.vector_norm(vectors, dim=-2)
    assert_same(norms, torch.ones_like(norms))
    key = lambda x: np.sort_complex(np.round(x.numpy(), 3))
    np.testing.assert_allclose(key(L.eigvals(a)), key(values), atol=3e-3)


@each_dtype
@each_shape
def test_lu(dtype, shape):
    a = random(dtype, *shape)
    p, l, u = L.lu(a)
    assert_same(p @ l @ u, a)
    assert_close(u, u.triu())
    factors, pivots = L.lu_factor(a)
    assert pivots.dtype == torch.int32
    for unpacked, expected in zip(torch.lu_unpack(factors, pivots), (p, l, u), strict=True):
        assert_close(unpacked, expected)
    assert torch.lu_unpack(factors, pivots, unpack_data=False).L.shape == (0,)
    assert torch.lu_unpack(factors, pivots, unpack_pivots=False).P.shape == (0,)
    assert_close(L.lu_factor_ex(a).LU, factors)


@each_dtype
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_lu_solve(dtype, left, adjoint):
    a, b = random(dtype, 2, 1, 4, 4), random(dtype, 3, 4, 4, seed=1)
    x = L.lu_solve(*L.lu_factor(a), b, left=left, adjoint=adjoint)
    a = a.mH if adjoint else a
    assert_same(a @ x if left else x @ a, b.expand(2, 3, 4, 4))
    assert_same(torch.lu_solve(b[0], *L.lu_factor(a[0, 0])), L.solve(a[0, 0], b[0]))


@each_dtype
@pytest.mark.parametrize("is_hermitian", [True, False])
def test_ldl(dtype, is_hermitian):
    a, b = random(dtype, 3, 6, 6), random(dtype, 3, 6, 2, seed=1)
    a = a + (a.mH if is_hermitian else a.mT)
    factors = L.ldl_factor(a, hermitian=is_hermitian)
    assert_close(factors.LD, factors.LD.tril())
    assert_same(a @ L.ldl_solve(*factors, b, hermitian=is_hermitian), b)
    assert L.ldl_factor_ex(torch.zeros(2, 2)).info.item() == 1


@each_dtype
def test_triangular(dtype):
    a = random(dtype, 2, 1, 5, 5) + 4 * torch.eye(5, dtype=dtype)
    b = random(dtype, 3, 5, 5, seed=1)
    for matrix in (a, a.mT, a[..., ::1, :].mH, torch.cat((a, a), -1)[..., ::2][..., :5]):
        for upper in (True, False):
            for left in (True, False):
                for unit in (True, False):
                    x = L.solve_triangular(matrix, b, upper=upper, left=left, unitriangular=unit)
                    t = matrix.triu() if upper else matrix.tril()
                    if unit:
                        t = t - t.diagonal(0, -2, -1).diag_embed() + torch.eye(5, dtype=dtype)
                    assert_close(t @ x if left else x @ t, b.expand(2, 3, 5, 5), rtol=1e-3, atol=1e-3)
    x, copy = torch.triangular_solve(b[0], a[0, 0], upper=False, transpose=True)
    assert_same(a[0, 0].tril().mT @ x, b[0])
    assert_close(copy, a[0, 0])


@each_dtype
def test_reflectors(dtype):
    a = random(dtype, 2, 5, 3)
    factors, tau = torch.geqrf(a)
    q, r = L.qr(a)
    assert_same(L.householder_product(factors, tau), q)
    assert_same(torch.orgqr(factors, tau), q)
    assert_same(factors[..., :3, :].triu(), r)
    full = L.qr(a, "complete").Q
    c = random(dtype, 2, 5, 5, seed=1)
    assert_same(torch.ormqr(factors, tau, c), full @ c)
    assert_same(torch.ormqr(factors, tau, c, left=False), c @ full)
    assert_same(torch.ormqr(factors, tau, c, transpose=True), full.mH @ c)
    assert_same(torch.ormqr(factors, tau, c, left=False, transpose=True), c @ full.mH)


@each_dtype
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 5, 3), (0, 5, 3)], ids=str)
@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
def test_lstsq(dtype, shape, driver):
    a, b = random(dtype, *shape), random(dtype, *shape[:-1], 2, seed=1)
    solution, residuals, rank, values = L.lstsq(a, b, driver=driver)
    assert_close(solution, L.pinv(a) @ b, rtol=1e-3, atol=1e-4)
    if driver in ("gels", "gelsd", "gelss") and shape[-2] > shape[-1]:
        assert_close(residuals, (a @ solution - b).abs().square().sum(-2))
    else:
        assert residuals.numel() == 0
    if driver != "gels":
        assert rank.shape == shape[:-2]
        assert bool((rank == min(shape[-2:])).all())
    if driver in ("gelsd", "gelss"):
        assert_same(values, L.svdvals(a))


def test_lstsq_of_deficient_rank_has_the_least_norm():
    a = torch.tensor([[1.0, 1.0], [2.0, 2.0], [0.0, 0.0]], dtype=torch.float64)
    b = torch.tensor([[1.0], [2.0], [5.0]], dtype=torch.float64)
    for driver in ("gelsy", "gelsd", "gelss"):
        solution, _, rank, _ = L.lstsq(a, b, driver=driver)
        assert_close(solution, torch.full((2, 1), 0.5, dtype=torch.float64))
        assert rank.item() == 1


def test_lstsq_with_vectors():
    a, b = random(torch.float64, 2, 4, 3), random(torch.float64, 2, 4, seed=1)
    assert_close(L.lstsq(a, b).solution, L.lstsq(a, b.unsqueeze(-1)).solution.squeeze(-1))


@each_dtype
@each_shape
def test_pinv_and_rank(dtype, shape):
    a = random(dtype, *shape)
    inverse = L.pinv(a)
    assert_close(a @ inverse @ a, a, rtol=1e-3, atol=1e-4)
    assert_same(torch.pinverse(a), inverse)
    if a.numel():
        assert bool((L.matrix_rank(a) == min(shape[-2:])).all())


def test_cutoffs():
    a = torch.diag(torch.tensor([4.0, 2.0, 1e-3]))
    assert L.matrix_rank(a).item() == 3
    assert L.matrix_rank(a, atol=0.1).item() == 2
    assert L.matrix_rank(a, rtol=0.6).item() == 1
    assert L.matrix_rank(a, 3.0).item() == 1
    assert L.matrix_rank(a, hermitian=True, atol=torch.tensor(0.1)).item() == 2
    assert torch.matrix_rank(a, 0.1).item() == 2
    assert L.pinv(a, 0.1)[2, 2].item() == 0
    assert L.pinv(a, atol=torch.tensor(0.1), hermitian=True)[2, 2].item() == 0
    assert L.matrix_rank(torch.zeros(2, 0, 3)).tolist() == [0, 0]


@each_dtype
def test_low_rank(dtype):
    a = random(dtype, 2, 9, 3) @ random(dtype, 2, 3, 6, seed=1)
    for matrix in (a, a.mH):
        u, s, v = torch.svd_lowrank(matrix, q=4)
        assert_close(u * s.unsqueeze(-2) @ v.mH, matrix, rtol=1e-3, atol=1e-3)
    u, s, v = torch.pca_lowrank(a, q=3)
    centred = a - a.mean(-2, keepdim=True)
    assert_close(u * s.unsqueeze(-2) @ v.mH, centred, rtol=1e-3, atol=1e-3)
    with pytest.raises(ValueError, match="not greater than min"):
        torch.pca_lowrank(a, q=7)


def test_decompositions_of_the_time_of_1_9():
    a = random(torch.float64, 4, 4)
    symmetric = a + a.mT
    values, vectors = torch.symeig(symmetric, eigenvectors=True)
    assert_close(vectors * values @ vectors.mT, symmetric)
    assert torch.symeig(symmetric)[1].numel() == 0
    pairs, packed = torch.eig(a, eigenvectors=True)
    assert pairs.shape == (4, 2)
    assert_close(torch.view_as_complex(pairs), L.eigvals(a))
    for j in range(4):
        real, imag = pairs[j].tolist()
        if imag > 0:  # A (x + iy) = (r + is)(x + iy)
            x, y = packed[:, j], packed[:, j + 1]
            assert_close(a @ x, real * x - imag * y)
            assert_close(a @ y, real * y + imag * x)
        elif imag == 0:
            assert_close(a @ packed[:, j], real * packed[:, j])
    u, s, v = torch.svd(a)
    assert_close(u * s @ v.mT, a)
    assert torch.svd(a, compute_uv=False).U.abs().sum().item() == 0
    q, r = torch.qr(a[:, :2], some=False)
    assert q.shape == (4, 4)
    assert_close(q @ r, a[:, :2])
    b = random(torch.float64, 4, 2, seed=1)
    solution, factors = torch.solve(b, a)
    assert_close(a @ solution, b)
    assert_close(factors, L.lu_factor(a).LU)
    solution, _ = torch.lstsq(b, a[:, :3])
    assert_close(solution[:3], L.lstsq(a[:, :3], b).solution)
    rest = a[:, :3] @ solution[:3] - b
    assert_close(solution[3:].square().sum(0), rest.square().sum(0))
    assert len(torch.lu(a)) == 2
    assert len(torch.lu(a, get_infos=True)) == 3
    assert_close(a.lu()[0], L.lu_factor(a).LU)
    lower = L.cholesky(a @ a.mT + torch.eye(4, dtype=a.dtype))
    assert_close(torch.cholesky_inverse(lower), L.inv(lower @ lower.mT))
    assert_close(torch.cholesky_solve(b, lower.mT, upper=True), L.solve(lower @ lower.mT, b))
    assert_close(torch.chain_matmul(a, a, b), a @ a @ b)


def test_strided_and_transposed_input():
    big = random(torch.float64, 8, 8)
    for a in (
        big.mT,
        big[::2, ::2],
        big[::2],
        big.flip(0),
        big[:4].expand(3, 4, 8),
        big.mT.unsqueeze(0).expand(2, 8, 8),
    ):
        plain = a.clone(memory_format=torch.contiguous_format)
        for f in (L.svd, L.qr):
            for x, y in zip(f(a), f(plain), strict=True):
                assert_close(x, y)
    for f in (L.eig, L.eigh, L.lu, L.slogdet, L.lu_factor):
        for x, y in zip(f(big.mT), f(big.mT.contiguous()), strict=True):
            assert_close(x, y)


def test_out():
    a = random(torch.float64, 4, 4)
    u, s, vh = (torch.empty(0, dtype=torch.float64) for _ in range(3))
    result = L.svd(a, out=(u, s, vh))
    assert result.U is u
    assert_close(u * s @ vh, a)
    out = torch.empty(4, 4, dtype=torch.float64)
    assert L.inv(a, out=out) is out
    assert_close(out @ a, torch.eye(4, dtype=torch.float64), atol=1e-12, rtol=0)
    w = torch.empty(0, dtype=torch.complex128)
    L.eigvals(a, out=w)
    assert w.shape == (4,)


def test_results_have_names():
    a = random(torch.float64, 3, 3)
    assert type(L.svd(a)) is torch.return_types.linalg_svd
    assert type(torch.svd(a)) is torch.return_types.svd
    assert L.slogdet(a).logabsdet.ndim == 0
    assert repr(L.inv_ex(a)).startswith("torch.return_types.linalg_inv_ex(")


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3), (40, 40)], ids=str)
@each_dtype
def test_values_that_are_not_finite_end(dtype, shape, value):
    a = torch.ones(*shape, dtype=dtype)
    a[..., -1, 0] = value
    batch = r": \(Batch element 0\)" if len(shape) > 2 else ""
    for name in ("svd", "svdvals", "eigh", "eigvalsh", "eig", "eigvals", "pinv", "matrix_rank"):
        with pytest.raises(L.LinAlgError, match=f"linalg.\\w+{batch}: The algorithm failed to converge.*non-finite"):
            getattr(L, name)(a)
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        with pytest.raises(L.LinAlgError, match=r"linalg.lstsq.*non-finite"):
            L.lstsq(a, a, driver=driver)
    for name in ("qr", "lu_factor_ex", "inv_ex", "cholesky_ex", "ldl_factor_ex", "slogdet", "det", "matrix_exp"):
        getattr(L, name)(a)
    with pytest.raises(L.LinAlgError, match="not positive-definite"):
        L.cholesky(a)


ERRORS = [
    (lambda a: L.svd(a, driver="gesvd"), "driver"),
    (lambda a: L.qr(a, mode="full"), "qr received unrecognized mode 'full'"),
    (lambda a: L.qr(a, mode=3), "qr received unrecognized mode|must be str"),
    (lambda a: L.eigh(a, UPLO="X"), "Expected UPLO argument to be 'L' or 'U', but got X"),
    (lambda a: L.lstsq(a, a, driver="fast"), "should be one of"),
    (lambda a: L.lstsq(a, a[:2]), "should match"),
    (lambda a: L.eigh(a[:2]), "must be batches of square matrices"),
    (lambda a: L.eig(a[0]), "at least 2 dimensions"),
    (lambda a: L.lu_solve(*L.lu_factor(a), a[:2]), "Incompatible shapes"),
    (lambda a: L.lu_solve(a, torch.zeros(3, dtype=torch.int32), a), "greater or equal to 1"),
    (lambda a: L.lu_solve(a, torch.full((3,), 4, dtype=torch.int32), a), "smaller or equal"),
    (lambda a: L.lu_solve(a, torch.ones(2, dtype=torch.int32), a), "Number of pivots"),
    (lambda a: L.lu_solve(a, torch.ones(3, dtype=torch.int64), a), "torch.int32"),
    (lambda a: L.ldl_solve(a, torch.full((3,), -3, dtype=torch.int32), a), "come in pairs"),
    (lambda a: L.ldl_solve(a, torch.full((3,), 9, dtype=torch.int32), a), "smaller or equal"),
    (lambda a: torch.lu_unpack(a, torch.full((3,), 9, dtype=torch.int32)), "numbers of rows"),
    (lambda a: L.lu_factor(a, pivot=False), "not implemented on the CPU"),
    (lambda a: L.lu_factor(torch.zeros(2, 2)), r"U\[1,1\] is zero"),
    (lambda a: L.solve(a, a.double()), "same dtype"),
    (lambda a: L.solve(a.expand(2, 3, 3), a.expand(3, 3, 3)), "broadcast"),
    (lambda a: L.solve(a, torch.tensor(1.0)), "at least 1 dimension"),
    (lambda a: L.solve_triangular(a, a[:2], upper=True), "Incompatible shapes"),
    (lambda a: L.householder_product(a[:2], a[0, :2]), "greater than or equal"),
    (lambda a: L.householder_product(a, a[0].double()), "same dtype"),
    (lambda a: torch.ormqr(a, a[0], a[:2]), "greater than or equal"),
    (lambda a: L.inv(a.long()), "Expected a floating point or complex tensor"),
    (lambda a: L.svd(a.half()), "Low precision"),
    (lambda a: L.pinv(a, rtol=torch.tensor(1j)), "complex"),
    (lambda a: torch.eig(a.expand(2, 3, 3)), "2 dimensional"),
]


@pytest.mark.parametrize("call", [call for call, _ in ERRORS], ids=[str(i) for i in range(len(ERRORS))])
def test_errors(call):
    message = dict(ERRORS)[call]
    with pytest.raises((RuntimeError, TypeError), match=message):
        call(torch.eye(3))


def test_errors_name_the_function_the_batch_element_and_the_reason():
    a = torch.stack([torch.eye(2), torch.zeros(2, 2)])
    for call, reason in (
        (lambda: L.inv_ex(a, check_errors=True), "linalg.inv_ex: (Batch element 1): The diagonal element 1 is zero"),
        (lambda: L.cholesky(a), "linalg.cholesky: (Batch element 1): The factorization could not be completed"),
        (lambda: L.solve_ex(a, a, check_errors=True), "linalg.solve_ex: (Batch element 1): The solver failed"),
        (
            lambda: L.lstsq(a + torch.diag(torch.tensor([1.0, 0.0])), a, driver="gels"),
            "linalg.lstsq: (Batch element 1): The least squares solution",
        ),
        (lambda: L.ldl_factor(a), "linalg.ldl_factor: (Batch element 1): The factorization could not"),
    ):
        with pytest.raises(L.LinAlgError) as caught:
            call()
        assert str(caught.value).startswith(reason)
    assert L.inv_ex(a).info.tolist() == [0, 1]
    assert L.solve_ex(a, a).info.tolist() == [0, 1]
    assert L.cholesky_ex(-a).info.tolist() == [1, 1]


@each_dtype
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0], ids=str)
def test_matrix_exp(dtype, scale):
    import scipy.linalg

    a = random(dtype, 5, 4, 4) * scale
    a = a - a.mH if scale > 1 else a  # the exponential of large matrices is only accurate relative to itself
    expected = torch.from_numpy(scipy.linalg.expm(a.numpy().astype(complex)))
    result = torch.matrix_exp(a)
    assert_close(result, expected.to(dtype) if dtype.is_complex else expected.real.to(dtype), rtol=1e-3, atol=1e-3)
    assert torch.matrix_exp(a[0].half() if not dtype.is_complex else a[0]).shape == (4, 4)
    assert L.matrix_exp(torch.zeros(3, 3).bfloat16()).float().tolist() == torch.eye(3).tolist()
    numbers = torch.tensor([float("inf"), -float("inf"), 0.0, 1.0]).reshape(4, 1, 1)
    assert L.matrix_exp(numbers).reshape(4).tolist() == numbers.exp().reshape(4).tolist()
    assert L.matrix_exp(torch.eye(3).to(dtype) * -1e30).eq(0).all()
    assert not L.matrix_exp(torch.ones(3, 3).to(dtype) * 1e30).isfinite().any()


def test_array_api_names():
    from rushlight.array_api import linalg as names

    a = hermitian(torch.float64, 3, 3)
    values, vectors = names.eigh(a)
    assert_close(vectors * values @ vectors.mT, a)
    assert_close(names.svdvals(a), L.svdvals(a))
    assert_close(names.matrix_power(a, 3), a @ a @ a)
    assert names.matrix_norm(a, keepdims=True, ord=1).shape == (1, 1)
    assert_close(names.pinv(a, rtol=1e-10), L.inv(a))
    assert names.matrix_rank(a, rtol=1e-10).item() == 3
    assert names.cholesky(a @ a, upper=True).shape == (3, 3)
    assert names.qr(a, mode="complete").R.shape == (3, 3)
    assert names.svd(a, full_matrices=False).Vh.shape == (3, 3)
    assert names.slogdet(a).sign.abs().item() == 1


def test_meta():
    a = torch.empty(2, 4, 3, device="meta")
    assert [t.shape for t in L.svd(a)] == [(2, 4, 4), (2, 3), (2, 3, 3)]
    assert [t.shape for t in L.qr(a, "complete")] == [(2, 4, 4), (2, 4, 3)]
    assert L.pinv(a).shape == (2, 3, 4)
    assert L.lstsq(a, torch.empty(2, 4, 1, device="meta")).solution.shape == (2, 3, 1)
    assert L.eig(a[:, :3]).eigenvalues.dtype == torch.complex64
    assert torch.matrix_exp(a[:, :3]).shape == (2, 3, 3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128])
@pytest.mark.parametrize("n", [3, 12, 70])
def test_eigenvalues_in_the_whole_range(dtype, n):
    a = torch.randn(n, n, dtype=dtype, generator=torch.Generator().manual_seed(0))
    values = L.eigvals(a)
    exponent = 100 if torch.finfo(dtype).bits == 32 else 1000
    for power in (-exponent, exponent):
        scale = 2.0**power
        assert torch.equal(L.eigvals(a * scale), values * scale)
        w, v = L.eig(a * scale)
        assert torch.allclose(a.to(v.dtype) @ v, v * (w / scale), atol=1e-4 if exponent == 100 else 1e-11)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("n", [2, 3, 8, 12])
@pytest.mark.parametrize("least", [1e-78, 1e-80, 1e-150])
def test_qr_of_columns_whose_squares_vanish(dtype, n, least):
    fall = torch.logspace(0, np.log10(least), n, dtype=torch.float64)
    a = fall[:, None] * torch.randn(n, n, dtype=dtype, generator=torch.Generator().manual_seed(0)) * fall
    Q, R = L.qr(a)
    assert_close(Q.mH @ Q, torch.eye(n, dtype=dtype), rtol=0, atol=1e-14)
    assert_close(Q @ R, a, rtol=0, atol=1e-14)
