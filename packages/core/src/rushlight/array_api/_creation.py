"""Creation of arrays."""

from __future__ import annotations

from contextlib import suppress
from numbers import Integral
from typing import Any

import numpy as np

import rushlight as torch


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Any:
    """An array of a number, of nested sequences, or over the memory of an array, buffer or DLPack object.

    Args:
        obj: What it is made of. The elements of a buffer have the buffer's own format.
        dtype: Dtype; by default that of the data, and of numbers the default of their kind.
        device: Where it lives.
        copy: True always copies, False never does, None only where it is needed.

    Raises:
        ValueError: `copy` is False and the memory cannot be shared.
    """
    if not isinstance(obj, (torch.Tensor, np.ndarray, np.generic)):
        with suppress(TypeError):  # no buffer
            obj = np.asarray(memoryview(obj))
    return torch.asarray(obj, dtype=dtype, device=device, copy=copy)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Any:
    """Numbers from `start` (0 with one argument) up to but without `stop`, a `step` apart."""
    if stop is None:
        start, stop = 0, start
    if (stop - start) * step <= 0:  # PyTorch refuses bounds that run against the step
        if dtype is None:
            dtype = torch.int64 if isinstance(start + stop + step, Integral) else torch.get_default_dtype()
        return torch.empty(0, dtype=dtype, device=device)
    return torch.arange(start, stop, step, dtype=dtype, device=device)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Any:
    """`num` numbers evenly spaced from `start` to `stop`, which is left out without `endpoint`."""
    if dtype is None and isinstance(start + stop, complex):
        dtype = torch.promote_types(torch.get_default_dtype(), torch.complex64)
    numbers = torch.linspace(start, stop, num if endpoint else num + 1, dtype=dtype, device=device)
    return numbers[:num]


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Any:
    """A matrix with ones on the diagonal `k`, above the main one where positive, and zeros elsewhere."""
    n_cols = n_rows if n_cols is None else n_cols
    matrix = torch.zeros(n_rows, n_cols, dtype=dtype, device=device)
    if -n_rows < k < n_cols:
        matrix.diagonal(k).fill_(1)
    return matrix


Shape = int | tuple[int, ...]


def empty(shape: Shape, *, dtype: Any = None, device: Any = None) -> Any:
    """An array whose elements are whatever the memory holds."""
    return torch.empty(shape, dtype=dtype, device=device)


def zeros(shape: Shape, *, dtype: Any = None, device: Any = None) -> Any:
    """An array of zeros."""
    return torch.zeros(shape, dtype=dtype, device=device)


def ones(shape: Shape, *, dtype: Any = None, device: Any = None) -> Any:
    """An array of ones."""
    return torch.ones(shape, dtype=dtype, device=device)


def full(shape: Shape, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """An array of one value everywhere."""
    return torch.full((shape,) if isinstance(shape, int) else shape, fill_value, dtype=dtype, device=device)


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Any]:
    """Coordinate arrays of 1-d arrays, with the first two dimensions swapped for `indexing="xy"`."""
    return list(torch.meshgrid(*arrays, indexing=indexing)) if arrays else []
