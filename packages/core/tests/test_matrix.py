"""Trace, cross, kron, vander, fills of diagonals and other small names: identities and errors."""

import math

import numpy as np
import pytest

import rushlight as torch


def test_trace_is_linear_and_counts_integers_in_int64():
    assert torch.trace(torch.full((3, 4), 200, dtype=torch.uint8)).item() == 600
    with pytest.raises(RuntimeError, match="expected a matrix"):
        torch.trace(torch.ones(2))


def test_cross_is_orthogonal():
    a, b = torch.randn(5, 3, dtype=torch.float64), torch.randn(5, 3, dtype=torch.float64)
    c = torch.cross(a, b)
    assert (a * c).sum(1).abs().max().item() < 1e-12
    assert torch.allclose(c, -b.cross(a, dim=1))
    assert torch.allclose((c * c).sum(1), (a * a).sum(1) * (b * b).sum(1) - (a * b).sum(1) ** 2)


@pytest.mark.parametrize(
    ("a", "b", "dim"),
    [
        (torch.ones(2, 2), torch.ones(2, 2), None),
        (torch.ones(4, 3), torch.ones(4, 2), 1),
        (torch.ones(3).int(), torch.ones(3), 0),
        (torch.ones(3, 3), torch.ones(3), 0),
    ],
)
def test_cross_errors(a, b, dim):
    with pytest.raises(RuntimeError):
        torch.cross(a, b, dim)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("n", [0, 1, 3, 8, 17, 100, (1 << 14) + 1, 50_000])
def test_complex_dots_of_every_length(n, dtype):
    rng = np.random.default_rng(n)
    a, b = ((rng.standard_normal(n) + 1j * rng.standard_normal(n)).astype(dtype) for _ in range(2))
    x, y = torch.tensor(a), torch.tensor(b)
    tolerance = 64 * np.finfo(dtype).eps * max(n, 1) ** 0.5
    wide = a.astype(np.complex128), b.astype(np.complex128)
    assert abs(torch.dot(x, y).item() - np.dot(*wide)) <= tolerance
    assert abs(torch.vdot(x, y).item() - np.vdot(*wide)) <= tolerance
    assert abs(torch.dot(x[::2], y[::2]).item() - np.dot(wide[0][::2], wide[1][::2])) <= tolerance


def test_addbmm_in_place_grows_a_smaller_tensor():
    a, b = torch.randn(2, 3, 4, dtype=torch.float64), torch.randn(2, 4, 5, dtype=torch.float64)
    for shape in ((3, 5), (5,), (3, 1), ()):
        x = torch.randn(shape, dtype=torch.float64)
        expected = 2 * x + 3 * (a @ b).sum(0)
        assert x.addbmm_(a, b, beta=2, alpha=3) is x
        torch.testing.assert_close(x, expected)
    with pytest.raises(RuntimeError, match="same dtype"):
        torch.zeros(3, 5).addbmm_(a, b)


def test_kron_of_products():
    a, b, c, d = (torch.randn(2, 2, dtype=torch.float64) for _ in range(4))
    assert torch.allclose(torch.kron(a, b) @ torch.kron(c, d), torch.kron(a @ c, b @ d))


def test_vander_evaluates_polynomials():
    x = torch.tensor([1.0, 2.0, 5.0], dtype=torch.float64)
    coefficients = torch.tensor([2.0, -1.0, 3.0], dtype=torch.float64)
    np.testing.assert_allclose((torch.vander(x) @ coefficients).numpy(), np.polyval(coefficients.numpy(), x.numpy()))
    assert torch.vander(torch.tensor([2, 3]), 0).shape == (2, 0)
    with pytest.raises(RuntimeError, match="non-negative"):
        torch.vander(x, -1)


def test_fill_diagonal():
    x = torch.zeros(3, 3, 3)
    assert x.fill_diagonal_(2) is x
    assert x.sum().item() == 6
    wide = torch.zeros(4, 9)[:, ::2].fill_diagonal_(1)
    assert torch.equal(wide, torch.eye(4, 5))
    for shape in ((3,), (2, 2, 3)):
        with pytest.raises(RuntimeError):
            torch.zeros(shape).fill_diagonal_(1)


def test_isin_by_comparing_and_by_sorting():
    x = torch.randint(0, 1000, (50, 7))
    for n in (3, 500):
        values = torch.randint(0, 1000, (n,))
        assert torch.equal(torch.isin(x, values), torch.from_numpy(np.isin(x.numpy(), values.numpy())))
    nan = torch.full((30,), float("nan"))
    assert not torch.isin(nan, nan).any()
    assert torch.isin(x, torch.tensor([], dtype=torch.int64), invert=True).all()
    with pytest.raises(RuntimeError, match="Unsupported input type"):
        torch.isin(nan.to(torch.complex64), nan)


def test_sum_to_size_undoes_expand():
    x = torch.rand(3, 1)
    assert torch.allclose(x.expand(2, 3, 4).sum_to_size(3, 1), 8 * x)
    assert x.sum_to_size(3, 1) is x
    with pytest.raises(RuntimeError, match="expandable"):
        x.sum_to_size(2)


def test_broadcast_shapes():
    assert torch.broadcast_shapes((2, 1), 3, (1,)) == (2, 3)
    assert torch.broadcast_shapes() == ()
    assert torch.broadcast_shapes((0,), (1,)) == (0,)
    for shapes, error in ((((2, 3), (2,)), RuntimeError), (((-1,),), ValueError), ((2.0,), RuntimeError)):
        with pytest.raises(error):
            torch.broadcast_shapes(*shapes)


def test_python_functions_for_every_element():
    x = torch.tensor([[1, 2], [3, 4]])
    assert x.apply_(lambda v: v * 10).tolist() == [[10, 20], [30, 40]]
    assert x.t().map_(torch.tensor([1, 2]), lambda a, b: a + b).t().tolist() == [[11, 21], [32, 42]]
    assert x.map2_(x.clone(), x.clone(), lambda a, b, c: a - b + c).tolist() == [[11, 21], [32, 42]]
    with pytest.raises(TypeError, match="expected torch.LongTensor"):
        x.map_(torch.ones(2), max)
    with pytest.raises(TypeError, match="real number"):
        x.apply_(str)


def test_range_includes_its_end():
    assert torch.range(1, 4).tolist() == [1, 2, 3, 4]
    assert torch.range(5, 0, -2, dtype=torch.int64).tolist() == [5, 3, 1]
    for bounds in ((1, 4, 0), (1, 4, -1), (1, float("inf"))):
        with pytest.raises(RuntimeError):
            torch.range(*bounds)


def test_complex_ranges():
    np.testing.assert_allclose(torch.linspace(1j, 2, 5).numpy(), np.linspace(1j, 2, 5), rtol=1e-6)
    np.testing.assert_allclose(
        torch.logspace(1j, 2, 5, dtype=torch.complex128).numpy(), np.logspace(1j, 2, 5), rtol=1e-12
    )
    with pytest.raises(RuntimeError, match="safely"):
        torch.linspace(1j, 2, 5, dtype=torch.float32)


def test_complex_sums_of_exponentials():
    x = torch.randn(4, 5, dtype=torch.complex128)
    assert torch.allclose(x.logsumexp(1).exp(), x.exp().sum(1))
    assert torch.allclose(x.logcumsumexp(1).exp(), x.exp().cumsum(1))
    assert torch.isfinite((x + 1000).logsumexp(0).real).all()


def test_arange_of_int64_takes_the_integer_parts():
    assert torch.arange(0.5, 2.9, dtype=torch.int64).tolist() == [0, 1]


def test_results_that_want_their_own_dtype():
    one = torch.ones(1)
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype complex64, but got complex128"):
        torch.complex(one, one, out=torch.empty(1, dtype=torch.complex128))


def test_clamp_gradients_at_the_bounds():
    pytest.importorskip("rushlight.autograd")
    x = torch.tensor([1.0, 2.0, float("nan")], requires_grad=True)
    low = torch.tensor([1.0, 3.0, 0.0], requires_grad=True)
    torch.clamp(x, min=low).sum().backward()
    assert x.grad.tolist() == [1, 0, 0]
    assert low.grad.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("i,j", ((2,), (3,))),
        ("ij,jk", ((2, 1), (1, 3))),
        ("ij,jk", ((2, 2), (1, 3))),
        ("i,i", ((1,), (1,))),
        ("ij,ij->ij", ((2, 1), (2, 3))),
        ("bij,bjk->bik", ((1, 2, 1), (4, 3, 2))),
        ("ab,cd->dbca", ((2, 3), (4, 5))),
        ("iij,j", ((2, 2, 1), (3,))),
    ],
)
@pytest.mark.parametrize("dtypes", [("float32", "float64"), ("int64", "float32"), ("bool", "bool")])
def test_einsum_without_a_product_of_matrices_promotes(equation, shapes, dtypes):
    a, b = (np.arange(math.prod(s)).reshape(s).astype(d) for s, d in zip(shapes, dtypes, strict=True))
    result = torch.einsum(equation, torch.from_numpy(a), torch.from_numpy(b))
    wanted = np.einsum(equation, a.astype("float64"), b.astype("float64"))
    assert np.array_equal(result.numpy(), wanted.astype(result.numpy().dtype))
    if dtypes != ("bool", "bool"):
        assert result.dtype == torch.promote_types(*(getattr(torch, d) for d in dtypes))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize(
    "shape", [(1, 5, 7), (1, 300, 700), (33, 65, 100), (300, 530, 600), (3, 40, 9000), (9, 1, 513)]
)
def test_product_of_any_layout(dtype, shape):
    m, n, k = shape
    layouts = {
        "rows": lambda x: x,
        "columns": lambda x: x.t().contiguous().t(),
        "gaps": lambda x: torch.stack([x, x], 2)[..., 0],
    }
    a, b, c = torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype), torch.randn(m, n).to(dtype)
    wide = [x.double().numpy() for x in (a, b, c)]
    expected = wide[2] / 2 + 2 * (wide[0] @ wide[1])
    error = (np.abs(expected) * 2 + k**0.5) * torch.finfo(dtype).eps + k * 1e-6
    for left in layouts.values():
        for right in layouts.values():
            result = torch.addmm(c, left(a), right(b), beta=0.5, alpha=2).double().numpy()
            assert (np.abs(result - expected) <= error).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize(("m", "k", "n"), [(30, 4000, 2), (20, 2700, 3), (64, 2048, 2), (17, 1024, 9)])
def test_product_with_few_long_columns(m, k, n, dtype):
    # They are copied to whole vectors, many times their own size.
    rng = np.random.default_rng(m)
    a, b = rng.integers(-4, 5, (m, k)).astype(dtype), rng.integers(-4, 5, (n, k)).astype(dtype)
    assert np.array_equal((torch.from_numpy(a) @ torch.from_numpy(b).T).numpy(), a @ b.T)
    batched = torch.from_numpy(np.stack([a, -a])) @ torch.from_numpy(np.stack([b, b])).mT
    assert np.array_equal(batched.numpy(), np.stack([a @ b.T, -(a @ b.T)]))
