"""Every record of this wheel; the native loops are in csrc/kernels."""

from __future__ import annotations

from rushlight.plugin import Op

from . import (
    _C as _C,  # registers the native loops
    _ops_bessel,
    _ops_elementary,
    _ops_error,
    _ops_gamma,
    _ops_polynomial,
    _ops_scipy,
)


def records() -> list[Op]:
    """Every record of this wheel."""
    families = (_ops_bessel, _ops_elementary, _ops_error, _ops_gamma, _ops_polynomial, _ops_scipy)
    return [op for family in families for op in family.OPS]
