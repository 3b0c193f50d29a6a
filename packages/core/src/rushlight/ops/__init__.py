"""The op library of the core, one record an op, one file a family."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .._op import operators

if TYPE_CHECKING:
    from .._op import Op

FAMILIES = (
    "_calculus",
    "_convert",
    "_copy",
    "_creation",
    "_distance",
    "_factory",
    "_fft",
    "_histogram",
    "_indexing",
    "_join",
    "_matmul",
    "_matrix",
    "_numeric",
    "_order",
    "_pointwise",
    "_random",
    "_rearrange",
    "_reduction",
    "_softmax",
    "_sparse",
    "_statistics",
    "_view",
    "_windows",
)


def records() -> list[Op]:
    """Every record of the core, in the order of the files."""
    from .._op import Op

    found: list[Op] = []
    for family in FAMILIES:
        module = import_module(f"{__name__}.{family}")
        found += [value for value in vars(module).values() if isinstance(value, Op) and value not in found]
    return found


class Namespace:
    """The operators of one wheel: `rushlight.ops.toy.squareplus` is the operator "toy::squareplus"."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        operator = operators.get(f"{self.__name__}::{name}")
        if operator is None:
            known = ", ".join(
                sorted(key.partition("::")[2] for key in operators if key.startswith(f"{self.__name__}::"))
            )
            raise AttributeError(f"rushlight.ops.{self.__name__} has no operator {name!r}. It has {known}.")
        return operator


def __getattr__(name: str) -> Namespace:
    from .. import _registry

    def is_known() -> bool:
        return any(key.startswith(f"{name}::") for key in operators)

    if name.startswith("__"):
        raise AttributeError(name)
    if not is_known():
        _registry.manager().load_all(ours=True)
    if not is_known():
        raise AttributeError(f"rushlight.ops has no namespace {name!r}: no plugin brings operators of that name")
    return Namespace(name)
