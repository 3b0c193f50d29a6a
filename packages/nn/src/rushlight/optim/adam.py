"""Adam and its variant with decoupled weight decay."""

from __future__ import annotations

from typing import Any

from rushlight.optim._elementwise import Elementwise, betas_of
from rushlight.optim.optimizer import _check_betas, _check_variants, _not_negative

__all__ = ["Adam"]


class Adam(Elementwise):
    """Steps scaled by running means of the gradient and of its square (Kingma and Ba, 2015).

    Args:
        params: Tensors, pairs of name and tensor, or groups of them.
        lr: The learning rate.
        betas: How much of the two running means is kept at each step.
        eps: Added to the root of the second mean.
        weight_decay: Factor of the parameter that is added to its gradient.
        amsgrad: Whether the greatest second mean so far is used (Reddi et al., 2018).
        foreach: Accepted; there is one implementation, over all parameters of a group at once.
        maximize: Whether to climb.
        capturable: Accepted.
        differentiable: Whether gradients flow through the step, into parameters that are no leaves.
        fused: Accepted, as `foreach`.
        decoupled_weight_decay: Whether the parameter shrinks by ``lr * weight_decay`` instead, as in `AdamW`.
    """

    _operator = "adam_step_"
    _states = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        _not_negative(learning__rate=lr, epsilon__value=eps)
        _check_betas(betas)
        _not_negative(weight_decay__value=weight_decay)
        _check_variants(foreach, differentiable, fused)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def _used(self, group: dict[str, Any]) -> tuple[str, ...]:
        return self._states if group["amsgrad"] else self._states[:2]

    def _options(self, group: dict[str, Any]) -> dict[str, Any]:
        return {**betas_of(group), "eps": group["eps"]}

    def _step_sparse(self, param: Any, group: dict[str, Any]) -> None:
        raise RuntimeError("Adam does not support sparse gradients, please consider SparseAdam instead")
