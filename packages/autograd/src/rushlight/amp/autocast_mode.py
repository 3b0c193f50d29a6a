"""The context of mixed precision, and what autograd functions say about it.

The casts themselves are a dispatch layer in C++ (csrc/autocast.cpp), which has the list of operators for each dtype.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any

import rushlight as rl
from rushlight.autograd import _C
from rushlight.plugin import claim as _claim

__all__ = [
    "autocast",
    "autocast_decrement_nesting",
    "autocast_increment_nesting",
    "clear_autocast_cache",
    "custom_bwd",
    "custom_fwd",
    "get_autocast_dtype",
    "is_autocast_available",
    "is_autocast_cache_enabled",
    "is_autocast_enabled",
    "set_autocast_cache_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
]

clear_autocast_cache = _C.clear_autocast_cache
is_autocast_cache_enabled = _C.is_autocast_cache_enabled
set_autocast_cache_enabled = _C.set_autocast_cache_enabled
autocast_increment_nesting = _C.autocast_increment_nesting
autocast_decrement_nesting = _C.autocast_decrement_nesting


def is_autocast_available(device_type: str) -> bool:
    """Whether `autocast` serves a device type: all that compute."""
    return rl.device(device_type).type != "meta"


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether operators on a device type are cast in this thread."""
    enabled: bool = _C.autocast_mode(rl.device(device_type).type)[0]
    return enabled


def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Turns casts of operators on a device type on or off, in this thread."""
    name = rl.device(device_type).type
    _C.set_autocast_mode(name, enabled, _C.autocast_mode(name)[1])


def get_autocast_dtype(device_type: str) -> rl.dtype:
    """The dtype that `autocast` takes by default on a device type: bfloat16 on the CPU, float16 elsewhere."""
    return rl.bfloat16 if _C.autocast_mode(rl.device(device_type).type)[1] else rl.float16


def set_autocast_dtype(device_type: str, dtype: rl.dtype) -> None:
    """Sets the dtype that operators on a device type are cast to, in this thread.

    Raises:
        TypeError: `dtype` is no dtype.
        RuntimeError: It is neither float16 nor bfloat16.
    """
    _check_dtype("set_autocast_dtype", dtype)
    if dtype not in (rl.float16, rl.bfloat16):
        raise RuntimeError(f"set_autocast_dtype: only float16 and bfloat16 are narrow, got dtype={dtype}.")
    name = rl.device(device_type).type
    _C.set_autocast_mode(name, _C.autocast_mode(name)[0], dtype == rl.bfloat16)


def _check_dtype(who: str, dtype: Any) -> None:
    if not isinstance(dtype, rl.dtype):
        kind = type(dtype).__name__
        raise TypeError(f"{who}(): argument 'dtype' (position 2) must be torch.dtype, not {kind}")


class autocast:
    """Context, or decorator, in which operators run in the dtype that suits them.

    Products and convolutions take half the memory and, where there is hardware for it, time in a 16-bit dtype; losses
    and decompositions lose too much there and run in float32. What is in neither list runs in the dtype of its
    arguments. Only float32, float16 and bfloat16 tensors are cast; calls that write to a tensor are left alone. The
    cast of a parameter is kept until the outermost context is left. Run the forward pass and the loss in the context
    and `backward` outside of it.

    Args:
        device_type: Type of the device whose operators are cast, as ``"cpu"``.
        dtype: float16 or bfloat16; by default `get_autocast_dtype`. Any other one disables the context, with a warning.
        enabled: False leaves operators alone, as an island in another context.
        cache_enabled: Whether casts of parameters are kept; by default as outside.

    Raises:
        ValueError: `device_type` is no string.
        RuntimeError: There is no such device type, or it does not compute.

    Example:
        >>> x = rushlight.ones(2, 2)
        >>> with rushlight.autocast("cpu", dtype=rushlight.bfloat16):
        ...     (x @ x).dtype
        torch.bfloat16
    """

    def __init__(
        self,
        device_type: str,
        dtype: rl.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = rl.device(device_type).type
        if not is_autocast_available(self.device):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{self.device}'")
        if dtype is not None:
            _check_dtype("autocast", dtype)
        self.fast_dtype = get_autocast_dtype(self.device) if dtype is None else dtype
        if enabled and self.fast_dtype not in (rl.float16, rl.bfloat16):
            warnings.warn(
                f"In {self.device.upper()} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{self.device.upper()} Autocast only supports dtypes of torch.bfloat16, torch.float16 currently.",
                stacklevel=2,
            )
            enabled = False
        if enabled and self.device == "cuda" and not rl.cuda.is_available():
            warnings.warn("User provided device_type of 'cuda', but CUDA is not available. Disabling", stacklevel=2)
            enabled = False
        self._enabled = enabled
        self._cache_enabled = cache_enabled
        self._outer: list[tuple[bool, bool, bool]] = []  # one object may be entered again inside of itself

    def __enter__(self) -> autocast:
        self._outer.append((*_C.autocast_mode(self.device), is_autocast_cache_enabled()))
        is_bfloat16 = self.fast_dtype == rl.bfloat16 if self._enabled else self._outer[-1][1]
        _C.set_autocast_mode(self.device, self._enabled, is_bfloat16)
        autocast_increment_nesting()
        if self._cache_enabled is not None:
            set_autocast_cache_enabled(self._cache_enabled)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        enabled, is_bfloat16, keeps = self._outer.pop()
        if autocast_decrement_nesting() == 0:
            clear_autocast_cache()
        _C.set_autocast_mode(self.device, enabled, is_bfloat16)
        set_autocast_cache_enabled(keeps)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return decorated


def _cast(value: Any, device_type: str, dtype: rl.dtype) -> Any:
    if isinstance(value, rl.Tensor):
        narrow = value.is_floating_point() and value.device.type == device_type and value.dtype != rl.float64
        return value.to(dtype) if narrow else value
    if isinstance(value, dict):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_cast(item, device_type, dtype) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: rl.dtype | None = None
) -> Callable[..., Any]:
    """Decorator for `forward` of an `autograd.Function`: what it makes of `autocast`.

    Args:
        fwd: The method.
        device_type: Type of the device whose context counts.
        cast_inputs: Dtype for floating inputs other than float64 inside of a context, which `forward` then runs
            without; by default `forward` runs in the context, as it is.

    Example:
        >>> class Square(rushlight.autograd.Function):
        ...     @staticmethod
        ...     @rushlight.amp.custom_fwd(device_type="cpu", cast_inputs=rushlight.float32)
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x
        ...     @staticmethod
        ...     @rushlight.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, grad):
        ...         return 2 * ctx.saved_tensors[0] * grad
        >>> with rushlight.autocast("cpu"):
        ...     Square.apply(rushlight.ones(1, dtype=rushlight.bfloat16)).dtype
        torch.float32
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = is_autocast_enabled(device_type)
        if cast_inputs is None or not ctx._fwd_used_autocast:
            return fwd(ctx, *args, **kwargs)
        ctx._fwd_used_autocast = False
        with autocast(device_type, enabled=False):
            return fwd(ctx, *_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return decorated


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Decorator for `backward` of an `autograd.Function` whose `forward` has `custom_fwd`: runs as `forward` did."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, dtype=ctx._dtype, enabled=ctx._fwd_used_autocast):
            return bwd(ctx, *args, **kwargs)

    return decorated


_claim(globals())
