"""Every operator on its own samples: rushlight's results, dtypes and error types against PyTorch's."""

import warnings
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
# Vectors and factors that are determined up to factors or an order; packages/linalg/tests put them together again.
UP_TO_FACTORS = {"eig", "eigh", "svd", "symeig"}
# Operators behind a function of the name in torch.nn.functional, of other arguments or results.
BEHIND_FUNCTIONS = {
    "adaptive_max_pool2d", "adaptive_max_pool3d", "binary_cross_entropy_with_logits", "cosine_embedding_loss",
    "embedding", "embedding_bag", "fractional_max_pool2d", "fractional_max_pool3d", "grid_sample",
    "hinge_embedding_loss", "kl_div", "margin_ranking_loss", "triplet_margin_loss",
}  # fmt: skip
# Ours by decision (docs/differences.md): more exact, of more dtypes or arguments.
DIFFERENT = {
    "airy_ai", "bessel_j0", "bessel_y0", "bessel_y1", "grid_sampler", "grid_sampler_2d", "grid_sampler_3d",
    "cholesky_inverse", "multigammaln", "pinv", "polygamma", "tanhshrink", "upsample", "vander",
}  # fmt: skip
# Without those whose values are arbitrary.
CASES = [
    pytest.param(op, dtype, id=f"{name}-{dtype}")
    for name, op in sorted(operators().items())
    if op.sampler and not op.arbitrary and not op.base.startswith("_")
    if op.base not in UP_TO_FACTORS | BEHIND_FUNCTIONS | DIFFERENT
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
        with warnings.catch_warnings(action="ignore"):
            return None, function(*args, **kwargs)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        return error, None


def callable_of(op):
    """PyTorch's function or method of the operator's name, or None."""
    homes = [torch.nn.functional if op.namespace == "nn" else torch, torch.Tensor]
    if op.namespace in ("fft", "linalg", "special"):
        homes[0] = getattr(torch, op.namespace)
    found = (getattr(home, op.base, None) for home in homes)
    return next((function for function in found if callable(function)), None)


def compare(actual, expected, tolerance):
    if isinstance(expected, list):
        assert len(actual) == len(expected)
        for ours, theirs in zip(actual, expected, strict=True):
            compare(ours, theirs, tolerance)
        return
    assert actual[0] == expected[0], f"dtype {actual[0]}, PyTorch's is {expected[0]}"
    ours, theirs = (rushlight.from_numpy(np.array(value)) for value in (actual[1], expected[1]))
    if theirs.is_floating_point() or theirs.is_complex():
        largest = theirs.abs().nan_to_num(0, 0, 0).amax().item() if theirs.numel() else 0
        tolerance = {**tolerance, "atol": max(tolerance["atol"], tolerance["rtol"] * largest)}  # of sums, say
    assert_close(ours, theirs, **tolerance)


@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_same_as_pytorch(op, dtype):
    theirs = callable_of(op)
    if theirs is None:
        pytest.skip("PyTorch has no function of this name")
    make = Maker(getattr(rushlight, dtype), seed=zlib.crc32(op.name.encode()))
    rtol, atol = {"float64": (1e-7, 1e-7), "bfloat16": (4e-2, 4e-2)}.get(dtype, (1e-5, 1e-5))
    if dtype in op.tolerance:
        rtol, atol = op.tolerance[dtype]
    tolerance = {"rtol": rtol, "atol": atol, "equal_nan": True}
    try:
        samples = list(op.sampler(make, getattr(rushlight, dtype)))
    except NotImplementedError as error:
        pytest.skip(str(error))
    for sample in samples:
        args = [to_torch(value) for value in sample.args]
        kwargs = {name: to_torch(value) for name, value in sample.kwargs.items()}
        expected_error, expected = outcome(theirs, args, kwargs)
        error, actual = outcome(op.operator, sample.args, sample.kwargs)
        if error is None and isinstance(expected_error, (NotImplementedError, TypeError)):
            continue  # a dtype that only rushlight computes, or a form of call that only its operator has
        if isinstance(error, NotImplementedError) and expected_error is None:
            continue  # of no elements or one, where PyTorch runs no kernel that would refuse the dtype
        if "deprecated since version 1.9 and is now removed" in str(expected_error):
            continue
        if expected_error is not None:
            assert error is not None, f"PyTorch raises {expected_error!r} for {sample}"
            assert isinstance(error, type(expected_error)), f"{error!r} where PyTorch raises {expected_error!r}"
        else:
            assert error is None, f"{error!r} for {sample}, PyTorch returns {expected}"
            compare(to_numpy(actual), to_numpy(expected), tolerance)
