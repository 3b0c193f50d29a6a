"""Adagrad."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.optim._elementwise import Elementwise
from rushlight.optim.optimizer import _check_variants, _not_negative

__all__ = ["Adagrad"]


class Adagrad(Elementwise):
    """Steps scaled by the root of the sum of all squared gradients so far (Duchi et al., 2011).

    Sparse gradients touch only the elements that they have.

    Args:
        params: Tensors, pairs of name and tensor, or groups of them.
        lr: The learning rate.
        lr_decay: How quickly the learning rate falls, as ``lr / (1 + step * lr_decay)``.
        weight_decay: Factor of the parameter that is added to its gradient.
        initial_accumulator_value: What the sums begin with.
        eps: Added to the root.
        foreach: Accepted; there is one implementation, over all parameters of a group at once.
        maximize: Whether to climb.
        differentiable: Whether gradients flow through the step, into parameters that are no leaves.
        fused: Accepted, as `foreach`.
    """

    _operator = "adagrad_step_"
    _states = ("sum",)

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        _not_negative(
            learning__rate=lr,
            lr_decay__value=lr_decay,
            weight_decay__value=weight_decay,
            initial_accumulator_value__value=initial_accumulator_value,
            epsilon__value=eps,
        )
        _check_variants(foreach, differentiable, fused)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                self._begin(param, group)

    def share_memory(self) -> None:
        """Moves the sums to memory that other processes can share."""
        for state in self.state.values():
            state["sum"].share_memory_()

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        start = group["initial_accumulator_value"]
        if param.is_complex():
            start = complex(start, start)
        return {"sum": rl.full_like(param, start, memory_format=rl.preserve_format)}

    def _options(self, group: dict[str, Any]) -> dict[str, Any]:
        return {"lr_decay": group["lr_decay"], "eps": group["eps"]}

    def _step_sparse(self, param: Tensor, group: dict[str, Any]) -> None:
        if group["weight_decay"] != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        state = self.state[param] or self._begin(param, group)
        step = state["step"].add_(1).item()
        grad = param.grad.coalesce()
        values = -grad.values() if group["maximize"] else grad.values()
        of_indices = lambda values: rl.sparse_coo_tensor(grad.indices(), values, grad.shape)
        state["sum"].add_(of_indices(values * values))
        root = state["sum"].sparse_mask(grad)._values().sqrt() + group["eps"]
        rate = float(group["lr"]) / (1 + (step - 1) * group["lr_decay"])
        param.add_(of_indices(values / root * -rate))
