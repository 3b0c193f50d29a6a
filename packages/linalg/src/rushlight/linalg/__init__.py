"""Linear algebra: inverses, determinants, solvers and factorisations of batches of matrices."""

from rushlight import _registry

_registry.require("linalg", "rushlight.linalg")

from . import _ops  # noqa: E402
from ._errors import LinAlgError as LinAlgError  # noqa: E402

cholesky = _ops.cholesky.operator
det = _ops.det.operator
inv = _ops.inv.operator
solve = _ops.solve.operator
