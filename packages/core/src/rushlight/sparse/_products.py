"""Products of matrices."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor

from ._parts import (
    COO,
    CSC,
    EVERY,
    as_csr,
    coo_matmul_op,
    csr_matmul_op,
    implements,
    make_coo,
    matmul_op,
    values_op,
)


def check_matrices(name: str, a: Tensor, b: Tensor, ndim: int = 2) -> None:
    for t in (a, b):
        if t.ndim != ndim or (t.layout is COO and t._payload.indices.shape[0] != ndim):
            sparse = "" if t.layout is not COO else f" with {t._payload.indices.shape[0]} sparse dimensions"
            raise RuntimeError(f"{name}: matrices expected, got {t.ndim}D tensor{sparse}.")
    if a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.shape[-2]}x{a.shape[-1]} and {b.shape[-2]}x{b.shape[-1]}): "
            f"{name}."
        )
    if a.dtype is not b.dtype:
        raise RuntimeError(f"{name}: expected m1 and m2 to have the same dtype, but got: {a.dtype} != {b.dtype}")


def times_dense(a: Tensor, b: Tensor, values: Tensor | None = None) -> Tensor:
    """A sparse matrix by a dense one.

    Args:
        a: Matrix of layout sparse_coo or sparse_csr.
        b: Dense matrix.
        values: Those of `a`; by default they are taken with their history, so that the gradient is masked by `a`.
    """
    check_matrices("mm", a, b)
    values = values_op(a) if values is None else values
    if a.layout is COO:
        return coo_matmul_op(a._payload.indices, values, b, a.shape[0])
    return csr_matmul_op(a._payload.compressed, a._payload.plain, values, b)


def rows_first(t: Tensor) -> Tensor:
    """What `times_dense` takes."""
    return t if t.layout is not CSC else as_csr(t)


@implements("mm", layouts=EVERY)
def mm(self: Tensor, mat2: Tensor) -> Tensor:
    if mat2.layout is rl.strided:
        self = rows_first(self)
        return times_dense(self, mat2, self._payload.values)
    if self.layout is rl.strided:
        check_matrices("mm", self, mat2)
        return times_dense(rows_first(mat2.t()), self.t()).t()
    return matmul_op(self, mat2)


@implements("mv", layouts=EVERY)
def mv(self: Tensor, vec: Tensor) -> Tensor:
    if vec.layout is not rl.strided or self.layout is rl.strided:
        raise RuntimeError("mv: expected a sparse matrix and a dense vector, got a sparse vector.")
    if self.ndim != 2 or vec.ndim != 1 or self.shape[1] != vec.shape[0]:
        raise RuntimeError(
            f"mv: expected self.size(-1) == vec.size(-1), got sizes {list(self.shape)} and {list(vec.shape)}."
        )
    return times_dense(rows_first(self), vec.unsqueeze(1)).squeeze(1)


@implements("addmm", layouts=EVERY)
def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    product = mm(mat1, mat2) if rl.strided is not mat1.layout or mat2.layout is not rl.strided else mat1 @ mat2
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return product
    if self.layout is not product.layout:
        raise RuntimeError(
            f"addmm: computation on CPU is not implemented for {self.layout} + {mat1.layout} @ {mat2.layout}: the "
            f"input must have the layout of the product, {product.layout}."
        )
    if beta != 1:
        self = self * beta
    return self + product


@implements("bmm")
def bmm(self: Tensor, mat2: Tensor) -> Tensor:
    if self.layout is rl.strided or mat2.layout is not rl.strided:
        raise RuntimeError("bmm_sparse: Tensor 'mat2' must be dense, got a sparse one.")
    check_matrices("bmm", self, mat2, 3)
    batch, rows, inner = self.shape
    p = self._payload
    # One matrix whose blocks on the diagonal are those of the batch.
    place = p.indices[0]
    blocks = rl.stack((place * rows + p.indices[1], place * inner + p.indices[2]))
    flat = make_coo(blocks, p.values, (batch * rows, batch * inner), p.coalesced)
    return times_dense(flat, mat2.detach().reshape(batch * inner, -1)).reshape(batch, rows, -1)
