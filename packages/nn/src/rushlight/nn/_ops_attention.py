"""Scaled dot product attention (A. Vaswani et al., Attention Is All You Need, 2017)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._op import COMPOSITE, Op, Sample
from rushlight.nn._precision import wide
from rushlight.nn._recompute import gradients


def _weights(query: Tensor, key: Tensor, mask: Tensor | None, causal: bool, scale: float) -> tuple[Tensor, Tensor]:
    """The share of each key in each query's result, and the logarithm by which it is normalised."""
    scores = rl.matmul(query * scale, key.transpose(-2, -1))
    if causal:
        allowed = rl.ones(scores.shape[-2:], dtype=rl.bool, device=scores.device).tril()
        scores = scores.masked_fill(allowed.logical_not(), -math.inf)
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), -math.inf) if mask.dtype == rl.bool else scores + mask
    # Queries without any key have no shares, where softmax would be 0 / 0.
    missing = (scores == -math.inf).all(-1, keepdim=True)
    shares = rl.softmax(scores.masked_fill(missing, 0), -1).masked_fill(missing, 0)
    normalizer = rl.logsumexp(scores.detach(), -1) if scores.size(-1) else scores.new_zeros(scores.shape[:-1])
    return shares, normalizer.masked_fill(missing.squeeze(-1), math.inf)


def _repeated(heads: int, *tensors: Tensor) -> list[Tensor]:
    """Heads of keys and values as often as there are of queries."""
    return [t if t.size(-3) == heads else t.repeat_interleave(heads // t.size(-3), -3) for t in tensors]


def attention_composite(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, scale: float
) -> tuple[Tensor, Tensor]:
    dtype = query.dtype
    query, key, value = wide(query), wide(key), wide(value)
    if query.dtype != dtype:
        mask = mask if mask is None or mask.dtype == rl.bool else mask.to(query.dtype)
        return tuple(x.to(dtype) for x in attention.operator(query, key, value, mask, causal, scale))
    key, value = _repeated(query.size(-3), key, value)
    weights, normalizer = _weights(query, key, mask, causal, scale)
    return rl.matmul(weights, value), normalizer


def attention_grad(
    grads: Sequence[Tensor],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    causal: bool,
    scale: float,
    results: Sequence[Tensor],
    needs: Sequence[bool],
) -> Sequence[Tensor | None]:
    if rl.is_grad_enabled() or needs[3]:
        floating = mask is not None and mask.dtype != rl.bool
        function = partial(_attention_of, fixed=None if floating else mask, causal=causal, scale=scale)
        return gradients(function, (query, key, value, mask if floating else None), grads[:1])
    return (*attention_backward.operator(grads[0], *results, query, key, value, mask, causal, scale), None)


def _attention_of(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, fixed: Tensor | None, causal: bool, scale: float
) -> tuple[Tensor, Tensor]:
    return attention_composite(query, key, value, fixed if mask is None else mask, causal, scale)


def attention_backward_composite(
    output_grad: Tensor,
    output: Tensor,
    normalizer: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    causal: bool,
    scale: float,
) -> tuple[Tensor, ...]:
    function = partial(attention_composite, mask=mask, causal=causal, scale=scale)
    with rl.no_grad():
        found: Any = gradients(function, (query, key, value), (output_grad,))
    return tuple(grad.contiguous() for grad in found)


def _attention_samples(make: Any, dtype: Any) -> Any:
    if not dtype.is_floating_point:
        return
    keys = make(2, 2, 5, 3), make(2, 2, 5, 6)
    yield Sample((make(2, 2, 4, 3), *keys, None, False, 0.5))
    yield Sample((make(2, 2, 4, 3), *keys, None, True, 0.5))
    yield Sample((make(2, 4, 4, 3), *keys, make(2, 4, 4, 5), False, 0.5))
    allowed = make.tensor([False, True, True, False, True]).expand(2, 2, 4, 5)
    yield Sample((make(2, 2, 4, 3), *keys, allowed, False, 0.5))


def _backward_samples(make: Any, dtype: Any) -> Any:
    if not dtype.is_floating_point or dtype.itemsize < 4:
        return
    for causal in (False, True):
        inputs = [make(2, 2, 4, 3).detach(), make(2, 2, 5, 3).detach(), make(2, 2, 5, 6).detach()]
        results = attention.operator(*inputs, None, causal, 0.5)
        yield Sample((make(2, 2, 4, 6).detach(), *results, *inputs, None, causal, 0.5))


_ARGUMENTS = "Tensor query, Tensor key, Tensor value, Tensor? mask, bool causal, float scale"

attention = (
    Op(
        f"nn::attention({_ARGUMENTS}) -> (Tensor, Tensor)",
        method=False,
        out=False,
        auxiliary=1,
        doc="""Attention of heads, and the normalizer of each query: ``log(sum(exp(scores)))``.

        Args:
            query: (B, H, L, E).
            key: (B, G, S, E) with G dividing H.
            value: (B, G, S, W).
            mask: (B, H, L, S), added to the scores, or bool: which keys count.
            causal: Whether key j counts for query i only where j <= i.
            scale: Factor of the products of queries and keys.

        Returns:
            (B, H, L, W) in the memory order of the query, zero for a query without keys, and (B, H, L).
        """,
    )
    .composite(attention_composite)
    .grad(("query", "key", "value", "mask"), attention_grad)
    .samples(_attention_samples)
)
attention_backward = (
    Op(
        f"nn::attention_backward(Tensor output_grad, Tensor output, Tensor normalizer, {_ARGUMENTS}) "
        "-> (Tensor, Tensor, Tensor)",
        method=False,
        out=False,
        differentiable=False,
        doc="Gradients of `attention` with respect to query, key and value.",
    )
    .composite(attention_backward_composite)
    .samples(_backward_samples)
)


_NAME = "scaled_dot_product_attention"


def _check(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool) -> None:
    if min(query.dim(), key.dim(), value.dim()) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{query.dim()} key.dim: {key.dim()} and value.dim: {value.dim()} instead."
        )
    if not query.dtype == key.dtype == value.dtype:
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{query.dtype} key.dtype: {key.dtype} and value.dtype: {value.dtype} instead."
        )
    if not query.is_floating_point():
        raise RuntimeError(f"{_NAME}: expected scalar type Float but found {query.dtype}. Convert with .to(dtype).")
    if query.size(-1) != key.size(-1) or key.size(-2) != value.size(-2):
        raise RuntimeError(
            f"{_NAME}: query and key need the same last size, key and value the same size before it, got query of "
            f"size {list(query.shape)}, key of size {list(key.shape)} and value of size {list(value.shape)}."
        )
    if mask is None:
        return
    if causal:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if mask.dtype not in (rl.bool, query.dtype, rl.float32):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{mask.dtype} and  query.dtype: {query.dtype} instead."
        )


def scaled_dot_product_attention_composite(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    *,
    scale: float | None,
    enable_gqa: bool,
) -> Tensor:
    _check(query, key, value, attn_mask, is_causal)
    if scale is None:
        scale = 1 / math.sqrt(query.size(-1)) if query.size(-1) else 1.0
    shared = enable_gqa and query.dim() > 2 and query.size(-3) != key.size(-3)
    if shared and (key.size(-3) == 0 or query.size(-3) % key.size(-3) or key.size(-3) != value.size(-3)):
        raise RuntimeError(
            "Number of heads in key and value must divide the number of heads in query, got "
            f"{key.size(-3)} and {value.size(-3)} for {query.size(-3)}."
        )
    mask = attn_mask
    if mask is not None and mask.dtype != rl.bool and mask.dtype != query.dtype:
        mask = mask.to(query.dtype)
    if dropout_p > 0:
        key, value = _repeated(query.size(-3), key, value) if shared else (key, value)
        weights, _ = _weights(wide(query), wide(key), mask, is_causal, scale)
        return rl.matmul(rl.dropout(weights.to(query.dtype), dropout_p, True), value)
    tensors = query, key, value
    batch = rl.broadcast_shapes(*(x.shape[:-3] for x in tensors))
    heads = own = max(x.size(-3) if x.dim() > 2 else 1 for x in tensors)
    if shared:
        own = key.size(-3)
    query, key, value = _folded(query, batch, heads), _folded(key, batch, own), _folded(value, batch, own)
    if mask is not None:
        mask = mask.expand(*batch, heads, query.size(-2), key.size(-2)).reshape(-1, heads, query.size(-2), key.size(-2))
    result = attention.operator(query, key, value, mask, is_causal, scale)[0]
    if len(batch) == 1:
        return result
    return result.reshape(*batch, *([heads] if max(x.dim() for x in tensors) > 2 else []), *result.shape[-2:])


def _folded(tensor: Tensor, batch: Sequence[int], heads: int) -> Tensor:
    """The tensor with one batch dimension and so many heads."""
    if len(batch) == 1 and tensor.dim() == 4 and tensor.shape[0] == batch[0] and tensor.shape[1] == heads:
        return tensor
    matrix = tensor.shape[-2:]
    return tensor.expand(*batch, heads, *matrix).reshape(math.prod(batch), heads, *matrix)


def _samples(make: Any, dtype: Any) -> Any:
    if not dtype.is_floating_point:
        return
    yield Sample((make(2, 3, 4, 3), make(2, 3, 5, 3), make(2, 3, 5, 2)))
    yield Sample((make(3, 4, 3), make(5, 3), make(3, 5, 2), make(1, 5)), {"scale": 0.3})
    yield Sample((make(4, 4, 3), make(2, 5, 3), make(2, 5, 2), None, 0.0, True), {"enable_gqa": True})


scaled_dot_product_attention = (
    Op(
        f"nn::{_NAME}(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, "
        "bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
        family=COMPOSITE,
        method=False,
        out=False,
        doc="""``softmax(query @ key.T * scale + attn_mask) @ value``, without the matrix of all scores in memory.

        Args:
            query: (*, H, L, E).
            key: (*, H, S, E).
            value: (*, H, S, W).
            attn_mask: Broadcasts to (*, H, L, S); added to the scores, or bool: which keys count.
            dropout_p: Probability of a zero among the weights. It needs them all in memory.
            is_causal: Whether key j counts for query i only where j <= i; without `attn_mask`.
            scale: By default ``1 / sqrt(E)``.
            enable_gqa: Whether key and value may have fewer heads, of which each serves several of the query.

        Returns:
            (*, H, L, W), zero for a query without keys.

        Raises:
            RuntimeError: Sizes or dtypes do not fit.

        Example:
            >>> import rushlight as torch
            >>> q, k, v = torch.ones(2, 8, 5, 16), torch.ones(2, 8, 7, 16), torch.ones(2, 8, 7, 16)
            >>> torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).shape
            torch.Size([2, 8, 5, 16])
        """,
    )
    .composite(scaled_dot_product_attention_composite)
    .samples(_samples)
)
