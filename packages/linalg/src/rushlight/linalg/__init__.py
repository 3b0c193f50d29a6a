"""Linear algebra: inverses, determinants, solvers and factorisations of batches of matrices."""

from rushlight import _registry as _registry

from ._errors import LinAlgError as LinAlgError

# The functions are the operators of `_ops`, which appear here when the plugin is committed.
_registry.require("linalg", "rushlight.linalg")
