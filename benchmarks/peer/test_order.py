"""Selection: the places of equal elements are those that PyTorch's topk, kthvalue and median leave."""

import numpy as np
import pytest
import torch

import rushlight

CALLS = {
    "topk": lambda x, k, dim: x.topk(k, dim),
    "topk unsorted": lambda x, k, dim: x.topk(k, dim, sorted=False),
    "topk smallest": lambda x, k, dim: x.topk(k, dim, largest=False),
    "kthvalue": lambda x, k, dim: x.kthvalue(k, dim),
    "median": lambda x, k, dim: x.median(dim),
}
DTYPES = ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("values", [1, 2, 10, 1000])
@pytest.mark.parametrize("seed", range(3))
def test_places(call, dtype, values, seed):
    rng = np.random.default_rng(seed)
    for n in (1, 2, 15, 40, 200, 1000, 9000):
        for shape, dim in (((n,), 0), ((2, n), 1), ((n, 2), 0)):
            x = rng.integers(0, values, shape).astype(dtype)
            if x.dtype.kind == "f" and seed == 1:
                x[rng.random(shape) < 0.1] = np.nan
            for k in {1, min(n, 10), n // 2 + 1, n}:
                theirs, ours = (call(lib.from_numpy(x), k, dim) for lib in (torch, rushlight))
                assert theirs.indices.tolist() == ours.indices.tolist()
