"""The generator of random numbers of this backend."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from rushlight.plugin.source import Node, store

from ._array import INT64, Array, devices


class Generator:
    """Random numbers by their position in a stream (Philox): any number of work items draw at once.

    Attributes:
        seed: Which stream.
        position: Of the next number in it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.manual_seed(0)

    def manual_seed(self, seed: int) -> None:
        """Starts a stream."""
        self.seed, self.position = seed % 2**63, 0

    def draw(self, law: str, shape: tuple[int, ...], dtype: Any, index: int) -> Array:
        """Numbers in [0, 1) for law "uniform", of mean 0 and variance 1 for "normal"."""
        dtype = np.dtype(dtype)
        result = Array.empty(shape, dtype, devices()[index])
        with self._lock:
            first, self.position = self.position, self.position + result.size
        code = f"${law}($philox({{0}}, {{1}} + i))"
        store(result, Array.put_off(shape, dtype, Node(code, (self.seed, first), (INT64, INT64), dtype), result.device))
        return result
