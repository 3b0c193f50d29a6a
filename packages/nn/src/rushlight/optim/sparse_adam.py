"""Adam for sparse gradients."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.optim.optimizer import Optimizer

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam that touches only the elements that have a gradient, as the rows of `nn.Embedding(sparse=True)`.

    Args:
        params: Tensors, pairs of name and tensor, or groups of them, all strided.
        lr: The learning rate.
        betas: How much of the running means of the gradient and of its square is kept at each step.
        eps: Added to the root of the second mean.
        maximize: Whether to climb.

    Raises:
        RuntimeError: A gradient is not sparse.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if not lr > 0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        for i in (0, 1):
            if not 0.0 <= betas[i] < 1.0:
                raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})

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
        if not param.grad.is_sparse:
            raise RuntimeError(
                "SparseAdam does not support dense gradients, please consider Adam instead, got a gradient of layout "
                f"{param.grad.layout}."
            )
        grad = param.grad.coalesce()
        if not grad._nnz():
            return
        state = self.state[param]
        if not state:
            state.update(step=0, exp_avg=rl.zeros_like(param), exp_avg_sq=rl.zeros_like(param))
        state["step"] += 1
        values = -grad.values() if group["maximize"] else grad.values()
        for name, beta, latest in zip(
            ("exp_avg", "exp_avg_sq"), group["betas"], (values, values * values), strict=True
        ):
            change = (latest - state[name].sparse_mask(grad)._values()) * (1 - beta)
            state[name].add_(rl.sparse_coo_tensor(grad.indices(), change, grad.shape))
        mean, square = (state[name].sparse_mask(grad)._values() for name in ("exp_avg", "exp_avg_sq"))
        first, second = (1 - beta ** state["step"] for beta in group["betas"])
        step = mean / (square.sqrt() + group["eps"]) * (-float(group["lr"]) * sqrt(second) / first)
        param.add_(rl.sparse_coo_tensor(grad.indices(), step, grad.shape))
