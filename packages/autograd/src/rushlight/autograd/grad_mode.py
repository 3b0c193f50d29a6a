"""Context managers and decorators that say whether operators are recorded."""

from collections.abc import Callable
from typing import Any, TypeVar

from ._C import (
    enable_grad as enable_grad,
    inference_mode as inference_mode,
    no_grad as no_grad,
    set_grad_enabled as set_grad_enabled,
)

F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]
