"""Layers and losses as functions of tensors."""

from __future__ import annotations

import inspect
import math
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import _ops
from rushlight.nn._ops_bag import combine_bags as _combine_bags
from rushlight.nn._precision import wide as _wide
from rushlight.nn._windows import expand as _expand

Size = int | Sequence[int]

tf32_notes = {"tf32_note": "TensorFloat-32 is a matter of devices: on the CPU float32 computes in float32."}

linear = _ops.linear
bilinear = _ops.bilinear
conv1d = _ops.conv1d
conv2d = _ops.conv2d
conv3d = _ops.conv3d
conv_transpose1d = _ops.conv_transpose1d
conv_transpose2d = _ops.conv_transpose2d
conv_transpose3d = _ops.conv_transpose3d
avg_pool1d = _ops.avg_pool1d
avg_pool2d = _ops.avg_pool2d
avg_pool3d = _ops.avg_pool3d
gelu = _ops.gelu
logsigmoid = _ops.log_sigmoid
pad = _ops.pad
prelu = _ops.prelu
softplus = _ops.softplus
hardshrink = _ops.hardshrink
scaled_dot_product_attention = _ops.scaled_dot_product_attention
pdist = _ops.pdist
pixel_shuffle = _ops.pixel_shuffle
pixel_unshuffle = _ops.pixel_unshuffle
channel_shuffle = _ops.channel_shuffle
tanh = rl.tanh
sigmoid = rl.sigmoid


# -- activations


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(0, x), elementwise; `inplace` writes the input."""
    return rl.relu_(input) if inplace else rl.relu(input)


def relu_(input: Tensor) -> Tensor:
    """`relu` that writes its input."""
    return rl.relu_(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(0, x), 6), elementwise; `inplace` writes the input."""
    return hardtanh(input, 0.0, 6.0, inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """X clamped to [`min_val`, `max_val`]; `inplace` writes the input.

    Raises:
        ValueError: `min_val` is above `max_val`.
    """
    if min_val > max_val:
        raise ValueError(f"min_val cannot be greater than max_val, got min_val={min_val}, max_val={max_val}.")
    return _ops.hardtanh_(input, min_val, max_val) if inplace else _ops.hardtanh(input, min_val, max_val)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """X where x > 0, else ``alpha * (exp(x) - 1)``; `inplace` writes the input."""
    return _ops.elu_(input, alpha) if inplace else _ops.elu(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The self-normalising ELU of Klambauer et al. (2017); `inplace` writes the input."""
    return _ops.selu_(input) if inplace else _ops.selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``; `inplace` writes the input."""
    return _ops.celu_(input, alpha) if inplace else _ops.celu(input, alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """X where x > 0, else ``negative_slope * x``; `inplace` writes the input."""
    return _ops.leaky_relu_(input, negative_slope) if inplace else _ops.leaky_relu(input, negative_slope)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """`hardtanh` that writes its input."""
    return hardtanh(input, min_val, max_val, inplace=True)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`elu` that writes its input."""
    return elu(input, alpha, inplace=True)


def selu_(input: Tensor) -> Tensor:
    """`selu` that writes its input."""
    return selu(input, inplace=True)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`celu` that writes its input."""
    return celu(input, alpha, inplace=True)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """`leaky_relu` that writes its input."""
    return leaky_relu(input, negative_slope, inplace=True)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """`threshold` that writes its input."""
    return _ops.threshold_(input, threshold, value)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """X where x > 0, else x times a slope between `lower` and `upper`: random in `training`, else the mean of both."""
    return _ops.rrelu_(input, lower, upper, training) if inplace else _ops.rrelu(input, lower, upper, training)


def rrelu_(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Tensor:
    """`rrelu` that writes its input."""
    return _ops.rrelu_(input, lower, upper, training)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along `dim` times the sigmoid of the second half."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even, got a 0-d input.")
    return _ops.glu(input, dim)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * sigmoid(x)``, also known as swish; `inplace` writes the input."""
    return _ops.silu_(input) if inplace else _ops.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * tanh(softplus(x))``; `inplace` writes the input."""
    return _ops.mish_(input) if inplace else _ops.mish(input)


silu_ = _ops.silu_
mish_ = _ops.mish_
hardsigmoid_ = _ops.hardsigmoid_


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(x + 3, 0), 6) / 6``; `inplace` writes the input."""
    return _ops.hardsigmoid_(input) if inplace else _ops.hardsigmoid(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * hardsigmoid(x)``; `inplace` writes the input."""
    return _ops.hardswish_(input) if inplace else _ops.hardswish(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """X where x > `threshold`, else `value`; `inplace` writes the input."""
    return _ops.threshold_(input, threshold, value) if inplace else _ops.threshold(input, threshold, value)


def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """`x` moved by `lambd` towards 0, which it does not pass; written to `out` if given.

    Raises:
        RuntimeError: `lambd` is negative.
    """
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    return _ops.softshrink(input, lambd, out=out)


def tanhshrink(input: Tensor) -> Tensor:
    """``x - tanh(x)``."""
    return input - input.tanh() if input.is_complex() else _ops.tanhshrink(input)


def softsign(input: Tensor) -> Tensor:
    """``x / (1 + |x|)``."""
    return input / (input.abs() + 1) if input.is_complex() else _ops.softsign(input)


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """``exp(x) / sum(exp(x))`` along a dimension.

    Args:
        input: Any shape.
        dim: The dimension that sums to 1. Leaving it out is deprecated.
        dtype: To which the input is converted first.
    """
    if dim is None:
        dim = _implicit_dim("softmax", input.dim(), _stacklevel)
    return rl.softmax(input, dim) if dtype is None else rl.softmax(input, dim, dtype=dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """The `softmax` of ``-x``."""
    if dim is None:
        dim = _implicit_dim("softmin", input.dim(), _stacklevel)
    return softmax(-input, dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax`, without its loss of digits; arguments as there."""
    if dim is None:
        dim = _implicit_dim("log_softmax", input.dim(), _stacklevel)
    return rl.log_softmax(input, dim) if dtype is None else rl.log_softmax(input, dim, dtype=dtype)


def _implicit_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample of the Gumbel-softmax distribution (Jang et al., 2017).

    Args:
        logits: Unnormalised log probabilities.
        tau: The temperature.
        hard: Whether the sample is one-hot, with the gradient of the soft one.
        eps: Unused.
        dim: The dimension of the categories.
    """
    gumbels = -rl.empty_like(logits).exponential_().log()
    soft = softmax((logits + gumbels) / tau, dim)
    if not hard:
        return soft
    one_hot = rl.zeros_like(logits).scatter_(dim, soft.max(dim, keepdim=True)[1], 1.0)
    return one_hot - soft.detach() + soft


# -- attention


def _canonical_mask(
    mask: Tensor | None, name: str, other: Tensor | None, other_name: str, dtype: Any, check_other: bool = True
) -> Tensor | None:
    """A mask that is added to the scores: minus infinity where a bool mask is true."""
    if mask is None:
        return None
    if mask.dtype != rl.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {name} are supported, got {name} of {mask.dtype}.")
    if check_other and other is not None and other.dtype != mask.dtype:
        warnings.warn(
            f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=3,
        )
    if mask.dtype == rl.bool:
        return rl.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(mask, -math.inf)
    return mask


def _require(condition: bool, text: str) -> None:
    if not condition:
        raise AssertionError(text)


def _check_attention(
    query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None, attn_mask: Tensor | None
) -> bool:
    """Whether the input is batched; raises AssertionError where dimensions do not fit."""
    _require(
        query.dim() in (2, 3),
        f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor",
    )
    batched = query.dim() == 3
    kind, dims = ("batched (3-D)", 3) if batched else ("unbatched (2-D)", 2)
    _require(
        key.dim() == dims and value.dim() == dims,
        f"For {kind} `query`, expected `key` and `value` to be {dims}-D but found {key.dim()}-D and {value.dim()}-D "
        "tensors respectively",
    )
    if key_padding_mask is not None:
        _require(
            key_padding_mask.dim() == dims - 1,
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {dims - 1}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead",
        )
    if attn_mask is not None:
        _require(
            attn_mask.dim() in (2, 3),
            f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D "
            "tensor instead",
        )
    return batched


def _in_projection(
    query: Tensor, key: Tensor, value: Tensor, weights: Sequence[Tensor] | Tensor, bias: Tensor | None
) -> tuple[Tensor, ...]:
    """Query, key and value times their weights; one product where they are the same tensor."""
    if isinstance(weights, Tensor):
        if query is key and key is value:
            return tuple(linear(query, weights, bias).chunk(3, -1))
        size = query.size(-1)
        if key is value:
            w_q, w_kv = weights.split([size, 2 * size])
            b_q, b_kv = (None, None) if bias is None else bias.split([size, 2 * size])
            return (linear(query, w_q, b_q), *linear(key, w_kv, b_kv).chunk(2, -1))
        weights = weights.chunk(3)
    biases = (None, None, None) if bias is None else bias.chunk(3)
    return tuple(linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True))


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention of several heads, each with a part of the features (A. Vaswani et al., 2017).

    Args:
        query: (L, N, E) or (L, E).
        key: (S, N, K) or (S, K).
        value: (S, N, V) or (S, V).
        embed_dim_to_check: E.
        num_heads: Divides E.
        in_proj_weight: (3 * E, E), for query, key and value; unless `use_separate_proj_weight`.
        in_proj_bias: (3 * E,).
        bias_k: (1, 1, E), a further key.
        bias_v: (1, 1, E), its value.
        add_zero_attn: Whether there is a further key and value of zeros.
        dropout_p: Probability of a zero among the weights of keys.
        out_proj_weight: (E, E).
        out_proj_bias: (E,).
        training: Whether there is dropout.
        key_padding_mask: (N, S) or (S,), true for keys that do not count, or added to the scores.
        need_weights: Whether the weights of keys are returned; without them memory does not grow with L * S.
        attn_mask: (L, S) or (N * num_heads, L, S), likewise.
        use_separate_proj_weight: Whether the three weights that follow serve.
        q_proj_weight: (E, E).
        k_proj_weight: (E, K).
        v_proj_weight: (E, V).
        static_k: (N * num_heads, S, E / num_heads), instead of projected keys.
        static_v: Likewise for values.
        average_attn_weights: Whether the returned weights are the mean of the heads.
        is_causal: States that `attn_mask` is causal; it may then not be read.

    Returns:
        (L, N, E) or (L, E), and the weights (N, L, S), (N, num_heads, L, S) or None.

    Raises:
        AssertionError: Dimensions do not fit.
        RuntimeError: Masks have the wrong shape.
    """
    batched = _check_attention(query, key, value, key_padding_mask, attn_mask)
    if not batched:
        same_key, same_value = key is query, value is key
        query = query.unsqueeze(1)
        key = query if same_key else key.unsqueeze(1)
        value = key if same_value else value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    queries, batch, features = query.shape
    _require(
        features == embed_dim_to_check,
        f"was expecting embedding dimension of {embed_dim_to_check}, but got {features}",
    )
    depth = features // num_heads
    _require(depth * num_heads == features, f"embed_dim {features} not divisible by num_heads {num_heads}")
    _require(
        key.shape[:2] == value.shape[:2] if use_separate_proj_weight else key.shape == value.shape,
        f"key shape {key.shape} does not match value shape {value.shape}",
    )
    if key.size(1) != batch:
        raise RuntimeError(
            "multi_head_attention_forward: query and key must have the same batch size, got query of size "
            f"{list(query.shape)} and key of size {list(key.shape)}."
        )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    key_padding_mask = _canonical_mask(key_padding_mask, "key_padding_mask", attn_mask, "attn_mask", query.dtype)
    implied = is_causal and key_padding_mask is None and not need_weights
    if implied:
        attn_mask = None
    else:
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)

    weights: Any = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else in_proj_weight
    q, k, v = _in_projection(query, key, value, weights, in_proj_bias)
    if attn_mask is not None:
        expected = (queries, key.size(0)) if attn_mask.dim() == 2 else (batch * num_heads, queries, key.size(0))
        if tuple(attn_mask.shape) != expected:
            raise RuntimeError(
                f"The shape of the {attn_mask.dim()}D attn_mask is {attn_mask.shape}, but should be {expected}."
            )
    further = 0
    if bias_k is not None and bias_v is not None:
        _require(static_k is None and static_v is None, "bias cannot be added to static key or value")
        k, v = rl.cat([k, bias_k.expand(1, batch, features)]), rl.cat([v, bias_v.expand(1, batch, features)])
        further = 1

    def by_heads(x: Tensor) -> Tensor:
        return x.view(x.size(0), batch, num_heads, depth).permute(1, 2, 0, 3)

    q = by_heads(q)
    k = by_heads(k) if static_k is None else static_k.view(batch, num_heads, -1, depth)
    v = by_heads(v) if static_v is None else static_v.view(batch, num_heads, -1, depth)
    if add_zero_attn:
        zeros = rl.zeros(batch, num_heads, 1, depth, dtype=k.dtype, device=k.device)
        k, v = rl.cat([k, zeros], 2), rl.cat([v, zeros], 2)
        further += 1
    if key_padding_mask is not None:
        _require(
            key_padding_mask.size(0) == batch,
            f"Expected key_padded_mask.shape[0] to be {batch}, but got {key_padding_mask.size(0)}",
        )
        _require(
            key_padding_mask.size(1) == key.size(0),
            f"Expected key_padded_mask.shape[1] to be {key.size(0)}, but got {key_padding_mask.size(1)}",
        )
        key_padding_mask = pad(key_padding_mask, (0, further)).view(batch, 1, 1, -1)
    mask = None
    if attn_mask is not None:
        mask = pad(attn_mask, (0, further))
        mask = mask if mask.dim() == 2 else mask.view(batch, num_heads, queries, -1)
    if key_padding_mask is not None:
        mask = key_padding_mask if mask is None else mask + key_padding_mask

    dropout_p = dropout_p if training else 0.0
    shares = None
    if need_weights:
        scores = rl.matmul(q * depth**-0.5, k.transpose(-2, -1))
        shares = rl.softmax(scores if mask is None else scores + mask, -1)
        if dropout_p > 0:
            shares = dropout(shares, dropout_p)
        out = rl.matmul(shares, v)
    else:
        out = scaled_dot_product_attention(q, k, v, mask, dropout_p, implied)
    out = linear(out.permute(2, 0, 1, 3).reshape(queries, batch, features), out_proj_weight, out_proj_bias)
    if shares is not None and average_attn_weights:
        shares = shares.mean(1)
    if not batched:
        return out.squeeze(1), None if shares is None else shares.squeeze(0)
    return out, shares


# -- dropout


def _check_p(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes elements with probability `p` and scales the others by ``1 / (1 - p)``, in training only.

    Args:
        input: Any shape.
        p: The probability of a zero.
        training: False: the input comes back.
        inplace: Whether the input is written.

    Raises:
        ValueError: `p` is outside [0, 1].
    """
    _check_p(p)
    return _ops.dropout_(input, p, training) if inplace else _ops.dropout(input, p, training)


def _feature_dropout(name: str, input: Tensor, p: float, training: bool, inplace: bool, batched: int) -> Tensor:
    _check_p(p)
    ndim = input.dim()
    if ndim not in (batched - 1, batched):
        warnings.warn(
            f"{name}: Received a {ndim}-D input to {name}, which is deprecated and will result in an error in a "
            f"future release. Expected a {batched - 1}-D or {batched}-D input.",
            stacklevel=3,
        )
    op = _ops.feature_dropout_ if inplace else _ops.feature_dropout
    if ndim != batched - 1:
        return op(input, p, training)
    result = op(input.unsqueeze_(0) if inplace else input.unsqueeze(0), p, training)
    return result.squeeze_(0) if inplace else result.squeeze(0)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of an input (N, C, L) or (C, L)."""
    return _feature_dropout("dropout1d", input, p, training, inplace, 3)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of an input (N, C, H, W)."""
    _check_p(p)
    return (_ops.feature_dropout_ if inplace else _ops.feature_dropout)(input, p, training)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of an input (N, C, D, H, W) or (C, D, H, W)."""
    return _feature_dropout("dropout3d", input, p, training, inplace, 5)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean and variance of SELU networks (Klambauer et al., 2017)."""
    _check_p(p)
    return (_ops.alpha_dropout_ if inplace else _ops.alpha_dropout)(input, p, training)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels."""
    _check_p(p)
    return (_ops.feature_alpha_dropout_ if inplace else _ops.feature_alpha_dropout)(input, p, training)


# -- pooling


def _with_indices(pool: Callable[..., Any]) -> Callable[..., Any]:
    """A pooling function that returns maxima and positions, whatever its `return_indices`."""

    def both(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.arguments["return_indices"] = True
        return pool(*bound.args, **bound.kwargs)

    signature = inspect.signature(pool)
    both.__name__ = both.__qualname__ = f"{pool.__name__}_with_indices"
    both.__doc__ = f"The maxima and positions that `{pool.__name__}` returns with ``return_indices=True``."
    return both


def _max_pool(plain: Callable[..., Tensor], indexed: Callable[..., Any]) -> Callable[..., Any]:
    def pool(
        input: Tensor,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        op = indexed if return_indices else plain
        return op(input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode)

    pool.__name__ = pool.__qualname__ = plain.__name__
    pool.__doc__ = """The maximum of each window.

    Args:
        input: (N, C, *) or (C, *).
        kernel_size: Size of the window.
        stride: Step from window to window. Default: `kernel_size`.
        padding: Elements of minus infinity on both sides.
        dilation: Step inside the window.
        ceil_mode: Whether a last, partial window counts.
        return_indices: Whether the flat positions of the maxima are returned too.

    Returns:
        The maxima, or with `return_indices` the pair of maxima and positions.
    """
    return pool


max_pool1d = _max_pool(_ops.max_pool1d, _ops.max_pool1d_with_indices)
max_pool2d = _max_pool(_ops.max_pool2d, _ops.max_pool2d_with_indices)
max_pool3d = _max_pool(_ops.max_pool3d, _ops.max_pool3d_with_indices)
max_pool1d_with_indices = _with_indices(max_pool1d)
max_pool2d_with_indices = _with_indices(max_pool2d)
max_pool3d_with_indices = _with_indices(max_pool3d)


def adaptive_avg_pool1d(input: Tensor, output_size: Size) -> Tensor:
    """Averages windows such that the output has `output_size` elements."""
    return _ops.adaptive_avg_pool1d(input, output_size)


def _full_size(name: str, output_size: Any, input: Tensor, n: int) -> Any:
    """One entry per spatial dimension; None stands for the input's size."""
    if isinstance(output_size, int):
        return output_size
    if input.dim() <= len(output_size):
        raise ValueError(
            f"Input dimension should be at least {len(output_size) + 1}, got input.shape={list(input.shape)}."
        )
    if len(output_size) != n:
        raise RuntimeError(f"{name}: output_size must be {n} numbers, got output_size={output_size}.")
    return tuple(own if size is None else size for size, own in zip(output_size, input.shape[-n:], strict=True))


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Averages windows such that the output is `output_size` (H, W); None in it keeps the input's size."""
    return _ops.adaptive_avg_pool2d(input, _full_size("adaptive_avg_pool2d", output_size, input, 2))


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Averages windows such that the output is `output_size` (D, H, W); None in it keeps the input's size."""
    return _ops.adaptive_avg_pool3d(input, _full_size("adaptive_avg_pool3d", output_size, input, 3))


def _adaptive_max_pool(n: int, op: Callable[..., Any]) -> Callable[..., Any]:
    def pool(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        if n > 1 and not isinstance(output_size, int):
            output_size = _full_size(f"adaptive_max_pool{n}d", output_size, input, n)
        both = op(input, output_size)
        return both if return_indices else both[0]

    pool.__name__ = pool.__qualname__ = f"adaptive_max_pool{n}d"
    pool.__doc__ = """The maxima of regions, chosen such that the output has a given size.

    Args:
        input: (N, C, *) or (C, *), floating point.
        output_size: Sizes of the output; a number stands for all of them, None for that of the input.
        return_indices: Whether the flat positions of the maxima are returned too.

    Returns:
        The maxima, or with `return_indices` the pair of maxima and positions.
    """
    return pool


adaptive_max_pool1d = _adaptive_max_pool(1, _ops.adaptive_max_pool1d)
adaptive_max_pool2d = _adaptive_max_pool(2, _ops.adaptive_max_pool2d)
adaptive_max_pool3d = _adaptive_max_pool(3, _ops.adaptive_max_pool3d)
adaptive_max_pool1d_with_indices = _with_indices(adaptive_max_pool1d)
adaptive_max_pool2d_with_indices = _with_indices(adaptive_max_pool2d)
adaptive_max_pool3d_with_indices = _with_indices(adaptive_max_pool3d)


def _fractional_max_pool(n: int, op: Callable[..., Any]) -> Callable[..., Any]:
    name = f"fractional_max_pool{n}d"

    def pool(
        input: Tensor,
        kernel_size: Size,
        output_size: Size | None = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if input.dim() <= n:
            raise IndexError(f"{name}: expected an input (N, C, *) or (C, *), got {list(input.shape)}.")
        if output_size is None:
            ratios = (output_ratio,) * n if isinstance(output_ratio, (int, float)) else tuple(output_ratio)
            output_size = [int(size * ratio) for size, ratio in zip(input.shape[-n:], ratios, strict=True)]
        if _random_samples is None:
            planes = (1 if input.dim() == n + 1 else input.size(0), input.size(-n - 1))
            _random_samples = rl.rand(*planes, n, dtype=input.dtype, device=input.device)
        both = op(input, kernel_size, output_size, _random_samples)
        return both if return_indices else both[0]

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = """The maxima of regions at pseudo-random steps (Graham, 2014).

    Args:
        input: (N, C, *) or (C, *), floating point.
        kernel_size: Size of the regions.
        output_size: Sizes of the output; or
        output_ratio: these sizes as shares of the input's.
        return_indices: Whether the flat positions of the maxima are returned too.

    Returns:
        The maxima, or with `return_indices` the pair of maxima and positions.
    """
    return pool


fractional_max_pool2d = _fractional_max_pool(2, _ops.fractional_max_pool2d)
fractional_max_pool3d = _fractional_max_pool(3, _ops.fractional_max_pool3d)
fractional_max_pool2d_with_indices = _with_indices(fractional_max_pool2d)
fractional_max_pool3d_with_indices = _with_indices(fractional_max_pool3d)


def _max_unpool(n: int) -> Callable[..., Tensor]:
    def unpool(
        input: Tensor,
        indices: Tensor,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        output_size: Sequence[int] | None = None,
    ) -> Tensor:
        kernel = _expand("kernel_size", kernel_size, n)
        steps = kernel if stride is None else _expand("stride", stride, n)
        if min(steps) <= 0:
            raise RuntimeError(f"strides should be greater than zero, but got stride: {list(steps)}")
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(
                f"Input to max_unpooling{n}d should be a {n + 1}d or {n + 2}d Tensor, but got a tensor with "
                f"{input.dim()} dimensions."
            )
        default = [
            (size - 1) * step + k - 2 * pad
            for size, k, step, pad in zip(input.shape[-n:], kernel, steps, _expand("padding", padding, n), strict=True)
        ]
        return _ops.max_unpool_nd(input, indices, _unpooled_size(default, steps, output_size))

    unpool.__name__ = unpool.__qualname__ = f"max_unpool{n}d"
    unpool.__doc__ = """Puts maxima back to where they are from, among zeros.

    Args:
        input: (N, C, *) or (C, *), maxima.
        indices: Their flat positions, as max pooling returns them.
        kernel_size: Size of the windows.
        stride: Step from window to window. Default: `kernel_size`.
        padding: As that of the pooling.
        output_size: Sizes of the output, where several fit.

    Raises:
        RuntimeError: An index lies outside the output.
        ValueError: No pooling of `output_size` gives the input's size.
    """
    return unpool


def _unpooled_size(default: list[int], stride: Sequence[int], wanted: Sequence[int] | None) -> list[int]:
    if wanted is None:
        return default
    n = len(default)
    sizes = list(wanted)[2:] if len(wanted) == n + 2 else list(wanted)
    if len(sizes) != n:
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of "
            f"'{len(sizes)}'"
        )
    for dim, (size, usual, step) in enumerate(zip(sizes, default, stride, strict=True)):
        if not usual - step < size < usual + step:
            raise ValueError(
                f'invalid output_size "{tuple(sizes)}" (dim {dim} must be between {usual - step} and {usual + step})'
            )
    return sizes


max_unpool1d = _max_unpool(1)
max_unpool2d = _max_unpool(2)
max_unpool3d = _max_unpool(3)


def _unit(input: Tensor, power: float) -> Tensor:
    """The largest magnitude where such powers of it, or sums of them, leave the range; else 1."""
    largest = rl.norm(input.detach(), math.inf)
    bound = rl.finfo(input.dtype).max ** (0.5 / max(abs(power), 1))
    within = (largest <= bound) & (largest >= 1 / bound) | (largest == 0) | ~largest.isfinite()
    return largest.masked_fill(within, 1)


def _lp_pool(n: int, average: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def pool(
        input: Tensor, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False
    ) -> Tensor:
        area = math.prod(_expand("kernel_size", kernel_size, n))
        values = _wide(input)
        unit = _unit(values, norm_type) if input.numel() else 1
        powers = (values / unit).pow(norm_type)
        means = average(powers, kernel_size, kernel_size if stride is None else stride, 0, ceil_mode)
        sums = rl.where(means == 0, 0, means * area)  # the root has no slope there
        return (sums.pow(1.0 / norm_type) * unit).to(input.dtype)

    pool.__name__ = pool.__qualname__ = f"lp_pool{n}d"
    pool.__doc__ = """The p-norm of each window, ``(sum of x ** p) ** (1 / p)``.

    Args:
        input: (N, C, *) or (C, *).
        norm_type: p.
        kernel_size: Size of the windows.
        stride: Step from window to window. Default: `kernel_size`.
        ceil_mode: Whether a last, partial window counts.
    """
    return pool


lp_pool1d = _lp_pool(1, avg_pool1d)
lp_pool2d = _lp_pool(2, avg_pool2d)
lp_pool3d = _lp_pool(3, avg_pool3d)


# -- normalisation


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each channel to mean 0 and variance 1, then scales and shifts it.

    Args:
        input: (N, C, *).
        running_mean: (C,); used if not `training`, else updated.
        running_var: (C,), likewise.
        weight: (C,), the scale.
        bias: (C,), the shift.
        training: Whether the statistics are those of the batch.
        momentum: Weight of the batch in the running statistics.
        eps: Added to the variance.

    Raises:
        ValueError: Training with one value per channel.
    """
    if training:
        size = input.shape
        count = input.numel() // size[1] if len(size) > 1 and size[1] else 0
        if count == 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")
    return _ops.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises over the last dimensions to mean 0 and variance 1, then scales and shifts elementwise.

    Args:
        input: (*, *normalized_shape).
        normalized_shape: The last dimensions.
        weight: `normalized_shape`, the scale.
        bias: `normalized_shape`, the shift.
        eps: Added to the variance.
    """
    return _ops.layer_norm(input, normalized_shape, weight, bias, eps)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalises each group of channels to mean 0 and variance 1, then scales and shifts each channel.

    Args:
        input: (N, C, *).
        num_groups: How many groups the channels make; it divides C.
        weight: (C,), the scale.
        bias: (C,), the shift.
        eps: Added to the variance.
    """
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    return _ops.group_norm(input, num_groups, weight, bias, eps)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each channel of each sample to mean 0 and variance 1, then scales and shifts it.

    Args:
        input: (N, C, *).
        running_mean: (C,); updated with `use_input_stats`, else used.
        running_var: (C,), likewise.
        weight: (C,), the scale.
        bias: (C,), the shift.
        use_input_stats: Whether the statistics are those of the input.
        momentum: Weight of the input in the running statistics.
        eps: Added to the variance.

    Raises:
        ValueError: One value per channel with `use_input_stats`.
    """
    if use_input_stats and input.dim() > 1 and math.prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.size()}")
    return _ops.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Divides by the root of the mean square over the last dimensions, then scales elementwise.

    Args:
        input: (*, *normalized_shape).
        normalized_shape: The last dimensions.
        weight: `normalized_shape`, the scale.
        eps: Added to the mean square. Default: the spacing of numbers at 1 in the type of the input.
    """
    return _ops.rms_norm(input, normalized_shape, weight, eps)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """``x / (k + alpha * mean of the squares of neighbouring channels) ** beta`` (Krizhevsky et al., 2012).

    Args:
        input: (N, C, *).
        size: How many channels the mean is over; missing ones count as zeros.
        alpha: See above.
        beta: See above.
        k: See above.
    """
    if input.dim() < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)")
    if input.numel() == 0:
        return input
    batch, channels = input.shape[:2]
    values = _wide(input)
    unit = _unit(values, 2).clamp_min(1)  # small squares vanish beside `k`
    parts = values / unit
    squares = (parts * parts).reshape(batch, 1, channels, -1)
    means = avg_pool2d(pad(squares, (0, 0, size // 2, (size - 1) // 2)), (size, 1), stride=1)
    divisor = means.mul(alpha).add(k / unit / unit).pow(beta).reshape(input.shape)
    return (parts / divisor * unit.pow(1 - 2 * beta)).to(input.dtype)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """The input divided by its `p`-norm along `dim`, which counts as at least `eps`."""
    norm = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / norm if out is None else rl.div(input, norm, out=out)


# -- embedding and shapes


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` at the indices `input`.

    Args:
        input: Indices, any shape.
        weight: (rows, d).
        padding_idx: A row that gets no gradient; negative ones count from the end.
        max_norm: Rows that are used and longer than this are shortened, in place.
        norm_type: The norm for `max_norm`.
        scale_grad_by_freq: Whether a row's gradient is divided by how often the row occurs in `input`.
        sparse: Whether the gradient of `weight` is sparse.

    Returns:
        (*input.shape, d).
    """
    if padding_idx is None:
        padding_idx = -1
    else:
        rows = weight.size(0)
        if not -rows <= padding_idx < rows:
            raise AssertionError(f"Padding_idx must be within num_embeddings, got padding_idx={padding_idx}.")
        padding_idx %= rows
    if max_norm is not None:
        _shorten(weight, input, max_norm, norm_type)
    return _ops.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def _shorten(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Makes the rows that are used no longer than `max_norm`."""
    with rl.no_grad():
        used = rl.zeros(weight.size(0), dtype=rl.bool, device=weight.device)
        used[indices] = True
        norms = weight.norm(norm_type, 1)
        scale = rl.where(used & (norms > max_norm), max_norm / (norms + 1e-7), 1)
        weight.mul_(scale.unsqueeze(1))


_BAG_MODES = {"sum": 0, "mean": 1, "max": 2}


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The rows of `weight` at bags of indices, combined, without the rows of single indices in memory.

    Args:
        input: Indices: (bags, n), or (n,) with `offsets`.
        weight: (rows, d), floating point.
        offsets: (bags,), where each bag begins in a 1-D input.
        max_norm: Rows that are used and longer than this are shortened, in place.
        norm_type: The norm for `max_norm`.
        scale_grad_by_freq: Whether a row's gradient is divided by how often the row occurs; not for maxima.
        mode: ``"sum"``, ``"mean"`` or ``"max"``.
        sparse: Whether the gradient of `weight` is sparse; not for maxima.
        per_sample_weights: Of the input's shape, factors for the rows of a sum.
        include_last_offset: Whether `offsets` has one more entry, the end of the last bag.
        padding_idx: An index that does not count; negative ones count from the end.

    Returns:
        (bags, d); an empty bag is zeros.

    Example:
        >>> import rushlight as torch
        >>> table = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> torch.nn.functional.embedding_bag(torch.tensor([0, 2, 1]), table, torch.tensor([0, 2]))
        tensor([[3., 4.],
                [3., 4.]])
    """
    if weight.dtype in (rl.int64, rl.int32) and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. "
            "Usage `embedding_bag(weight, input, ...)` is deprecated, and should now be "
            "`embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        weight, input = input, weight
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, "
            f"then it must have the same shape as the input ({input.shape})"
        )
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        bags, length = input.shape
        offsets = rl.arange(0, bags * length, length, device=input.device) if length else input.new_zeros(bags)
        input = input.reshape(-1)
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    elif input.dim() != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    elif offsets is None or offsets.dim() != 1:
        raise ValueError("offsets has to be a 1D Tensor" + (" but got None" if offsets is None else ""))
    if mode not in _BAG_MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}')."
        )
    rows = weight.size(0) if weight.dim() else 0
    if padding_idx is not None:
        if not -rows <= padding_idx < rows:
            raise RuntimeError(
                f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, but got "
                f"{padding_idx}"
            )
        padding_idx %= rows
    if max_norm is not None:
        _shorten(weight, input, max_norm, norm_type)
    return _combine_bags(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        _BAG_MODES[mode],
        sparse,
        per_sample_weights,
        include_last_offset,
        -1 if padding_idx is None else padding_idx,
    )[0]


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Integers as rows of zeros with a single 1.

    Args:
        tensor: int64 class numbers, any shape.
        num_classes: Length of a row. Default: the greatest class number + 1.

    Returns:
        int64, (*tensor.shape, num_classes).
    """
    if tensor.dtype != rl.int64:
        raise RuntimeError(f"one_hot is only applicable to index tensor of type LongTensor, got {tensor.dtype}.")
    if tensor.numel() == 0 and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    if tensor.numel():
        if int(tensor.min()) < 0:
            raise RuntimeError("Class values must be non-negative.")
        greatest = int(tensor.max())
        if num_classes == -1:
            num_classes = greatest + 1
        elif greatest >= num_classes:
            raise RuntimeError("Class values must be smaller than num_classes.")
    return (tensor.unsqueeze(-1) == rl.arange(num_classes, device=tensor.device)).to(rl.int64)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between `x1` and `x2` along a dimension; norms count as at least `eps`."""
    return _ops.cosine_similarity(x1, x2, dim, eps)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The `p`-norm of ``x1 - x2 + eps`` along the last dimension."""
    return _ops.pairwise_distance(x1, x2, p, eps, keepdim)


# -- losses


def _reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction, also from the two deprecated arguments that came before it."""
    if size_average is None and reduce is None:
        return reduction
    reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.", stacklevel=3
    )
    return reduction


_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _reduction_number(reduction: str) -> int:
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction. Use one of mean, none, sum.")
    return _REDUCTIONS[reduction]


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    kind = _reduction_number(reduction)
    return loss if kind == 0 else loss.mean() if kind == 1 else loss.sum()


def _same_shape(name: str, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    if target.shape != input.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). "
            "This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size.",
            stacklevel=3,
        )
        input, target = rl.broadcast_tensors(input, target)
    return input, target


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Negative log likelihood of the classes `target` under the softmax of `input`.

    Args:
        input: Scores (N, C), (C,) or (N, C, *).
        target: Class numbers (N, *), or probabilities of the input's shape.
        weight: (C,), a factor for each class.
        size_average: Deprecated, see `reduction`.
        ignore_index: Class number that does not count.
        reduce: Deprecated, see `reduction`.
        reduction: ``"mean"`` (weighted), ``"sum"`` or ``"none"``.
        label_smoothing: Share of the target spread over all classes.
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    return _ops.cross_entropy_loss(input, target, weight, _reduction_number(reduction), ignore_index, label_smoothing)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the entries of `input`, log probabilities (N, C, *), at the classes `target` (N, *).

    Arguments as in `cross_entropy`.
    """
    reduction = _reduction(size_average, reduce, reduction)
    return _ops.nll_loss_nd(input, target, weight, _reduction_number(reduction), ignore_index)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """``(input - target) ** 2``, reduced; `weight` is a factor for each element."""
    reduction = _reduction(size_average, reduce, reduction)
    input, target = _same_shape("mse_loss", input, target)
    return _weighted(_ops._squared_error(input, target), weight, reduction)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """``|input - target|``, reduced; `weight` is a factor for each element."""
    reduction = _reduction(size_average, reduce, reduction)
    input, target = _same_shape("l1_loss", input, target)
    return _weighted(_ops._absolute_error(input, target), weight, reduction)


def _weighted(loss: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    if weight is None:
        return _reduced(loss, reduction)
    if weight.shape != loss.shape:
        raise ValueError(f"Weights and input must have the same size, got {weight.shape} and {loss.shape}.")
    if reduction == "mean":
        return (loss * weight).sum() / weight.sum()
    return _reduced(loss * weight, reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """``d ** 2 / (2 * beta)`` where d = ``|input - target|`` < `beta`, else ``d - beta / 2``, reduced."""
    reduction = _reduction(size_average, reduce, reduction)
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss does not support negative values for beta, got beta={beta}.")
    input, target = _same_shape("smooth_l1_loss", input, target)
    if beta == 0:
        return _reduced((input - target).abs(), reduction)
    return _reduced(_ops._smooth_l1(input, target, beta), reduction)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """``d ** 2 / 2`` where d = ``|input - target|`` < `delta`, else ``delta * (d - delta / 2)``, reduced."""
    if delta <= 0:
        raise RuntimeError(f"huber_loss does not support non-positive values for delta, got delta={delta}.")
    input, target = _same_shape("huber_loss", input, target)
    return _weighted(_ops._huber(input, target, delta), weight, reduction)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``-(target * log(input) + (1 - target) * log(1 - input))``, reduced; logarithms count as at least -100.

    Args:
        input: Probabilities in [0, 1].
        target: Of the input's shape.
        weight: A factor, broadcast to the input's shape.
        size_average: Deprecated, see `reduction`.
        reduce: Deprecated, see `reduction`.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """
    reduction = _reduction(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    return _ops.binary_cross_entropy(input, target, weight, _reduction_number(reduction))


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of ``sigmoid(input)``, exact for large logits; `pos_weight` is the positives' factor."""
    reduction = _reduction(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    return _ops.binary_cross_entropy_with_logits(input, target, weight, pos_weight, _reduction_number(reduction))


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """``target * (log(target) - input)``, reduced: the Kullback-Leibler divergence.

    Args:
        input: Log probabilities.
        target: Probabilities, or their logarithms if `log_target`.
        size_average: Deprecated, see `reduction`.
        reduce: Deprecated, see `reduction`.
        reduction: ``"batchmean"`` (the divergence itself), ``"mean"``, ``"sum"`` or ``"none"``.
        log_target: See `target`.
    """
    reduction = _reduction(size_average, reduce, reduction)
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
            "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
            stacklevel=2,
        )
    if reduction != "batchmean":
        return _ops.kl_div(input, target, _reduction_number(reduction), log_target=log_target)
    total = _ops.kl_div(input, target, _REDUCTIONS["sum"], log_target=log_target)
    return total / input.size(0) if input.dim() else total


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Negative log likelihood of counts `target` under Poisson distributions.

    Args:
        input: Rates, or their logarithms if `log_input`.
        target: Counts.
        log_input: See `input`.
        full: Whether Stirling's approximation of ``log(target!)`` is added.
        size_average: Deprecated, see `reduction`.
        eps: Added to rates before their logarithm.
        reduce: Deprecated, see `reduction`.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """
    reduction = _reduction(size_average, reduce, reduction)
    return _ops.poisson_nll_loss(input, target, log_input, full, eps, _reduction_number(reduction))


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Negative log likelihood of `target` under normal distributions with means `input` and variances `var`.

    Args:
        input: Means.
        target: Observations, of the input's shape or broadcast to it.
        var: Variances: a number, or the input's shape, of which one dimension may be 1 or the last left out.
        full: Whether the constant ``log(2 * pi) / 2`` is added.
        eps: The least variance; it has no gradient.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """
    variance = rl.full_like(input, var) if isinstance(var, (int, float)) else var
    if variance.numel() and bool((variance < 0).any()):
        raise ValueError(f"var has negative entry/entries, the least is {variance.min().item()}.")
    if variance.shape == input.shape[:-1] and input.dim():
        variance = variance.unsqueeze(-1)
    elif variance.dim() != input.dim() or [
        size for size, whole in zip(variance.shape, input.shape, strict=True) if size != whole
    ] not in ([], [1]):
        raise ValueError(
            "var is of incorrect size: it has the input's shape, of which one dimension may be 1 or the last left out, "
            f"got var of shape {list(variance.shape)} and input of shape {list(input.shape)}."
        )
    _reduction_number(reduction)
    variance = variance + (variance.clamp(min=eps) - variance).detach()
    loss = 0.5 * (rl.log(variance) + (input - target) ** 2 / variance)
    if full:
        loss = loss + 0.9189385332046727
    return _reduced(loss, reduction)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, -target * (input1 - input2) + margin)``, reduced; `target` 1 or -1 says which should be greater."""
    reduction = _reduction(size_average, reduce, reduction)
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return _ops.margin_ranking_loss(input1, input2, target, margin, _reduction_number(reduction))


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The input where `target` is 1, ``max(0, margin - input)`` where it is -1, reduced."""
    reduction = _reduction(size_average, reduce, reduction)
    return _ops.hinge_embedding_loss(input, target, margin, _reduction_number(reduction))


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``log(1 + exp(-target * input))``, reduced; `target` is 1 or -1."""
    reduction = _reduction(size_average, reduce, reduction)
    return _reduced(_ops._soft_margin(input, target), reduction)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cosine where `target` is 1, ``max(0, cosine - margin)`` where it is -1, reduced.

    Args:
        input1: (N, D) or (D,).
        input2: The same shape.
        target: (N,) or ().
        margin: See above.
        size_average: Deprecated, see `reduction`.
        reduce: Deprecated, see `reduction`.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """
    reduction = _reduction(size_average, reduce, reduction)
    return _ops.cosine_embedding_loss(input1, input2, target, margin, _reduction_number(reduction))


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)``, reduced, with the `p`-norm distance d.

    With `swap` the negative's distance is the lesser of those to anchor and positive.
    """
    reduction = _reduction(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return _ops.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, _reduction_number(reduction))


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with a distance of one's own, by default `pairwise_distance`."""
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    dims = anchor.dim(), positive.dim(), negative.dim()
    if len(set(dims)) != 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {dims[0]}D, positive {dims[1]}D, and negative {dims[2]}D inputs"
        )
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = rl.minimum(far, distance(positive, negative))
    return _reduced((near - far + margin).clamp(min=0), reduction)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over the other classes of ``max(0, margin - input[target] + input[class]) ** p``, reduced.

    Args:
        input: Scores (N, C) or (C,).
        target: Class numbers (N,) or ().
        p: 1 or 2.
        margin: See above.
        weight: (C,), a factor for each target class.
        size_average: Deprecated, see `reduction`.
        reduce: Deprecated, see `reduction`.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """
    reduction = _reduction(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError(f"only p == 1 and p == 2 supported, got p={p}.")
    if weight is not None and weight.dim() != 1:
        raise ValueError(f"weight must be one-dimensional, got {list(weight.shape)}.")
    return _ops.multi_margin_loss(input, target, p, margin, weight, _reduction_number(reduction))


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The sum of ``max(0, 1 - input[label] + input[class])`` over labels and other classes, by C, reduced.

    Args:
        input: Scores (N, C) or (C,).
        target: The labels of each sample, of the input's shape; those from the first -1 on do not count.
        size_average: Deprecated, see `reduction`.
        reduce: Deprecated, see `reduction`.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """
    reduction = _reduction(size_average, reduce, reduction)
    return _ops.multilabel_margin_loss(input, target, _reduction_number(reduction))


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over the classes of the binary cross-entropy of ``sigmoid(input)``, reduced.

    Args:
        input: Scores (*, C).
        target: 0 or 1, of the input's shape.
        weight: (C,), a factor for each class.
        size_average: Deprecated, see `reduction`.
        reduce: Deprecated, see `reduction`.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """
    reduction = _reduction(size_average, reduce, reduction)
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return _reduced(loss.mean(-1), reduction)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Minus the log probability of label sequences, over all alignments (Graves et al., 2006).

    Args:
        log_probs: (T, N, C) or (T, C), logarithms of probabilities, as `log_softmax` gives them.
        targets: Class numbers (N, S) or (S,), or those of all samples one after the other; without the blank.
        input_lengths: (N,), at most T.
        target_lengths: (N,), at most S.
        blank: The class that stands for no label.
        reduction: ``"mean"`` (of the losses by target length), ``"sum"`` or ``"none"``.
        zero_infinity: Whether losses of targets that do not fit the input, and their gradients, are 0.

    Raises:
        NotImplementedError: `log_probs` is neither float32 nor float64.
        RuntimeError: Lengths, targets or the blank are out of range.

    Example:
        >>> import rushlight as torch
        >>> log_probs = torch.full((2, 1, 3), 1 / 3).log()
        >>> torch.nn.functional.ctc_loss(log_probs, torch.tensor([[1]]), [2], [1])  # -log(3 / 9), of the paths
        tensor(1.0986)
    """
    return _ops.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, _reduction_number(reduction), zero_infinity
    )


# -- images


_MODES = {
    "nearest": (None, "nearest"),
    "nearest-exact": (None, "nearest-exact"),
    "linear": (1, "linear"),
    "bilinear": (2, "linear"),
    "bicubic": (2, "cubic"),
    "lanczos": (2, "lanczos"),
    "trilinear": (3, "linear"),
}
"""How many dimensions a mode is for, and what it does along each."""


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """An image of another size.

    Args:
        input: (N, C, *) with one to three spatial dimensions.
        size: Sizes of the output; a number stands for all of them. Or
        scale_factor: a factor for each size.
        mode: ``"nearest"``, ``"nearest-exact"``, ``"area"``, or by the dimensions ``"linear"``, ``"bilinear"``,
            ``"bicubic"``, ``"trilinear"``; ``"lanczos"`` with `antialias`.
        align_corners: Whether the centres of the corner elements stay in place, rather than their corners.
        recompute_scale_factor: Whether the steps between samples follow from the sizes and not from the factors.
        antialias: Whether every element counts also where the image shrinks ("bilinear" and "bicubic").

    Returns:
        (N, C, *sizes).

    Raises:
        NotImplementedError: The mode is not one for the input's dimensions or type.
        ValueError: The arguments contradict each other.

    Example:
        >>> import rushlight as torch
        >>> image = torch.tensor([[[1.0, 3.0]]])
        >>> torch.nn.functional.interpolate(image, scale_factor=2, mode="linear")
        tensor([[[1.0000, 1.5000, 2.5000, 3.0000]]])
    """
    if align_corners is not None and mode in ("nearest", "area", "nearest-exact"):
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    n = input.dim() - 2
    sizes, factors = _image_size(input, n, size, scale_factor)
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if recompute_scale_factor or mode == "area":
        factors = []
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and n == 2):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")
    if mode == "lanczos" and align_corners:
        raise ValueError("Lanczos mode does not support align_corners=True")
    if n not in (1, 2, 3) or (mode not in _MODES and mode != "area"):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the modes: nearest | "
            f"linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got {mode})"
        )
    if mode == "area":
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[n - 1](input, sizes)
    dims, kind = _MODES[mode]
    if dims not in (None, n):
        raise NotImplementedError(f"Got {n + 2}D input, but {mode} mode needs {dims + 2}D input")
    return _ops.upsample(input, sizes, f"{kind}, smooth" if antialias else kind, bool(align_corners), factors)


def _image_size(input: Tensor, n: int, size: Any, scale_factor: Any) -> tuple[list[int], list[float]]:
    """Sizes of the output, and the factors if it is they that were given."""
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    given = scale_factor if size is None else size
    if given is None:
        raise ValueError("either size or scale_factor should be defined")
    values = list(given) if isinstance(given, (list, tuple)) else [given] * n
    if len(values) != n:
        what, letter, of = (
            ("output size", "o", f"output size of {size}")
            if size is not None
            else ("scale_factor", "s", f"scale_factor of shape {scale_factor}")
        )
        name = "output" if size is not None else "scale_factor"
        raise ValueError(
            f"Input and {name} must have the same number of spatial dimensions, but got input with spatial dimensions "
            f"of {list(input.shape[2:])} and {of}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
            f"{what} in ({letter}1, {letter}2, ...,{letter}K) format."
        )
    if size is not None:
        return [operator.index(value) for value in values], []
    factors = [float(value) for value in values]
    return [math.floor(length * factor) for length, factor in zip(input.shape[2:], factors, strict=True)], factors


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """`interpolate` by its old name."""
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` with mode ``"nearest"``, by its old name."""
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` with mode ``"bilinear"`` and aligned corners, by its old name."""
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)


_GRID_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_GRID_PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """The elements of an image at the places of a grid.

    Args:
        input: (N, C, H, W) or (N, C, D, H, W), floating point.
        grid: (N, *, 2) or (N, *, 3), of the input's type: places (x, y) or (x, y, z), from -1 to 1 in the image.
        mode: ``"bilinear"`` (in three dimensions trilinear), ``"nearest"`` or, in two dimensions, ``"bicubic"``.
        padding_mode: What is outside: ``"zeros"``, the ``"border"``, or the image mirrored (``"reflection"``).
        align_corners: Whether -1 and 1 are the centres of the corner elements, rather than their corners (default).

    Returns:
        (N, C, *).

    Example:
        >>> import rushlight as torch
        >>> image = torch.arange(4.0).reshape(1, 1, 2, 2)
        >>> torch.nn.functional.grid_sample(image, torch.zeros(1, 1, 1, 2))
        tensor([[[[1.5000]]]])
    """
    if mode not in _GRID_MODES:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in _GRID_PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    return _ops.grid_sampler(input, grid, _GRID_MODES[mode], _GRID_PADDINGS[padding_mode], bool(align_corners))


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The grid with which `grid_sample` transforms images affinely.

    Args:
        theta: (N, 2, 3) or (N, 3, 4), floating point, the maps from places in the output to places in the input.
        size: The output's shape (N, C, H, W) or (N, C, D, H, W).
        align_corners: As in `grid_sample`.

    Returns:
        (N, H, W, 2) or (N, D, H, W, 3).
    """
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(size) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
            f"{tuple(size)}."
        )
    n = len(size) - 2
    if theta.dim() != 3 or tuple(theta.shape[1:]) != (n, n + 1):
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {tuple(size)}. Got "
            f"{theta.shape}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {tuple(size)}")
    return _ops.affine_grid_generator(theta, size, bool(align_corners))


# -- windows as columns


def unfold(input: Tensor, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1) -> Tensor:
    """The windows of an image as columns.

    Args:
        input: (N, C, H, W) or (C, H, W).
        kernel_size: Size of the windows.
        dilation: Step inside the window.
        padding: Zeros on both sides.
        stride: Step from window to window.

    Returns:
        (N, C * elements of a window, windows), or without N.
    """
    return _ops.unfold(input, kernel_size, dilation, padding, stride)


def fold(
    input: Tensor, output_size: Size, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1
) -> Tensor:
    """The image that is the sum of its windows: the adjoint of `unfold`, whose arguments these are.

    Args:
        input: (N, C * elements of a window, windows), or without N.
        output_size: H and W.
        kernel_size: Size of the windows.
        dilation: Step inside the window.
        padding: Zeros on both sides.
        stride: Step from window to window.

    Returns:
        (N, C, H, W), or without N.
    """
    return _ops.fold(input, output_size, kernel_size, dilation, padding, stride)
