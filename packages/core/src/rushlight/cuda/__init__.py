"""`rushlight.cuda`: NVIDIA GPUs, where CuPy finds any. Without one it answers as PyTorch's CPU build does."""

from pkgutil import extend_path as _extend_path

from .._areas import getter as _getter
from .._public import claim as _claim
from . import (
    _graphs as graphs,
    _memory as memory,
    _random as random,
    _streams as streams,
    comm as comm,
    nvtx as nvtx,
    profiler as profiler,
)
from ._device import (
    can_device_access_peer as can_device_access_peer,
    current_blas_handle as current_blas_handle,
    current_device as current_device,
    device as device,
    device_count as device_count,
    device_of as device_of,
    get_arch_list as get_arch_list,
    get_device_capability as get_device_capability,
    get_device_name as get_device_name,
    get_device_properties as get_device_properties,
    get_gencode_flags as get_gencode_flags,
    init as init,
    is_available as is_available,
    is_bf16_supported as is_bf16_supported,
    is_initialized as is_initialized,
    set_device as set_device,
    synchronize as synchronize,
)
from ._graphs import (
    CUDAGraph as CUDAGraph,
    graph as graph,
    graph_pool_handle as graph_pool_handle,
    is_current_stream_capturing as is_current_stream_capturing,
)
from ._memory import (
    OutOfMemoryError as OutOfMemoryError,
    caching_allocator_alloc as caching_allocator_alloc,
    caching_allocator_delete as caching_allocator_delete,
    empty_cache as empty_cache,
    ipc_collect as ipc_collect,
    max_memory_allocated as max_memory_allocated,
    max_memory_cached as max_memory_cached,
    max_memory_reserved as max_memory_reserved,
    mem_get_info as mem_get_info,
    memory_allocated as memory_allocated,
    memory_cached as memory_cached,
    memory_reserved as memory_reserved,
    memory_snapshot as memory_snapshot,
    memory_stats as memory_stats,
    memory_stats_as_nested_dict as memory_stats_as_nested_dict,
    memory_summary as memory_summary,
    reset_accumulated_memory_stats as reset_accumulated_memory_stats,
    reset_max_memory_allocated as reset_max_memory_allocated,
    reset_max_memory_cached as reset_max_memory_cached,
    reset_peak_memory_stats as reset_peak_memory_stats,
    set_per_process_memory_fraction as set_per_process_memory_fraction,
)
from ._monitor import (
    clock_rate as clock_rate,
    list_gpu_processes as list_gpu_processes,
    memory_usage as memory_usage,
    power_draw as power_draw,
    temperature as temperature,
    utilization as utilization,
)
from ._random import (
    get_rng_state as get_rng_state,
    get_rng_state_all as get_rng_state_all,
    initial_seed as initial_seed,
    manual_seed as manual_seed,
    manual_seed_all as manual_seed_all,
    seed as seed,
    seed_all as seed_all,
    set_rng_state as set_rng_state,
    set_rng_state_all as set_rng_state_all,
)
from ._streams import (
    CudaError as CudaError,
    Event as Event,
    ExternalStream as ExternalStream,
    Stream as Stream,
    StreamContext as StreamContext,
    check_error as check_error,
    cudart as cudart,
    cudaStatus as cudaStatus,
    current_stream as current_stream,
    default_stream as default_stream,
    set_stream as set_stream,
    stream as stream,
)

has_half = True
"""Whether there is float16 on GPUs."""
has_magma = False
"""Whether the library MAGMA is used."""

__path__ = _extend_path(__path__, __name__)
_area = _getter(__name__)  # rushlight.cuda.amp


def __getattr__(name: str) -> object:
    if name == "default_generators":  # known once the GPUs are
        from ._random import generators

        return generators()
    if name.endswith(("Tensor", "Storage")):
        from ._types import TYPES

        if name in TYPES:
            return TYPES[name]
    return _area(name)


_claim(globals())
