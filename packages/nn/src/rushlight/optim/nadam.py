"""NAdam."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.optim._elementwise import Elementwise, betas_of
from rushlight.optim.optimizer import _check_betas, _not_negative, scalar_dtype

__all__ = ["NAdam"]


class NAdam(Elementwise):
    """Adam with Nesterov's momentum (Dozat, 2016).

    Args:
        params: Tensors, pairs of name and tensor, or groups of them.
        lr: The learning rate.
        betas: How much of the running means of the gradient and of its square is kept at each step.
        eps: Added to the root of the second mean.
        weight_decay: Factor of the parameter that is added to its gradient.
        momentum_decay: How quickly the momentum grows to the first of `betas`.
        decoupled_weight_decay: Whether the parameter shrinks by ``lr * weight_decay`` instead, as in `AdamW`.
        foreach: Accepted; there is one implementation, over all parameters of a group at once.
        maximize: Whether to climb.
        capturable: Accepted.
        differentiable: Whether gradients flow through the step, into parameters that are no leaves.
    """

    _operator = "nadam_step_"
    _states = ("exp_avg", "exp_avg_sq", "mu_product")

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        _not_negative(learning__rate=lr, epsilon__value=eps)
        _check_betas(betas)
        _not_negative(weight_decay__value=weight_decay, momentum_decay__value=momentum_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        return {"mu_product": rl.tensor(1.0, dtype=scalar_dtype())} | {
            name: rl.zeros_like(param, memory_format=rl.preserve_format) for name in self._states[:2]
        }

    def _options(self, group: dict[str, Any]) -> dict[str, Any]:
        return {**betas_of(group), "eps": group["eps"], "momentum_decay": group["momentum_decay"]}
