"""Graphs: work of a GPU that is recorded once and started again as a whole."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from ._streams import Stream, StreamContext, current_stream, need_cuda


def is_current_stream_capturing() -> bool:
    """Whether work of the current stream is recorded into a graph instead of being done."""
    return bool(need_cuda("is_current_stream_capturing").get_current_stream().is_capturing())


def graph_pool_handle() -> Any:
    """A pool of memory that several graphs may share, where they are replayed in the order in which they were made."""
    return need_cuda("graph_pool_handle").MemoryPool()


class CUDAGraph:
    """Recorded work of a stream. What it reads and writes stays where it was when it was recorded.

    Raises:
        RuntimeError: There is no GPU.
    """

    def __init__(self) -> None:
        self._cuda = need_cuda("CUDAGraph")
        self._pool: Any = None
        self._graph: Any = None
        self._memory: Any = None

    def capture_begin(self, pool: Any = None) -> None:
        """Records what is put into the current stream from now on, which must not be the default one.

        Args:
            pool: What `graph_pool_handle` or `pool` of another graph returned; by default one of its own.
        """
        stream = self._cuda.get_current_stream()
        if stream.ptr == 0:
            raise RuntimeError("CUDA graphs must be captured on a non-default stream. Use `rushlight.cuda.graph`.")
        self._pool = self._cuda.MemoryPool() if pool is None else pool
        # Memory of the recording belongs to the graph: nobody else may be given it between two replays.
        self._memory = self._cuda.using_allocator(self._pool.malloc)
        self._memory.__enter__()
        stream.begin_capture(self._cuda.runtime.streamCaptureModeRelaxed)

    def capture_end(self) -> None:
        """Ends the recording."""
        if self._memory is None:
            raise RuntimeError("CUDAGraph.capture_end: nothing is being captured. Call capture_begin first.")
        try:
            self._graph = self._cuda.get_current_stream().end_capture()
        finally:
            self._memory.__exit__(None, None, None)
            self._memory = None

    def replay(self) -> None:
        """Does the recorded work again, in the current stream."""
        if self._graph is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        self._graph.launch(self._cuda.get_current_stream())

    def reset(self) -> None:
        """Forgets the recording and its memory."""
        self._graph = self._pool = None

    def pool(self) -> Any:
        """Its pool of memory, for `capture_begin` of another graph."""
        return self._pool


class graph:
    """Context whose work is recorded into a graph.

    Args:
        cuda_graph: The graph.
        pool: As in `CUDAGraph.capture_begin`.
        stream: What records; by default a stream of its own.
    """

    def __init__(self, cuda_graph: CUDAGraph, pool: Any = None, stream: Stream | None = None) -> None:
        self.cuda_graph = cuda_graph
        self.pool = pool
        self.capture_stream = Stream() if stream is None else stream
        self._on_stream = StreamContext(self.capture_stream)

    def __enter__(self) -> None:
        current_stream().synchronize()
        self._on_stream.__enter__()
        self.cuda_graph.capture_begin(self.pool)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.cuda_graph.capture_end()
        finally:
            self._on_stream.__exit__(kind, value, trace)
