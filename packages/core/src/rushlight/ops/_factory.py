"""Tensors from nothing: constants and ranges."""

from __future__ import annotations

from .._op import FACTORY, Op

_OPTIONS = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
_LIKE = _OPTIONS + ", MemoryFormat? memory_format=None"

empty = Op(
    f"empty(int[] size, {_OPTIONS}, MemoryFormat? memory_format=None) -> Tensor",
    family=FACTORY,
    differentiable=False,
    doc="A tensor whose elements are whatever was in memory.",
)
zeros = Op(f"zeros(int[] size, {_OPTIONS}) -> Tensor", family=FACTORY, differentiable=False, doc="A tensor of zeros.")
ones = Op(f"ones(int[] size, {_OPTIONS}) -> Tensor", family=FACTORY, differentiable=False, doc="A tensor of ones.")
full = Op(
    f"full(int[1] size, Scalar fill_value, {_OPTIONS}) -> Tensor",
    family=FACTORY,
    differentiable=False,
    doc="A tensor with `fill_value` everywhere; its dtype is the number's kind where none is given.",
)
empty_like = Op(f"empty_like(Tensor self, {_LIKE}) -> Tensor", family=FACTORY, method=False, differentiable=False, out=False, doc="`empty` with the shape, dtype and device of the input.")
zeros_like = Op(f"zeros_like(Tensor self, {_LIKE}) -> Tensor", family=FACTORY, method=False, differentiable=False, out=False, doc="`zeros` with the shape, dtype and device of the input.")
ones_like = Op(f"ones_like(Tensor self, {_LIKE}) -> Tensor", family=FACTORY, method=False, differentiable=False, out=False, doc="`ones` with the shape, dtype and device of the input.")
full_like = Op(f"full_like(Tensor self, Scalar fill_value, {_LIKE}) -> Tensor", family=FACTORY, method=False, differentiable=False, out=False, doc="`full` with the shape, dtype and device of the input.")
empty_strided = Op(f"empty_strided(int[] size, int[] stride, {_OPTIONS}) -> Tensor", family=FACTORY, differentiable=False, out=False, doc="`empty` with given strides in elements.")
arange = Op(
    f"arange(Scalar end, {_OPTIONS}) -> Tensor",
    family=FACTORY,
    differentiable=False,
    doc="""The numbers from `start` up to but without `end`, `step` apart; integers give int64.

    Example:
        >>> rushlight.arange(1, 8, 3)
        tensor([1, 4, 7])
    """,
)
arange_start_step = Op(f"arange.start_step(Scalar start, Scalar end, Scalar step=1, {_OPTIONS}) -> Tensor", family=FACTORY, differentiable=False, doc=arange.doc)
linspace = Op(f"linspace(Scalar start, Scalar end, int steps, {_OPTIONS}) -> Tensor", family=FACTORY, differentiable=False, doc="`steps` numbers from `start` to `end`, both included, evenly spaced.")
eye = Op(f"eye(int n, int? m=None, {_OPTIONS}) -> Tensor", family=FACTORY, differentiable=False, doc="Ones on the diagonal of an (n, m) matrix, zeros elsewhere.")
