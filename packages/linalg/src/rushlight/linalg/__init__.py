"""Linear algebra: inverses, determinants, solvers and factorisations of batches of matrices."""

from rushlight.plugin import require as _require

from ._errors import LinAlgError as LinAlgError

# The functions are the operators of `_ops`, which appear here when the plugin is committed.
_require("linalg", "rushlight.linalg")
