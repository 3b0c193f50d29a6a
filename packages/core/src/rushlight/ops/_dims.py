"""Dimension arguments that Python code has to look at."""

from __future__ import annotations

from collections.abc import Iterable


def wrap_dim(dim: int, ndim: int) -> int:
    """A dimension counted from the front; a 0-d tensor counts as one of one dimension.

    Raises:
        IndexError: There is no such dimension.
    """
    bound = max(ndim, 1)
    if not -bound <= dim < bound:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {dim})")
    return dim % bound


def wrap_dims(dims: Iterable[int], ndim: int) -> list[int]:
    """Several dimensions counted from the front.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: One is given twice.
    """
    wrapped = [wrap_dim(dim, ndim) for dim in dims]
    for dim in wrapped:
        if wrapped.count(dim) > 1:
            raise RuntimeError(f"dim {dim} appears multiple times in the list of dims")
    return wrapped
