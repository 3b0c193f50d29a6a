"""Modules without the cost of initial values."""

from __future__ import annotations

import inspect
from typing import Any

from rushlight.nn.modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Module:
    """A module whose parameters and buffers are not initialised: for weights that are loaded anyway.

    Args:
        module_cls: The class; its ``__init__`` takes ``device`` and hands it to all parameters.
        *args: Arguments for it.
        **kwargs: Keyword arguments for it. Default of ``device``: the CPU.

    Raises:
        RuntimeError: `module_cls` is no `Module`, or takes no ``device``.

    Example:
        >>> import rushlight as torch
        >>> torch.nn.utils.skip_init(torch.nn.Linear, 5, 1)
        Linear(in_features=5, out_features=1, bias=True)
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=device)
