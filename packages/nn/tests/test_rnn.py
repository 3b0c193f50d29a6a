"""Recurrent layers against plain loops in NumPy, finite differences, and each other."""

import copy
import io

import numpy as np
import pytest

import rushlight as rl
from rushlight import nn
from rushlight.autograd import gradcheck, gradgradcheck

KINDS = ["LSTM", "GRU", "RNN"]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(mode, x, h, c, w_ih, w_hh, b_ih, b_hh):
    """One step as the definitions have it."""
    a, b = x @ w_ih.T + b_ih, h @ w_hh.T + b_hh
    if mode == "LSTM":
        i, f, g, o = np.split(a + b, 4, 1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    if mode == "GRU":
        (ar, az, an), (br, bz, bn) = np.split(a, 3, 1), np.split(b, 3, 1)
        z, n = sigmoid(az + bz), np.tanh(an + sigmoid(ar + br) * bn)
        return (1 - z) * n + z * h, c
    return (np.tanh(a + b) if mode == "RNN_TANH" else np.maximum(a + b, 0)), c


def reference(module, x, h0, c0, lengths):
    """Outputs (T, B, features) and last states, each sequence by itself."""
    steps, batch = x.shape[:2]
    ends = np.zeros_like(h0), np.zeros_like(c0)
    directions = 1 + module.bidirectional
    for layer in range(module.num_layers):
        out = np.zeros((steps, batch, directions * h0.shape[2]))
        for d in range(directions):
            k = layer * directions + d
            weights = {name.split("_l")[0]: getattr(module, name).numpy(force=True) for name in module._all_weights[k]}
            zeros = np.zeros(weights["weight_hh"].shape[0])
            for b in range(batch):
                h, c = h0[k, b : b + 1], c0[k, b : b + 1]
                order = range(lengths[b])
                for t in reversed(order) if d else order:
                    h, c = step(
                        module.mode, x[t, b : b + 1], h, c, weights["weight_ih"], weights["weight_hh"],
                        weights.get("bias_ih", zeros), weights.get("bias_hh", zeros),
                    )  # fmt: skip
                    if "weight_hr" in weights:
                        h = h @ weights["weight_hr"].T
                    width = h.shape[1]
                    out[t, b, d * width : (d + 1) * width] = h
                ends[0][k, b], ends[1][k, b] = h, c
        x = out
    return x, *ends


def make(kind, inputs, hidden, batch, dtype=rl.float64, **options):
    rl.manual_seed(3)
    module = getattr(nn, kind)(inputs, hidden, dtype=dtype, **options)
    count = module.num_layers * (1 + module.bidirectional)
    h = rl.randn(count, batch, module.proj_size or hidden, dtype=dtype)
    return module, h, rl.randn(count, batch, hidden, dtype=dtype)


OPTIONS = [
    {},
    {"bias": False},
    {"num_layers": 2, "bidirectional": True},
    {"batch_first": True},
    {"proj_size": 3, "bidirectional": True},
    {"nonlinearity": "relu"},
]


def fits(kind, options):
    return ("proj_size" not in options or kind == "LSTM") and ("nonlinearity" not in options or kind == "RNN")


CASES = [(kind, options) for kind in KINDS for options in OPTIONS if fits(kind, options)]


@pytest.mark.parametrize(("kind", "options"), CASES)
@pytest.mark.parametrize("sizes", [(5, 3, 4, 6), (1, 1, 1, 4), (4, 9, 33, 37)])
@pytest.mark.parametrize("dtype", [rl.float32, rl.float64])
def test_forward_is_the_definition(kind, options, sizes, dtype):
    steps, batch, inputs, hidden = sizes
    module, h, c = make(kind, inputs, hidden, batch, dtype, **options)
    x = rl.randn(steps, batch, inputs, dtype=dtype)
    given = x.transpose(0, 1) if module.batch_first else x
    out, last = module(given, (h, c) if kind == "LSTM" else h)
    expected = reference(module, x.numpy(), h.numpy(), c.numpy(), [steps] * batch)
    if module.batch_first:
        out = out.transpose(0, 1)
    tolerance = 1e-5 if dtype == rl.float32 else 1e-12
    for got, want in zip((out, *(last if kind == "LSTM" else (last,))), expected, strict=False):
        np.testing.assert_allclose(got.numpy(force=True), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_packed_sequences_end_where_they_end(kind, bidirectional):
    lengths = [5, 5, 3, 1]
    module, h, c = make(kind, 3, 5, 4, bidirectional=bidirectional, num_layers=2)
    x = rl.randn(5, 4, 3, dtype=rl.float64)
    batch_sizes = rl.tensor([sum(n > t for n in lengths) for t in range(5)])
    data = rl.cat([x[t, : batch_sizes[t]] for t in range(5)])
    operator = {"LSTM": rl.lstm, "GRU": rl.gru, "RNN": rl.rnn_tanh}[kind]
    hx = [h, c] if kind == "LSTM" else h
    out, *last = operator(data, batch_sizes, hx, list(module.parameters()), True, 2, 0.0, False, bidirectional)
    expected, *ends = reference(module, x.numpy(), h.numpy(), c.numpy(), lengths)
    np.testing.assert_allclose(
        out.detach().numpy(), np.concatenate([expected[t, : int(batch_sizes[t])] for t in range(5)])
    )
    for got, want in zip(last, ends, strict=False):
        np.testing.assert_allclose(got.detach().numpy(), want)


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_gradients(kind, options):
    module, h, c = make(kind, 3, 4, 2, **options)
    x = rl.randn(3, 2, 3, dtype=rl.float64)
    if module.batch_first:
        x = x.transpose(0, 1).contiguous()
    settings = (module.bias, module.num_layers, 0.0, True, module.bidirectional, module.batch_first)

    def function(x, h, c, *weights):
        return module._operator(x, [h, c] if kind == "LSTM" else h, weights, *settings)

    inputs = [t.detach().requires_grad_() for t in (x, h, c, *module.parameters())]
    if kind != "LSTM":
        inputs[2] = inputs[2].detach()
    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_is_its_cell_repeated(kind):
    module, h, c = make(kind, 3, 4, 2)
    cell = getattr(nn, kind + "Cell")(3, 4, dtype=rl.float64)
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in module.state_dict().items()})
    x = rl.randn(4, 2, 3, dtype=rl.float64)
    out, _ = module(x, (h, c) if kind == "LSTM" else h)
    state = (h[0], c[0]) if kind == "LSTM" else h[0]
    for t in range(4):
        state = cell(x[t], state)
        shown = state[0] if kind == "LSTM" else state
        np.testing.assert_allclose(out[t].numpy(force=True), shown.numpy(force=True), rtol=1e-12)
        single = cell(x[t, 0])
        np.testing.assert_allclose(
            (single[0] if kind == "LSTM" else single).numpy(force=True),
            (cell(x[t])[0][0] if kind == "LSTM" else cell(x[t])[0]).numpy(force=True),
            rtol=1e-12,
        )


@pytest.mark.parametrize("kind", KINDS)
def test_few_rows_share_units(kind):
    """One wide sequence, whose units threads share out at each step, is as a batch of it."""
    module, h, c = make(kind, 8, 520, 1)
    x = rl.randn(3, 1, 8, dtype=rl.float64, requires_grad=True)
    wide = x.detach().expand(3, 20, 8).clone().requires_grad_()
    out, _ = module(x, (h, c) if kind == "LSTM" else h)
    many, _ = module(wide, (h.expand(1, 20, 520), c.expand(1, 20, 520)) if kind == "LSTM" else h.expand(1, 20, 520))
    np.testing.assert_allclose(many[:, 7:8].numpy(force=True), out.numpy(force=True), rtol=1e-10, atol=1e-12)
    out.sum().backward()
    many.sum().backward()
    np.testing.assert_allclose(wide.grad[:, 3:4].numpy(), x.grad.numpy(), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [rl.float16, rl.bfloat16])
def test_halves_compute_in_float32(kind, dtype):
    module, h, c = make(kind, 3, 4, 2, rl.float32)
    module, h, c = module.to(dtype), h.to(dtype), c.to(dtype)
    x = rl.randn(3, 2, 3).to(dtype)
    out, _ = module(x, (h, c) if kind == "LSTM" else h)
    wide = copy.deepcopy(module).float()
    expected, _ = wide(x.float(), (h.float(), c.float()) if kind == "LSTM" else h.float())
    assert out.dtype == dtype
    assert rl.equal(out, expected.to(dtype))
    out.sum().backward()
    assert module.weight_ih_l0.grad.dtype == dtype


@pytest.mark.parametrize("kind", KINDS)
def test_unbatched_empty_and_strided_inputs(kind):
    module, *_ = make(kind, 3, 4, 2)
    x = rl.randn(2, 5, 3, dtype=rl.float64).transpose(0, 1)
    out, _ = module(x)
    np.testing.assert_array_equal(out.detach().numpy(), module(x.contiguous())[0].detach().numpy())
    np.testing.assert_allclose(out[:, 0].detach().numpy(), module(x[:, 0])[0].detach().numpy(), rtol=1e-12)
    empty, _ = module(rl.zeros(5, 0, 3, dtype=rl.float64))
    assert empty.shape == (5, 0, 4)
    empty.sum().backward()
    assert all(not parameter.grad.any() for parameter in module.parameters())
    with pytest.raises(RuntimeError, match="Expected sequence length to be larger than 0"):
        module(rl.zeros(0, 2, 3, dtype=rl.float64))


def test_nan_stays_nan():
    for kind in KINDS:
        module, *_ = make(kind, 3, 4, 2)
        x = rl.zeros(3, 2, 3, dtype=rl.float64)
        x[1, 0, 0] = float("nan")
        out, _ = module(x)
        assert not out[0].isnan().any()
        assert out[1:, 0].isnan().all()
        assert not out[:, 1].isnan().any()
    relu = nn.RNN(3, 4, nonlinearity="relu", dtype=rl.float64)
    assert relu(x)[0][1:, 0].isnan().all()


def test_saturated_gates():
    module = nn.LSTM(1, 1, dtype=rl.float32)
    out, (_, c) = module(rl.tensor([[[1e30]], [[-1e30]], [[float("inf")]]]))
    assert out.isfinite().all()
    assert c.isfinite().all()


def test_dropout_between_layers_only():
    rl.manual_seed(0)
    module = nn.LSTM(3, 4, 2, dropout=1.0)
    x = rl.randn(5, 2, 3)
    zeroed, _ = module(x)
    module.eval()
    assert not rl.equal(zeroed, module(x)[0])
    single = nn.LSTM(4, 4)
    single.load_state_dict({k.replace("l1", "l0"): v for k, v in module.state_dict().items() if "l1" in k})
    assert rl.allclose(zeroed, single(rl.zeros(5, 2, 4))[0])


def test_state_is_kept_by_name():
    module = nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2)
    assert [len(weights) for weights in module.all_weights] == [5, 5, 5, 5]
    assert list(module.state_dict())[5:7] == ["weight_ih_l0_reverse", "weight_hh_l0_reverse"]
    buffer = io.BytesIO()
    rl.save(module.state_dict(), buffer)
    buffer.seek(0)
    other = nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2)
    other.load_state_dict(rl.load(buffer))
    x = rl.randn(5, 2, 3)
    assert rl.equal(module(x)[0], other(x)[0])
    assert rl.equal(copy.deepcopy(module)(x)[0], module(x)[0])


ERRORS = [
    (lambda: nn.LSTM(3, 0), ValueError, "hidden_size must be greater than zero"),
    (lambda: nn.LSTM(3, 2.5), TypeError, "hidden_size should be of type int"),
    (lambda: nn.LSTM(3, 4, proj_size=4), ValueError, "proj_size has to be smaller than hidden_size"),
    (lambda: nn.GRU(3, 4, proj_size=2), ValueError, "only supported for LSTM"),
    (lambda: nn.GRU(3, 4, size=2), TypeError, "unexpected keyword argument 'size'"),
    (lambda: nn.RNN(3, 4, nonlinearity="x"), ValueError, "Unknown nonlinearity 'x'"),
    (lambda: nn.RNN(3, 4, dropout=2), ValueError, "dropout should be a number in range"),
    (lambda: nn.LSTM(3, 4)(rl.zeros(5, 2, 7)), RuntimeError, r"Expected 3, got 7 .* to LSTM\(3, 4\)"),
    (lambda: nn.LSTM(3, 4)(rl.zeros(3)), ValueError, "LSTM: Expected input to be 2D or 3D, got 1D instead"),
    (lambda: nn.LSTM(3, 4)(rl.zeros(5, 2, 3).double()), ValueError, "does not match weight dtype"),
    (lambda: nn.GRU(3, 4)(rl.zeros(5, 2, 3), rl.zeros(2, 2, 4)), RuntimeError, "Expected hidden size"),
    (lambda: nn.LSTM(3, 4)(rl.zeros(5, 2, 3), (rl.zeros(1, 4),) * 2), RuntimeError, "should also be 3-D"),
    (lambda: nn.LSTM(3, 4)(rl.zeros(5, 2, 3), rl.zeros(1, 2, 4)), RuntimeError, "two hidden states"),
    (lambda: nn.LSTMCell(3, 4)(rl.zeros(2, 5)), RuntimeError, "inconsistent input_size: got 5 expected 3"),
    (lambda: nn.GRUCell(3, 4)(rl.zeros(2, 3), rl.zeros(3, 4)), RuntimeError, "doesn't match hidden0 batch size 3"),
    (lambda: nn.LSTMCell(3, 4)(rl.zeros(2, 3), rl.zeros(2, 4)), TypeError, "must be tuple of Tensors"),
    (lambda: packed([2, 2, 2]), RuntimeError, "batch_sizes"),
    (lambda: packed([1, 2, 2]), RuntimeError, "batch_sizes"),
    (lambda: packed([2, 3, 0]), RuntimeError, "batch_sizes"),
    (lambda: packed([7, -2]), RuntimeError, "batch_sizes"),
    (lambda: packed([]), RuntimeError, "batch_sizes"),
    (lambda: packed([2, 2, 1], states=3), RuntimeError, "do not fit"),
]


def packed(batch_sizes, states=2):
    weights = [rl.zeros(16, 3), rl.zeros(16, 4), rl.zeros(16), rl.zeros(16)]
    hx = [rl.zeros(1, states, 4)] * 2
    return rl.lstm(rl.zeros(5, 3), rl.tensor(batch_sizes, dtype=rl.int64), hx, weights, True, 1, 0.0, False, False)


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_dropout_of_one_layer_warns():
    with pytest.warns(UserWarning, match="dropout option adds dropout after all but last"):
        nn.LSTM(3, 4, dropout=0.5)
