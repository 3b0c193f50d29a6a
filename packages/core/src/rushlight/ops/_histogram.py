"""Histograms of one dimension and of several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._op import COMPOSITE, Op, Sample

_DOC = """How many elements fall into each bin, or the sum of their weights, and the edges of the bins.

Args:
    input: float32 or float64 tensor.
    bins: Number of equal bins, or their edges in a 1-d tensor, ascending; the last bin includes its right edge.
    range: Lowest and highest edge of equal bins; by default the extremes of the input.
    weight: What each element counts; tensor of the shape and dtype of the input.
    density: Whether the result is divided by its total and by the width of the bins.

Returns:
    (hist, bin_edges) in the dtype of the input.

Example:
    >>> rushlight.histogram(rushlight.tensor([1.0, 2.0, 1.0]), 2, range=(0.0, 3.0)).hist
    tensor([2., 1.])
"""
histogram_edges = (
    Op(
        "histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False)"
        " -> (Tensor hist, Tensor bin_edges)",
        exact=True,
        family=COMPOSITE,
        differentiable=False,
        doc=_DOC,
    )
    .composite(lambda self, bins, *, weight, density: _histogram(self, bins, None, weight, density))
    .samples(
        lambda make, dtype: (
            Sample((make(30, low=-2, high=2), make.tensor([-2.0, 0.0, 0.5, 2.0]).to(dtype)), {"density": density})
            for density in (False, True)
        ),
        lambda x, bins, density: np.histogram(x, bins, density=density),
    )
)
histogram = (
    Op(
        "histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False)"
        " -> (Tensor hist, Tensor bin_edges)",
        exact=True,
        family=COMPOSITE,
        differentiable=False,
        doc=_DOC,
    )
    .composite(lambda self, bins, *, range, weight, density: _histogram(self, bins, range, weight, density))
    .samples(
        lambda make, dtype: (
            Sample((make(6, 5, low=-2, high=2), 4), {"range": between, "weight": make(6, 5, low=1, high=2)})
            for between in ((-2.0, 2.0), (-1.0, 1.5))
        ),
        lambda x, bins, range, weight: np.histogram(x, bins, range, weights=weight),
    )
)

_DD_DOC = """How many points fall into each cell of a grid, or the sum of their weights, and the edges of the bins.

Args:
    input: float32 or float64 tensor (*, d) of points in d dimensions.
    bins: Number of bins in each dimension or in all, or a list of their edges.
    range: Lowest and highest edge of each dimension, 2 d numbers; by default the extremes of the input.
    weight: What each point counts; tensor of the shape of the input without its last dimension.
    density: Whether the result is divided by its total and by the volume of the cells.

Returns:
    (hist, bin_edges): a d-dimensional tensor and a tuple of vectors, in the dtype of the input.
"""


def _grid(bins: str, *samples: Any) -> Op:
    return (
        Op(
            f"histogramdd{bins}, float[]? range=None, Tensor? weight=None, bool density=False)"
            " -> (Tensor hist, Tensor[] bin_edges)",
            family=COMPOSITE,
            method=False,
            out=False,
            differentiable=False,
            doc=_DD_DOC,
        )
        .composite(
            lambda self, bins, range, weight, density: _histogramdd(
                self, [bins] * self.shape[-1] if isinstance(bins, int) and self.ndim else bins, range, weight, density
            )
        )
        .samples(
            lambda make, dtype: (
                Sample((make(30, 2, low=-2, high=2), sample(make), (-2.0, 2.0, -1.0, 2.0)), {"density": density})
                for sample in samples
                for density in (False, True)
            ),
            lambda x, bins, range, density: _reference(x, bins, range, density),
        )
    )


histogramdd_int = _grid(".int_bins(Tensor self, int bins", lambda make: 3)
histogramdd = _grid("(Tensor self, int[] bins", lambda make: (2, 3))
histogramdd_edges = _grid(
    ".TensorList_bins(Tensor self, Tensor[] bins",
    lambda make: [make.tensor(edges).to(make.dtype) for edges in ([-2.0, 0.0, 2.0], [-1.0, 1.0, 1.5, 2.0])],
)


def _reference(x: np.ndarray, bins: Any, between: Sequence[float], density: bool) -> Any:
    bounds: Any = (between[:2], between[2:])
    hist, edges = np.histogramdd(x, bins, bounds, density)
    return hist, tuple(edges)


def _histogram(x: Any, bins: Any, between: Sequence[float] | None, weight: Any, density: bool) -> tuple[Any, Any]:
    points = x.reshape(-1, 1)
    if weight is not None:
        if weight.shape != x.shape:
            raise _wrong_weight(points, weight.reshape(-1))
        weight = weight.reshape(-1)
    hist, edges = _histogramdd(points, [bins], between, weight, density)
    return hist, edges[0]


def _histogramdd(
    x: Any, bins: Sequence[Any], between: Sequence[float] | None, weight: Any, density: bool
) -> tuple[Any, tuple[Any, ...]]:
    import rushlight

    if x.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    n = x.shape[-1]
    if len(bins) != n:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    if x.dtype not in (rushlight.float32, rushlight.float64):
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{x.dtype}'")
    if weight is not None and weight.dtype != x.dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same "
            f"dtype, but got input({x.dtype}), and weight({weight.dtype})"
        )
    if weight is not None and weight.shape != x.shape[:-1]:
        raise _wrong_weight(x, weight)
    if between is not None and len(between) != 2 * n:
        raise RuntimeError(
            f"torch.histogramdd: for a {n}-dimensional histogram range should have {2 * n} elements, "
            f"but got {len(between)}"
        )
    points = x.reshape(-1, n)
    edges = tuple(
        _edges(points[:, d], bins[d], None if between is None else between[2 * d : 2 * d + 2], d) for d in range(n)
    )
    shape = [len(e) - 1 for e in edges]
    if x.device.type == "meta":
        return x.new_empty(shape), edges
    inside = x.new_ones(len(points), dtype=rushlight.bool)
    cell = x.new_zeros(len(points), dtype=rushlight.int64)
    for d, (edge, size) in enumerate(zip(edges, shape, strict=True)):
        values = points[:, d].contiguous()
        inside &= (values >= edge[0]) & (values <= edge[-1])
        cell = cell * size + _bins_of(values, edge, not isinstance(bins[d], rushlight.Tensor))
    weights = None if weight is None else weight.reshape(-1)[inside]
    hist = rushlight.bincount(cell[inside], weights, math.prod(shape)).to(x.dtype).reshape(shape)
    if density:
        hist = hist / hist.sum()
        for d, edge in enumerate(edges):
            hist = hist / (edge[1:] - edge[:-1]).reshape([-1 if e == d else 1 for e in range(n)])
    return hist, edges


def _bins_of(values: Any, edges: Any, even: bool) -> Any:
    """The bin of each value; the last one holds its upper edge, too."""
    import rushlight

    last = len(edges) - 2
    low, high = edges[0].item(), edges[-1].item()
    width = (high - low) / (last + 1)
    if even and width > 16 * rushlight.finfo(edges.dtype).eps * max(abs(low), abs(high)):
        # By arithmetic, which rounding puts into a neighbour at most.
        guess = (values - low).mul_(1 / width).to(rushlight.int64).clamp_(0, last)
        guess -= (values < edges[guess]).to(rushlight.int64)
        guess += (values >= edges[guess + 1]).to(rushlight.int64)
        return guess.clamp_(max=last)
    return (rushlight.searchsorted(edges, values, right=True) - 1).clamp_(max=last)


def _edges(values: Any, bins: Any, between: Sequence[float] | None, dim: int) -> Any:
    import rushlight

    if isinstance(bins, rushlight.Tensor):
        if bins.ndim != 1:
            raise RuntimeError(
                f"torch.histogramdd: bins tensor should have one dimension, but got {bins.ndim} dimensions in the bins "
                f"tensor for dimension {dim}"
            )
        if bins.dtype != values.dtype:
            raise RuntimeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, "
                f"but got input with dtype {values.dtype} and bins for dimension {dim} with dtype {bins.dtype}"
            )
        if not len(bins):
            raise RuntimeError(
                "torch.histogramdd: bins tensor should have at least 1 element, "
                f"but got 0 elements in the bins tensor for dimension {dim}"
            )
    count = len(bins) - 1 if isinstance(bins, rushlight.Tensor) else bins
    if count <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {count} for dimension {dim}")
    if isinstance(bins, rushlight.Tensor):
        return bins.contiguous()
    low, high = between if between is not None else (0.0, 1.0)
    if between is None and len(values) and values.device.type != "meta":
        low, high = values.min().item(), values.max().item()
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histogramdd: dimension {dim}'s range [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(
            f"torch.histogramdd: min should not exceed max, but got min {low} max {high} for dimension {dim}"
        )
    if low == high:
        low, high = low - 0.5, high + 0.5
    return rushlight.linspace(low, high, count + 1, dtype=values.dtype, device=values.device)


def _wrong_weight(x: Any, weight: Any) -> RuntimeError:
    return RuntimeError(
        "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding "
        f"its innermost dimension, but got input with shape {list(x.shape)} and weight with shape {list(weight.shape)}"
    )
