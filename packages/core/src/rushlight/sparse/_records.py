"""What the records of `ops/_sparse.py` do: between layouts, and gradients."""

from __future__ import annotations

from math import prod
from typing import Any

import rushlight as rl
from rushlight import Tensor

from ._parts import (
    COO,
    CSC,
    CSR,
    as_coo,
    as_csr,
    coo_matmul_op,
    coo_op,
    crow_op,
    csr_matmul_csr_op,
    find_op,
    flat_view,
    indices_op,
    keys,
    keys_op,
    make_compressed,
    make_coo,
    mask_op,
    rows_op,
    sampled_op,
    sparse_shape,
    sum_op,
    to_dense_op,
    to_layout_op,
    to_sparse_op,
    with_values,
)
from ._products import check_matrices


def values(self: Tensor) -> Tensor:
    return self._payload.values.detach()


def coalesce(self: Tensor) -> Tensor:
    p = self._payload
    if p.coalesced:
        return self
    found, sums = sum_op(keys(self), p.values)
    return make_coo(indices_op(found, sparse_shape(self)), sums, self.shape, True)


# -- between layouts


def coo_to_dense(self: Tensor, masked_grad: bool) -> Tensor:
    if not self._payload.coalesced and self.dtype in (rl.float16, rl.bfloat16, rl.bool):
        self = coalesce(self)  # sums are rounded once
    p, shape = self._payload, self.shape
    n = p.indices.shape[0]
    out = p.values.new_zeros((prod(shape[:n]), *shape[n:]))
    write = out.index_copy_ if p.coalesced else out.index_add_
    write(0, keys_op(p.indices, shape[:n]), p.values)
    return out.view(shape)


def compressed_to_dense(self: Tensor, masked_grad: bool) -> Tensor:
    return coo_to_dense(as_coo(self), masked_grad)


def dense_to_coo(self: Tensor, sparse_dim: int) -> Tensor:
    """The record `to_sparse_op`: a strided tensor's elements, or blocks of them, that are not zero."""
    size = self.shape[:sparse_dim]
    blocks = flat_view(self.detach(), sparse_dim)
    filled = blocks != 0
    if filled.ndim > 1:
        filled = filled.flatten(1).any(1)
    at = filled.nonzero().reshape(-1)
    return make_coo(indices_op(at, size), blocks.index_select(0, at), self.shape, True)


def coo_to(self: Tensor, layout: Any) -> Tensor:
    if layout is CSC:
        return compressed_to(coo_to(self.t(), CSR), CSC, transposed=True)
    if layout is not CSR:
        raise RuntimeError(f"to_sparse: conversion from {self.layout} to {layout} is not supported.")
    if self._payload.indices.shape[0] != 2 or self.ndim != 2:
        raise RuntimeError(
            "coo_to_sparse_csr: conversion from Sparse to SparseCsr for input tensors with sparse_dim()!=2 is not "
            f"supported, got size={tuple(self.shape)} with sparse_dim={self._payload.indices.shape[0]}."
        )
    self = coalesce(self)
    p = self._payload
    return make_compressed(crow_op(p.indices[0], self.shape[0]), p.indices[1], p.values, self.shape, CSR)


def compressed_to(self: Tensor, layout: Any, transposed: bool = False) -> Tensor:
    p = self._payload
    if transposed:  # the same parts, read the other way
        return make_compressed(p.compressed, p.plain, p.values, (self.shape[1], self.shape[0]), layout)
    rows = rows_op(p.compressed, p.plain.shape[0])
    if layout is not COO:
        return coo_to(compressed_to(self, COO), layout)
    pair = (rows, p.plain.long()) if p.layout is CSR else (p.plain.long(), rows)
    return make_coo(rl.stack(pair), p.values, self.shape, p.layout is CSR)


def sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    if mask.layout is rl.strided or (self.layout is not rl.strided and self.layout is not COO):
        raise RuntimeError(
            f"sparse_mask: expects a sparse mask and a dense or sparse_coo input, got layouts {self.layout} and "
            f"{mask.layout}."
        )
    if self.shape != mask.shape:
        raise RuntimeError(
            "sparse_mask(): operands have incompatible sizes; self has size "
            f"{list(self.shape)} but mask has size {list(mask.shape)}"
        )
    p = mask._payload
    return make_coo(p.indices, gather(self.detach(), p.indices), mask.shape, p.coalesced)


def sparse_mask_compressed(self: Tensor, mask: Tensor) -> Tensor:
    if mask.layout not in (CSR, CSC):
        return sparse_mask(as_coo(self), mask)
    source = self if self.layout is rl.strided else as_coo(self)
    return with_values(mask, sparse_mask(source, as_coo(mask))._payload.values)


def gather(grad: Tensor, indices: Tensor) -> Tensor:
    """The elements of a tensor of any layout at indices (sparse_dim, m): a strided tensor (m, *dense sizes)."""
    n = indices.shape[0]
    wanted = keys_op(indices, grad.shape[:n])
    if grad.layout is rl.strided:
        return flat_view(grad, n).index_select(0, wanted)
    source = coalesce(as_coo(grad))
    p = source._payload
    if p.indices.shape[0] != n:
        return gather(dense(source), indices)
    at = find_op(keys(source), wanted)
    if not p.values.shape[0]:
        return p.values.new_zeros((len(at), *p.values.shape[1:]))
    found = p.values.index_select(0, at.clamp(min=0))
    return found.masked_fill((at < 0).reshape(-1, *[1] * (found.ndim - 1)), 0)


def dense(grad: Tensor) -> Tensor:
    return grad if grad.layout is rl.strided else to_dense_op(grad, True)


# -- gradients of the records in ops/_sparse.py


def with_values_of(grad: Tensor, self: Tensor) -> Tensor:
    if self.layout is not COO or self._payload.coalesced:
        return with_values(self, grad)
    # Elements of equal indices count as one, whose gradient each of them has.
    found, sums = sum_op(keys(self), grad)
    _, counts = sum_op(keys(self), grad.new_ones(len(grad)))
    mean = sums / counts.reshape(-1, *[1] * (grad.ndim - 1))
    return coo_op(indices_op(found, sparse_shape(self)), mean, self.shape, True)


def to_dense_grad(grad: Tensor, self: Tensor, masked_grad: bool) -> Tensor:
    if masked_grad:
        return mask_op(grad, coalesce(self) if self.layout is COO else self)
    return to_layout_grad(grad, self)


def to_layout_grad(grad: Tensor, self: Tensor) -> Tensor:
    if grad.layout is rl.strided:
        grad = to_sparse_op(grad, self._payload.indices.shape[0] if self.layout is COO else 2)
    return grad if grad.layout is self.layout else to_layout_op(grad, self.layout)


def sparse_mask_grad(grad: Tensor, self: Tensor, mask: Tensor) -> Tensor:
    masked = mask_op(grad, mask)
    return dense(masked) if self.layout is rl.strided else masked


def compressed_values_grad(grad: Tensor, compressed: Tensor, plain: Tensor, values: Tensor, layout: Any) -> Tensor:
    other = rows_op(compressed, plain.shape[0])
    return gather(grad, rl.stack((other, plain.long()) if layout is CSR else (plain.long(), other)))


def coo_matmul_values_grad(grad: Tensor, indices: Tensor, mat2: Tensor) -> Tensor:
    return sampled_op(indices[0], indices[1], grad, mat2.conj())


def coo_matmul_dense_grad(grad: Tensor, indices: Tensor, values: Tensor, mat2: Tensor) -> Tensor:
    return coo_matmul_op(indices.flip(0), values.conj(), grad, mat2.shape[0])


def csr_matmul_values_grad(grad: Tensor, crow: Tensor, col: Tensor, mat2: Tensor) -> Tensor:
    return sampled_op(rows_op(crow, col.shape[0]), col, grad, mat2.conj())


def csr_matmul_dense_grad(grad: Tensor, crow: Tensor, col: Tensor, values: Tensor, mat2: Tensor) -> Tensor:
    return coo_matmul_op(rl.stack((col.long(), rows_op(crow, col.shape[0]))), values.conj(), grad, mat2.shape[0])


def sampled_grad_mat1(grad: Tensor, rows: Tensor, cols: Tensor, mat1: Tensor, mat2: Tensor) -> Tensor:
    return coo_matmul_op(rl.stack((rows.long(), cols.long())), grad, mat2.conj(), mat1.shape[0])


def sampled_grad_mat2(grad: Tensor, rows: Tensor, cols: Tensor, mat1: Tensor, mat2: Tensor) -> Tensor:
    return sampled_grad_mat1(grad, cols, rows, mat2, mat1)


def sparse_matmul_grad_self(grad: Tensor, self: Tensor, other: Tensor) -> Tensor:
    return mask_op(grad @ other.conj().t(), coalesce(self) if self.layout is COO else self)


def sparse_matmul_grad_other(grad: Tensor, self: Tensor, other: Tensor) -> Tensor:
    return mask_op(self.conj().t() @ grad, coalesce(other) if other.layout is COO else other)


def sparse_sparse_matmul(self: Tensor, other: Tensor) -> Tensor:
    check_matrices("mm", self, other)
    a, b = as_csr(self)._payload, as_csr(other)._payload
    rows, cols = self.shape[0], other.shape[1]
    if cols > 4 * b.plain.shape[0] + 64:  # few of many columns: number them anew, so that sums stay in the cache
        used, place = b.plain.unique(return_inverse=True)
        crow, col, v = csr_matmul_csr_op(a.compressed, a.plain, a.values, b.compressed, place, b.values, len(used))
        col = used.index_select(0, col)
    else:
        crow, col, v = csr_matmul_csr_op(a.compressed, a.plain, a.values, b.compressed, b.plain, b.values, cols)
    result = make_compressed(crow, col, v, (rows, cols), CSR)
    return result if self.layout is CSR else to_layout_op(result, self.layout)
