"""Normalisation over the batch."""

from __future__ import annotations

import sys
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as F, init
from rushlight.nn.modules.lazy import LazyModuleMixin
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter, is_lazy

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d",
    "SyncBatchNorm",
]  # fmt: skip


class _NormBase(Module):
    """Parameters, running statistics and their state dict."""

    _version = 2  # 2: num_batches_tracked
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        options = {"device": device, "dtype": dtype}
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, Parameter(rl.empty(num_features, **options)) if wanted else None)
        tracked = track_running_stats
        self.register_buffer("running_mean", rl.zeros(num_features, **options) if tracked else None)
        self.register_buffer("running_var", rl.ones(num_features, **options) if tracked else None)
        counter = rl.tensor(0, dtype=rl.int64, device=device) if tracked else None
        self.register_buffer("num_batches_tracked", counter)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forgets what was seen so far."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Sets scale 1 and shift 0, and forgets the running statistics."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *args: Any) -> None:
        version = local_metadata.get("version", None)
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            own = self.num_batches_tracked
            known = own is not None and not own.is_meta
            state_dict[key] = own if known else rl.tensor(0, dtype=rl.int64)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)


class _LazyNormBase(LazyModuleMixin, _NormBase):
    weight: Any
    bias: Any

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        options = {"device": device, "dtype": dtype}
        super().__init__(0, eps, momentum, False, False, **options)
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            if wanted:
                setattr(self, name, UninitializedParameter(**options))
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**options)
            self.running_var = UninitializedBuffer(**options)
            self.num_batches_tracked = rl.tensor(0, dtype=rl.int64, device=device)

    def reset_parameters(self) -> None:
        """Sets scale 1 and shift 0, and forgets the running statistics, once they have a shape."""
        if not self.has_uninitialized_params() and self.num_features:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Takes the number of channels from an input (N, C, *)."""
        if not self.has_uninitialized_params():
            self.num_features = self.num_features or input.shape[1]
            return
        self._check_input_dim(input)
        self.num_features = input.shape[1]
        for tensor in (self.weight, self.bias, self.running_mean, self.running_var):
            if tensor is not None and is_lazy(tensor):
                tensor.materialize((self.num_features,))
        self.reset_parameters()


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) to the same shape."""
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the mean of all batches
                momentum = 1.0 / float(self.num_batches_tracked)
        mean, variance = self.running_mean, self.running_var
        by_batch = self.training or (mean is None and variance is None)
        if self.training and not self.track_running_stats:
            mean = variance = None
        return F.batch_norm(input, mean, variance, self.weight, self.bias, by_batch, momentum, self.eps)


_DOC = """Normalises each channel of an input {shape} to mean 0 and variance 1, then scales and shifts it.

    In training mode the statistics are those of the batch, outside it the running mean and variance of
    past batches (Ioffe and Szegedy, 2015).

    Args:
        num_features: C, the number of channels.
        eps: Added to the variance.
        momentum: Weight of a batch in the running statistics; None: the mean of all batches.
        affine: Whether scale and shift are learned.
        track_running_stats: Whether running statistics are kept; if not, those of the batch are always used.
        device: Where parameters and buffers are made.
        dtype: Their type.
        bias: Whether there is a shift.

    Attributes:
        weight: (C,), the scale, first 1.
        bias: (C,), the shift, first 0.
        running_mean: (C,), a buffer.
        running_var: (C,), a buffer.
        num_batches_tracked: How many batches were seen, a buffer.
    """


class BatchNorm1d(_BatchNorm):
    __doc__ = _DOC.format(shape="(N, C) or (N, C, L)")

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class BatchNorm2d(_BatchNorm):
    __doc__ = _DOC.format(shape="(N, C, H, W)")

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


class BatchNorm3d(_BatchNorm):
    __doc__ = _DOC.format(shape="(N, C, D, H, W)")

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")


class LazyBatchNorm1d(_LazyNormBase, BatchNorm1d):
    """`BatchNorm1d` whose `num_features` is that of its first input."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNormBase, BatchNorm2d):
    """`BatchNorm2d` whose `num_features` is that of its first input."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNormBase, BatchNorm3d):
    """`BatchNorm3d` whose `num_features` is that of its first input."""

    cls_to_become = BatchNorm3d


class SyncBatchNorm(_BatchNorm):
    """Batch norm whose statistics are those of a whole process group; in one process those of its batch.

    Args:
        num_features: C, the number of channels of an input (N, C, *).
        eps: Added to the variance.
        momentum: Weight of a batch in the running statistics; None: the mean of all batches.
        affine: Whether scale and shift are learned.
        track_running_stats: Whether running statistics are kept.
        process_group: Between whose processes statistics are shared.
        device: Where parameters and buffers are made.
        dtype: Their type.
        bias: Whether there is a shift.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) to the same shape."""
        self._check_input_dim(input)
        if self.training and _in_group() and not input.is_cuda:
            raise ValueError(
                "SyncBatchNorm expected input tensor to be on a device of a process group's backend for training, got "
                f"an input on {input.device}. Use BatchNorm1d, BatchNorm2d or BatchNorm3d on the CPU."
            )
        return super().forward(input)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The module with every batch norm in it replaced by a `SyncBatchNorm` with the same tensors.

        Args:
            module: Changed in place, unless it is a batch norm itself.
            process_group: Between whose processes statistics are shared.
        """
        if isinstance(module, _BatchNorm):
            converted = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            if module.affine:
                converted.weight, converted.bias = module.weight, module.bias
            for name in ("running_mean", "running_var", "num_batches_tracked", "training"):
                setattr(converted, name, getattr(module, name))
            return converted
        for name, child in module.named_children():
            module.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return module


def _in_group() -> bool:
    """Whether this process is one of several that train together."""
    distributed = sys.modules.get("rushlight.distributed")
    return distributed is not None and distributed.is_initialized()
