"""Adam with decoupled weight decay."""

from __future__ import annotations

from typing import Any

from rushlight.optim.adam import Adam

__all__ = ["AdamW"]


class AdamW(Adam):
    """`Adam` in which parameters shrink by ``lr * weight_decay`` at each step (Loshchilov and Hutter, 2019).

    Args:
        params: Tensors, pairs of name and tensor, or groups of them.
        lr: The learning rate.
        betas: How much of the two running means is kept at each step.
        eps: Added to the root of the second mean.
        weight_decay: See above.
        amsgrad: Whether the greatest second mean so far is used.
        maximize: Whether to climb.
        foreach: Accepted; there is one implementation, over all parameters of a group at once.
        capturable: Accepted.
        differentiable: Whether gradients flow through the step, into parameters that are no leaves.
        fused: Accepted, as `foreach`.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
