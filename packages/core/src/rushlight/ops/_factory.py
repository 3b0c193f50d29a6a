"""Tensors from nothing: constants and ranges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._op import FACTORY, Op, Sample
from ._samples import Sampler

_OPTIONS = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
_LIKE = _OPTIONS + ", MemoryFormat? memory_format=None"
_OPTION_ARGS = """dtype: Dtype of the result, by default {dtype}.
        device: Where it lives, by default {device}.
        requires_grad: Whether it records gradients."""
_NEW_ARGS = _OPTION_ARGS.format(dtype="that of `get_default_dtype`", device="the default device")
_RANGE_ARGS = _OPTION_ARGS.format(
    dtype="int64 if all numbers are integers, else that of `get_default_dtype`", device="the default device"
)
_LIKE_ARGS = "input: Tensor of any shape.\n        " + _OPTION_ARGS.format(dtype="the input's", device="the input's")


def _factory(schema: str, doc: str, *, out: bool = True, arbitrary: bool = False) -> Op:
    return Op(schema, family=FACTORY, method=False, differentiable=False, out=out, arbitrary=arbitrary, doc=doc)


def _sized(*extra: Any) -> Sampler:
    def samples(make: Any, dtype: Any) -> Iterator[Sample]:
        for size in ((), (3,), (2, 3), (2, 0)):
            yield Sample((size, *extra), {"dtype": dtype, "device": make.device})

    return samples


def _like(*extra: Any) -> Sampler:
    def samples(make: Any, dtype: Any) -> Iterator[Sample]:
        for tensor in (make(), make(2, 3), make(4, 3).t(), make(2, 0)):
            yield Sample((tensor, *extra))

    return samples


def _ranged(*arguments: tuple[Any, ...]) -> Sampler:
    def samples(make: Any, dtype: Any) -> Iterator[Sample]:
        if not (dtype.is_complex or str(dtype) == "torch.bool"):
            for each in arguments:
                yield Sample(each, {"dtype": dtype, "device": make.device})

    return samples


empty = _factory(
    f"empty(int[] size, {_OPTIONS}, MemoryFormat? memory_format=None) -> Tensor",
    f"""A tensor whose elements are whatever was in memory.

    Args:
        size: Its shape, as loose ints or one sequence.
        {_NEW_ARGS}

    Returns:
        Tensor of shape `size`.
    """,
    arbitrary=True,
).samples(_sized())

zeros = _factory(
    f"zeros(int[] size, {_OPTIONS}) -> Tensor",
    f"""A tensor of zeros.

    Args:
        size: Its shape, as loose ints or one sequence.
        {_NEW_ARGS}

    Returns:
        Tensor of shape `size`.

    Example:
        >>> rushlight.zeros(2)
        tensor([0., 0.])
    """,
).samples(_sized(), lambda size, dtype, device: np.zeros(size))

ones = _factory(
    f"ones(int[] size, {_OPTIONS}) -> Tensor",
    f"""A tensor of ones.

    Args:
        size: Its shape, as loose ints or one sequence.
        {_NEW_ARGS}

    Returns:
        Tensor of shape `size`.

    Example:
        >>> rushlight.ones(2)
        tensor([1., 1.])
    """,
).samples(_sized(), lambda size, dtype, device: np.ones(size))

full = _factory(
    f"full(int[1] size, Scalar fill_value, {_OPTIONS}) -> Tensor",
    f"""A tensor with one number everywhere.

    Args:
        size: Its shape.
        fill_value: The number; without `dtype` its kind says the dtype.
        {_NEW_ARGS}

    Returns:
        Tensor of shape `size`.

    Example:
        >>> rushlight.full((2,), 7)
        tensor([7, 7])
    """,
).samples(_sized(3), lambda size, value, dtype, device: np.full(size, value))

empty_like = _factory(
    f"empty_like(Tensor self, {_LIKE}) -> Tensor",
    f"""`empty` with the shape, dtype and device of a tensor.

    Args:
        {_LIKE_ARGS}

    Returns:
        Tensor of the input's shape.
    """,
    out=False,
    arbitrary=True,
).samples(_like())

zeros_like = _factory(
    f"zeros_like(Tensor self, {_LIKE}) -> Tensor",
    f"""`zeros` with the shape, dtype and device of a tensor.

    Args:
        {_LIKE_ARGS}

    Returns:
        Tensor of the input's shape.
    """,
    out=False,
).samples(_like(), np.zeros_like)

ones_like = _factory(
    f"ones_like(Tensor self, {_LIKE}) -> Tensor",
    f"""`ones` with the shape, dtype and device of a tensor.

    Args:
        {_LIKE_ARGS}

    Returns:
        Tensor of the input's shape.
    """,
    out=False,
).samples(_like(), np.ones_like)

full_like = _factory(
    f"full_like(Tensor self, Scalar fill_value, {_LIKE}) -> Tensor",
    f"""`full` with the shape, dtype and device of a tensor.

    Args:
        fill_value: The number.
        {_LIKE_ARGS}

    Returns:
        Tensor of the input's shape.
    """,
    out=False,
).samples(_like(3), np.full_like)

empty_strided = _factory(
    f"empty_strided(int[] size, int[] stride, {_OPTIONS}) -> Tensor",
    f"""`empty` with given strides.

    Args:
        size: Its shape.
        stride: Elements of memory from one element to the next, one for each dimension.
        {_NEW_ARGS}

    Returns:
        Tensor of shape `size`.
    """,
    out=False,
    arbitrary=True,
).samples(
    lambda make, dtype: [
        Sample(((2, 3), stride), {"dtype": dtype, "device": make.device}) for stride in ((3, 1), (1, 4))
    ]
)

_ARANGE = f"""The numbers from `start` up to but without `end`, `step` apart.

    Args:
        start: The first number, by default 0.
        end: Bound after the last.
        step: Distance, not zero, by default 1.
        {_RANGE_ARGS}

    Returns:
        Tensor of shape `(ceil((end - start) / step),)`.

    Raises:
        RuntimeError: `step` is zero or leads away from `end`.

    Example:
        >>> rushlight.arange(1, 8, 3)
        tensor([1, 4, 7])
    """

arange = _factory(f"arange(Scalar end, {_OPTIONS}) -> Tensor", _ARANGE).samples(
    _ranged((0,), (5,)), lambda end, dtype, device: np.arange(end)
)

arange_start_step = _factory(
    f"arange.start_step(Scalar start, Scalar end, Scalar step=1, {_OPTIONS}) -> Tensor", _ARANGE
).samples(
    _ranged((1, 8), (1, 8, 3), (9, 2, -2), (3, 3)),
    lambda start, end, step=1, *, dtype, device: np.arange(start, end, step),
)

linspace = _factory(
    f"linspace(Scalar start, Scalar end, int steps, {_OPTIONS}) -> Tensor",
    f"""Evenly spaced numbers, both ends included.

    Args:
        start: The first number; its whole part if the dtype is an integer one.
        end: The last, likewise.
        steps: How many there are.
        {_NEW_ARGS}

    Returns:
        Tensor of shape `(steps,)`.

    Raises:
        RuntimeError: `steps` is negative.

    Example:
        >>> rushlight.linspace(0, 1, 3)
        tensor([0.0000, 0.5000, 1.0000])
    """,
).samples(
    _ranged((0, 8, 5), (8, 0, 3), (2, 5, 1), (2, 5, 0)),
    lambda start, end, steps, dtype, device: np.linspace(start, end, steps),
)

eye = _factory(
    f"eye(int n, int? m=None, {_OPTIONS}) -> Tensor",
    f"""A matrix with ones on the diagonal and zeros elsewhere.

    Args:
        n: Rows.
        m: Columns, by default `n`.
        {_NEW_ARGS}

    Returns:
        Tensor of shape `(n, m)`.

    Example:
        >>> rushlight.eye(2)
        tensor([[1., 0.],
                [0., 1.]])
    """,
).samples(
    lambda make, dtype: [
        Sample(each, {"dtype": dtype, "device": make.device}) for each in ((3,), (2, 4), (4, 2), (0,))
    ],
    lambda n, m=None, *, dtype, device: np.eye(n, m),
)
