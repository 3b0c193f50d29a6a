"""The handle by which a registered hook is taken away again."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterable
from typing import Any


class RemovableHandle:
    """Takes a hook out of the dict it was registered in; it does not keep that dict alive.

    Args:
        hooks_dict: The hooks by number; register the hook under `id`.
        extra_dict: A dict, or several, with entries under the same number.

    Attributes:
        id: A number that no other handle has.
    """

    _numbers = itertools.count()

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.id = next(self._numbers)
        extra: Iterable[Any] = (
            () if extra_dict is None else [extra_dict] if isinstance(extra_dict, dict) else extra_dict
        )
        self._dicts = tuple(weakref.ref(d) for d in (hooks_dict, *extra))

    def remove(self) -> None:
        """Takes the hook away; nothing happens where it is gone already."""
        for ref in self._dicts:
            hooks = ref()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __getstate__(self) -> tuple[Any, int]:
        return tuple(ref() for ref in self._dicts), self.id

    def __setstate__(self, state: tuple[Any, int]) -> None:
        dicts, self.id = state
        self._dicts = tuple(weakref.ref(d) for d in dicts if d is not None)
