"""NVIDIA GPUs over CuPy, which the extra rushlight-core[cuda12] or [cuda13] brings."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from ..plugin.interface import Available, Backend, DeviceProperties, Unavailable


class CUDA(Backend):
    """A GPU through CuPy: memory from CuPy's pool, kernels over its array namespace."""

    name = "cuda"

    @classmethod
    def probe(cls) -> Available | Unavailable:
        if importlib.util.find_spec("cupy") is None:
            return Unavailable(
                "Torch not compiled with CUDA enabled: CuPy is not installed (pip install 'rushlight-core[cuda13]')",
                AssertionError,
            )
        import cupy  # imports no CUDA library before it is used

        try:
            count = cupy.cuda.runtime.getDeviceCount()
        except Exception as error:  # a driver that is absent or too old is CuPy's CUDARuntimeError or an ImportError
            return Unavailable(f"CuPy finds no usable CUDA driver: {error}")
        return Available(f"{count} GPUs") if count else Unavailable("there is no NVIDIA GPU")

    def open(self) -> None:
        import cupy

        self.xp = cupy

    def device_count(self) -> int:
        return int(self.xp.cuda.runtime.getDeviceCount())

    def current_device(self) -> int:
        return int(self.xp.cuda.runtime.getDevice())

    def set_device(self, index: int) -> None:
        self.xp.cuda.runtime.setDevice(index)

    def manual_seed(self, seed: int) -> None:
        self.xp.random.seed(seed)

    def pool(self) -> Any:
        """CuPy's memory pool of the current device."""
        return self.xp.get_default_memory_pool()

    def properties(self, index: int) -> DeviceProperties:
        found = self.xp.cuda.runtime.getDeviceProperties(index)
        return DeviceProperties(
            found["name"].decode(),
            found["totalGlobalMem"],
            found["multiProcessorCount"],
            found["major"],
            found["minor"],
        )

    def synchronize(self, index: int) -> None:
        self.xp.cuda.Device(index).synchronize()

    def allocate(self, nbytes: int, index: int) -> Any:
        with self.xp.cuda.Device(index):
            return self.xp.empty(nbytes, dtype="uint8")

    def from_host(self, array: np.ndarray, index: int) -> Any:
        with self.xp.cuda.Device(index):
            return self.xp.asarray(array)

    def to_host(self, array: Any) -> np.ndarray:
        return np.asarray(array.get())
