"""Adamax."""

from __future__ import annotations

from typing import Any

from rushlight.optim._elementwise import Elementwise, betas_of
from rushlight.optim.optimizer import _check_betas, _not_negative

__all__ = ["Adamax"]


class Adamax(Elementwise):
    """Adam by the greatest gradients, which fade, instead of the mean of their squares (Kingma and Ba, 2015).

    Args:
        params: Tensors, pairs of name and tensor, or groups of them.
        lr: The learning rate.
        betas: How much of the running mean and of the greatest gradient is kept at each step.
        eps: Added to absolute gradients.
        weight_decay: Factor of the parameter that is added to its gradient.
        foreach: Accepted; there is one implementation, over all parameters of a group at once.
        maximize: Whether to climb.
        differentiable: Whether gradients flow through the step, into parameters that are no leaves.
        capturable: Accepted.
    """

    _operator = "adamax_step_"
    _states = ("exp_avg", "exp_inf")

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        _not_negative(learning__rate=lr, epsilon__value=eps)
        _check_betas(betas)
        _not_negative(weight_decay__value=weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _options(self, group: dict[str, Any]) -> dict[str, Any]:
        return {**betas_of(group), "eps": group["eps"]}
