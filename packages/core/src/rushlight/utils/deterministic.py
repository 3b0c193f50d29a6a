"""What deterministic mode does beside choosing algorithms.

Attributes:
    fill_uninitialized_memory: Whether `empty` and its kin give NaN, or the largest integer, while
        `rushlight.use_deterministic_algorithms(True)` is on. True unless set otherwise.
"""

from __future__ import annotations

import sys
from types import ModuleType

from rushlight import _C


class _Settings(ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        return _C.determinism()[2]

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, value: bool) -> None:
        mode, warn_only, _, batch_invariant = _C.determinism()
        _C.set_determinism(mode, warn_only, value, batch_invariant)


sys.modules[__name__].__class__ = _Settings
