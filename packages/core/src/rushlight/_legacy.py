"""What PyTorch keeps for old programs: names that it deprecates, and those that raise."""

from __future__ import annotations

import warnings
from typing import Any

from . import _C, _registry, _tensor
from .plugin.interface import Unavailable


def set_default_tensor_type(t: Any) -> None:
    """Sets default dtype and device by a type, as `rushlight.DoubleTensor` or "torch.cuda.FloatTensor". Deprecated.

    Raises:
        TypeError: It is no floating-point type, or of a device that is not there.
    """
    place, _, name = t.rpartition(".") if isinstance(t, str) else ("", "", getattr(t, "__name__", ""))
    dtype = _tensor.legacy_dtype(name)
    if dtype is None:
        raise TypeError(f"invalid type object: only floating-point types are supported as the default type, got {t!r}.")
    if not dtype.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, got {t!r}.")
    device_type = getattr(t, "device_type", place.partition(".")[2] or "cpu")
    answer = _registry.probe(device_type) if device_type in _registry.backends else Unavailable("There is no such type")
    if not answer:
        raise TypeError(f"type {t} not available. {answer.reason}.")
    warnings.warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives.",
        UserWarning,
        stacklevel=2,
    )
    _C.set_default_dtype(dtype)
    _C.set_default_device(device_type)


def reinforce(self: Any, reward: Any) -> None:
    """Was removed from PyTorch.

    Raises:
        RuntimeError: Always.
    """
    raise RuntimeError(
        "reinforce() was removed. Use torch.distributions instead: loss = -m.log_prob(action) * reward of a "
        "distribution m that the action was sampled from."
    )


def _volatile(self: Any) -> bool:
    warnings.warn("volatile was removed (Variable.volatile is always False)", UserWarning, stacklevel=2)
    return False


def _set_volatile(self: Any, value: Any) -> None:
    warnings.warn(
        "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.", UserWarning, stacklevel=2
    )


def resize(self: Any, *sizes: Any) -> Any:
    """The tensor in another shape with as many elements. Deprecated: use `reshape`.

    Raises:
        RuntimeError: The number of elements differs.
    """
    warnings.warn("non-inplace resize is deprecated", UserWarning, stacklevel=2)
    return _resized(self, sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes)


def resize_as(self: Any, tensor: Any) -> Any:
    """The tensor in the shape of another with as many elements. Deprecated: use `reshape`."""
    warnings.warn("non-inplace resize_as is deprecated", UserWarning, stacklevel=2)
    return _resized(self, tensor.shape)


def _resized(self: Any, shape: Any) -> Any:
    from math import prod

    if prod(shape) != self.numel():
        raise RuntimeError(
            f"requested resize to {'x'.join(map(str, shape))} ({prod(shape)} elements in total), but the given tensor "
            f"has a size of {'x'.join(map(str, self.shape))} ({self.numel()} elements). autograd's resize can only "
            "change the shape of a given tensor, while preserving the number of elements."
        )
    return self.contiguous().view(shape)


def record_stream(self: Any, stream: Any) -> None:
    """Marks the tensor's memory as used by a stream, so that it is not reused before the stream is done.

    Raises:
        RuntimeError: `stream` is no `rushlight.cuda.Stream`.
    """
    from .cuda import Stream

    if not isinstance(stream, Stream):
        raise RuntimeError(f"record_stream: expected a rushlight.cuda.Stream, got stream={stream!r}.")
    # CuPy's pool hands memory on in the order of its own stream: nothing may be reused before this one is done.
    stream.synchronize()


for _name, _method in {
    "reinforce": reinforce,
    "resize": resize,
    "resize_as": resize_as,
    "record_stream": record_stream,
    "volatile": property(_volatile, _set_volatile),
}.items():
    _C.add_method(_name, _method)
