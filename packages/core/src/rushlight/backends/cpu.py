"""The CPU. Its tensors are made, viewed and copied by the core's native code; arrays over them are NumPy's."""

from __future__ import annotations

import os
import platform

import numpy as np

from ..plugin.interface import Backend, DeviceProperties


class CPU(Backend):
    """The host: memory from the caching allocator, kernels native or over NumPy."""

    name = "cpu"
    xp = np

    def properties(self, index: int) -> DeviceProperties:
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0
        return DeviceProperties(platform.processor() or platform.machine(), pages, os.cpu_count() or 1)
