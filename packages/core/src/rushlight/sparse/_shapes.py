"""What views are of strided tensors: copies of the indices here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor

from ._parts import CSC, CSR, EVERY, as_coo, clone, compressed_op, coo_op, crow_op, implements, values_op, wrap_dim


@implements("permute")
def permute(self: Tensor, dims: Sequence[int]) -> Tensor:
    if len(dims) != self.ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {self.ndim} is not equal to len(dims) = {len(dims)}"
        )
    order = [wrap_dim("permute", d, self.ndim) for d in dims]
    if len(set(order)) != len(order):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    n = self._payload.indices.shape[0]
    if sorted(order[:n]) != list(range(n)):
        raise RuntimeError(
            f"permute(sparse_coo): sparse and dense dimensions cannot change places, got dims={tuple(dims)} for "
            f"sparse_dim={n}."
        )
    same = order == list(range(self.ndim))
    v = self._payload.values.permute(0, *(d - n + 1 for d in order[n:]))
    indices = self._payload.indices[order[:n]]
    return coo_op(indices, v, [self.shape[d] for d in order], self._payload.coalesced and same)


@implements("transpose.int")
def transpose(self: Tensor, dim0: int, dim1: int) -> Tensor:
    order = list(range(self.ndim))
    a, b = wrap_dim("transpose", dim0, self.ndim), wrap_dim("transpose", dim1, self.ndim)
    n = self._payload.indices.shape[0]
    if (a < n) != (b < n):
        raise RuntimeError(
            f"sparse transpose: transposed dimensions must be sparse. Got sparse_dim: {n}, d0: {a}, d1: {b}"
        )
    order[a], order[b] = order[b], order[a]
    return permute(self, order)


@implements("t")
def t(self: Tensor) -> Tensor:
    n = self._payload.indices.shape[0]
    if n > 2 or self.ndim > n:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {n} sparse and {self.ndim - n} "
            "dense dimensions"
        )
    return permute(self, range(self.ndim)[::-1])


def _compressed_t(self: Tensor, *dims: int) -> Tensor:
    order = [wrap_dim("transpose", d, 2) for d in dims]
    if len(set(order)) < len(order):
        return clone(self)
    p = self._payload
    layout = CSC if p.layout is CSR else CSR
    return compressed_op(p.compressed, p.plain, values_op(self), (self.shape[1], self.shape[0]), layout)


implements("t", "transpose.int", layouts=(CSR, CSC), composite=True)(_compressed_t)


@implements("unsqueeze", composite=True)
def unsqueeze(self: Tensor, dim: int) -> Tensor:
    dim = wrap_dim("unsqueeze", dim, self.ndim + 1)
    p, n = self._payload, self._payload.indices.shape[0]
    size = [*self.shape[:dim], 1, *self.shape[dim:]]
    if dim > n:
        return coo_op(p.indices, values_op(self).unsqueeze(dim - n + 1), size, False)
    zero = p.indices.new_zeros((1, p.indices.shape[1]))
    return coo_op(rl.cat((p.indices[:dim], zero, p.indices[dim:])), values_op(self), size, False)


@implements("select.int", composite=True)
def select(self: Tensor, dim: int, index: int) -> Tensor:
    if not self.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim("select", dim, self.ndim)
    size = self.shape[dim]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(self.shape)} at dimension {dim}"
        )
    index %= size
    p, n = self._payload, self._payload.indices.shape[0]
    shape = [s for d, s in enumerate(self.shape) if d != dim]
    if dim >= n:
        return coo_op(p.indices, values_op(self).select(dim - n + 1, index), shape, p.coalesced)
    hit = (p.indices[dim] == index).nonzero().reshape(-1)
    v = values_op(self).index_select(0, hit)
    if n == 1:
        return v.sum(0).to(v.dtype)
    rows = rl.cat((p.indices[:dim], p.indices[dim + 1 :]))
    return coo_op(rows.index_select(1, hit), v, shape, p.coalesced)


@implements("select.int", layouts=(CSR, CSC), composite=True)
def compressed_select(self: Tensor, dim: int, index: int) -> Tensor:
    return as_coo(self).select(dim, index)


@implements("index_select", composite=True)
def index_select(self: Tensor, dim: int, index: Tensor) -> Tensor:
    if index.ndim > 1 or index.dtype not in (rl.int32, rl.int64) or index.layout is not rl.strided:
        raise IndexError(
            "index_select(): Index is supposed to be a strided vector of int32 or int64, got "
            f"{index.ndim}D {index.dtype} {index.layout}."
        )
    dim = wrap_dim("index_select", dim, self.ndim)
    p, n = self._payload, self._payload.indices.shape[0]
    index, size = index.long().reshape(-1), self.shape[dim]
    shape = [len(index) if d == dim else s for d, s in enumerate(self.shape)]
    if dim >= n:
        return coo_op(p.indices, values_op(self).index_select(dim - n + 1, index), shape, p.coalesced)
    if len(index) and (int(index.min()) < -size or int(index.max()) >= size):
        raise IndexError(f"index_select(): index contains values out of range for dimension {dim} of size {size}.")
    # Elements by the place that they are selected to, then in their old order.
    wanted = index.remainder(size) if size else index
    chosen = index.new_zeros(size, dtype=rl.bool).index_fill_(0, wanted, True)
    order = chosen.index_select(0, p.indices[dim]).nonzero().reshape(-1)
    line = p.indices[dim].index_select(0, order)
    if dim > 0 or not p.coalesced:
        line, by_line = line.sort(stable=True)
        order = order.index_select(0, by_line)
    starts = crow_op(line, size)
    first = starts.index_select(0, wanted)
    count = starts.index_select(0, wanted + 1) - first
    to = rl.arange(len(index), device=index.device).repeat_interleave(count)
    offset = rl.arange(len(to), device=to.device) - (count.cumsum(0) - count).index_select(0, to)
    at = order.index_select(0, first.index_select(0, to) + offset)
    indices = p.indices.index_select(1, at)
    indices[dim] = to
    return coo_op(indices, values_op(self).index_select(0, at), shape, p.coalesced and dim == 0)


def _joinable(name: str, tensors: Sequence[Tensor]) -> list[Tensor]:
    for i, tensor in enumerate(tensors):
        if tensor.layout is rl.strided:
            raise RuntimeError(f"Concatenating sparse tensors, but a dense tensor was found at position {i}.")
    parts = [as_coo(tensor) for tensor in tensors]
    first = parts[0]
    for i, part in enumerate(parts):
        if part._payload.indices.shape[0] != first._payload.indices.shape[0] or part.ndim != first.ndim:
            raise RuntimeError(
                f"All tensors must have the same number of sparse and dense dimensions: {name}, but tensor at position "
                f"{i} has {part._payload.indices.shape[0]} of {part.ndim} sparse, the first has "
                f"{first._payload.indices.shape[0]} of {first.ndim}."
            )
    return parts


@implements("cat", composite=True)
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    parts = _joinable("cat", tensors)
    dim = wrap_dim("cat", dim, parts[0].ndim)
    size = list(parts[0].shape)
    for i, part in enumerate(parts):
        if any(d != dim and a != b for d, (a, b) in enumerate(zip(part.shape, size, strict=True))):
            raise RuntimeError(
                f"cat(): expected all tensors to have the same shape apart from dimension {dim}, but tensor at "
                f"position {i} has shape {list(part.shape)} and the first {size}."
            )
    n = parts[0]._payload.indices.shape[0]
    v = [values_op(part) for part in parts]
    size[dim] = sum(part.shape[dim] for part in parts)
    indices = rl.cat([part._payload.indices for part in parts], 1)
    if dim < n:
        at = before = 0
        for part in parts:
            indices[dim, at : at + part._nnz()] += before
            at, before = at + part._nnz(), before + part.shape[dim]
        return coo_op(indices, rl.cat(v), size, False)
    # Along a dense dimension each tensor fills its part of the values with zeros around it.
    padded, before = [], 0
    for part, value in zip(parts, v, strict=True):
        shape = list(value.shape)
        axis, length = dim - n + 1, part.shape[dim]
        shape[axis] = before
        left = value.new_zeros(shape)
        shape[axis] = size[dim] - before - length
        padded.append(rl.cat((left, value, value.new_zeros(shape)), axis))
        before += length
    return coo_op(indices, rl.cat(padded), size, False)


@implements("stack", composite=True)
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    return rl.cat([tensor.unsqueeze(dim) for tensor in _joinable("stack", tensors)], dim)


@implements("unbind.int", composite=True)
def unbind(self: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    return tuple(self.select(dim, i) for i in range(self.size(dim)))


@implements("unbind.int", layouts=(CSR, CSC), composite=True)
def compressed_unbind(self: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    return as_coo(self).unbind(dim)


@implements("contiguous", layouts=EVERY)
def contiguous(self: Tensor, *, memory_format: Any = None) -> Tensor:
    raise RuntimeError("unsupported memory format option: a sparse tensor has no order of memory.")
