"""Which GPUs there are, and which one is current."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from .. import _registry
from ..plugin.interface import DeviceProperties

if TYPE_CHECKING:
    from ..backends.cuda import CUDA


def open_backend() -> CUDA:
    return cast("CUDA", _registry.open_backend("cuda"))


def index_of(device: Any) -> int:
    """The index of a device given as int, string, `rushlight.device` or None (the current one)."""
    if device is None:
        return current_device()
    if isinstance(device, int):
        return device
    from .. import device as Device

    device = Device(device)
    if device.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {device}")
    return current_device() if device.index is None else device.index


def is_available() -> bool:
    """Whether CuPy is installed and finds a GPU."""
    return bool(_registry.probe("cuda"))


def is_initialized() -> bool:
    """Whether the backend has been opened."""
    return "cuda" in _registry.opened


def init() -> None:
    """Opens the backend, which the first tensor on a GPU does as well.

    Raises:
        AssertionError: CuPy is not installed.
    """
    open_backend()


def device_count() -> int:
    """How many GPUs there are, 0 without CuPy."""
    return open_backend().device_count() if is_available() else 0


def current_device() -> int:
    """Index of the GPU that `device="cuda"` stands for."""
    return open_backend().current_device()


def set_device(device: Any) -> None:
    """Makes a GPU the current one; a negative index changes nothing."""
    index = index_of(device)
    if index >= 0:
        open_backend().set_device(index)


class device:
    """Context in which a GPU is the current one; a negative index changes nothing.

    Args:
        device: Index, string or `rushlight.device`.
    """

    def __init__(self, device: Any) -> None:
        self.idx = index_of(device)
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
    return open_backend().properties(index_of(device))


def get_device_name(device: Any = None) -> str:
    """Name of a GPU."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Compute capability of a GPU, as (major, minor)."""
    found = get_device_properties(device)
    return found.major, found.minor


def get_arch_list() -> list[str]:
    """What kernels are compiled for: every architecture that the installed NVRTC knows, as "sm_90"."""
    if not is_available():
        return []
    return [f"sm_{number}" for number in sorted(open_backend().xp.cuda.nvrtc.getSupportedArchs())]


def get_gencode_flags() -> str:
    """`get_arch_list` as options of nvcc."""
    numbers = [name.removeprefix("sm_") for name in get_arch_list()]
    return " ".join(f"-gencode compute=compute_{number},code=sm_{number}" for number in numbers)


def is_bf16_supported() -> bool:
    """Whether the current GPU computes in bfloat16 natively."""
    return is_available() and get_device_capability() >= (8, 0)


def synchronize(device: Any = None) -> None:
    """Waits for all work on a GPU."""
    backend = open_backend()
    backend.synchronize(index_of(device))


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether one GPU reads the memory of another directly.

    Raises:
        ValueError: One of them does not exist.
    """
    backend = open_backend()
    pair = index_of(device), index_of(peer_device)
    for index in pair:
        if not 0 <= index < backend.device_count():
            raise ValueError(f"can_device_access_peer: there is no GPU {index}. There are {backend.device_count()}.")
    return backend.can_access_peer(*pair)


def current_blas_handle() -> int:
    """The cuBLAS handle of the current GPU, for other libraries."""
    return int(open_backend().xp.cuda.device.get_cublas_handle())
