"""Weights of convolutions in another memory format."""

from __future__ import annotations

from typing import TypeVar

import rushlight as rl
from rushlight.nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from rushlight.nn.modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]

M = TypeVar("M", bound=Module)


def convert_conv2d_weight_memory_format(module: M, memory_format: rl.memory_format) -> M:
    """Brings the weights of all 2-d convolutions in a module into a memory format, in place.

    Args:
        module: A convolution, or a module that holds some.
        memory_format: ``torch.channels_last`` or ``torch.contiguous_format``.

    Returns:
        `module`.

    Example:
        >>> import rushlight as torch
        >>> conv = torch.nn.utils.convert_conv2d_weight_memory_format(torch.nn.Conv2d(8, 4, 3), torch.channels_last)
        >>> conv.weight.is_contiguous(memory_format=torch.channels_last)
        True
    """
    return _convert(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: M, memory_format: rl.memory_format) -> M:
    """Brings the weights of all 3-d convolutions in a module into a memory format, in place.

    Args:
        module: A convolution, or a module that holds some.
        memory_format: ``torch.channels_last_3d`` or ``torch.contiguous_format``.

    Returns:
        `module`.
    """
    return _convert(module, memory_format, (Conv3d, ConvTranspose3d))


def _convert(module: M, memory_format: rl.memory_format, kinds: tuple[type[Module], ...]) -> M:
    for part in module.modules():
        if isinstance(part, kinds):
            part.weight.data = part.weight.detach().clone(memory_format=memory_format)
    return module
