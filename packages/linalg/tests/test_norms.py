"""Norms, condition numbers and products against NumPy; the range of numbers; errors."""

import math

import numpy as np
import pytest

import rushlight as torch
from rushlight.testing import assert_close

L = torch.linalg
DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
ORDERS = ["fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf]


def random(dtype, *shape, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype.is_complex else 0)
    return torch.from_numpy(np.asarray(x)).to(dtype)


def same(result, expected):
    assert_close(result, torch.from_numpy(np.asarray(expected)).to(result.dtype), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_matrix_norm(dtype, order):
    a = random(dtype, 2, 3, 4)
    for dim in ((-2, -1), (0, 1), (2, 0)):
        for keepdim in (False, True):
            expected = np.linalg.norm(a.numpy(), order, dim, keepdim)
            same(L.matrix_norm(a, order, dim, keepdim), expected)
            same(L.norm(a, order, dim, keepdim), expected)
            if order in ("fro", "nuc"):
                same(torch.norm(a, order, dim, keepdim), expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("order", [0, 1, 2, 3, 0.5, -1, math.inf, -math.inf])
def test_vector_norm(dtype, order):
    x = random(dtype, 3, 4)
    same(L.vector_norm(x, order), np.linalg.norm(x.numpy().ravel(), order))
    same(L.vector_norm(x, order, 1, True), np.linalg.norm(x.numpy(), order, 1, True))
    same(L.norm(x[0], order), np.linalg.norm(x[0].numpy(), order))


@pytest.mark.parametrize("order", [2, 3, 0.5, 10, 1, math.inf])
@pytest.mark.parametrize("scale", [1e170, 1e-170])
def test_norms_neither_overflow_nor_vanish(order, scale):
    x = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
    expected = np.linalg.norm(x, order, 1) * scale
    assert_close(L.vector_norm(torch.from_numpy(x * scale), order, 1), torch.from_numpy(expected), rtol=1e-14, atol=0)


def test_single_precision_has_its_whole_range():
    assert L.vector_norm(torch.tensor([1e20, 1.0, 1.0])).item() == np.float32(1e20)
    assert L.matrix_norm(torch.full((2, 2), 1e-30)).item() == pytest.approx(2e-30)
    assert L.vector_norm(torch.tensor([3e38, 3e38])).item() == math.inf


@pytest.mark.parametrize("p", [None, *ORDERS], ids=str)
def test_cond(p):
    a = random(torch.float64, 2, 3, 3)
    same(L.cond(a, p), np.linalg.cond(a.numpy(), p))
    assert L.cond(torch.zeros(2, 2), 1).item() == math.inf
    assert L.cond(torch.zeros(2, 0, 0), p).tolist() == [0, 0]


@pytest.mark.parametrize("n", [-3, -1, 0, 1, 2, 5, 8])
def test_matrix_power(n):
    a = random(torch.float64, 2, 3, 3)
    same(L.matrix_power(a, n), np.linalg.matrix_power(a.numpy(), n))
    same(a.matrix_power(n), np.linalg.matrix_power(a.numpy(), n))
    if n < 0:
        with pytest.raises(L.LinAlgError, match="singular"):
            L.matrix_power(torch.zeros(2, 2), n)


def test_products():
    a, b, c, v = (random(torch.complex128, *s, seed=i) for i, s in enumerate(((2, 3), (3, 7), (7, 2), (2,))))
    same(L.multi_dot([a, b, c, v]), np.linalg.multi_dot([a.numpy(), b.numpy(), c.numpy(), v.numpy()]))
    same(L.multi_dot([v, a]), v.numpy() @ a.numpy())
    same(L.vecdot(a, a), (np.conj(a.numpy()) * a.numpy()).sum(-1))
    same(L.vecdot(a, a, dim=0), (np.conj(a.numpy()) * a.numpy()).sum(0))
    same(L.trace(a), np.trace(a.numpy()))
    same(L.outer(v, v), np.outer(v.numpy(), v.numpy()))
    same(L.matrix_transpose(a), a.numpy().T)
    same(L.vander(torch.tensor([1, 2, 3]), N=4), np.vander([1, 2, 3], 4, increasing=True))
    x, y = random(torch.float64, 4, 3), random(torch.float64, 4, 3, seed=1)
    same(L.cross(x, y), np.cross(x.numpy(), y.numpy()))


def test_tensors_as_maps():
    a, b = random(torch.float64, 2, 3, 6), random(torch.float64, 2, 3, seed=1)
    same(L.tensorinv(a), np.linalg.tensorinv(a.numpy()))
    same(L.tensorsolve(a, b), np.linalg.tensorsolve(a.numpy(), b.numpy()))
    with pytest.raises(RuntimeError, match=r"prod\(self.shape"):
        L.tensorinv(a, 1)
    with pytest.raises(RuntimeError, match="strictly positive"):
        L.tensorinv(a, 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: L.matrix_norm(torch.ones(2, 2), "max"), "Order max not supported"),
        (lambda: L.matrix_norm(torch.ones(2, 2), 3), "Order 3 not supported"),
        (lambda: L.matrix_norm(torch.ones(2)), "at least 2 dimensions"),
        (lambda: L.matrix_norm(torch.ones(2, 2), dim=(0, 0)), "dims must be different|multiple times"),
        (lambda: L.matrix_norm(torch.ones(2, 2), dim=(0,)), "2-tuple"),
        (lambda: L.norm(torch.ones(2, 2, 2), 2), "must be 1D or 2D"),
        (lambda: L.norm(torch.ones(2, 2, 2), 2, (0, 1, 2)), "length 1 or 2"),
        (lambda: L.vector_norm(torch.ones(2, dtype=torch.int64)), "floating point or complex"),
        (lambda: L.vector_norm(torch.ones(2), dtype=torch.int64), "floating point or complex"),
        (lambda: L.vector_norm(torch.empty(0), math.inf), "empty tensor"),
        (lambda: L.cond(torch.ones(2, 3), 1), "square"),
        (lambda: L.cond(torch.eye(2), "max"), "invalid norm type"),
        (lambda: L.multi_dot([torch.eye(2)]), "at least 2 tensors"),
        (lambda: L.multi_dot([torch.eye(2), torch.eye(3)]), "cannot be multiplied"),
        (lambda: L.multi_dot([torch.eye(2), torch.ones(2), torch.eye(2)]), "must be 2D"),
        (lambda: L.vecdot(torch.ones(2), torch.ones(2).double()), "same dtype"),
        (lambda: L.vander(torch.ones(2), N=1), "greater than 1"),
        (lambda: L.matrix_power(torch.ones(2, 3), 2), "square"),
    ],
)
def test_errors(call, message):
    with pytest.raises(RuntimeError, match=message):
        call()


def test_vecdot_of_numbers():
    x, number = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor(2.0)
    assert L.vecdot(x, number).tolist() == L.vecdot(number, x).tolist() == [6, 14]
    assert L.vecdot(number, number).item() == 4
