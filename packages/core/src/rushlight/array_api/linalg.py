"""The extension for linear algebra: products and norms of vectors; decompositions come from rushlight.linalg."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as torch
from rushlight._public import claim as _claim

from ._dtypes import common as _common
from ._manipulation import matrix_transpose as matrix_transpose

_DECOMPOSITIONS = frozenset(
    (
        *("cholesky", "det", "eigh", "eigvalsh", "inv", "matrix_power", "matrix_rank"),
        *("pinv", "qr", "slogdet", "svd", "svdvals"),
    )
)
"""Functions that are rushlight.linalg's as they are."""


def __getattr__(name: str) -> Any:
    if name not in _DECOMPOSITIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(torch.linalg, name)


def matmul(x1: Any, x2: Any, /) -> Any:
    """Products of matrices, or of vectors as rows or columns."""
    return torch.matmul(*_common(x1, x2))


def tensordot(x1: Any, x2: Any, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Any:
    """Sums of products over the last and first `axes` dimensions, or over pairs of named ones."""
    return torch.tensordot(*_common(x1, x2), dims=axes)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Inner products along an axis, of the conjugate of x1 where complex.

    Raises:
        ValueError: The axis is not of one size in both.
    """
    x1, x2 = _common(x1, x2)
    if x1.size(axis) != x2.size(axis):
        raise ValueError(f"vecdot: both need one size along axis {axis}, got {x1.size(axis)} and {x2.size(axis)}.")
    x1, x2 = torch.broadcast_tensors(x1.movedim(axis, -1), x2.movedim(axis, -1))
    return torch.sum(torch.conj(x1) * x2, -1, dtype=x1.dtype)


def outer(x1: Any, x2: Any, /) -> Any:
    """The products of all pairs of elements of two vectors."""
    return torch.outer(*_common(x1, x2))


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """A view of the diagonals of a stack of matrices."""
    return torch.diagonal(x, offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Sums of the diagonals of a stack of matrices; of integers in int64."""
    return torch.sum(diagonal(x, offset=offset), -1, dtype=dtype)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Cross products of vectors of three elements along an axis.

    Raises:
        ValueError: They have another number of elements.
    """
    x1, x2 = _common(x1, x2)
    if x1.size(axis) != 3 or x2.size(axis) != 3:
        raise ValueError(f"cross: vectors have 3 elements, got {x1.size(axis)} and {x2.size(axis)} along axis {axis}.")
    (a, b, c), (d, e, f) = torch.unbind(x1, axis), torch.unbind(x2, axis)
    return torch.stack(torch.broadcast_tensors(b * f - c * e, c * d - a * f, a * e - b * d), axis)


def vector_norm(x: Any, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, ord: float = 2) -> Any:
    """Norms along axes, of the flat order where it is None."""
    if axis == ():
        return torch.abs(x) if ord else (x != 0).to(torch.abs(x).dtype)
    axes = tuple(range(x.ndim)) if axis is None else axis
    return torch.norm(x, ord, axes, keepdims)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """Norms of a stack of matrices."""
    return torch.linalg.matrix_norm(x, ord, keepdim=keepdims)


def solve(x1: Any, x2: Any, /) -> Any:
    """The solutions of x1 @ x = x2; x2 is a vector where it has one dimension, else a stack of matrices.

    Raises:
        LinAlgError: A matrix is singular.
    """
    x1, x2 = _common(x1, x2)
    return torch.linalg.solve(x1, x2[:, None])[..., 0] if x2.ndim == 1 else torch.linalg.solve(x1, x2)


_claim(globals())
