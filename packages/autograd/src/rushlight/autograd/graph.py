"""The graph that backward walks: its nodes, and hooks on what it saves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rushlight import Tensor

from . import _C
from ._C import Node as Node

__all__ = [
    "Node",
    "disable_saved_tensors_hooks",
    "increment_version",
    "is_selective_pass",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class saved_tensors_hooks:
    """Context manager: what operators inside save for backward goes through two functions.

    Args:
        pack_hook: Called with each tensor that is saved; returns anything. It must not write to the tensor.
        unpack_hook: Called in backward with what `pack_hook` returned; gives back a tensor of the same values.

    Raises:
        RuntimeError: Hooks are disabled, see `disable_saved_tensors_hooks`.

    Example:
        >>> x = rushlight.ones(2, requires_grad=True)
        >>> with rushlight.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), rushlight.tensor):
        ...     y = (x * x).sum()
        >>> y.backward()
        >>> x.grad
        tensor([2., 2.])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _C.push_saved_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *error: object) -> None:
        _C.pop_saved_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Context manager: what operators inside save for backward waits in the memory of the host.

    Args:
        pin_memory: Whether the copies are in page-locked memory, where the device has such.
        device_type: Unused; tensors go back to the device that they came from.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> Any:
            kept = tensor.cpu()
            return tensor.device, kept.pin_memory() if pin_memory and not tensor.is_cpu else kept

        super().__init__(pack, lambda packed: packed[1].to(packed[0], non_blocking=pin_memory))


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Context manager inside which `saved_tensors_hooks` raises.

    Args:
        error_message: What the RuntimeError says.
    """
    before = _C.disable_saved_hooks(error_message)
    try:
        yield
    finally:
        _C.disable_saved_hooks(before)


def is_selective_pass() -> bool:
    """Whether the backward pass that runs in this thread computes the gradients of given inputs only."""
    return _C.is_selective_pass()


def increment_version(tensor: Tensor | list[Tensor] | tuple[Tensor, ...]) -> None:
    """Counts as an in-place write, so that a backward that saved the tensor before is refused.

    Args:
        tensor: What was written to behind rushlight's back; or several.
    """
    for one in (tensor,) if isinstance(tensor, Tensor) else tensor:
        _C.increment_version(one)
