"""Learning rates that change as training goes on.

A scheduler is stepped after the optimiser: ``optimizer.step(); scheduler.step()``. Those that compute the next rate
from the present one may be used together, each changing what the others leave.
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rushlight import Tensor
from rushlight.optim.optimizer import Optimizer

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available. Please open an issue if you are unable to "
    "replicate your use case: https://github.com/pytorch/pytorch/issues/new/choose."
)


def _check_optimizer(optimizer: Any) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def _set(group: dict[str, Any], name: str, value: Any) -> None:
    """Sets an option of a group, in place where it is a tensor."""
    if isinstance(group[name], Tensor):
        group[name].fill_(value)
    else:
        group[name] = value


def _copied(values: Iterable[Any]) -> list[Any]:
    return [value.clone() if isinstance(value, Tensor) else value for value in values]


def _per_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """The values of an option for each group, given as a list or as one for all of them."""
    n = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * n
    if len(value) != n:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, "
            f"param_groups has {n}."
        )
    return list(value)


class LRScheduler:
    """The base of learning rate schedulers; a subclass writes ``get_lr``.

    Args:
        optimizer: The optimiser whose groups' ``"lr"`` is set.
        last_epoch: How many steps were taken before, to resume; -1: it begins, with the groups' rates.

    Attributes:
        base_lrs: The rates with which the groups began.
        last_epoch: How many steps were taken.

    Raises:
        TypeError: `optimizer` is no `Optimizer`.
        KeyError: It resumes, and a group has no ``"initial_lr"``.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", *_copied([group["lr"]]))
            elif "initial_lr" not in group:
                raise KeyError(f"param 'initial_lr' is not specified in param_groups[{i}] when resuming an optimizer")
        self.base_lrs = _copied(group["initial_lr"] for group in optimizer.param_groups)
        self.last_epoch = last_epoch
        self._step_count = 0
        self._is_initial = False
        self._get_lr_called_within_step = False
        self._initial_step()

    def _initial_step(self) -> None:
        """The step that sets the rates of the beginning."""
        self._step_count = 0
        self._is_initial = True
        self.step()
        self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the state of another scheduler of this class.

        Args:
            state_dict: As `state_dict` gives it.
        """
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The rates that the last step set, one for each group."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The rates that the present step sets, one for each group; every subclass writes its own."""
        raise NotImplementedError

    def _lrs(self) -> list[Any]:
        """The present rates; asked for outside of a step, they are likely a mistake for the last ones."""
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.", stacklevel=3
            )
        return [group["lr"] for group in self.optimizer.param_groups]

    def _times(self, factor: float) -> list[Any]:
        """The present rates times a factor."""
        return [lr * factor for lr in self._lrs()]

    def step(self, epoch: int | None = None) -> None:
        """Sets the rates of the next epoch, or of whatever is counted.

        Args:
            epoch: The number to go to, deprecated. Default: the next.
        """
        if self._step_count == 1 and not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you "
                "should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to "
                "do this will result in PyTorch skipping the first value of the learning rate schedule. See more "
                "details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate",
                stacklevel=2,
            )
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, stacklevel=2)
        self._go_to(epoch)

    def _go_to(self, epoch: int | None) -> None:
        """Sets the rates of an epoch, None: of the next one."""
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                closed_form = getattr(self, "_get_closed_form_lr", self.get_lr)
                values = closed_form()
        finally:
            self._get_lr_called_within_step = False
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            _set(group, "lr", lr)
        self._last_lr = _copied(group["lr"] for group in self.optimizer.param_groups)


class _Lambdas(LRScheduler):
    """What schedulers by functions share: a function for each group, of which state dicts keep no code."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        _check_optimizer(optimizer)
        n = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * n
        if len(self.lr_lambdas) != n:
            raise ValueError(f"Expected {n} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser and functions; of other callable objects their attributes."""
        is_function = lambda fn: isinstance(fn, type(lambda: None))
        lambdas = [None if is_function(fn) else fn.__dict__.copy() for fn in self.lr_lambdas]
        state = {name: value for name, value in super().state_dict().items() if name != "lr_lambdas"}
        return {**state, "lr_lambdas": lambdas}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the state of another scheduler of this class; functions stay as they are."""
        for fn, attributes in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if attributes is not None:
                fn.__dict__.update(attributes)
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "lr_lambdas"})


class LambdaLR(_Lambdas):
    """The first rate times a function of the epoch.

    Args:
        optimizer: The optimiser.
        lr_lambda: The function, or one for each group.
        last_epoch: See `LRScheduler`.

    Example:
        >>> import rushlight as torch
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
    """

    def get_lr(self) -> list[Any]:
        """The rates that the present step sets."""
        self._lrs()
        return [lr * fn(self.last_epoch) for fn, lr in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(_Lambdas):
    """The last rate times a function of the epoch.

    Args:
        optimizer: The optimiser.
        lr_lambda: The function, or one for each group.
        last_epoch: See `LRScheduler`.
    """

    def get_lr(self) -> list[Any]:
        """The rates that the present step sets."""
        lrs = self._lrs()
        if self._is_initial:
            return lrs
        return [lr * fn(self.last_epoch) for fn, lr in zip(self.lr_lambdas, lrs, strict=True)]


class StepLR(LRScheduler):
    """Falls by a factor after each so many epochs.

    Args:
        optimizer: The optimiser.
        step_size: The number of epochs.
        gamma: The factor.
        last_epoch: See `LRScheduler`.
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates that the present step sets."""
        return self._times(1 if self.last_epoch == 0 or self.last_epoch % self.step_size != 0 else self.gamma)

    def _get_closed_form_lr(self) -> list[Any]:
        return [lr * self.gamma ** (self.last_epoch // self.step_size) for lr in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Falls by a factor at given epochs.

    Args:
        optimizer: The optimiser.
        milestones: The epochs.
        gamma: The factor.
        last_epoch: See `LRScheduler`.
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates that the present step sets."""
        return self._times(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> list[Any]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [lr * self.gamma**passed for lr in self.base_lrs]


class ConstantLR(LRScheduler):
    """Is smaller by a factor for the first epochs.

    Args:
        optimizer: The optimiser.
        factor: The factor, in [0, 1].
        total_iters: The number of epochs.
        last_epoch: See `LRScheduler`.
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates that the present step sets."""
        if self.last_epoch == 0:
            return self._times(self.factor)
        return self._times(1 if self.last_epoch != self.total_iters else 1.0 / self.factor)

    def _get_closed_form_lr(self) -> list[Any]:
        return [lr * (self.factor if self.last_epoch < self.total_iters else 1) for lr in self.base_lrs]


class LinearLR(LRScheduler):
    """Goes from one factor of the first rate to another over the first epochs.

    Args:
        optimizer: The optimiser.
        start_factor: The first factor, in (0, 1].
        end_factor: The last factor, in [0, 1].
        total_iters: The number of epochs.
        last_epoch: See `LRScheduler`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates that the present step sets."""
        if self.last_epoch == 0:
            return self._times(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._times(1)
        slope = self.end_factor - self.start_factor
        return self._times(1.0 + slope / (self.total_iters * self.start_factor + (self.last_epoch - 1) * slope))

    def _get_closed_form_lr(self) -> list[Any]:
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        return [lr * (self.start_factor + (self.end_factor - self.start_factor) * done) for lr in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Falls by a factor each epoch.

    Args:
        optimizer: The optimiser.
        gamma: The factor.
        last_epoch: See `LRScheduler`.
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates that the present step sets."""
        return self._times(1 if self._is_initial else self.gamma)

    def _get_closed_form_lr(self) -> list[Any]:
        return [lr * self.gamma**self.last_epoch for lr in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Falls to 0 as a power of the epochs that are left.

    Args:
        optimizer: The optimiser.
        total_iters: The epoch at which it is 0.
        power: The power.
        last_epoch: See `LRScheduler`.
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates that the present step sets."""
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._times(1)
        left, before = (1.0 - epoch / self.total_iters for epoch in (self.last_epoch, self.last_epoch - 1))
        return self._times((left / before) ** self.power)

    def _get_closed_form_lr(self) -> list[Any]:
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        return [lr * (1.0 - done) ** self.power for lr in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Falls along half a wave of the cosine, and rises again after it (Loshchilov and Hutter, 2017).

    Args:
        optimizer: The optimiser.
        T_max: The epochs of half a wave.
        eta_min: The least rate.
        last_epoch: See `LRScheduler`.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates that the present step sets."""
        lrs = self._lrs()
        if self._is_initial:
            return lrs
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # at the bottom a ratio tells nothing
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [lr + (base - self.eta_min) * rise for base, lr in zip(self.base_lrs, lrs, strict=True)]
        now, before = (1 + math.cos(math.pi * (self.last_epoch - i) / self.T_max) for i in (0, 1))
        return [now / before * (lr - self.eta_min) + self.eta_min for lr in lrs]

    def _get_closed_form_lr(self) -> list[Any]:
        height = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (lr - self.eta_min) * height for lr in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Falls along half a wave of the cosine, again and again (Loshchilov and Hutter, 2017).

    Args:
        optimizer: The optimiser.
        T_0: The epochs of the first fall.
        T_mult: How many times as long each fall is as the one before.
        eta_min: The least rate.
        last_epoch: See `LRScheduler`.
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates that the present step sets."""
        self._lrs()
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (lr - self.eta_min) * height for lr in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Sets the rates of the next epoch.

        Args:
            epoch: The epoch to go to, which may be a fraction: ``epoch + batch / batches``. Default: the next.

        Raises:
            ValueError: `epoch` is negative.
        """
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            while self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        elif epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_i, self.T_cur = self.T_0, epoch % self.T_0
        else:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**n
        self._go_to(math.floor(epoch))


def _uses_beta1(optimizer: Optimizer) -> bool:
    """Whether the optimiser's momentum is the first of two betas."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
    return "betas" in optimizer.defaults


def _set_momentum(group: dict[str, Any], value: float) -> None:
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


class CyclicLR(LRScheduler):
    """Rises and falls between two rates, batch by batch (Smith, 2017).

    Args:
        optimizer: The optimiser.
        base_lr: The lower rate, or one for each group.
        max_lr: The upper rate, or one for each group.
        step_size_up: Batches of the rise.
        step_size_down: Batches of the fall. Default: as of the rise.
        mode: ``"triangular"``; ``"triangular2"``, which halves the height each cycle; or ``"exp_range"``, which scales
            it by ``gamma ** batch``.
        gamma: See `mode`.
        scale_fn: Scales the height instead of `mode`.
        scale_mode: What `scale_fn` is a function of, ``"cycle"`` or ``"iterations"``.
        cycle_momentum: Whether the momentum moves the other way.
        base_momentum: The lower momentum, or one for each group.
        max_momentum: The upper momentum, or one for each group.
        last_epoch: See `LRScheduler`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = _per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                _set(group, "lr", lr)
        self.max_lrs = _per_group("max_lr", optimizer, max_lr)
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up) + float(down)
        self.step_ratio = float(step_size_up) / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _uses_beta1(optimizer)
            self.base_momentums = _per_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = _per_group("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                for top, low, group in zip(
                    self.max_momentums, self.base_momentums, optimizer.param_groups, strict=True
                ):
                    _set_momentum(group, top)
                    group["max_momentum"], group["base_momentum"] = top, low
        self._scale_fn_custom = scale_fn
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The factor of the height, by the number of the cycle or of the batch."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / 2.0 ** (x - 1) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self) -> list[Any]:
        """The rates that the present step sets; it sets the momenta itself."""
        self._lrs()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        share = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        share *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for top, low, group in zip(
                self.max_momentums, self.base_momentums, self.optimizer.param_groups, strict=True
            ):
                _set_momentum(group, top - (top - low) * share)
        return [low + (top - low) * share for low, top in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser; of a scale function its attributes only."""
        state = super().state_dict()
        fn = state.pop("_scale_fn_custom")
        state["_scale_fn_custom"] = None if fn is None or isinstance(fn, type(lambda: None)) else fn.__dict__.copy()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the state of another scheduler of this class; a scale function stays as it is."""
        attributes = state_dict.get("_scale_fn_custom")
        if attributes is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(attributes)
        super().load_state_dict({name: v for name, v in state_dict.items() if name != "_scale_fn_custom"})


def _cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)


def _linear(start: float, end: float, share: float) -> float:
    return (end - start) * share + start


_ANNEALING = {"cos": _cosine, "linear": _linear}


class OneCycleLR(LRScheduler):
    """Rises to the greatest rate and falls to much less than the first one, batch by batch (Smith and Topin, 2017).

    Args:
        optimizer: The optimiser.
        max_lr: The greatest rate, or one for each group.
        total_steps: Batches of the whole. Default: ``epochs * steps_per_epoch``.
        epochs: See `total_steps`.
        steps_per_epoch: See `total_steps`.
        pct_start: The share of the rise in it.
        anneal_strategy: The form of rise and fall, ``"cos"`` or ``"linear"``.
        cycle_momentum: Whether the momentum moves the other way.
        base_momentum: The lower momentum, or one for each group.
        max_momentum: The upper momentum, or one for each group.
        div_factor: The greatest rate over the first one.
        final_div_factor: The first rate over the last one.
        three_phase: Whether it falls to the first rate as long as it rose, and only then to the last one.
        last_epoch: See `LRScheduler`.

    Raises:
        ValueError: An option is out of range, or more steps are taken than `total_steps`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        if total_steps is not None:
            if total_steps <= 0 or not isinstance(total_steps, int):
                raise ValueError(f"Expected positive integer total_steps, but got {total_steps}")
            self.total_steps = total_steps
        elif epochs is not None and steps_per_epoch is not None:
            for name, value in (("epochs", epochs), ("steps_per_epoch", steps_per_epoch)):
                if not isinstance(value, int) or value <= 0:
                    raise ValueError(f"Expected positive integer {name}, but got {value}")
            self.total_steps = epochs * steps_per_epoch
        else:
            raise ValueError(
                "You must define either total_steps OR both epochs and steps_per_epoch so that total_steps can be "
                "inferred."
            )
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in _ANNEALING:
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        rise = float(pct_start * self.total_steps) - 1
        turns = [(rise, "initial_lr", "max_lr", "max_momentum", "base_momentum")]
        if three_phase:
            fall = float(2 * pct_start * self.total_steps) - 2
            turns.append((fall, "max_lr", "initial_lr", "base_momentum", "max_momentum"))
            turns.append((self.total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"))
        else:
            turns.append((self.total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"))
        keys = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
        self._schedule_phases: list[dict[str, Any]] = [dict(zip(keys, turn, strict=True)) for turn in turns]
        self._anneal_func_type = anneal_strategy
        if last_epoch == -1:
            for top, group in zip(_per_group("max_lr", optimizer, max_lr), optimizer.param_groups, strict=True):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _uses_beta1(optimizer)
            tops = _per_group("max_momentum", optimizer, max_momentum)
            lows = _per_group("base_momentum", optimizer, base_momentum)
            if last_epoch == -1:
                for top, low, group in zip(tops, lows, optimizer.param_groups, strict=True):
                    _set_momentum(group, top)
                    group["max_momentum"], group["base_momentum"] = top, low
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates that the present step sets; it sets the momenta itself."""
        self._lrs()
        now = self.last_epoch
        if now > self.total_steps:
            raise ValueError(f"Tried to step {now} times. The specified number of total steps is {self.total_steps}")
        anneal, start = _ANNEALING[self._anneal_func_type], 0.0
        for phase in self._schedule_phases:
            end = phase["end_step"]
            if now <= end or phase is self._schedule_phases[-1]:
                break
            start = end
        share = (now - start) / (end - start)
        if self.cycle_momentum:
            for group in self.optimizer.param_groups:
                _set_momentum(group, anneal(group[phase["start_momentum"]], group[phase["end_momentum"]], share))
        return [
            anneal(group[phase["start_lr"]], group[phase["end_lr"]], share) for group in self.optimizer.param_groups
        ]


def _check_parts(whole: LRScheduler, schedulers: Sequence[Any], optimizer: Optimizer | None) -> None:
    """Raises unless there are schedulers, all of one optimiser, that step without arguments."""
    name = type(whole).__name__
    if len(schedulers) < 1:
        raise ValueError(f"{name} expects at least one scheduler, but got no scheduler.")
    for i, scheduler in enumerate(schedulers):
        if not hasattr(scheduler, "optimizer"):
            raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(
                f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                f"specified when calling `step`, but got one at index {i} in the given schedulers sequence."
            )
        optimizer = optimizer or scheduler.optimizer
        if optimizer is not scheduler.optimizer:
            raise ValueError(
                f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                f"{type(scheduler).__name__} at index {i} has {scheduler.optimizer}, which is different from "
                f"{type(optimizer).__name__}."
            )


class SequentialLR(LRScheduler):
    """One scheduler after another.

    Args:
        optimizer: The optimiser, the same as that of all schedulers.
        schedulers: The schedulers.
        milestones: The epochs at which the next one begins, one less than there are schedulers.
        last_epoch: How many steps were taken before.

    Raises:
        ValueError: There is no scheduler, the number of milestones is wrong, or a scheduler has another optimiser.
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[Any], milestones: list[int], last_epoch: int = -1
    ) -> None:
        _check_parts(self, schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._schedulers = list(schedulers)
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # The schedulers have made their first steps together: all but the first one take theirs back.
        for group in optimizer.param_groups:
            _set(group, "lr", group["initial_lr"])
        for scheduler in self._schedulers:
            _rewind(scheduler)
        self._schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Steps the scheduler whose turn it is."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._go_to(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser, with the state dicts of the schedulers."""
        return _state_of_several(self)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the state of another scheduler of this class."""
        _load_several(self, state_dict)


def _rewind(scheduler: Any) -> None:
    """Takes back the last epoch of a scheduler, or of those that it is made of."""
    for part in getattr(scheduler, "_schedulers", ()):
        _rewind(part)
    if hasattr(scheduler, "last_epoch"):
        scheduler.last_epoch -= 1


def _state_of_several(scheduler: Any) -> dict[str, Any]:
    state = {k: v for k, v in scheduler.__dict__.items() if k not in ("optimizer", "_schedulers")}
    state["_schedulers"] = [part.state_dict() for part in scheduler._schedulers]
    return state


def _load_several(scheduler: Any, state_dict: dict[str, Any]) -> None:
    scheduler.__dict__.update({k: v for k, v in state_dict.items() if k != "_schedulers"})
    for part, state in zip(scheduler._schedulers, state_dict["_schedulers"], strict=True):
        part.load_state_dict(state)


class ChainedScheduler(LRScheduler):
    """Several schedulers at once, each changing the rates that the others leave.

    Args:
        schedulers: The schedulers, all of one optimiser.
        optimizer: The optimiser. Default: that of the schedulers.

    Raises:
        ValueError: There is no scheduler, or one has another optimiser.
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        _check_parts(self, schedulers, optimizer)
        optimizer = optimizer or schedulers[0].optimizer
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = _copied(group["lr"] for group in optimizer.param_groups)

    def step(self) -> None:  # type: ignore[override]
        """Steps all schedulers."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = _copied(group["lr"] for group in self.optimizer.param_groups)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser, with the state dicts of the schedulers."""
        return _state_of_several(self)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the state of another scheduler of this class."""
        _load_several(self, state_dict)


class ReduceLROnPlateau(LRScheduler):
    """Falls by a factor when a metric has not improved for some epochs.

    Args:
        optimizer: The optimiser.
        mode: Whether a ``"min"`` or a ``"max"`` of the metric is sought.
        factor: The factor, below 1.
        patience: Epochs without improvement that are borne.
        threshold: What counts as an improvement.
        threshold_mode: Whether `threshold` is ``"rel"``, a share of the best value, or ``"abs"``.
        cooldown: Epochs after a fall in which nothing is counted.
        min_lr: The least rate, or one for each group.
        eps: A change of the rate that is less is not made.

    Example:
        >>> import rushlight as torch
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
        >>> for loss in (3.0, 2.0, 2.0, 2.0):
        ...     scheduler.step(loss)
        >>> scheduler.get_last_lr()
        [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        _check_optimizer(optimizer)
        if mode not in ("max", "min"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("abs", "rel"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.factor = factor
        self.optimizer = optimizer
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = _per_group("min_lr", optimizer, min_lr)
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = _copied(group["lr"] for group in optimizer.param_groups)
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self._reset()

    def _reset(self) -> None:
        """Forgets what was counted."""
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether a fall was so recent that nothing is counted."""
        return self.cooldown_counter > 0

    def is_better(self, a: float, best: float) -> bool:
        """Whether a metric is an improvement on the best one."""
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "rel":
            best *= 1.0 + sign * self.threshold
        else:
            best += sign * self.threshold
        return a < best if self.mode == "min" else a > best

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Counts a value of the metric, and sets the rates.

        Args:
            metrics: The value, a number or a tensor of one element.
            epoch: The number to go to, deprecated. Default: the next.
        """
        current = float(metrics)
        if epoch is None:
            epoch = self.last_epoch + 1
        else:
            warnings.warn(EPOCH_DEPRECATION_WARNING, stacklevel=2)
        self.last_epoch = epoch
        if self.is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = _copied(group["lr"] for group in self.optimizer.param_groups)

    def _reduce_lr(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):  # a group was added
            if self.default_min_lr is None:
                raise RuntimeError(
                    "The number of param groups in the `optimizer` "
                    f"({len(groups)}) differs from when `ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), "
                    "usually due to a new param group being added to the optimizer. Please modify the `min_lrs` field "
                    "to match the length of the `optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                _set(group, "lr", new)


_LRScheduler = LRScheduler  # its name until PyTorch 1.13
