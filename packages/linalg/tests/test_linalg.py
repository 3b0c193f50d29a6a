"""inv, det, solve and cholesky against NumPy and identities; errors; batches; gradients where autograd is installed."""

import contextlib

import numpy as np
import pytest

import rushlight as torch
from rushlight.testing import assert_close

DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
SHAPES = [(3, 3), (1, 1), (0, 0), (4, 2, 2), (2, 3, 5, 5), (0, 3, 3), (70, 4, 4)]


def matrix(dtype, *shape, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if dtype.is_complex:
        x = x + 1j * rng.standard_normal(shape)
    return torch.from_numpy(np.asarray(x + 2 * shape[-1] * np.eye(shape[-1]))).to(dtype)


def same(result, expected):
    assert_close(result, torch.from_numpy(np.asarray(expected)).to(result.dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values(dtype, shape):
    a = matrix(dtype, *shape)
    b = matrix(dtype, *shape, seed=1)
    same(torch.linalg.inv(a), np.linalg.inv(a.numpy()))
    same(torch.linalg.det(a), np.linalg.det(a.numpy()))
    same(torch.linalg.solve(a, b), np.linalg.solve(a.numpy(), b.numpy()))
    hermitian = a @ a.transpose(-2, -1).conj()
    lower = torch.linalg.cholesky(hermitian)
    same(lower, np.linalg.cholesky(hermitian.numpy()))
    same(torch.linalg.cholesky(hermitian, upper=True), lower.transpose(-2, -1).conj().numpy())


def test_transposed_and_strided_input():
    a = matrix(torch.float64, 4, 4)
    same(torch.linalg.inv(a.t()), np.linalg.inv(a.numpy().T))
    same(
        torch.linalg.inv(matrix(torch.float64, 6, 6)[::2, ::2]),
        np.linalg.inv(matrix(torch.float64, 6, 6).numpy()[::2, ::2]),
    )


def test_solve_with_vectors_broadcast_batches_and_from_the_right():
    a, v, b = (
        matrix(torch.float64, 2, 3, 3),
        torch.ones(2, 3, dtype=torch.float64),
        torch.ones(3, 4, dtype=torch.float64),
    )
    assert_close((a @ torch.linalg.solve(a, v).unsqueeze(-1)).squeeze(-1), v)
    assert_close(a @ torch.linalg.solve(a, b), b.expand(2, 3, 4))
    x = torch.linalg.solve(a, b.t(), left=False)
    assert_close(x @ a, b.t().expand(2, 4, 3))


def test_names_of_the_module_itself():
    a = matrix(torch.float64, 3, 3)
    assert_close(torch.inverse(a), a.inverse())
    assert_close(torch.det(a), a.det())
    assert_close(torch.cholesky(a @ a.t()), torch.linalg.cholesky(a @ a.t()))


def test_singular_matrices_name_the_batch_element():
    a = torch.stack([torch.eye(2), torch.zeros(2, 2)])
    with pytest.raises(
        torch.linalg.LinAlgError, match=r"linalg.inv: \(Batch element 1\): The diagonal element 1 is zero"
    ):
        torch.linalg.inv(a)
    with pytest.raises(torch.linalg.LinAlgError, match=r"linalg.solve: \(Batch element 1\): The solver failed"):
        torch.linalg.solve(a, a)
    with pytest.raises(torch.linalg.LinAlgError, match="leading minor of order 1 is not positive-definite"):
        torch.linalg.cholesky(-torch.eye(2))
    assert torch.linalg.det(a).tolist() == [1, 0]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_values_that_are_not_finite_end(value):
    a = torch.full((3, 3), value)
    for function in (torch.linalg.inv, torch.linalg.det, torch.linalg.cholesky):
        with contextlib.suppress(torch.linalg.LinAlgError):
            function(a)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: torch.linalg.inv(torch.ones(3)), "must have at least 2 dimensions"),
        (lambda: torch.linalg.det(torch.ones(2, 3)), "must be batches of square matrices"),
        (lambda: torch.linalg.inv(torch.ones(2, 2, dtype=torch.int64)), "Expected a floating point or complex tensor"),
        (lambda: torch.linalg.inv(torch.ones(2, 2, dtype=torch.float16)), "Low precision dtypes not supported"),
        (lambda: torch.linalg.solve(torch.eye(2), torch.ones(3, 1)), "Incompatible shapes"),
        (lambda: torch.linalg.solve(torch.eye(2), torch.ones(2, dtype=torch.float64)), "same dtype"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(RuntimeError, match=message):
        call()


def test_meta_tensors_have_the_shape():
    a = torch.empty(5, 3, 3, device="meta")
    assert torch.linalg.inv(a).shape == (5, 3, 3)
    assert torch.linalg.det(a).shape == (5,)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_gradients(dtype):
    autograd = pytest.importorskip("rushlight.autograd")
    a = matrix(dtype, 2, 3, 3).requires_grad_()
    b = matrix(dtype, 2, 3, 3, seed=1).requires_grad_()
    assert autograd.gradcheck(torch.linalg.inv, a)
    assert autograd.gradcheck(torch.linalg.det, a)
    assert autograd.gradcheck(torch.linalg.solve, (a, b))
    assert autograd.gradgradcheck(torch.linalg.inv, a)


def test_gradient_of_det_at_a_singular_matrix():
    autograd = pytest.importorskip("rushlight.autograd")
    a = torch.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=torch.float64, requires_grad=True)
    (grad,) = autograd.grad(torch.linalg.det(a), a)
    assert grad.tolist() == [[4, -2], [-2, 1]]
