"""Shapes, joins and selections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as torch

from ._dtypes import common


def broadcast_arrays(*arrays: Any) -> list[Any]:
    """Views of the arrays in the shape that they share."""
    return list(torch.broadcast_tensors(*arrays))


def broadcast_to(x: Any, /, shape: tuple[int, ...]) -> Any:
    """A view of another shape whose added or enlarged dimensions repeat the elements."""
    return torch.broadcast_to(x, shape)


def concat(arrays: Sequence[Any], /, *, axis: int | None = 0) -> Any:
    """Arrays behind each other along an axis; flattened first where it is None."""
    parts = common(*arrays)
    return torch.cat([part.flatten() for part in parts]) if axis is None else torch.cat(parts, axis)


def stack(arrays: Sequence[Any], /, *, axis: int = 0) -> Any:
    """Arrays of one shape along a new axis."""
    return torch.stack(common(*arrays), axis)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The slices along an axis, without it."""
    return tuple(torch.unbind(x, axis))


def expand_dims(x: Any, /, axis: int = 0) -> Any:
    """A view with a dimension of size 1 at `axis`.

    Raises:
        IndexError: `axis` is none of the result's.
    """
    return torch.unsqueeze(x, axis)


def squeeze(x: Any, /, axis: int | tuple[int, ...]) -> Any:
    """A view without dimensions of size 1.

    Raises:
        ValueError: One of them is of another size.
    """
    axes = (axis,) if isinstance(axis, int) else axis
    for each in axes:
        if x.size(each) != 1:
            raise ValueError(
                f"squeeze: only dimensions of size 1 can be left out, got axis={each} of shape {tuple(x.shape)}."
            )
    return torch.squeeze(x, tuple(axes)) if axes else x


def flip(x: Any, /, *, axis: int | tuple[int, ...] | None = None) -> Any:
    """The elements in reverse order along axes, by default along all."""
    return torch.flip(x, tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis)


def moveaxis(x: Any, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Any:
    """A view with dimensions moved to other places, the rest in order."""
    return torch.movedim(x, source, destination)


def permute_dims(x: Any, /, axes: tuple[int, ...]) -> Any:
    """A view with the dimensions in another order."""
    return torch.permute(x, axes)


def matrix_transpose(x: Any, /) -> Any:
    """A view of a stack of matrices with rows and columns swapped.

    Raises:
        ValueError: The array has less than two dimensions.
    """
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: matrices have two dimensions, got shape {tuple(x.shape)}.")
    return x.transpose(-2, -1)


def reshape(x: Any, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Any:
    """The elements in another shape.

    Raises:
        ValueError: `copy` is False and no view has that shape.
    """
    if copy:
        return x.clone().reshape(shape)
    if copy is None:
        return torch.reshape(x, shape)
    try:
        return x.view(shape)
    except RuntimeError as error:
        raise ValueError(f"reshape: {error} Pass copy=None to copy where it is needed.") from error


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Any:
    """Every element (or slice along an axis) as often as `repeats` says, one number or one for each."""
    if isinstance(repeats, torch.Tensor):
        repeats = repeats.to(torch.int64) if repeats.ndim else int(repeats)
    elif not isinstance(repeats, int):
        repeats = torch.tensor(repeats, device=x.device)
    return torch.repeat_interleave(x, repeats, axis)


def tile(x: Any, repetitions: tuple[int, ...], /) -> Any:
    """The array repeated as a whole along each dimension."""
    return torch.tile(x, repetitions)


def roll(x: Any, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None) -> Any:
    """The elements shifted along axes, the last ones coming first; along the flat order without `axis`."""
    if isinstance(shift, int) and isinstance(axis, tuple):
        shift = (shift,) * len(axis)
    return torch.roll(x, shift) if axis is None else torch.roll(x, shift, axis)


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Any:
    """The slices at 1-d indices along an axis, which may be left out of a 1-d array.

    Raises:
        ValueError: `axis` is left out of an array that is not 1-d.
    """
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: axis is needed where the array is not 1-d, got shape {tuple(x.shape)}.")
        axis = 0
    return torch.index_select(x, axis, _from_front(indices, x.size(axis)))


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    """The elements at indices along an axis; the other dimensions broadcast."""
    return torch.take_along_dim(x, _from_front(indices, x.size(axis)), axis)


def _from_front(indices: Any, size: int) -> Any:
    """Indices in int64, negative ones counted from the end."""
    indices = indices.to(torch.int64)
    return torch.where(indices < 0, indices + size, indices)


def tril(x: Any, /, *, k: int = 0) -> Any:
    """The matrices with zeros above diagonal `k`."""
    return torch.tril(x, k)


def triu(x: Any, /, *, k: int = 0) -> Any:
    """The matrices with zeros below diagonal `k`."""
    return torch.triu(x, k)
