"""Layers that change the shape alone."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor
from rushlight.nn.modules.module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Makes one dimension of several neighbouring ones.

    Args:
        start_dim: The first of them.
        end_dim: The last of them.
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """A view where that is possible."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Makes several dimensions of one.

    Args:
        dim: The dimension, by number or name.
        unflattened_size: The sizes it falls into, whose product is its own; pairs of name and size for a named one.
    """

    def __init__(self, dim: int | str, unflattened_size: Any) -> None:
        super().__init__()
        expected: Any = int if isinstance(dim, int) else tuple
        if not isinstance(dim, (int, str)):
            raise TypeError("invalid argument type for dim parameter")
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                f"unflattened_size must be a tuple of {'ints' if expected is int else 'tuples'}, but found type "
                f"{type(unflattened_size).__name__}"
            )
        for position, size in enumerate(unflattened_size):
            if not isinstance(size, expected):
                raise TypeError(
                    f"unflattened_size must be tuple of {expected.__name__}s, but found element of type "
                    f"{type(size).__name__} at pos {position}"
                )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        """A view with the new dimensions."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
