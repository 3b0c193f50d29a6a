"""Channels as pixels, and back."""

from __future__ import annotations

from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module

__all__ = ["PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Module):
    """Turns channels into pixels (Shi et al., 2016).

    Args:
        upscale_factor: How many times larger the image becomes in both directions.
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """(*, C * r * r, H, W) to (*, C, H * r, W * r)."""
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        """The factor."""
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Turns pixels into channels: undoes `PixelShuffle`.

    Args:
        downscale_factor: How many times smaller the image becomes in both directions.
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """(*, C, H * r, W * r) to (*, C * r * r, H, W)."""
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        """The factor."""
        return f"downscale_factor={self.downscale_factor}"
