"""Strided arrays on the memory of a device, as NumPy's are on the host's.

What is computed element by element is put off: it becomes an expression over other arrays, and one kernel when its
values are needed. So whatever an operator's record says of an element is one kernel of its own.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyopencl as cl

from rushlight.plugin.source import Expression, Node, apply, c_type, fold_of, reduce, scatter, store
from rushlight.plugin.strided import Strided, row_major

from ._device import Device, devices

BOOL, INT64, UINT64, FLOAT32, FLOAT64 = map(np.dtype, ("bool", "int64", "uint64", "float32", "float64"))

LARGEST = 32
"""Nodes of an expression, at most; larger ones are computed in parts."""


class Memory:
    """Bytes of a device; they go back to its pool with this object.

    Attributes:
        device: The device.
        buffer: OpenCL's buffer.
        readers: Expressions that read it and may not be computed yet, by identity.
    """

    __slots__ = ("buffer", "device", "nbytes", "readers")

    def __init__(self, device: Device, nbytes: int) -> None:
        self.device = device
        self.nbytes = nbytes
        self.buffer = device.allocate(nbytes)
        self.readers: weakref.WeakValueDictionary[int, Array] = weakref.WeakValueDictionary()


class Array(Strided, Expression):
    """A window on memory, or an expression that has none yet.

    Attributes:
        dtype: NumPy's dtype.
        shape: Sizes.
        strides: Elements from one to the next in each dimension, not negative.
        offset: Elements before the first one.
        memory: What it is a window on; None for an expression.
        node: The expression; None where it is computed.
    """

    __slots__ = ("depth", "device", "dtype", "memory", "node", "offset", "shape", "strides")

    def __init__(
        self,
        memory: Memory | None,
        device: Device,
        dtype: np.dtype,
        shape: tuple[int, ...],
        strides: Any,
        offset: int = 0,
    ) -> None:
        self.memory = memory
        self.device = device
        self.dtype = dtype
        self.shape = shape
        self.strides = strides
        self.offset = offset
        self.node: Node | None = None
        self.depth = 0

    @staticmethod
    def empty(shape: Sequence[int], dtype: Any, device: Device | None = None) -> Array:
        """A contiguous array, contents arbitrary."""
        device, dtype, shape = device or devices()[0], np.dtype(dtype), tuple(shape)
        c_type(dtype)
        return Array(Memory(device, math.prod(shape) * dtype.itemsize), device, dtype, shape, row_major(shape))

    @staticmethod
    def put_off(shape: tuple[int, ...], dtype: np.dtype, node: Node, device: Device | None = None) -> Array:
        """An array that `node` will compute; at once where the expression is large."""
        arrays = [each for each in (*node.arguments, node.source) if isinstance(each, Array)]
        result = Array(None, device or (arrays[0].device if arrays else devices()[0]), dtype, shape, row_major(shape))
        result.node = node
        result.depth = 1 + sum(array.depth for array in arrays)
        for array in arrays:
            if array.memory is not None:
                array.memory.readers[id(result)] = result
        return result.compute() if result.depth > LARGEST else result

    def compute(self) -> Array:
        """This array, with its values in memory."""
        if self.node is not None:
            memory = Memory(self.device, math.prod(self.shape) * self.dtype.itemsize)
            target = Array(memory, self.device, self.dtype, self.shape, self.strides)
            store(target, self)
            self.memory, self.node, self.depth = memory, None, 0
        return self

    # -- its shape and memory

    @property
    def real(self) -> Array:
        return self._part(0) if self.dtype.kind == "c" else self

    @property
    def imag(self) -> Array:
        return self._part(1) if self.dtype.kind == "c" else full(self.shape, 0, self.dtype, self.device)

    def _part(self, which: int) -> Array:
        self.compute()
        dtype, strides = np.dtype(f"float{self.dtype.itemsize * 4}"), tuple(2 * s for s in self.strides)
        return Array(self.memory, self.device, dtype, self.shape, strides, 2 * self.offset + which)

    @property
    def buffer(self) -> Any:
        return self.memory.buffer

    def window(self, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> Array:
        """A view of the same memory; `offset` counts from the first element."""
        self.compute()
        return Array(self.memory, self.device, self.dtype, tuple(shape), tuple(strides), self.offset + offset)

    def copy(self) -> Array:
        """The elements in memory of their own."""
        result = Array.empty(self.shape, self.dtype, self.device)
        store(result, self)
        return result

    def contiguous(self) -> Array:
        """This array in memory, or a copy where the elements are apart."""
        return super(Array, self.compute()).contiguous()

    # -- to and from the host

    def get(self) -> np.ndarray:
        """The elements, on the host."""
        source = self.contiguous()
        host = np.empty(self.shape, self.dtype)
        if host.size:
            start = source.offset * self.dtype.itemsize
            cl.enqueue_copy(self.device.queue, host, source.memory.buffer, src_offset=start)
        return host

    def set(self, host: np.ndarray) -> Array:
        """Fills a new contiguous array from the host."""
        if host.size:
            cl.enqueue_copy(self.device.queue, self.memory.buffer, np.ascontiguousarray(host))
        return self

    def item(self) -> Any:
        return self.get().item()

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise TypeError("opencl: this array lives on the device. Copy it to the host first.")

    # -- elements

    def __matmul__(self, other: Array) -> Array:
        from ._matmul import matmul

        return matmul(self, other)

    def __getitem__(self, key: Any) -> Array:
        view, places = self._select(key)
        if places is None:
            return view
        # Computed at once: its memory may be written to next.
        return Array.put_off(
            places.shape, self.dtype, Node("{0}", (places,), (INT64,), INT64, self.compute())
        ).compute()

    def __setitem__(self, key: Any, value: Any) -> None:
        self.compute()
        view, places = self._select(key)
        value = asarray(value, self.dtype, self.device)
        if value.memory is self.memory:
            value = value.copy()
        self.settle()
        shape = view.shape if places is None else places.shape
        while value.ndim > len(shape) and value.shape[0] == 1:
            value = value[0]
        value.broadcast_to(shape)
        if places is None:
            store(view, value)
        else:
            scatter(self, places, value)

    def settle(self) -> None:
        """Computes whatever still has to read this memory, before it is written to."""
        for reader in list(self.memory.readers.values()):
            reader.compute()
        self.memory.readers.clear()

    def change_at(self, key: Any, value: Any, change: str) -> None:
        """Adds or multiplies elements that a key selects, again where it selects one again."""
        if self.dtype.kind == "c" and change == "add":
            value = asarray(value, self.dtype, self.device)
            self.real.change_at(key, value.real, change)
            self.imag.change_at(key, value.imag, change)
            return
        if self.dtype.kind == "c":
            raise NotImplementedError(f'opencl: "{change}.at" not implemented for {self.dtype}.')
        if self.dtype.itemsize < 4:  # there are no atomic operations on less
            wide = self.astype(np.int32 if self.dtype.kind in "iu" else np.int32 if self.dtype == BOOL else FLOAT32)
            wide.compute().change_at(key, value, change)
            self[...] = wide
            return
        _, places = self._select(key, computed=True)
        value = asarray(value, self.dtype, self.device)
        self.settle()
        scatter(self, places, value.compute(), change)

    def _select(self, key: Any, computed: bool = False) -> tuple[Array, Array | None]:
        """The view that a key selects; or this array, and the places in memory where no view has these elements.

        Args:
            key: As NumPy takes it: numbers, slices, None, Ellipsis, arrays of integers and masks.
            computed: Asks for the places in any case.
        """
        found = self.select(key, partial(asarray, device=self.device), nonzero)
        if found.front is None and not computed and all(s >= 0 for s in found.strides):
            return self.window(found.shape, found.strides, found.offset), None
        self.compute()
        chosen = np.broadcast_shapes(*(index.shape for index, _ in found.steps))
        front = found.front or 0
        rest = len(found.shape) - front
        places: Any = self.offset + found.offset
        for index, d in found.steps:
            index = index.reshape(*index.shape, *[1] * rest) if rest else index
            node = Node("($place({0}, {1}, FAULT) * {2})", (index, self.shape[d], self.strides[d]), (INT64,) * 3, INT64)
            places = apply("add", Array.put_off(index.shape, INT64, node), places)
        for k, (n, s) in enumerate(zip(found.shape, found.strides, strict=True)):
            behind = len(found.shape) - k - 1 + (len(chosen) if k < front else 0)
            if n > 1:
                places = apply("add", apply("multiply", arange(n, self.device).reshape(n, *[1] * behind), s), places)
        places = places if isinstance(places, Array) else full((), places, INT64, self.device)
        return self, places.broadcast_to((*found.shape[:front], *chosen, *found.shape[front:]))

    # -- reductions, as methods

    def sum(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Array:
        return fold("add", self, axis, keepdims, dtype_of_sums(self.dtype, dtype))

    def any(self, axis: Any = None, keepdims: bool = False) -> Array:
        return fold("logical_or", self, axis, keepdims, BOOL)

    def all(self, axis: Any = None, keepdims: bool = False) -> Array:
        return fold("logical_and", self, axis, keepdims, BOOL)

    def max(self, axis: Any = None, keepdims: bool = False, initial: Any = None) -> Array:
        return fold("maximum", self, axis, keepdims, initial=initial)

    def min(self, axis: Any = None, keepdims: bool = False, initial: Any = None) -> Array:
        return fold("minimum", self, axis, keepdims, initial=initial)


def asarray(value: Any, dtype: Any = None, device: Device | None = None) -> Array:
    """An array of the device from one, or from a number or nested lists."""
    if isinstance(value, Array):
        return value if dtype is None or value.dtype == np.dtype(dtype) else value.astype(dtype)
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeError("opencl: got an array of the host. Copy it to the device first.")
    if isinstance(value, (list, tuple)):
        host = np.asarray(value, dtype)
        return Array.empty(host.shape, host.dtype, device).set(host)
    return full((), value, np.asarray(value).dtype if dtype is None else dtype, device)


def full(shape: Sequence[int], value: Any, dtype: Any, device: Device | None = None) -> Array:
    """An array of one number, as an expression."""
    dtype = np.dtype(dtype)
    return Array.put_off(tuple(shape), dtype, Node("{0}", (value,), (dtype,), dtype), device)


def arange(n: int, device: Device | None = None) -> Array:
    """The integers below `n`, int64."""
    result = Array.put_off((n,), INT64, Node("(i64)i", (), (), INT64), device)
    return result.compute()  # the expression means the element's number in the kernel that computes it


# -- reductions


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """The dimensions that an axis argument names, from the front, sorted."""
    given = range(ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    bound = max(ndim, 1)  # a 0-d array has a dimension 0 to reduce
    if any(not -bound <= d < bound for d in given):
        raise np.exceptions.AxisError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    return tuple(sorted({d % bound for d in given})) if ndim else ()


def fold(
    name: str, x: Array, axis: Any = None, keepdims: bool = False, dtype: Any = None, initial: Any = None
) -> Array:
    """Combines the elements over dimensions by a ufunc, and `initial` with them: sums, products, extremes, truth."""
    dtype = x.dtype if dtype is None else np.dtype(dtype)
    axes = axes_of(axis, x.ndim)
    if name in ("maximum", "minimum") and initial is None and any(x.shape[d] == 0 for d in axes):
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    result = Array.empty([n for d, n in enumerate(x.shape) if d not in axes], dtype, x.device)
    how = fold_of(name, dtype)
    reduce(result, x, axes, how if initial is None else how._replace(start=initial))
    return result.reshape([1 if d in axes else n for d, n in enumerate(x.shape)]) if keepdims else result


def dtype_of_sums(dtype: np.dtype, asked: Any) -> np.dtype:
    """The dtype of the sum or product of elements of a dtype."""
    if asked is not None:
        return np.dtype(asked)
    return INT64 if dtype.kind in "bi" else UINT64 if dtype.kind == "u" else dtype


def nonzero(x: Array) -> list[Array]:
    """Coordinates of the elements that are not zero, an array for each dimension."""
    from ._order import positions

    found = positions(x)
    steps = row_major(x.shape)
    return [
        apply("remainder", apply("floor_divide", found, s), n).compute() for s, n in zip(steps, x.shape, strict=True)
    ]
