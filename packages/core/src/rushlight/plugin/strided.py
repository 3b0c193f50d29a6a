"""NumPy's views for an array class of a backend: shapes, transposes, broadcasting and keys over any memory."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of a contiguous array, in elements.

    Example:
        >>> rushlight.plugin.strided.row_major((2, 3, 4))
        (12, 4, 1)
    """
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


class Selection(NamedTuple):
    """What a key selects: a window, and arrays that step through it where there are some in the key.

    Attributes:
        shape: Sizes of the window, without the dimensions that arrays index.
        strides: Elements from one to the next in each.
        offset: Elements from the array's first to the window's first.
        steps: The arrays of indices, each with the dimension that it indexes.
        front: Where the arrays' common shape stands among the dimensions of the window; None without arrays.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    steps: list[tuple[Any, int]]
    front: int | None


class Strided:
    """A window on memory. An array class inherits NumPy's methods of shapes, and gives `window`, `copy` and `item`.

    Attributes:
        dtype: NumPy's dtype.
        shape: Sizes.
        strides: Elements from one to the next in each dimension.
        offset: Elements before the first one.

    Example:
        >>> import numpy as np
        >>> from rushlight.plugin.strided import Strided, row_major
        >>> class Array(Strided):
        ...     def __init__(self, memory, shape, strides=None, offset=0):
        ...         self.memory, self.shape, self.offset = memory, tuple(shape), offset
        ...         self.strides = row_major(shape) if strides is None else tuple(strides)
        ...     def window(self, shape, strides, offset=0):
        ...         return Array(self.memory, shape, strides, self.offset + offset)
        >>> Array(np.arange(6), (2, 3)).T.strides
        (1, 3)
    """

    __slots__ = ()

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    def window(self, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> Self:
        """A view of the same memory; `offset` counts from the first element. To be overridden."""
        raise NotImplementedError

    def copy(self) -> Self:
        """The elements in contiguous memory of their own. To be overridden."""
        raise NotImplementedError

    def item(self) -> Any:
        """The only element, as a Python number. To be overridden."""
        raise NotImplementedError

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def T(self) -> Self:
        return self.transpose()

    def is_contiguous(self) -> bool:
        """Whether the elements follow each other in memory."""
        expected = row_major(self.shape)
        return all(n == 1 or s == e for n, s, e in zip(self.shape, self.strides, expected, strict=True))

    def contiguous(self) -> Self:
        """This array, or a copy where the elements are apart."""
        return self if self.is_contiguous() else self.copy()

    def reshape(self, *shape: Any) -> Self:
        shape = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
        known = math.prod(n for n in shape if n >= 0)
        shape = tuple(n if n >= 0 else self.size // max(known, 1) for n in shape)
        if math.prod(shape) != self.size:
            raise ValueError(f"cannot reshape array of size {self.size} into shape {shape}")
        return self.contiguous().window(shape, row_major(shape))

    def transpose(self, *axes: int) -> Self:
        order = axes or tuple(reversed(range(self.ndim)))
        return self.window([self.shape[d] for d in order], [self.strides[d] for d in order])

    def broadcast_to(self, shape: Sequence[int]) -> Self:
        shape, lead = tuple(shape), len(shape) - self.ndim
        if lead < 0 or any(n not in (1, m) for n, m in zip(self.shape, shape[max(lead, 0) :], strict=True)):
            raise ValueError(f"cannot broadcast an array of shape {self.shape} to {shape}")
        strides = [0 if n == 1 else s for n, s in zip(self.shape, self.strides, strict=True)]
        return self.window(shape, [0] * lead + strides)

    def select(
        self, key: Any, asarray: Callable[[list[Any]], Any], nonzero: Callable[[Any], Sequence[Any]]
    ) -> Selection:
        """What a key selects. Arrays of indices are not looked at: whoever uses them checks their values.

        Args:
            key: As NumPy takes it: numbers, slices, None, Ellipsis, lists, arrays of integers and masks.
            asarray: Makes an array of a list.
            nonzero: The coordinates of what is true in a mask, an array for each of its dimensions.

        Raises:
            IndexError: A number is out of bounds, or there are more of them than dimensions.
        """
        keys = self._expand(key, asarray, nonzero)
        shape: list[int] = []
        strides: list[int] = []
        steps: list[tuple[Any, int]] = []
        offset, d, front, apart = 0, 0, None, False
        for k, each in enumerate(keys):
            if each is None or isinstance(each, bool):
                shape.append(1 if each is None else int(each))
                strides.append(0)
                continue
            n, s = self.shape[d], self.strides[d]
            if isinstance(each, slice):
                start, stop, step = each.indices(n)
                shape.append(len(range(start, stop, step)))
                strides.append(s * step)
                offset += s * start if shape[-1] else 0
            elif isinstance(each, Strided):
                apart |= front is not None and not isinstance(keys[k - 1], Strided)
                front = len(shape) if front is None else front
                steps.append((each, d))
            else:
                i = operator.index(each)
                if not -n <= i < n:
                    raise IndexError(f"index {i} is out of bounds for dimension {d} with size {n}")
                offset += s * (i % n)
            d += 1
        return Selection(tuple(shape), tuple(strides), offset, steps, 0 if apart else front)

    def _expand(
        self, key: Any, asarray: Callable[[list[Any]], Any], nonzero: Callable[[Any], Sequence[Any]]
    ) -> list[Any]:
        """The parts of a key, one for each dimension beside those that add one: None, and bool for 0-d masks."""
        keys: list[Any] = []
        for each in key if isinstance(key, tuple) else (key,):
            each = asarray(each) if isinstance(each, list) else each
            if isinstance(each, Strided) and each.dtype.kind == "b":
                keys += nonzero(each) if each.ndim else [bool(each)]
            else:
                keys.append(each)
        if not any(each is Ellipsis for each in keys):
            keys.append(Ellipsis)
        at = next(i for i, each in enumerate(keys) if each is Ellipsis)
        named = sum(not (each is None or each is Ellipsis or isinstance(each, bool)) for each in keys)
        if named > self.ndim:
            raise IndexError(f"too many indices: the array has {self.ndim} dimensions, but {named} were indexed")
        keys[at : at + 1] = [slice(None)] * (self.ndim - named)
        return keys

    # -- as numbers and sequences

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        return operator.index(self.item())

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))
