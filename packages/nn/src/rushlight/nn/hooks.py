"""What rushlight-nn brings to the core."""

from __future__ import annotations

from rushlight.plugin import Kernel, Op


def rushlight_register_ops() -> list[Op]:
    from rushlight.nn import _ops

    return _ops.records()


def rushlight_register_kernels(device_type: str) -> list[Kernel]:
    if device_type != "cuda":
        return []
    from rushlight.nn import _cuda

    return _cuda.kernels()
