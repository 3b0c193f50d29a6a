"""Array kernels of sparse tensors over NumPy against the native ones of the CPU."""

import numpy as np
import pytest

import rushlight as torch
from rushlight import plugin
from rushlight.sparse import _arrays


def check(name, *args):
    """Compares values and dtypes of an operator's two kernels."""
    operator = plugin.operators()[name].operator
    expected = operator(*(torch.from_numpy(arg) if isinstance(arg, np.ndarray) else arg for arg in args))
    found = getattr(_arrays, name[1:])(np, *args)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for theirs, ours in zip(expected, found if isinstance(found, tuple) else (found,), strict=True):
        assert ours.dtype == theirs.numpy().dtype
        np.testing.assert_allclose(ours, theirs.numpy())


@pytest.fixture(params=[0, 1, 30])
def nnz(request):
    return request.param


@pytest.fixture
def rng(nnz):
    return np.random.default_rng(nnz)


def coordinates(rng, nnz):
    return np.stack([rng.integers(0, 4, nnz), rng.integers(0, 5, nnz)])


def offsets(rng, nnz, rows):
    return np.searchsorted(np.sort(rng.integers(0, rows, nnz)), np.arange(rows + 1))


def test_keys(rng, nnz):
    keys = rng.integers(0, 20, nnz)
    check("_coo_keys", coordinates(rng, nnz), [4, 5])
    check("_coo_indices", keys, [4, 5])
    check("_coo_sum", keys, rng.random(nnz))
    check("_coo_sum", keys, rng.random((nnz, 3)))
    distinct, others = np.unique(keys), np.unique(rng.integers(0, 20, 8))
    check("_coo_merge", distinct, others)
    check("_coo_find", distinct, others)


def test_products(rng, nnz):
    dense, values = rng.random((5, 3)), rng.random(nnz)
    rows, columns = coordinates(rng, nnz)
    check("_coo_matmul", np.stack([rows, columns]), values, dense, 4)
    check("_sampled_products", rows, columns, rng.random((4, 3)), dense)
    crow = offsets(rng, nnz, 4)
    check("_csr_matmul", crow, columns, values, dense)
    other = offsets(rng, 9, 5), rng.integers(0, 3, 9), rng.random(9)
    check("_csr_matmul_csr", crow, columns, values, *other, 3)


def test_rows(rng, nnz):
    rows = np.sort(rng.integers(0, 4, nnz))
    check("_csr_crow", rows, 4)
    check("_csr_rows", offsets(rng, nnz, 4), nnz)
