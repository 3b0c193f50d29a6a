"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.optim._elementwise import Elementwise
from rushlight.optim.optimizer import _not_negative, scalar_dtype

__all__ = ["ASGD"]


class ASGD(Elementwise):
    """Stochastic gradient descent whose state ``"ax"`` is the mean of the parameter (Polyak and Juditsky, 1992).

    Args:
        params: Tensors, pairs of name and tensor, or groups of them.
        lr: The learning rate of the first step.
        lambd: How quickly the learning rate falls and the parameter shrinks.
        alpha: The power by which the learning rate falls.
        t0: The step at which the mean begins.
        weight_decay: Factor of the parameter that is added to its gradient.
        foreach: Accepted; there is one implementation, over all parameters of a group at once.
        maximize: Whether to climb.
        differentiable: Whether gradients flow through the step, into parameters that are no leaves.
        capturable: Accepted.
    """

    _operator = "asgd_step_"
    _states = ("ax", "mu", "eta")

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        _not_negative(learning__rate=lr, weight_decay__value=weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        dtype = scalar_dtype()
        return {
            "eta": rl.tensor(float(group["lr"]), dtype=dtype),
            "mu": rl.tensor(1.0, dtype=dtype),
            "ax": rl.zeros_like(param, memory_format=rl.preserve_format),
        }

    def _options(self, group: dict[str, Any]) -> dict[str, Any]:
        return {name: group[name] for name in ("lambd", "alpha", "t0")}
