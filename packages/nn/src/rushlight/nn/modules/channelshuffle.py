"""Channels in another order."""

from __future__ import annotations

from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """Mixes the channels of groups (Zhang et al., 2018): the first of each group come first, then the second.

    Args:
        groups: How many groups the channels make.
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) to the same shape."""
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        """The number of groups."""
        return f"groups={self.groups}"
