"""The gradient rules of every operator record: against finite differences, twice, real and complex; and what rules may say."""

import zlib

import pytest

import rushlight as torch
from rushlight import _registry
from rushlight._op import Op
from rushlight.autograd import gradcheck, gradgradcheck
from rushlight.autograd._rules import RuleError, compile_rule
from rushlight.testing import Maker

_registry.require("autograd", "rushlight.autograd")
RECORDS = [entry.item for _, entry in sorted(_registry.ops.items()) if entry.item.differentiable and entry.item.sampler]


def results(value):
    items = value if isinstance(value, (tuple, list)) else (value,)
    return tuple(t for t in items if isinstance(t, torch.Tensor) and (t.is_floating_point() or t.is_complex()))


def leaves(sample):
    """The sample's call as a function of the tensors in it that require grad."""
    found = []

    def strip(value):
        if isinstance(value, torch.Tensor) and value.requires_grad:
            found.append(value)
            return len(found) - 1, "leaf"
        return type(value)(strip(v) for v in value) if type(value) in (tuple, list) else value

    args = [strip(a) for a in sample.args]
    kwargs = {name: strip(value) for name, value in sample.kwargs.items()}

    def fill(value, tensors):
        if type(value) is tuple and len(value) == 2 and value[1] == "leaf":
            return tensors[value[0]]
        return type(value)(fill(v, tensors) for v in value) if type(value) in (tuple, list) else value

    def bind(op, *tensors):
        values = [fill(a, tensors) for a in args]
        if op.__name__.endswith("_") and isinstance(values[0], torch.Tensor):
            values[0] = values[0].clone()
        return results(op(*values, **{k: fill(v, tensors) for k, v in kwargs.items()}))

    return found, bind


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=["real", "complex"])
@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.name)
def test_gradients_of_samples(record, dtype):
    if record.base.startswith("_") and dtype.is_complex:
        pytest.skip("an internal operator")
    make = Maker(dtype, requires_grad=True, seed=zlib.crc32(record.name.encode()))
    checked = 0
    try:
        samples = list(record.sampler(make, dtype))
    except (RuntimeError, NotImplementedError, TypeError) as error:
        pytest.skip(str(error))
    for sample in samples:
        inputs, bind = leaves(sample)
        if not inputs or any(t.numel() == 0 for t in inputs):
            continue
        try:
            outputs = bind(record.operator, *inputs)
        except (RuntimeError, NotImplementedError, TypeError) as error:
            if "not implemented" in str(error) or dtype.is_complex:
                continue
            raise
        if not any(t.requires_grad for t in outputs):
            continue
        function = lambda *tensors: bind(record.operator, *tensors)
        assert gradcheck(function, inputs), sample
        assert gradgradcheck(function, inputs, atol=1e-4), sample
        checked += 1
    if not checked:
        pytest.skip("nothing differentiable")
