"""Full backward hooks: two identity functions around a module catch the gradients that leave and enter it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import rushlight as rl
from rushlight import Tensor
from rushlight.autograd import Function

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module

Grads = tuple[Tensor | None, ...]


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


class _Gate(Function):
    """Identity; `on_grads` sees, and may replace, the gradients that pass it on the way back."""

    @staticmethod
    def forward(ctx: Any, on_grads: Callable[[Grads], Sequence[Tensor | None]], *tensors: Tensor) -> Any:
        ctx.on_grads = on_grads
        ctx.mark_non_differentiable(*(t for t in tensors if not t.requires_grad))
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        return None, *ctx.on_grads(grads)


class BackwardHooks:
    """The hooks of one call of a module.

    Args:
        module: The module that is being called.
        pre_hooks: ``hook(module, grad_output)``, run when the gradients of the outputs are known.
        hooks: ``hook(module, grad_input, grad_output)``, run when those of the inputs are known.
    """

    def __init__(self, module: Module, pre_hooks: list[Callable[..., Any]], hooks: list[Callable[..., Any]]) -> None:
        self._module, self._pre_hooks, self._hooks = module, pre_hooks, hooks
        self._grad_output: Grads | None = None
        self._inputs = 0  # how many arguments the call has
        self._waits_for_inputs = False

    def wrap_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments with the tensors among them passed through a gate."""
        self._inputs = len(args)
        where = [i for i, value in enumerate(args) if isinstance(value, Tensor)]
        self._waits_for_inputs = rl.is_grad_enabled() and any(args[i].requires_grad for i in where)
        if not self._waits_for_inputs:
            return args

        def on_grads(grads: Grads) -> Sequence[Tensor | None]:
            if self._grad_output is None:  # no gradient came in through the outputs
                return grads
            grad_input = self._run_hooks(self._spread(grads, where, len(args)))
            return [grad_input[i] for i in where]

        return self._gate(args, where, on_grads)

    def wrap_output(self, output: Any) -> Any:
        """The output with the tensors in it (it may be a tensor or a tuple) passed through a gate."""
        values = _as_tuple(output)
        where = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
        if not (rl.is_grad_enabled() and any(values[i].requires_grad for i in where)):
            return output

        def on_grads(grads: Grads) -> Sequence[Tensor | None]:
            self._grad_output = self._spread(grads, where, len(values))
            for hook in self._pre_hooks:
                changed = hook(self._module, self._grad_output)
                if changed is not None:
                    self._grad_output = self._checked(changed, len(values), "pre hook", "grad_output")
            result = [self._grad_output[i] for i in where]
            if not self._waits_for_inputs:
                nothing: Grads = (None,) * self._inputs
                if any(g is not None for g in self._run_hooks(nothing)):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always return None or None "
                        f"for all gradients, got a gradient from a hook of {type(self._module).__name__}."
                    )
            return result

        wrapped = self._gate(values, where, on_grads)
        return wrapped if isinstance(output, tuple) else wrapped[0]

    def _run_hooks(self, grad_input: Grads) -> Grads:
        for hook in self._hooks:
            changed = hook(self._module, grad_input, self._grad_output)
            if changed is not None:
                grad_input = self._checked(changed, len(grad_input), "hook", "grad_input")
        self._grad_output = None
        return grad_input

    @staticmethod
    def _checked(grads: Any, count: int, kind: str, name: str) -> Grads:
        grads = _as_tuple(grads)
        if len(grads) != count:
            raise RuntimeError(
                f"Backward {kind} returned an invalid number of {name}, got {len(grads)}, but expected {count}"
            )
        return grads

    @staticmethod
    def _spread(grads: Grads, where: list[int], count: int) -> Grads:
        spread: list[Tensor | None] = [None] * count
        for i, grad in zip(where, grads, strict=True):
            spread[i] = grad
        return tuple(spread)

    @staticmethod
    def _gate(values: tuple[Any, ...], where: list[int], on_grads: Callable[[Grads], Any]) -> tuple[Any, ...]:
        gated = list(values)
        for i, tensor in zip(where, _Gate.apply(on_grads, *(values[i] for i in where)), strict=True):
            gated[i] = tensor
        return type(values)(gated) if type(values) is tuple else type(values)(*gated)
