"""Devices, streams, events and pools that only keep count."""

import threading
import time
import types
import weakref

log = []
"""What was asked: ("launch", stream), ("record", stream), ("wait", stream), ("copy", from, to)."""

_here = threading.local()


class Device:
    def __init__(self, device=None):
        self.id = runtime.getDevice() if device is None else int(device)

    def __enter__(self):
        self._outer = runtime.getDevice()
        runtime.setDevice(self.id)
        return self

    def __exit__(self, *error):
        runtime.setDevice(self._outer)

    def __eq__(self, other):
        return self.id == getattr(other, "id", other)

    def __hash__(self):
        return self.id

    def __int__(self):
        return self.id

    @property
    def pci_bus_id(self):
        return f"0000:0{self.id}:00.0"

    def synchronize(self):
        log.append(("synchronize", self.id))


class Pool:
    """Bytes in use and held of one device."""

    def __init__(self):
        self.used = self.held = self.limit = 0

    def count(self, array):
        size = -(-array.nbytes // 512) * 512
        if self.limit and self.used + size > self.limit:
            raise MemoryError("Out of memory allocating")
        self.used += size
        self.held = max(self.held, self.used)
        block = {"device_id": runtime.getDevice(), "mem_size": size, "mem_ptr": array.ctypes.data, "pmem_id": 0}
        weakref.finalize(array, self._free, block)
        for hook in hooks:
            hook.malloc_postprocess(size=array.nbytes, **block)

    def _free(self, block):
        self.used -= block["mem_size"]
        for hook in hooks:
            hook.free_postprocess(**block)

    def used_bytes(self):
        return self.used

    def total_bytes(self):
        return self.held

    def free_all_blocks(self, stream=None):
        self.held = self.used

    def set_limit(self, size=None, fraction=None):
        self.limit = size


class MemoryPool(Pool):
    def malloc(self, size):
        return alloc(size)


class using_allocator:
    def __init__(self, allocator=None):
        self.allocator = allocator

    def __enter__(self):
        log.append(("allocator", self.allocator is not None))

    def __exit__(self, *error):
        log.append(("allocator", False))


def alloc(size):
    return types.SimpleNamespace(ptr=2**20 + size)


class nvtx:
    RangePush = staticmethod(lambda message, *rest: log.append(("push", message)))
    RangePop = staticmethod(lambda: log.append(("pop",)))
    Mark = staticmethod(lambda message, *rest: log.append(("mark", message)))


class profiler:
    start = staticmethod(lambda: log.append(("profile",)))
    stop = staticmethod(lambda: log.append(("profiled",)))


class nvrtc:
    getSupportedArchs = staticmethod(lambda: (90, 75, 80))


class MemoryHook:
    def __enter__(self):
        hooks.append(self)
        return self

    def __exit__(self, *error):
        hooks.remove(self)


class PinnedPool:
    def __init__(self):
        self.given = 0

    def free_all_blocks(self):
        self.given = 0


pinned = PinnedPool()


def alloc_pinned_memory(size):
    pinned.given += size
    return memoryview(bytearray(max(size, 1)))


hooks = []
pools = [Pool(), Pool()]


class Stream:
    def __init__(self, null=False, non_blocking=False, ptds=False, priority=0):
        self.device_id = -1 if null else runtime.getDevice()
        self.priority = priority
        self.ptr = 0 if null else id(self)
        self._graph = None

    def use(self):
        _current()[runtime.getDevice()] = self
        return self

    def __enter__(self):
        self._outer = get_current_stream()
        return self.use()

    def __exit__(self, *error):
        self._outer.use()

    @property
    def done(self):
        return True

    def synchronize(self):
        log.append(("synchronize stream", self.ptr))

    def wait_event(self, event):
        log.append(("wait", self.ptr))

    def record(self, event=None):
        event = event or Event()
        event.record(self)
        return event

    def begin_capture(self, mode=None):
        self._graph = len(log)

    def end_capture(self):
        graph, self._graph = Graph(log[self._graph :]), None
        return graph

    def is_capturing(self):
        return self._graph is not None


class ExternalStream(Stream):
    def __init__(self, ptr, device_id=-1):
        super().__init__()
        self.ptr, self.device_id = ptr, device_id


class Graph:
    def __init__(self, work):
        self.work = work

    def launch(self, stream=None):
        log.extend(self.work)


Stream.null = Stream.__new__(Stream)
Stream.null.__dict__.update(device_id=-1, priority=0, ptr=0, _graph=None)


def _current():
    if not hasattr(_here, "streams"):
        _here.streams = {}
    return _here.streams


def get_current_stream(device_id=-1):
    return _current().get(runtime.getDevice() if device_id < 0 else device_id, Stream.null)


class Event:
    def __init__(self, block=False, disable_timing=False, interprocess=False):
        self.disable_timing = disable_timing
        self.at = None
        self.ptr = id(self)

    def record(self, stream=None):
        self.at = time.perf_counter()
        log.append(("record", (stream or get_current_stream()).ptr))

    @property
    def done(self):
        return True

    def synchronize(self):
        log.append(("synchronize event",))


def get_elapsed_time(start, end):
    return (end.at - start.at) * 1e3


class _Runtime(types.SimpleNamespace):
    def getDeviceCount(self):
        return len(pools)

    def getDevice(self):
        return getattr(_here, "device", 0)

    def setDevice(self, index):
        if not 0 <= index < len(pools):
            raise RuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
        _here.device = index

    def getDeviceProperties(self, index):
        return {
            "name": b"Fake GPU",
            "totalGlobalMem": 2**34,
            "multiProcessorCount": 8,
            "major": 9,
            "minor": 0,
        }

    def deviceCanAccessPeer(self, index, peer):
        return int(index != peer)

    def memGetInfo(self):
        return 2**34 - pools[self.getDevice()].held, 2**34

    def getErrorString(self, code):
        return f"error {code}"

    def runtimeGetVersion(self):
        return 13000


runtime = _Runtime(streamCaptureModeRelaxed=2)
device = types.SimpleNamespace(get_cublas_handle=lambda: 1)
