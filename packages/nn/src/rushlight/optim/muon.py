"""Muon."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.optim.optimizer import Optimizer

__all__ = ["Muon"]


class Muon(Optimizer):
    """Momentum whose steps are made nearly orthogonal, for matrices of hidden layers (Jordan et al., 2024).

    Args:
        params: Matrices, pairs of name and matrix, or groups of them. Use `AdamW` for all other parameters.
        lr: The learning rate.
        weight_decay: The parameter shrinks by ``lr * weight_decay`` at each step.
        momentum: How much of the running mean of the gradient is kept at each step.
        nesterov: Whether the gradient is taken after the momentum's step.
        ns_coefficients: Coefficients of the polynomial in the Newton-Schulz iteration.
        eps: The least norm that a matrix is divided by.
        ns_steps: How often the iteration runs, less than 100.
        adjust_lr_fn: ``"original"`` (the default) scales the learning rate by ``sqrt(max(1, rows / columns))``,
            ``"match_rms_adamw"`` by ``0.2 * sqrt(max(rows, columns))``, so that rates of `AdamW` fit.

    Raises:
        ValueError: A parameter is no matrix, or an option is out of range.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        for name, value in (("Learning rate", lr), ("momentum", momentum), ("weight decay", weight_decay)):
            if not value >= 0.0:
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, "match_rms_adamw", "original"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                if param.dim() != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {param.size()}"
                    )

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
            raise RuntimeError("Muon does not support complex parameters")
        if grad.layout is not rl.strided:
            raise RuntimeError("Muon does not support sparse gradients")
        state = self.state[param]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = rl.zeros_like(grad, memory_format=rl.preserve_format)
        buffer = state["momentum_buffer"].lerp_(grad, 1 - group["momentum"])
        update = grad.lerp(buffer, group["momentum"]) if group["nesterov"] else buffer
        update = _orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        lr, (rows, columns) = float(group["lr"]), param.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            factor = 0.2 * max(rows, columns) ** 0.5
        else:
            factor = max(1, rows / columns) ** 0.5
        param.mul_(1 - lr * group["weight_decay"])
        param.sub_(update, alpha=lr * factor)


def _orthogonal(matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """About the orthogonal factor of a matrix, in bfloat16: singular values come near 1 by an iterated polynomial."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    x = matrix.bfloat16()
    is_tall = x.size(0) > x.size(1)
    if is_tall:
        x = x.T
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    return x.T if is_tall else x
