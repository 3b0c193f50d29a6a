"""Groups of processes, each played by a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from rushlight.plugin import Collectives

T = TypeVar("T")


class _Memory:
    """A store in this process."""

    def __init__(self, timeout: float) -> None:
        self._values: dict[str, bytes] = {}
        self._changed = threading.Condition()
        self._timeout = timeout

    def set(self, key: str, value: bytes) -> None:
        with self._changed:
            self._values[key] = value
            self._changed.notify_all()

    def get(self, key: str) -> bytes:
        with self._changed:
            if not self._changed.wait_for(lambda: key in self._values, self._timeout):
                raise TimeoutError(f"nobody has set the key in {self._timeout:g} s, got key={key!r}.")
            return self._values[key]


def run_group(collectives: type[Collectives], size: int, fn: Callable[[Any], T], timeout: float = 60.0) -> list[T]:
    """Calls a function in every member of a group; a thread stands for each process.

    Args:
        collectives: What connects them, as `rushlight.plugin.collectives(name)`.
        size: How many members.
        fn: Called with the member's instance of `collectives`.
        timeout: Seconds after which waiting for a key of the store raises TimeoutError.

    Returns:
        What the calls returned, by rank.
    """
    store = _Memory(timeout)
    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(lambda rank: fn(collectives(store, rank, size)), range(size)))
