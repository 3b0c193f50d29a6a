"""Conversions of dtype, device and memory format; the tensor itself where nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import _C
from .._op import COMPOSITE, Op, Sample
from ._samples import unary

_FORMAT = "*, MemoryFormat? memory_format=None"
_TO_DOC = """The tensor with another dtype, on another device or in another memory format.

Args:
    dtype: Dtype of the result.
    device: Where the result lives.
    other: A tensor whose dtype and device to take.
    non_blocking: Whether a copy from the host to a device may go on after the call returned.
    copy: Whether to copy even where nothing changes.
    memory_format: Order of memory of the result; by default that of the input.

Returns:
    The tensor itself where nothing changes, else a copy.

Example:
    >>> rushlight.tensor([1, 2]).to(rushlight.float64).dtype
    torch.float64
"""


def _to(overload: str, parameters: str, samples: Callable[..., Iterator[Sample]]) -> Op:
    options = f"bool non_blocking=False, bool copy=False, {_FORMAT}"
    schema = f"to.{overload}(Tensor(a) self, {parameters}, {options}) -> Tensor(a)"
    op = Op(schema, family=COMPOSITE, function=False, out=False, mixed_devices=True, doc=_TO_DOC)
    return op.samples(samples, lambda x, *args: x)


def _named(name: str, dtype: str) -> Op:
    return Op(
        f"{name}(Tensor(a) self, {_FORMAT}) -> Tensor(a)",
        family=COMPOSITE,
        function=False,
        out=False,
        differentiable=dtype.startswith(("bfloat", "complex", "float")),
        doc=f"`to({dtype})`: the tensor itself when it has that dtype already.",
    ).samples(
        unary(0, 2), lambda x: x.astype(np.float64 if x.dtype.kind == "c" and dtype[:7] != "complex" else x.dtype)
    )


def _to_samples(*targets: Any) -> Callable[..., Iterator[Sample]]:
    def samples(make: Any, dtype: Any) -> Iterator[Sample]:
        for target in targets:
            yield Sample(
                (make(2, 3, low=0), make(2) if target is None else target(make) if callable(target) else target)
            )

    return samples


to_dtype = _to("dtype", "ScalarType dtype", _to_samples(_C.complex64, _C.complex128))
to_device = _to("device", "Device? device=None, ScalarType? dtype=None", _to_samples(lambda make: make.device))
to_other = _to("other", "Tensor other", _to_samples(None))
type_as = Op(
    "type_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    family=COMPOSITE,
    function=False,
    out=False,
    mixed_devices=True,
    doc="`to` with the dtype and device of `other`.",
).samples(_to_samples(None), lambda x, other: x)
contiguous = Op(
    f"contiguous(Tensor(a) self, {_FORMAT}) -> Tensor(a)",
    family=COMPOSITE,
    function=False,
    out=False,
    doc=(
        "The tensor itself when its elements lie in memory in the order of the format, row-major by "
        "default, else a copy that does."
    ),
).samples(unary(), lambda x: x)
float_ = _named("float", "float32")
double = _named("double", "float64")
half = _named("half", "float16")
bfloat16 = _named("bfloat16", "bfloat16")
int_ = _named("int", "int32")
long = _named("long", "int64")
short = _named("short", "int16")
char = _named("char", "int8")
byte = _named("byte", "uint8")
bool_ = _named("bool", "bool")
cfloat = _named("cfloat", "complex64")
cdouble = _named("cdouble", "complex128")
