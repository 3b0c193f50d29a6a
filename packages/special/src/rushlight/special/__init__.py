"""Special mathematical functions, elementwise."""

from rushlight.plugin import require as _require

# The functions are the operators of `_ops`, which appear here when the plugin is committed.
_require("special", "rushlight.special")
