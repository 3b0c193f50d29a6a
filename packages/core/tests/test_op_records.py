"""Every operator's record is whole: kernel, shape rule, samples, documentation, gradient."""

import pytest

import rushlight as torch
from rushlight import _C, _registry
from rushlight._op import COMPOSITE
from rushlight.testing import Maker
from rushlight.testing.conformance import change_leaves, on_meta

OPS = [entry.item for name, entry in sorted(_registry.ops.items())]
PUBLIC = [op for op in OPS if not op.base.startswith("_")]


def by_name(op):
    return op.name


def samples(op):
    """The first samples that the CPU runs, over all dtypes."""
    for dtype in torch.testing.get_all_dtypes():
        for sample in op.sampler(Maker(dtype), dtype):
            try:
                op.operator(*sample.args, **sample.kwargs)
            except RuntimeError:  # not in this dtype
                break
            yield sample


@pytest.mark.parametrize("op", OPS, ids=by_name)
def test_runs_on_the_cpu(op):
    info = _C.op_info(op.name)
    kernels = ("loops", "array", "composite", "layouts")
    assert "cpu" in info["native"] + info["python"] or any(info[kind] for kind in kernels)


@pytest.mark.parametrize("op", PUBLIC, ids=by_name)
def test_has_documentation(op):
    summary = (op.doc or "").partition("\n")[0]
    assert summary.endswith("."), f"the docstring begins with {summary!r}"
    assert op.operator.__doc__


@pytest.mark.parametrize("op", PUBLIC, ids=by_name)
def test_has_samples_that_run(op):
    assert op.sampler, "no samples"
    assert next(samples(op), None), "no dtype runs on the CPU"


@pytest.mark.parametrize("op", PUBLIC, ids=by_name)
def test_has_shape_rule(op):
    if op.dynamic:
        pytest.skip("the shape depends on values")
    sample = next(samples(op))
    on_meta_device = change_leaves(sample, on_meta)
    result = op.operator(*on_meta_device.args, **on_meta_device.kwargs)
    assert result is not None or op.schema.endswith("-> ()")


@pytest.mark.parametrize("op", OPS, ids=by_name)
def test_has_gradient_or_says_that_there_is_none(op):
    if op.family is COMPOSITE or op.composite_kernel or not op.differentiable:
        return
    tensors = [part.split()[-1].partition("=")[0] for part in op.schema.split("(", 1)[1].split(",") if "Tensor" in part]
    assert op.grads or not tensors, "state .grad(...), .grad(self=None) or differentiable=False"
