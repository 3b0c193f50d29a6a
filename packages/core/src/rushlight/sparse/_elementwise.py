"""Functions and arithmetic, one element at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor, _registry

from ._parts import (
    COO,
    CSC,
    CSR,
    EVERY,
    as_coo,
    clone,
    coalesce_op,
    find_op,
    flat_view,
    implements,
    indices_op,
    keys,
    keys_op,
    make_coo,
    merge_op,
    sparse_shape,
    to_dense_op,
    to_layout_op,
    values_op,
    with_values,
)
from ._records import coalesce

_FUNCTIONS = """
    abs asin asinh atan atanh ceil deg2rad expm1 floor frac isinf isnan isneginf isposinf log1p nan_to_num rad2deg relu
    round round.decimals sgn sign signbit sin sinh sqrt square tan tanh trunc
"""
_LINEAR = "neg positive conj_physical _cast"


def _unary(operator: Any) -> Callable[..., Tensor]:
    def call(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if self.layout is COO:
            self = coalesce_op(self)
        return with_values(self, operator(values_op(self), *args, **kwargs))

    return call


def _linear(operator: Any) -> Callable[..., Tensor]:
    def call(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return with_values(self, operator(self._payload.values, *args, **kwargs))

    return call


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


for _name in _FUNCTIONS.split():
    implements(_name, layouts=EVERY, composite=True)(_unary(_registry.ops[_name].item.operator))
for _name in _LINEAR.split():
    implements(_name, layouts=EVERY)(_linear(_registry.ops[_name].item.operator))
implements("clone", layouts=EVERY)(clone)
implements("pow.Tensor_Scalar", layouts=EVERY, composite=True)(_power)
implements("div.Tensor", layouts=EVERY)(_divided(rl.div, True))
implements("div.Tensor_mode", layouts=EVERY)(_divided(rl.div, False))
implements("floor_divide", layouts=EVERY)(_divided(rl.floor_divide, False))


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
        merged, at, other_at = merge_op(keys_op(a.indices, shape), keys_op(b.indices, shape))
        dtype = operator(a.values[:0], b.values[:0], alpha=alpha).dtype  # says too what may not be combined
        out = a.values.new_zeros((len(merged), *a.values.shape[1:]), dtype=dtype)
        out.index_copy_(0, at, a.values.to(dtype))
        out.index_add_(0, other_at, _scaled(b.values.to(dtype), alpha, sign))
        return make_coo(indices_op(merged, shape), out, self.shape, a.coalesced and b.coalesced)

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
                return operator(to_dense_op(self, True), other, alpha=alpha)
            return to_layout_op(combine(as_coo(self), as_coo(other), alpha=alpha), self.layout)
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
    at = find_op(keys(other), keys(self))
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
    return to_layout_op(mul(as_coo(sparse), factor), layout)
