"""What a plugin is written with: `Backend`, `Op`, `Kernel`, `Layer`, `Format`. Its hooks: `rushlight.plugin.specs`.

Example:
    >>> from rushlight.plugin import plugins
    >>> [plugin.state for plugin in plugins() if plugin.name == "core"]
    ['loaded']
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _C
from .._op import COMPOSITE, FACTORY, FUNCTION, REDUCTION, VIEW, Op, Sample, pointwise
from .._public import claim
from .interface import (
    PLUGIN_API,
    PLUGIN_API_MINOR,
    Available,
    Backend,
    Collectives,
    DeviceProperties,
    Format,
    Kernel,
    Layer,
    PluginError,
    PluginWarning,
    Rendezvous,
    Store,
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
    "PLUGIN_API_MINOR",
    "REDUCTION",
    "VIEW",
    "Available",
    "Backend",
    "Collectives",
    "DeviceProperties",
    "Format",
    "Kernel",
    "Layer",
    "Op",
    "PluginError",
    "PluginWarning",
    "Rendezvous",
    "Sample",
    "Store",
    "Unavailable",
    "backend",
    "claim",
    "collectives",
    "from_array",
    "layout_tensor",
    "load",
    "new_layout",
    "operators",
    "plugins",
    "pointwise",
    "rendezvous",
    "require",
    "to_array",
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


def new_layout(name: str) -> _C.layout:
    """A layout of one's own, as `rushlight.sparse_coo` is one; `Op.layout` says what ops do on it.

    Args:
        name: What it prints as.
    """
    return _C.new_layout(name)


def layout_tensor(payload: Any, shape: Sequence[int], dtype: _C.dtype, device: Any = "cpu") -> _C.Tensor:
    """A tensor that keeps its elements in another way than as strided memory.

    Args:
        payload: Any object; its `layout` is the layout of the tensor, `tensor._payload` gives it back. Where it has
            `parts`, a dict of strided tensors by name, the tensor prints with them. Where its class has a method
            `call(op, inplace, *args, **kwargs)`, that takes every call with such a tensor for which the record `op`
            has no kernel of the layout, above autograd; it returns NotImplemented to leave one alone.
        shape: Shape of the tensor.
        dtype: Dtype of the elements.
        device: Where they live.
    """
    return _C.with_payload(payload, shape, dtype, device)


def backend(device_type: str) -> Backend:
    """The opened backend of a device type.

    Raises:
        RuntimeError: The device type is unknown or not available; the message says which are.
    """
    from .. import _registry

    return _registry.open_backend(device_type)


def to_array(tensor: _C.Tensor) -> Any:
    """The array of its backend's `xp` over the memory of a tensor; on the CPU a NumPy array. See `Backend.view`."""
    return tensor._array()


def from_array(array: Any, device: Any) -> _C.Tensor:
    """A tensor over an array of the backend's `xp`, as the result of an array kernel becomes one. See `Backend.wrap`.

    Args:
        array: Array of that device.
        device: Where it lives.
    """
    return _C.from_array(array, device)


def collectives(name: str) -> type[Collectives]:
    """The class of collectives that a plugin brings.

    Raises:
        ValueError: No installed plugin brings that name; the message lists those that there are.
    """
    from .. import _registry

    found: type[Collectives] = _registry.named("collectives", _registry.collectives, name)
    return found


def rendezvous(url: str) -> tuple[Store, int, int]:
    """Meets the other processes of a group.

    Args:
        url: As "tcp://host:port?rank=0&world_size=2"; its scheme names the rendezvous of a plugin.

    Returns:
        The group's store, this process' rank and the size of the group.

    Raises:
        ValueError: No installed plugin brings that scheme, or the URL says too little.
    """
    from .. import _registry

    found: Rendezvous = _registry.named("rendezvous", _registry.rendezvous, url.partition("://")[0])
    return found.meet(url)
