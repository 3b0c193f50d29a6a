"""The operators of this wheel: records in the modules ``_ops_<family>``, and their callables as attributes here."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any

from rushlight._op import Op, operators


def records() -> list[Op]:
    """Every record of the wheel."""
    families = (m.name for m in pkgutil.iter_modules([__file__.rpartition("/")[0]]) if m.name.startswith("_ops_"))
    found: list[Op] = []
    for family in families:
        values = vars(import_module(f"rushlight.nn.{family}")).values()
        found += [value for value in values if isinstance(value, Op) and value not in found]
    return found


def __getattr__(name: str) -> Any:
    for key in (f"nn::{name}", name):
        if key in operators:
            globals()[name] = operators[key]  # found at once from now on
            return operators[key]
    raise AttributeError(f"rushlight.nn has no operator {name!r}")
