"""Every hook of rushlight, by phase.

A plugin is a module (or object) named by an entry point of the group ``rushlight.plugins``. Its functions that are
named as below are its hooks; there is no decorator to apply. All arguments are passed by keyword, and a hook may leave
out arguments that it does not need. A hook returns things and registers nothing itself: what a plugin returns is
checked and committed together, so that a plugin is wholly there or not at all.

A plugin with native code also says which version of the C API it was compiled against, so that a mismatch is found
before that code is loaded::

    [project.entry-points."rushlight.plugins"]
    toy = "rushlight_toy.hooks"
    [project.entry-points."rushlight.plugin_api"]
    toy = "v1"
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pluggy

from .interface import Backend, Collectives, Format, Kernel, Layer, Rendezvous

if TYPE_CHECKING:
    from .._op import Op

hookspec = pluggy.HookspecMarker("rushlight")

# mypy: disable-error-code=empty-body

# -- loading


@hookspec(historic=True)
def rushlight_addhooks(manager: pluggy.PluginManager) -> None:
    """Adds the hooks that a wheel owns: ``manager.add_hookspecs(module)``.

    Called once per plugin, as the first hook of it. The return value is ignored. Plugins that load earlier or later may
    implement the added hooks: which wheel is loaded first does not matter.
    """


# -- registration: called once per plugin, when it is loaded


@hookspec
def rushlight_register_ops() -> list[Op]:
    """The operators that a wheel brings. None: none.

    Called once per plugin, when it is loaded: at the first use of a name that the wheel provides, or when everything is
    loaded because an unknown name was asked for. An operator whose name is taken is an error that names both wheels.
    """


@hookspec
def rushlight_register_backends() -> list[type[Backend]]:
    """The device types that a wheel brings. None: none.

    Called once per plugin, when it is loaded. The classes are not instantiated before the device is asked for.
    """


@hookspec
def rushlight_register_layers() -> list[Layer]:
    """The dispatch layers that a wheel brings. None: none.

    Called once per plugin, when it is loaded.
    """


@hookspec
def rushlight_register_formats() -> list[Format]:
    """The file formats that a wheel reads and writes. None: none.

    Called once per plugin, when it is loaded.
    """


@hookspec
def rushlight_register_collectives() -> list[type[Collectives]]:
    """The ways in which a wheel lets the processes of a group talk to each other. None: none.

    Called once per plugin, when it is loaded. A class is instantiated once per process and group.
    """


@hookspec
def rushlight_register_rendezvous() -> list[Rendezvous]:
    """The ways in which a wheel lets the processes of a group find each other. None: none.

    Called once per plugin, when it is loaded.
    """


@hookspec
def rushlight_check_op(op: Op, siblings: Sequence[Op]) -> None:
    """Raises where an operator of another plugin cannot work, before anything of that plugin is registered.

    Called once per operator with gradient rules that a third party's plugin brings; `siblings` are all its operators.
    The return value is ignored.
    """


# -- opening a device


@hookspec
def rushlight_register_kernels(device_type: str) -> list[Kernel]:
    """Kernels for one device type. None: none for this type.

    Called once per plugin and device type, when the first tensor of that type is made, so that a device's library is
    imported only by who uses it; for a device type that is open already, as cpu and meta always are, when the plugin is
    loaded.
    """
