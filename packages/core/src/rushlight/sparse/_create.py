"""New tensors without elements, and writing to one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import _C, Tensor

from ._parts import COO, CSC, CSR, EVERY, Coo, clone, implements, make_compressed, make_coo


def empty(layout: Any, size: Sequence[int], dtype: Any, device: Any = "cpu") -> Tensor:
    """A tensor of a sparse layout without elements."""
    index = {"dtype": rl.int64, "device": device}
    v = rl.empty((0,), dtype=dtype, device=device)
    if layout is COO:
        return make_coo(rl.empty((len(size), 0), **index), v, size, True)
    if layout not in (CSR, CSC) or len(size) != 2:
        raise RuntimeError(f"empty: a tensor of layout {layout} has 2 dimensions, got size={tuple(size)}.")
    rows = size[0] if layout is CSR else size[1]
    return make_compressed(rl.zeros((rows + 1,), **index), rl.empty((0,), **index), v, size, layout)


@implements("zeros_like", "empty_like", layouts=EVERY)
def zeros_like(
    self: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None,
    memory_format: Any = None,
) -> Tensor:  # fmt: skip
    layout, dtype = layout or self.layout, dtype or self.dtype
    if layout is rl.strided:
        return rl.zeros(self.shape, dtype=dtype, device=self.device if device is None else device)
    p = self._payload
    if layout is COO and self.layout is COO:
        return make_coo(p.indices[:, :0], p.values[:0].to(dtype), self.shape, True)
    return empty(layout, self.shape, dtype)


@implements("new_zeros", "new_empty", layouts=EVERY)
def new_zeros(
    self: Tensor, size: Sequence[int], *, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: Any = None,
) -> Tensor:  # fmt: skip
    dtype = dtype or self.dtype
    if layout is rl.strided:
        return rl.zeros(size, dtype=dtype, device=device or self.device)
    return empty(layout or self.layout, size, dtype, device or self.device)


@implements("zero_", layouts=EVERY)
def zero_(self: Tensor) -> Tensor:
    _C.set_payload(self, zeros_like(self)._payload)
    return self


@implements("copy_", layouts=EVERY)
def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    if self.layout is not src.layout:
        raise RuntimeError(
            f"copy_() between dense and sparse Tensors is not implemented! Found self layout = {self.layout} and src "
            f"layout = {src.layout}"
        )
    copy = clone(src) if src.dtype is self.dtype else src.to(self.dtype)
    if self.layout is COO:
        resize(self, src.shape, src._payload.indices.shape[0])
    elif self.shape != src.shape:
        raise RuntimeError(
            f"copy_: only tensors of the same shape are copied, got {list(self.shape)} and {list(src.shape)}."
        )
    _C.set_payload(self, copy._payload)
    return self


def resize(self: Tensor, size: Sequence[int], sparse_dim: int, clear: bool = False) -> None:
    """Gives a sparse_coo tensor another size, without its elements or, where they still fit, with them."""
    if min(sparse_dim, len(size) - sparse_dim) < 0:
        raise RuntimeError(
            "'len(size) == sparse_dim + dense_dim' is not satisfied: "
            f"len(size) = {len(size)}, sparse_dim = {sparse_dim}"
        )
    p, n = self._payload, self._payload.indices.shape[0]
    if tuple(size) == tuple(self.shape) and sparse_dim == n and not clear:
        return
    inner = tuple(size[sparse_dim:])
    if clear or not p.values.shape[0]:
        fresh = Coo(p.indices.new_empty((sparse_dim, 0)), p.values.new_empty((0, *inner)), True)
        return _C.set_payload(self, fresh, tuple(size))
    advice = (
        " on a non-empty sparse tensor is not supported. You could try the following options:\n"
        "1. If you need an empty sparse tensor of this size, call `x = torch.sparse_coo_tensor(size)`.\n"
        "2. If you need to resize this tensor, you have the following options:\n"
        "    1. For both sparse and dense dimensions, keep the number of them constant and the size of them "
        "non-shrinking, and then try the same call again.\n"
        "    2. Or, create a new sparse tensor with the correct indices and values from this sparse tensor."
    )
    old, old_inner = list(self.shape[:n]), list(self.shape[n:])
    if sparse_dim != n:
        raise RuntimeError(f"changing the number of sparse dimensions (from {n} to {sparse_dim}){advice}")
    if len(inner) != len(old_inner):
        raise RuntimeError(f"changing the number of dense dimensions (from {len(old_inner)} to {len(inner)}){advice}")
    for kind, a, b in (("sparse", old, list(size[:n])), ("dense", old_inner, list(inner))):
        if any(y < x for x, y in zip(a, b, strict=True)):
            raise RuntimeError(f"shrinking the size of {kind} dimensions (from {a} to {b}){advice}")
    v = p.values
    if tuple(v.shape[1:]) != inner:
        v = v.new_zeros((v.shape[0], *inner))
        v[(slice(None), *(slice(s) for s in old_inner))] = p.values
    _C.set_payload(self, Coo(p.indices, v, p.coalesced), tuple(size))
