"""`rushlight.cuda`: NVIDIA GPUs, where CuPy finds any. Without one it answers as PyTorch's CPU build does."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from . import _registry
from .plugin.interface import DeviceProperties

if TYPE_CHECKING:
    from .backends.cuda import CUDA

__all__ = [
    "current_device",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "init",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "memory_allocated",
    "memory_reserved",
    "set_device",
    "synchronize",
]


def _backend() -> CUDA:
    return cast("CUDA", _registry.open_backend("cuda"))


def _index(device: Any) -> int:
    """The index of a device given as int, string, `rushlight.device` or None (the current one)."""
    if device is None:
        return current_device()
    if isinstance(device, int):
        return device
    from . import device as Device

    device = Device(device)
    if device.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {device}")
    return current_device() if device.index is None else device.index


def is_available() -> bool:
    """Whether CuPy is installed and finds a GPU."""
    return bool(_registry.backends["cuda"].item.probe())


def is_initialized() -> bool:
    """Whether the backend has been opened."""
    return "cuda" in _registry.opened


def init() -> None:
    """Opens the backend, which the first tensor on a GPU does as well.

    Raises:
        AssertionError: CuPy is not installed.
    """
    _backend()


def device_count() -> int:
    """How many GPUs there are, 0 without CuPy."""
    return _backend().device_count() if is_available() else 0


def current_device() -> int:
    """Index of the GPU that `device="cuda"` stands for."""
    return _backend().current_device()


def set_device(device: Any) -> None:
    """Makes a GPU the current one; a negative index changes nothing."""
    index = _index(device)
    if index >= 0:
        _backend().set_device(index)


class device:
    """Context in which a GPU is the current one; a negative index changes nothing.

    Args:
        device: Index, string or `rushlight.device`.
    """

    def __init__(self, device: Any) -> None:
        self.idx = _index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            self.prev_idx = current_device()
            set_device(self.idx)

    def __exit__(
        self, type_: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        set_device(self.prev_idx)


class device_of(device):
    """Context in which the GPU of a tensor is the current one; changes nothing for tensors elsewhere."""

    def __init__(self, tensor: Any) -> None:
        super().__init__(tensor.device if tensor.device.type == "cuda" else -1)


def get_device_properties(device: Any = None) -> DeviceProperties:
    """Name, memory, multiprocessors and compute capability of a GPU."""
    return _backend().properties(_index(device))


def get_device_name(device: Any = None) -> str:
    """Name of a GPU."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Compute capability of a GPU, as (major, minor)."""
    found = get_device_properties(device)
    return found.major, found.minor


def is_bf16_supported() -> bool:
    """Whether the current GPU computes in bfloat16 natively."""
    return is_available() and get_device_capability() >= (8, 0)


def synchronize(device: Any = None) -> None:
    """Waits for all work on a GPU."""
    backend = _backend()
    backend.synchronize(_index(device))


def manual_seed(seed: int) -> None:
    """Seeds the current GPU's random generator; nothing happens where there is no GPU."""
    if is_available():
        _backend().manual_seed(seed)


manual_seed_all = manual_seed


def memory_allocated(device: Any = None) -> int:
    """Bytes in use by arrays on the current GPU, 0 before the backend is opened."""
    return _backend().pool().used_bytes() if is_initialized() else 0


def memory_reserved(device: Any = None) -> int:
    """Bytes that CuPy's pool holds on the current GPU, 0 before the backend is opened."""
    return _backend().pool().total_bytes() if is_initialized() else 0


def empty_cache() -> None:
    """Gives unused memory of CuPy's pool back to the driver."""
    if is_initialized():
        _backend().pool().free_all_blocks()
