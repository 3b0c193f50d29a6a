"""What array kernels call `xp`: NumPy's names, arguments and dtypes over the functions of the standard."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NoReturn

import numpy as np

from ...plugin.strided import row_major
from ._array import BOOL, INT64, Array, Memory

Axis = int | Sequence[int] | None

UINT8, FLOAT64 = np.dtype("uint8"), np.dtype("float64")

_STANDARD = {
    "absolute": "abs",
    "power": "pow",
    "conjugate": "conj",
    "rint": "round",
    "invert": "bitwise_invert",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "arctan2": "atan2",
    "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift",
}
"""The standard's names of NumPy's ufuncs, where they differ."""

_ALIASES = {"abs": "absolute", "true_divide": "divide", "conj": "conjugate", "bitwise_not": "invert", "pow": "power"}

_OF_BOOL = {"bitwise_and", "bitwise_or", "bitwise_xor", "invert", "equal", "not_equal"}
_OF_BOOL |= {"logical_and", "logical_or", "logical_xor", "logical_not"}
"""Ufuncs that the standard has for bool; others compute in uint8."""

_ORDER = ("less", "less_equal", "greater", "greater_equal", "maximum", "minimum", "fmax", "fmin")
"""Ufuncs that NumPy has for complex numbers and the standard has not."""


@cache
def _loop(name: str, dtypes: tuple[Any, ...]) -> tuple[tuple[np.dtype[Any], ...], np.dtype[Any]]:
    """The dtypes in which a ufunc computes for those of its arguments, and that of its result."""
    *inputs, output = getattr(np, name).resolve_dtypes((*dtypes, None))
    if name.startswith("logical_"):
        return (BOOL,) * len(dtypes), BOOL
    if all(dtype == BOOL for dtype in inputs) and name not in _OF_BOOL:
        return (UINT8,) * len(dtypes), output
    return tuple(inputs), output


class Ufunc:
    """One of NumPy's ufuncs, with the methods that array kernels use."""

    def __init__(self, xp: Namespace, name: str) -> None:
        self.xp = xp
        self.__name__ = name

    def __call__(self, *arguments: Any) -> Array:
        return self.xp.apply(self.__name__, *arguments)

    def at(self, target: Array, key: Any, values: Any) -> None:
        """Changes the elements that a key selects, again where it selects one again."""
        target.change_at(key, values, self.__name__)

    def accumulate(self, x: Array, axis: int = 0) -> Array:
        """What the ufunc makes of the elements so far along a dimension, in log2(n) steps."""
        x, step = self.xp.moveaxis(x, axis, 0).copy(), 1
        while step < x.shape[0]:
            x[step:] = self(x[:-step], x[step:])
            step *= 2
        return self.xp.moveaxis(x, 0, axis)


class Extension:
    """The standard's `fft` or `linalg`, of Arrays."""

    def __init__(self, xp: Namespace, name: str) -> None:
        self.xp = xp
        self._name = name
        self._module = getattr(xp.library, name, None)

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._module, name, None)
        if function is None:
            self.xp.missing(f"{self._name}.{name}")

        def of_arrays(*args: Any, **kwargs: Any) -> Any:
            native = (each.values() if isinstance(each, Array) else each for each in args)
            result = function(*native, **kwargs)
            return tuple(map(self.xp.wrap, result)) if isinstance(result, tuple) else self.xp.wrap(result)

        return of_arrays


class Fourier(Extension):
    """The standard's `fft`, whose transforms of complex numbers take real ones too."""

    def fftn(self, x: Array, **options: Any) -> Array:
        return self.__getattr__("fftn")(x.astype(np.result_type(x.dtype, np.complex64)), **options)

    def ifftn(self, x: Array, **options: Any) -> Array:
        return self.__getattr__("ifftn")(x.astype(np.result_type(x.dtype, np.complex64)), **options)


class LinearAlgebra(Extension):
    """The standard's `linalg`, with those of NumPy's arguments that it lacks."""

    def qr(self, x: Array, mode: str = "reduced") -> Any:
        if mode == "r":
            return self.__getattr__("qr")(x, mode="reduced")[1]
        return self.__getattr__("qr")(x, mode=mode)

    def svd(self, x: Array, full_matrices: bool = True, compute_uv: bool = True) -> Any:
        return self.__getattr__("svd")(x, full_matrices=full_matrices) if compute_uv else self.svdvals(x)

    def eigh(self, x: Array, UPLO: str = "L") -> Any:
        return self.__getattr__("eigh")(self._mirrored(x, UPLO))

    def eigvalsh(self, x: Array, UPLO: str = "L") -> Any:
        return self.__getattr__("eigvalsh")(self._mirrored(x, UPLO))

    def _mirrored(self, x: Array, UPLO: str) -> Array:
        """The Hermitian matrix of which a triangle is given."""
        half, rest = (self.xp.tril(x), self.xp.tril(x, -1)) if UPLO == "L" else (self.xp.triu(x), self.xp.triu(x, 1))
        return half + self.xp.conj(self.xp.swapaxes(rest, -2, -1))


class Namespace:
    """NumPy's functions over an array library; what it lacks says so by name.

    Args:
        name: Device type, for messages.
        library: Namespace of the standard.
        device: Device of the library where arrays are made; None for its default.
    """

    nan, inf, pi, e = math.nan, math.inf, math.pi, math.e

    def __init__(self, name: str, library: Any, device: Any = None) -> None:
        self.name = name
        self.library = library
        self.device = device
        dtypes = library.__array_namespace_info__().dtypes(device=device)
        self._native = {np.dtype(each): dtype for each, dtype in dtypes.items()}
        self._dtypes = {native: dtype for dtype, native in self._native.items()}
        self.fft = Fourier(self, "fft")
        self.linalg = LinearAlgebra(self, "linalg")

    def __getattr__(self, name: str) -> Any:
        name = _ALIASES.get(name, name)
        if name.startswith("_") or not isinstance(getattr(np, name, None), np.ufunc):
            self.missing(name)
        return Ufunc(self, name)

    def missing(self, name: str) -> NoReturn:
        raise NotImplementedError(
            f'{self.name}: "{name}" not implemented for arrays of this device. Compute it on the CPU.'
        )

    # -- arrays of the library, which the code below calls native

    def native_dtype(self, dtype: np.dtype[Any]) -> Any:
        """The library's dtype of the same name."""
        if dtype not in self._native:
            raise NotImplementedError(
                f"{self.name}: not implemented for the dtype {dtype}. Convert to one that the device has."
            )
        return self._native[dtype]

    def native(self, x: Any, dtype: np.dtype[Any]) -> Any:
        """An Array's or a number's elements in a dtype. Complex to real keeps the real part."""
        to = self.native_dtype(dtype)
        if isinstance(x, np.ndarray) and x.ndim:
            raise TypeError(f"{self.name}: got an array of the host. Copy it to the device first.")
        if not isinstance(x, Array):
            return self.library.asarray(x, dtype=to, device=self.device)
        values = x.values()
        if x.dtype == dtype:
            return values
        if dtype == BOOL:
            return values != self.native(0, x.dtype)
        if x.dtype.kind == "c" and dtype.kind != "c":
            values = self.library.real(values)
        return self.library.astype(values, to)

    def native_full(self, shape: Sequence[int], value: Any, dtype: np.dtype[Any]) -> Any:
        return self.library.full(tuple(shape), value, dtype=self.native_dtype(dtype), device=self.device)

    def native_arange(self, n: int) -> Any:
        return self.library.arange(n, dtype=self.native_dtype(INT64), device=self.device)

    def native_take(self, elements: Any, places: Any) -> Any:
        found = self.library.take(elements, self.library.reshape(places, (-1,)))
        return self.library.reshape(found, places.shape)

    def native_call(self, name: str, dtype: np.dtype[Any], *values: Any) -> Any:
        """A ufunc of elements of one dtype."""
        if dtype == BOOL and name not in _OF_BOOL:
            wide = [self.library.astype(each, self.native_dtype(UINT8)) for each in values]
            return self.native_call(name, UINT8, *wide) != self.native(0, UINT8)
        derived = getattr(Derived, name, None)
        if derived is not None:
            return derived(self, dtype, *values)
        function = getattr(self.library, _STANDARD.get(name, name), None)
        return function(*values) if function is not None else self.missing(name)

    def wrap(self, native: Any, dtype: np.dtype[Any] | None = None) -> Array:
        """The Array of the library's one, in another dtype where one is given."""
        found = self._dtypes[native.dtype]
        shape = tuple(native.shape)
        elements = self.library.reshape(native, (-1,))
        result = Array(Memory(self, math.prod(shape) * found.itemsize, elements, found), found, shape, row_major(shape))
        return result if dtype is None or dtype == found else result.astype(dtype)

    def from_host(self, array: np.ndarray) -> Any:
        self.native_dtype(array.dtype)
        return self.library.asarray(np.ascontiguousarray(array), device=self.device, copy=True)

    def to_host(self, native: Any) -> np.ndarray:
        return np.array(np.from_dlpack(self.library.asarray(native), device="cpu"))

    def _ordered(self, name: str, x: Array) -> Array:
        """The elements as a dtype whose elements the standard puts in order."""
        if x.dtype.kind == "c":
            self.missing(f"{name} of {x.dtype}")
        return x.astype(UINT8) if x.dtype == BOOL else x

    # -- ufuncs

    def apply(self, name: str, *arguments: Any) -> Array:
        """A NumPy ufunc of Arrays and numbers, dtypes by NumPy's rules."""
        numbers = {bool: BOOL, int: int, float: float, complex: complex}
        key = tuple(getattr(each, "dtype", None) or numbers[type(each)] for each in arguments)
        inputs, output = _loop(name, key)
        if inputs[0].kind == "c" and name in _ORDER:
            self.missing(f"{name} of {inputs[0]}")
        values = [self.native(each, dtype) for each, dtype in zip(arguments, inputs, strict=True)]
        return self.wrap(self.native_call(name, inputs[0], *values), output)

    def where(self, condition: Any, x: Any, y: Any) -> Array:
        dtype = np.result_type(*(each.dtype if isinstance(each, (Array, np.generic)) else each for each in (x, y)))
        chosen = self.library.where(self.native(condition, BOOL), self.native(x, dtype), self.native(y, dtype))
        return self.wrap(chosen, dtype)

    def clip(self, x: Any, low: Any = None, high: Any = None) -> Array:
        x = x if low is None else self.maximum(x, low)
        return x if high is None else self.minimum(x, high)

    def round(self, x: Array, decimals: int = 0) -> Array:
        if x.dtype.kind in "biu" and decimals >= 0:
            return x.copy()
        if not decimals:
            return self.rint(x)
        scale = 10.0 ** abs(decimals)
        up, down = (self.multiply, self.divide) if decimals > 0 else (self.divide, self.multiply)
        return down(self.rint(up(x, scale)), scale).astype(x.dtype)

    def sinc(self, x: Array) -> Array:
        angle = x * self.pi
        return self.where(x == 0, 1, self.sin(angle) / self.where(angle == 0, 1, angle))

    def angle(self, x: Array) -> Array:
        if x.dtype.kind == "c":
            return self.arctan2(x.imag, x.real)
        return self.where(x != x, x, self.where(x < 0, self.pi, 0.0) + x * 0)

    def real(self, x: Array) -> Array:
        return self.wrap(self.library.real(x.values())) if x.dtype.kind == "c" else x

    def imag(self, x: Array) -> Array:
        return self.wrap(self.library.imag(x.values())) if x.dtype.kind == "c" else self.zeros_like(x)

    def isposinf(self, x: Array) -> Array:
        return x == self.inf if x.dtype.kind == "f" else x != x

    def isneginf(self, x: Array) -> Array:
        return x == -self.inf if x.dtype.kind == "f" else x != x

    def diff(self, x: Array, axis: int = -1) -> Array:
        x = self.swapaxes(x, axis, -1)
        return self.swapaxes(x[..., 1:] - x[..., :-1], axis, -1)

    def frexp(self, x: Array) -> tuple[Array, Array]:
        """Mantissas of 0.5 up to 1 and the exponents of 2 to them."""
        usual = self.isfinite(x) & (x != 0)
        size = self.where(usual, self.abs(x), 1).astype(FLOAT64)
        exponent = self.floor(self.log2(size)) + 1
        for _ in range(2):  # in two halves, neither of which overflows; the logarithm may be off by one
            half = self.trunc(exponent / 2)
            mantissa = size * self.exp2(-half) * self.exp2(half - exponent)
            exponent = exponent + self.where(mantissa >= 1, 1, self.where(mantissa < 0.5, -1, 0))
        signed = self.copysign(mantissa, x.astype(FLOAT64)).astype(x.dtype)
        return self.where(usual, signed, x), self.where(usual, exponent, 0).astype(np.int32)

    # -- creation

    def asarray(self, x: Any, dtype: Any = None) -> Array:
        if isinstance(x, Array):
            return x if dtype is None or x.dtype == np.dtype(dtype) else x.astype(dtype)
        if any(isinstance(each, Array) for each in (x if isinstance(x, (list, tuple)) else ())):
            return self.stack([self.asarray(each, dtype) for each in x])
        host = np.asarray(x, dtype)
        return self.wrap(self.native(x, host.dtype), host.dtype)

    def array(self, x: Any, dtype: Any = None, order: str = "K", copy: bool = True) -> Array:
        found = self.asarray(x, dtype)
        return found.copy() if copy else found

    def ascontiguousarray(self, x: Any) -> Array:
        found = self.asarray(x)
        return found if found.is_contiguous() else found.copy()

    def full(self, shape: Any, value: Any, dtype: Any = None) -> Array:
        dtype = np.asarray(value).dtype if dtype is None else np.dtype(dtype)
        return self.wrap(self.native_full((shape,) if isinstance(shape, int) else shape, value, dtype), dtype)

    def empty(self, shape: Any, dtype: Any = FLOAT64) -> Array:
        return self.full(shape, 0, dtype)

    zeros = empty

    def ones(self, shape: Any, dtype: Any = FLOAT64) -> Array:
        return self.full(shape, 1, dtype)

    def full_like(self, x: Array, value: Any, dtype: Any = None) -> Array:
        return self.full(x.shape, value, dtype or x.dtype)

    def zeros_like(self, x: Array, dtype: Any = None) -> Array:
        return self.full_like(x, 0, dtype)

    def ones_like(self, x: Array, dtype: Any = None) -> Array:
        return self.full_like(x, 1, dtype)

    def empty_like(self, x: Array, dtype: Any = None) -> Array:
        return self.full_like(x, 0, dtype)

    def arange(self, *arguments: Any, dtype: Any = None) -> Array:
        return self.wrap(self.from_host(np.arange(*arguments, dtype=dtype)))

    def eye(self, n: int, m: int | None = None, k: int = 0, dtype: Any = FLOAT64) -> Array:
        return self.wrap(
            self.library.eye(n, m, k=k, dtype=self.native_dtype(np.dtype(dtype)), device=self.device), np.dtype(dtype)
        )

    # -- reductions and scans

    def _reduce(self, name: str, x: Array, axis: Axis, keepdims: bool, **options: Any) -> Array:
        return self.wrap(
            getattr(self.library, name)(x.values(), axis=axes_of(axis, x.ndim), keepdims=keepdims, **options)
        )

    def _fold(self, name: str, x: Array, axis: Axis, dtype: Any, keepdims: bool) -> Array:
        x = x.astype(dtype_of_sums(x.dtype, dtype))
        return self._reduce(name, x, axis, keepdims, dtype=self.native_dtype(x.dtype))

    def sum(self, x: Array, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:
        return self._fold("sum", x, axis, dtype, keepdims)

    def nansum(self, x: Array, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:
        return self.sum(self.where(x != x, 0, x), axis, dtype, keepdims)

    def prod(self, x: Array, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:
        return self._fold("prod", x, axis, dtype, keepdims)

    def _extreme(self, name: str, x: Array, axis: Axis, keepdims: bool, initial: Any) -> Array:
        dtype, x = x.dtype, self._ordered(name, x)
        axes = axes_of(axis, x.ndim)
        if any(x.shape[d] == 0 for d in axes):
            if initial is None:
                raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
            shape = [1 if d in axes else n for d, n in enumerate(x.shape) if keepdims or d not in axes]
            return self.full(shape, initial, dtype)
        found = self._reduce(name, x, axes, keepdims)
        found = found if initial is None else (self.maximum if name == "max" else self.minimum)(found, initial)
        return self.asarray(found, dtype)

    def max(self, x: Array, axis: Axis = None, keepdims: bool = False, initial: Any = None) -> Array:
        return self._extreme("max", x, axis, keepdims, initial)

    def min(self, x: Array, axis: Axis = None, keepdims: bool = False, initial: Any = None) -> Array:
        return self._extreme("min", x, axis, keepdims, initial)

    def any(self, x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
        return self._reduce("any", x.astype(BOOL), axis, keepdims)

    def all(self, x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
        return self._reduce("all", x.astype(BOOL), axis, keepdims)

    def count_nonzero(self, x: Array, axis: Axis = None) -> Array:
        return self.sum(x.astype(BOOL), axis, INT64)

    def mean(self, x: Array, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:
        x = x.astype(dtype or (x.dtype if x.dtype.kind in "fc" else FLOAT64))
        return self.sum(x, axis, x.dtype, keepdims) / (count(x, axis) or 0.0)

    def var(self, x: Array, axis: Axis = None, ddof: Any = 0, keepdims: bool = False) -> Array:
        apart = x - self.mean(x, axis, keepdims=True)
        squares = apart.real * apart.real + apart.imag * apart.imag if x.dtype.kind == "c" else apart * apart
        return self.sum(squares, axis, squares.dtype, keepdims) / float(np.maximum(count(x, axis) - ddof, 0))

    def std(self, x: Array, axis: Axis = None, ddof: Any = 0, keepdims: bool = False) -> Array:
        return self.sqrt(self.var(x, axis, ddof, keepdims))

    def argmax(self, x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
        return self._place(self.max, x, axis, keepdims)

    def argmin(self, x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
        return self._place(self.min, x, axis, keepdims)

    def _place(self, extreme: Any, x: Array, axis: int | None, keepdims: bool) -> Array:
        """The first index of the extreme along a dimension, of NaN if there is any, which the standard leaves open."""
        if not x.ndim:
            return self.zeros((), INT64)
        best = extreme(x, axis, True)
        hit = ((x == best) | ((x != x) & (best != best))).astype(UINT8)
        return self.wrap(self.library.argmax(hit.values(), axis=axis, keepdims=keepdims), INT64)

    def cumsum(self, x: Array, axis: int = 0, dtype: Any = None) -> Array:
        return self._scan("cumulative_sum", x, axis, dtype)

    def cumprod(self, x: Array, axis: int = 0, dtype: Any = None) -> Array:
        return self._scan("cumulative_prod", x, axis, dtype)

    def _scan(self, name: str, x: Array, axis: int, dtype: Any) -> Array:
        x = x.astype(dtype_of_sums(x.dtype, dtype))
        function = getattr(self.library, name, None)
        if function is None:
            self.missing(name)
        return self.wrap(function(x.values(), axis=axis, dtype=self.native_dtype(x.dtype)))

    # -- shapes

    def reshape(self, x: Array, *shape: Any) -> Array:
        return x.reshape(*shape)

    def broadcast_to(self, x: Any, shape: Any) -> Array:
        return self.asarray(x).broadcast_to(shape)

    def broadcast_arrays(self, *arrays: Array) -> list[Array]:
        shape = np.broadcast_shapes(*(each.shape for each in arrays))
        return [each.broadcast_to(shape) for each in arrays]

    def transpose(self, x: Array, axes: Sequence[int] = ()) -> Array:
        return x.transpose(*axes)

    def swapaxes(self, x: Array, a: int, b: int) -> Array:
        order = list(range(x.ndim))
        order[a], order[b] = order[b], order[a]
        return x.transpose(*order) if order else x

    def moveaxis(self, x: Array, source: int, to: int) -> Array:
        order = list(range(x.ndim))
        order.insert(to % x.ndim, order.pop(source % x.ndim))
        return x.transpose(*order)

    def squeeze(self, x: Array, axis: Axis = None) -> Array:
        gone = [d for d, n in enumerate(x.shape) if n == 1] if axis is None else axes_of(axis, x.ndim)
        return x.reshape([n for d, n in enumerate(x.shape) if d not in gone])

    def expand_dims(self, x: Array, axis: int) -> Array:
        shape = list(x.shape)
        shape.insert(axis if axis >= 0 else axis + x.ndim + 1, 1)
        return x.reshape(shape)

    def flip(self, x: Array, axis: Axis = None) -> Array:
        axes = axes_of(axis, x.ndim)
        return x[tuple(slice(None, None, -1 if d in axes else 1) for d in range(x.ndim))]

    def stack(self, arrays: Sequence[Array], axis: int = 0) -> Array:
        return self.concatenate([self.expand_dims(each, axis) for each in arrays], axis)

    def concatenate(self, arrays: Sequence[Array], axis: int = 0) -> Array:
        dtype = np.result_type(*(each.dtype for each in arrays))
        return self.wrap(self.library.concat([self.native(each, dtype) for each in arrays], axis=axis))

    def diagonal(self, x: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        axis1, axis2 = axis1 % x.ndim, axis2 % x.ndim
        others = [d for d in range(x.ndim) if d not in (axis1, axis2)]
        down, right = np.maximum((-offset, offset), 0).tolist()
        n = int(np.maximum(0, np.minimum(x.shape[axis1] - down, x.shape[axis2] - right)))
        start = down * x.strides[axis1] + right * x.strides[axis2] if n else 0
        strides = [*(x.strides[d] for d in others), x.strides[axis1] + x.strides[axis2]]
        return x.window([*(x.shape[d] for d in others), n], strides, start)

    def tril(self, x: Array, k: int = 0) -> Array:
        return self.wrap(self.library.tril(x.values(), k=k))

    def triu(self, x: Array, k: int = 0) -> Array:
        return self.wrap(self.library.triu(x.values(), k=k))

    # -- places

    def take(self, x: Array, index: Any, axis: int | None = None) -> Array:
        x = x.reshape(-1) if axis is None or not x.ndim else x
        return x[(slice(None),) * ((axis or 0) % x.ndim) + (self.asarray(index),)]

    def take_along_axis(self, x: Array, index: Array, axis: int = -1) -> Array:
        axis %= x.ndim
        shape = [n if d == axis else m for d, (n, m) in enumerate(zip(index.shape, x.shape, strict=True))]
        key: list[Any] = [self.arange(n).reshape(n, *[1] * (x.ndim - d - 1)) for d, n in enumerate(shape)]
        key[axis] = index
        return x[tuple(key)]

    def nonzero(self, x: Array) -> tuple[Array, ...]:
        x = x if x.ndim else x.reshape(1)
        return tuple(self.wrap(each, INT64) for each in self.library.nonzero(x.values()))

    def argsort(self, x: Array, axis: int = -1, kind: str = "stable") -> Array:
        values = self._ordered("argsort", x).values()
        return self.wrap(self.library.argsort(values, axis=axis, stable=True), INT64)

    def sort(self, x: Array, axis: int = -1) -> Array:
        return self.take_along_axis(x, self.argsort(x, axis), axis)

    def searchsorted(self, edges: Array, values: Any, side: str = "left", sorter: Array | None = None) -> Array:
        edges = edges if sorter is None else self.take(edges, sorter, 0)
        edges, values = self._ordered("searchsorted", edges), self._ordered("searchsorted", self.asarray(values))
        dtype = np.result_type(edges.dtype, values.dtype)
        found = self.library.searchsorted(self.native(edges, dtype), self.native(values, dtype), side=side)
        return self.wrap(found, INT64)

    def bincount(self, x: Array, weights: Array | None = None, minlength: int = 0) -> Array:
        x = x.astype(INT64)
        if x.size and int(self.min(x)) < 0:
            raise ValueError("bincount: 'list' argument must have no negative elements")
        length = int(self.max(x, initial=minlength - 1)) + 1
        result = self.zeros(length, INT64 if weights is None else FLOAT64)
        result.change_at(x, 1 if weights is None else weights, "add")
        return result

    # -- products

    def matmul(self, a: Array, b: Array) -> Array:
        dtype = np.result_type(a.dtype, b.dtype)
        return self.wrap(self.library.matmul(self.native(a, dtype), self.native(b, dtype)))

    dot = matmul


class Derived:
    """Ufuncs that the standard lacks or leaves open for some values, over those that it has; arguments are native."""

    @staticmethod
    def exp2(xp: Namespace, dtype: np.dtype[Any], x: Any) -> Any:
        return xp.library.pow(xp.native(2, dtype), x)

    @staticmethod
    def floor_divide(xp: Namespace, dtype: np.dtype[Any], x: Any, y: Any) -> Any:
        if dtype.kind == "f":
            return xp.library.floor_divide(x, y)
        # Dividing by these ends the process on some processors: by 0, and the least integer by -1.
        zero, minus = y == xp.native(0, dtype), Derived._is_minus_one(xp, dtype, y)
        result = xp.library.floor_divide(x, xp.library.where(zero | minus, xp.native(1, dtype), y))
        result = xp.library.where(minus, -x, result)
        return xp.library.where(zero, xp.native(0, dtype), result)

    @staticmethod
    def remainder(xp: Namespace, dtype: np.dtype[Any], x: Any, y: Any) -> Any:
        if dtype.kind != "f":
            trivial = (y == xp.native(0, dtype)) | Derived._is_minus_one(xp, dtype, y)
            y = xp.library.where(trivial, xp.native(1, dtype), y)
        return xp.library.remainder(x, y)

    @staticmethod
    def _is_minus_one(xp: Namespace, dtype: np.dtype[Any], y: Any) -> Any:
        return y == xp.native(-1, dtype) if dtype.kind == "i" else y != y

    @staticmethod
    def fmod(xp: Namespace, dtype: np.dtype[Any], x: Any, y: Any) -> Any:
        library, zero = xp.library, xp.native(0, dtype)
        if dtype.kind == "f":
            return library.copysign(library.remainder(library.abs(x), library.abs(y)), x)
        rest = Derived.remainder(xp, dtype, x, y)
        return library.where((rest != zero) & ((rest < zero) != (x < zero)), rest - y, rest)

    @staticmethod
    def left_shift(xp: Namespace, dtype: np.dtype[Any], x: Any, n: Any) -> Any:
        far = (n < xp.native(0, dtype)) | (n >= xp.native(8 * dtype.itemsize, dtype))
        zero = xp.native(0, dtype)
        return xp.library.where(far, zero, xp.library.bitwise_left_shift(x, xp.library.where(far, zero, n)))

    @staticmethod
    def right_shift(xp: Namespace, dtype: np.dtype[Any], x: Any, n: Any) -> Any:
        far = (n < xp.native(0, dtype)) | (n >= xp.native(8 * dtype.itemsize, dtype))
        zero = xp.native(0, dtype)
        rest = xp.library.where(x < zero, xp.library.bitwise_invert(zero), zero)
        return xp.library.where(far, rest, xp.library.bitwise_right_shift(x, xp.library.where(far, zero, n)))

    @staticmethod
    def fmax(xp: Namespace, dtype: np.dtype[Any], x: Any, y: Any) -> Any:
        return xp.library.where(x != x, y, xp.library.where(y != y, x, xp.library.maximum(x, y)))

    @staticmethod
    def fmin(xp: Namespace, dtype: np.dtype[Any], x: Any, y: Any) -> Any:
        return xp.library.where(x != x, y, xp.library.where(y != y, x, xp.library.minimum(x, y)))

    @staticmethod
    def heaviside(xp: Namespace, dtype: np.dtype[Any], x: Any, y: Any) -> Any:
        zero, one = xp.native(0, dtype), xp.native(1, dtype)
        beside = xp.library.where(x > zero, one, xp.library.where(x < zero, zero, x))
        return xp.library.where(x == zero, y, beside)

    @staticmethod
    def gcd(xp: Namespace, dtype: np.dtype[Any], x: Any, y: Any) -> Any:
        library, zero, one = xp.library, xp.native(0, dtype), xp.native(1, dtype)
        x, y = (library.abs(each) for each in library.broadcast_arrays(x, y))
        while xp.to_host(library.any(y != zero)):
            done = y == zero
            x, y = library.where(done, x, y), library.remainder(x, library.where(done, one, y))
        return x

    @staticmethod
    def lcm(xp: Namespace, dtype: np.dtype[Any], x: Any, y: Any) -> Any:
        common = Derived.gcd(xp, dtype, x, y)
        return xp.library.abs(Derived.floor_divide(xp, dtype, x, common) * y)


def axes_of(axis: Axis, ndim: int) -> tuple[int, ...]:
    """The dimensions that an axis argument names, from the front, sorted."""
    given = range(ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    bound = ndim or 1  # a 0-d array has a dimension 0 to reduce
    if any(not -bound <= d < bound for d in given):
        raise np.exceptions.AxisError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    return tuple(sorted({d % bound for d in given})) if ndim else ()


def count(x: Array, axis: Axis) -> int:
    """How many elements a reduction takes together."""
    return math.prod(x.shape[d] for d in axes_of(axis, x.ndim))


def dtype_of_sums(dtype: np.dtype[Any], asked: Any) -> np.dtype[Any]:
    """The dtype of the sum or product of elements of a dtype."""
    return np.dtype(asked) if asked is not None else INT64 if dtype.kind in "bi" else dtype
