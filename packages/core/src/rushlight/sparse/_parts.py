"""What sparse tensors keep in place of memory, and what their operators share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from rushlight import _C, Tensor, _registry
from rushlight._op import operators

COO, CSR, CSC = EVERY = _C.sparse_coo, _C.sparse_csr, _C.sparse_csc

coo_op = operators["_sparse_coo"]
compressed_op = operators["_sparse_compressed"]
values_op = operators["_sparse_values"]
coalesce_op = operators["_coalesce"]
to_dense_op = operators["_to_dense"]
to_sparse_op = operators["_to_sparse"]
to_layout_op = operators["_to_layout"]
mask_op = operators["_sparse_mask"]
matmul_op = operators["_sparse_sparse_matmul"]
keys_op = operators["_coo_keys"]
indices_op = operators["_coo_indices"]
sum_op = operators["_coo_sum"]
merge_op = operators["_coo_merge"]
find_op = operators["_coo_find"]
rows_op = operators["_csr_rows"]
crow_op = operators["_csr_crow"]
coo_matmul_op = operators["_coo_matmul"]
csr_matmul_op = operators["_csr_matmul"]
csr_matmul_csr_op = operators["_csr_matmul_csr"]
sampled_op = operators["_sampled_products"]


class Coo:
    """The payload of layout sparse_coo.

    Attributes:
        indices: int64 tensor (sparse_dim, nnz).
        values: Tensor (nnz, *dense sizes).
        coalesced: Whether the indices ascend and are distinct.
    """

    __slots__ = ("coalesced", "indices", "values")
    layout = COO

    def __init__(self, indices: Tensor, values: Tensor, coalesced: bool) -> None:
        self.indices, self.values, self.coalesced = indices, values, coalesced

    @property
    def parts(self) -> dict[str, Tensor]:
        return {"indices": self.indices, "values": self.values}

    def state(self, size: Any) -> tuple[Any, ...]:
        return self.indices, self.values, size, self.coalesced


class Compressed:
    """The payload of layouts sparse_csr and sparse_csc.

    Attributes:
        compressed: Offsets of the rows (columns, where the layout is sparse_csc) into `plain`, one more than there are.
        plain: The column (row) of each element, ascending in each row (column).
        values: Vector of nnz elements.
    """

    __slots__ = ("compressed", "layout", "plain", "values")

    def __init__(self, compressed: Tensor, plain: Tensor, values: Tensor, layout: Any) -> None:
        self.compressed, self.plain, self.values, self.layout = compressed, plain, values, layout

    @property
    def parts(self) -> dict[str, Tensor]:
        rows, columns = ("crow_indices", "col_indices") if self.layout is CSR else ("ccol_indices", "row_indices")
        return {rows: self.compressed, columns: self.plain, "values": self.values}

    def state(self, size: Any) -> tuple[Any, ...]:
        return self.compressed, self.plain, self.values, size


def implements(*names: str, layouts: Sequence[Any] = (COO,), **options: Any) -> Callable[..., Any]:
    """Registers a function as what ops do on layouts; the options are those of `Op.layout`."""

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            for layout in layouts:
                _registry.ops[name].item.layout(layout, fn, **options)
        return fn

    return register


def make_coo(indices: Tensor, values: Tensor, size: Sequence[int], coalesced: bool) -> Tensor:
    """The tensor over its parts, unchecked and without history."""
    payload = Coo(indices, values.detach(), coalesced or values.shape[0] < 2)
    return _C.with_payload(payload, size, values.dtype, values.device)


def make_compressed(compressed: Tensor, plain: Tensor, values: Tensor, size: Sequence[int], layout: Any) -> Tensor:
    """The same for the compressed layouts."""
    payload = Compressed(compressed, plain, values.detach(), layout)
    return _C.with_payload(payload, size, values.dtype, values.device)


def with_values(t: Tensor, values: Tensor) -> Tensor:
    """A tensor with the indices of `t` and other values; differentiable in the values."""
    p = t._payload
    if p.layout is COO:
        return coo_op(p.indices, values, t.shape, p.coalesced)
    return compressed_op(p.compressed, p.plain, values, t.shape, p.layout)


def sparse_shape(t: Tensor) -> tuple[int, ...]:
    return tuple(t.shape[: t._payload.indices.shape[0]])


def keys(t: Tensor) -> Tensor:
    return keys_op(t._payload.indices, sparse_shape(t))


def as_coo(t: Tensor) -> Tensor:
    return t if t.layout is COO else to_layout_op(t, COO)


def as_csr(t: Tensor) -> Tensor:
    return t if t.layout is CSR else to_layout_op(t, CSR)


def flat_view(t: Tensor, sparse_dim: int) -> Tensor:
    """A strided tensor with its first dimensions merged to one."""
    return t.reshape(prod(t.shape[:sparse_dim]), *t.shape[sparse_dim:])


def clone(self: Tensor, memory_format: Any = None) -> Tensor:
    p = self._payload
    if p.layout is COO:
        return make_coo(p.indices.clone(), p.values.clone(), self.shape, p.coalesced)
    return make_compressed(p.compressed.clone(), p.plain.clone(), p.values.clone(), self.shape, p.layout)


def wrap_dim(name: str, dim: int, ndim: int) -> int:
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim}): {name}."
        )
    return dim % ndim
