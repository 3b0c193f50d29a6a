"""Layers that zero a random part of their input in training."""

from __future__ import annotations

from collections.abc import Callable

from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    _function: Callable[..., Tensor]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return self._function(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The probability and whether the input is written."""
        return f"p={self.p}, inplace={self.inplace}"


_DOC = """{0}, in training only.

    Args:
        p: The probability of a zero.
        inplace: Whether the input is written.
    """


class Dropout(_DropoutNd):
    __doc__ = _DOC.format("Zeroes elements with probability `p` and scales the others by ``1 / (1 - p)``")
    _function = staticmethod(F.dropout)


class Dropout1d(_DropoutNd):
    __doc__ = _DOC.format("Dropout of whole channels of an input (N, C, L) or (C, L)")
    _function = staticmethod(F.dropout1d)


class Dropout2d(_DropoutNd):
    __doc__ = _DOC.format("Dropout of whole channels of an input (N, C, H, W)")
    _function = staticmethod(F.dropout2d)


class Dropout3d(_DropoutNd):
    __doc__ = _DOC.format("Dropout of whole channels of an input (N, C, D, H, W) or (C, D, H, W)")
    _function = staticmethod(F.dropout3d)


class AlphaDropout(_DropoutNd):
    __doc__ = _DOC.format("Dropout that keeps mean and variance of SELU networks (Klambauer et al., 2017)")
    _function = staticmethod(F.alpha_dropout)


class FeatureAlphaDropout(_DropoutNd):
    __doc__ = _DOC.format("Alpha dropout of whole channels")
    _function = staticmethod(F.feature_alpha_dropout)
