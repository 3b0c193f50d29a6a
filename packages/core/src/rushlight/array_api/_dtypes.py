"""Dtypes: their kinds, limits and promotion by the standard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import rushlight as torch

KINDS = {
    "bool": (torch.bool,),
    "signed integer": (torch.int8, torch.int16, torch.int32, torch.int64),
    "unsigned integer": (torch.uint8,),
    "real floating": (torch.float32, torch.float64),
    "complex floating": (torch.complex64, torch.complex128),
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]

EXTENDED = {"real floating": (torch.float16, torch.bfloat16)}
"""Dtypes beyond the standard, by their kind."""


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind ("bool", "integral", "numeric", ...), is another dtype, or either of several.

    Raises:
        ValueError: No kind of that name is in the standard.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if not isinstance(kind, str):
        return bool(dtype == kind)
    if kind not in KINDS:
        raise ValueError(f"isdtype: unknown kind, got kind={kind!r}. Known are {', '.join(sorted(KINDS))}.")
    return dtype in KINDS[kind] or (kind in ("real floating", "numeric") and dtype in EXTENDED["real floating"])


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether the promotion of a dtype (or of an array's) with `to` is `to`."""
    dtype = from_.dtype if isinstance(from_, torch.Tensor) else from_
    return bool(torch.promote_types(dtype, to) == to)


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype that arrays, dtypes and Python numbers promote to; an array of any rank counts by its dtype.

    Raises:
        ValueError: There is neither an array nor a dtype.
    """
    numbers = [each for each in arrays_and_dtypes if isinstance(each, (bool, int, float, complex))]
    dtypes = [getattr(each, "dtype", each) for each in arrays_and_dtypes if not isinstance(each, (int, float, complex))]
    if not dtypes:
        raise ValueError("result_type: at least one array or dtype is needed, got numbers alone.")
    dtype = dtypes[0]
    for other in dtypes[1:]:
        dtype = torch.promote_types(dtype, other)
    for number in numbers:
        dtype = torch.result_type(torch.empty(1, dtype=dtype, device="meta"), number)
    return dtype


@dataclass(frozen=True)
class FloatLimits:
    """What `finfo` returns, all but the dtype as Python numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Any


@dataclass(frozen=True)
class IntegerLimits:
    """What `iinfo` returns, all but the dtype as Python numbers."""

    bits: int
    max: int
    min: int
    dtype: Any


def finfo(type: Any, /) -> FloatLimits:
    """Limits of a real or complex floating-point dtype, or of an array's."""
    dtype = getattr(type, "dtype", type)
    info = torch.finfo(dtype)
    real = torch.empty(0, dtype=dtype, device="meta").abs().dtype
    return FloatLimits(info.bits, info.eps, info.max, info.min, info.smallest_normal, real)


def iinfo(type: Any, /) -> IntegerLimits:
    """Limits of an integer dtype, or of an array's."""
    dtype = getattr(type, "dtype", type)
    info = torch.iinfo(dtype)
    return IntegerLimits(info.bits, info.max, info.min, dtype)


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """The array in another dtype; without `copy` the array itself where nothing changes."""
    return x.to(device=x.device if device is None else device, dtype=dtype, copy=copy)


def common(*operands: Any) -> list[Any]:
    """Arrays and at least one array's Python numbers, all as arrays of the dtype that they promote to.

    Raises:
        TypeError: None of them is an array.
    """
    arrays = [each for each in operands if isinstance(each, torch.Tensor)]
    if not arrays:
        raise TypeError(f"at least one operand must be an array, got {', '.join(type(x).__name__ for x in operands)}.")
    dtype = result_type(*operands)
    return [
        (each if each.dtype == dtype else each.to(dtype))
        if isinstance(each, torch.Tensor)
        else torch.tensor(each, dtype=dtype, device=arrays[0].device)
        for each in operands
    ]
