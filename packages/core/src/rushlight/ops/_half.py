"""Half precision in operators that are made of others: computed in float32, rounded once."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce, wraps
from typing import Any

from .. import _C

HALVES = (_C.float16, _C.bfloat16)


def rounded_once(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A definition over operators whose half-precision tensors are float32 inside, and only the result is rounded."""

    @wraps(fn)
    def wide(*args: Any) -> Any:
        tensors = [
            x for arg in args for x in (arg if isinstance(arg, (tuple, list)) else (arg,)) if isinstance(x, _C.Tensor)
        ]
        floating = [x.dtype for x in tensors if x.is_floating_point() or x.is_complex()]
        if not any(dtype in HALVES for dtype in floating):
            return fn(*args)
        dtype = reduce(_C.promote_types, floating)
        result = fn(*(x.float() if isinstance(x, _C.Tensor) and x.dtype in HALVES else x for x in args))
        narrow = lambda x: x.to(dtype) if x.dtype is _C.float32 else x
        return tuple(map(narrow, result)) if isinstance(result, tuple) else narrow(result)

    return wide
