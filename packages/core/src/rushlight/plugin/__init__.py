"""What a plugin is written with: `Backend`, `Op`, `Kernel`, `Layer`, `Format`. Its hooks: `rushlight.plugin.specs`.

Example:
    >>> from rushlight.plugin import plugins
    >>> [plugin.state for plugin in plugins() if plugin.name == "core"]
    ['loaded']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._op import COMPOSITE, FACTORY, FUNCTION, REDUCTION, VIEW, Op, Sample, pointwise
from .interface import (
    PLUGIN_API,
    Available,
    Backend,
    DeviceProperties,
    Format,
    Kernel,
    Layer,
    PluginError,
    PluginWarning,
    Unavailable,
)

if TYPE_CHECKING:
    from .manager import Plugin

__all__ = [
    "COMPOSITE",
    "FACTORY",
    "FUNCTION",
    "PLUGIN_API",
    "REDUCTION",
    "VIEW",
    "Available",
    "Backend",
    "DeviceProperties",
    "Format",
    "Kernel",
    "Layer",
    "Op",
    "PluginError",
    "PluginWarning",
    "Sample",
    "Unavailable",
    "backend",
    "load",
    "plugins",
    "pointwise",
]


def plugins() -> list[Plugin]:
    """Every installed plugin with its state, the core first. Loads none."""
    from .. import _registry

    return list(_registry.manager().plugins.values())


def load(name: str) -> Plugin:
    """Loads a plugin that nothing has asked for, as one that replaces kernels of the CPU.

    Args:
        name: Name of its entry point.

    Returns:
        The plugin; its `state` is "loaded", or `error` says why not.

    Raises:
        PluginError: No plugin of that name is installed.
    """
    from .. import _registry

    manager = _registry.manager()
    if name not in manager.plugins:
        raise PluginError(
            f"load: no plugin of this name is installed, got name={name!r}. Installed are {', '.join(manager.plugins)}."
        )
    return manager.load(name)


def backend(device_type: str) -> Backend:
    """The opened backend of a device type.

    Raises:
        RuntimeError: The device type is unknown or not available; the message says which are.
    """
    from .. import _registry

    return _registry.open_backend(device_type)
