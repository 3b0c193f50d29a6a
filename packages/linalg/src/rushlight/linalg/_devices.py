"""Kernels of devices whose array library decomposes matrices: with a choice of vectors of its own.

They are no array kernels of the records, which every device has to compute alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.plugin import Kernel, backend, from_array, to_array

from . import _arrays


def kernels(device_type: str) -> list[Kernel]:
    """Eigh and svd over the array namespace of a device."""
    return [
        Kernel("linalg::eigh", _on_arrays(device_type, lambda xp, a, UPLO: _arrays.eigh(xp, a, UPLO))),
        Kernel(
            "linalg::svd",
            _on_arrays(
                device_type, lambda xp, a, full_matrices, driver=None: _arrays.svd(xp, a, full_matrices, driver)
            ),
        ),
    ]


def _on_arrays(device_type: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel on tensors that shares their memory with the device's arrays."""

    def kernel(a: Any, *args: Any, **kwargs: Any) -> Any:
        results = fn(backend(device_type).xp, to_array(a), *args, **kwargs)
        return tuple(from_array(result, a.device) for result in results)

    return kernel
