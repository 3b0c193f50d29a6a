"""Every operator on its own samples: rushlight's results, dtypes and error types against PyTorch's."""

import zlib

import numpy as np
import pytest
import torch

import rushlight
from rushlight.plugin import load, operators, plugins
from rushlight.testing import Maker, assert_close

for plugin in plugins():
    load(plugin.name)

DTYPES = ("float32", "float64", "int64", "bool", "bfloat16", "complex64")
# Without those whose values are arbitrary.
CASES = [
    pytest.param(op, dtype, id=f"{name}-{dtype}")
    for name, op in sorted(operators().items())
    if op.sampler and not op.arbitrary and not op.base.startswith("_")
    for dtype in DTYPES
]


def to_torch(value):
    """The same argument for PyTorch."""
    if isinstance(value, rushlight.Tensor):
        if value.dtype == rushlight.bfloat16:
            return to_torch(value.float()).bfloat16()
        array = value.detach().numpy()
        apart = torch.from_numpy(np.array(array, order="K"))
        return apart if array.ndim else apart.reshape(())
    if isinstance(value, rushlight.dtype):
        return getattr(torch, str(value).rpartition(".")[2])
    if isinstance(value, rushlight.device):
        return torch.device(str(value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(to_torch, value))
    return value


def to_numpy(value):
    """Results of either library as arrays, with the name of the dtype beside them."""
    if isinstance(value, (rushlight.Tensor, torch.Tensor)):
        name = str(value.dtype).rpartition(".")[2]
        value = value.detach().resolve_conj()
        return name, (value.float() if name == "bfloat16" else value).numpy()
    if isinstance(value, (list, tuple)):
        return [to_numpy(item) for item in value]
    return type(value).__name__, value


def outcome(function, args, kwargs):
    """What a call returns, or the type of what it raises."""
    try:
        return None, function(*args, **kwargs)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        return error, None


def callable_of(op):
    """PyTorch's function or method of the operator's name, or None."""
    home = torch
    for part in (op.namespace or "").split("."):
        home = getattr(home, part) if part else home
    return getattr(home, op.base, None) or getattr(torch.Tensor, op.base, None)


def compare(actual, expected, tolerance):
    if isinstance(expected, list):
        assert len(actual) == len(expected)
        for ours, theirs in zip(actual, expected, strict=True):
            compare(ours, theirs, tolerance)
        return
    assert actual[0] == expected[0], f"dtype {actual[0]}, PyTorch's is {expected[0]}"
    assert_close(rushlight.from_numpy(np.array(actual[1])), rushlight.from_numpy(np.array(expected[1])), **tolerance)


@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_same_as_pytorch(op, dtype):
    theirs = callable_of(op)
    if theirs is None:
        pytest.skip("PyTorch has no function of this name")
    make = Maker(getattr(rushlight, dtype), seed=zlib.crc32(op.name.encode()))
    tolerance = {"equal_nan": True}
    if dtype in op.tolerance:
        tolerance["rtol"], tolerance["atol"] = op.tolerance[dtype]
    elif dtype == "bfloat16":
        tolerance |= {"rtol": 1.6e-2, "atol": 1e-2}
    for sample in op.sampler(make, getattr(rushlight, dtype)):
        args = [to_torch(value) for value in sample.args]
        kwargs = {name: to_torch(value) for name, value in sample.kwargs.items()}
        expected_error, expected = outcome(theirs, args, kwargs)
        error, actual = outcome(op.operator, sample.args, sample.kwargs)
        if isinstance(expected_error, NotImplementedError) and error is None:
            continue  # a dtype that only rushlight computes
        if expected_error is not None:
            assert error is not None, f"PyTorch raises {expected_error!r} for {sample}"
            assert isinstance(error, type(expected_error)), f"{error!r} where PyTorch raises {expected_error!r}"
        else:
            assert error is None, f"{error!r} for {sample}, PyTorch returns {expected}"
            compare(to_numpy(actual), to_numpy(expected), tolerance)
