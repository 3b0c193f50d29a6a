"""RMSprop."""

from __future__ import annotations

from typing import Any

from rushlight.optim._elementwise import Elementwise
from rushlight.optim.optimizer import _not_negative

__all__ = ["RMSprop"]


class RMSprop(Elementwise):
    """Steps scaled by the root of a running mean of the squared gradient (Hinton, Lecture 6e, 2012).

    Args:
        params: Tensors, pairs of name and tensor, or groups of them.
        lr: The learning rate.
        alpha: How much of the running mean is kept at each step.
        eps: Added to the root.
        weight_decay: Factor of the parameter that is added to its gradient.
        momentum: Share of the last step that is kept.
        centered: Whether the variance of the gradient takes the place of its mean square (Graves, 2013).
        capturable: Accepted.
        foreach: Accepted; there is one implementation, over all parameters of a group at once.
        maximize: Whether to climb.
        differentiable: Whether gradients flow through the step, into parameters that are no leaves.
    """

    _operator = "rmsprop_step_"
    _states = ("square_avg", "momentum_buffer", "grad_avg")

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _not_negative(
            learning__rate=lr,
            epsilon__value=eps,
            momentum__value=momentum,
            weight_decay__value=weight_decay,
            alpha__value=alpha,
        )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _used(self, group: dict[str, Any]) -> tuple[str, ...]:
        wanted = (True, group["momentum"] > 0, group["centered"])
        return tuple(name for name, is_used in zip(self._states, wanted, strict=True) if is_used)

    def _options(self, group: dict[str, Any]) -> dict[str, Any]:
        return {name: group[name] for name in ("alpha", "eps", "momentum")}
