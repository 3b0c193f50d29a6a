"""Adam and its variant with decoupled weight decay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import _ops
from rushlight.optim.optimizer import Optimizer, _check_variants, _not_negative

__all__ = ["Adam"]


class Adam(Optimizer):
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
        differentiable: Not supported.
        fused: Accepted, as `foreach`.
        decoupled_weight_decay: Whether the parameter shrinks by ``lr * weight_decay`` instead, as in `AdamW`.
    """

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
        for i in (0, 1):
            if not 0.0 <= betas[i] < 1.0:
                raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")
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

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name in ("amsgrad", "maximize", "decoupled_weight_decay"):
                group.setdefault(name, False)
            for param in group["params"]:
                own = self.state.get(param, {})
                if own and not isinstance(own["step"], Tensor):  # state dicts of old held a Python number
                    own["step"] = rl.tensor(float(own["step"]))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Changes the parameters once; see `Optimizer.step`."""
        loss = self._loss(closure)
        with rl.no_grad():
            for group in self.param_groups:
                self._step_group(group)
        return loss

    def _step_group(self, group: dict[str, Any]) -> None:
        params = [param for param in group["params"] if param.grad is not None]
        if any(param.grad.layout is not rl.strided for param in params):
            raise RuntimeError("Adam does not support sparse gradients, please consider SparseAdam instead")
        states = [self.state[param] or self._begin(param, group["amsgrad"]) for param in params]
        beta1, beta2 = group["betas"]
        _ops.adam_step_(
            params,
            [param.grad for param in params],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [state["max_exp_avg_sq"] for state in states] if group["amsgrad"] else [],
            [state["step"] for state in states],
            lr=float(group["lr"]),
            beta1=float(beta1),
            beta2=float(beta2),
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            amsgrad=group["amsgrad"],
            maximize=group["maximize"],
            decoupled_weight_decay=group["decoupled_weight_decay"],
        )

    def _begin(self, param: Tensor, amsgrad: bool) -> dict[str, Tensor]:
        state = self.state[param]
        state["step"] = rl.tensor(0.0)
        for name in ("exp_avg", "exp_avg_sq") + (("max_exp_avg_sq",) if amsgrad else ()):
            state[name] = rl.zeros_like(param, memory_format=rl.preserve_format)
        return state
