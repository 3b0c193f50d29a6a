"""Where public names say that they live."""

from __future__ import annotations

import inspect
from typing import Any


def claim(names: dict[str, Any]) -> None:
    """Makes what a public module takes from private ones its own: `__module__` becomes the public path.

    Args:
        names: `globals()` of the public module, after its imports.
    """
    for name, value in names.items():
        if name.startswith("_") or not (inspect.isclass(value) or inspect.isroutine(value)):
            continue
        origin = value.__module__ or ""
        if origin.startswith("rushlight.") and any(part.startswith("_") for part in origin.split(".")):
            value.__module__ = names["__name__"]
