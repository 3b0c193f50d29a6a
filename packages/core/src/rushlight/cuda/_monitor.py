"""What the driver's monitoring library says of a GPU: processes, load, temperature, power, clock."""

from __future__ import annotations

import importlib
from typing import Any

from ._device import index_of, open_backend


def _handle(device: Any) -> tuple[Any, Any]:
    """The library and its handle of a GPU, which it may count in another order than CUDA does.

    Raises:
        ModuleNotFoundError: The library is not installed.
    """
    try:
        nvml = importlib.import_module("pynvml")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "nvidia-ml-py does not seem to be installed or it can't be imported (pip install nvidia-ml-py)."
        ) from error
    bus = open_backend().xp.cuda.Device(index_of(device)).pci_bus_id
    nvml.nvmlInit()
    return nvml, nvml.nvmlDeviceGetHandleByPciBusId(bus)


def list_gpu_processes(device: Any = None) -> str:
    """The processes that use a GPU, with the memory that each holds, a line each.

    Args:
        device: Index, string or `rushlight.device`; the current GPU where it is None.
    """
    try:
        nvml, handle = _handle(device)
    except ModuleNotFoundError:
        return "pynvml module not found, please install nvidia-ml-py"
    running = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    lines = [f"process {each.pid:>10d} uses {each.usedGpuMemory / 2**20:>12.3f} MB GPU memory" for each in running]
    return "\n".join([f"GPU:{index_of(device)}", *(lines or ["no processes are running"])])


def memory_usage(device: Any = None) -> int:
    """Percent of the last sample period in which memory of a GPU was read or written."""
    nvml, handle = _handle(device)
    return int(nvml.nvmlDeviceGetUtilizationRates(handle).memory)


def utilization(device: Any = None) -> int:
    """Percent of the last sample period in which a kernel ran on a GPU."""
    nvml, handle = _handle(device)
    return int(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)


def temperature(device: Any = None) -> int:
    """Degrees Celsius of a GPU."""
    nvml, handle = _handle(device)
    return int(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))


def power_draw(device: Any = None) -> int:
    """Milliwatts that a GPU draws."""
    nvml, handle = _handle(device)
    return int(nvml.nvmlDeviceGetPowerUsage(handle))


def clock_rate(device: Any = None) -> int:
    """Megahertz of the multiprocessors of a GPU."""
    nvml, handle = _handle(device)
    return int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))
