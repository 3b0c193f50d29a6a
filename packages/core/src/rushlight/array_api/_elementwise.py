"""Functions of two arrays, either of which may be a number, and those that PyTorch leaves out for some dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as torch

from ._dtypes import common


def _binary(op: Any, doc: str) -> Callable[[Any, Any], Any]:
    def function(x1: Any, x2: Any, /) -> Any:
        return op(*common(x1, x2))

    function.__name__ = function.__qualname__ = op.__name__
    function.__doc__ = f"{doc} Dtypes promote by the standard: of an array of any rank they count alike."
    return function


add = _binary(torch.add, "Sums.")
atan2 = _binary(torch.atan2, "Angles of the points (x2, x1), with their quadrant.")
bitwise_and = _binary(torch.bitwise_and, "Bits that both have.")
bitwise_left_shift = _binary(torch.bitwise_left_shift, "x1 * 2**x2 of integers.")
bitwise_or = _binary(torch.bitwise_or, "Bits that either has.")
bitwise_right_shift = _binary(torch.bitwise_right_shift, "floor(x1 / 2**x2) of integers.")
bitwise_xor = _binary(torch.bitwise_xor, "Bits that just one has.")
copysign = _binary(torch.copysign, "Magnitudes of x1 with the signs of x2.")
divide = _binary(torch.divide, "Quotients.")
equal = _binary(torch.eq, "Whether x1 == x2.")
floor_divide = _binary(torch.floor_divide, "Quotients rounded towards negative infinity.")
greater = _binary(torch.greater, "Whether x1 > x2.")
greater_equal = _binary(torch.greater_equal, "Whether x1 >= x2.")
hypot = _binary(torch.hypot, "Lengths of the vectors (x1, x2).")
less = _binary(torch.less, "Whether x1 < x2.")
less_equal = _binary(torch.less_equal, "Whether x1 <= x2.")
logaddexp = _binary(torch.logaddexp, "log(exp(x1) + exp(x2)).")
logical_and = _binary(torch.logical_and, "Whether both are true.")
logical_or = _binary(torch.logical_or, "Whether either is true.")
logical_xor = _binary(torch.logical_xor, "Whether just one is true.")
maximum = _binary(torch.maximum, "The larger ones; NaN where either is NaN.")
minimum = _binary(torch.minimum, "The smaller ones; NaN where either is NaN.")
multiply = _binary(torch.multiply, "Products.")
nextafter = _binary(torch.nextafter, "The next numbers that the dtype has after x1 towards x2.")
not_equal = _binary(torch.not_equal, "Whether x1 != x2.")
pow = _binary(torch.pow, "Powers.")
subtract = _binary(torch.subtract, "Differences.")
equal.__name__ = equal.__qualname__ = "equal"  # torch.equal is another function


def where(condition: Any, x1: Any, x2: Any, /) -> Any:
    """The elements of x1 where the condition holds, else those of x2."""
    if not isinstance(x1, torch.Tensor) and not isinstance(x2, torch.Tensor):
        x1 = torch.tensor(x1, device=condition.device)
    return torch.where(condition, *common(x1, x2))


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """The elements brought into bounds, numbers or arrays; the result has the dtype of `x`."""
    for bound, choose in ((min, torch.maximum), (max, torch.minimum)):
        if bound is not None:
            limit = bound if isinstance(bound, torch.Tensor) else _limit(bound, x)
            x = choose(*torch.broadcast_tensors(x, limit.to(x.dtype)))
    return x.clone() if min is None and max is None else x


def _limit(bound: Any, x: Any) -> Any:
    """A bound as an array of the dtype of x: beyond the dtype's range its limit, of a fraction the integer within."""
    if not x.is_floating_point() and x.dtype != torch.bool:
        info = torch.iinfo(x.dtype)
        bound = info.min if bound < info.min else info.max if bound > info.max else bound
    return torch.tensor(bound, dtype=x.dtype, device=x.device)


def remainder(x1: Any, x2: Any, /) -> Any:
    """Remainders of floor division, with the sign of x2 also where they are 0."""
    x1, x2 = common(x1, x2)
    result = torch.remainder(x1, x2)
    return torch.where(result == 0, torch.copysign(result, x2), result) if x1.is_floating_point() else result


def sign(x: Any, /) -> Any:
    """-1, 0 or 1, and NaN of NaN; of complex numbers x / abs(x), and 0 of 0."""
    if x.is_complex():
        return torch.where(x == 0, 0, torch.sgn(x))  # sgn keeps the signs of zeros
    return torch.where(x != x, x, torch.sign(x)) if x.is_floating_point() else torch.sign(x)


def expm1(x: Any, /) -> Any:
    """exp(x) - 1, to full precision near 0; the real part of a complex result is never -0."""
    result = torch.expm1(x)
    return torch.complex(result.real + 0, result.imag) if x.is_complex() else result


def round(x: Any, /) -> Any:
    """To the nearest integer, halves to the even one; of complex numbers both parts."""
    return torch.complex(torch.round(x.real), torch.round(x.imag)) if x.is_complex() else torch.round(x)


def square(x: Any, /) -> Any:
    """X * x, in the dtype of x."""
    return torch.multiply(x, x)
