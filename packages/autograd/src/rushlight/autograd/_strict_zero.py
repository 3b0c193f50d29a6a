"""Strict-zero mode: gradient rules in which a cotangent of exactly 0 stays 0 through infinite and NaN factors.

While a rule runs, the gradients that it gets are tensors of a layout of their own. What operators make of them is so
too, and where one is multiplied the product is 0 wherever the cotangent was 0 and the product is not finite.
"""

from __future__ import annotations

import operator as operators
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight.plugin import Op, layout_tensor, new_layout

from . import _C

cotangent = new_layout("cotangent")

_PRODUCTS = frozenset(("mm", "bmm", "mv", "dot", "matmul"))


@contextmanager
def strict_zero(mode: bool = True) -> Iterator[None]:
    """Context manager: in backward passes inside, a gradient of exactly 0 stays 0 through infinite and NaN factors.

    A branch that `where` leaves out then has gradient 0, whatever its derivative is. A pass takes some operators more,
    so turn it on where it is needed. The mode belongs to the thread.

    Args:
        mode: False turns it off inside.

    Example:
        >>> x = rushlight.tensor([0.0, 4.0], requires_grad=True)
        >>> y = rushlight.where(x > 0, x.sqrt(), 0.0).sum()
        >>> rushlight.autograd.grad(y, x, retain_graph=True)
        (tensor([   nan, 0.2500]),)
        >>> with rushlight.autograd.strict_zero():
        ...     rushlight.autograd.grad(y, x)
        (tensor([0.0000, 0.2500]),)
    """
    before = _C.set_strict_zero(mode)
    try:
        yield
    finally:
        _C.set_strict_zero(before)


def protect(value: Tensor) -> Tensor:
    """A cotangent, for the time that a rule runs."""
    return layout_tensor(Cotangent(value), value.shape, value.dtype, value.device)


def expose(value: Any) -> Any:
    """What `protect` was given; anything else as it is, sequences by their items."""
    if isinstance(value, Tensor):
        return value._payload.value if isinstance(value._payload, Cotangent) else value
    return type(value)(expose(v) for v in value) if type(value) in (list, tuple) else value


class Cotangent:
    """The payload: the tensor itself."""

    layout = cotangent

    def __init__(self, value: Tensor) -> None:
        self.value = value

    def call(self, record: Op, inplace: bool, *args: Any, **kwargs: Any) -> Any:
        """One call of an operator with a cotangent among its arguments."""
        if record.family.name == "composite" and record.composite_kernel is not None:
            return NotImplemented
        plain, named = [expose(a) for a in args], {name: expose(value) for name, value in kwargs.items()}
        if inplace:
            function = record.operator if record.base.endswith("_") else getattr(Tensor, f"{record.base}_")
            function(*plain, **named)
            return args[0]
        zeros = [expose(a) for a in args if isinstance(a, Tensor) and isinstance(a._payload, Cotangent)]
        if record.base in _PRODUCTS and len(zeros) == 1:
            return protect(_product(record.operator, plain[0], plain[1], zeros[0] is plain[0]))
        if isinstance(plain[0], int | float | complex):  # a number, which Python's operators take on the left
            result = getattr(operators, {"div": "truediv"}.get(record.base, record.base))(plain[0], plain[1])
        else:
            result = record.operator(*plain, **named)
        return _marked(record, zeros, args[-1], result)


def _marked(record: Op, cotangents: list[Tensor], last: Any, result: Any) -> Any:
    """The result as a cotangent, 0 where it is not finite for no other reason than its factors."""
    if isinstance(result, list | tuple):
        return tuple(_marked(record, cotangents, last, r) for r in result)
    if not isinstance(result, Tensor) or not (result.is_floating_point() or result.is_complex()):
        return result
    multiplies = record.base in ("mul", "div")
    if multiplies or record.base.endswith("_backward") or record.family.name == "function":
        for one in cotangents:
            zero = one == 0
            if not multiplies and record.family.name != "pointwise":
                along_rows = "int dim)" in record.schema and zero.shape == result.shape
                zero = zero.all(last, keepdim=True) if along_rows else zero.all()
            result = rushlight.where(zero & ~result.isfinite(), rushlight.zeros_like(result), result)
    return protect(result)


def _product(function: Any, left: Tensor, right: Tensor, cotangent_first: bool) -> Tensor:
    """A product of matrices or vectors whose terms are 0 where the cotangent is."""
    c, factor = (left, right) if cotangent_first else (right, left)
    infinite = ~factor.isfinite()

    def total(c: Tensor, factor: Tensor) -> Tensor:
        pair = (c.to(left.dtype), factor.to(left.dtype))
        return function(*(pair if cotangent_first else pair[::-1]))

    finite = total(c, factor.masked_fill(infinite, 0))
    if left.is_complex():
        return finite.masked_fill(total(c != 0, infinite).real > 0, complex("nan+nanj"))
    up = total(c > 0, factor == rushlight.inf) + total(c < 0, factor == -rushlight.inf) > 0
    down = total(c > 0, factor == -rushlight.inf) + total(c < 0, factor == rushlight.inf) > 0
    nan = (total(c != 0, factor.isnan()) > 0) | (up & down)
    return finite.masked_fill(up, rushlight.inf).masked_fill(down, -rushlight.inf).masked_fill(nan, rushlight.nan)
