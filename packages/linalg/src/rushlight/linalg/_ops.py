"""Every record of this wheel."""

from __future__ import annotations

from rushlight.plugin import Op

from . import _C, _legacy, _ops_factor, _ops_norm, _ops_orthogonal, _ops_product, _ops_solve, _ops_spectral
from ._errors import LinAlgError

_C.set_error(LinAlgError)

_MODULES = (_ops_factor, _ops_norm, _ops_orthogonal, _ops_product, _ops_solve, _ops_spectral, _legacy)


def records() -> list[Op]:
    """The records of all modules, each once."""
    found = {id(value): value for module in _MODULES for value in vars(module).values() if isinstance(value, Op)}
    return list(found.values())
