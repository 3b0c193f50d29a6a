"""A device: its queue, its pool of memory, its kernels, and events on it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl.tools import ImmediateAllocator, MemoryPool

from rushlight.plugin.source import OPENCL

OUT_OF_BOUNDS = 1


class Device:
    """One OpenCL device. Work runs in the order in which it is given, behind the host's back.

    Attributes:
        index: Its place in `devices()`.
        queue: The queue that takes work now.
        pool: Freed memory, kept by size for the next array. Work in order makes reuse safe: whatever still reads a
            freed buffer runs before what writes to it again.
    """

    def __init__(self, index: int, device: cl.Device) -> None:
        self.index = index
        self.info = device
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        self.pool = MemoryPool(ImmediateAllocator(self.queue))
        self._lock = threading.Lock()
        self._kernels: dict[str, cl.Kernel] = {}
        self._fault = cl.Buffer(
            self.context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=np.zeros(1, "i4")
        )

    def allocate(self, nbytes: int) -> Any:
        """A buffer of at least `nbytes` bytes.

        Raises:
            MemoryError: The device has not as many.
        """
        if nbytes > self.info.max_mem_alloc_size:
            raise MemoryError(f"opencl: {nbytes} bytes in one piece are more than {self.info.max_mem_alloc_size}.")
        try:
            return self.pool.allocate(max(nbytes, 1))
        except cl.MemoryError as error:
            raise MemoryError(f"opencl: the device has no room for {nbytes} bytes.") from error

    def run(self, source: str, arguments: Sequence[Any], size: Sequence[int], group: Sequence[int]) -> None:
        """Starts the kernel `run` of a source, which is compiled at its first use.

        Args:
            source: OpenCL C over the names of `rushlight.plugin.source`. A kernel that has a parameter `fault` can
                raise: it writes OUT_OF_BOUNDS there.
            arguments: Buffers, NumPy scalars, and arrays of bytes for structs, in the order of the parameters.
            size: Work items in each dimension; rounded up to whole groups, so that kernels must check their place.
            group: Work items of a group in each dimension. Drivers compile anew for other groups.
        """
        with self._lock:  # a kernel object keeps its arguments
            kernel = self._kernels.get(source) or self._compile(source)
            for position, argument in enumerate(arguments):
                kernel.set_arg(position, argument)
            whole = [-(-n // g) * g for n, g in zip(size, group, strict=True)]
            may_fail = kernel.num_args > len(arguments)
            if may_fail:
                kernel.set_arg(len(arguments), self._fault)
            cl.enqueue_nd_range_kernel(self.queue, kernel, whole, group)
        if may_fail:
            self._raise_fault()

    def _compile(self, source: str) -> cl.Kernel:
        program = cl.Program(self.context, OPENCL + source).build(["-cl-std=CL1.2", "-w"])
        kernel = self._kernels[source] = cl.Kernel(program, "run")
        return kernel

    def _raise_fault(self) -> None:
        fault = np.empty(1, "i4")
        cl.enqueue_copy(self.queue, fault, self._fault)
        if fault[0] == OUT_OF_BOUNDS:
            cl.enqueue_copy(self.queue, self._fault, np.zeros(1, "i4"))
            raise IndexError("index out of range: an index is outside of the dimension that it points into")

    def synchronize(self) -> None:
        """Returns when all work is done."""
        self.queue.finish()

    @contextmanager
    def stream(self) -> Iterator[cl.CommandQueue]:
        """Gives the work of a block to a queue of its own, with timing for `Event`.

        It starts after what was given before, and what is given afterwards starts after it.
        """
        outer = self.queue
        inner = cl.CommandQueue(self.context, properties=cl.command_queue_properties.PROFILING_ENABLE)
        cl.enqueue_barrier(inner, wait_for=[cl.enqueue_marker(outer)])
        outer.flush()
        self.queue = inner
        try:
            yield inner
        finally:
            self.queue = outer
            cl.enqueue_barrier(outer, wait_for=[cl.enqueue_marker(inner)])
            inner.flush()


class Event:
    """A point in the work of a device.

    Example:
        >>> with device.stream():
        ...     before = Event(device)
        ...     y = x @ x
        ...     after = Event(device)
        >>> after.seconds_since(before)
    """

    def __init__(self, device: Device) -> None:
        self._marker = cl.enqueue_marker(device.queue)
        device.queue.flush()

    def done(self) -> bool:
        """Whether all work before it is done."""
        return bool(self._marker.command_execution_status == cl.command_execution_status.COMPLETE)

    def wait(self) -> None:
        """Returns when all work before it is done."""
        self._marker.wait()

    def seconds_since(self, earlier: Event) -> float:
        """Time of the device between two events of one `Device.stream`."""
        self.wait()
        return float(self._marker.profile.end - earlier._marker.profile.end) * 1e-9


@cache
def devices() -> tuple[Device, ...]:
    """Every OpenCL device of this machine, opened at the first call."""
    found = [device for platform in cl.get_platforms() for device in platform.get_devices()]
    return tuple(Device(index, device) for index, device in enumerate(found))
