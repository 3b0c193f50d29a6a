"""Gradients, backward and forward, of first and second order, and where a decomposition is degenerate."""

import mpmath as mp
import numpy as np
import pytest

import rushlight as torch
from rushlight.testing import assert_close

autograd = pytest.importorskip("rushlight.autograd", exc_type=ImportError)
L = torch.linalg
DTYPES = [torch.float64, torch.complex128]
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def random(dtype, *shape, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype.is_complex else 0)
    return torch.from_numpy(np.asarray(x)).to(dtype)


def square(dtype, *batch, n=3, seed=0):
    return random(dtype, *batch, n, n, seed=seed) + 4 * torch.eye(n, dtype=dtype)


def spectral(dtype, values, m=4, n=4, seed=0):
    """A matrix with these singular values."""
    k = len(values)
    u, v = L.qr(random(dtype, m, k, seed=seed)).Q, L.qr(random(dtype, n, k, seed=seed + 1)).Q
    return u * torch.tensor(values, dtype=torch.float64) @ v.mH


def with_eigenvalues(dtype, values):
    q = L.qr(random(dtype, len(values), len(values))).Q
    a = q * torch.tensor(values, dtype=torch.float64) @ q.mH
    return (a + a.mH) / 2


def real(x):
    return x.real if x.is_complex() else x


def symmetric(f):
    return lambda a: f((a + a.mH) / 2)


def gauge_free(f):
    """What does not depend on the phases of the vectors of a decomposition."""
    return lambda *args: tuple(x.abs() for x in f(*args))


CASES = {
    "inv": (L.inv, square),
    "inv_ex": (lambda a: L.inv_ex(a)[0], square),
    "det": (L.det, square),
    "slogdet": (lambda a: tuple(L.slogdet(a)), square),
    "logdet": (lambda a: torch.logdet(a @ a.mH), square),
    "cholesky": (symmetric(lambda a: L.cholesky(a @ a.mH)), square),
    "cholesky upper": (symmetric(lambda a: L.cholesky(a @ a.mH, upper=True)), square),
    "lu": (lambda a: L.lu(a)[1:], square),
    "lu wide": (lambda a: L.lu(a)[1:], lambda dtype: random(dtype, 2, 4)),
    "lu tall": (lambda a: L.lu(a)[1:], lambda dtype: random(dtype, 2, 4, 2)),
    "qr": (lambda a: tuple(L.qr(a)), square),
    "qr wide": (lambda a: tuple(L.qr(a)), lambda dtype: random(dtype, 2, 4)),
    "qr tall": (lambda a: tuple(L.qr(a)), lambda dtype: random(dtype, 2, 4, 2)),
    "eigh": (symmetric(gauge_free(lambda a: L.eigh(a))), square),
    "eigvalsh": (symmetric(L.eigvalsh), square),
    "eig": (gauge_free(lambda a: L.eig(a)), square),
    "eigvals": (L.eigvals, square),
    "svd": (gauge_free(lambda a: L.svd(a, full_matrices=False)), lambda dtype: random(dtype, 2, 3, 2)),
    "svd wide": (gauge_free(lambda a: L.svd(a, full_matrices=False)), lambda dtype: random(dtype, 2, 3)),
    "svdvals": (L.svdvals, square),
    "pinv": (L.pinv, lambda dtype: random(dtype, 2, 3, 2)),
    "pinv wide": (L.pinv, lambda dtype: random(dtype, 2, 4)),
    "matrix_exp": (L.matrix_exp, square),
    "matrix_power": (lambda a: L.matrix_power(a, -3), square),
    "nuclear norm": (lambda a: L.norm(a, "nuc"), square),
    "2-norm": (lambda a: L.norm(a, 2), square),
    "cond": (L.cond, square),
    "cond 1": (lambda a: L.cond(a, 1), square),
    "tensorinv": (lambda a: L.tensorinv(a.reshape(2, 2, 4)), lambda dtype: square(dtype, n=4)),
}


@each_dtype
@pytest.mark.parametrize("name", CASES)
def test_one_matrix(name, dtype):
    function, make = CASES[name]
    a = make(dtype).requires_grad_()
    assert autograd.gradcheck(function, a, check_forward_ad=True)
    assert autograd.gradgradcheck(function, a)


def tau(dtype):
    return 0.5 + 0.2 * random(dtype, 2, seed=1)


PAIRS = {
    "solve": (L.solve, square, lambda d: random(d, 2, 3, 2, seed=1)),
    "solve vector": (L.solve, square, lambda d: random(d, 3, seed=1)),
    "solve right": (
        lambda a, b: L.solve(a, b, left=False), lambda d: square(d, 2), lambda d: random(d, 2, 2, 3, seed=1)
    ),
    "triangular": (
        lambda a, b: L.solve_triangular(a, b, upper=True), square, lambda d: random(d, 2, 3, 2, seed=1)
    ),
    "triangular right": (
        lambda a, b: L.solve_triangular(a, b, upper=False, left=False, unitriangular=True),
        square, lambda d: random(d, 2, 3, seed=1),
    ),
    "lu_solve": (lambda a, b: L.lu_solve(*L.lu_factor(a), b), square, lambda d: random(d, 3, 2, seed=1)),
    "lu_solve adjoint": (
        lambda a, b: L.lu_solve(*L.lu_factor(a), b, adjoint=True), square, lambda d: random(d, 3, 2, seed=1)
    ),
    "lu_solve right": (
        lambda a, b: L.lu_solve(*L.lu_factor(a), b, left=False), square, lambda d: random(d, 2, 3, seed=1)
    ),
    "lu_solve right adjoint": (
        lambda a, b: L.lu_solve(*L.lu_factor(a), b, left=False, adjoint=True), square,
        lambda d: random(d, 2, 3, seed=1),
    ),
    "cholesky_solve": (lambda a, b: torch.cholesky_solve(b, a.tril()), square, lambda d: random(d, 3, 2, seed=1)),
    "lstsq": (lambda a, b: L.lstsq(a, b).solution, lambda d: random(d, 4, 2), lambda d: random(d, 4, 3, seed=1)),
    "lstsq wide": (lambda a, b: L.lstsq(a, b).solution, lambda d: random(d, 2, 4), lambda d: random(d, 2, 3, seed=1)),
    "lstsq residuals": (
        lambda a, b: L.lstsq(a, b, driver="gelsd").residuals, lambda d: random(d, 4, 2),
        lambda d: random(d, 4, 3, seed=1),
    ),
    "householder": (L.householder_product, lambda d: random(d, 4, 3), tau),
    "ormqr": (
        lambda a, t: torch.ormqr(a, t, random(a.dtype, 4, 2, seed=3), transpose=True), lambda d: random(d, 4, 2), tau
    ),
    "vecdot": (L.vecdot, lambda d: random(d, 2, 3), lambda d: random(d, 2, 3, seed=1)),
    "multi_dot": (
        lambda a, b: L.multi_dot([a, b, a]), lambda d: random(d, 2, 3), lambda d: random(d, 3, 2, seed=1)
    ),
}  # fmt: skip


@each_dtype
@pytest.mark.parametrize("name", PAIRS)
def test_two_arguments(name, dtype):
    function, first, second = PAIRS[name]
    args = first(dtype).requires_grad_(), second(dtype).requires_grad_()
    assert autograd.gradcheck(function, args, check_forward_ad=True)
    assert autograd.gradgradcheck(function, args)


def gradient(loss, a):
    a = a.detach().clone().requires_grad_()
    (grad,) = autograd.grad(loss(a), a)
    return grad


def weight(a):
    return random(a.dtype, *a.shape, seed=7)


def rebuilt(a):
    u, s, vh = L.svd(a, full_matrices=False)
    return real((weight(a).conj() * (u * s.unsqueeze(-2) @ vh)).sum())


@each_dtype
@pytest.mark.parametrize("scale", [1, 1e170, 1e-170])
@pytest.mark.parametrize(
    ("values", "m", "n"),
    [
        ([3.0, 2, 2, 1], 4, 4),
        ([2.0, 2, 2, 2], 4, 4),
        ([2.0, 1, 1, 0], 4, 4),
        ([2.0, 2, 1], 5, 3),
        ([2.0, 2, 1], 3, 5),
        ([2.0, 1, 0], 5, 3),
    ],
)
def test_product_of_the_svd_has_the_gradient_of_its_matrix(dtype, values, m, n, scale):
    a = spectral(dtype, values, m, n) * scale
    assert_close(gradient(rebuilt, a), weight(a), rtol=1e-8, atol=1e-8)


@each_dtype
def test_product_of_the_svd_at_the_identity(dtype):
    a = torch.eye(3, dtype=dtype)
    assert_close(gradient(rebuilt, a), weight(a))
    for i in range(3):  # the rows of the jacobian, whose gradients have no diagonal
        unit = lambda a, i=i: real((lambda r: r[0] * r[1] @ r[2])(L.svd(a))[i, (i + 1) % 3])
        expected = torch.zeros(3, 3, dtype=dtype)
        expected[i, (i + 1) % 3] = 1
        assert_close(gradient(unit, a), expected)


@each_dtype
def test_polar_factor_at_equal_singular_values(dtype):
    def loss(a):
        u, _, vh = L.svd(a, full_matrices=False)
        return real((weight(a).conj() * (u @ vh)).sum())

    def by_power(a):  # U V^H = A (A^H A)^(-1/2), by Newton's iteration
        x = a
        for _ in range(20):
            x = (x + L.inv(x).mH) / 2
        return real((weight(a).conj() * x).sum())

    a = spectral(dtype, [3.0, 2, 2, 1])
    assert_close(gradient(loss, a), gradient(by_power, a), rtol=1e-8, atol=1e-8)


@each_dtype
@pytest.mark.parametrize("values", [[1.0, 1, 2, 3], [1.0, 1, 2, 2], [1.0, 1, -1, -1], [2.0, 2, 2, 2]])
@pytest.mark.parametrize("power", [1, 2, 3])
def test_functions_of_hermitian_matrices_at_equal_eigenvalues(dtype, values, power):
    def loss(a):
        w, v = L.eigh((a + a.mH) / 2)
        return real((weight(a).conj() * (v * w**power @ v.mH)).sum())

    def direct(a):
        return real((weight(a).conj() * L.matrix_power((a + a.mH) / 2, power)).sum())

    a = with_eigenvalues(dtype, values)
    assert_close(gradient(loss, a), gradient(direct, a), rtol=1e-8, atol=1e-8)


@each_dtype
@pytest.mark.parametrize(("values", "n"), [([3.0, 2, 2, 1], 4), ([2.0, 2, 2], 3), ([2.0, 2, 1], 5)])
def test_products_have_no_second_derivative(dtype, values, n):
    a = spectral(dtype, values, n, len(values))
    v = random(dtype, *a.shape, seed=3)
    assert_close(autograd.functional.vhp(rebuilt, a, v)[1], torch.zeros_like(a), rtol=0, atol=1e-6)
    h = with_eigenvalues(dtype, values)

    def of_eigen(x):
        w, q = L.eigh((x + x.mH) / 2)
        return real((weight(x).conj() * (q * w @ q.mH)).sum())

    v = random(dtype, *h.shape, seed=3)
    assert_close(autograd.functional.vhp(of_eigen, h, v)[1], torch.zeros_like(h), rtol=0, atol=1e-6)


@each_dtype
@pytest.mark.parametrize("power", [2, 3])
def test_second_derivatives_of_functions_at_multiples_of_the_identity(dtype, power):
    def loss(x):
        w, q = L.eigh((x + x.mH) / 2)
        return real((weight(x).conj() * (q * w**power @ q.mH)).sum())

    def direct(x):
        return real((weight(x).conj() * L.matrix_power((x + x.mH) / 2, power)).sum())

    a, v = 2 * torch.eye(3, dtype=dtype), random(dtype, 3, 3, seed=3)
    expected = autograd.functional.vhp(direct, a, v)[1]
    assert_close(autograd.functional.vhp(loss, a, v)[1], expected, rtol=1e-6, atol=1e-6)


def of_matrix(f, a, moves, h):
    """f at a moved by h in some of its elements, in 50 digits."""
    x = mp.matrix(a.tolist())
    for (i, j), sign in moves:
        x[i, j] += sign * h
    return f(x)


def second_differences(f, a):
    h = mp.mpf(10) ** -15
    places = list(np.ndindex(*a.shape))
    result = np.zeros((*a.shape, *a.shape))
    for p in places:
        for q in places:
            terms = [r * s * of_matrix(f, a, [(p, r), (q, s)], h) for r in (1, -1) for s in (1, -1)]
            result[p + q] = float(sum(terms) / (4 * h * h))
    return result


def trace(x):
    return sum(x[i, i] for i in range(x.rows))


OF_VALUES = {  # by values, and as polynomials of the matrix
    "tr S^2": (lambda a: L.eigvalsh((a + a.mT) / 2).square().sum(), lambda x: trace(((x + x.T) / 2) ** 2)),
    "tr S^3": (lambda a: (L.eigvalsh((a + a.mT) / 2) ** 3).sum(), lambda x: trace(((x + x.T) / 2) ** 3)),
    "|A|^2": (lambda a: L.svdvals(a).square().sum(), lambda x: trace(x.T * x)),
    "|A|_4^4": (lambda a: (L.svdvals(a) ** 4).sum(), lambda x: trace((x.T * x) ** 2)),
    "sum of both": (
        lambda a: L.svdvals(a).square().sum() + (L.svdvals(a) ** 4).sum() * a.sum(),
        lambda x: trace(x.T * x) + trace((x.T * x) ** 2) * sum(x),
    ),
}


@pytest.mark.parametrize("name", OF_VALUES)
@pytest.mark.parametrize(
    "a",
    [
        np.zeros((2, 2)),
        np.eye(2),
        np.diag([1.0, 2.0, 1.0]),
        spectral(torch.float64, [2.0, 1, 1], 3, 3).numpy(),
        spectral(torch.float64, [2.0, 0, 0], 3, 3).numpy(),
        np.eye(2, 3) * 3,
    ],
    ids=["zeros", "identity", "diagonal", "turned", "rank 1", "wide"],
)
def test_second_derivatives_of_functions_of_values(name, a):
    function, exact = OF_VALUES[name]
    if "S" in name and a.shape[0] != a.shape[1]:
        return
    with mp.workdps(50):
        expected = second_differences(exact, a)
    hessian = autograd.functional.hessian(function, torch.from_numpy(a))
    assert_close(hessian, torch.from_numpy(expected), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("direction", [[[0, 1], [-1, 0]], [[0, 1], [1, 0]], [[0, 1], [0, 0]], [[0, 1j], [0, 0]]])
@pytest.mark.parametrize("a", [0, 1, 1j])
def test_second_derivatives_along_directions_without_a_diagonal(a, direction):
    direction = torch.tensor(direction, dtype=torch.complex128)
    if not direction.imag.any() and not isinstance(a, complex):
        direction = direction.real.clone()
    a = a * torch.eye(2, dtype=torch.complex128 if isinstance(a, complex) else direction.dtype)
    square = lambda a: L.svdvals(a).square().sum()
    assert_close(autograd.functional.vhp(square, a, direction)[1], 2 * direction)
    cube = lambda a: (L.eigvalsh((a + a.mH) / 2) ** 3).sum()
    h = (a + a.mH) / 2
    expected = 3 * h[0, 0].real * (direction + direction.mH)  # of a multiple of the identity
    assert_close(autograd.functional.vhp(cube, h, direction)[1], expected)


@each_dtype
def test_projector_onto_an_eigenspace(dtype):
    def loss(a):
        v = L.eigh((a + a.mH) / 2).eigenvectors[:, :2]
        return real((weight(a).conj() * (v @ v.mH)).sum())

    def by_sign(a):  # (1 - sign(A - 1.5)) / 2, by Newton's iteration
        a = (a + a.mH) / 2 - 1.5 * torch.eye(4, dtype=dtype)
        x = a
        for _ in range(20):
            x = (x + L.inv(x)) / 2
        return real((weight(a).conj() * (torch.eye(4, dtype=dtype) - x)).sum()) / 2

    a = with_eigenvalues(dtype, [1.0, 1, 2, 2])
    assert_close(gradient(loss, a), gradient(by_sign, a), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_det_of_singular_matrices(rank):
    a = spectral(torch.float64, [3.0, 2, 1][:rank] + [0.0] * (3 - rank), 3, 3)
    cofactors = [
        [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a.numpy(), i, 0), j, 1)) for j in range(3)]
        for i in range(3)
    ]
    assert_close(gradient(L.det, a), torch.tensor(cofactors), rtol=1e-9, atol=1e-12)
    assert autograd.gradgradcheck(L.det, a.requires_grad_())
    hessian = autograd.functional.hessian(L.det, torch.zeros(2, 2, dtype=torch.float64))
    assert hessian[0, 0].tolist() == [[0, 0], [0, 1]]
    assert hessian[0, 1].tolist() == [[0, 0], [-1, 0]]


def test_det_of_a_large_singular_matrix():
    a = spectral(torch.float64, [*np.linspace(2, 0.5, 11), 0.0], 12, 12)
    u, s, vh = np.linalg.svd(a.numpy())
    expected = np.linalg.det(u) * np.linalg.det(vh) * np.prod(s[:-1]) * np.outer(u[:, -1], vh[-1])
    assert_close(gradient(L.det, a), torch.from_numpy(expected), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("n", [4, 9, 12])
def test_second_derivative_of_det_at_rank_n_minus_2(n):
    values = torch.linspace(2, 0.5, n - 2, dtype=torch.float64)
    a = torch.zeros(n, n, dtype=torch.float64)
    a.diagonal()[:-2] = values
    v = random(torch.float64, n, n)
    result = autograd.functional.vhp(L.det, a, v)[1]
    expected = torch.zeros_like(a)
    (p, q), (r, s) = v[-2:, -2:].tolist()
    expected[-2:, -2:] = torch.tensor([[s, -r], [-q, p]], dtype=torch.float64) * values.prod()
    assert_close(result, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize(
    "function",
    [
        L.det,
        lambda a, b: tuple(L.slogdet(a)),
        lambda a, b: L.solve(a, b),
        lambda a, b: L.solve(a, b.mT, left=False),
        lambda a, b: L.solve(a[0], b[0, :, 0]),
    ],
    ids=["det", "slogdet", "solve", "from the right", "vector"],
)
def test_gradients_by_factors_that_were_kept(dtype, function):
    a = (random(dtype, 2, 9, 9) / 4 + torch.eye(9, dtype=dtype)).requires_grad_()
    b = random(dtype, 1, 9, 2, seed=1).requires_grad_()
    inputs = (a,) if function is L.det else (a, b)
    assert autograd.gradcheck(function, inputs)
    assert autograd.gradgradcheck(function, inputs)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("size", [1e-37, 1, 1e37])
def test_cofactors_beside_determinants_out_of_range(dtype, size):
    n = 9
    a = random(dtype, n, n)
    expected = gradient(lambda x: L.det(x).real, a) * float(size) ** (n - 1)
    assert_close(gradient(lambda x: L.det(x).real, a * size), expected, rtol=1e-11, atol=0)


SCALED = {  # the degree of each result in the matrix
    "inv": (L.inv, square, -1),
    "slogdet": (lambda a: L.slogdet(a)[1], square, 0),
    "cholesky": (lambda a: L.cholesky(a + a.mH), square, 0.5),
    "lu": (lambda a: L.lu(a).U, square, 1),
    "qr": (lambda a: L.qr(a).R, lambda d: random(d, 4, 2), 1),
    "qr wide": (lambda a: L.qr(a).Q, lambda d: random(d, 2, 4), 0),
    "eigh": (lambda a: L.eigh(a + a.mH)[1].abs(), square, 0),
    "eigvalsh": (lambda a: L.eigvalsh(a + a.mH), square, 1),
    "eig": (lambda a: L.eig(a)[1].abs(), square, 0),
    "eigvals": (lambda a: L.eigvals(a).abs(), square, 1),
    "svd": (lambda a: L.svd(a, False)[0].abs(), lambda d: random(d, 4, 2), 0),
    "svdvals": (L.svdvals, lambda d: random(d, 4, 2), 1),
    "pinv": (L.pinv, lambda d: random(d, 4, 2), -1),
    "pinv wide": (L.pinv, lambda d: random(d, 2, 4), -1),
    "pinv hermitian": (lambda a: L.pinv(a + a.mH, hermitian=True), square, -1),
    "pinv of rank 2": (lambda a: L.pinv(a @ random(a.dtype, 2, 3, seed=2)), lambda d: random(d, 4, 2), -1),
    "solve": (lambda a: L.solve(a, random(a.dtype, 3, 2, seed=1)), square, -1),
    "lstsq": (lambda a: L.lstsq(a, random(a.dtype, 4, 2, seed=1)).solution, lambda d: random(d, 4, 2), -1),
    "lstsq wide": (lambda a: L.lstsq(a, random(a.dtype, 2, 2, seed=1)).solution, lambda d: random(d, 2, 4), -1),
    "nuclear norm": (lambda a: L.norm(a, "nuc"), square, 1),
    "2-norm": (lambda a: L.norm(a, 2), square, 1),
    "cond": (L.cond, square, 0),
    "cond 1": (lambda a: L.cond(a, 1), square, 0),
    "cond fro": (lambda a: L.cond(a, "fro"), square, 0),
    "cond nuc": (lambda a: L.cond(a, "nuc"), square, 0),
}


@each_dtype
@pytest.mark.parametrize("power", [564, -564])  # 1e170 and 1e-170, where products of two elements are out of range
@pytest.mark.parametrize("name", SCALED)
def test_factorizations_in_the_whole_range(name, power, dtype):
    function, make, degree = SCALED[name]

    def loss(a, factor):  # of degree 0, or as near to it as the gradient can be represented
        y = function(a)
        return real((random(y.dtype, *y.shape, seed=5).conj() * y * factor).sum())

    of_loss = max(degree, -0.5)
    a, scale = make(dtype), 2.0**power
    got = gradient(lambda x: loss(x, 2.0 ** (power * (of_loss - degree))), a * scale)
    expected = gradient(lambda x: loss(x, 1.0), a) * 2.0 ** (power * (of_loss - 1))
    assert_close(got, expected, rtol=1e-9, atol=1e-11 * float(expected.abs().max()))


def test_det_and_norms_in_the_whole_range():
    for scale in (1e170, 1e-170):
        a = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64) * scale
        expected = torch.tensor([[4.0, -3.0], [-2.0, 1.0]], dtype=torch.float64) * scale
        assert_close(gradient(L.det, a), expected, rtol=1e-14, atol=0)
        for order in (2, 3, 0.5):
            norm = lambda x, order=order: L.vector_norm(x, order)
            assert_close(gradient(norm, a), gradient(norm, a / scale), rtol=1e-13, atol=0)


@pytest.mark.parametrize("order", [1, 2, 3, float("inf")])
def test_norms_at_zero_have_the_subgradient_zero(order):
    assert gradient(lambda x: L.vector_norm(x, order), torch.zeros(3)).tolist() == [0, 0, 0]
    for kind in ("fro", "nuc", 2, -2, 1, -1, float("inf"), -float("inf")):
        assert gradient(lambda x, kind=kind: L.matrix_norm(x, kind), torch.zeros(2, 3)).eq(0).all()


@each_dtype
@pytest.mark.parametrize("order", [None, -2, 1, -1, "fro", "nuc"], ids=str)
def test_cond_has_its_extreme_at_the_identity(dtype, order):
    assert gradient(lambda a: L.cond(a, order), 3 * torch.eye(3, dtype=dtype)).abs().max() < 1e-14
    unitary = L.qr(random(dtype, 3, 3)).Q
    if order in (None, -2, "fro"):
        assert gradient(lambda a: L.cond(a, order), unitary).abs().max() < 1e-14


@each_dtype
def test_pinv_and_lstsq_at_constant_rank(dtype):
    x, y = random(dtype, 4, 2).requires_grad_(), random(dtype, 2, 3, seed=1).requires_grad_()
    for function in (
        lambda x, y: L.pinv(x @ y),
        lambda x, y: L.pinv((x @ y).mT),
        lambda x, y: L.pinv(x @ x.mH, hermitian=True) * y.sum(),
        lambda x, y: L.lstsq(x @ y, random(dtype, 4, 2, seed=2)).solution,
    ):
        assert autograd.gradcheck(function, (x, y), check_forward_ad=True)
        assert autograd.gradgradcheck(function, (x, y))


@pytest.mark.parametrize("name", ["eigh", "eig", "svd"])
def test_losses_that_depend_on_the_phase_raise(name):
    a = random(torch.complex128, 3, 3)
    a = (a + a.mH if name == "eigh" else a).requires_grad_()
    vectors = getattr(L, name)(a)[0 if name == "svd" else 1]
    with pytest.raises(RuntimeError, match="depends on this quantity, so it is ill-defined"):
        vectors.imag.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="depends on this quantity, so it is ill-defined"):
        autograd.grad(vectors, a, torch.ones(2, *vectors.shape, dtype=a.dtype), is_grads_batched=True)


def test_qr_that_is_not_differentiable_says_so():
    a = random(torch.float64, 4, 2).requires_grad_()
    with pytest.raises(RuntimeError, match="not differentiable when mode='complete'"):
        L.qr(a, "complete").R.sum().backward()
    with pytest.raises(RuntimeError, match="mode='r'"):
        L.qr(a, "r").R.sum().backward()


def test_empty_matrices_have_empty_gradients():
    for function in (L.inv, L.pinv, L.svdvals, L.matrix_exp, lambda a: L.svd(a)[0], lambda a: L.eigh(a)[1], L.det):
        a = torch.empty(2, 0, 0, requires_grad=True)
        function(a).sum().backward()
        assert a.grad.shape == (2, 0, 0)
