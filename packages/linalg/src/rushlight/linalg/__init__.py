"""Linear algebra: decompositions, inverses, solvers, norms and products of batches of matrices."""

from rushlight import matmul as matmul, outer as outer, tensordot as tensordot
from rushlight.plugin import claim as _claim, require as _require

from ._errors import LinAlgError as LinAlgError

# The functions are the operators of `_ops`, which appear here when the plugin is committed.
_require("linalg", "rushlight.linalg")

from ._legacy import chain_matmul as chain_matmul

_claim(globals())
