"""What ops do where a tensor is sparse: the kernels of the layouts sparse_coo, sparse_csr and sparse_csc."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import rushlight as rl
from rushlight import _C, Tensor, _registry
from rushlight._op import operators

COO, CSR, CSC = _C.sparse_coo, _C.sparse_csr, _C.sparse_csc

_coo = operators["_sparse_coo"]
_compressed = operators["_sparse_compressed"]
_values = operators["_sparse_values"]
_coalesce = operators["_coalesce"]
_to_dense = operators["_to_dense"]
_to_sparse = operators["_to_sparse"]
_to_layout = operators["_to_layout"]
_mask = operators["_sparse_mask"]
_matmul_sparse = operators["_sparse_sparse_matmul"]
_keys = operators["_coo_keys"]
_indices = operators["_coo_indices"]
_sum = operators["_coo_sum"]
_merge = operators["_coo_merge"]
_find = operators["_coo_find"]
_rows = operators["_csr_rows"]
_crow = operators["_csr_crow"]
_coo_matmul = operators["_coo_matmul"]
_csr_matmul = operators["_csr_matmul"]
_csr_matmul_csr = operators["_csr_matmul_csr"]
_sampled = operators["_sampled_products"]


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


# -- parts


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
        return _coo(p.indices, values, t.shape, p.coalesced)
    return _compressed(p.compressed, p.plain, values, t.shape, p.layout)


def sparse_shape(t: Tensor) -> tuple[int, ...]:
    return tuple(t.shape[: t._payload.indices.shape[0]])


def keys(t: Tensor) -> Tensor:
    return _keys(t._payload.indices, sparse_shape(t))


def as_coo(t: Tensor) -> Tensor:
    return t if t.layout is COO else _to_layout(t, COO)


def as_csr(t: Tensor) -> Tensor:
    return t if t.layout is CSR else _to_layout(t, CSR)


def as_csc(t: Tensor) -> Tensor:
    return t if t.layout is CSC else _to_layout(t, CSC)


def flat_view(t: Tensor, sparse_dim: int) -> Tensor:
    """A strided tensor with its first dimensions merged to one."""
    return t.reshape(prod(t.shape[:sparse_dim]), *t.shape[sparse_dim:])


def values(self: Tensor) -> Tensor:
    return self._payload.values.detach()


def coalesce(self: Tensor) -> Tensor:
    p = self._payload
    if p.coalesced:
        return self
    found, sums = _sum(keys(self), p.values)
    return make_coo(_indices(found, sparse_shape(self)), sums, self.shape, True)


# -- between layouts


def coo_to_dense(self: Tensor, masked_grad: bool) -> Tensor:
    if self.dtype in (rl.float16, rl.bfloat16, rl.bool):
        self = coalesce(self)  # sums are rounded once
    p, n = self._payload, prod(sparse_shape(self))
    out = rl.zeros((n, *self.shape[p.indices.shape[0] :]), dtype=self.dtype)
    if p.coalesced:
        out.index_copy_(0, keys(self), p.values)
    else:
        out.index_add_(0, keys(self), p.values)
    return out.reshape(self.shape)


def compressed_to_dense(self: Tensor, masked_grad: bool) -> Tensor:
    return coo_to_dense(as_coo(self), masked_grad)


def dense_to_coo(self: Tensor, sparse_dim: int) -> Tensor:
    """The record `_to_sparse`: a strided tensor's elements, or blocks of them, that are not zero."""
    size = self.shape[:sparse_dim]
    blocks = flat_view(self.detach(), sparse_dim)
    filled = blocks != 0
    if filled.ndim > 1:
        filled = filled.flatten(1).any(1)
    at = filled.nonzero().reshape(-1)
    return make_coo(_indices(at, size), blocks.index_select(0, at), self.shape, True)


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
    keys(self)  # checks that every index is inside
    return make_compressed(_crow(p.indices[0], self.shape[0]), p.indices[1], p.values, self.shape, CSR)


def compressed_to(self: Tensor, layout: Any, transposed: bool = False) -> Tensor:
    p = self._payload
    if transposed:  # the same parts, read the other way
        return make_compressed(p.compressed, p.plain, p.values, (self.shape[1], self.shape[0]), layout)
    rows = _rows(p.compressed, p.plain.shape[0])
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
    wanted = _keys(indices, grad.shape[:n])
    if grad.layout is rl.strided:
        return flat_view(grad, n).index_select(0, wanted)
    source = coalesce(as_coo(grad))
    p = source._payload
    if p.indices.shape[0] != n:
        return gather(dense(source), indices)
    at = _find(keys(source), wanted)
    if not p.values.shape[0]:
        return p.values.new_zeros((len(at), *p.values.shape[1:]))
    found = p.values.index_select(0, at.clamp(min=0))
    return found.masked_fill((at < 0).reshape(-1, *[1] * (found.ndim - 1)), 0)


def dense(grad: Tensor) -> Tensor:
    return grad if grad.layout is rl.strided else _to_dense(grad, True)


# -- gradients of the records in ops/_sparse.py


def with_values_of(grad: Tensor, self: Tensor) -> Tensor:
    if self.layout is not COO or self._payload.coalesced:
        return with_values(self, grad)
    # Elements of equal indices count as one, whose gradient each of them has.
    found, sums = _sum(keys(self), grad)
    _, counts = _sum(keys(self), rl.ones(len(grad), dtype=grad.dtype))
    mean = sums / counts.reshape(-1, *[1] * (grad.ndim - 1))
    return _coo(_indices(found, sparse_shape(self)), mean, self.shape, True)


def to_dense_grad(grad: Tensor, self: Tensor, masked_grad: bool) -> Tensor:
    if masked_grad:
        return _mask(grad, coalesce(self) if self.layout is COO else self)
    return to_layout_grad(grad, self)


def to_layout_grad(grad: Tensor, self: Tensor) -> Tensor:
    if grad.layout is rl.strided:
        grad = _to_sparse(grad, self._payload.indices.shape[0] if self.layout is COO else 2)
    return grad if grad.layout is self.layout else _to_layout(grad, self.layout)


def sparse_mask_grad(grad: Tensor, self: Tensor, mask: Tensor) -> Tensor:
    masked = _mask(grad, mask)
    return dense(masked) if self.layout is rl.strided else masked


def compressed_values_grad(grad: Tensor, compressed: Tensor, plain: Tensor, values: Tensor, layout: Any) -> Tensor:
    other = _rows(compressed, plain.shape[0])
    return gather(grad, rl.stack((other, plain.long()) if layout is CSR else (plain.long(), other)))


def coo_matmul_values_grad(grad: Tensor, indices: Tensor, mat2: Tensor) -> Tensor:
    return _sampled(indices[0], indices[1], grad, mat2.conj())


def coo_matmul_dense_grad(grad: Tensor, indices: Tensor, values: Tensor, mat2: Tensor) -> Tensor:
    return _coo_matmul(indices.flip(0), values.conj(), grad, mat2.shape[0])


def csr_matmul_values_grad(grad: Tensor, crow: Tensor, col: Tensor, mat2: Tensor) -> Tensor:
    return _sampled(_rows(crow, col.shape[0]), col, grad, mat2.conj())


def csr_matmul_dense_grad(grad: Tensor, crow: Tensor, col: Tensor, values: Tensor, mat2: Tensor) -> Tensor:
    return _coo_matmul(rl.stack((col.long(), _rows(crow, col.shape[0]))), values.conj(), grad, mat2.shape[0])


def sampled_grad_mat1(grad: Tensor, rows: Tensor, cols: Tensor, mat1: Tensor, mat2: Tensor) -> Tensor:
    return _coo_matmul(rl.stack((rows.long(), cols.long())), grad, mat2.conj(), mat1.shape[0])


def sampled_grad_mat2(grad: Tensor, rows: Tensor, cols: Tensor, mat1: Tensor, mat2: Tensor) -> Tensor:
    return sampled_grad_mat1(grad, cols, rows, mat2, mat1)


def sparse_matmul_grad_self(grad: Tensor, self: Tensor, other: Tensor) -> Tensor:
    return _mask(grad @ other.conj().t(), coalesce(self) if self.layout is COO else self)


def sparse_matmul_grad_other(grad: Tensor, self: Tensor, other: Tensor) -> Tensor:
    return _mask(self.conj().t() @ grad, coalesce(other) if other.layout is COO else other)


# -- one element at a time

UNARY = [
    "abs",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "deg2rad",
    "expm1",
    "floor",
    "frac",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "log1p",
    "nan_to_num",
    "rad2deg",
    "relu",
    "round",
    "round.decimals",
    "sgn",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
]
LINEAR = ["neg", "positive", "conj_physical", "_cast"]


def _unary(operator: Any) -> Callable[..., Tensor]:
    def call(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if self.layout is COO:
            self = _coalesce(self)
        return with_values(self, operator(_values(self), *args, **kwargs))

    return call


def _linear(operator: Any) -> Callable[..., Tensor]:
    def call(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return with_values(self, operator(self._payload.values, *args, **kwargs))

    return call


def _clone(self: Tensor, memory_format: Any = None) -> Tensor:
    p = self._payload
    if p.layout is COO:
        return make_coo(p.indices.clone(), p.values.clone(), self.shape, p.coalesced)
    return make_compressed(p.compressed.clone(), p.plain.clone(), p.values.clone(), self.shape, p.layout)


def _power(self: Tensor, exponent: Any) -> Tensor:
    if exponent == 0:
        raise RuntimeError(
            "pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense, got exponent=0."
        )
    return _unary(rl.pow)(self, exponent)


def _divided(operator: Any, linear: bool) -> Callable[..., Tensor]:
    def call(self: Tensor, other: Any, **kwargs: Any) -> Tensor:
        if isinstance(other, Tensor) and (other.ndim or other.layout is not rl.strided):
            got = f"shape {list(other.shape)} for divisor" if other.layout is rl.strided else "a sparse divisor"
            raise RuntimeError(f"Sparse division requires a scalar or zero-dim dense tensor divisor (got {got})")
        return (_linear if linear else _unary)(operator)(self, other, **kwargs)

    return call


def _register_unary() -> None:
    every = (COO, CSR, CSC)
    for name in UNARY:
        implements(name, layouts=every, composite=True)(_unary(_registry.ops[name].item.operator))
    for name in LINEAR:
        implements(name, layouts=every)(_linear(_registry.ops[name].item.operator))
    implements("clone", layouts=every)(_clone)
    implements("pow.Tensor_Scalar", layouts=every, composite=True)(_power)
    implements("div.Tensor", layouts=every)(_divided(rl.div, True))
    implements("div.Tensor_mode", layouts=every)(_divided(rl.div, False))
    implements("floor_divide", layouts=every)(_divided(rl.floor_divide, False))


_register_unary()


# -- sums, differences and products


def _combine(name: str, operator: Any, sign: int) -> Callable[..., Tensor]:
    def call(self: Any, other: Any, *, alpha: Any = 1) -> Tensor:
        if not isinstance(self, Tensor) or self.layout is rl.strided:
            return _dense_plus_sparse(name, operator, self, other, alpha)
        if not isinstance(other, Tensor) or other.layout is rl.strided:
            raise RuntimeError(
                "add(sparse, dense) is not supported. Use add(dense, sparse) instead: the result of a sparse and a "
                "dense operand is dense."
            )
        if self.shape != other.shape:
            raise RuntimeError(
                f"{name}: expected sizes of 'self' and 'other' to match, but {list(self.shape)} != {list(other.shape)}"
            )
        a, b = self._payload, as_coo(other)._payload
        if a.indices.shape[0] != b.indices.shape[0]:
            raise RuntimeError(
                f"{name}: expected 'self' and 'other' to have same number of sparse dimensions, but got "
                f"{a.indices.shape[0]} and {b.indices.shape[0]}."
            )
        shape = sparse_shape(self)
        merged, at, other_at = _merge(_keys(a.indices, shape), _keys(b.indices, shape))
        dtype = operator(a.values[:0], b.values[:0], alpha=alpha).dtype  # says too what may not be combined
        out = rl.zeros((len(merged), *a.values.shape[1:]), dtype=dtype)
        out.index_copy_(0, at, a.values.to(dtype))
        out.index_add_(0, other_at, _scaled(b.values.to(dtype), alpha, sign))
        return make_coo(_indices(merged, shape), out, self.shape, a.coalesced and b.coalesced)

    return call


def _scaled(values: Tensor, alpha: Any, sign: int) -> Tensor:
    alpha *= sign
    if values.dtype is rl.bool:
        return values & bool(alpha)
    return values if alpha == 1 else (values * alpha).to(values.dtype)


def _dense_plus_sparse(name: str, operator: Any, self: Any, other: Tensor, alpha: Any) -> Tensor:
    if not isinstance(self, Tensor) or self.shape != other.shape:
        size = list(self.shape) if isinstance(self, Tensor) else []
        raise RuntimeError(
            f"{name}: expected 'self' and 'other' to have same size, but self has size {size} while other has size "
            f"{list(other.shape)} (FYI: dense-sparse addition does not currently support broadcasting)"
        )
    other = as_coo(other)
    p = other._payload
    dtype = operator(self.reshape(-1)[:0], p.values.reshape(-1)[:0], alpha=alpha).dtype
    out = self.detach().to(dtype, copy=True).contiguous()
    sign = 1 if name == "add" else -1
    flat_view(out, p.indices.shape[0]).index_add_(0, keys(other), _scaled(p.values.to(dtype), alpha, sign))
    return out


def _combine_inplace(sign: int) -> Callable[..., Any]:
    def call(self: Tensor, other: Any, *, alpha: Any = 1) -> Any:
        fits = self.layout is rl.strided and self.is_contiguous() and self.shape == other.shape
        if not fits or rl.promote_types(self.dtype, other.dtype) is not self.dtype:
            return NotImplemented
        other, memory = as_coo(other), self.detach()
        p = other._payload
        added = _scaled(p.values.to(self.dtype), alpha, sign)
        return flat_view(memory, p.indices.shape[0]).index_add_(0, keys(other), added)

    return call


add = _combine("add", rl.add, 1)
sub = _combine("sub", rl.sub, -1)
implements("add.Tensor", inplace=_combine_inplace(1))(add)
implements("sub.Tensor", inplace=_combine_inplace(-1))(sub)


def _compressed_combine(combine: Callable[..., Tensor], operator: Any) -> Callable[..., Tensor]:
    def call(self: Any, other: Any, *, alpha: Any = 1) -> Tensor:
        if isinstance(self, Tensor) and isinstance(other, Tensor) and self.layout is not rl.strided:
            if other.layout is rl.strided:  # unlike sparse_coo, as in PyTorch
                return operator(_to_dense(self, True), other, alpha=alpha)
            return _to_layout(combine(as_coo(self), as_coo(other), alpha=alpha), self.layout)
        return combine(self, other, alpha=alpha)

    return call


implements("add.Tensor", layouts=(CSR, CSC))(_compressed_combine(add, rl.add))
implements("sub.Tensor", layouts=(CSR, CSC))(_compressed_combine(sub, rl.sub))


@implements("mul.Tensor")
def mul(self: Any, other: Any) -> Tensor:
    if not isinstance(self, Tensor) or self.layout is rl.strided:
        self, other = other, self
    if not isinstance(other, Tensor):
        return with_values(self, self._payload.values * other)
    p = self._payload
    if other.layout is rl.strided:
        if other.ndim == 0:
            return with_values(self, p.values * other.detach())
        if other.ndim > self.ndim:
            raise RuntimeError(
                f"mul: a dense operand of {other.ndim} dimensions cannot be multiplied with a sparse one of {self.ndim}"
                f", got shapes {list(self.shape)} and {list(other.shape)}."
            )
        wide = other.detach().expand(self.shape)
        return with_values(self, p.values * wide[tuple(p.indices)])
    other = as_coo(other)
    if self.shape != other.shape or p.indices.shape[0] != other._payload.indices.shape[0]:
        raise RuntimeError(
            "mul: expects sparse inputs with equal dimensionality, number of sparse dimensions, and shape of sparse "
            f"dimensions, got {list(self.shape)} and {list(other.shape)}."
        )
    if self._payload.coalesced and self._payload.indices is other._payload.indices:
        return with_values(self, self._payload.values * other._payload.values)
    if not self._payload.coalesced and other._payload.coalesced:
        self, other = other, self
    other = coalesce(other)
    p, q = self._payload, other._payload
    at = _find(keys(other), keys(self))
    hit = (at >= 0).nonzero().reshape(-1)
    product = p.values.index_select(0, hit) * q.values.index_select(0, at.index_select(0, hit))
    return make_coo(p.indices.index_select(1, hit), product, self.shape, p.coalesced)


@implements("mul.Tensor", layouts=(CSR, CSC))
def compressed_mul(self: Any, other: Any) -> Tensor:
    layout = next(t.layout for t in (self, other) if isinstance(t, Tensor) and t.layout in (CSR, CSC))
    sparse, factor = (self, other) if isinstance(self, Tensor) and self.layout is layout else (other, self)
    if not isinstance(factor, Tensor) or (factor.layout is rl.strided and factor.ndim == 0):
        return with_values(sparse, sparse._payload.values * factor)
    if factor.layout is not rl.strided:
        factor = as_coo(factor)
    return _to_layout(mul(as_coo(sparse), factor), layout)


# -- reductions


@implements("sum", layouts=(COO, CSR, CSC))
def sum_(self: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    if not dim and not keepdim:
        return self._payload.values.sum(dtype=dtype)
    result = sum_dims(as_coo(self), dim or range(self.ndim), keepdim, dtype)
    return _to_layout(result, self.layout) if self.layout is not COO and result.ndim == 2 else result


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
    v = _values(self)
    inner = [d - n + 1 for d in gone if d >= n]
    if inner:
        v = v.sum(inner, dtype=dtype)
    elif dtype is not None or not v.is_floating_point():
        v = v.to(dtype or (v.dtype if v.is_complex() else rl.int64))
    kept = [d for d in range(n) if d not in gone]
    if kept:
        rows = self._payload.indices.index_select(0, rl.tensor(kept, dtype=rl.int64))
        result = _coalesce(_coo(rows, v, [size for d, size in enumerate(self.shape) if d not in gone], False))
    else:
        result = v.sum(0)
    for d in sorted(gone) if keepdim else ():
        result = result.unsqueeze(d)
    return result


@implements("any", layouts=(COO, CSR, CSC))
def any_(self: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    if dim:
        raise NotImplementedError(f"any: a sparse tensor is reduced over all dimensions only, got dim={dim}.")
    return (coalesce(self) if self.layout is COO else self)._payload.values.any()


@implements("linalg_vector_norm", layouts=(COO, CSR, CSC), composite=True)
def vector_norm(self: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    if dim:
        raise NotImplementedError(f"norm: a sparse tensor is reduced over all dimensions only, got dim={dim}.")
    return operators["linalg_vector_norm"](_values(_coalesce(self) if self.layout is COO else self), ord, dtype=dtype)


# -- products of matrices


def _matrices(name: str, a: Tensor, b: Tensor, ndim: int = 2) -> None:
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


def times_dense(a: Tensor, b: Tensor) -> Tensor:
    """A sparse matrix by a dense one; the gradient of the sparse one is masked by it."""
    _matrices("mm", a, b)
    if a.layout is COO:
        return _coo_matmul(a._payload.indices, _values(a), b, a.shape[0])
    a = as_csr(a)
    return _csr_matmul(a._payload.compressed, a._payload.plain, _values(a), b)


@implements("mm", layouts=(COO, CSR, CSC))
def mm(self: Tensor, mat2: Tensor) -> Tensor:
    _matrices("mm", self, mat2)
    if mat2.layout is rl.strided:
        return times_dense(self, mat2)
    if self.layout is rl.strided:
        return times_dense(mat2.t(), self.t()).t()
    return _matmul_sparse(self, mat2)


def sparse_sparse_matmul(self: Tensor, other: Tensor) -> Tensor:
    _matrices("mm", self, other)
    a, b = as_csr(self)._payload, as_csr(other)._payload
    rows, cols = self.shape[0], other.shape[1]
    if cols > 4 * b.plain.shape[0] + 64:  # few of many columns: number them anew, so that sums stay in the cache
        used, place = b.plain.unique(return_inverse=True)
        crow, col, v = _csr_matmul_csr(a.compressed, a.plain, a.values, b.compressed, place, b.values, len(used))
        col = used.index_select(0, col)
    else:
        crow, col, v = _csr_matmul_csr(a.compressed, a.plain, a.values, b.compressed, b.plain, b.values, cols)
    result = make_compressed(crow, col, v, (rows, cols), CSR)
    return result if self.layout is CSR else _to_layout(result, self.layout)


@implements("mv", layouts=(COO, CSR, CSC))
def mv(self: Tensor, vec: Tensor) -> Tensor:
    if vec.layout is not rl.strided or self.layout is rl.strided:
        raise RuntimeError("mv: expected a sparse matrix and a dense vector, got a sparse vector.")
    if self.ndim != 2 or vec.ndim != 1 or self.shape[1] != vec.shape[0]:
        raise RuntimeError(
            f"mv: expected self.size(-1) == vec.size(-1), got sizes {list(self.shape)} and {list(vec.shape)}."
        )
    return times_dense(self, vec.unsqueeze(1)).squeeze(1)


@implements("addmm", layouts=(COO, CSR, CSC))
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
    _matrices("bmm", self, mat2, 3)
    batch, rows, inner = self.shape
    p = self._payload
    # One matrix whose blocks on the diagonal are those of the batch.
    place = p.indices[0]
    blocks = rl.stack((place * rows + p.indices[1], place * inner + p.indices[2]))
    flat = make_coo(blocks, p.values, (batch * rows, batch * inner), p.coalesced)
    return times_dense(flat, mat2.detach().reshape(batch * inner, -1)).reshape(batch, rows, -1)


# -- views of strided tensors, copies here


def _dim(name: str, dim: int, ndim: int) -> int:
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim}): {name}."
        )
    return dim % ndim


@implements("permute")
def permute(self: Tensor, dims: Sequence[int]) -> Tensor:
    if len(dims) != self.ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {self.ndim} is not equal to len(dims) = {len(dims)}"
        )
    order = [_dim("permute", d, self.ndim) for d in dims]
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
    indices = self._payload.indices.index_select(0, rl.tensor(order[:n], dtype=rl.int64))
    return _coo(indices, v, [self.shape[d] for d in order], self._payload.coalesced and same)


@implements("transpose.int")
def transpose(self: Tensor, dim0: int, dim1: int) -> Tensor:
    order = list(range(self.ndim))
    a, b = _dim("transpose", dim0, self.ndim), _dim("transpose", dim1, self.ndim)
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
    order = [_dim("transpose", d, 2) for d in dims]
    if len(set(order)) < len(order):
        return _clone(self)
    p = self._payload
    layout = CSC if p.layout is CSR else CSR
    return _compressed(p.compressed, p.plain, _values(self), (self.shape[1], self.shape[0]), layout)


implements("t", "transpose.int", layouts=(CSR, CSC), composite=True)(_compressed_t)


@implements("unsqueeze", composite=True)
def unsqueeze(self: Tensor, dim: int) -> Tensor:
    dim = _dim("unsqueeze", dim, self.ndim + 1)
    p, n = self._payload, self._payload.indices.shape[0]
    size = [*self.shape[:dim], 1, *self.shape[dim:]]
    if dim > n:
        return _coo(p.indices, _values(self).unsqueeze(dim - n + 1), size, False)
    zero = p.indices.new_zeros((1, p.indices.shape[1]))
    return _coo(rl.cat((p.indices[:dim], zero, p.indices[dim:])), _values(self), size, False)


@implements("select.int", composite=True)
def select(self: Tensor, dim: int, index: int) -> Tensor:
    if not self.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = _dim("select", dim, self.ndim)
    size = self.shape[dim]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(self.shape)} at dimension {dim}"
        )
    index %= size
    p, n = self._payload, self._payload.indices.shape[0]
    shape = [s for d, s in enumerate(self.shape) if d != dim]
    if dim >= n:
        return _coo(p.indices, _values(self).select(dim - n + 1, index), shape, p.coalesced)
    hit = (p.indices[dim] == index).nonzero().reshape(-1)
    v = _values(self).index_select(0, hit)
    if n == 1:
        return v.sum(0).to(v.dtype)
    rows = rl.cat((p.indices[:dim], p.indices[dim + 1 :]))
    return _coo(rows.index_select(1, hit), v, shape, p.coalesced)


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
    dim = _dim("index_select", dim, self.ndim)
    p, n = self._payload, self._payload.indices.shape[0]
    index, size = index.long().reshape(-1), self.shape[dim]
    shape = [len(index) if d == dim else s for d, s in enumerate(self.shape)]
    if dim >= n:
        return _coo(p.indices, _values(self).index_select(dim - n + 1, index), shape, p.coalesced)
    if len(index) and (int(index.min()) < -size or int(index.max()) >= size):
        raise IndexError(f"index_select(): index contains values out of range for dimension {dim} of size {size}.")
    # Elements by the place that they are selected to, then in their old order.
    wanted = index.remainder(size) if size else index
    chosen = rl.zeros(size, dtype=rl.bool).index_fill_(0, wanted, True)
    hit = chosen.index_select(0, p.indices[dim]).nonzero().reshape(-1)
    line, by_line = p.indices[dim].index_select(0, hit).sort(stable=True)
    order = hit.index_select(0, by_line)
    starts = _crow(line, size)
    first = starts.index_select(0, wanted)
    count = starts.index_select(0, wanted + 1) - first
    to = rl.arange(len(index)).repeat_interleave(count)
    offset = rl.arange(len(to)) - (count.cumsum(0) - count).index_select(0, to)
    at = order.index_select(0, first.index_select(0, to) + offset)
    indices = p.indices.index_select(1, at)
    indices[dim] = to
    return _coo(indices, _values(self).index_select(0, at), shape, p.coalesced and dim == 0)


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
    dim = _dim("cat", dim, parts[0].ndim)
    size = list(parts[0].shape)
    for i, part in enumerate(parts):
        if any(d != dim and a != b for d, (a, b) in enumerate(zip(part.shape, size, strict=True))):
            raise RuntimeError(
                f"cat(): expected all tensors to have the same shape apart from dimension {dim}, but tensor at "
                f"position {i} has shape {list(part.shape)} and the first {size}."
            )
    n = parts[0]._payload.indices.shape[0]
    v = [_values(part) for part in parts]
    size[dim] = sum(part.shape[dim] for part in parts)
    indices = rl.cat([part._payload.indices for part in parts], 1)
    if dim < n:
        at = before = 0
        for part in parts:
            indices[dim, at : at + part._nnz()] += before
            at, before = at + part._nnz(), before + part.shape[dim]
        return _coo(indices, rl.cat(v), size, False)
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
    return _coo(indices, rl.cat(padded), size, False)


@implements("stack", composite=True)
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    return rl.cat([tensor.unsqueeze(dim) for tensor in _joinable("stack", tensors)], dim)


@implements("unbind.int", composite=True)
def unbind(self: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    return tuple(self.select(dim, i) for i in range(self.size(dim)))


@implements("unbind.int", layouts=(CSR, CSC), composite=True)
def compressed_unbind(self: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    return as_coo(self).unbind(dim)


@implements("contiguous", layouts=(COO, CSR, CSC))
def contiguous(self: Tensor, *, memory_format: Any = None) -> Tensor:
    raise RuntimeError("unsupported memory format option: a sparse tensor has no order of memory.")


# -- new tensors, and writing


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


@implements("zeros_like", "empty_like", layouts=(COO, CSR, CSC))
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


@implements("new_zeros", "new_empty", layouts=(COO, CSR, CSC))
def new_zeros(
    self: Tensor, size: Sequence[int], *, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: Any = None,
) -> Tensor:  # fmt: skip
    dtype = dtype or self.dtype
    if layout is rl.strided:
        return rl.zeros(size, dtype=dtype)
    return empty(layout or self.layout, size, dtype)


@implements("zero_", layouts=(COO, CSR, CSC))
def zero_(self: Tensor) -> Tensor:
    _C.set_payload(self, zeros_like(self)._payload)
    return self


@implements("copy_", layouts=(COO, CSR, CSC))
def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    if self.layout is not src.layout:
        raise RuntimeError(
            f"copy_() between dense and sparse Tensors is not implemented! Found self layout = {self.layout} and src "
            f"layout = {src.layout}"
        )
    copy = _clone(src) if src.dtype is self.dtype else src.to(self.dtype)
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
        fresh = Coo(rl.empty((sparse_dim, 0), dtype=rl.int64), rl.empty((0, *inner), dtype=self.dtype), True)
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
        v = rl.zeros((v.shape[0], *inner), dtype=v.dtype)
        v[(slice(None), *(slice(s) for s in old_inner))] = p.values
    _C.set_payload(self, Coo(p.indices, v, p.coalesced), tuple(size))
