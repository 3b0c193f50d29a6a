"""Rprop."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.optim._elementwise import Elementwise
from rushlight.optim.optimizer import _not_negative

__all__ = ["Rprop"]


class Rprop(Elementwise):
    """Steps by the sign of the gradient alone, longer while it stays the same (Riedmiller and Braun, 1993).

    Args:
        params: Tensors, pairs of name and tensor, or groups of them.
        lr: Length of the first step.
        etas: Factors of the length where the sign changed, and where it stayed.
        step_sizes: The least and the greatest length.
        capturable: Accepted.
        foreach: Accepted; there is one implementation, over all parameters of a group at once.
        maximize: Whether to climb.
        differentiable: Whether gradients flow through the step, into parameters that are no leaves.
    """

    _operator = "rprop_step_"
    _states = ("prev", "step_size")

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _not_negative(learning__rate=lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        length = float(group["lr"])
        return {
            "prev": rl.zeros_like(param, memory_format=rl.preserve_format),
            "step_size": rl.full_like(
                param, complex(length, length) if param.is_complex() else length, memory_format=rl.preserve_format
            ),
        }

    def _options(self, group: dict[str, Any]) -> dict[str, Any]:
        eta_minus, eta_plus = group["etas"]
        least, greatest = group["step_sizes"]
        return {"eta_minus": eta_minus, "eta_plus": eta_plus, "step_size_min": least, "step_size_max": greatest}
