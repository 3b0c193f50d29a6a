"""DLPack by its capsules; `Tensor.__dlpack__` and `rushlight.from_dlpack` are the protocol that libraries use today."""

from typing import Any

from .. import Tensor, from_dlpack

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule over the memory of a tensor, to be consumed once.

    Args:
        tensor: Tensor of any shape that does not require a gradient.

    Returns:
        A capsule named "dltensor".

    Raises:
        BufferError: The tensor requires a gradient, has no memory, or its memory is read-only.

    Example:
        >>> capsule = rushlight.utils.dlpack.to_dlpack(rushlight.ones(2))
        >>> rushlight.from_dlpack(capsule)
        tensor([1., 1.])
    """
    return tensor.__dlpack__()
