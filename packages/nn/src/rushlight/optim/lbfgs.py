"""L-BFGS."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import sqrt
from typing import Any, NamedTuple

import rushlight as rl
from rushlight import Tensor
from rushlight.optim.optimizer import Optimizer, _not_negative

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """Quasi-Newton steps by the last changes of parameters and gradients (Nocedal and Wright, 2006, chapter 7).

    All parameters make one vector, so there is one group, and ``step`` needs a closure, which it calls several times.

    Args:
        params: Tensors, or pairs of name and tensor.
        lr: Factor of the steps.
        max_iter: Iterations in a call of ``step``.
        max_eval: Evaluations of the closure in a call of ``step``. Default: ``max_iter * 5 // 4``.
        tolerance_grad: Iterations end where no element of the gradient is greater.
        tolerance_change: Iterations end where the loss or all parameters change less.
        history_size: How many changes are remembered.
        line_search_fn: ``"strong_wolfe"``, or None for steps of fixed length.

    Example:
        >>> import rushlight as torch
        >>> x = torch.tensor([-1.0, 2.0], requires_grad=True)
        >>> optimizer = torch.optim.LBFGS([x], line_search_fn="strong_wolfe")
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        ...     loss.backward()
        ...     return loss
        >>> for _ in range(3):
        ...     loss = optimizer.step(closure)
        >>> torch.allclose(x, torch.ones(2), atol=1e-3)
        True
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        _not_negative(learning__rate=lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self) -> list[Tensor]:
        params: list[Tensor] = self.param_groups[0]["params"]
        return params

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Runs up to `max_iter` iterations.

        Args:
            closure: Computes the loss and its gradients anew and returns the loss.

        Returns:
            The loss before.
        """
        with rl.no_grad():
            return self._iterate(closure)

    def _iterate(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        lr, max_iter, tolerance = float(group["lr"]), group["max_iter"], group["tolerance_change"]
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        first_loss = self._loss(closure)
        loss, grad = float(first_loss), self._flat_grad()
        state = self.state[self._params[0]]
        state["func_evals"] = state.get("func_evals", 0) + 1
        state.setdefault("n_iter", 0)
        evaluations = 1
        if self._is_flat(grad):
            return first_loss
        for iteration in range(max_iter):
            state["n_iter"] += 1
            direction = state["d"] = self._direction(state, grad)
            state["prev_flat_grad"], state["prev_loss"] = grad, loss
            # The first step knows nothing of the curvature: it is no longer than lr.
            state["t"] = lr * min(1.0, 1.0 / grad.abs().sum().item()) if state["n_iter"] == 1 else lr
            slope = grad.dot(direction).item()
            if slope > -tolerance:
                break
            is_last, used = iteration == max_iter - 1, 0
            origin = [param.clone() for param in self._params]
            if group["line_search_fn"] is not None:
                line = _Line(
                    partial(self._evaluate, closure, origin, direction),
                    direction,
                    limit=min(25, group["max_eval"] - evaluations),
                )
                end = line.search(_Point(0.0, loss, grad, slope), state["t"], tolerance)
                state["t"], loss, grad, used = end.t, end.loss, end.grad, line.evaluations
                self._move(origin, end.t, direction)
            else:
                self._move(origin, state["t"], direction)
                if not is_last:  # after the last step nobody asks for the gradient
                    loss, grad, used = float(self._loss(closure)), self._flat_grad(), 1
            evaluations += used
            state["func_evals"] += used
            if (
                is_last
                or evaluations >= group["max_eval"]
                or self._is_flat(grad)
                or (direction * state["t"]).abs().max().item() <= tolerance
                or abs(loss - state["prev_loss"]) < tolerance
            ):
                break
        return first_loss

    def _direction(self, state: dict[str, Any], grad: Tensor) -> Tensor:
        """Minus the gradient times the inverse Hessian, as far as the last changes tell it (the two-loop recursion)."""
        if state["n_iter"] == 1:
            size = self.param_groups[0]["history_size"]
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1, al=[None] * size)
            return grad.neg()
        change, step = grad - state["prev_flat_grad"], state["d"] * state["t"]
        curvature = change.dot(step)
        changes, steps, inverses = state["old_dirs"], state["old_stps"], state["ro"]
        if curvature.item() > 1e-10:
            if len(changes) == self.param_groups[0]["history_size"]:
                for memory in (changes, steps, inverses):
                    memory.pop(0)
            changes.append(change)
            steps.append(step)
            inverses.append(1.0 / curvature)
            state["H_diag"] = curvature / change.dot(change)
        shares = state["al"]
        direction = grad.neg()
        for i in reversed(range(len(changes))):
            shares[i] = steps[i].dot(direction) * inverses[i]
            direction.sub_(changes[i] * shares[i])
        direction.mul_(state["H_diag"])
        for i in range(len(changes)):
            direction.add_(steps[i] * (shares[i] - changes[i].dot(direction) * inverses[i]))
        return direction

    def _is_flat(self, grad: Tensor) -> bool:
        return bool(grad.abs().max().item() <= self.param_groups[0]["tolerance_grad"])

    def _flat_grad(self) -> Tensor:
        parts = []
        for param in self._params:
            grad = rl.zeros_like(param) if param.grad is None else param.grad.to_dense()
            parts.append(_real(grad).reshape(-1))
        return rl.cat(parts)

    def _move(self, origin: list[Tensor], t: float, direction: Tensor) -> None:
        """Puts the parameters at ``origin + t * direction``."""
        start = 0
        for param, at in zip(self._params, origin, strict=True):
            param.copy_(at)
            values = _real(param)
            end = start + values.numel()
            values.add_(direction[start:end].view_as(values), alpha=t)
            start = end

    def _evaluate(
        self, closure: Callable[[], Any], origin: list[Tensor], direction: Tensor, t: float
    ) -> tuple[float, Tensor]:
        self._move(origin, t, direction)
        return float(self._loss(closure)), self._flat_grad()


def _real(tensor: Tensor) -> Tensor:
    return rl.view_as_real(tensor) if tensor.is_complex() else tensor


class _Point(NamedTuple):
    """A point on the line: its distance from the origin, and there the loss, its gradient and its slope."""

    t: float
    loss: float
    grad: Tensor
    slope: float


class _Line:
    """Finds a point that meets the strong Wolfe conditions (Nocedal and Wright, 2006, algorithms 3.5 and 3.6).

    Args:
        evaluate: Loss and gradient at a distance.
        direction: (n,) the direction.
        limit: How many points may be looked at after the first one.
    """

    decrease, flatness = 1e-4, 0.9  # of the two conditions

    def __init__(self, evaluate: Callable[[float], tuple[float, Tensor]], direction: Tensor, limit: int) -> None:
        self._evaluate, self._direction, self.limit = evaluate, direction, limit
        self._scale = direction.abs().max().item()
        self.evaluations = 0

    def _at(self, t: float) -> _Point:
        self.evaluations += 1
        loss, grad = self._evaluate(t)
        return _Point(t, loss, grad, grad.dot(self._direction).item())

    def search(self, origin: _Point, t: float, tolerance: float) -> _Point:
        """The point found, or the best one within the limit.

        Args:
            origin: The point at distance 0, whose slope is negative.
            t: The first distance to look at.
            tolerance: Points that are less apart, in each parameter, count as one.
        """
        last, point, steps = origin, self._at(t), 0
        while True:
            if steps == self.limit:
                last = origin
                break
            if self._is_too_high(point, origin) or (steps > 1 and point.loss >= last.loss):
                break
            if abs(point.slope) <= -self.flatness * origin.slope:
                return point
            if point.slope >= 0:
                break
            farther = point.t + 0.01 * (point.t - last.t), point.t * 10
            last, point = point, self._at(_minimum_between(last, point, *farther))
            steps += 1
        return self._zoom(origin, last, point, steps, tolerance)

    def _is_too_high(self, point: _Point, origin: _Point) -> bool:
        return point.loss > origin.loss + self.decrease * point.t * origin.slope

    def _zoom(self, origin: _Point, one: _Point, other: _Point, steps: int, tolerance: float) -> _Point:
        """Narrows an interval that holds a point with both conditions."""
        low, high = sorted((one, other), key=lambda point: point.loss)
        is_slow = False
        while steps < self.limit and abs(high.t - low.t) * self._scale >= tolerance:
            left, right = sorted((low.t, high.t))
            t = _minimum_between(low, high, left, right)
            # A second time near the same end, the point moves a tenth of the interval away from it.
            margin = 0.1 * (right - left)
            is_near = min(right - t, t - left) < margin
            if is_near and (is_slow or not left < t < right):
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                is_near = False
            is_slow = is_near
            point = self._at(t)
            steps += 1
            if self._is_too_high(point, origin) or point.loss >= low.loss:
                low, high = sorted((low, point), key=lambda point: point.loss)
                continue
            if abs(point.slope) <= -self.flatness * origin.slope:
                return point
            if point.slope * (high.t - low.t) >= 0:
                high = low
            low = point
        return low


def _minimum_between(one: _Point, other: _Point, left: float, right: float) -> float:
    """Where the cubic through two points with their slopes is least, within [left, right]."""
    bend = one.slope + other.slope - 3 * (one.loss - other.loss) / (one.t - other.t)
    square = bend * bend - one.slope * other.slope
    if square < 0:
        return (left + right) / 2
    one, other = sorted((one, other), key=lambda point: point.t)
    root = sqrt(square)
    share = (other.slope + root - bend) / (other.slope - one.slope + 2 * root)
    return min(max(other.t - (other.t - one.t) * share, left), right)
