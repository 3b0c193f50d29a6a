"""The array namespace: what array kernels call `xp`, with NumPy's names, arguments and dtypes."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rushlight.plugin.source import ALIASES, ELEMENTWISE, EXPRESSIONS, Fold, apply, expression, fold_of, scan, where

from . import _array, _order
from ._array import BOOL, FLOAT64, INT64, Array, asarray, axes_of, dtype_of_sums, fold
from ._matmul import matmul

Axis = int | Sequence[int] | None

nan, inf, pi, e = math.nan, math.inf, math.pi, math.e


class Ufunc:
    """One of NumPy's ufuncs, with the methods that array kernels use."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *arguments: Any) -> Array:
        if not builtins.any(isinstance(each, Array) for each in arguments):
            arguments = tuple(map(asarray, arguments))
        return apply(self.__name__, *arguments)

    def at(self, target: Array, key: Any, values: Any) -> None:
        """Changes the elements that a key selects, again where it selects one again."""
        target.change_at(key, values, self.__name__)

    def accumulate(self, x: Array, axis: int = 0) -> Array:
        """What the ufunc makes of the elements so far, along a dimension."""
        result = Array.empty(x.shape, x.dtype, x.device)
        scan(result, x, axis % x.ndim, Fold(expression(self.__name__, x.dtype), 0))
        return result


_UFUNCS = {name: Ufunc(name) for name in EXPRESSIONS}
_UFUNCS |= {alias: _UFUNCS[name] for alias, name in ALIASES.items()}

# -- creation


def array(x: Any, dtype: Any = None, order: str = "K", copy: bool = True) -> Array:
    found = asarray(x, dtype)
    return found.copy() if copy else found


def ascontiguousarray(x: Any) -> Array:
    return asarray(x).contiguous()


def empty(shape: Any, dtype: Any = FLOAT64) -> Array:
    return Array.empty(_shape(shape), dtype)


def full(shape: Any, value: Any, dtype: Any = None) -> Array:
    return _array.full(_shape(shape), value, np.asarray(value).dtype if dtype is None else dtype).compute()


def zeros(shape: Any, dtype: Any = FLOAT64) -> Array:
    return full(shape, 0, dtype)


def ones(shape: Any, dtype: Any = FLOAT64) -> Array:
    return full(shape, 1, dtype)


def full_like(x: Array, value: Any, dtype: Any = None) -> Array:
    return _array.full(x.shape, value, dtype or x.dtype, x.device).compute()


def zeros_like(x: Array, dtype: Any = None) -> Array:
    return full_like(x, 0, dtype)


def ones_like(x: Array, dtype: Any = None) -> Array:
    return full_like(x, 1, dtype)


def empty_like(x: Array, dtype: Any = None) -> Array:
    return Array.empty(x.shape, dtype or x.dtype, x.device)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Array:
    start, stop = (0, start) if stop is None else (start, stop)
    places = _array.arange(builtins.max(0, math.ceil((stop - start) / step)))
    values = places if (start, step) == (0, 1) else apply("add", apply("multiply", places, step), start)
    return values if dtype is None else values.astype(dtype)


def eye(n: int, m: int | None = None, k: int = 0, dtype: Any = FLOAT64) -> Array:
    rows, columns = arange(n)[:, None], arange(n if m is None else m)
    return (rows + k == columns).astype(dtype)


def _shape(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


# -- element by element


def real(x: Array) -> Array:
    return x.real


def imag(x: Array) -> Array:
    return x.imag


def diff(x: Array, axis: int = -1) -> Array:
    x = swapaxes(x, axis, -1)
    return swapaxes(x[..., 1:] - x[..., :-1], axis, -1)


# -- reductions and scans


def sum(x: Array, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:
    return fold("add", x, axis, keepdims, dtype_of_sums(x.dtype, dtype))


def nansum(x: Array, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:
    return sum(where(x != x, 0, x) if x.dtype.kind in "fc" else x, axis, dtype, keepdims)


def prod(x: Array, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:
    return fold("multiply", x, axis, keepdims, dtype_of_sums(x.dtype, dtype))


def max(x: Array, axis: Axis = None, keepdims: bool = False, initial: Any = None) -> Array:
    return fold("maximum", x, axis, keepdims, initial=initial)


def min(x: Array, axis: Axis = None, keepdims: bool = False, initial: Any = None) -> Array:
    return fold("minimum", x, axis, keepdims, initial=initial)


def any(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    return fold("logical_or", x, axis, keepdims, BOOL)


def all(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    return fold("logical_and", x, axis, keepdims, BOOL)


def count_nonzero(x: Array, axis: Axis = None) -> Array:
    return fold("add", x.astype(BOOL), axis, dtype=INT64)


def mean(x: Array, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:
    x = x if dtype is None else x.astype(dtype)
    x = x if x.dtype.kind in "fc" else x.astype(FLOAT64)
    return fold("add", x, axis, keepdims) / _count(x, axis)


def var(x: Array, axis: Axis = None, ddof: Any = 0, keepdims: bool = False) -> Array:
    apart = x - mean(x, axis, keepdims=True)
    squares = apart.real * apart.real + apart.imag * apart.imag if x.dtype.kind == "c" else apart * apart
    free = _count(x, axis) - ddof
    return fold("add", squares, axis, keepdims) / (free if free > 0 else 0.0)


def std(x: Array, axis: Axis = None, ddof: Any = 0, keepdims: bool = False) -> Array:
    return apply("sqrt", var(x, axis, ddof, keepdims))


def _count(x: Array, axis: Axis) -> int:
    return math.prod(x.shape[d] for d in axes_of(axis, x.ndim))


def argmax(x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    return _place_of(max, x, axis, keepdims)


def argmin(x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    return _place_of(min, x, axis, keepdims)


def _place_of(extreme: Callable[..., Array], x: Array, axis: int | None, keepdims: bool) -> Array:
    """The first index of the extreme along a dimension, of NaN if there is any."""
    flat = x.reshape(-1) if axis is None else x
    d = 0 if axis is None else axis % builtins.max(x.ndim, 1)
    if not flat.ndim:
        return zeros_like(x, INT64)
    best = extreme(flat, d, True)
    hit = (flat == best) | ((flat != flat) & (best != best))
    n = flat.shape[d]
    index = arange(n).reshape(n, *[1] * (flat.ndim - d - 1))
    place = min(where(hit, index, n), d, keepdims and axis is not None)
    return place.reshape([1] * x.ndim) if keepdims and axis is None else place


def _scanned(name: str) -> Callable[..., Array]:
    def cumulated(x: Array, axis: int = 0, dtype: Any = None) -> Array:
        result = Array.empty(x.shape, dtype_of_sums(x.dtype, dtype), x.device)
        scan(result, x, axis % x.ndim, fold_of(name, result.dtype))
        return result

    return cumulated


cumsum, cumprod = _scanned("add"), _scanned("multiply")

# -- shapes


def reshape(x: Array, *shape: Any) -> Array:
    return x.reshape(*shape)


def broadcast_to(x: Array, shape: Any) -> Array:
    return asarray(x).broadcast_to(shape)


def broadcast_arrays(*arrays: Array) -> list[Array]:
    shape = np.broadcast_shapes(*(each.shape for each in arrays))
    return [each.broadcast_to(shape) for each in arrays]


def transpose(x: Array, axes: Sequence[int] = ()) -> Array:
    return x.transpose(*axes)


def swapaxes(x: Array, a: int, b: int) -> Array:
    order = list(range(x.ndim))
    order[a], order[b] = order[b], order[a]
    return x.transpose(*order)


def moveaxis(x: Array, source: int, to: int) -> Array:
    order = list(range(x.ndim))
    order.insert(to % x.ndim, order.pop(source % x.ndim))
    return x.transpose(*order) if order else x


def squeeze(x: Array, axis: Axis = None) -> Array:
    gone = [d for d, n in enumerate(x.shape) if n == 1] if axis is None else axes_of(axis, x.ndim)
    return x.reshape([n for d, n in enumerate(x.shape) if d not in gone])


def expand_dims(x: Array, axis: int) -> Array:
    shape = list(x.shape)
    shape.insert(axis if axis >= 0 else axis + x.ndim + 1, 1)
    return x.reshape(shape)


def flip(x: Array, axis: Axis = None) -> Array:
    axes = axes_of(axis, x.ndim)
    return x[tuple(slice(None, None, -1 if d in axes else 1) for d in range(x.ndim))]


def stack(arrays: Sequence[Array], axis: int = 0) -> Array:
    return concatenate([expand_dims(each, axis) for each in arrays], axis)


def concatenate(arrays: Sequence[Array], axis: int = 0) -> Array:
    first = arrays[0]
    axis %= first.ndim
    shape = list(first.shape)
    shape[axis] = builtins.sum(each.shape[axis] for each in arrays)
    result = Array.empty(shape, np.result_type(*(each.dtype for each in arrays)), first.device)
    at = 0
    for each in arrays:
        result[(slice(None),) * axis + (slice(at, at + each.shape[axis]),)] = each
        at += each.shape[axis]
    return result


def diagonal(x: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    axis1, axis2 = axis1 % x.ndim, axis2 % x.ndim
    x.compute()
    others = [d for d in range(x.ndim) if d not in (axis1, axis2)]
    down, right = builtins.max(-offset, 0), builtins.max(offset, 0)
    n = builtins.max(0, builtins.min(x.shape[axis1] - down, x.shape[axis2] - right))
    start = down * x.strides[axis1] + right * x.strides[axis2] if n else 0
    strides = [*(x.strides[d] for d in others), x.strides[axis1] + x.strides[axis2]]
    return x.window([*(x.shape[d] for d in others), n], strides, start)


def tril(x: Array, k: int = 0) -> Array:
    rows, columns = arange(x.shape[-2])[:, None], arange(x.shape[-1])
    return where(columns <= rows + k, x, asarray(0, x.dtype))


def triu(x: Array, k: int = 0) -> Array:
    rows, columns = arange(x.shape[-2])[:, None], arange(x.shape[-1])
    return where(columns >= rows + k, x, asarray(0, x.dtype))


# -- places


def take(x: Array, index: Any, axis: int | None = None) -> Array:
    index = asarray(index, None, x.device)
    x = x.reshape(-1) if axis is None or not x.ndim else x
    return x[(slice(None),) * ((axis or 0) % x.ndim) + (index,)]


def take_along_axis(x: Array, index: Array, axis: int = -1) -> Array:
    axis %= x.ndim
    shape = [n if d == axis else m for d, (n, m) in enumerate(zip(index.shape, x.shape, strict=True))]
    key: list[Any] = [arange(n).reshape(n, *[1] * (x.ndim - d - 1)) for d, n in enumerate(shape)]
    key[axis] = index
    return x[tuple(key)]


def nonzero(x: Array) -> tuple[Array, ...]:
    return tuple(_array.nonzero(x))


def argsort(x: Array, axis: int = -1, kind: str = "stable") -> Array:
    return swapaxes(_order.argsort(swapaxes(x, axis, -1)), axis, -1)


def sort(x: Array, axis: int = -1) -> Array:
    return take_along_axis(x, argsort(x, axis), axis)


def searchsorted(edges: Array, values: Any, side: str = "left", sorter: Array | None = None) -> Array:
    edges = edges if sorter is None else take(edges, sorter, 0)
    return _order.searchsorted(edges, asarray(values, None, edges.device), side == "right")


def bincount(x: Array, weights: Array | None = None, minlength: int = 0) -> Array:
    length = builtins.max(minlength, int(max(x)) + 1 if x.size else 0)
    if x.size and int(min(x)) < 0:
        raise ValueError("bincount: 'list' argument must have no negative elements")
    result = full((length,), 0, INT64 if weights is None else FLOAT64)
    result.change_at(x.astype(INT64), 1 if weights is None else weights, "add")
    return result


def dot(a: Array, b: Array) -> Array:
    return matmul(a, b)


class Namespace:
    """The functions of this module and the ufuncs, by name; what is missing says so by name."""

    def __getattr__(self, name: str) -> Any:
        found = _UFUNCS.get(name) or globals().get(name) or ELEMENTWISE.get(name)
        if found is None or name.startswith("_"):
            raise NotImplementedError(
                f'opencl: "{name}" not implemented for arrays of this device. Compute it on the CPU.'
            )
        return found
