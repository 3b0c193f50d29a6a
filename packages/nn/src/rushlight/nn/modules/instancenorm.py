"""Normalisation of each channel of each sample."""

from __future__ import annotations

import warnings
from typing import Any

from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.batchnorm import _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]  # fmt: skip


class _InstanceNorm(_NormBase):
    _ndim: int  # of the input without N

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (self._ndim, self._ndim + 1):
            raise ValueError(f"expected {self._ndim}D or {self._ndim + 1}D input (got {input.dim()}D input)")

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *args: Any) -> None:
        if local_metadata.get("version", None) is None and not self.track_running_stats:
            stale = [key for key in ("running_mean", "running_var") if prefix + key in state_dict]
            if stale:
                args[-1].append(
                    f"Unexpected running stats buffer(s) {' and '.join(map(repr, stale))} for {type(self).__name__} "
                    "with track_running_stats=False. If state_dict is a checkpoint saved before 0.4.0, this may be "
                    "expected because InstanceNorm*d does not track running stats by default since then. Please remove "
                    "these keys from state_dict, or set track_running_stats=True."
                )
                for key in stale:
                    state_dict.pop(prefix + key)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) or (C, *) to the same shape."""
        self._check_input_dim(input)
        batched = input.dim() == self._ndim + 1
        channels = input.size(-self._ndim)
        if channels != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={int(batched)} to match num_features ({self.num_features}), but "
                    f"got: {channels}."
                )
            warnings.warn(
                f"input's size at dim={int(batched)} does not match num_features. You can silence this warning by not "
                "passing in num_features, which is not used because affine=False",
                stacklevel=2,
            )
        output = F.instance_norm(
            input if batched else input.unsqueeze(0),
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return output if batched else output.squeeze(0)


_DOC = """Normalises each channel of each sample of an input {shape}, then scales and shifts it (Ulyanov et al., 2016).

    Args:
        num_features: C, the number of channels.
        eps: Added to the variance.
        momentum: Weight of a batch in the running statistics.
        affine: Whether scale and shift are learned.
        track_running_stats: Whether running statistics are kept, which serve outside training.
        device: Where parameters and buffers are made.
        dtype: Their type.
        bias: Whether there is a shift.

    Attributes:
        weight: (C,), the scale, first 1.
        bias: (C,), the shift, first 0.
        running_mean: (C,), a buffer.
        running_var: (C,), a buffer.
    """


class InstanceNorm1d(_InstanceNorm):
    __doc__ = _DOC.format(shape="(N, C, L) or (C, L)")
    _ndim = 2


class InstanceNorm2d(_InstanceNorm):
    __doc__ = _DOC.format(shape="(N, C, H, W) or (C, H, W)")
    _ndim = 3


class InstanceNorm3d(_InstanceNorm):
    __doc__ = _DOC.format(shape="(N, C, D, H, W) or (C, D, H, W)")
    _ndim = 4


class LazyInstanceNorm1d(_LazyNormBase, InstanceNorm1d):
    """`InstanceNorm1d` whose `num_features` is that of its first input."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNormBase, InstanceNorm2d):
    """`InstanceNorm2d` whose `num_features` is that of its first input."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNormBase, InstanceNorm3d):
    """`InstanceNorm3d` whose `num_features` is that of its first input."""

    cls_to_become = InstanceNorm3d
