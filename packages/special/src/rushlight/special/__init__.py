"""Special mathematical functions, elementwise."""

from rushlight import _registry as _registry

# The functions are the operators of `_ops`, which appear here when the plugin is committed.
_registry.require("special", "rushlight.special")
