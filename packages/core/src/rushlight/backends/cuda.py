"""NVIDIA GPUs over CuPy, which the extra rushlight-core[cuda12] or [cuda13] brings."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
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

        from ..cuda import _fused

        self.xp = cupy
        self._fused = _fused
        self._launcher = _fused.Launcher(cupy)
        self._peaks: dict[int, tuple[int, int]] = {}
        backend = self

        class Peaks(cupy.cuda.MemoryHook):
            name = "rushlight peaks"

            def malloc_postprocess(self, **kwargs: Any) -> None:
                (used, held), (most_used, most_held) = backend._in_use(), backend.peak()
                backend._peaks[backend.current_device()] = max(used, most_used), max(held, most_held)

        self._hook = Peaks()
        self._hook.__enter__()  # for as long as the process runs

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

    def _in_use(self) -> tuple[int, int]:
        return self.pool().used_bytes(), self.pool().total_bytes()

    def peak(self) -> tuple[int, int]:
        """The most bytes that arrays of the current device used, and that the pool held."""
        return self._peaks.get(self.current_device(), (0, 0))

    def reset_peak(self) -> None:
        self._peaks[self.current_device()] = self._in_use()

    def can_access_peer(self, index: int, peer: int) -> bool:
        return bool(self.xp.cuda.runtime.deviceCanAccessPeer(index, peer))

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

    def cast(self, array: Any, dtype: str) -> Any:
        return self._fused.cast(self._launcher, array, np.dtype(dtype))

    def compute(self, kernel: Callable[..., Any], *args: Any) -> Any:
        return self._fused.compute(self._launcher, kernel, *args)
