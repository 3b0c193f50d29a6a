"""NVIDIA GPUs over CuPy, which the extra rushlight-core[cuda12] or [cuda13] brings."""

from __future__ import annotations

import importlib.util
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ..plugin.interface import Available, Backend, DeviceProperties, Unavailable


class CUDA(Backend):
    """A GPU through CuPy: memory from CuPy's pool, arrays of its namespace, kernels generated from the records.

    Attributes:
        generators: A Philox generator for each GPU: what random tensors draw from.
        blocks: Of memory in use, by GPU and address: bytes that were asked for and that it has.
    """

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

        from .. import _registry
        from .._C import Generator, default_generator
        from ..cuda import _fused, _kernels

        self.xp = cupy
        self._fused = _fused
        self.launcher = _fused.Launcher(cupy)
        seed = default_generator.initial_seed()
        self.generators = tuple(
            Generator(algorithm="philox4x32-10").manual_seed(seed) for _ in range(self.device_count())
        )
        self._pinned: dict[int, int] = {}  # bytes by address
        self._copying: list[tuple[Any, np.ndarray]] = []  # what the driver reads until the event
        self._peaks: dict[int, tuple[int, int]] = {}
        self.blocks: dict[tuple[int, int], tuple[int, int]] = {}
        backend = self

        class Counter(cupy.cuda.MemoryHook):
            name = "rushlight"

            def malloc_postprocess(self, **kwargs: Any) -> None:
                backend.blocks[kwargs["device_id"], kwargs["mem_ptr"]] = kwargs["size"], kwargs["mem_size"]
                (used, held), (most_used, most_held) = backend._in_use(), backend.peak()
                backend._peaks[backend.current_device()] = max(used, most_used), max(held, most_held)

            def free_postprocess(self, **kwargs: Any) -> None:
                backend.blocks.pop((kwargs["device_id"], kwargs["mem_ptr"]), None)

        self._hook = Counter()
        self._hook.__enter__()  # for as long as the process runs
        _registry.commit(_registry.CORE, _registry.Contributions(kernels={self.name: _kernels.kernels()}))

    # -- the devices

    def device_count(self) -> int:
        return int(self.xp.cuda.runtime.getDeviceCount())

    def current_device(self) -> int:
        return int(self.xp.cuda.runtime.getDevice())

    def set_device(self, index: int) -> None:
        self.xp.cuda.runtime.setDevice(index)

    def manual_seed(self, seed: int) -> None:
        for generator in self.generators:
            generator.manual_seed(seed)

    def can_access_peer(self, index: int, peer: int) -> bool:
        """Whether one GPU reads the memory of another directly."""
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

    # -- memory

    def pool(self) -> Any:
        """CuPy's memory pool of the current device."""
        return self.xp.get_default_memory_pool()

    def _in_use(self) -> tuple[int, int]:
        return self.pool().used_bytes(), self.pool().total_bytes()

    def peak(self) -> tuple[int, int]:
        """The most bytes that arrays of the current device used, and that the pool held."""
        return self._peaks.get(self.current_device(), (0, 0))

    def reset_peak(self) -> None:
        """Lets the peaks of the current device start again from what is in use."""
        self._peaks[self.current_device()] = self._in_use()

    def pin(self, nbytes: int) -> np.ndarray:
        """Page-locked memory of the host, which GPUs copy from while the host goes on; uint8."""
        array = np.frombuffer(self.xp.cuda.alloc_pinned_memory(nbytes), np.uint8, nbytes)
        address = array.ctypes.data
        self._pinned[address] = nbytes
        weakref.finalize(array, self._pinned.pop, address, None)
        return array

    def is_pinned(self, address: int) -> bool:
        """Whether memory of `pin` begins at an address."""
        return address in self._pinned

    def allocate(self, nbytes: int, index: int) -> Any:
        try:
            with self.xp.cuda.Device(index):
                return self.xp.empty(nbytes, dtype="uint8")
        except MemoryError as error:
            from ..cuda import OutOfMemoryError

            raise OutOfMemoryError(f"CUDA out of memory. Tried to allocate {nbytes} bytes on GPU {index}.") from error

    # -- copies

    def from_host(self, array: np.ndarray, index: int) -> Any:
        with self.xp.cuda.Device(index):
            return self.xp.asarray(array)

    def from_host_later(self, array: np.ndarray, index: int) -> Any:
        self._copying = [pair for pair in self._copying if not pair[0].done]
        with self.xp.cuda.Device(index):
            stream = self.xp.cuda.get_current_stream()
            result, array = self.xp.empty(array.shape, array.dtype), np.ascontiguousarray(array)
            result.set(array, stream)
            self._copying.append((stream.record(self.xp.cuda.Event(disable_timing=True)), array))
        return result

    def transfer(self, array: Any, index: int) -> Any:
        with array.device:
            array = self.xp.ascontiguousarray(array)
            ready = self.xp.cuda.get_current_stream().record(self.xp.cuda.Event(disable_timing=True))
        with self.xp.cuda.Device(index):
            self.xp.cuda.get_current_stream().wait_event(ready)
            return self.xp.array(array)

    def to_host(self, array: Any) -> np.ndarray:
        with array.device:
            return np.asarray(array.get())

    def copy(self, to: Any, source: Any) -> None:
        with to.device:
            to[...] = source

    def cast(self, array: Any, dtype: str) -> Any:
        with array.device:
            return self._fused.cast(self.launcher, array, np.dtype(dtype))

    # -- kernels

    def compute(self, kernel: Callable[..., Any], *args: Any) -> Any:
        return self._fused.compute(self.launcher, kernel, *args)
