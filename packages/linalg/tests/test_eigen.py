"""Eigenvalues of any matrix: residuals, and values against SciPy, mpmath and what is known of the matrix."""

import mpmath
import numpy as np
import pytest
import scipy.linalg

import rushlight as torch

L = torch.linalg
DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def random(dtype, *shape, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def matched(found, expected):
    """The largest distance between values that are paired greedily."""
    rest, worst = list(np.asarray(expected).astype(complex)), 0.0
    for value in np.asarray(found).astype(complex):
        i = int(np.argmin(np.abs(np.array(rest) - value)))
        worst = max(worst, abs(rest.pop(i) - value))
    return worst


def assert_decomposed(a, factor=10):
    """|A V - V W| is rounding, the vectors have length 1, and the values alone are those of a matrix as near."""
    n = a.shape[-1]
    values, vectors = L.eig(a)
    alone = L.eigvals(a)
    exact, w, v = (t.numpy().astype(np.clongdouble) for t in (a, values, vectors))
    eps, scale = torch.finfo(a.dtype).eps, np.abs(exact).max() if n else 1
    size = float(np.linalg.norm((exact / (scale or 1)).astype(complex)))
    if scale:
        residual = exact / scale @ v - v * (w / scale)
        assert np.linalg.norm(residual.astype(complex)) <= factor * max(n, 1) * eps * size
    norms = np.linalg.norm(v.astype(complex), axis=0)
    assert np.allclose(norms, 1, rtol=0, atol=(20 + n) * eps)
    if not a.dtype.is_complex:
        assert np.array_equal(np.sort_complex(values.numpy()), np.sort_complex(values.numpy().conj()))
    assert abs(complex(alone.numpy().sum() - values.numpy().sum())) <= factor * max(n, 1) ** 1.5 * eps * size * scale
    return values.numpy()


@each_dtype
@pytest.mark.parametrize("n", [*range(21), 31, 32, 33, 63, 65, 99, 100, 101, 129, 200])
def test_random_matrices_of_each_order(dtype, n):
    a = random(dtype, n, n)
    values = assert_decomposed(a)
    if n:
        expected = scipy.linalg.eigvals(a.numpy().astype(complex))
        assert matched(values, expected) <= 300 * torch.finfo(dtype).eps * np.linalg.norm(a.numpy())


@each_dtype
def test_a_large_matrix(dtype):
    assert_decomposed(random(dtype, 420, 420))


def hard(kind, n):
    i, rng = np.arange(n), np.random.default_rng(n)
    x, shift = rng.standard_normal((n, n)), np.roll(np.eye(n), 1, axis=0)
    return {
        "zero": lambda: np.zeros((n, n)),
        "identity": lambda: np.eye(n),
        "ones": lambda: np.ones((n, n)),
        "cyclic": lambda: shift,
        "anticyclic": lambda: shift - 2 * np.eye(n)[:, [0]] * np.eye(n)[[n - 1]],
        "permutation": lambda: np.eye(n)[rng.permutation(n)],
        "orthogonal": lambda: np.linalg.qr(x)[0],
        "upper": lambda: np.triu(x),
        "lower": lambda: np.tril(x),
        "permuted triangle": lambda: np.triu(x)[np.ix_(p := rng.permutation(n), p)],
        "jordan": lambda: np.eye(n) * 0.5 + np.eye(n, k=1),
        "jordan turned": lambda: (q := np.linalg.qr(x)[0]) @ (np.eye(n) + np.eye(n, k=1)) @ q.T,
        "nearly defective": lambda: np.eye(n) + np.eye(n, k=1) + 1e-12 * x,
        "nilpotent": lambda: np.eye(n, k=-1),
        "companion": lambda: scipy.linalg.companion(np.r_[1.0, rng.standard_normal(n)]) if n > 1 else x,
        "roots of unity": lambda: scipy.linalg.companion(np.r_[1.0, np.zeros(n - 1), -1.0]) if n > 1 else x,
        "skew": lambda: x - x.T,
        "symmetric": lambda: x + x.T,
        "rank one": lambda: x[:, :1] @ x[:1],
        "grcar": lambda: np.triu(np.tril(np.ones((n, n)), 3)) - np.eye(n, k=-1),
        "frank": lambda: np.where(i[None] >= i[:, None] - 1, n - np.maximum(i[:, None], i[None]), 0.0),
        "blocks": lambda: np.kron(np.eye(n), [[1.0, 2], [-2, 1]])[:n, :n],
        "graded": lambda: x * 10.0 ** -(i[:, None] + i[None]),
        "badly scaled": lambda: x * 10.0 ** (np.linspace(-8, 8, n)[:, None] - np.linspace(-8, 8, n)[None]),
        "far apart": lambda: np.diag(10.0 ** -(i % 30)) + np.triu(x, 1) * 1e-3,
    }[kind]()


KINDS = [
    "zero",
    "identity",
    "ones",
    "cyclic",
    "anticyclic",
    "permutation",
    "orthogonal",
    "upper",
    "lower",
    "permuted triangle",
    "jordan",
    "jordan turned",
    "nearly defective",
    "nilpotent",
    "companion",
    "roots of unity",
    "skew",
    "symmetric",
    "rank one",
    "grcar",
    "frank",
    "blocks",
    "graded",
    "badly scaled",
    "far apart",
]


@each_dtype
@pytest.mark.parametrize("kind", KINDS)
def test_hard_matrices(dtype, kind):
    for n in (1, 2, 3, 4, 5, 8, 17, 40, 110, 170):
        a = torch.tensor(hard(kind, n)).to(dtype)
        assert_decomposed(a)
        if dtype.is_complex:
            assert_decomposed(a * (0.6 + 0.8j))


@pytest.mark.parametrize("n", [2, 3, 4, 7, 16, 64, 130])
def test_eigenvalues_of_permutations_are_roots_of_unity(n):
    cyclic = torch.tensor(hard("cyclic", n))
    expected = np.exp(2j * np.pi * np.arange(n) / n)
    assert matched(L.eigvals(cyclic), expected) <= 1e-13
    assert matched(L.eigvals(cyclic.to(torch.complex128)), expected) <= 1e-13


@each_dtype
@pytest.mark.parametrize("kind", ["upper", "lower", "permuted triangle"])
def test_eigenvalues_of_triangles_are_exact(dtype, kind):
    for n in (2, 5, 30, 140):
        a = torch.tensor(hard(kind, n)).to(dtype)
        assert matched(L.eigvals(a), np.diag(a.numpy())) == 0


@pytest.mark.parametrize("is_complex", [False, True])
def test_values_against_mpmath(is_complex):
    rng = np.random.default_rng(0)
    for n in (3, 6, 10):
        a = rng.integers(-9, 10, (n, n)).astype(float)
        if is_complex:
            a = a + 1j * rng.integers(-9, 10, (n, n))
        with mpmath.workdps(60):
            expected = [complex(x) for x in mpmath.eig(mpmath.matrix(a.tolist()), left=False, right=False)]
        assert matched(L.eigvals(torch.tensor(a)), expected) <= 1e-12 * np.linalg.norm(a)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e170, 1e300])
@pytest.mark.parametrize("n", [1, 2, 5, 30, 120])
def test_elements_of_any_size(dtype, scale, n):
    a = random(dtype, n, n)
    assert_decomposed(a * scale)
    assert matched(L.eigvals(a * scale) / scale, L.eigvals(a)) <= 1e-11 * n


@each_dtype
@pytest.mark.parametrize("shape", [(0, 3, 3), (1, 4, 4), (37, 8, 8), (3, 2, 11, 11), (5, 70, 70), (2, 0, 0)])
def test_batches_are_their_matrices(dtype, shape):
    a = random(dtype, *shape)
    values, vectors = L.eig(a)
    alone = L.eigvals(a)
    assert values.shape == alone.shape == shape[:-1]
    assert vectors.shape == shape
    for index in np.ndindex(*shape[:-2]):
        one_values, one_vectors = L.eig(a[index])
        assert torch.equal(values[index], one_values)
        assert torch.equal(vectors[index], one_vectors)
        assert torch.equal(alone[index], L.eigvals(a[index]))


@each_dtype
@pytest.mark.parametrize("n", [6, 50, 120])
def test_the_largest_element_of_a_complex_vector_is_real(dtype, n):
    values, vectors = (t.numpy() for t in L.eig(random(dtype, n, n)))
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(n)]
    assert (largest.imag == 0).all()
    if not dtype.is_complex:
        assert (vectors[:, values.imag == 0].imag == 0).all()


@pytest.mark.parametrize("n", [3, 40, 130])
def test_errors_name_the_matrix(n):
    a = random(torch.float64, 3, n, n)
    a[1, 0, n - 1] = float("inf")
    for function in (L.eig, L.eigvals):
        with pytest.raises(L.LinAlgError, match=rf"linalg.{function.__name__}: \(Batch element 1\): .*non-finite"):
            function(a)
