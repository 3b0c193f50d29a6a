"""What this wheel brings to rushlight: the layer that records operators for backward."""

from __future__ import annotations

from rushlight.plugin.interface import Layer

from . import _C

__all__ = ["rushlight_register_layers"]


def rushlight_register_layers() -> list[Layer]:
    return [Layer("autograd", 200, _C.install)]
