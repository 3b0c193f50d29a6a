"""Copies, conversions and fills."""

from __future__ import annotations

import numpy as np

from .._op import FUNCTION, Op, Sample
from ._samples import unary

clone = Op(
    "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    out=False,
    doc="""A copy with memory of its own, in the same order of memory.

    Args:
        input: Tensor of any shape.
        memory_format: `contiguous_format` for row-major memory, else the order of the input is kept.

    Returns:
        Tensor of the same shape and dtype.

    Example:
        >>> x = rushlight.zeros(2)
        >>> x.clone().fill_(1), x
        (tensor([1., 1.]), tensor([0., 0.]))
    """,
).grad(self="grad").samples(unary(), lambda x, memory_format=None: x.copy())  # fmt: skip

copy_ = (
    Op(
        "copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
        function=False,
        mixed_devices=True,
        doc="""Copies the elements of another tensor into this one.

    Args:
        src: Tensor whose shape broadcasts to this one's, of any dtype, on any device.
        non_blocking: Whether a copy from the host to a device may go on after the call returned.

    Returns:
        This tensor.
    """,
    )
    .grad(self=None, src="move_to(grad, src)")
    .samples(
        lambda make, dtype: [Sample((make(*a), make(*b))) for a, b in (((2, 3), (2, 3)), ((2, 3), (3,)), ((), ()))],
        lambda x, src: np.broadcast_to(src, x.shape),
    )
)

fill_ = (
    Op(
        "fill_(Tensor(a!) self, Scalar value) -> Tensor(a!)",
        doc="""Sets every element to one number.

    Args:
        value: The number.

    Returns:
        This tensor.
    """,
    )
    .grad(self=None)
    .samples(unary(None, None, 1), lambda x, value: np.full_like(x, value))
)

fill_tensor = (
    Op("fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)", mixed_devices=True, doc=fill_.doc)
    .grad(self=None, value="sum(grad)")
    .samples(lambda make, dtype: [Sample((make(2, 3), make()))], lambda x, value: np.full_like(x, value))
)

fill = (
    Op(
        "fill.Scalar(Tensor self, Scalar value) -> Tensor",
        method=False,
        out=False,
        doc="A tensor of the shape and dtype of the input, with one number everywhere.",
    )
    .composite(lambda self, value: self.clone().fill_(value))
    .grad(self="zeros_of(self)")
    .samples(unary(None, None, 1), lambda x, value: np.full_like(x, value))
)
fill_from_tensor = (
    Op("fill.Tensor(Tensor self, Tensor value) -> Tensor", method=False, out=False, doc=fill.doc)
    .composite(lambda self, value: self.clone().fill_(value))
    .grad(self="zeros_of(self)", value="sum(grad)")
    .samples(lambda make, dtype: [Sample((make(2, 3), make()))], lambda x, value: np.full_like(x, value))
)

zero_ = (
    Op(
        "zero_(Tensor(a!) self) -> Tensor(a!)",
        doc="""Sets every element to zero.

    Returns:
        This tensor.
    """,
    )
    .grad(self=None)
    .samples(unary(), lambda x: np.zeros_like(x))
)

_cast = Op(
    "_cast(Tensor self, ScalarType dtype) -> Tensor",
    family=FUNCTION,
    out=False,
    method=False,
    doc="The elements in another dtype.",
).grad(self="grad")

_move = Op(
    "_move(Tensor self, Device device) -> Tensor",
    method=False,
    out=False,
    mixed_devices=True,
    doc="A copy on another device.",
).grad(self="move_to(grad, self)")
