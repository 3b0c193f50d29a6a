"""Starts and stops NVIDIA's profilers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ._streams import need_cuda

__all__ = ["profile", "start", "stop"]


def start() -> None:
    """Lets a profiler that waits for it begin."""
    need_cuda("profiler").profiler.start()


def stop() -> None:
    """Ends what `start` began."""
    need_cuda("profiler").profiler.stop()


@contextmanager
def profile() -> Iterator[None]:
    """Context that is profiled."""
    start()
    try:
        yield
    finally:
        stop()
