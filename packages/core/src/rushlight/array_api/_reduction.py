"""Statistics, tests, cumulative sums, and whatever else goes along axes; sorting, searching and sets."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import rushlight as torch

from ._dtypes import common

Axes = int | tuple[int, ...] | None


def _along(op: Callable[..., Any], x: Any, axis: Axes, keepdims: bool, **options: Any) -> Any:
    """`op` over axes: all for None, none at all for an empty tuple."""
    if axis == () and x.ndim:
        return op(x.unsqueeze(-1), dim=-1, keepdim=False, **options)
    axes = tuple(range(x.ndim)) if axis is None else axis
    return op(x, dim=axes, keepdim=keepdims, **options)


def sum(x: Any, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Sums along axes; of integers in int64."""
    return _along(torch.sum, x, axis, keepdims, dtype=dtype)


def _prod(x: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    for axis in sorted((each % x.ndim for each in ((dim,) if isinstance(dim, int) else dim)), reverse=True):
        x = torch.prod(x, axis, keepdim, dtype=dtype)
    return x if x.ndim or dim else torch.prod(x, dtype=dtype)


def prod(x: Any, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Products along axes; of integers in int64."""
    return torch.prod(x, dtype=dtype) if not x.ndim else _along(_prod, x, axis, keepdims, dtype=dtype)


def mean(x: Any, /, *, axis: Axes = None, keepdims: bool = False) -> Any:
    """Means along axes."""
    return _along(torch.mean, x, axis, keepdims)


def var(x: Any, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """Variances along axes, over the number of elements less `correction`."""
    return _spread(torch.var, x, axis, keepdims, correction)


def std(x: Any, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """Standard deviations along axes, over the number of elements less `correction`."""
    return _spread(torch.std, x, axis, keepdims, correction)


def _spread(op: Callable[..., Any], x: Any, axis: Axes, keepdims: bool, correction: float) -> Any:
    result = _along(op, x, axis, keepdims, correction=correction)
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    count = math.prod(x.size(each) for each in axes)
    return result if count > correction else torch.full_like(result, math.nan)


def max(x: Any, /, *, axis: Axes = None, keepdims: bool = False) -> Any:
    """Largest elements along axes; NaN where there is one."""
    return _along(torch.amax, x, axis, keepdims)


def min(x: Any, /, *, axis: Axes = None, keepdims: bool = False) -> Any:
    """Smallest elements along axes; NaN where there is one."""
    return _along(torch.amin, x, axis, keepdims)


def all(x: Any, /, *, axis: Axes = None, keepdims: bool = False) -> Any:
    """Whether all elements along axes are true."""
    return _along(torch.all, x.to(torch.bool), axis, keepdims)


def any(x: Any, /, *, axis: Axes = None, keepdims: bool = False) -> Any:
    """Whether any element along axes is true."""
    return _along(torch.any, x.to(torch.bool), axis, keepdims)


def count_nonzero(x: Any, /, *, axis: Axes = None, keepdims: bool = False) -> Any:
    """How many elements along axes are not zero."""
    return sum(x.to(torch.bool), axis=axis, keepdims=keepdims)


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Index of the first largest element along an axis, or in the flat order."""
    return _place(torch.argmax, x, axis, keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Index of the first smallest element along an axis, or in the flat order."""
    return _place(torch.argmin, x, axis, keepdims)


def _place(op: Callable[..., Any], x: Any, axis: int | None, keepdims: bool) -> Any:
    if axis is None:
        return op(x).reshape((1,) * x.ndim if keepdims else ())
    return op(x, axis, keepdims)


def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """Sums of the elements up to each along an axis, which may be left out of a 1-d array."""
    return _cumulative(torch.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """Products of the elements up to each along an axis, which may be left out of a 1-d array."""
    return _cumulative(torch.cumprod, 1, x, axis, dtype, include_initial)


def _cumulative(op: Any, initial: int, x: Any, axis: int | None, dtype: Any, include_initial: bool) -> Any:
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"axis is needed where the array is not 1-d, got shape {tuple(x.shape)}.")
        axis = 0
    result = op(x, axis, dtype=dtype)
    if not include_initial:
        return result
    shape = list(result.shape)
    shape[axis] = 1
    return torch.cat([result.new_full(shape, initial), result], axis)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours along an axis, `n` times over, of the array with others before and after it."""
    parts = [part for part in (prepend, x, append) if part is not None]
    x = torch.cat(common(*parts), axis) if len(parts) > 1 else x
    for _ in range(n):
        size = x.size(axis)
        later, earlier = x.narrow(axis, size and 1, size - (size > 0)), x.narrow(axis, 0, size - (size > 0))
        x = torch.ne(later, earlier) if x.dtype == torch.bool else later - earlier
    return x


# -- sorting and searching


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The elements in order along an axis."""
    return torch.sort(x, dim=axis, descending=descending, stable=stable).values


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The indices that sort along an axis."""
    return torch.argsort(x, dim=axis, descending=descending, stable=stable)


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    """Where the elements of x2 have to go into x1, which is sorted, or is by `sorter`, to keep its order."""
    x1, x2 = common(x1, x2)
    return torch.searchsorted(x1, x2, side=side, sorter=sorter)


def nonzero(x: Any, /) -> tuple[Any, ...]:
    """The indices of the elements that are not zero, an array for each dimension.

    Raises:
        ValueError: The array has no dimensions.
    """
    if not x.ndim:
        raise ValueError("nonzero: an array without dimensions has no indices, got shape (). Reshape it to (1,).")
    return tuple(torch.nonzero(x, as_tuple=True))


# -- sets


class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: Any
    inverse_indices: Any


def _unique(x: Any) -> tuple[Any, Any, Any]:
    """Different elements, inverse and counts; complex numbers go by the real part, then by the imaginary one."""
    if not x.is_complex():
        return torch.unique(x, return_inverse=True, return_counts=True)
    pairs = torch.view_as_real(x.resolve_conj()).reshape(-1, 2)
    rows, inverse, counts = torch.unique(pairs, return_inverse=True, return_counts=True, dim=0)
    return torch.view_as_complex(rows), inverse.reshape(x.shape), counts


def unique_all(x: Any, /) -> UniqueAll:
    """The different elements sorted, where each is first, which of them every element is, and how often it is there."""
    values, inverse, counts = _unique(x)
    order = torch.argsort(inverse.flatten(), stable=True)
    return UniqueAll(values, order[torch.cumsum(counts, 0) - counts], inverse, counts)


def unique_counts(x: Any, /) -> UniqueCounts:
    """The different elements sorted, and how often each is there."""
    values, _, counts = _unique(x)
    return UniqueCounts(values, counts)


def unique_inverse(x: Any, /) -> UniqueInverse:
    """The different elements sorted, and which of them every element is."""
    values, inverse, _ = _unique(x)
    return UniqueInverse(values, inverse)


def unique_values(x: Any, /) -> Any:
    """The different elements, sorted."""
    return _unique(x)[0] if x.is_complex() else torch.unique(x)
