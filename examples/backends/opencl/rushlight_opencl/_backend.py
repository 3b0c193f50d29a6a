"""The device type `opencl`: the memory model of `rushlight.plugin.Backend` over arrays of OpenCL devices."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from rushlight.plugin import Available, Backend, DeviceProperties, Unavailable


class OpenCL(Backend):
    """Every OpenCL device of the machine, of all platforms.

    Attributes:
        generator: What random tensors draw from.
    """

    name = "opencl"

    @classmethod
    def probe(cls) -> Available | Unavailable:
        if importlib.util.find_spec("pyopencl") is None:
            return Unavailable("pyopencl is not installed (pip install pyopencl)")
        import pyopencl as cl

        try:
            count = sum(len(platform.get_devices()) for platform in cl.get_platforms())
        except cl.Error as error:  # no platform at all
            return Unavailable(
                f"there is no OpenCL platform ({error}). pip install pocl-binary-distribution brings one"
            )
        return Available(f"{count} devices") if count else Unavailable("no OpenCL platform has a device")

    def open(self) -> None:
        from rushlight.plugin.source import TYPES

        from . import _array, _namespace, _random  # OpenCL is loaded by who uses it

        self.xp = _namespace.Namespace()
        self.generator = _random.Generator()
        self._arrays = _array
        self._devices = _array.devices()
        self._dtypes = {dtype.name: dtype for dtype in TYPES}

    def device_count(self) -> int:
        return len(self._devices)

    def properties(self, index: int) -> DeviceProperties:
        info = self._devices[index].info
        return DeviceProperties(info.name, info.global_mem_size, info.max_compute_units)

    def synchronize(self, index: int) -> None:
        self._devices[index].synchronize()

    def manual_seed(self, seed: int) -> None:
        self.generator.manual_seed(seed)

    def allocate(self, nbytes: int, index: int) -> Any:
        return self._arrays.Memory(self._devices[index], nbytes)

    def view(self, buffer: Any, dtype: str, shape: Any, strides: Any, offset: int) -> Any:
        found = self._dtypes[dtype]
        size = found.itemsize
        return self._arrays.Array(
            buffer, buffer.device, found, shape, tuple(s // size for s in strides), offset // size
        )

    def wrap(self, array: Any) -> tuple[Any, str, tuple[int, ...], tuple[int, ...], int]:
        array = array.contiguous()
        size = array.dtype.itemsize
        return array.memory, array.dtype.name, array.shape, tuple(s * size for s in array.strides), array.offset * size

    def from_host(self, array: np.ndarray, index: int) -> Any:
        return self._arrays.Array.empty(array.shape, array.dtype, self._devices[index]).set(array)

    def to_host(self, array: Any) -> np.ndarray:
        return array.get()

    def copy(self, to: Any, source: Any) -> None:
        to[...] = source

    def cast(self, array: Any, dtype: str) -> Any:
        return array.astype(self._dtypes[dtype])
