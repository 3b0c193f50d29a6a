"""What a plugin is written with: `Backend`, `Op`, `Kernel`, `Layer`, `Format`. Its hooks: `rushlight.plugin.specs`.

Example:
    >>> from rushlight.plugin import plugins
    >>> [plugin.state for plugin in plugins() if plugin.name == "core"]
    ['loaded']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._op import COMPOSITE, FACTORY, FUNCTION, REDUCTION, VIEW, Op, Sample, pointwise
from .._public import claim
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

claim(globals())

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
    "claim",
    "load",
    "operators",
    "plugins",
    "pointwise",
    "require",
]


def plugins() -> list[Plugin]:
    """Every installed plugin with its state, the core first. Loads none."""
    from .. import _registry

    return list(_registry.manager().plugins.values())


def operators() -> dict[str, Op]:
    """The operators of the core and of the plugins that are loaded, by name. Loads none."""
    from .. import _registry

    return {name: entry.item for name, entry in _registry.ops.items()}


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


def require(wheel: str, what: str) -> None:
    """Loads the plugin of one of rushlight's own wheels because `what` was asked for.

    Raises:
        AttributeError: The wheel is absent, left out or broken; the message says which and what to do.
    """
    from .. import _registry

    _registry.require(wheel, what)


def backend(device_type: str) -> Backend:
    """The opened backend of a device type.

    Raises:
        RuntimeError: The device type is unknown or not available; the message says which are.
    """
    from .. import _registry

    return _registry.open_backend(device_type)
