"""What this wheel brings to rushlight: the layers that record operators for backward and cast their arguments."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.plugin import Op
from rushlight.plugin.interface import Layer

from . import _C

__all__ = ["rushlight_check_op", "rushlight_register_layers"]


def rushlight_check_op(op: Op, siblings: Sequence[Op]) -> None:
    from ._rules import check_rules

    check_rules(op, siblings)


def rushlight_register_layers() -> list[Layer]:
    return [Layer("autocast", 120, _C.install_autocast), Layer("autograd", 200, _C.install)]
