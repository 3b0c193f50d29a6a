"""The common part of optimisers that treat every element alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import _ops, _ops_optim
from rushlight.optim.optimizer import Optimizer, scalar_dtype


class Elementwise(Optimizer):
    """Steps all parameters of a group by one call of an operator of `rushlight.nn._ops_optim`.

    Attributes:
        _operator: Name of the operator.
        _states: Names of the state of a parameter, in the order of the operator's lists.
    """

    _operator: ClassVar[str]
    _states: ClassVar[tuple[str, ...]]

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        """The state of a parameter before its first step, without ``"step"``."""
        return {name: rl.zeros_like(param, memory_format=rl.preserve_format) for name in self._used(group)}

    def _used(self, group: dict[str, Any]) -> tuple[str, ...]:
        """Those of `_states` that the options of a group call for."""
        return self._states

    def _options(self, group: dict[str, Any]) -> dict[str, Any]:
        """The numbers that the operator takes besides ``lr``, ``weight_decay`` and ``maximize``."""
        raise NotImplementedError

    def _step_sparse(self, param: Tensor, group: dict[str, Any]) -> None:
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Changes the parameters once; see `Optimizer.step`."""
        loss = self._loss(closure)
        for group in self.param_groups:
            with rl.set_grad_enabled(rl.is_grad_enabled() and group.get("differentiable", False)):
                self._step_group(group)
        return loss

    def _step_group(self, group: dict[str, Any]) -> None:
        params = [param for param in group["params"] if param.grad is not None]
        sparse = [param for param in params if param.grad.layout is not rl.strided]
        for param in sparse:
            self._step_sparse(param, group)
        if sparse:
            params = [param for param in params if param.grad.layout is rl.strided]
        states = [self.state[param] or self._begin(param, group) for param in params]
        used = self._used(group)
        options = self._options(group)
        for name in ("weight_decay", "decoupled_weight_decay"):
            if name in group:
                options[name] = group[name]
        differentiable = group.get("differentiable", False)
        operator = (
            getattr(_ops_optim, self._operator).composite_kernel if differentiable else getattr(_ops, self._operator)
        )
        operator(
            params,
            [param.grad for param in params],
            *([state[name] for state in states] if name in used else [] for name in self._states),
            [state["step"] for state in states],
            lr=group["lr"] if differentiable else float(group["lr"]),
            maximize=group["maximize"],
            **options,
        )

    def _begin(self, param: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        state = self.state[param]
        state["step"] = rl.tensor(0.0, dtype=scalar_dtype())
        state.update(self._new_state(param, group))
        return state


def betas_of(group: dict[str, Any]) -> dict[str, float]:
    """The two shares of running means that are kept, by the names that operators give them."""
    return {"beta1": float(group["betas"][0]), "beta2": float(group["betas"][1])}
