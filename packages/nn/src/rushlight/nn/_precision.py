"""Which dtypes an operator takes. Half types compute in float32 and are rounded once."""

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


def check_floats(op: str, input: Tensor, mixed: bool = False, **others: Tensor | None) -> None:
    """Refuses an input that is not of real floats, and other tensors of another dtype.

    Args:
        op: Name for the message.
        input: Decides the dtype.
        mixed: Whether the others may be float32 beside an input of halves.
        **others: By the names of the arguments.

    Raises:
        NotImplementedError: The input has no floats.
        RuntimeError: Dtypes differ.
    """
    if not input.is_floating_point():
        raise NotImplementedError(f'"{op}" not implemented for {input.dtype}. Convert the input to floats.')
    allowed = {input.dtype, rl.float32} if mixed and input.dtype.itemsize == 2 else {input.dtype}
    for name, tensor in others.items():
        if tensor is not None and tensor.dtype not in allowed:
            raise RuntimeError(
                f"mixed dtype (CPU): all inputs must share same datatype. {op}: got input of {input.dtype} and {name} "
                f"of {tensor.dtype}. Convert one with .to(dtype)."
            )
