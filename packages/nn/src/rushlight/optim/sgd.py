"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import _ops
from rushlight.nn._ops_optim import sgd_step_composite
from rushlight.optim.optimizer import Optimizer, _check_variants, _not_negative

__all__ = ["SGD"]


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum if wanted.

    Args:
        params: Tensors, pairs of name and tensor, or groups of them.
        lr: The learning rate.
        momentum: Share of the last update that is kept.
        dampening: Share of the gradient that momentum leaves out.
        weight_decay: Factor of the parameter that is added to its gradient.
        nesterov: Whether the gradient is taken after the momentum's step (Sutskever et al., 2013).
        maximize: Whether to climb.
        foreach: Accepted; there is one implementation, over all parameters of a group at once.
        differentiable: Whether gradients flow through the step, into parameters that are no leaves.
        fused: Accepted, as `foreach`.

    Example:
        >>> import rushlight as torch
        >>> w = torch.ones(1, requires_grad=True)
        >>> optimizer = torch.optim.SGD([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([0.8000], requires_grad=True)
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        _not_negative(learning__rate=lr, momentum__value=momentum, weight_decay__value=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        _check_variants(foreach, differentiable, fused)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("nesterov", False)
            group.setdefault("maximize", False)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Changes the parameters once; see `Optimizer.step`."""
        loss = self._loss(closure)
        for group in self.param_groups:
            with rl.set_grad_enabled(rl.is_grad_enabled() and group["differentiable"]):
                self._step_group(group)
        return loss

    def _step_group(self, group: dict[str, Any]) -> None:
        params = [param for param in group["params"] if param.grad is not None]
        for param in params:
            if param.grad.layout is not rl.strided:
                self._step_sparse(param, group)
        params = [param for param in params if param.grad.layout is rl.strided]
        options = {
            "lr": group["lr"] if group["differentiable"] else float(group["lr"]),
            "momentum": group["momentum"],
            "dampening": group["dampening"],
            "weight_decay": group["weight_decay"],
            "nesterov": group["nesterov"],
            "maximize": group["maximize"],
        }
        step = sgd_step_composite if group["differentiable"] else _ops.sgd_step_
        if group["momentum"] == 0:
            step(params, [param.grad for param in params], [], is_first_step=False, **options)
            return
        first = [param for param in params if self.state[param].get("momentum_buffer") is None]
        for param in first:
            self.state[param]["momentum_buffer"] = rl.empty_like(param)
        if first:
            began = set(map(id, first))
            params = [param for param in params if id(param) not in began]
        for some, is_first in ((first, True), (params, False)):
            if some:
                buffers = [self.state[param]["momentum_buffer"] for param in some]
                step(some, [param.grad for param in some], buffers, is_first_step=is_first, **options)

    def _step_sparse(self, param: Tensor, group: dict[str, Any]) -> None:
        grad = -param.grad if group["maximize"] else param.grad
        if group["weight_decay"] != 0:
            grad = grad.add(param, alpha=group["weight_decay"])
        if group["momentum"] != 0:
            buffer = self.state[param].get("momentum_buffer")
            if buffer is None:
                buffer = self.state[param]["momentum_buffer"] = grad.clone()
            else:
                buffer.mul_(group["momentum"]).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(buffer, alpha=group["momentum"]) if group["nesterov"] else buffer
        param.add_(grad, alpha=-float(group["lr"]))
