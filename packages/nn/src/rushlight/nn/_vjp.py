"""Gradients of an op from its portable definition: differentiable, and on every device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor


def vjp(function: Callable[..., Tensor], inputs: Sequence[Tensor], grad: Tensor) -> Any:
    """The gradients of ``function(*inputs)`` with respect to its inputs, None for integers.

    Args:
        function: Made of differentiable ops.
        inputs: Tensors; their own history is kept, so that the result can be differentiated where gradients are on.
        grad: The gradient of the result.
    """
    again = rl.is_grad_enabled()
    with rl.enable_grad():
        own = [
            tensor.view_as(tensor) if again else tensor.detach() for tensor in inputs
        ]  # also of one tensor given twice
        wanted = [tensor for tensor in own if tensor.is_floating_point()]
        for tensor in wanted:
            if not tensor.requires_grad:
                tensor.requires_grad_()
        found = rl.autograd.grad(function(*own), wanted, grad, create_graph=again, allow_unused=True)
    grads = iter(found)
    return tuple(next(grads) if tensor.is_floating_point() else None for tensor in own)
