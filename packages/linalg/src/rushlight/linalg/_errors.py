"""The exception of failing decompositions, and whom it names."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any


class LinAlgError(RuntimeError):
    """A matrix that a routine cannot factor or invert; the message names the routine, the batch element and why."""


LinAlgError.__module__ = "rushlight.linalg"

_INNER = re.compile(r"(torch\.)?linalg\.\w+: ")


def renamed(error: RuntimeError, op: str) -> RuntimeError:
    """The error of an operator of this wheel under the name of the one that was called, which is made of it."""
    inner = _INNER.match(str(error))
    return type(error)(f"{op}: {str(error)[inner.end() :]}") if inner else error


def named(op: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Lets the errors of a function name the operator that was called."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except RuntimeError as error:
                raise renamed(error, op) from None

        return call

    return decorate


def check_inverted(op: str, info: Any) -> None:
    """Raises LinAlgError for the first matrix that has no inverse, from what `inv_ex` says of each."""
    if info.device.type == "meta" or not bool((info != 0).any()):
        return
    codes = info.reshape(-1).tolist()
    first = next(i for i, code in enumerate(codes) if code)
    where = f"(Batch element {first}): " if info.ndim else ""
    raise LinAlgError(
        f"{op}: {where}The diagonal element {codes[first]} is zero, the inversion could not be completed because the "
        "input matrix is singular."
    )
