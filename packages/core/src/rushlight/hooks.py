"""What the core itself brings, by the hooks of any plugin."""

from __future__ import annotations

from ._op import Op
from .plugin.interface import Backend

__all__ = ["rushlight_register_backends", "rushlight_register_ops"]


def rushlight_register_ops() -> list[Op]:
    from . import ops

    return ops.records()


def rushlight_register_backends() -> list[type[Backend]]:
    from .backends.cpu import CPU
    from .backends.cuda import CUDA
    from .backends.meta import Meta

    return [CPU, CUDA, Meta]
