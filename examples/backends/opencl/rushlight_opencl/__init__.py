"""OpenCL devices for rushlight. With the wheel installed, `rushlight.ones(3, device="opencl")` works.

Example:
    >>> import rushlight
    >>> x = rushlight.arange(6.0, device="opencl").reshape(2, 3)
    >>> (x @ x.T).cpu()
    tensor([[ 5., 14.],
            [14., 50.]])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.plugin import Backend, Kernel

from ._backend import OpenCL

if TYPE_CHECKING:
    from ._device import Device, Event, devices

__all__ = ["Device", "Event", "OpenCL", "devices"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import _device  # OpenCL is loaded by who uses it

    return getattr(_device, name)


def rushlight_register_backends() -> list[type[Backend]]:
    return [OpenCL]


def rushlight_register_kernels(device_type: str) -> list[Kernel]:
    if device_type != "opencl":
        return []
    from ._kernels import kernels

    return kernels()
