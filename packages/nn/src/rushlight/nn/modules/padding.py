"""Layers that put elements around their input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import _ntuple

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d",
    "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip

_DOC = """Puts {what} around a {n}d input (N, C, *) or (C, *).

    Args:
        padding: How many elements, or how many before and after each dimension, from the last one on.{more}
    """


class _PadNd(Module):
    _ndim: int
    _mode = "constant"

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._ndim)(padding)

    def forward(self, input: Tensor) -> Tensor:
        """The input with more elements."""
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        """How many elements."""
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """The input with more elements."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        """How many elements, and their value."""
        return f"padding={self.padding}, value={self.value}"


def _layer(name: str, n: int, base: Any, mode: str, what: str) -> Any:
    more = "\n        value: The value." if base is _ConstantPadNd else ""
    doc = _DOC.format(what=what, n=n, more=more)
    return type(name, (base,), {"__doc__": doc, "__module__": __name__, "_ndim": n, "_mode": mode})


def _layers(prefix: str, base: Any, mode: str, what: str) -> list[Any]:
    return [_layer(f"{prefix}{n}d", n, base, mode, what) for n in (1, 2, 3)]


ConstantPad1d, ConstantPad2d, ConstantPad3d = _layers("ConstantPad", _ConstantPadNd, "constant", "one value")
ZeroPad1d, ZeroPad2d, ZeroPad3d = _layers("ZeroPad", _PadNd, "constant", "zeros")
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = _layers("ReflectionPad", _PadNd, "reflect", "the mirrored input")
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = _layers("ReplicationPad", _PadNd, "replicate", "the edges again")
CircularPad1d, CircularPad2d, CircularPad3d = _layers("CircularPad", _PadNd, "circular", "the input's other end")
