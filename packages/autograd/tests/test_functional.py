"""Products with Jacobians and Hessians, and the matrices, against formulas."""

import numpy as np
import pytest

import rushlight as torch
from rushlight.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp
from rushlight.utils.checkpoint import checkpoint


def tensor(*values):
    return torch.tensor(values, dtype=torch.float64)


def two(x, y):
    return x * y.sum(), (x * x).sum()


def cubes(x):
    return (x**3).sum() + x.prod()


X, Y, V = tensor(1.0, 2.0), tensor(3.0, 4.0, 5.0), tensor(1.0, -1.0)
STRATEGIES = pytest.mark.parametrize(
    "options",
    [{}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}],
    ids=["rows", "batch", "columns"],
)


@STRATEGIES
def test_jacobian(options):
    (by_x, by_y), (square_by_x, square_by_y) = jacobian(two, (X, Y), **options)
    assert np.allclose(by_x.numpy(), 12 * np.eye(2))
    assert np.allclose(by_y.numpy(), [[1, 1, 1], [2, 2, 2]])
    assert square_by_x.tolist() == [2, 4]
    assert square_by_y.tolist() == [0, 0, 0]
    assert jacobian(lambda x: x * x, X, **options).tolist() == [[2, 0], [0, 4]]
    assert jacobian(lambda x: torch.ones(3), X, **options).tolist() == [[0, 0]] * 3
    assert jacobian(lambda x: x.reshape(2, 1) * Y, X, **options).shape == (2, 3, 2)


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_hessian(strategy):
    options = {"vectorize": True, "outer_jacobian_strategy": strategy}
    assert hessian(cubes, X, **options).tolist() == [[6, 1], [1, 12]]
    ((xx, xy), (yx, yy)) = hessian(lambda x, y: (x * x).sum() * y.prod(), (X, tensor(3.0, 4.0)), **options)
    assert np.allclose(xx.numpy(), 24 * np.eye(2))
    assert np.allclose(xy.numpy(), [[8, 6], [16, 12]])
    assert np.allclose(yx.numpy(), xy.numpy().T)
    assert np.allclose(yy.numpy(), [[0, 5], [5, 0]])


def test_products():
    (a, b), (by_x, by_y) = vjp(two, (X, Y), (V, tensor(2.0)[0]))
    assert a.tolist() == [12, 24]
    assert b.item() == 5
    assert by_x.tolist() == [16, -4]
    assert by_y.tolist() == [-1, -1, -1]
    _, (a, b) = jvp(two, (X, Y), (V, tensor(1.0, 0.0, 0.0)))
    assert a.tolist() == [13, -10]
    assert b.item() == -2
    for product in (vhp, hvp):
        value, result = product(cubes, X, V)
        assert value.item() == 11
        assert result.tolist() == [5, -11]
        assert product(lambda x: x.sum(), X, V)[1].tolist() == [0, 0]
    assert vjp(lambda x: x.sum(), X)[1].tolist() == [1, 1]
    assert jvp(lambda x: torch.ones(2), X, X)[1].tolist() == [0, 0]


def test_results_that_can_be_differentiated():
    x = X.clone().requires_grad_()
    assert not jacobian(cubes, x).requires_grad
    for result in (
        jacobian(cubes, x, create_graph=True),
        hessian(cubes, x, create_graph=True),
        vjp(cubes, x, create_graph=True)[1],
        jvp(cubes, x, V, create_graph=True)[1],
        vhp(cubes, x, V, create_graph=True)[1],
        hvp(cubes, x, V, create_graph=True)[1],
    ):
        assert torch.autograd.grad(result.sum(), x)[0].any()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jacobian(lambda x: torch.ones(2), X, strict=True), RuntimeError, "does not require gradients"),
        (lambda: jacobian(lambda x, y: x * 2, (X, Y), strict=True), RuntimeError, "Output 0 .* independent of input 1"),
        (
            lambda: jacobian(lambda x: x * 2, X, strict=True, create_graph=True),
            RuntimeError,
            "The jacobian of the user-provided function is independent of input 0",
        ),
        (lambda: hessian(lambda x: x.sum(), X, strict=True), RuntimeError, "While computing the hessian"),
        (lambda: vhp(lambda x: x.sum(), X, X, strict=True), RuntimeError, "While computing the hessian"),
        (lambda: vjp(lambda x: x * 2, X), RuntimeError, "The vector v can only be None"),
        (lambda: vjp(lambda x: x * 2, X, Y), RuntimeError, "v has invalid size"),
        (lambda: jvp(two, (X, Y), (X, X)), RuntimeError, "Entry 1 in v has invalid size"),
        (lambda: jvp(two, (X, Y), X), RuntimeError, "should be 2 but got 1"),
        (lambda: hessian(lambda x: x, X), RuntimeError, "should contain a single element"),
        (lambda: hessian(lambda x: (x.sum(), x.sum()), X), RuntimeError, "should return a single Tensor"),
        (lambda: jacobian(lambda x: x, 3), TypeError, "The inputs given to jacobian must be either a Tensor"),
        (lambda: jacobian(lambda x: 3, X), TypeError, "The outputs of the user-provided function given to jacobian"),
        (lambda: jacobian(two, (X, 3)), TypeError, "the value at index 1 has type"),
        (lambda: jacobian(two, X, strict=True, vectorize=True), RuntimeError, "not supported together"),
        (lambda: jacobian(two, X, strategy="sideways"), AssertionError, "Expected strategy"),
        (lambda: jacobian(two, X, strategy="forward-mode", create_graph=True), NotImplementedError, "create_graph"),
        (lambda: jacobian(lambda x: x * 1j, X), RuntimeError, "only for real scalar outputs"),
    ],
)
def test_misuse(call, error, message):
    with pytest.raises(error, match=message):
        call()


@STRATEGIES
def test_numbers_and_checkpoints(options):
    assert jacobian(lambda x: x * x, tensor(3.0).reshape(()), **options).tolist() == 6
    again = jacobian(lambda x: checkpoint(lambda x: x.sin() * x, x, use_reentrant=False), X, **options)
    assert np.allclose(again, jacobian(lambda x: x.sin() * x, X))
