"""Modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import Module
from rushlight.nn.utils import stateless

__all__ = ["functional_call", "stack_module_state"]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with other tensors in the place of its parameters and buffers; the module stays as it is.

    Args:
        module: The module.
        parameter_and_buffer_dicts: Tensors by their names in `module`, or several such dicts without a name in common.
        args: The argument, or a tuple of the arguments, of the call.
        kwargs: Its keyword arguments.
        tie_weights: Whether a tensor for one of the names of a shared parameter stands in for all of them.
        strict: Whether names that are missing or unknown raise.

    Raises:
        ValueError: Two dicts have a name in common.
        RuntimeError: `strict` is broken.

    Example:
        >>> layer = rushlight.nn.Linear(2, 1, bias=False)
        >>> rushlight.func.functional_call(layer, {"weight": rushlight.ones(1, 2)}, rushlight.tensor([1.0, 2.0]))
        tensor([3.])
    """
    dicts = [parameter_and_buffer_dicts] if isinstance(parameter_and_buffer_dicts, dict) else parameter_and_buffer_dicts
    tensors: dict[str, Tensor] = {}
    for values in dicts:
        common = sorted(tensors.keys() & values.keys())
        if common:
            raise ValueError(f"{common[0]} appears in multiple dictionaries; behavior of functional call is ambiguous")
        tensors |= values
    return stateless.functional_call(module, tensors, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of several modules of one class, stacked by name along a new first dimension.

    Returns:
        New leaves that require gradients as the parameters do, and the buffers.

    Raises:
        RuntimeError: There are no models, or they differ in class or mode, or a parameter requires a gradient in some.

    Example:
        >>> params, buffers = rushlight.func.stack_module_state([rushlight.nn.Linear(2, 3) for _ in range(4)])
        >>> params["weight"].shape
        torch.Size([4, 3, 2])
    """
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(model) for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    params: dict[str, Tensor] = {}
    for name, param in models[0].named_parameters():
        values = [model.get_parameter(name) for model in models]
        if len({value.requires_grad for value in values}) > 1:
            raise RuntimeError(f"Expected {name} parameter to have the same .requires_grad for each model")
        params[name] = rl.stack([value.detach() for value in values]).requires_grad_(param.requires_grad)
    buffers = {name: rl.stack([model.get_buffer(name) for model in models]) for name, _ in models[0].named_buffers()}
    return params, buffers
