"""The conformance suite: every operator's samples on one device.

    pytest --pyargs rushlight.testing.conformance --device=toy --capabilities=table.md
    pytest --pyargs rushlight.testing.conformance --operators '^toy::'

Of each operator that any installed wheel brings it tests values (against the reference of the record or its array
kernel over NumPy, else against the CPU), results for inputs that are not contiguous, `out=` and in-place forms, shape
and dtype on the meta device, sharing of memory, gradients, and the errors for arguments that do not fit. An operator
that the device lacks has to raise NotImplementedError; that counts as a skip and is "missing" in the table.
"""

from __future__ import annotations

import re
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import rushlight as torch
from rushlight import _C, _registry
from rushlight._capabilities import implementation, is_differentiable
from rushlight._op import VIEW, Sample, operators
from rushlight.plugin import Backend

from ._comparison import assert_close
from ._dtypes import get_all_dtypes, numpy_dtype
from ._pytest import CAPABILITIES
from ._samples import Maker, make_non_contiguous

DERIVED = (torch.float32, torch.int64, torch.bool, torch.complex64)
"""Dtypes for what follows from the value: out=, in-place, meta, strides, aliasing."""


UNSUPPORTED = re.compile(
    "no kernel for|not implemented for|does not support|only supported for|dtype|floating point|bool tensor|depends on"
)
"""How errors speak of a device, dtype or lack of values that an operator does not take."""


WRITES = "(a!)"
"""Marks the parameter in a schema that the operator writes to."""


class NumPy(Backend):
    """A device whose arrays are NumPy's: on it array kernels say what the native ones of the CPU should."""

    name = "numpy"
    xp = np


if "numpy" not in _registry.backends:
    _registry.commit(_registry.CORE, _registry.Contributions(backends=[NumPy]))


class Case(NamedTuple):
    """One operator in one dtype."""

    op: Any
    dtype: Any

    def __str__(self) -> str:
        return f"{self.op.name}-{str(self.dtype).rpartition('.')[2]}"

    def maker(self, device: str, requires_grad: bool = False, leaves: list[Any] | None = None) -> Maker:
        """What makes its samples; the same values for every device."""
        return Maker(self.dtype, device, requires_grad, zlib.crc32(str(self).encode()), leaves)

    def samples(self, make: Maker | str) -> list[Sample]:
        """Its samples, made by a maker or on a device."""
        try:
            make = self.maker(make) if isinstance(make, str) else make
            samples = list(self.op.sampler(make, self.dtype)) if self.op.sampler else []
        except RuntimeError as error:  # an operator that makes the sample does not take the dtype
            if not UNSUPPORTED.search(str(error)):
                raise
            samples = []
        if not samples:
            pytest.skip("no sample")
        return samples


def all_ops(pattern: str = "") -> list[Any]:
    """The records of every operator of every installed wheel whose name a regular expression finds, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a broken plugin is not this suite's subject
        _registry.manager().load_all(ours=True)
    return [_registry.ops[name].item for name in sorted(_registry.ops) if re.search(pattern, name)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    pattern = metafunc.config.getoption("--operators")
    if "case" in metafunc.fixturenames:
        dtypes = {"test_value": get_all_dtypes(), "test_gradient": (torch.float64, torch.complex128)}
        cases = [
            Case(op, dtype) for op in all_ops(pattern) for dtype in dtypes.get(metafunc.function.__name__, DERIVED)
        ]
        metafunc.parametrize("case", cases, ids=str)
    elif "op" in metafunc.fixturenames:
        metafunc.parametrize("op", all_ops(pattern), ids=lambda op: op.name)


@contextmanager
def skip_unsupported() -> Iterator[None]:
    """The errors of an absent kernel or dtype are skips."""
    try:
        yield
    except RuntimeError as error:
        if not UNSUPPORTED.search(str(error)):
            raise
        pytest.skip(str(error))


def call(op: Any, sample: Sample, **more: Any) -> Any:
    """Runs an operator where there is a kernel for it."""
    with skip_unsupported():
        return op.operator(*sample.args, **sample.kwargs, **more)


def tensors(value: Any) -> Iterator[Any]:
    """All tensors in nested sequences and mappings."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors(item)


def change(value: Any, fn: Callable[[Any], Any]) -> Any:
    """The same structure with `fn` applied to every leaf."""
    if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
        return type(value)(change(item, fn) for item in value)
    return fn(value)


def agree(op: Any, actual: Any, expected: Any, **options: Any) -> None:
    """Asserts that two results are close; of arbitrary values only shape and dtype are compared."""
    if op.arbitrary:
        actual, expected = change(actual, on_meta), change(expected, on_meta)
    assert_close(actual, expected, **{"equal_nan": True, **options})


def change_tensors(sample: Sample, fn: Callable[[Any], Any]) -> Sample:
    """The sample with `fn` applied to every tensor."""
    return change_leaves(sample, lambda leaf: fn(leaf) if isinstance(leaf, torch.Tensor) else leaf)


def change_leaves(sample: Sample, fn: Callable[[Any], Any]) -> Sample:
    """The sample with `fn` applied to everything that is not a sequence."""
    return Sample(change(sample.args, fn), {name: change(value, fn) for name, value in sample.kwargs.items()})


def test_value(case: Case, device: str, request: pytest.FixtureRequest) -> None:
    capabilities = request.config.stash[CAPABILITIES][case.op.name]
    name = str(case.dtype).rpartition(".")[2]
    samples = case.samples(device)
    capabilities[name] = "missing"
    results = [call(case.op, sample) for sample in samples]
    capabilities[name] = implementation(case.op, device, _registry.open_backend(device))
    try:
        _check_values(case, device, results)
    except BaseException as error:
        if not isinstance(error, pytest.skip.Exception):  # the CPU does not take the dtype
            capabilities[name] = "failed"
        raise


def _check_values(case: Case, device: str, results: list[Any]) -> None:
    name = str(case.dtype).rpartition(".")[2]
    rtol, atol = case.op.tolerance.get(name, (None, None))
    for i, (on_cpu, result) in enumerate(zip(case.samples("cpu"), results, strict=True)):
        compare = {"rtol": rtol, "atol": atol, "check_device": False}
        compare["msg"] = lambda text, i=i, on_cpu=on_cpu: f"{text}\n\nof sample {i}, {on_cpu}"
        where = {tensor.device.type for tensor in tensors(result)}
        assert where <= {device}, f"the result is on {where}"
        if case.op.reference:
            agree(case.op, result, like_result(by_reference(case.op, on_cpu), result), **compare)
        elif case.op.array_kernel and device == "cpu":
            agree(case.op, result, call(case.op, case.samples("numpy")[i]), **compare)
        if device != "cpu":
            expected = call(case.op, on_cpu)
            if case.op.determined:
                result, expected = case.op.determined(*result), case.op.determined(*expected)
            agree(case.op, result, expected, **compare | between_devices(name, expected))


BETWEEN_DEVICES = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-5, "complex64": 1e-5}
"""Relative to the largest element: sums run in another order, and halves are rounded after each part of a composite."""


def between_devices(dtype: str, expected: Any) -> dict[str, float]:
    """Tolerances for results of two devices."""
    if dtype not in BETWEEN_DEVICES:
        return {}
    sizes = [np.abs(wide(tensor)) for tensor in tensors(expected) if tensor.device.type != "meta"]
    largest = max((float(size[np.isfinite(size)].max(initial=0)) for size in sizes), default=0.0)
    return {"rtol": BETWEEN_DEVICES[dtype], "atol": BETWEEN_DEVICES[dtype] * max(largest, 1)}


def by_reference(op: Any, sample: Sample) -> Any:
    """What the record's reference says."""
    arguments = change_leaves(sample, to_reference)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return op.reference(*arguments.args, **arguments.kwargs)


def to_reference(value: Any) -> Any:
    """What the reference gets: arrays in double precision, and NumPy's dtypes."""
    if isinstance(value, torch.dtype):
        return numpy_dtype(value)
    return wide(value) if isinstance(value, torch.Tensor) else value


def wide(tensor: Any) -> np.ndarray:
    """The elements in float64 or complex128, or as they are where they are exact."""
    array: np.ndarray = tensor.numpy(force=True)
    exact = not (tensor.is_floating_point() or tensor.is_complex())
    return array if exact else array.astype(np.complex128 if tensor.is_complex() else np.float64)


def like_result(expected: Any, result: Any) -> Any:
    """The reference's answer with the dtypes of the result."""
    if isinstance(result, (tuple, list)):
        return [like_result(e, r) for e, r in zip(expected, result, strict=True)]
    if not isinstance(result, torch.Tensor):
        return expected
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        return torch.from_numpy(np.array(expected).astype(numpy_dtype(result.dtype)))


def test_noncontiguous(case: Case, device: str) -> None:
    if case.op.reads_strides:
        pytest.skip("the result depends on the strides of the argument")
    for plain in case.samples(device):
        apart = change_tensors(plain, make_non_contiguous)
        agree(case.op, call(case.op, apart), call(case.op, plain))


def test_out(case: Case, device: str) -> None:
    info = _C.op_info(case.op.name)
    if not case.op.out or not info["outputs"] or info["view"] or WRITES in case.op.schema:
        pytest.skip("no out=")
    for sample in case.samples(device):
        expected = call(case.op, sample)
        out = change(expected, lambda tensor: torch.empty(0, dtype=tensor.dtype, device=device))
        result = call(case.op, sample, out=out)
        agree(case.op, out, expected)
        assert all(a is b for a, b in zip(tensors(result), tensors(out), strict=True)), (
            "out= does not return its argument"
        )


def test_inplace(case: Case, device: str) -> None:
    if not case.op.inplace:
        pytest.skip("no in-place form")
    inplace = operators[f"{case.op.namespace}::{case.op.base}_" if case.op.namespace else f"{case.op.base}_"]
    for sample, again in zip(case.samples(device), case.samples(device), strict=True):
        expected = call(case.op, sample)
        target = again.args[0]
        if expected.shape != target.shape or not torch.can_cast(expected.dtype, target.dtype):
            continue
        if case.op.exact and expected.dtype != target.dtype:
            continue
        version = target._version
        result = inplace(target, *again.args[1:], **again.kwargs)
        assert result is target, "the in-place form does not return its argument"
        agree(case.op, target, expected, check_dtype=False)
        assert target._version > version, "the in-place form does not count as a write"


def test_meta(case: Case, device: str) -> None:
    if case.op.dynamic:
        pytest.skip("the shape depends on values")
    for sample, again in zip(case.samples(device), case.samples(device), strict=True):
        expected = call(case.op, sample)
        result = call(case.op, change_leaves(again, on_meta))
        for e, r in zip(tensors(expected), tensors(result), strict=True):
            assert (r.shape, r.dtype, r.device.type) == (e.shape, e.dtype, "meta")
            if device == "cpu":
                assert r.stride() == e.stride(), f"strides {r.stride()} on meta, {e.stride()} on the CPU"


def on_meta(value: Any) -> Any:
    """A tensor of the same shape, strides and dtype without memory; for a device the meta device."""
    if isinstance(value, torch.device):
        return torch.device("meta")
    if torch.is_storage(value):
        return value.to(device="meta")
    if not isinstance(value, torch.Tensor):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")


def test_aliasing(case: Case, device: str) -> None:
    """Only a view shares memory with an argument, and an operator of the view family gives nothing else."""
    is_view = _C.op_info(case.op.name)["view"]
    for sample in case.samples(device):
        inputs = list(tensors(sample.args))
        results = [tensor for tensor in tensors(call(case.op, sample)) if not any(tensor is each for each in inputs)]
        if case.op.family is VIEW and case.op.differentiable:
            assert all(tensor._is_view() or tensor.numel() == 0 for tensor in results), "the result is not a view"
        if is_view:
            continue
        before = [tensor.clone() for tensor in inputs]
        for tensor in results:
            if not tensor._is_view():
                tensor.fill_(0)
        assert_close(inputs, before, equal_nan=True, msg=lambda text: f"the result shares memory: {text}")


def test_gradient(case: Case, device: str) -> None:
    """On the CPU the gradients are those of numerical differentiation, on other devices those of the CPU."""
    autograd = pytest.importorskip("rushlight.autograd", exc_type=ImportError)
    is_sum_of_parts = not case.op.grads and not case.op.composite_kernel  # in native code: the parts are tested
    if WRITES in case.op.schema or not is_differentiable(case.op) or is_sum_of_parts or case.op.arbitrary:
        pytest.skip("not differentiable")
    make, make_on_cpu = (case.maker(each, requires_grad=True) for each in (device, "cpu"))
    for i, (sample, on_cpu) in enumerate(zip(case.samples(make), case.samples(make_on_cpu), strict=True)):
        if not any(tensor.requires_grad for tensor in tensors([sample.args, sample.kwargs])):
            continue
        with nullcontext() if device == "cpu" else skip_unsupported():
            grads = gradients(autograd, case.op, sample, make.leaves)
        if device != "cpu":
            expected = gradients(autograd, case.op, on_cpu, make_on_cpu.leaves)
            assert_close(grads, expected, check_device=False, equal_nan=True)
            continue
        used = [k for k, grad in enumerate(grads) if grad is not None]

        def fn(*chosen: Any, i: int = i, used: list[int] = used) -> Any:
            leaves = list(make.leaves)
            for k, leaf in zip(used, chosen, strict=True):
                leaves[k] = leaf
            return call(case.op, case.samples(case.maker("cpu", True, leaves))[i])

        assert autograd.gradcheck(fn, tuple(make.leaves[k] for k in used)), f"sample {i}"


def gradients(autograd: Any, op: Any, sample: Sample, leaves: list[Any]) -> tuple[Any, ...]:
    """Of the sum of all results with respect to what the samples were made from."""
    outputs = [tensor for tensor in tensors(call(op, sample)) if tensor.requires_grad]
    assert outputs, f"no result requires a gradient: {sample}"
    return autograd.grad(outputs, leaves, [torch.ones_like(tensor) for tensor in outputs], allow_unused=True)


def test_errors(op: Any, device: str) -> None:
    """Arguments that fit no signature, and tensors of two devices."""
    with pytest.raises(TypeError):
        op.operator(object())
    with pytest.raises(TypeError):
        op.operator(no_such_argument=1)
    for sample in Case(op, torch.float32).samples(device):
        if sum(tensor.ndim > 0 for tensor in tensors(sample.args)) > 1 and not op.mixed_devices:
            first = next(tensor for tensor in tensors(sample.args) if tensor.ndim)
            mixed = change_tensors(sample, partial(_on_meta_but, first))
            with pytest.raises(RuntimeError):
                op.operator(*mixed.args, **mixed.kwargs)
            break


def _on_meta_but(kept: Any, tensor: Any) -> Any:
    return tensor if tensor is kept else on_meta(tensor)
