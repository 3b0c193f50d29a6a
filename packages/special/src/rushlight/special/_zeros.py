"""Zeros of Bessel functions."""

from __future__ import annotations

import rushlight
from rushlight import Tensor


def jn_zeros(n: int, nt: int) -> Tensor:
    """The first positive zeros of the Bessel function of the first kind of integer order, by SciPy.

    Args:
        n: Order.
        nt: How many.

    Returns:
        Tensor of shape (nt,) in float64.

    Raises:
        ValueError: `n` is no integer, or `nt` no positive one.

    Example:
        >>> rushlight.special.jn_zeros(0, 2)
        tensor([2.4048, 5.5201], dtype=torch.float64)
    """
    from scipy import special

    return rushlight.from_numpy(special.jn_zeros(n, nt))
