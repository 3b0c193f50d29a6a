"""Losses scaled up for backward, so that small gradients survive in float16, and gradients scaled down for steps."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import rushlight as rl
from rushlight import Tensor

__all__ = ["GradScaler"]


class GradScaler:
    """Scales losses by a factor that grows while gradients are finite, and skips the steps where they are not.

    Args:
        device: Device type of the losses. Scaling is off, with a warning, where the device cannot be used.
        init_scale: First factor.
        growth_factor: What the factor is multiplied by after `growth_interval` updates without infinity or NaN.
        backoff_factor: What it is multiplied by after an update with one.
        growth_interval: See `growth_factor`.
        enabled: False: every method does what a program without scaling does.

    Raises:
        AssertionError: `growth_factor` is not above 1, or `backoff_factor` not below.

    Example:
        >>> model = rushlight.nn.Linear(2, 1)
        >>> optimizer = rushlight.optim.SGD(model.parameters(), lr=0.1)
        >>> scaler = rushlight.amp.GradScaler("cpu", init_scale=1024.0)
        >>> with rushlight.autocast("cpu", dtype=rushlight.float16):
        ...     loss = model(rushlight.ones(4, 2)).square().mean()
        >>> scaler.scale(loss).backward()
        >>> scaler.step(optimizer)
        >>> scaler.update()
        >>> scaler.get_scale()
        1024.0
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda" and not rl.cuda.is_available():
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
            self._enabled = False
        if self._enabled:
            assert growth_factor > 1.0, "The growth factor must be > 1.0."
            assert backoff_factor < 1.0, "The backoff factor must be < 1.0."
        self._init_scale = init_scale
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0
        self._scale: float | None = None  # set by the first loss
        # Since the last update, by optimiser: whether each device found infinity or NaN, and who was stepped.
        self._found: dict[int, list[Tensor]] = {}
        self._stepped: set[int] = set()

    def scale(self, outputs: Any) -> Any:
        """A loss, or each of an iterable of losses, times the factor."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._scale = self._init_scale
            return outputs * rl.full((), self._scale, dtype=rl.float32, device=outputs.device)
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _scale_for(self, what: str) -> float:
        if self._scale is None:
            raise AssertionError(
                f"Attempted {what} but _scale is None.  "
                "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."
            )
        return self._scale

    def unscale_(self, optimizer: Any) -> None:
        """Divides the gradients of an optimiser's parameters by the factor, as for clipping before `step`.

        Raises:
            RuntimeError: It was called or the optimiser was stepped since the last `update`.
            ValueError: A gradient is float16, whose range the factor is for: parameters stay float32.
        """
        if not self._enabled:
            return
        scale = self._scale_for("unscale_")
        if id(optimizer) in self._stepped:
            raise RuntimeError("unscale_() is being called after step().")
        if id(optimizer) in self._found:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        found: dict[rl.device, Tensor] = {}
        with rl.no_grad():
            for param in (p for group in optimizer.param_groups for p in group["params"]):
                if param.grad is None:
                    continue
                if param.grad.dtype == rl.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                values = param.grad._values() if param.grad.is_sparse else param.grad
                values.mul_(1 / scale)
                broken = values.isfinite().all().logical_not()
                found[values.device] = found.get(values.device, False) | broken
        self._found[id(optimizer)] = list(found.values())

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Steps an optimiser, unless a gradient is infinite or NaN; calls `unscale_` where the program did not.

        Returns:
            What `optimizer.step(*args, **kwargs)` returned; None where it was skipped.

        Raises:
            RuntimeError: The optimiser was stepped since the last `update`, or is given a closure.
            AssertionError: None of its parameters has a gradient.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._scale_for("step")
        if id(optimizer) in self._stepped:
            raise RuntimeError("step() has already been called since the last update().")
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        found = self._found[id(optimizer)]
        if not found:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        self._stepped.add(id(optimizer))
        return None if any(found) else optimizer.step(*args, **kwargs)

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapts the factor to what the steps since the last call found, or sets it.

        Raises:
            AssertionError: No optimiser's gradients were looked at.
            ValueError: `new_scale` has more than one element.
        """
        if not self._enabled:
            return
        scale = self._scale_for("update")
        if new_scale is not None:
            if isinstance(new_scale, Tensor) and new_scale.numel() != 1:
                shape = tuple(new_scale.shape)
                raise ValueError(f"update: the new scale is one number, got new_scale of shape {shape}.")
            self._scale = float(new_scale)
        else:
            found = [broken for optimizer in self._found.values() for broken in optimizer]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            if any(found):
                self._scale, self._growth_tracker = scale * self._backoff_factor, 0
            elif self._growth_tracker + 1 < self._growth_interval:
                self._growth_tracker += 1
            else:
                # As long as float32, in which losses are multiplied, has the factor.
                grown = scale * self._growth_factor
                self._scale, self._growth_tracker = grown if grown <= rl.finfo(rl.float32).max else scale, 0
        self._found, self._stepped = {}, set()

    def get_scale(self) -> float:
        """The factor; 1 where scaling is off."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale

    def get_growth_factor(self) -> float:
        """What the factor grows by."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets what the factor grows by."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the factor shrinks by."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets what the factor shrinks by."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """How many updates in a row let the factor grow."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets how many updates in a row let the factor grow."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Whether losses are scaled."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The factor and how it changes; empty where scaling is off."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` returned.

        Raises:
            RuntimeError: The dict is empty: it is of a scaler that was off.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = self._scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]

    def __getstate__(self) -> dict[str, Any]:
        if self._found:
            raise AssertionError(
                "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                "scaler.update()."
            )
        return vars(self)
