"""Sums and norms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._op import operators

from ._parts import COO, EVERY, as_coo, coalesce_op, coo_op, implements, to_layout_op, values_op
from ._records import coalesce


@implements("sum", layouts=EVERY)
def sum_(self: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    if not dim and not keepdim:
        return self._payload.values.sum(dtype=dtype)
    result = sum_dims(as_coo(self), dim or range(self.ndim), keepdim, dtype)
    return to_layout_op(result, self.layout) if self.layout is not COO and result.ndim == 2 else result


def sum_dims(self: Tensor, dim: Sequence[int], keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The sum over dimensions: sparse where a sparse one is left, else strided. Differentiable."""
    n, ndim = self._payload.indices.shape[0], self.ndim
    gone = set()
    for d in dim:
        if not -ndim <= d < ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {d}): sum."
            )
        if d % ndim in gone:
            raise RuntimeError(f"dim {d % ndim} appears multiple times in the list of dims")
        gone.add(d % ndim)
    v = values_op(self)
    inner = [d - n + 1 for d in gone if d >= n]
    if inner:
        v = v.sum(inner, dtype=dtype)
    elif dtype is not None or not v.is_floating_point():
        v = v.to(dtype or (v.dtype if v.is_complex() else rl.int64))
    kept = [d for d in range(n) if d not in gone]
    if kept:
        rows = self._payload.indices[kept]
        result = coalesce_op(coo_op(rows, v, [size for d, size in enumerate(self.shape) if d not in gone], False))
    else:
        result = v.sum(0)
    for d in sorted(gone) if keepdim else ():
        result = result.unsqueeze(d)
    return result


@implements("any", layouts=EVERY)
def any_(self: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    if dim:
        raise NotImplementedError(f"any: a sparse tensor is reduced over all dimensions only, got dim={dim}.")
    return (coalesce(self) if self.layout is COO else self)._payload.values.any()


@implements("linalg_vector_norm", layouts=EVERY, composite=True)
def vector_norm(self: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    if dim:
        raise NotImplementedError(f"norm: a sparse tensor is reduced over all dimensions only, got dim={dim}.")
    return operators["linalg_vector_norm"](
        values_op(coalesce_op(self) if self.layout is COO else self), ord, dtype=dtype
    )
