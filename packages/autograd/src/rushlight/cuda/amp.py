"""`rushlight.amp` for CUDA, by the names that programs had for it before there were other devices."""

from __future__ import annotations

import functools
from typing import Any

import rushlight as rl
from rushlight import amp

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]

custom_fwd = functools.partial(amp.custom_fwd, device_type="cuda")
custom_bwd = functools.partial(amp.custom_bwd, device_type="cuda")


class autocast(amp.autocast):
    """``rushlight.autocast("cuda", dtype, enabled, cache_enabled)``."""

    def __init__(self, enabled: bool = True, dtype: rl.dtype = rl.float16, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """``rushlight.amp.GradScaler("cuda", ...)``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("cuda", *args, **kwargs)
