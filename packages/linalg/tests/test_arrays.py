"""What devices without native kernels compute, on NumPy's namespace: as the CPU does, or a decomposition of its own."""

import numpy as np
import pytest

import rushlight as torch
from rushlight.linalg import _arrays, _devices
from rushlight.testing import assert_close

L = torch.linalg
each_dtype = pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)


def random(dtype, *shape, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def same(arrays, tensors):
    for x, y in zip(arrays, tensors, strict=True):
        assert_close(torch.from_numpy(np.array(x)), y)


@each_dtype
@pytest.mark.parametrize("shape", [(2, 4, 4), (5, 3), (3, 5), (0, 3, 3)], ids=str)
def test_factors(dtype, shape):
    a = random(dtype, *shape)
    same(_arrays.lu_factor_ex(np, a.numpy(), True, False), L.lu_factor_ex(a))
    for mode in ("reduced", "complete", "r"):
        same(_arrays.qr(np, a.numpy(), mode), L.qr(a, mode))
    if shape[-1] == shape[-2]:
        same(_arrays.inv_ex(np, a.numpy(), False), L.inv_ex(a))
        p = a @ a.mH + torch.eye(shape[-1], dtype=dtype)
        for upper in (False, True):
            same(_arrays.cholesky_ex(np, p.numpy(), upper, False), L.cholesky_ex(p, upper=upper))


@each_dtype
def test_solutions(dtype):
    a, b = random(dtype, 2, 4, 4), random(dtype, 2, 4, 4, seed=1)
    factors = L.lu_factor(a)
    for left in (False, True):
        same(_arrays.solve_ex(np, a.numpy(), b.numpy(), left, False), L.solve_ex(a, b, left=left))
        for adjoint in (False, True):
            x = _arrays.lu_solve(np, *(t.numpy() for t in factors), b.numpy(), left, adjoint)
            same([x], [L.lu_solve(*factors, b, left=left, adjoint=adjoint)])
    same(
        _arrays.lstsq(np, a.numpy(), b.numpy(), 1e-14, "gelsd"),
        [getattr(L.lstsq(a, b, driver="gelsd"), name) for name in ("solution", "rank", "singular_values")],
    )


@each_dtype
def test_exponential(dtype):
    a = random(dtype, 3, 4, 4) * torch.tensor([0.01, 1.0, 20.0], dtype=torch.float64)[:, None, None]
    expected = L.matrix_exp(a)
    result = torch.from_numpy(_arrays.matrix_exp(np, a.numpy()))
    assert (L.matrix_norm(result - expected) / L.matrix_norm(expected)).max().item() < 1e-11


def test_singular_matrices_do_not_raise():
    a = np.stack([np.eye(2), np.zeros((2, 2))])
    assert _arrays.inv_ex(np, a, False)[1].tolist() == [0, 1]
    assert np.isnan(_arrays.inv_ex(np, a, False)[0][1]).all()
    assert _arrays.lu_factor_ex(np, a, True, False)[2].tolist() == [0, 1]
    with np.errstate(all="ignore"):
        assert _arrays.cholesky_ex(np, a, False, False)[1].tolist() == [0, 1]
        assert _arrays.cholesky_ex(np, -a, False, False)[1].tolist() == [1, 1]


@each_dtype
def test_decompositions_of_a_device(dtype):
    kernels = {kernel.op: kernel.fn for kernel in _devices.kernels("cpu")}
    a = random(dtype, 2, 4, 4)
    u, s, vh = kernels["linalg::svd"](a, True, driver=None)
    assert_close(u * s.unsqueeze(-2) @ vh, a)
    h = a + a.mH
    w, v = kernels["linalg::eigh"](h, "L")
    assert_close(v * w.unsqueeze(-2) @ v.mH, h)
