"""What Tensor has for sparse tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import _C, Tensor

from ._construct import check_size
from ._create import resize
from ._parts import COO, CSC, CSR, EVERY, Coo, coalesce_op, mask_op, to_dense_op, to_layout_op, to_sparse_op, values_op

_NAMES = {_C.strided: "Strided", COO: "Sparse", CSR: "SparseCsr", CSC: "SparseCsc"}


def _expect(t: Tensor, what: str, kind: str, layouts: Sequence[Any]) -> Any:
    if t.layout not in layouts:
        raise RuntimeError(f"{what} expected {kind} tensor layout but got {_NAMES.get(t.layout, t.layout)}")
    return t._payload


def _expect_coo(t: Tensor, what: str) -> Coo:
    return _expect(t, what, "sparse coordinate", (COO,))


def _to_sparse(self: Tensor, *args: Any, **options: Any) -> Tensor:
    """This tensor in a sparse layout.

    `to_sparse(sparse_dim)` makes that many leading dimensions sparse, by default all; `to_sparse(layout=...)` takes
    `sparse_coo`, the default, `sparse_csr` or `sparse_csc`.

    Example:
        >>> rushlight.eye(2).to_sparse().values()
        tensor([1., 1.])
    """
    layout, dense_dim = options.pop("layout", None), options.pop("dense_dim", None)
    sparse_dim = args[0] if args else options.pop("sparse_dim", options.pop("sparseDims", None))
    if options.pop("blocksize", None) is not None or options or len(args) > 1:
        raise TypeError("to_sparse() takes (sparse_dim) or (*, layout, dense_dim); blocks are not supported")
    if sparse_dim is not None and layout not in (None, COO):
        raise TypeError("to_sparse(): sparse_dim goes with layout sparse_coo only")
    if dense_dim is not None:
        sparse_dim = self.ndim - dense_dim
    if self.layout is not rl.strided:
        if layout in (None, COO) and sparse_dim is not None and self.layout is COO and sparse_dim != self.sparse_dim():
            raise RuntimeError(
                "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not "
                "supported"
            )
        return self if self.layout is (layout or COO) else to_layout_op(self, layout or COO)
    n = self.ndim if sparse_dim is None else sparse_dim
    if not 0 <= n <= self.ndim:
        raise RuntimeError(f"dense_to_sparse: sparse_dim argument must be in [0,{self.ndim}] range, but {n} is given")
    if n == 0 and self.ndim:
        raise RuntimeError("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0")
    if layout in (None, COO):
        return to_sparse_op(self, n)
    if layout not in (CSR, CSC) or self.ndim != 2:
        raise RuntimeError(f"to_sparse: a tensor of layout {layout} is a matrix, got size={tuple(self.shape)}.")
    return to_layout_op(to_sparse_op(self, 2), layout)


def _to_sparse_coo(self: Tensor) -> Tensor:
    """`to_sparse(layout=sparse_coo)`."""
    return self.to_sparse()


def _to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """`to_sparse(layout=sparse_csr)`."""
    return self.to_sparse(layout=CSR, dense_dim=dense_dim)


def _to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """`to_sparse(layout=sparse_csc)`."""
    return self.to_sparse(layout=CSC, dense_dim=dense_dim)


def _to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """This tensor as a strided one, itself when it is; of dtype `dtype` where that is given.

    With `masked_grad`, the default, the gradient keeps the indices of this tensor only.
    """
    t = self if self.layout is rl.strided else to_dense_op(self, masked_grad is not False)
    return t if dtype is None else t.to(dtype)


def _coalesce(self: Tensor) -> Tensor:
    """The same tensor of layout sparse_coo with ascending indices and values of equal indices added up."""
    _expect_coo(self, "coalesce")
    return coalesce_op(self)


def _is_coalesced(self: Tensor) -> bool:
    """Whether the indices ascend and are distinct."""
    return _expect_coo(self, "is_coalesced").coalesced


def _coalesced_(self: Tensor, coalesced: bool) -> Tensor:
    p = _expect_coo(self, "_coalesced_")
    _C.set_payload(self, Coo(p.indices, p.values, coalesced))
    return self


def _raw_indices(self: Tensor) -> Tensor:
    return _expect_coo(self, "_indices").indices.detach()


def _indices(self: Tensor) -> Tensor:
    """Coordinates of the elements of a coalesced tensor, int64 (sparse_dim, nnz)."""
    if not _expect_coo(self, "indices").coalesced:
        raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
    return _raw_indices(self)


def _raw_values(self: Tensor) -> Tensor:
    return _expect(self, "_values", "sparse", EVERY).values.detach()


def _values(self: Tensor) -> Tensor:
    """Values of a coalesced tensor or compressed matrix, (nnz, *dense sizes)."""
    p = _expect(self, "values", "sparse", EVERY)
    if p.layout is COO and not p.coalesced:
        raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first")
    return values_op(self)


def _compressed_part(name: str, attribute: str, layout: Any) -> Any:
    kind = "sparse row compressed" if layout is CSR else "sparse column compressed"

    def get(self: Tensor) -> Tensor:
        return getattr(_expect(self, name, kind, (layout,)), attribute).detach()

    get.__name__ = name
    get.__doc__ = f"The {name.replace('_', ' ')} of a matrix of layout {layout}."
    return get


def _sparse_dim(self: Tensor) -> int:
    """The number of sparse dimensions; 0 of a strided tensor."""
    p = self._payload
    return 0 if p is None else p.indices.shape[0] if isinstance(p, Coo) else 2


def _dense_dim(self: Tensor) -> int:
    """The number of dimensions of each value; all of a strided tensor."""
    return self.ndim - self.sparse_dim()


def _nnz(self: Tensor) -> int:
    return len(_expect(self, "_nnz", "sparse", EVERY).values)


def _sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    """The elements at the indices of `mask`, a sparse tensor of the same shape, as such a tensor."""
    if mask.layout is rl.strided:
        raise RuntimeError(f"sparse_mask: mask must be a sparse tensor, got layout={mask.layout}.")
    return mask_op(self, mask)


def _sparse_resize_(self: Tensor, size: Sequence[int], sparse_dim: int, dense_dim: int) -> Tensor:
    """Gives this tensor another size, keeping its elements: dimensions may grow, without elements all may change."""
    return _resize(self, size, sparse_dim, dense_dim, clear=False)


def _sparse_resize_and_clear_(self: Tensor, size: Sequence[int], sparse_dim: int, dense_dim: int) -> Tensor:
    """Gives this tensor another size and no elements."""
    return _resize(self, size, sparse_dim, dense_dim, clear=True)


def _resize(self: Tensor, size: Sequence[int], sparse_dim: int, dense_dim: int, clear: bool) -> Tensor:
    _expect_coo(self, "sparse_resize_and_clear_" if clear else "sparse_resize_")
    check_size(size)
    if len(size) != sparse_dim + dense_dim:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = "
            f"{sparse_dim}, dense_dim = {dense_dim}"
        )
    resize(self, tuple(size), sparse_dim, clear)
    return self


def _is_same_size(self: Tensor, other: Tensor) -> bool:
    """Whether both tensors have the same shape."""
    return self.shape == other.shape


def install() -> None:
    methods = {
        "to_sparse": _to_sparse, "to_sparse_coo": _to_sparse_coo, "to_sparse_csr": _to_sparse_csr,
        "to_sparse_csc": _to_sparse_csc, "to_dense": _to_dense, "coalesce": _coalesce, "is_coalesced": _is_coalesced,
        "_coalesced_": _coalesced_, "indices": _indices, "_indices": _raw_indices, "values": _values,
        "_values": _raw_values, "crow_indices": _compressed_part("crow_indices", "compressed", CSR),
        "col_indices": _compressed_part("col_indices", "plain", CSR),
        "ccol_indices": _compressed_part("ccol_indices", "compressed", CSC),
        "row_indices": _compressed_part("row_indices", "plain", CSC), "sparse_dim": _sparse_dim,
        "dense_dim": _dense_dim, "_nnz": _nnz, "sparse_mask": _sparse_mask, "sparse_resize_": _sparse_resize_,
        "sparse_resize_and_clear_": _sparse_resize_and_clear_, "is_same_size": _is_same_size,
    }  # fmt: skip
    for name, method in methods.items():
        if not name.startswith("_"):
            method.__name__ = name
        method.__qualname__ = f"Tensor.{name}"
        _C.add_method(name, method)
