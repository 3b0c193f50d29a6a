"""Strided arrays over the arrays of a library that follows the Python array API standard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...plugin.strided import Strided

if TYPE_CHECKING:
    from ._namespace import Namespace

BOOL, INT64 = np.dtype("bool"), np.dtype("int64")


def _operators(ufunc: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """The methods `x + y` and `y + x` of a ufunc of two arguments."""
    return lambda a, b: a.xp.apply(ufunc, a, b), lambda a, b: a.xp.apply(ufunc, b, a)


class Memory:
    """What tensors of one storage look at.

    The library's arrays are never written to: a write replaces `elements`. So it does not matter which functions of the
    library return views, nor whether its arrays can change at all; a write to a part costs as much as one to the whole.

    Attributes:
        xp: The namespace.
        nbytes: Size in bytes.
        elements: An array of the library with one dimension; None where nothing has been written yet.
        dtype: NumPy's dtype of the elements.
    """

    __slots__ = ("dtype", "elements", "nbytes", "xp")

    def __init__(self, xp: Namespace, nbytes: int, elements: Any = None, dtype: np.dtype[Any] = BOOL) -> None:
        self.xp = xp
        self.nbytes = nbytes
        self.elements = elements
        self.dtype = dtype

    def length(self, dtype: np.dtype[Any]) -> int:
        """How many elements of a dtype there are."""
        return -(-self.nbytes // dtype.itemsize)

    def read(self, dtype: np.dtype[Any]) -> Any:
        """The elements; the standard cannot reinterpret them as another dtype, so the host does."""
        if self.elements is None:
            self.write(self.xp.native_full((self.length(dtype),), 0, dtype), dtype)
        elif self.dtype != dtype:
            raw = np.zeros(self.length(dtype) * dtype.itemsize, np.uint8)
            host = self.xp.to_host(self.elements).view(np.uint8)
            raw[: host.size] = host[: raw.size]
            self.write(self.xp.from_host(raw.view(dtype)), dtype)
        return self.elements

    def write(self, elements: Any, dtype: np.dtype[Any]) -> None:
        self.elements = elements
        self.dtype = dtype


class Array(Strided):
    """A window on memory, with NumPy's methods as far as array kernels use them.

    Attributes:
        memory: What it is a window on.
        dtype: NumPy's dtype.
        shape: Sizes.
        strides: Elements from one to the next in each dimension.
        offset: Elements before the first one.
    """

    __slots__ = ("dtype", "memory", "offset", "shape", "strides")
    __array_ufunc__ = None  # np.float64(2) * array asks the array
    __hash__ = object.__hash__

    def __init__(
        self, memory: Memory, dtype: np.dtype[Any], shape: Sequence[int], strides: Sequence[int], offset: int = 0
    ) -> None:
        self.memory = memory
        self.dtype = dtype
        self.shape = tuple(shape)
        self.strides = tuple(strides)
        self.offset = offset

    # -- its shape and memory

    @property
    def xp(self) -> Namespace:
        return self.memory.xp

    @property
    def real(self) -> Array:
        return self.xp.real(self)

    @property
    def imag(self) -> Array:
        return self.xp.imag(self)

    def values(self) -> Any:
        """The library's array of its elements."""
        elements, library = self.memory.read(self.dtype), self.xp.library
        if not self.is_contiguous():
            return self.xp.native_take(elements, self.xp.from_host(self.places()))
        if self.size != elements.shape[0]:
            elements = elements[self.offset : self.offset + self.size]
        return library.reshape(elements, self.shape)

    def places(self) -> np.ndarray:
        """Where in memory its elements are, on the host."""
        return self._window(np.arange(self.memory.length(self.dtype)))

    def _window(self, cells: np.ndarray) -> np.ndarray:
        """The same view of an array of the host that has an element for each of the memory."""
        if not self.size:
            return np.empty(self.shape, cells.dtype)
        strides = [s * cells.itemsize for s in self.strides]
        return np.lib.stride_tricks.as_strided(cells[self.offset :], self.shape, strides)

    def window(self, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> Array:
        """A view of the same memory; `offset` counts from the first element."""
        return Array(self.memory, self.dtype, shape, strides, self.offset + offset)

    def copy(self) -> Array:
        """The elements in memory of their own."""
        return self.xp.wrap(self.values(), self.dtype)

    # -- to the host

    def item(self) -> Any:
        return self.xp.to_host(self.values()).item()

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise TypeError(f"{self.xp.name}: this array lives on the device. Copy it to the host first.")

    # -- elements

    def astype(self, dtype: Any) -> Array:
        to = np.dtype(dtype)
        return self.xp.wrap(self.xp.native(self, to), to)

    def __matmul__(self, other: Array) -> Array:
        return self.xp.matmul(self, other)

    def __getitem__(self, key: Any) -> Array:
        view, places = self._select(key)
        if places is None:
            return view
        found = self.xp.native_take(self.memory.read(self.dtype), places.values())
        return self.xp.wrap(found, self.dtype)

    def __setitem__(self, key: Any, value: Any) -> None:
        view, places = self._select(key)
        shape = view.shape if places is None else places.shape
        value = self.xp.asarray(value, self.dtype)
        while value.ndim > len(shape) and value.shape[0] == 1:
            value = value[0]
        values = self.xp.library.reshape(value.broadcast_to(shape).values(), (-1,))
        if places is None:
            view._write(values)
        else:
            self._scatter(places.values(), values)

    def _write(self, values: Any) -> None:
        """Gives the elements of a view new values, a native vector of them."""
        memory, library, n = self.memory, self.xp.library, self.size
        whole = memory.length(self.dtype)
        if not n:
            return
        if not self.is_contiguous():
            source = np.full(whole, -1)
            self._window(source)[...] = np.arange(n).reshape(self.shape)
            self._replace(self.xp.from_host(source), values)
        elif n == whole:
            memory.write(values, self.dtype)
        else:
            old = memory.read(self.dtype)
            memory.write(library.concat([old[: self.offset], values, old[self.offset + n :]]), self.dtype)

    def _replace(self, source: Any, values: Any, change: str | None = None) -> None:
        """Makes element i of memory `values[source[i]]`, or what `change` makes of both; -1 leaves it alone."""
        library, xp = self.xp.library, self.xp
        old, zero = self.memory.read(self.dtype), xp.native(0, INT64)
        new = library.take(values, library.maximum(source, zero))
        new = xp.native_call(change, self.dtype, old, new) if change else new
        self.memory.write(library.where(source >= zero, new, old), self.dtype)

    def change_at(self, key: Any, value: Any, change: str) -> None:
        """Combines elements that a key selects with others by a ufunc, again where it selects one again."""
        view, places = self._select(key)
        value = self.xp.asarray(value, self.dtype)
        where = self.xp.from_host(view.places()) if places is None else places.values()
        values = value.broadcast_to(where.shape).values()
        self._scatter(where, self.xp.library.reshape(values, (-1,)), change)

    def _scatter(self, places: Any, values: Any, change: str | None = None) -> None:
        """Writes values to places, the last one where several go to one; with `change` what it makes of old and new."""
        library, xp = self.xp.library, self.xp
        places = library.reshape(places, (-1,))
        n = places.shape[0]
        if not n:
            return
        order = library.argsort(places, stable=True)
        places, values = library.take(places, order), library.take(values, order)
        step = 1
        while change and step < n:  # W. D. Hillis and G. L. Steele (1986): the last of equals gets the sum of them all
            same = places[step:] == places[:-step]
            both = xp.native_call(change, self.dtype, values[:-step], values[step:])
            values = library.concat([values[:step], library.where(same, both, values[step:])])
            step *= 2
        cells = xp.native_arange(self.memory.length(self.dtype))
        none = xp.native(-1, INT64)
        last = library.searchsorted(places, cells, side="right") + none
        hit = library.take(places, library.maximum(last, xp.native(0, INT64))) == cells
        self._replace(library.where(hit, last, none), values, change)

    def _select(self, key: Any) -> tuple[Array, Array | None]:
        """The view that a key selects; where there is none because of arrays in it, the places of its elements.

        Args:
            key: As NumPy takes it: numbers, slices, None, Ellipsis, arrays of integers and masks.
        """
        found = self.select(key, self.xp.asarray, self.xp.nonzero)
        view = self.window(found.shape, found.strides, found.offset)
        if found.front is None:
            return view, None
        steps = [self._checked(index.astype(INT64), d) * self.strides[d] for index, d in found.steps]
        whole = sum(steps[1:], steps[0])
        chosen, front = whole.shape, found.front
        whole = whole.reshape(*chosen, *[1] * (view.ndim - front))
        rest = self.xp.wrap(self.xp.from_host(view.places()))
        return view, whole + rest.reshape(*view.shape[:front], *[1] * len(chosen), *view.shape[front:])

    def _checked(self, index: Array, d: int) -> Array:
        """An array of indices, counted from the front."""
        n = self.shape[d]
        if ((index < -n) | (index >= n)).any():
            raise IndexError(f"index {index} is out of bounds for dimension {d} with size {n}")
        return self.xp.where(index < 0, index + n, index)

    # -- operators

    __add__, __radd__ = _operators("add")
    __sub__, __rsub__ = _operators("subtract")
    __mul__, __rmul__ = _operators("multiply")
    __truediv__, __rtruediv__ = _operators("divide")
    __floordiv__, __rfloordiv__ = _operators("floor_divide")
    __mod__, __rmod__ = _operators("remainder")
    __pow__, __rpow__ = _operators("power")
    __and__, __rand__ = _operators("bitwise_and")
    __or__, __ror__ = _operators("bitwise_or")
    __xor__, __rxor__ = _operators("bitwise_xor")
    __lshift__, __rlshift__ = _operators("left_shift")
    __rshift__, __rrshift__ = _operators("right_shift")
    __lt__, __gt__ = _operators("less")
    __le__, __ge__ = _operators("less_equal")

    def __eq__(self, other: Any) -> Any:
        return self.xp.apply("equal", self, other)

    def __ne__(self, other: Any) -> Any:
        return self.xp.apply("not_equal", self, other)

    def __neg__(self) -> Array:
        return self.xp.apply("negative", self)

    def __pos__(self) -> Array:
        return self.xp.apply("positive", self)

    def __abs__(self) -> Array:
        return self.xp.apply("absolute", self)

    def __invert__(self) -> Array:
        return self.xp.apply("invert", self)

    # -- reductions, as methods

    def sum(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Array:
        return self.xp.sum(self, axis, dtype, keepdims)

    def any(self, axis: Any = None, keepdims: bool = False) -> Array:
        return self.xp.any(self, axis, keepdims)

    def all(self, axis: Any = None, keepdims: bool = False) -> Array:
        return self.xp.all(self, axis, keepdims)

    def max(self, axis: Any = None, keepdims: bool = False, initial: Any = None) -> Array:
        return self.xp.max(self, axis, keepdims, initial)

    def min(self, axis: Any = None, keepdims: bool = False, initial: Any = None) -> Array:
        return self.xp.min(self, axis, keepdims, initial)
