"""Averages of weights over training: stochastic weight averaging and exponential moving averages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from itertools import chain
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import Module
from rushlight.nn.modules.batchnorm import _BatchNorm
from rushlight.optim.lr_scheduler import _ANNEALING, LRScheduler, _per_group
from rushlight.optim.optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """An average for `AveragedModel` in which what is older counts less, over all parameters at once.

    Args:
        decay: How much of the average is kept at each update, in [0, 1].
    """
    _check_decay(decay)

    def ema_update(ema_params: Sequence[Tensor], current_params: Sequence[Tensor], _: Any) -> None:
        _move_towards(ema_params, current_params, 1 - decay)

    return ema_update


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """The average for `AveragedModel` in which all updates count alike, over all parameters at once."""

    def swa_update(averaged: Sequence[Tensor], current: Sequence[Tensor], num_averaged: Any) -> None:
        _move_towards(averaged, current, 1 / (int(num_averaged) + 1))

    return swa_update


def _move_towards(averaged: Sequence[Tensor], current: Sequence[Tensor], share: float) -> None:
    with rl.no_grad():
        for average, value in zip(averaged, current, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(value.to(average.dtype), share)
            else:
                average.copy_(average + (value - average) * share)


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Tensor, Tensor, Any], Tensor]:
    """As `get_ema_multi_avg_fn`, for one parameter.

    Args:
        decay: How much of the average is kept at each update, in [0, 1].
    """
    _check_decay(decay)
    return lambda ema_param, current_param, num_averaged: decay * ema_param + (1 - decay) * current_param


def get_swa_avg_fn() -> Callable[[Tensor, Tensor, Any], Tensor]:
    """As `get_swa_multi_avg_fn`, for one parameter."""
    return lambda averaged, current, num_averaged: averaged + (current - averaged) / (num_averaged + 1)


class AveragedModel(Module):
    """A copy of a model that holds the average of its weights (Izmailov et al., 2018).

    Call `update_parameters` where weights are to count, and `update_bn` before the copy is used.

    Args:
        model: The model.
        device: Where the copy is to be. Default: where the model is.
        avg_fn: ``avg_fn(average, weight, n)`` gives the average of one more weight. Default: all count alike.
        multi_avg_fn: ``multi_avg_fn(averages, weights, n)`` changes all averages in place instead.
        use_buffers: Whether buffers are averaged too. Otherwise they are copied.

    Example:
        >>> import rushlight as torch
        >>> model = torch.nn.Linear(1, 1)
        >>> average = torch.optim.swa_utils.AveragedModel(model)
        >>> for value in (1.0, 3.0):
        ...     _ = torch.nn.init.constant_(model.weight, value)
        ...     average.update_parameters(model)
        >>> average.module.weight.item()
        2.0
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[[Tensor, Tensor, Any], Tensor] | None = None,
        multi_avg_fn: Callable[..., None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", rl.tensor(0, dtype=rl.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the copy gives."""
        return self.module(*args, **kwargs)

    def _averaged(self, model: Module) -> Iterator[Tensor]:
        return chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters()

    def update_parameters(self, model: Module) -> None:
        """Counts the present weights of a model in.

        Args:
            model: The model, or another one of its form.
        """
        averages = [average.detach() for average in self._averaged(self.module)]
        values = [
            value.detach().to(average.device) for average, value in zip(averages, self._averaged(model), strict=True)
        ]
        if self.n_averaged == 0:
            for average, value in zip(averages, values, strict=True):
                average.copy_(value)
        elif self.avg_fn is not None:
            for average, value in zip(averages, values, strict=True):
                average.copy_(self.avg_fn(average, value, self.n_averaged.to(average.device)))
        else:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(averages, values, self.n_averaged)
        if not self.use_buffers:
            for buffer, value in zip(self.module.buffers(), model.buffers(), strict=True):
                buffer.detach().copy_(value.detach())
        self.n_averaged += 1


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Sets the running statistics of all batch norms in a model by one pass over the data.

    Args:
        loader: Batches, or tuples and lists that begin with the batch.
        model: The model.
        device: Where batches are brought to. Default: they stay.
    """
    layers = [layer for layer in model.modules() if isinstance(layer, _BatchNorm)]
    if not layers:
        return
    was_training, momenta = model.training, [layer.momentum for layer in layers]
    model.train()
    with rl.no_grad():
        for layer in layers:
            layer.reset_running_stats()
            layer.momentum = None  # an average in which all batches count alike
        for batch in loader:
            if isinstance(batch, (list, tuple)):
                batch = batch[0]
            model(batch if device is None else batch.to(device))
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Goes to the constant rate with which weights are averaged.

    Args:
        optimizer: The optimiser.
        swa_lr: The rate, or one for each group.
        anneal_epochs: Epochs of the way there.
        anneal_strategy: Its form, ``"cos"`` or ``"linear"``.
        last_epoch: See `LRScheduler`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for lr, group in zip(_per_group("swa_lr", optimizer, swa_lr), optimizer.param_groups, strict=True):
            group["swa_lr"] = lr
        if anneal_strategy not in _ANNEALING:
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """How much of the way is done at a step, in [0, 1]."""
        done = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return _ANNEALING[self._anneal_strategy](0.0, 1.0, done)

    def get_lr(self) -> list[Any]:
        """The rates that the present step sets."""
        lrs = self._lrs()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        # The rate from which the way began is read off the present one, which others may have changed.
        before, now = self._share(step - 1), self._share(step)
        goals = [group["swa_lr"] for group in self.optimizer.param_groups]
        starts = [
            goal if before == 1 else (lr - before * goal) / (1 - before) for lr, goal in zip(lrs, goals, strict=True)
        ]
        return [goal * now + start * (1 - now) for goal, start in zip(goals, starts, strict=True)]
