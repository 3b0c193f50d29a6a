"""RAdam."""

from __future__ import annotations

from typing import Any

from rushlight.optim._elementwise import Elementwise, betas_of
from rushlight.optim.optimizer import _check_betas, _not_negative

__all__ = ["RAdam"]


class RAdam(Elementwise):
    """Adam that scales by the second mean only as far as its variance is known by then (Liu et al., 2020).

    Args:
        params: Tensors, pairs of name and tensor, or groups of them.
        lr: The learning rate.
        betas: How much of the running means of the gradient and of its square is kept at each step.
        eps: Added to the root of the second mean.
        weight_decay: Factor of the parameter that is added to its gradient.
        decoupled_weight_decay: Whether the parameter shrinks by ``lr * weight_decay`` instead, as in `AdamW`.
        foreach: Accepted; there is one implementation, over all parameters of a group at once.
        maximize: Whether to climb.
        capturable: Accepted.
        differentiable: Whether gradients flow through the step, into parameters that are no leaves.
    """

    _operator = "radam_step_"
    _states = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        _not_negative(learning__rate=lr, epsilon__value=eps)
        _check_betas(betas)
        _not_negative(weight_decay__value=weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _options(self, group: dict[str, Any]) -> dict[str, Any]:
        return {**betas_of(group), "eps": group["eps"]}
