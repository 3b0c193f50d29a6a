"""Batches from samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import rushlight as rl
from rushlight import Tensor


def _is_text(array: Any) -> bool:
    return array.dtype.kind in "SUO"


def default_convert(data: Any) -> Any:
    """Arrays and NumPy numbers in nested dicts, lists and tuples as tensors; other values as they are."""
    if isinstance(data, Tensor):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        return data if _is_text(data) else rl.as_tensor(data)
    if isinstance(data, Mapping):
        return _like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple):
        values = [default_convert(value) for value in data]
        return type(data)(*values) if hasattr(data, "_fields") else values
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _like(data, [default_convert(value) for value in data])
    return data


def default_collate(batch: Any) -> Any:
    """One batch of a list of samples: tensors are stacked, numbers become a tensor, and containers are entered.

    Args:
        batch: Samples of one form: tensors, arrays, numbers, strings, or dicts, tuples and lists of such.

    Returns:
        The same form with a new first dimension; a tuple becomes a list.

    Raises:
        TypeError: A sample is of another type.
        RuntimeError: Lists of different lengths, or tensors of different shapes.

    Example:
        >>> from rushlight.utils.data import default_collate
        >>> default_collate([(1, "a"), (2, "b")])
        [tensor([1, 2]), ('a', 'b')]
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return rl.stack(batch, 0)
    if isinstance(first, np.ndarray):
        if _is_text(first):
            raise TypeError(_unknown(first.dtype))
        return default_collate([rl.as_tensor(array) for array in batch])
    if isinstance(first, np.generic) and not isinstance(first, (str, bytes)):
        return rl.as_tensor(np.array(batch))
    if isinstance(first, float):
        return rl.tensor(batch, dtype=rl.float64)
    if isinstance(first, int):
        return rl.tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return _like(first, {key: default_collate([sample[key] for sample in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(samples) for samples in zip(*batch, strict=True)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        collated = [default_collate(samples) for samples in zip(*batch, strict=True)]
        return collated if isinstance(first, tuple) else _like(first, collated)
    raise TypeError(_unknown(type(first)))


def _unknown(what: Any) -> str:
    return f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {what}"


def pinned(data: Any) -> Any:
    """Tensors, and objects with a method `pin_memory`, in nested dicts, lists and tuples in page-locked memory."""
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, Mapping):
        return _like(data, {key: pinned(value) for key, value in data.items()})
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        values = [pinned(value) for value in data]
        return type(data)(*values) if hasattr(data, "_fields") else _like(data, values)
    return data


def _like(container: Any, values: Any) -> Any:
    """The values in a container of the same type, or as they are where the type takes other arguments."""
    try:
        return type(container)(values)
    except TypeError:
        return values
