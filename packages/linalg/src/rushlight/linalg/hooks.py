"""What rushlight-linalg brings to the core."""

from __future__ import annotations

from rushlight.plugin import Kernel, Op


def rushlight_register_ops() -> list[Op]:
    from . import _ops

    return _ops.records()


def rushlight_register_kernels(device_type: str) -> list[Kernel]:
    if device_type != "cuda":
        return []
    from . import _devices

    return _devices.kernels(device_type)
