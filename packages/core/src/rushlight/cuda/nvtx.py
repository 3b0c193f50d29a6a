"""Marks and ranges for NVIDIA's profilers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ._streams import need_cuda

__all__ = ["mark", "range", "range_pop", "range_push"]

_depth = 0


def range_push(msg: str) -> int:
    """Opens a range inside of the open ones; returns how many were open."""
    global _depth
    need_cuda("nvtx").nvtx.RangePush(msg)
    _depth += 1
    return _depth - 1


def range_pop() -> int:
    """Closes the innermost range; returns how many are open."""
    global _depth
    need_cuda("nvtx").nvtx.RangePop()
    _depth -= 1
    return _depth


def mark(msg: str) -> None:
    """Marks a moment."""
    need_cuda("nvtx").nvtx.Mark(msg)


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Context as a range; the message is formatted with the further arguments."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
