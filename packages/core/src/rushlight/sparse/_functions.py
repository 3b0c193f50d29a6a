"""The functions of rushlight.sparse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import rushlight as rl
from rushlight import Tensor

from ._parts import (
    COO,
    CSR,
    as_coo,
    coalesce_op,
    coo_matmul_op,
    coo_op,
    keys_op,
    matmul_op,
    rows_op,
    sampled_op,
    values_op,
    with_values,
    wrap_dim,
)
from ._products import check_matrices, rows_first, times_dense
from ._reductions import sum_dims


def mm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """Product of two matrices, the gradient of a sparse one being sparse with the same indices.

    Args:
        mat1: Matrix (n, k), one of the two sparse.
        mat2: Matrix (k, m).

    Returns:
        Matrix (n, m); sparse where both are.
    """
    if mat1.layout is rl.strided and mat2.layout is rl.strided:
        return rl.mm(mat1, mat2)
    check_matrices("mm", mat1, mat2)
    if mat1.layout is rl.strided:
        return times_dense(rows_first(mat2.t()), mat1.t()).t()
    if mat2.layout is rl.strided:
        return times_dense(rows_first(mat1), mat2)
    return matmul_op(mat1, mat2)


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0) -> Tensor:
    """`beta * mat + alpha * mm(mat1, mat2)`, with the gradients of `mm`.

    Args:
        mat: Tensor that broadcasts to the product.
        mat1: Sparse matrix (n, k).
        mat2: Dense matrix (k, m).
        beta: Factor of `mat`.
        alpha: Factor of the product.
    """
    product = mm(mat1, mat2)
    return (mat if beta == 1 else mat * beta) + (product if alpha == 1 else product * alpha)


def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """Product of a sparse and a dense matrix that keeps only rows with elements: one sparse dimension, one dense.

    Args:
        mat1: Matrix (n, k) of layout sparse_coo.
        mat2: Dense matrix (k, m).

    Returns:
        Tensor (n, m) of layout sparse_coo.

    Example:
        >>> s = rushlight.sparse_coo_tensor([[1], [0]], [2.0], (3, 1))
        >>> rushlight.hspmm(s, rushlight.ones(1, 2)).indices()
        tensor([[1]])
    """
    if mat1.layout is not COO or mat2.layout is not rl.strided:
        raise RuntimeError(f"hspmm: expected a sparse_coo and a dense matrix, got {mat1.layout} and {mat2.layout}.")
    check_matrices("hspmm", mat1, mat2)
    rows, place = mat1._payload.indices[0].unique(return_inverse=True)
    indices = rl.stack((place, mat1._payload.indices[1]))
    product = coo_matmul_op(indices, values_op(mat1), mat2, len(rows))
    return coo_op(rows.unsqueeze(0), product, (mat1.shape[0], mat2.shape[1]), True)


def smm(input: Tensor, mat: Tensor) -> Tensor:
    """`hspmm` with two sparse dimensions.

    Args:
        input: Matrix (n, k) of layout sparse_coo.
        mat: Dense matrix (k, m).

    Returns:
        Tensor (n, m) of layout sparse_coo.
    """
    rows = hspmm(input, mat)
    n, m = rows._nnz(), rows.shape[1]
    columns = rl.arange(m, device=input.device).repeat(n)
    indices = rl.stack((rows._indices()[0].repeat_interleave(m), columns))
    return coo_op(indices, values_op(rows).reshape(-1), rows.shape, False)


def sspaddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * input + alpha * smm(mat1, mat2)`, uncoalesced.

    Args:
        input: Matrix (n, m) of layout sparse_coo.
        mat1: Matrix (n, k) of layout sparse_coo.
        mat2: Dense matrix (k, m).
        beta: Factor of `input`.
        alpha: Factor of the product.

    Returns:
        Tensor (n, m) of layout sparse_coo.
    """
    product = smm(mat1, mat2)
    if input.layout is not COO or input.shape != product.shape or input.sparse_dim() != 2:
        raise RuntimeError(
            f"sspaddmm: expected input to be a sparse_coo matrix of shape {list(product.shape)}, got layout "
            f"{input.layout} and shape {list(input.shape)}."
        )
    indices = rl.cat((input._indices(), product._indices()), 1)
    values = rl.cat((values_op(input) * beta, values_op(product) * alpha))
    return coo_op(indices, values, input.shape, False)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Sequence[int], layout: Any = None) -> Tensor:
    """A sparse matrix by its diagonals.

    Args:
        diagonals: Matrix (k, n), or vector: row i lies on diagonal `offsets[i]`, its element j in column j.
        offsets: int64 vector (k), distinct: 0 is the main diagonal, positive ones lie above it.
        shape: Shape of the result.
        layout: Layout of the result, sparse_coo by default.

    Returns:
        Sparse matrix.

    Example:
        >>> rushlight.sparse.spdiags(rushlight.ones(2, 3), rushlight.tensor([0, 1]), (2, 3)).to_dense()
        tensor([[1., 1., 0.],
                [0., 1., 1.]])
    """
    diagonals, offsets = rl.atleast_2d(diagonals), rl.atleast_1d(offsets)
    if offsets.dtype is not rl.int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {offsets.dtype}")
    if len(shape) != 2:
        raise RuntimeError(f"Output shape must be 2d, got shape={tuple(shape)}.")
    if diagonals.ndim != 2 or offsets.ndim != 1 or len(diagonals) != len(offsets):
        raise RuntimeError(
            f"Number of diagonals ({len(diagonals)}) does not match the number of offsets ({offsets.numel()})"
        )
    if len(offsets.unique()) != len(offsets):
        raise RuntimeError("Offset tensor contains duplicate values")
    column = rl.arange(diagonals.shape[1], device=diagonals.device).expand(diagonals.shape)
    row = column - offsets.unsqueeze(1)
    inside = (row >= 0) & (row < shape[0]) & (column < shape[1])
    result = coo_op(rl.stack((row[inside], column[inside])), diagonals[inside], tuple(shape), False)
    return result if layout in (None, COO) else result.to_sparse(layout=layout)


def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0) -> Tensor:
    """`beta * input + alpha * mat1 @ mat2` at the indices of `input` only.

    Args:
        input: Matrix (n, m) of layout sparse_csr.
        mat1: Dense matrix (n, k).
        mat2: Dense matrix (k, m).
        beta: Factor of `input`.
        alpha: Factor of the product.

    Returns:
        Matrix of layout sparse_csr with the indices of `input`.
    """
    if input.layout is not CSR:
        raise NotImplementedError(f"sampled_addmm: input must be of layout sparse_csr, got {input.layout}.")
    if mat1.ndim != 2 or mat2.ndim != 2 or (mat1.shape[0], mat2.shape[1]) != tuple(input.shape):
        raise RuntimeError(
            f"sampled_addmm: expected mat1 (n, k) and mat2 (k, m) for an input of shape {list(input.shape)}, got "
            f"{list(mat1.shape)} and {list(mat2.shape)}."
        )
    p = input._payload
    rows = rows_op(p.compressed, p.plain.shape[0])
    product = sampled_op(rows, p.plain, mat1, mat2.t())
    return with_values(input, values_op(input) * beta + product * alpha)


def sum(input: Tensor, dim: int | Sequence[int] | None = None, dtype: Any = None) -> Tensor:
    """Sum of the elements of a sparse tensor, whose gradient is sparse with the same indices.

    Args:
        input: Sparse tensor.
        dim: Dimensions to sum over, by default all.
        dtype: Dtype of the result.

    Returns:
        Sparse tensor where a sparse dimension is left, else a strided one.
    """
    if input.layout is rl.strided:
        raise RuntimeError(f"sum: expected a sparse tensor, got layout={input.layout}. Use rushlight.sum.")
    t = as_coo(input)
    return sum_dims(t, range(t.ndim) if dim is None else [dim] if isinstance(dim, int) else dim, dtype=dtype)


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Softmax of the elements that are kept, the others counting as minus infinity.

    Args:
        input: Tensor of layout sparse_coo.
        dim: Dimension along which the results add up to 1.
        dtype: Dtype to compute in and of the result.
    """
    return _softmax("softmax", input, dim, dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Logarithm of `softmax`."""
    return _softmax("log_softmax", input, dim, dtype)


def _softmax(name: str, input: Tensor, dim: int, dtype: Any) -> Tensor:
    if input.layout is not COO:
        raise RuntimeError(f"{name}: expected a tensor of layout sparse_coo, got layout={input.layout}.")
    dim = wrap_dim(name, dim, input.ndim)
    t = coalesce_op(input if dtype is None else input.to(dtype))
    v, n = values_op(t), t._payload.indices.shape[0]
    if not v.is_floating_point():
        raise NotImplementedError(f'"{name}" not implemented for {v.dtype}. Pass a floating dtype.')
    if dim >= n or not v.numel():
        return with_values(t, getattr(rl, name)(v, dim - n + 1) if v.numel() else v.clone())
    # Elements that differ in `dim` only make a group; each is shifted by its largest value, which cancels out.
    others = [d for d in range(n) if d != dim]
    rows = t._payload.indices[others]
    keys = keys_op(rows, [t.shape[d] for d in others])
    order: Any = slice(None)
    if dim == n - 1:  # the elements of a group follow each other
        group = rl.cat((keys.new_zeros(1), (keys[1:] != keys[:-1]).cumsum(0)))
    else:
        group = keys.unique(return_inverse=True)[1]
        order = np.argsort(group.numpy(), kind="stable")
    groups = int(group.max()) + 1
    starts = np.searchsorted(group.numpy()[order], np.arange(groups))
    wide = v.detach().to(rl.float64 if v.dtype is rl.float64 else rl.float32).numpy()
    shift = rl.from_numpy(np.maximum.reduceat(wide[order], starts, axis=0)).to(v.dtype)
    x = v - shift.index_select(0, group)
    e = x.exp()
    total = v.new_zeros((groups, *v.shape[1:])).index_add(0, group, e)
    result = e / total.index_select(0, group) if name == "softmax" else x - total.log().index_select(0, group)
    return with_values(t, result)
