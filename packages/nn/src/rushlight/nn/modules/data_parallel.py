"""A module on several devices at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.nn.modules.module import Module

__all__ = ["DataParallel"]


class DataParallel(Module):
    """Runs a module where its parameters are: on the CPU, and wherever there is a single device, that is all there is.

    It stands for PyTorch's class of the same name in programs and state dicts, whose paths begin with ``module.``.

    Args:
        module: The module.
        device_ids: Devices to spread batches over; on the CPU there are none, and this is not heeded.
        output_device: Where the outputs would be gathered.
        dim: The dimension of the batch.

    Example:
        >>> import rushlight as torch
        >>> list(torch.nn.DataParallel(torch.nn.Linear(2, 2)).state_dict())
        ['module.weight', 'module.bias']
    """

    def __init__(
        self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[Any] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module makes of the arguments."""
        return self.module(*inputs, **kwargs)
