"""Streams and events: the queues of a GPU and the marks in them."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from ._device import device as device_context, index_of, is_available, open_backend


class CudaError(RuntimeError):
    """An error of the CUDA runtime.

    Args:
        code: The runtime's number of it.
    """

    def __init__(self, code: int) -> None:
        runtime = open_backend().xp.cuda.runtime
        super().__init__(f"{runtime.getErrorString(code)} ({code})")


class cudaStatus:
    """Numbers of the CUDA runtime's errors."""

    SUCCESS = 0
    ERROR_NOT_READY = 34


def cudart() -> Any:
    """The CUDA runtime, as CuPy has it: functions without the prefix "cuda", as `getDeviceCount`."""
    return need_cuda("cudart").runtime


def check_error(res: int) -> None:
    """Raises where a function of the CUDA runtime returned an error.

    Raises:
        CudaError: `res` is not `cudaStatus.SUCCESS`.
    """
    if res != cudaStatus.SUCCESS:
        raise CudaError(res)


def need_cuda(what: str) -> Any:
    """CuPy's `cuda` module, or PyTorch's error for a build without GPUs."""
    if not is_available():
        raise RuntimeError(f"torch.cuda.{what} requires CUDA support. `rushlight.cuda.is_available()` is False.")
    return open_backend().xp.cuda


class Event:
    """A mark in a stream.

    Args:
        enable_timing: Whether `elapsed_time` can be asked for.
        blocking: Whether `synchronize` sleeps instead of spinning.
        interprocess: Whether other processes may use it.

    Raises:
        RuntimeError: There is no GPU.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self._event = need_cuda("Event").Event(
            block=blocking, disable_timing=not enable_timing, interprocess=interprocess
        )

    def record(self, stream: Stream | None = None) -> None:
        """Puts the mark at the end of a stream, the current one where it is None."""
        self._event.record((stream or current_stream())._stream)

    def wait(self, stream: Stream | None = None) -> None:
        """Makes what is put into a stream from now on wait for the mark."""
        (stream or current_stream())._stream.wait_event(self._event)

    @property
    def cuda_event(self) -> int:
        """The handle, for other libraries."""
        return int(self._event.ptr)

    def query(self) -> bool:
        """Whether all work before the mark is done."""
        return bool(self._event.done)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this mark to another."""
        return float(need_cuda("Event").get_elapsed_time(self._event, end_event._event))

    def synchronize(self) -> None:
        """Waits for all work before the mark."""
        self._event.synchronize()


class Stream:
    """A queue of work of a GPU.

    Args:
        device: Index, string or `rushlight.device`; the current GPU where it is None.
        priority: Lower numbers go first.

    Raises:
        RuntimeError: There is no GPU.
    """

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        cuda = need_cuda("Stream")
        with device_context(index_of(device)):
            self._take(cuda.Stream(non_blocking=True, priority=priority))

    @classmethod
    def _of(cls, stream: Any) -> Stream:
        wrapped = cls.__new__(cls)
        wrapped._take(stream)
        return wrapped

    def _take(self, stream: Any) -> None:
        from .. import device as Device

        self._stream = stream
        self.cuda_stream = int(stream.ptr)
        self.device = Device("cuda", max(stream.device_id, 0))

    def query(self) -> bool:
        """Whether all work is done."""
        return bool(self._stream.done)

    def synchronize(self) -> None:
        """Waits for all work."""
        self._stream.synchronize()

    def record_event(self, event: Event | None = None) -> Event:
        """Puts a mark, a new one where it is None, at the end."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Makes what comes from now on wait for a mark."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Makes what comes from now on wait for the work that another stream holds."""
        self.wait_event(stream.record_event())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.device, self.cuda_stream) == (other.device, other.cuda_stream)

    def __hash__(self) -> int:
        return hash((self.device, self.cuda_stream))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream that another library made, which must outlive this object.

    Args:
        stream_ptr: Its handle as an int.
        device: Index, string or `rushlight.device`; the current GPU where it is None.
    """

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        cuda = need_cuda("ExternalStream")
        with device_context(index_of(device)):
            self._take(cuda.ExternalStream(stream_ptr, index_of(device)))


def current_stream(device: Any = None) -> Stream:
    """The stream that work goes to now."""
    cuda = open_backend().xp.cuda
    with device_context(index_of(device)):
        return Stream._of(cuda.get_current_stream())


def default_stream(device: Any = None) -> Stream:
    """The stream that work goes to where none is chosen."""
    cuda = open_backend().xp.cuda
    with device_context(index_of(device)):
        return Stream._of(cuda.Stream.null)


def set_stream(stream: Stream | None) -> None:
    """Sends work to a stream from now on; None changes nothing."""
    if stream is not None:
        stream._stream.use()


class StreamContext:
    """Context in which work goes to a stream; None changes nothing, nor does anything where there is no GPU."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None and is_available():
            self._previous = current_stream(self.stream.device)
            set_stream(self.stream)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.stream is not None and is_available():
            set_stream(self._previous)


def stream(stream: Stream | None) -> StreamContext:
    """Context in which work goes to a stream."""
    return StreamContext(stream)
