"""The old name of Tensor."""

from __future__ import annotations

import warnings
from typing import Any

from rushlight import Tensor

__all__ = ["Variable"]


class _VariableMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableMeta):
    """Deprecated: every Tensor is a Variable, and calling it gives a Tensor.

    Args:
        data: The values.
        requires_grad: Whether gradients are recorded.
    """

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: bool | None = None) -> Any:
        """A Tensor over the memory of `data`, without its history."""
        if volatile:
            warnings.warn("volatile was removed and now has no effect. Use `with no_grad():` instead.", stacklevel=2)
        if data is None:
            import rushlight

            data = rushlight.empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)
