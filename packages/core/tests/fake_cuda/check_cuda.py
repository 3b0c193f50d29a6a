"""The CUDA backend over the CuPy beside this file: `test_cuda` runs it in a process of its own, where that is CuPy."""

import cupy
import nvrtc
import pytest

import rushlight as torch
from rushlight.plugin import source
from rushlight.testing import assert_close
from rushlight.testing.conformance import Case, all_ops, tensors

DTYPES = [torch.float32, torch.int64, torch.bool, torch.complex64, torch.float16]
CASES = [Case(op, dtype) for op in all_ops() if op.array_kernel for dtype in DTYPES]
TOLERANCE = {torch.float16: {"rtol": 4e-3, "atol": 1e-3}}


def results(case, device):
    """What an operator makes of each of its samples, or the error."""
    found = []
    try:
        samples = case.samples(device)
    except (Exception, pytest.skip.Exception):  # none, or made by operators that the device lacks
        return found
    for sample in samples:
        try:
            found.append(case.op.operator(*sample.args, **sample.kwargs))
        except Exception as error:
            found.append(error)
    return found


@pytest.fixture(scope="module")
def sources():
    """The source of every kernel that the samples of all operators need, compiled for the host."""
    cupy.collecting = {}
    for case in CASES:
        results(case, "cuda")
    found, cupy.collecting = cupy.collecting, None
    cupy.prepare(found)
    return found


def test_values(sources):
    compared, wrong = 0, []
    for case in CASES:
        for ours, expected in zip(results(case, "cuda"), results(case, "cpu"), strict=False):
            if isinstance(expected, Exception) or isinstance(ours, NotImplementedError):
                continue
            compared += 1
            try:
                if isinstance(ours, Exception):
                    raise AssertionError(repr(ours))
                for x, y in zip(tensors(ours), tensors(expected), strict=True):
                    assert_close(x.cpu(), y, equal_nan=True, **TOLERANCE.get(case.dtype, {"rtol": 2e-4, "atol": 1e-5}))
            except (AssertionError, ValueError) as error:
                wrong.append(f"{case}: {error}")
    assert compared > 1000
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("architecture", [70, 75, 80, 90])
def test_kernels_compile_to_ptx(sources, architecture):
    library = nvrtc.library()
    if library is None:
        pytest.skip("NVRTC is not installed (pip install nvidia-cuda-nvrtc-cu12)")
    if architecture not in nvrtc.architectures(library):
        pytest.skip(f"this NVRTC compiles for {nvrtc.architectures(library)} only")
    bodies = [code.removeprefix(source.CUDA) for code in sorted(sources)]
    for first in range(0, len(bodies), 64):
        parts = [source.CUDA]
        for number, body in enumerate(bodies[first : first + 64]):
            parts.append(f"namespace k{number} {{\n{body.replace('KERNEL run(', f'KERNEL run{number}(')}\n}}")
        ptx = nvrtc.compile_to_ptx(library, "\n".join(parts), architecture)
        assert ptx.count(".entry run") == len(parts) - 1
