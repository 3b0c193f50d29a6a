"""Sparse tensors from their parts, checked."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ContextDecorator
from typing import Any

import rushlight as rl
from rushlight import Tensor

from .._rebuild import rebuild_sparse_tensor
from ._create import empty
from ._parts import COO, CSC, CSR, compressed_op, coo_op, keys_op, rows_op


class check_sparse_tensor_invariants(ContextDecorator):
    """Whether sparse tensors are checked when they are made, for a `with` block or a function; by default they are.

    Args:
        enable: Whether to check.

    Example:
        >>> with rushlight.sparse.check_sparse_tensor_invariants(False):
        ...     _ = rushlight.sparse_coo_tensor([[7]], [1.0], (2,))
    """

    _enabled = True

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.before: list[bool] = []

    @classmethod
    def is_enabled(cls) -> bool:
        """Whether they are checked now."""
        return check_sparse_tensor_invariants._enabled

    @classmethod
    def enable(cls) -> None:
        """Checks from now on."""
        check_sparse_tensor_invariants._enabled = True

    @classmethod
    def disable(cls) -> None:
        """Checks no longer; a wrong index raises when the tensor is first used."""
        check_sparse_tensor_invariants._enabled = False

    def __enter__(self) -> check_sparse_tensor_invariants:
        self.before.append(self.is_enabled())
        check_sparse_tensor_invariants._enabled = self.state
        return self

    def __exit__(self, *error: object) -> None:
        check_sparse_tensor_invariants._enabled = self.before.pop()


def _checks(check_invariants: bool | None) -> bool:
    return check_sparse_tensor_invariants.is_enabled() if check_invariants is None else check_invariants


def _leaf(values: Tensor, requires_grad: bool) -> Tensor:
    return values.detach() if requires_grad else values


def _finish(t: Tensor, requires_grad: bool) -> Tensor:
    return t.requires_grad_() if requires_grad else t


def _index_tensor(data: Any, name: str) -> Tensor:
    t = rl.as_tensor(data)
    if t.layout is not rl.strided or t.is_complex():
        raise TypeError(f"{name} must be a strided tensor of integers, got {t.layout} of {t.dtype}.")
    return t.detach()


def _value_tensor(data: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    t = _leaf(rl.as_tensor(data, dtype=dtype, device=device), requires_grad)
    if t.layout is not rl.strided:
        raise TypeError(f"values must be a strided tensor, got layout={t.layout}.")
    if not t.is_cpu:
        raise NotImplementedError(f"Sparse tensors live on the CPU, got values on device={t.device}.")
    return t


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """A tensor of layout sparse_coo; `sparse_coo_tensor(size)` has no elements.

    Args:
        indices: Coordinates, data or integer tensor (sparse_dim, nnz). Elements of equal coordinates add up.
        values: Data or tensor (nnz, *dense sizes).
        size: Shape, by default the smallest that fits.
        dtype: Dtype of the values, by default that of `values`.
        device: Where it lives, the CPU.
        pin_memory: Accepted for compatibility.
        requires_grad: Whether it records gradients.
        check_invariants: False spares the check that every index is inside `size`. Unlike in PyTorch the check is made
            by default; without it a wrong index raises when the tensor is first used.
        is_coalesced: True states that the indices ascend and are distinct.

    Returns:
        Tensor of shape `size`.

    Raises:
        RuntimeError: Shapes do not fit, or an index is negative or out of range.

    Example:
        >>> rushlight.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
        tensor([[0., 0., 3.],
                [4., 0., 0.]])
    """
    if values is None:
        shape = size if indices is None else indices
        if shape is None or not isinstance(shape, Sequence):
            raise TypeError(
                "sparse_coo_tensor() received an invalid combination of arguments, expected (indices, values), "
                "(indices, values, size) or (size)"
            )
        check_size(shape)
        return _finish(empty(COO, tuple(shape), dtype or rl.get_default_dtype(), device or "cpu"), requires_grad)
    v = _value_tensor(values, dtype, device, requires_grad)
    i = _index_tensor(indices, "indices").to(rl.int64)
    if v.ndim == 0:
        v = v.reshape(1)
    if i.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(i.shape)}")
    if i.shape[1] != v.shape[0]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {i.shape[1]}, nnz from values: "
            f"{v.shape[0]}"
        )
    n = i.shape[0]
    if size is None:
        highest = i.amax(1).tolist() if i.shape[1] else [-1] * n
        lowest = i.amin(1).tolist() if i.shape[1] else [0] * n
        for d, low in enumerate(lowest):
            if low < 0:
                raise RuntimeError(f"found negative index {low} for dim {d}")
        shape = (*(h + 1 for h in highest), *v.shape[1:])
    else:
        shape = tuple(size)
        check_size(shape)
        if len(shape) != n + v.ndim - 1:
            raise RuntimeError(
                f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(shape)}, sparse_dim = {n}, "
                f"dense_dim = {v.ndim - 1}"
            )
        if shape[n:] != tuple(v.shape[1:]):
            raise RuntimeError(f"values has incorrect size, expected {[v.shape[0], *shape[n:]]}, got {list(v.shape)}")
    if is_coalesced or _checks(check_invariants):
        keys = keys_op(i, shape[:n])
        if is_coalesced and len(keys) > 1 and not bool((keys[1:] > keys[:-1]).all()):
            raise RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")
    return _finish(coo_op(i, v, shape, bool(is_coalesced)), requires_grad)


def check_size(size: Sequence[Any]) -> None:
    for s in size:
        if isinstance(s, bool) or not hasattr(s, "__index__"):
            raise TypeError(f"size must be a tuple of ints, but found element of type {type(s).__name__}")
        if s < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {s}: {list(size)}. Sizes must be >= 0."
            )


def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """A matrix of layout sparse_csr or sparse_csc.

    Args:
        compressed_indices: Where each row (column) begins in `plain_indices`, and their length at the end: data or
            int32 or int64 tensor.
        plain_indices: Column (row) of each value, ascending in each row (column): the same dtype.
        values: Data or tensor (nnz).
        size: Shape, two sizes, by default the smallest that fits.
        dtype: Dtype of the values, by default that of `values`.
        layout: `sparse_csr` or `sparse_csc`.
        device: Where it lives, the CPU.
        pin_memory: Accepted for compatibility.
        requires_grad: Whether it records gradients.
        check_invariants: False spares the checks of the indices. Unlike in PyTorch they are made by default.

    Returns:
        Tensor of shape `size`.

    Raises:
        RuntimeError: A rule for the indices is broken.
        NotImplementedError: A batch of matrices, or values that are not numbers.
    """
    if layout not in (CSR, CSC):
        raise RuntimeError(f"sparse_compressed_tensor: layout must be sparse_csr or sparse_csc, got layout={layout}.")
    rows, cols, nrows, ncols = ("crow", "col", "nrows", "ncols") if layout is CSR else ("ccol", "row", "ncols", "nrows")
    compressed = _index_tensor(compressed_indices, f"{rows}_indices")
    plain = _index_tensor(plain_indices, f"{cols}_indices")
    v = _value_tensor(values, dtype, device, requires_grad)
    if compressed.ndim != plain.ndim:
        raise RuntimeError(
            f"{rows}_indices and {cols}_indices dimensionalities must be equal but got {compressed.ndim} and "
            f"{plain.ndim}, respectively"
        )
    if compressed.dtype is not plain.dtype or compressed.dtype not in (rl.int32, rl.int64):
        raise RuntimeError(
            f"{rows}_indices and {cols}_indices must have the same dtype, int32 or int64, but got {compressed.dtype} "
            f"and {plain.dtype}, respectively"
        )
    if compressed.ndim != 1 or v.ndim != 1:
        raise NotImplementedError(
            f"sparse_compressed_tensor: one matrix of numbers is supported, got {rows}_indices of {compressed.ndim} "
            f"dimensions and values of {v.ndim}. Use sparse_coo_tensor for batches."
        )
    if not compressed.numel():
        raise RuntimeError(f"{rows}_indices must not be empty: it has one entry more than the matrix has {nrows}.")
    lines = compressed.shape[0] - 1
    if size is None:
        across = int(plain.max()) + 1 if plain.numel() else 0
        shape: tuple[int, ...] = (lines, across) if layout is CSR else (across, lines)
    else:
        shape = tuple(size)
        check_size(shape)
    if len(shape) != 2:
        raise RuntimeError(
            "tensor dimensionality must be sum of batch, base, and dense dimensionalities (=0 + 2 + 0) but got "
            f"{len(shape)}"
        )
    across = shape[1] if layout is CSR else shape[0]
    if plain.shape[0] != v.shape[0]:
        raise RuntimeError(
            f"{cols}_indices.shape[-1] must be equal to nnz (={v.shape[0]}) as defined by values.shape[0], but got "
            f"{plain.shape[0]}"
        )
    if compressed.shape[0] != (shape[0] if layout is CSR else shape[1]) + 1:
        raise RuntimeError(
            f"{rows}_indices.shape[-1] must be equal to the number of {nrows[1:]} + 1 "
            f"(={(shape[0] if layout is CSR else shape[1]) + 1}), but got {compressed.shape[0]}"
        )
    if _checks(check_invariants):
        steps = compressed[1:] - compressed[:-1]
        rules = {
            f"{rows}_indices[..., 0] == 0": compressed[0] == 0,
            f"{rows}_indices[..., -1] == nnz": compressed[-1] == v.shape[0],
            f"0 <= {rows}_indices[..., 1:] - {rows}_indices[..., :-1] <= {ncols}": (
                (steps >= 0) & (steps <= across)
            ).all(),
            f"0 <= {cols}_indices < {ncols}": ((plain >= 0) & (plain < across)).all(),
        }
        for rule, holds in rules.items():
            if not bool(holds):
                raise RuntimeError(f"`{rule}` is not satisfied.")
        line = rows_op(compressed, plain.shape[0])
        if not bool(((plain[1:] > plain[:-1]) | (line[1:] > line[:-1])).all()):
            raise RuntimeError(
                f"`{cols}_indices[..., {rows}_indices[..., i - 1]:{rows}_indices[..., i]] for all i = 1, ..., {nrows} "
                "are sorted and distinct along the last dimension values` is not satisfied."
            )
    return _finish(compressed_op(compressed, plain, v, shape, layout), requires_grad)


def sparse_csr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Any = None, **options: Any) -> Tensor:
    """`sparse_compressed_tensor` with layout sparse_csr.

    Example:
        >>> rushlight.sparse_csr_tensor([0, 1, 2], [2, 0], [3.0, 4.0], (2, 3)).to_dense()
        tensor([[0., 0., 3.],
                [4., 0., 0.]])
    """
    if options.pop("layout", CSR) is not CSR:
        raise RuntimeError("sparse_csr_tensor: layout must be sparse_csr.")
    return sparse_compressed_tensor(crow_indices, col_indices, values, size, layout=CSR, **options)


def sparse_csc_tensor(ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, **options: Any) -> Tensor:
    """`sparse_compressed_tensor` with layout sparse_csc."""
    return sparse_compressed_tensor(ccol_indices, row_indices, values, size, layout=CSC, **options)


def empty_of_layout(layout: Any, size: Sequence[int], dtype: Any, device: Any) -> Tensor:
    """What `zeros` and `empty` give where they are asked for another layout than strided."""
    if device.type != "cpu":
        raise NotImplementedError(f"Sparse tensors live on the CPU, got device={device}.")
    return empty(layout, size, dtype, device)


def reduce(t: Tensor) -> tuple[Any, ...]:
    """What pickle keeps of a sparse tensor: the layout and the parts."""
    # PyTorch knows two arguments, and forgets that gradients are recorded.
    return rebuild_sparse_tensor, (t.layout, t._payload.state(t.shape), True)[: 3 if t.requires_grad else 2]


def rebuild(layout: Any, data: Sequence[Any], requires_grad: bool = False) -> Tensor:
    """A sparse tensor from what `reduce` returned; the parts are checked, for a file may say anything."""
    if layout is COO:
        indices, values, size, *coalesced = data
        flag = coalesced[0] if coalesced else None
        t = sparse_coo_tensor(indices, values, size, is_coalesced=flag, check_invariants=True)
    elif layout in (CSR, CSC):
        t = sparse_compressed_tensor(*data, layout=layout, check_invariants=True)
    else:
        raise NotImplementedError(f"rebuilding sparse tensor for layout {layout}")
    return _finish(t, requires_grad)
