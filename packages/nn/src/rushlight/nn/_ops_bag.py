"""Embeddings of bags of indices: the rows of a table, summed, averaged or maximised."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._op import COMPOSITE, Op, Sample
from rushlight.nn._precision import wide
from rushlight.nn._vjp import vjp

SUM, MEAN, MAX = range(3)


def _bag_of(bounds: Tensor, length: int) -> Tensor:
    """The bag of each of `length` indices; bag `b` has those from ``bounds[b]`` to ``bounds[b + 1]``."""
    places = rl.arange(length, device=bounds.device)
    return rl.searchsorted(bounds, places, right=True) - 1


def _combined(
    rows: Tensor, indices: Tensor, bounds: Tensor, mode: int, padding_idx: int, factors: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The bags of rows, and for maxima the index that each element is from."""
    bags, length = bounds.numel() - 1, indices.numel()
    counts = (indices != padding_idx) & (rl.arange(length, device=bounds.device) < bounds[-1])
    bag = _bag_of(bounds, length).clamp(max=max(bags - 1, 0))
    none = rl.zeros(0, dtype=rl.int64, device=indices.device)
    if mode != MAX:
        share = counts.to(rows.dtype)
        if factors is not None:
            share = share * factors
        if mode == MEAN:
            size = rl.zeros(bags, dtype=rows.dtype, device=rows.device).index_add(0, bag, share)
            share = share / size.clamp(min=1).index_select(0, bag)
        total = rl.zeros(bags, rows.size(1), dtype=rows.dtype, device=rows.device)
        return total.index_add(0, bag, rl.where(counts.unsqueeze(1), rows, 0) * share.unsqueeze(1)), none
    longest = length if bounds.is_meta else int((bounds[1:] - bounds[:-1]).max()) if bags else 0
    places = bounds[:-1].unsqueeze(1) + rl.arange(longest, device=bounds.device)
    inside = places < bounds[1:].unsqueeze(1)
    if not longest or not length:
        return rows.new_zeros(bags, rows.size(1)), indices.new_zeros(bags, rows.size(1))
    places = places.clamp(max=length - 1)
    inside = inside & counts[places]
    candidates = rl.where(inside.unsqueeze(2), rows[places], -rl.inf)
    values, at = candidates.max(1)
    empty = ~inside.any(1, keepdim=True)
    source = indices[places].unsqueeze(2).expand(candidates.shape).gather(1, at.unsqueeze(1)).squeeze(1)
    return rl.where(empty, 0, values), rl.where(empty, 0, source)


def _check_values(indices: Tensor, bounds: Tensor, rows: int) -> None:
    if indices.is_meta or bounds.is_meta:
        return
    first, final = int(bounds[0]), int(bounds.max())
    if first != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, "
            f"got {first}"
        )
    if final > indices.numel():
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {indices.numel()} but got offsets[-1] of {final}"
        )
    if bool((bounds[1:] < bounds[:-1]).any()):
        raise RuntimeError("embedding_bag: offsets must not decrease.")
    if indices.numel():
        least, greatest = int(indices.min()), int(indices.max())
        if least < 0 or greatest >= rows:
            wrong = least if least < 0 else greatest
            raise RuntimeError(
                f"embedding_bag: an index of input takes value {wrong} which is not in the valid range [0, {rows})"
            )


def bag_composite(
    weight: Tensor, indices: Tensor, bounds: Tensor, factors: Tensor | None, mode: int, padding_idx: int
) -> tuple[Tensor, Tensor]:
    _check_values(indices, bounds, weight.size(0))
    rows = wide(weight).index_select(0, indices)
    result, source = _combined(rows, indices, bounds, mode, padding_idx, wide(factors))
    return result.to(weight.dtype), source


def _bag_backward(
    output_grad: Tensor,
    weight: Tensor,
    indices: Tensor,
    bounds: Tensor,
    factors: Tensor | None,
    source: Tensor,
    mode: int,
    padding_idx: int,
) -> tuple[Tensor, Tensor | None]:
    inputs = (weight,) if factors is None else (weight, factors)

    def forward(weight: Tensor, factors: Tensor | None = None) -> Tensor:
        return bag_composite(weight, indices, bounds, factors, mode, padding_idx)[0]

    grads = vjp(forward, inputs, output_grad)
    return grads[0], None if factors is None else grads[1]


def bag_grad(
    grads: Any,
    weight: Tensor,
    indices: Tensor,
    bounds: Tensor,
    factors: Tensor | None,
    mode: int,
    padding_idx: int,
    result1: Tensor,
) -> tuple[Tensor, Tensor | None]:
    backward = _bag_backward if rl.is_grad_enabled() else bag_backward.operator
    found = backward(grads[0], weight, indices, bounds, factors, result1, mode, padding_idx)
    return found[0], None if factors is None else found[1]


_OPTIONS = "int mode, int padding_idx"


def _bags(make: Any) -> tuple[Tensor, Tensor]:
    return make.tensor([0, 4, 4, 1, 2, 0]), make.tensor([0, 2, 2, 6])


def _bag_samples(make: Any, dtype: Any) -> Any:
    if dtype.is_floating_point:
        for mode in (SUM, MEAN, MAX):
            yield Sample((make(5, 3), *_bags(make), None, mode, -1))
            yield Sample((make(5, 3), *_bags(make), None, mode, 4))
        yield Sample((make(5, 3), *_bags(make), make(6), SUM, 1))


bag = (
    Op(
        f"nn::bag(Tensor weight, Tensor indices, Tensor bounds, Tensor? factors, {_OPTIONS}) -> (Tensor, Tensor)",
        method=False,
        out=False,
        auxiliary=1,
        doc="""The combined rows of bags of indices, and for maxima the row that each element is from.

        Bag `b` has the indices from ``bounds[b]`` to ``bounds[b + 1]``; `padding_idx` does not count.
        """,
    )
    .composite(bag_composite)
    .grad(("weight", "factors"), bag_grad)
    .grad(indices=None, bounds=None)
    .samples(_bag_samples)
)
bag_backward = (
    Op(
        "nn::bag_backward(Tensor output_grad, Tensor weight, Tensor indices, Tensor bounds, Tensor? factors, "
        f"Tensor source, {_OPTIONS}) -> (Tensor, Tensor)",
        method=False,
        out=False,
        differentiable=False,
        doc="The gradients of `bag` with respect to its weight and its factors (None without them).",
    )
    .composite(_bag_backward)
    .samples(
        lambda make, dtype: (
            Sample((make(3, 3), make(5, 3), *_bags(make), make(6), make.tensor([0]), SUM, -1))
            for _ in range(1)
            if dtype.is_floating_point and dtype.itemsize >= 4
        )
    )
)


def _check_bags(
    weight: Tensor, indices: Tensor, offsets: Tensor, mode: int, factors: Tensor | None, last: bool, padding_idx: int
) -> None:
    for name, tensor in (("indices", indices), ("offsets", offsets)):
        if tensor.dtype not in (rl.int64, rl.int32):
            raise RuntimeError(f"embedding_bag: Expected {name} to be Long or Int, got {name}={tensor.dtype}.")
        if tensor.dim() != 1:
            raise RuntimeError(
                f"embedding_bag: {name} has to be a 1D Tensor, got {name} of shape {list(tensor.shape)}."
            )
    if weight.dim() != 2 or not weight.is_floating_point():
        raise RuntimeError(
            f"embedding_bag: Expected weight to be a 2-D floating-point tensor, got {weight.dtype} of shape "
            f"{list(weight.shape)}."
        )
    if mode not in (SUM, MEAN, MAX):
        raise RuntimeError(f"embedding_bag: mode is 0 (sum), 1 (mean) or 2 (max), got mode={mode}.")
    if factors is not None:
        if mode != SUM:
            raise RuntimeError("embedding_bag: per_sample_weights only supported with mode='sum'")
        if factors.dtype != weight.dtype or factors.shape != indices.shape:
            raise RuntimeError(
                "embedding_bag: Expected per_sample_weights to have the type of weight and the shape of indices, got "
                f"{factors.dtype} of shape {list(factors.shape)}."
            )
    rows = weight.size(0)
    if not -rows <= padding_idx < rows and padding_idx != -1:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, but got {padding_idx}"
        )
    if last and offsets.numel() == 0:
        raise RuntimeError("include_last_offset: number of offsets should be at least 1")


def combine_bags(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    include_last_offset: bool,
    padding_idx: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """The bags, where they begin and end, and the rows that maxima are from."""
    _check_bags(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx)
    padding_idx = padding_idx + weight.size(0) if padding_idx < -1 else padding_idx
    indices, bounds = indices.to(rl.int64), offsets.to(rl.int64)
    if not include_last_offset:
        length = indices.numel()
        # Without bags there is nothing to begin; the end stands alone.
        end = rl.full((1,), length if offsets.numel() else 0, dtype=rl.int64, device=indices.device)
        bounds = rl.cat([bounds, end])
    if scale_grad_by_freq or sparse:
        _check_values(indices, bounds, weight.size(0))
        rows = _rows(weight, indices, scale_grad_by_freq, sparse, padding_idx)
        result, source = _combined(rows, indices, bounds, mode, padding_idx, per_sample_weights)
    else:
        result, source = bag.operator(weight, indices, bounds, per_sample_weights, mode, padding_idx)
    return result, bounds, source


def embedding_bag_composite(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    include_last_offset: bool,
    padding_idx: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    result, bounds, source = combine_bags(
        weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
    )
    size = bounds[1:] - bounds[:-1]
    return result, _bag_of(bounds, indices.numel()), size, source if mode == MAX else size


def _rows(weight: Tensor, indices: Tensor, by_frequency: bool, sparse: bool, padding_idx: int) -> Tensor:
    """The rows at the indices, whose gradients are divided by how often the index occurs, or sparse."""
    from rushlight.nn._ops_lookup import sparse_rows

    if sparse:
        if by_frequency:
            raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
        return sparse_rows.operator(weight, indices, padding_idx)
    rows = weight.index_select(0, indices)
    counts = rl.bincount(indices, minlength=weight.size(0)).index_select(0, indices).to(weight.dtype)
    scaled = rows / counts.unsqueeze(1)
    return rows.detach() + (scaled - scaled.detach())  # the values of rows with the gradient of scaled


embedding_bag = (
    Op(
        "embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, "
        "bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> "
        "(Tensor, Tensor, Tensor, Tensor)",
        family=COMPOSITE,
        method=False,
        out=False,
        doc="""The rows of `weight` at bags of indices, combined; see `rushlight.nn.functional.embedding_bag`.

        Args:
            weight: (rows, d).
            indices: (n,), int64 or int32.
            offsets: (bags,), where each bag begins; with `include_last_offset` one more, the end of the last.
            scale_grad_by_freq: Whether a row's gradient is divided by how often the row occurs.
            mode: 0 (sum), 1 (mean) or 2 (maximum).
            sparse: Whether the gradient of `weight` is sparse.
            per_sample_weights: (n,), factors for the rows of a sum.
            include_last_offset: See `offsets`.
            padding_idx: An index that does not count; -1 for none.

        Returns:
            The bags (bags, d), the bag of each index, the sizes of the bags, and the rows that maxima are from.
        """,
    )
    .composite(embedding_bag_composite)
    .samples(
        lambda make, dtype: (
            Sample((make(5, 3), make.tensor([0, 4, 4, 1, 2, 0]), make.tensor([0, 2, 2]), False, mode))
            for mode in (SUM, MEAN, MAX)
            if dtype.is_floating_point
        )
    )
)
