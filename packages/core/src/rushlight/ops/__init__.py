"""The op library of the core, one record an op, one file a family."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .._op import Op

FAMILIES = ("_copy", "_factory", "_pointwise")


def records() -> list[Op]:
    """Every record of the core, in the order of the files."""
    from .._op import Op

    found: list[Op] = []
    for family in FAMILIES:
        module = import_module(f"{__name__}.{family}")
        found += [value for value in vars(module).values() if isinstance(value, Op) and value not in found]
    return found
