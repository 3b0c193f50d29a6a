"""Functions of the module rushlight that this wheel brings."""

from __future__ import annotations

from rushlight import Tensor


def detach_(input: Tensor) -> Tensor:
    """Takes the history off a tensor, which becomes a leaf that requires no gradient.

    Args:
        input: Any tensor but a view.

    Returns:
        `input` itself.
    """
    return input.detach_()
