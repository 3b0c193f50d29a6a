"""Layers that resize images."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(Module):
    """Resizes an image (N, C, *) with one to three spatial dimensions, see `rushlight.nn.functional.interpolate`.

    Args:
        size: Sizes of the output; a number stands for all of them. Or
        scale_factor: a factor for each size.
        mode: ``"nearest"``, ``"nearest-exact"``, ``"area"``, or by the dimensions ``"linear"``, ``"bilinear"``,
            ``"bicubic"``, ``"trilinear"``.
        align_corners: Whether the centres of the corner elements stay in place, rather than their corners.
        recompute_scale_factor: Whether the steps between samples follow from the sizes and not from the factors.

    Example:
        >>> import rushlight as torch
        >>> torch.nn.Upsample(scale_factor=2)(torch.zeros(1, 3, 4, 4)).shape
        torch.Size([1, 3, 8, 8])
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) to the same with other sizes."""
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({"recompute_scale_factor": True, **state})  # states of old have none

    def extra_repr(self) -> str:
        """Size or factor, and the mode."""
        size = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{size}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` of 2d images with mode ``"nearest"``.

    Args:
        size: Sizes of the output; a number stands for both. Or
        scale_factor: a factor for each size.
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """`Upsample` of 2d images with mode ``"bilinear"`` and aligned corners.

    Args:
        size: Sizes of the output; a number stands for both. Or
        scale_factor: a factor for each size.
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
