"""Joining tensors: promotion, shapes that do not fit, memory."""

import numpy as np
import pytest

import rushlight as torch


def test_cat_promotes():
    assert torch.cat([torch.tensor([1]), torch.tensor([0.5])]).dtype is torch.float32
    assert torch.stack([torch.tensor([True]), torch.tensor([2])]).dtype is torch.int64


def test_cat_passes_over_empty_vectors():
    assert torch.cat([torch.zeros(0), torch.ones(2, 3)]).shape == (2, 3)
    assert torch.cat([torch.zeros(0), torch.zeros(0)]).shape == (0,)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: torch.cat([]), ValueError, "expected a non-empty list of Tensors"),
        (lambda: torch.cat([torch.tensor(1), torch.tensor(2)]), RuntimeError, "zero-dimensional tensor"),
        (
            lambda: torch.cat([torch.ones(2, 3), torch.ones(2, 2)]),
            RuntimeError,
            "Sizes of tensors must match except in dimension 0",
        ),
        (lambda: torch.cat([torch.ones(2, 3), torch.ones(2)]), RuntimeError, "same number of dimensions: got 2 and 1"),
        (lambda: torch.cat(torch.ones(2)), TypeError, "must be tuple of Tensors, not"),
        (lambda: torch.cat([torch.ones(2)], 3), IndexError, "Dimension out of range"),
        (lambda: torch.stack([]), RuntimeError, "stack expects a non-empty TensorList"),
        (
            lambda: torch.stack([torch.ones(2), torch.ones(3)]),
            RuntimeError,
            r"got \[2\] at entry 0 and \[3\] at entry 1",
        ),
        (lambda: torch.meshgrid(torch.ones(2, 2)), RuntimeError, "Expected 0D or 1D tensor"),
        (lambda: torch.meshgrid(torch.ones(2), indexing="yx"), RuntimeError, "indexing must be one of"),
        (lambda: torch.cartesian_prod(torch.ones(2, 2)), RuntimeError, "Expect a 1D vector"),
        (lambda: torch.combinations(torch.ones(2), -1), RuntimeError, "non-negative"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_big_joins_of_strided_tensors(dim):
    arrays = [
        np.arange(24000, dtype=np.float32).reshape(20, 30, 40).transpose(order) for order in ((0, 1, 2), (0, 1, 2))
    ]
    arrays.append(np.asfortranarray(arrays[0]))
    tensors = [torch.from_numpy(a) for a in arrays]
    np.testing.assert_array_equal(torch.cat(tensors, dim).numpy(), np.concatenate(arrays, dim))
    np.testing.assert_array_equal(torch.stack(tensors, dim).numpy(), np.stack(arrays, dim))


def test_meshgrid_orders():
    x, y = torch.meshgrid(torch.arange(2), torch.arange(3), indexing="xy")
    expected = np.meshgrid(np.arange(2), np.arange(3))
    np.testing.assert_array_equal(x.numpy(), expected[0])
    np.testing.assert_array_equal(y.numpy(), expected[1])
    assert [t.shape for t in torch.meshgrid([torch.arange(2), torch.tensor(1)])] == [(2, 1), (2, 1)]


def test_loose_tensors_and_lists():
    assert torch.atleast_2d(torch.tensor(1)).shape == (1, 1)
    assert [t.shape for t in torch.atleast_1d(torch.tensor(1), torch.zeros(2))] == [(1,), (2,)]
    assert torch.block_diag(torch.ones(1, 2), torch.ones(1, 1)).shape == (2, 3)
    assert [t.shape for t in torch.broadcast_tensors(torch.zeros(2, 1), torch.zeros(3))] == [(2, 3), (2, 3)]
