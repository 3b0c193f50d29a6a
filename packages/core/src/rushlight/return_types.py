"""The types of results with names, as `rushlight.return_types.max` with `values` and `indices`."""

from __future__ import annotations

from typing import Any

from . import _C, _areas, _registry


def _types() -> dict[str, Any]:
    found = {}
    for op in _registry.ops:
        if cls := _C.named_result(op):
            found[op.partition(".")[0].replace("::", "_")] = cls
    return found


def __getattr__(name: str) -> Any:
    area = name.partition("_")[0]
    if area in _areas.WHEELS:
        _registry.require(area, f"rushlight.return_types.{name}")
    try:
        return _types()[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted(_types())
