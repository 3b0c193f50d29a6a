"""Adadelta."""

from __future__ import annotations

from typing import Any

from rushlight.optim._elementwise import Elementwise
from rushlight.optim.optimizer import _not_negative

__all__ = ["Adadelta"]


class Adadelta(Elementwise):
    """Steps in units of the parameter: gradients scaled by recent steps over recent gradients (Zeiler, 2012).

    Args:
        params: Tensors, pairs of name and tensor, or groups of them.
        lr: Factor of the steps.
        rho: How much of the running means of squares is kept at each step.
        eps: Added to both means.
        weight_decay: Factor of the parameter that is added to its gradient.
        foreach: Accepted; there is one implementation, over all parameters of a group at once.
        capturable: Accepted.
        maximize: Whether to climb.
        differentiable: Whether gradients flow through the step, into parameters that are no leaves.
    """

    _operator = "adadelta_step_"
    _states = ("square_avg", "acc_delta")

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _not_negative(learning__rate=lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        _not_negative(epsilon__value=eps, weight_decay__value=weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _options(self, group: dict[str, Any]) -> dict[str, Any]:
        return {"rho": group["rho"], "eps": group["eps"]}
