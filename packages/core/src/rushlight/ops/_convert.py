"""Conversions of dtype, device and memory format; the tensor itself where nothing changes."""

from __future__ import annotations

from .._op import COMPOSITE, Op

_FORMAT = "*, MemoryFormat? memory_format=None"
_TO_DOC = """The tensor with another dtype, on another device or in another memory format.

Args:
    dtype: Dtype of the result.
    device: Where the result lives.
    other: A tensor whose dtype and device to take.
    non_blocking: Accepted for compatibility; copies are complete when the call returns.
    copy: Whether to copy even where nothing changes.
    memory_format: Order of memory of the result; by default that of the input.

Returns:
    The tensor itself where nothing changes, else a copy.

Example:
    >>> rushlight.tensor([1, 2]).to(rushlight.float64).dtype
    torch.float64
"""


def _to(overload: str, parameters: str) -> Op:
    schema = (
        f"to.{overload}(Tensor(a) self, {parameters}, bool non_blocking=False, bool copy=False, {_FORMAT}) -> Tensor(a)"
    )
    return Op(schema, family=COMPOSITE, function=False, out=False, mixed_devices=True, doc=_TO_DOC)


def _named(name: str, dtype: str) -> Op:
    return Op(
        f"{name}(Tensor(a) self, {_FORMAT}) -> Tensor(a)",
        family=COMPOSITE,
        function=False,
        out=False,
        doc=f"`to({dtype})`: the tensor itself when it has that dtype already.",
    )


to_dtype = _to("dtype", "ScalarType dtype")
to_device = _to("device", "Device? device=None, ScalarType? dtype=None")
to_other = _to("other", "Tensor other")
type_as = Op(
    "type_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    family=COMPOSITE,
    function=False,
    out=False,
    mixed_devices=True,
    doc="`to` with the dtype and device of `other`.",
)
cpu = Op(
    f"cpu(Tensor(a) self, {_FORMAT}) -> Tensor(a)",
    family=COMPOSITE,
    function=False,
    out=False,
    doc="The tensor in host memory.",
)
cuda = Op(
    f"cuda(Tensor(a) self, Device? device=None, bool non_blocking=False, {_FORMAT}) -> Tensor(a)",
    family=COMPOSITE,
    function=False,
    out=False,
    mixed_devices=True,
    doc="The tensor on a CUDA device, by default the current one.",
).composite(
    lambda self, device, non_blocking, *, memory_format: self.to(
        "cuda" if device is None else device, memory_format=memory_format
    )
)
contiguous = Op(
    f"contiguous(Tensor(a) self, {_FORMAT}) -> Tensor(a)",
    family=COMPOSITE,
    function=False,
    out=False,
    doc="The tensor itself when its elements lie in memory in the order of the format, row-major by default, else a copy that does.",
)
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
