"""What a plugin hands to rushlight: backends, kernels, layers and file formats.

`specs` says which hook returns which of them, and when it is called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Literal, Protocol

import numpy as np

PLUGIN_API = 1
"""Version of the C API and of this interface; equal to RL_ABI of rushlight/api.h."""

PLUGIN_API_MINOR = 2
"""What has been added to that version; equal to RL_MINOR. A plugin built for an earlier one loads."""


class PluginError(RuntimeError):
    """A plugin broke a rule of `rushlight.plugin.specs`."""


class PluginWarning(UserWarning):
    """A plugin could not be loaded; everything that it does not provide works."""


@dataclass(frozen=True)
class Available:
    """The answer of `Backend.probe` where the device can be used."""

    detail: str = ""

    def __bool__(self) -> Literal[True]:
        return True


@dataclass(frozen=True)
class Unavailable:
    """The answer of `Backend.probe` where it cannot; who uses the device all the same gets `error` with `reason`."""

    reason: str
    error: type[Exception] = RuntimeError

    def __bool__(self) -> Literal[False]:
        return False


@dataclass(frozen=True)
class DeviceProperties:
    """What is known of one device; sizes in bytes."""

    name: str
    total_memory: int = 0
    multi_processor_count: int = 0
    major: int = 0
    minor: int = 0


class Backend:
    """A device type: where tensors live and which array namespace computes on them.

    A backend over an array library that follows NumPy (`empty`, slicing, `view(dtype)`, `lib.stride_tricks.as_strided`,
    `asarray`, `astype`) needs a name and the namespace; this is the CUDA backend without its comforts::

        # rushlight_gpu.py
        from rushlight.plugin import Available, Backend, Unavailable

        class GPU(Backend):
            name = "gpu"

            @classmethod
            def probe(cls):
                return Available() if importlib.util.find_spec("cupy") else Unavailable("CuPy is not installed")

            def open(self):
                import cupy
                self.xp = cupy

            def to_host(self, array):
                return array.get()

        def rushlight_register_backends():
            return [GPU]

        # pyproject.toml
        [project.entry-points."rushlight.plugins"]
        gpu = "rushlight_gpu"

    With that `rushlight.ones(3, device="gpu")` works, and so does every operator that has an array kernel or is
    composed of such. A library with another memory model overrides `allocate`, `view` and `wrap` as well. In what
    follows an array is an array of `xp`, and a buffer is any object that owns memory of the device: only its backend
    looks inside.

    Attributes:
        name: Device type, as in `rushlight.device(name, index)`. An identifier in lower case.
        xp: Array namespace, set by `open` at the latest.
        compute: `compute(kernel, *args)` runs an array kernel in place of `kernel(xp, *args)`, on arrays, and returns
            what that would. For a backend that wants whole operators, as to compile them (`rushlight.plugin.source`).
        fallback: Where True, an operator that has no kernel here runs on the CPU, through a copy each way and with one
            warning per operator. False: it raises NotImplementedError.
    """

    name: str
    xp: Any = None
    compute: Callable[..., Any] | None = None
    fallback: bool = False

    # -- the device

    @classmethod
    def probe(cls) -> Available | Unavailable:
        """Whether the device can be used. Asked before `open` and by listings: cheap, opens nothing, never raises."""
        return Available()

    def open(self) -> None:
        """Called once, when the first tensor of this device type is made. Import the array library here.

        It runs in a thread of its own, which is given up after 5 s (`RUSHLIGHT_PLUGIN_SECONDS`): what a library keeps
        per thread is not there afterwards.
        """

    def device_count(self) -> int:
        """How many devices of this type there are."""
        return 1

    def current_device(self) -> int:
        """Index of the device that `rushlight.device(name)` without an index stands for."""
        return 0

    def set_device(self, index: int) -> None:
        """Makes another device the current one. Nothing to do where there is one."""

    def manual_seed(self, seed: int) -> None:
        """Seeds the devices' own random generator, for a backend that has one."""

    def properties(self, index: int) -> DeviceProperties:
        """Name and size of one device."""
        return DeviceProperties(self.name)

    def synchronize(self, index: int) -> None:
        """Returns when all work given to the device is done. Nothing to do where calls return finished results."""

    # -- memory

    def allocate(self, nbytes: int, index: int) -> Any:
        """A buffer of `nbytes` bytes on device `index`, contents arbitrary. Raise MemoryError where it does not fit."""
        return self.xp.empty(nbytes, dtype="uint8")

    def view(self, buffer: Any, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Any:
        """The array over a buffer's memory: writing to one writes to the other.

        Args:
            buffer: What `allocate` or `wrap` returned.
            dtype: Name of the element type, as "float32".
            shape: Sizes.
            strides: Bytes from one element to the next in each dimension, zero (broadcast) or positive.
            offset: Bytes from the start of the buffer to the first element.
        """
        if 0 in shape:
            return self.xp.empty(shape, dtype=dtype)
        extent = np.dtype(dtype).itemsize + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
        flat = buffer[offset : offset + extent].view(dtype)
        return self.xp.lib.stride_tricks.as_strided(flat, shape, strides)

    def wrap(self, array: Any) -> tuple[Any, str, tuple[int, ...], tuple[int, ...], int]:
        """The buffer below the fresh result of an array kernel, then dtype, shape, strides and offset as in `view`."""
        array = self.xp.asarray(array, order="C")
        itemsize, strides = array.dtype.itemsize, []
        for n in reversed(array.shape):
            strides.append(itemsize)
            itemsize *= max(n, 1)
        return array.reshape(-1).view("uint8"), str(array.dtype), tuple(array.shape), tuple(reversed(strides)), 0

    # -- copies

    def from_host(self, array: np.ndarray, index: int) -> Any:
        """A new array on device `index` with the elements of a NumPy array."""
        return self.xp.asarray(array)

    def from_host_later(self, array: np.ndarray, index: int) -> Any:
        """`from_host` for `non_blocking=True`: may return before the elements are there, for work in order."""
        return self.from_host(array, index)

    def transfer(self, array: Any, index: int) -> Any:
        """A new array on device `index` with the elements of an array of another device of this type."""
        return self.from_host(self.to_host(array), index)

    def to_host(self, array: Any) -> np.ndarray:
        """A new NumPy array with the elements of a device array; waits for the device."""
        return np.array(array)

    def copy(self, to: Any, source: Any) -> None:
        """Writes the elements of one array into another of the same shape and dtype; they may overlap."""
        to[...] = source

    def cast(self, array: Any, dtype: str) -> Any:
        """A new array with the elements converted to another dtype. Complex to real keeps the real part."""
        if array.dtype.kind == "c" and np.dtype(dtype).kind not in "cb":
            array = array.real
        with np.errstate(all="ignore"):  # what does not fit becomes infinite or wraps around
            return array.astype(dtype)


@dataclass(frozen=True)
class Kernel:
    """An implementation of one operator on the device type for which `rushlight_register_kernels` was asked.

    Attributes:
        op: Name of the operator, as "add" or "linalg::inv"; with its overload where it has one, as "max.dim".
        fn: A Python callable that takes and returns tensors as the schema says, or a PyCapsule named "rushlight.Kernel"
            around an `rl::Kernel` of the C API.
        override: True to replace a kernel that another wheel registered; without it that is an error naming both.
    """

    op: str
    fn: Any
    override: bool = False


@dataclass(frozen=True)
class Layer:
    """A stage of dispatch between the call of an operator and its kernel.

    Attributes:
        name: Unique name, shown by `python -m rushlight plugins`.
        order: Lower runs first: overrides 0, modes 100, autograd 200.
        install: Called once, when the plugin's contributions are committed; hands the native layer to `register_layer`
            of the C API.
    """

    name: str
    order: int
    install: Callable[[], None]


@dataclass(frozen=True)
class Format:
    """A file format for `rushlight.load` and `rushlight.save`.

    Attributes:
        name: Unique name.
        magic: First bytes of every file of this format.
        load: `load(file, map_location) -> object`.
        save: `save(object, file)`, or None where the format is only read.
        suffixes: File name endings that ask for this format on saving, as `(".safetensors",)`.
    """

    name: str
    magic: bytes
    load: Callable[[BinaryIO, Any], Any]
    save: Callable[[Any, BinaryIO], None] | None = None
    suffixes: tuple[str, ...] = field(default=())


class Store(Protocol):
    """What the processes of a group share: bytes by key."""

    def set(self, key: str, value: bytes) -> None:
        """Makes the value known to all."""

    def get(self, key: str) -> bytes:
        """The value; waits until somebody has set it. Raises TimeoutError where nobody does."""


class Collectives:
    """One way in which the processes of a group talk to each other; one object per process and group.

    A transport gives `send` and `receive`; what is made of them here it overrides where it does better. All calls
    return when the array may be used again. Every process of the group makes the same calls in the same order.

    Attributes:
        name: Unique name, as in `init_process_group(name)`. An identifier in lower case.
        store: The group's store, for the transport's own arrangements; keys start with the name.
        rank: Which process of the group this is.
        size: How many there are.
    """

    name: str

    def __init__(self, store: Store, rank: int, size: int) -> None:
        self.store, self.rank, self.size = store, rank, size

    def send(self, array: np.ndarray, to: int) -> None:
        """Sends an array to another process; it does not wait for that process to receive it."""
        raise NotImplementedError(f"{self.name}: the transport has no send.")

    def receive(self, array: np.ndarray, source: int) -> None:
        """Waits for an array of the same shape and dtype from another process and writes it into `array`."""
        raise NotImplementedError(f"{self.name}: the transport has no receive.")

    def broadcast(self, array: np.ndarray, root: int) -> None:
        """Gives everybody the elements that process `root` has."""
        if self.rank != root:
            self.receive(array, root)
            return
        for other in range(self.size):
            if other != root:
                self.send(array, other)

    def all_gather(self, array: np.ndarray) -> list[np.ndarray]:
        """The arrays of all processes, by rank."""
        gathered = [np.array(array) for _ in range(self.size)]
        for other in range(self.size):
            if other != self.rank:
                self.send(array, other)
        for other in range(self.size):
            if other != self.rank:
                self.receive(gathered[other], other)
        return gathered

    def all_reduce(self, array: np.ndarray, op: str = "sum") -> None:
        """Replaces the elements by their "sum", "product", "min" or "max" over all processes, taken in rank order."""
        if op not in REDUCTIONS:
            raise ValueError(f"all_reduce: op must be one of {', '.join(sorted(REDUCTIONS))}, got op={op!r}.")
        array[...] = REDUCTIONS[op].reduce(self.all_gather(array))

    def barrier(self) -> None:
        """Returns when every process has called it."""
        self.all_gather(np.zeros((), np.uint8))


REDUCTIONS = {"max": np.maximum, "min": np.minimum, "product": np.multiply, "sum": np.add}
"""What `Collectives.all_reduce` offers."""


@dataclass(frozen=True)
class Rendezvous:
    """One way in which the processes of a group find each other.

    Attributes:
        name: Scheme of its URLs, as "tcp" in `tcp://host:port?rank=0&world_size=2`. An identifier in lower case.
        meet: `meet(url) -> (store, rank, size)`. Raises ValueError where the URL says too little.
    """

    name: str
    meet: Callable[[str], tuple[Store, int, int]]
