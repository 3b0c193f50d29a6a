"""Products and forms of vectors and matrices beside matmul: trace, cross, kron, vander."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _C
from .._op import COMPOSITE, Op, Sample
from ._dims import wrap_dim
from ._half import rounded_once
from ._view import _calls


def _trace(x: Any) -> Any:
    if x.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {x.ndim}")
    if x.dtype is _C.bool:
        raise NotImplementedError("\"trace\" not implemented for 'Bool'")
    return x.diagonal().sum()


trace = (
    Op(
        "trace(Tensor self) -> Tensor",
        family=COMPOSITE,
        out=False,
        doc="Sum of the diagonal of a matrix; of integers in int64.",
    )
    .composite(_trace)
    .samples(_calls(((3, 3),), ((2, 4),), ((0, 3),)), np.trace)
)


def _cross(a: Any, b: Any, dim: int | None) -> Any:
    if dim is None:
        shape = np.broadcast_shapes(a.shape, b.shape)
        if 3 not in shape:
            raise RuntimeError(f"no dimension of size 3 in input, got shapes {list(a.shape)} and {list(b.shape)}")
        dim = shape.index(3)
    elif a.ndim != b.ndim:
        raise RuntimeError(
            f"linalg.cross: inputs must have the same number of dimensions, got {a.ndim} and {b.ndim} dimensions."
        )
    if a.dtype is not b.dtype:
        raise RuntimeError(f"expected scalar type {a.dtype} but found {b.dtype} (cross). Convert one with .to(dtype).")
    if a.dtype is _C.bool:
        raise NotImplementedError("\"cross\" not implemented for 'Bool'")
    dim = wrap_dim(dim, max(a.ndim, b.ndim))
    from_end = dim - max(a.ndim, b.ndim)
    sizes = [x.shape[from_end] if x.ndim >= -from_end else 1 for x in (a, b)]
    if sizes != [3, 3]:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {sizes[0]} and {sizes[1]}")
    return _cross_components(a, b, from_end)


@rounded_once
def _cross_components(a: Any, b: Any, dim: int) -> Any:
    from ._join import stack

    x, y = a.unbind(dim), b.unbind(dim)
    return stack.operator([x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]], dim)


cross = (
    Op(
        "cross(Tensor self, Tensor other, int? dim=None) -> Tensor",
        family=COMPOSITE,
        exact=True,
        doc="""Cross products of vectors of three elements.

        Args:
            input: Tensor with size 3 in `dim`.
            other: Tensor of the same dtype that broadcasts with it.
            dim: The dimension of the vectors. Without it the first of size 3.

        Returns:
            Tensor of the broadcast shape.

        Raises:
            RuntimeError: The dimension has another size, or the dtypes differ.

        Example:
            >>> rushlight.cross(rushlight.tensor([1, 0, 0]), rushlight.tensor([0, 1, 0]), dim=0)
            tensor([0, 0, 1])
        """,
    )
    .composite(_cross)
    .samples(
        lambda make, dtype: [
            Sample((make(3), make(3)), {"dim": 0}),
            Sample((make(4, 3), make(4, 3)), {"dim": -1}),
            Sample((make(3, 2), make(3, 1)), {"dim": 0}),
        ],
        lambda a, b, dim: _np_cross(a, b, dim),
    )
)


def _np_cross(a: np.ndarray, b: np.ndarray, dim: int) -> np.ndarray:
    a, b = np.broadcast_arrays(a, b)
    return np.cross(a, b, axis=dim)


def _kron(a: Any, b: Any) -> Any:
    ndim = max(a.ndim, b.ndim)
    left, right = ((1,) * (ndim - x.ndim) + tuple(x.shape) for x in (a, b))
    # Each dimension of the result is a pair: that of `a` outside, that of `b` inside.
    outer = a.reshape([n for size in left for n in (size, 1)])
    inner = b.reshape([n for size in right for n in (1, size)])
    return (outer * inner).reshape([m * n for m, n in zip(left, right, strict=True)])


kron = (
    Op(
        "kron(Tensor self, Tensor other) -> Tensor",
        family=COMPOSITE,
        doc="Kronecker product: `other` as a block in the place of every element of `input`, multiplied by it.",
    )
    .composite(_kron)
    .samples(
        lambda make, dtype: [
            Sample((make(*a), make(*b))) for a, b in (((2, 3), (3, 2)), ((2,), (2, 2)), ((), (3,)), ((2, 1, 2), (3, 2)))
        ],
        np.kron,
    )
)


def _vander(x: Any, n: int | None, increasing: bool) -> Any:
    if x.ndim != 1:
        raise RuntimeError(f"x must be a one-dimensional tensor, got shape {list(x.shape)}.")
    columns = x.numel() if n is None else n
    if columns < 0:
        raise RuntimeError(f"N must be non-negative, got N={n}.")
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(_C.int64)
    powers = x.new_ones(x.numel(), 1)[:, :columns]
    if columns > 1:
        from ._join import cat

        powers = cat.operator([powers, x.unsqueeze(1).expand(-1, columns - 1).cumprod(1)], 1)
    return powers if increasing else powers.flip(1)


vander = (
    Op(
        "vander(Tensor x, int? N=None, bool increasing=False) -> Tensor",
        family=COMPOSITE,
        out=False,
        doc="""The matrix whose columns are the powers of a vector, as of Vandermonde.

        Args:
            x: Vector; integers and bool count in int64.
            N: Number of columns, by default as many as elements.
            increasing: Whether the powers rise from left to right.

        Returns:
            Matrix of shape (len(x), N).

        Raises:
            RuntimeError: The input is no vector or `N` is negative.

        Example:
            >>> rushlight.vander(rushlight.tensor([1, 2, 3]))
            tensor([[1, 1, 1],
                    [4, 2, 1],
                    [9, 3, 1]])
        """,
    )
    .composite(_vander)
    .samples(_calls(((3,),), ((3,), 4), ((3,), 2, True)), np.vander)
)
