"""Memory of the GPUs, as CuPy's pool counts it: nothing is counted before the backend is opened."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from typing import Any

from ._device import device as device_context, get_device_properties, index_of, is_initialized, open_backend


class OutOfMemoryError(RuntimeError, MemoryError):
    """A GPU has no room for a tensor."""


_COUNTERS = ("allocated_bytes", "reserved_bytes")


def memory_stats(device: Any = None) -> OrderedDict[str, int]:
    """Bytes in use (`allocated_bytes.all.current`, `.peak`) and held by the pool (`reserved_bytes...`).

    Args:
        device: Index, string or `rushlight.device`; the current GPU where it is None.
    """
    if not is_initialized():
        return OrderedDict()
    backend = open_backend()
    with device_context(index_of(device)):
        pool, peak = backend.pool(), backend.peak()
        now = (pool.used_bytes(), pool.total_bytes())
    return OrderedDict(
        (f"{name}.all.{kind}", value)
        for name, current, highest in zip(_COUNTERS, now, peak, strict=True)
        for kind, value in (("current", current), ("peak", max(current, highest)))
    )


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """`memory_stats` as dictionaries in dictionaries."""
    nested: dict[str, Any] = {}
    for path, value in memory_stats(device).items():
        name, pool, kind = path.split(".")
        nested.setdefault(name, {}).setdefault(pool, {})[kind] = value
    return nested


def memory_snapshot() -> list[dict[str, Any]]:
    """The blocks in use on all GPUs, by address, each as a segment of its own.

    Returns:
        Dicts with `device`, `address`, `total_size`, `allocated_size` (what was asked for) and `blocks`. What other
        threads than the one that opened the backend allocated is not among them: CuPy counts by thread.
    """
    if not is_initialized():
        return []
    blocks = sorted((index, address, *sizes) for (index, address), sizes in open_backend().blocks.items())
    return [
        {
            "device": index,
            "address": address,
            "total_size": held,
            "allocated_size": asked,
            "active_size": held,
            "segment_type": "small" if held < 2**20 else "large",
            "blocks": [{"address": address, "size": held, "requested_size": asked, "state": "active_allocated"}],
        }
        for index, address, asked, held in blocks
    ]


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """A table of `memory_stats` in MiB.

    Args:
        device: As in `memory_stats`.
        abbreviated: Leaves the peaks out.
    """
    stats = memory_stats(device)
    kinds = ("current",) if abbreviated else ("current", "peak")
    lines = [f"{'memory of the GPU (MiB)':<24}" + "".join(f"{kind:>12}" for kind in kinds)]
    for name in _COUNTERS:
        values = (stats.get(f"{name}.all.{kind}", 0) / 2**20 for kind in kinds)
        lines.append(f"{name:<24}" + "".join(f"{value:12.1f}" for value in values))
    return "\n".join(lines)


def memory_allocated(device: Any = None) -> int:
    """Bytes in use by arrays."""
    return memory_stats(device).get("allocated_bytes.all.current", 0)


def memory_reserved(device: Any = None) -> int:
    """Bytes that the pool holds."""
    return memory_stats(device).get("reserved_bytes.all.current", 0)


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that arrays used since the start or `reset_peak_memory_stats`."""
    return memory_stats(device).get("allocated_bytes.all.peak", 0)


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that the pool held since the start or `reset_peak_memory_stats`."""
    return memory_stats(device).get("reserved_bytes.all.peak", 0)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Lets the peaks start again from what is in use."""
    backend = open_backend()
    with device_context(index_of(device)):
        backend.reset_peak()


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Does nothing where there is a GPU: the pool keeps no totals over time."""
    open_backend()


def reset_max_memory_allocated(device: Any = None) -> None:
    """`reset_peak_memory_stats`, which resets all peaks."""
    warnings.warn(
        "torch.cuda.reset_max_memory_allocated now calls torch.cuda.reset_peak_memory_stats, which resets all peaks.",
        FutureWarning,
        stacklevel=2,
    )
    reset_peak_memory_stats(device)


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Limits the pool to a share of the memory of a GPU.

    Args:
        fraction: Between 0 and 1.
        device: As in `memory_stats`.

    Raises:
        TypeError: `fraction` is no float.
        ValueError: It is outside of [0, 1].
    """
    backend = open_backend()
    if not isinstance(fraction, float):
        raise TypeError(f"Invalid type for fraction argument, must be `float`, got {type(fraction).__name__}.")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    with device_context(index_of(device)):
        backend.pool().set_limit(size=int(fraction * get_device_properties(device).total_memory))


def empty_cache() -> None:
    """Gives unused memory of CuPy's pool back to the driver."""
    if is_initialized():
        open_backend().pool().free_all_blocks()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and all bytes of a GPU, as the driver counts them."""
    backend = open_backend()
    with device_context(index_of(device)):
        free, total = backend.xp.cuda.runtime.memGetInfo()
    return int(free), int(total)


def memory_cached(device: Any = None) -> int:
    """Deprecated name of `memory_reserved`."""
    _renamed("memory_cached", "memory_reserved")
    return memory_reserved(device)


def max_memory_cached(device: Any = None) -> int:
    """Deprecated name of `max_memory_reserved`."""
    _renamed("max_memory_cached", "max_memory_reserved")
    return max_memory_reserved(device)


def reset_max_memory_cached(device: Any = None) -> None:
    """`reset_peak_memory_stats`, which resets all peaks."""
    warnings.warn(
        "torch.cuda.reset_max_memory_cached now calls torch.cuda.reset_peak_memory_stats, which resets all peaks.",
        FutureWarning,
        stacklevel=2,
    )
    reset_peak_memory_stats(device)


def _renamed(old: str, new: str) -> None:
    warnings.warn(f"torch.cuda.{old} has been renamed to torch.cuda.{new}", FutureWarning, stacklevel=3)


_lent: dict[int, Any] = {}


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """The address of memory of CuPy's pool, for other libraries; `caching_allocator_delete` gives it back.

    Args:
        size: Bytes.
        device: As in `memory_stats`.
        stream: A `Stream`, or its handle, whose work uses it; by default the current one.
    """
    from ._streams import ExternalStream, StreamContext

    backend = open_backend()
    with device_context(index_of(device)):
        on = ExternalStream(stream, device) if isinstance(stream, int) else stream
        with StreamContext(on):
            memory = backend.xp.cuda.alloc(size)
    _lent[int(memory.ptr)] = memory
    return int(memory.ptr)


def caching_allocator_delete(mem_ptr: int) -> None:
    """Gives back memory of `caching_allocator_alloc`.

    Raises:
        ValueError: It is no such memory.
    """
    if _lent.pop(mem_ptr, None) is None:
        raise ValueError(f"caching_allocator_delete: no memory was lent there, got mem_ptr={mem_ptr}.")


def ipc_collect() -> None:
    """Does nothing: no memory of a GPU is shared between processes."""
