"""Copies of tensors between GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ._device import index_of

if TYPE_CHECKING:
    from .. import Tensor

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]


def _device(index: Any) -> Any:
    from .. import device

    return device("cuda", index_of(index))


def broadcast(tensor: Tensor, devices: Sequence[Any] | None = None, *, out: Sequence[Tensor] | None = None) -> Any:
    """Copies of a tensor on several GPUs; on its own it is the tensor itself.

    Args:
        tensor: Any tensor.
        devices: Where to; exactly one of `devices` and `out` is given.
        out: Tensors of its shape to copy into.
    """
    if (devices is None) == (out is None):
        raise RuntimeError(f"Exactly one of 'devices' and 'out' must be specified, but got {devices=} and {out=}")
    if out is not None:
        return tuple(each.copy_(tensor, non_blocking=True) for each in out)
    return tuple(tensor.to(_device(each), non_blocking=True) for each in devices or ())


def broadcast_coalesced(tensors: Sequence[Tensor], devices: Sequence[Any], buffer_size: int = 10485760) -> Any:
    """A tuple of copies of all tensors for each GPU.

    Args:
        tensors: Any tensors.
        devices: Where to.
        buffer_size: Accepted for PyTorch's sake: every tensor is a copy of its own.
    """
    return tuple(tuple(tensor.to(_device(each), non_blocking=True) for tensor in tensors) for each in devices)


def reduce_add(inputs: Sequence[Tensor], destination: Any = None) -> Tensor:
    """The sum of tensors of several GPUs.

    Args:
        inputs: Tensors of one shape.
        destination: The GPU of the sum; by default the current one.

    Raises:
        ValueError: The shapes differ.
    """
    if any(each.shape != inputs[0].shape for each in inputs):
        shapes = [tuple(each.shape) for each in inputs]
        raise ValueError(f"reduce_add: tensors must be of one shape, got shapes={shapes}.")
    device = _device(destination)
    total = inputs[0].to(device, copy=True)
    for each in inputs[1:]:
        total += each.to(device)
    return total


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Tensor]], destination: Any = None, buffer_size: int = 10485760
) -> Any:
    """`reduce_add` of the first tensors of all GPUs, of the second ones, and so on.

    Args:
        inputs: For each GPU its tensors.
        destination: As in `reduce_add`.
        buffer_size: Accepted for PyTorch's sake: every tensor is summed by itself.
    """
    return tuple(reduce_add(each, destination) for each in zip(*inputs, strict=True))


def scatter(
    tensor: Tensor,
    devices: Sequence[Any] | None = None,
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Sequence[Any] | None = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> Any:
    """Parts of a tensor on several GPUs.

    Args:
        tensor: Any tensor.
        devices: Where to; exactly one of `devices` and `out` is given.
        chunk_sizes: Sizes of the parts in `dim`; by default as equal as can be.
        dim: Dimension that is cut.
        streams: Streams that copy, one for each GPU; None stands for the current one.
        out: Tensors to copy into, whose sizes say how to cut.
    """
    from ._streams import StreamContext

    if (devices is None) == (out is None):
        raise RuntimeError(f"Exactly one of 'devices' and 'out' must be specified, but got {devices=} and {out=}")
    if out is not None:
        parts = tensor.split([each.shape[dim] for each in out], dim)
        return tuple(each.copy_(part, non_blocking=True) for each, part in zip(out, parts, strict=True))
    devices = devices or ()
    parts = tensor.chunk(len(devices), dim) if chunk_sizes is None else tensor.split(list(chunk_sizes), dim)
    found = []
    for each, part, stream in zip(devices, parts, streams or [None] * len(devices), strict=False):
        with StreamContext(stream):
            found.append(part.contiguous().to(_device(each), non_blocking=True))
    return tuple(found)


def gather(tensors: Sequence[Tensor], dim: int = 0, destination: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Tensors of several GPUs as one, joined in a dimension.

    Args:
        tensors: Tensors whose other sizes agree.
        dim: Dimension that grows.
        destination: A GPU, by default the current one, or "cpu".
        out: Tensor to write to instead.
    """
    from .. import cat, device

    if out is not None:
        return out.copy_(cat([each.to(out.device) for each in tensors], dim))
    to = device("cpu") if str(destination) == "cpu" else _device(destination)
    return cat([each.to(to) for each in tensors], dim)
