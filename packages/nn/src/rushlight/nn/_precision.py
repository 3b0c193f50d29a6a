"""Half types compute in float32 and are rounded once."""

from __future__ import annotations

from typing import TypeVar

import rushlight as rl
from rushlight import Tensor

Optional = TypeVar("Optional", Tensor, "Tensor | None")


def wide(tensor: Optional) -> Optional:
    """Float32 for float16 and bfloat16; any other tensor, and None, as it is."""
    if tensor is not None and tensor.dtype in (rl.float16, rl.bfloat16):
        return tensor.float()
    return tensor
