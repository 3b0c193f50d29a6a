"""Attention against its definition in NumPy and finite differences."""

import math

import numpy as np
import pytest

import rushlight as rl
from rushlight.autograd import gradcheck, gradgradcheck
from rushlight.nn import functional as F


def reference(q, k, v, mask=None, causal=False, scale=None):
    heads = q.shape[-3]
    k, v = (np.repeat(x, heads // x.shape[-3], -3) for x in (k, v))
    scores = q @ np.swapaxes(k, -1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    top = scores.max(-1, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = weights.sum(-1, keepdims=True)
    return (weights / np.where(total == 0, 1, total)) @ v


def inputs(batch, heads, shared, queries, keys, depth, width, dtype=rl.float64):
    rl.manual_seed(1)
    sizes = (heads, queries, depth), (heads // shared, keys, depth), (heads // shared, keys, width)
    return [rl.randn(batch, *size, dtype=dtype, requires_grad=True) for size in sizes]


SIZES = [
    (2, 4, 1, 5, 6, 4, 7),
    (1, 2, 1, 33, 70, 16, 16),
    (2, 4, 2, 130, 100, 64, 65),
    (1, 1, 1, 1, 200, 8, 8),
    (1, 2, 1, 60, 2000, 3, 1),
]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("dtype", [rl.float32, rl.float64])
@pytest.mark.parametrize("kind", ["plain", "causal", "bool", "float", "rows"])
def test_forward_and_gradients_are_the_definition(sizes, dtype, kind):
    q, k, v = inputs(*sizes, dtype=dtype)
    batch, heads, _, queries, keys, *_ = sizes
    mask = {
        "bool": lambda: rl.rand(batch, 1, queries, keys) > 0.5,
        "float": lambda: rl.randn(heads, queries, keys, dtype=dtype),
        "rows": lambda: rl.rand(batch, 1, 1, keys) > 0.5,
    }.get(kind, lambda: None)()
    out = F.scaled_dot_product_attention(q, k, v, mask, 0.0, kind == "causal", enable_gqa=True)
    given = [x.detach().double().numpy() for x in (q, k, v)]
    expected = reference(*given, None if mask is None else mask.numpy(), kind == "causal")
    tolerance = 1e-5 if dtype == rl.float32 else 1e-12
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=tolerance, atol=tolerance)

    # The slope along a direction, by the definition once more.
    weight = rl.randn(out.shape, dtype=dtype)
    grads = rl.autograd.grad((out * weight).sum(), (q, k, v))
    rng, step = np.random.default_rng(0), 1e-6
    moves = [rng.normal(size=x.shape) for x in given]
    ends = [
        reference(*(x + sign * step * m for x, m in zip(given, moves, strict=True)),
                  None if mask is None else mask.numpy(), kind == "causal")
        for sign in (1, -1)
    ]  # fmt: skip
    slope = ((ends[0] - ends[1]) / (2 * step) * weight.numpy()).sum()
    found = sum((g.double().numpy() * m).sum() for g, m in zip(grads, moves, strict=True))
    np.testing.assert_allclose(found, slope, rtol=1e-3 if dtype == rl.float32 else 1e-6, atol=1e-3)


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_of_gradients(causal):
    q, k, v = inputs(1, 2, 1, 3, 4, 2, 3)
    assert gradcheck(lambda *x: F.scaled_dot_product_attention(*x, is_causal=causal), (q, k, v))
    assert gradgradcheck(lambda *x: F.scaled_dot_product_attention(*x, is_causal=causal), (q, k, v))
    mask = rl.randn(3, 4, dtype=rl.float64, requires_grad=True)
    assert gradcheck(F.scaled_dot_product_attention, (q, k, v, mask))


def test_memory_order_of_the_query_is_kept():
    q, k, v = (x.detach() for x in inputs(2, 3, 1, 4, 5, 8, 8))
    turned = q.permute(2, 0, 1, 3).contiguous().permute(1, 2, 0, 3)
    out = F.scaled_dot_product_attention(turned, k, v)
    assert out.stride() == turned.stride()
    assert rl.equal(out, F.scaled_dot_product_attention(q, k, v))
    columns = q.transpose(-1, -2).contiguous().transpose(-1, -2)
    assert rl.equal(out, F.scaled_dot_product_attention(columns, k, v))


def test_queries_without_keys_are_zero():
    q, k, v = inputs(1, 2, 1, 3, 4, 2, 3)
    for mask in (rl.zeros(3, 4, dtype=rl.bool), rl.full((3, 4), -math.inf, dtype=rl.float64)):
        out = F.scaled_dot_product_attention(q, k, v, mask)
        assert not out.any()
        assert all(not grad.any() for grad in rl.autograd.grad(out.sum(), (q, k, v)))
    assert not F.scaled_dot_product_attention(q, k[:, :, :0], v[:, :, :0]).any()
    assert F.scaled_dot_product_attention(q[:, :, :0], k, v).shape == (1, 2, 0, 3)
    assert F.scaled_dot_product_attention(q[:0], k[:0], v[:0]).shape == (0, 2, 3, 3)


def test_nan_stays_nan():
    q, k, v = (x.detach() for x in inputs(1, 1, 1, 3, 4, 2, 3))
    q[0, 0, 1, 0] = math.nan
    out = F.scaled_dot_product_attention(q, k, v)[0, 0]
    assert out[1].isnan().all()
    assert not out[[0, 2]].isnan().any()


def test_dropout_and_halves():
    q, k, v = (x.detach() for x in inputs(1, 2, 1, 3, 4, 2, 3, rl.float32))
    assert not F.scaled_dot_product_attention(q, k, v, dropout_p=1.0).any()
    for dtype in (rl.float16, rl.bfloat16):
        half = [x.to(dtype) for x in (q, k, v)]
        expected = F.scaled_dot_product_attention(*(x.float() for x in half)).to(dtype)
        assert rl.equal(F.scaled_dot_product_attention(*half), expected)


ERRORS = [
    (lambda q, k, v: (q[0, 0, 0], k, v), "at least 2 dimensional"),
    (lambda q, k, v: (q, k[..., :1], v), "query and key need the same last size"),
    (lambda q, k, v: (q, k, v[:, :, :2]), "key and value the same size before it"),
    (lambda q, k, v: (q, k.double(), v), "to have the same dtype"),
    (lambda q, k, v: (q.long(), k.long(), v.long()), "expected scalar type Float"),
    (lambda q, k, v: (q, k, v, rl.ones(3, 4).bool(), 0.0, True), "Explicit attn_mask should not be set"),
    (lambda q, k, v: (q, k, v, rl.ones(3, 5)), "must match the existing size"),
    (lambda q, k, v: (q, k, v, rl.ones(3, 4).long()), "Expected attn_mask dtype to be bool or float"),
    (lambda q, k, v: (q, k, v, None, 2.0), "dropout probability has to be between 0 and 1"),
]


@pytest.mark.parametrize(("arguments", "text"), ERRORS)
def test_errors(arguments, text):
    tensors = [x.detach() for x in inputs(1, 2, 1, 3, 4, 2, 3, rl.float32)]
    with pytest.raises(RuntimeError, match=text):
        F.scaled_dot_product_attention(*arguments(*tensors))
    with pytest.raises(RuntimeError, match="must divide the number of heads"):
        F.scaled_dot_product_attention(rl.ones(1, 3, 3, 2), *tensors[1:], enable_gqa=True)


def mha_reference(module, query, key, value, mask):
    """`MultiheadAttention` of unbatched inputs, by its definition."""
    weights = [w.numpy() for w in module.in_proj_weight.detach().chunk(3)]
    biases = [b.numpy() for b in module.in_proj_bias.detach().chunk(3)]
    heads = [
        (x @ w.T + b).reshape(len(x), module.num_heads, -1).swapaxes(0, 1)
        for x, w, b in zip((query, key, value), weights, biases, strict=True)
    ]
    out = reference(*heads, mask).swapaxes(0, 1).reshape(len(query), -1)
    return out @ module.out_proj.weight.detach().numpy().T + module.out_proj.bias.detach().numpy()


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_multihead_attention(need_weights, batch_first, masked):
    rl.manual_seed(0)
    module = rl.nn.MultiheadAttention(8, 2, batch_first=batch_first, dtype=rl.float64)
    rl.nn.init.normal_(module.in_proj_bias)
    q, k, v = (rl.randn(length, 3, 8, dtype=rl.float64) for length in (4, 5, 5))
    hidden = rl.tensor([[0, 0, 0, 0, 1], [0, 0, 0, 0, 0], [0, 1, 0, 1, 0]]).bool() if masked else None
    given = [x.transpose(0, 1) for x in (q, k, v)] if batch_first else (q, k, v)
    out, weights = module(*given, key_padding_mask=hidden, need_weights=need_weights)
    if batch_first:
        out = out.transpose(0, 1)
    for i in range(3):
        mask = None if hidden is None else ~hidden[i].numpy()
        expected = mha_reference(module, *(x[:, i].numpy() for x in (q, k, v)), mask)
        np.testing.assert_allclose(out[:, i].detach().numpy(), expected, rtol=1e-10, atol=1e-12)
    if need_weights:
        assert weights.shape == (3, 4, 5)
        np.testing.assert_allclose(weights.sum(-1).detach().numpy(), 1)
        assert not masked or not weights[2, :, 1].any()
    else:
        assert weights is None


@pytest.mark.parametrize("options", [{}, {"kdim": 3, "vdim": 5}, {"add_bias_kv": True, "add_zero_attn": True}])
def test_weights_or_not_gives_the_same(options):
    module = rl.nn.MultiheadAttention(8, 2, dtype=rl.float64, **options)
    q = rl.randn(4, 3, 8, dtype=rl.float64)
    k = rl.randn(5, 3, module.kdim, dtype=rl.float64)
    v = rl.randn(5, 3, module.vdim, dtype=rl.float64)
    mask = rl.randn(6, 4, 5, dtype=rl.float64)
    for attn_mask in (None, mask, mask[0], mask > 1):
        with_weights, weights = module(q, k, v, attn_mask=attn_mask, average_attn_weights=False)
        without, _ = module(q, k, v, attn_mask=attn_mask, need_weights=False)
        np.testing.assert_allclose(with_weights.detach().numpy(), without.detach().numpy(), rtol=1e-9, atol=1e-12)
        grads = [rl.autograd.grad(out.square().sum(), list(module.parameters())) for out in (with_weights, without)]
        for a, b in zip(*grads, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-8, atol=1e-10)
        assert weights.shape[:3] == (3, 2, 4)


def test_causal_masks_are_found_and_hide_the_future():
    rl.manual_seed(0)
    layer = rl.nn.TransformerEncoderLayer(8, 2, 16, 0.0, dtype=rl.float64)
    encoder = rl.nn.TransformerEncoder(layer, 2, rl.nn.LayerNorm(8, dtype=rl.float64))
    mask = rl.nn.Transformer.generate_square_subsequent_mask(5, dtype=rl.float64)
    x = rl.randn(5, 3, 8, dtype=rl.float64)
    out = encoder(x, mask)
    for other in (encoder(x, mask != 0), encoder(x, mask, is_causal=True), encoder(x, mask, is_causal=False)):
        np.testing.assert_allclose(other.detach().numpy(), out.detach().numpy(), rtol=1e-10)
    changed = x.clone()
    changed[3:] += 1
    np.testing.assert_allclose(encoder(changed, mask)[:3].detach().numpy(), out[:3].detach().numpy(), rtol=1e-10)
    assert not rl.allclose(encoder(changed)[:3], encoder(x)[:3])


def test_transformer_of_a_batch_is_that_of_its_parts():
    rl.manual_seed(0)
    model = rl.nn.Transformer(8, 2, 1, 2, 16, 0.0, batch_first=True, norm_first=True, dtype=rl.float64)
    src, tgt = rl.randn(3, 6, 8, dtype=rl.float64), rl.randn(3, 4, 8, dtype=rl.float64)
    hidden = rl.zeros(3, 6).bool()
    hidden[1, 4:] = True
    out = model(src, tgt, src_key_padding_mask=hidden, memory_key_padding_mask=hidden)
    np.testing.assert_allclose(out[0].detach().numpy(), model(src[0], tgt[0]).detach().numpy(), rtol=1e-8)
    np.testing.assert_allclose(out[1].detach().numpy(), model(src[1, :4], tgt[1]).detach().numpy(), rtol=1e-8)
    out.sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    other = rl.nn.Transformer(8, 2, 1, 2, 16, 0.0, batch_first=True, norm_first=True, dtype=rl.float64)
    other.load_state_dict(model.state_dict())
    assert rl.equal(other(src, tgt), model(src, tgt))


MODULE_ERRORS = [
    (lambda n: n.MultiheadAttention(8, 3), AssertionError, "embed_dim must be divisible by num_heads"),
    (lambda n: n.MultiheadAttention(8, 0), ValueError, "must be greater than 0, got embed_dim=8 and num_heads=0"),
    (lambda n: n.MultiheadAttention(8, 2)(*[rl.ones(3, 2, 7)] * 3), AssertionError, "expecting embedding dimension"),
    (lambda n: n.MultiheadAttention(8, 2)(*[rl.ones(1, 3, 2, 8)] * 3), AssertionError, "unbatched 2D or batched 3D"),
    (
        lambda n: n.MultiheadAttention(8, 2)(*[rl.ones(3, 2, 8)] * 3, attn_mask=rl.ones(3, 4)),
        RuntimeError,
        r"The shape of the 2D attn_mask is torch.Size\(\[3, 4\]\), but should be \(3, 3\)",
    ),
    (
        lambda n: n.MultiheadAttention(8, 2)(*[rl.ones(3, 2, 8)] * 3, key_padding_mask=rl.ones(2, 4)),
        AssertionError,
        "Expected key_padded_mask.shape",
    ),
    (
        lambda n: n.MultiheadAttention(8, 2)(rl.ones(3, 2, 8), *[rl.ones(3, 4, 8)] * 2),
        RuntimeError,
        r"the same batch size.*MultiheadAttention\(embed_dim=8, num_heads=2\) was given float32 \[3, 2, 8\]",
    ),
    (lambda n: n.MultiheadAttention(8, 2)(*[rl.ones(3, 2, 8)] * 3, is_causal=True), RuntimeError, "Need attn_mask"),
    (lambda n: n.TransformerEncoderLayer(8, 2, 16, activation="tanh"), RuntimeError, "should be relu/gelu, not tanh"),
    (
        lambda n: n.Transformer(8, 2, 1, 1, 16)(rl.ones(6, 3, 8), rl.ones(5, 2, 8)),
        RuntimeError,
        "batch number of src and tgt must be equal",
    ),
    (
        lambda n: n.Transformer(8, 2, 1, 1, 16)(rl.ones(6, 2, 7), rl.ones(5, 2, 7)),
        RuntimeError,
        "feature number of src and tgt must be equal to d_model",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), MODULE_ERRORS)
def test_errors_of_modules(call, error, text):
    with pytest.raises(error, match=text):
        call(rl.nn)
