"""Adafactor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.optim.optimizer import Optimizer, scalar_dtype

__all__ = ["Adafactor"]


class Adafactor(Optimizer):
    """Adam without a first mean, and with the second one kept as a row and a column (Shazeer and Stern, 2018).

    A parameter of one dimension keeps the second mean as it is.

    Args:
        params: Tensors, pairs of name and tensor, or groups of them.
        lr: The learning rate; the rate of a step is relative to the size of the parameter.
        beta2_decay: The power by which the weight of a new gradient in the second mean falls, at most 0.
        eps: The least second mean (None: the machine epsilon of the parameter), and the least size of a parameter.
        d: The root mean square that an update is cut to.
        weight_decay: The parameter shrinks by ``lr * weight_decay`` at each step.
        foreach: Accepted; there is one implementation.
        maximize: Whether to climb.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        for name, value, bound in (
            ("Learning rate", lr, 0.0),
            ("epsilon1", 0.0 if eps[0] is None else eps[0], 0.0),
            ("epsilon2", eps[1], 0.0),
            ("Clipping threshold d", d, 1.0),
            ("weight_decay", weight_decay, 0.0),
        ):
            if not value >= bound:
                raise ValueError(f"{name} should be >= {bound:g} but is: {value}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Changes the parameters once; see `Optimizer.step`."""
        loss = self._loss(closure)
        with rl.no_grad():
            for group in self.param_groups:
                for param in group["params"]:
                    if param.grad is not None:
                        self._step_param(param, group)
        return loss

    def _step_param(self, param: Tensor, group: dict[str, Any]) -> None:
        grad = param.grad
        if param.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        if grad.layout is not rl.strided:
            raise RuntimeError("Adafactor does not support sparse gradients")
        state = self.state[param] or self._begin(param)
        step = state["step"].add_(1).item()
        if group["maximize"]:
            grad = -grad
        least_square, least_size = group["eps"]
        if least_square is None:
            least_square = rl.finfo(param.dtype).eps
        lr = float(group["lr"])
        share = step ** group["beta2_decay"]
        rate = max(least_size, _rms(param)) * min(lr, 1 / step**0.5)
        if group["weight_decay"] != 0:
            param.mul_(1 - lr * group["weight_decay"])
        square = grad * grad
        if grad.dim() > 1:
            row, column = state["row_var"], state["col_var"]
            row.lerp_(square.mean(-1, keepdim=True), share)
            column.lerp_(square.mean(-2, keepdim=True), share)
            second = row @ column / row.mean(-2, keepdim=True).clamp_(min=least_square)
        else:
            second = state["variance"].lerp_(square, share)
        update = second.clamp(min=least_square**2).rsqrt_().mul_(grad)
        param.sub_(update, alpha=rate / max(1.0, _rms(update) / group["d"]))

    def _begin(self, param: Tensor) -> dict[str, Tensor]:
        state = self.state[param]
        state["step"] = rl.tensor(0.0, dtype=scalar_dtype())
        if param.dim() > 1:
            state["row_var"] = rl.zeros_like(param[..., :1], memory_format=rl.contiguous_format)
            state["col_var"] = rl.zeros_like(param[..., :1, :], memory_format=rl.contiguous_format)
        else:
            state["variance"] = rl.zeros_like(param, memory_format=rl.preserve_format)
        return state


def _rms(tensor: Tensor) -> float:
    return float(tensor.norm().item()) / tensor.numel() ** 0.5 if tensor.numel() else 0.0
