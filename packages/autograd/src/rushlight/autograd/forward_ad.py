"""Forward mode: derivatives along a direction, computed together with the values.

Inside a level a tensor may be dual: it carries a tangent, the direction. What operators make of dual tensors is dual
again, and its tangent is the derivative along the direction.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from rushlight import Tensor
from rushlight.plugin import require

from . import _C

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent, or None where it has none."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Opens a level, see `dual_level`, and returns its number."""
    require("autograd", __name__)  # the layer that sees dual tensors
    return _C.open_level()


def exit_dual_level(*, level: int | None = None) -> None:
    """Closes the level: the tangents of all tensors are gone.

    Args:
        level: The number that `enter_dual_level` returned.
    """
    if not _C.level_is_open():
        raise RuntimeError("exit_dual_level: no level is open. Call enter_dual_level() first.")
    if level not in (None, 0):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    _C.close_level()


@contextmanager
def dual_level() -> Iterator[int]:
    """Context manager inside which tensors may be dual.

    Example:
        >>> import rushlight.autograd.forward_ad as fwAD
        >>> with fwAD.dual_level():
        ...     x = fwAD.make_dual(rushlight.tensor([1.0, 2.0]), rushlight.tensor([1.0, 0.0]))
        ...     fwAD.unpack_dual(x * x).tangent
        tensor([2., 0.])
    """
    level = enter_dual_level()
    try:
        yield level
    finally:
        exit_dual_level(level=level)


def _check_level(level: int | None) -> None:
    if not _C.level_is_open():
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    if level not in (None, 0):
        raise RuntimeError(f"make_dual: there is only level 0, got level={level}.")


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A tensor over the memory of `tensor` that carries a tangent.

    Args:
        tensor: Any shape, of a floating point or complex dtype.
        tangent: Of the same shape and dtype.
        level: The number of the level; only 0 exists.

    Raises:
        RuntimeError: No level is open, the shapes differ, or `tensor` is dual already.
        ValueError: A dtype is neither floating point nor complex.
    """
    _check_level(level)
    for name, one in (("primal", tensor), ("tangent", tangent)):
        if not (one.is_floating_point() or one.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {one.dtype}")
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )
    if _C.unpack_dual(tensor)[1] is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not "
            "supported. Call unpack_dual() first."
        )
    return _C.make_dual(tensor, tangent if tangent.dtype == tensor.dtype else tangent.to(tensor.dtype))


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The tensor without its tangent, and the tangent.

    Args:
        tensor: Dual or not.
        level: The number of the level; only 0 exists.

    Returns:
        `primal` and `tangent`; the latter is None where there is none.
    """
    if level not in (None, 0):
        raise RuntimeError(f"unpack_dual: there is only level 0, got level={level}.")
    return UnpackedDualTensor(*_C.unpack_dual(tensor))
