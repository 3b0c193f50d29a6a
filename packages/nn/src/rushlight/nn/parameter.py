"""Tensors that a module owns: parameters and buffers."""

from __future__ import annotations

from typing import Any, cast

import rushlight as rl
from rushlight import Tensor
from rushlight._C import _disabled_torch_function_impl


def _as_member(cls: type[Tensor], data: Tensor | None, requires_grad: bool) -> Any:
    if data is None:
        data = rl.empty(0)
    elif not isinstance(data, Tensor):
        raise TypeError(
            f"{cls.__name__}: data must be a Tensor, got data={type(data).__name__}. Use torch.as_tensor(data)."
        )
    return Tensor._make_subclass(cls, data, requires_grad)


class Parameter(Tensor):
    """A tensor that a `Module` trains: assigned as an attribute of one, it joins ``parameters()``.

    Args:
        data: The values, which the parameter shares. Default: an empty tensor.
        requires_grad: Whether gradients are recorded. Default: True.

    Example:
        >>> import rushlight as torch
        >>> torch.nn.Parameter(torch.zeros(2))
        Parameter containing:
        tensor([0., 0.], requires_grad=True)
    """

    __torch_function__ = _disabled_torch_function_impl  # results of operators are plain tensors
    _prints_as_tensor = True

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        return _as_member(cls, data, requires_grad)

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        if type(self) is not Parameter:
            return cast(tuple[Any, ...], super().__reduce_ex__(protocol))
        from rushlight._rebuild import NoHooks, rebuild_parameter, rebuild_parameter_with_state

        arguments = (self.detach(), self.requires_grad, NoHooks())
        if self._attributes:
            return rebuild_parameter_with_state, (*arguments, self._attributes)
        return rebuild_parameter, arguments


class Buffer(Tensor):
    """A tensor that a `Module` keeps but does not train: assigned as an attribute of one, it joins ``buffers()``.

    Args:
        data: The values, which the buffer shares. Default: an empty tensor.
        persistent: Whether ``state_dict()`` holds it. Default: True.
    """

    __torch_function__ = _disabled_torch_function_impl
    _prints_as_tensor = True
    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        buffer = _as_member(cls, data, False if data is None else data.requires_grad)
        buffer.persistent = persistent
        return buffer
