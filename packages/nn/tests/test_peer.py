"""The same programs on PyTorch and on rushlight, from the same seed: equal numbers, gradients, errors and texts.

Collected only where PyTorch is installed, as in `nox -s peer`.
"""

import importlib
import warnings

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")


def run(library, program):
    """What a program gives with a library: its numbers, or the type and text of its error."""
    for area in ("nn", "optim", "utils.data"):
        importlib.import_module(f"{library.__name__}.{area}")
    library.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return flat(program(library), library.Tensor)
        except Exception as error:
            return [type(error).__name__]


def flat(value, tensor):
    if isinstance(value, tensor):
        return [value.detach().numpy().copy()]
    if isinstance(value, (tuple, list)):
        return [part for item in value for part in flat(item, tensor)]
    return [value]


def check(program, tolerance=1e-6):
    ours, theirs = run(rushlight, program), run(torch, program)
    assert len(ours) == len(theirs), (ours, theirs)
    for a, b in zip(ours, theirs, strict=True):
        if isinstance(b, np.ndarray):
            assert a.dtype == b.dtype
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1, np.abs(b).max(initial=0)))
        elif isinstance(b, str):
            assert a.replace("rushlight", "torch") == b
        else:
            assert a == b


def layer(make, *shapes, train=True):
    """Output, gradients and state of a layer, its text, and a random number drawn afterwards."""

    def program(t):
        module = make(t.nn)
        module.train(train)
        inputs = [t.randn(*shape, requires_grad=True) for shape in shapes]
        output = module(*inputs)
        output = output[0] if isinstance(output, tuple) else output
        if output.requires_grad:
            (output * t.randn(output.shape)).sum().backward()
        state = module.state_dict()
        grads = [x.grad for x in (*inputs, *module.parameters()) if x.grad is not None]
        return [output, t.rand(1), grads, list(state.values()), list(state), repr(module), repr(dict(state._metadata))]

    return program


IMAGES = {1: (9,), 2: (9, 8), 3: (9, 8, 7)}
LAYERS = [
    (lambda nn: nn.Linear(3, 4), (5, 3)),
    (lambda nn: nn.Linear(3, 4, bias=False), (2, 5, 3)),
    (lambda nn: nn.Linear(3, 4), (3,)),
    (lambda nn: nn.Bilinear(3, 4, 5), (2, 7, 3), (2, 7, 4)),
    (lambda nn: nn.Identity(3, a=1), (2,)),
    (lambda nn: nn.LayerNorm([3, 4]), (2, 3, 4)),
    (lambda nn: nn.LayerNorm(4, elementwise_affine=False), (2, 3, 4)),
    (lambda nn: nn.LayerNorm(4, bias=False), (2, 3, 4)),
    (lambda nn: nn.GroupNorm(3, 6), (2, 6, 4, 3)),
    (lambda nn: nn.GroupNorm(2, 6, affine=False), (2, 6, 4)),
    (lambda nn: nn.BatchNorm1d(3), (4, 3)),
    (lambda nn: nn.Flatten(), (2, 3, 4)),
    (lambda nn: nn.Unflatten(1, (3, 2)), (2, 6)),
    (lambda nn: nn.CosineSimilarity(), (2, 3, 4), (2, 3, 4)),
    (lambda nn: nn.PairwiseDistance(1.5, keepdim=True), (2, 3), (2, 3)),
    (lambda nn: nn.PReLU(3, 0.1), (2, 3, 4)),
    (lambda nn: nn.Softmax(1), (2, 3, 4)),
    (lambda nn: nn.Softmin(-1), (2, 3, 4)),
    (lambda nn: nn.LogSoftmax(0), (2, 3, 4)),
    (lambda nn: nn.Softplus(2, 1), (2, 3, 4)),
    (lambda nn: nn.Threshold(0.1, 20), (2, 3, 4)),
    (lambda nn: nn.GELU("tanh"), (2, 3, 4)),
    (lambda nn: nn.CELU(0.5), (2, 3, 4)),
    (lambda nn: nn.Sequential(nn.Linear(3, 4), nn.ModuleList([nn.ReLU()])[0], nn.Linear(4, 2)), (5, 3)),
]
ACTIVATIONS = [
    "ELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid", "Mish", "PReLU",
    "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax2d", "Softplus", "Softshrink", "Softsign", "Tanh",
    "Tanhshrink",
]  # fmt: skip
for name in ACTIVATIONS:
    LAYERS.append((lambda nn, name=name: getattr(nn, name)(), (2, 4, 3, 2)))
for n, image in IMAGES.items():
    for options in (
        {},
        {"stride": 2, "padding": 1},
        {"dilation": 2, "padding": 2, "bias": False},
        {"groups": 2},
        {"padding": "same"},
        {"padding": "valid", "stride": 2},
    ):
        conv = lambda nn, n=n, options=options: getattr(nn, f"Conv{n}d")(4, 6, (3, 2, 1)[:n], **options)
        LAYERS += [(conv, (2, 4, *image)), (conv, (4, *image))]
    for options in ({}, {"stride": 2, "padding": 1, "output_padding": 1}, {"groups": 2, "stride": 3}):
        conv = lambda nn, n=n, options=options: getattr(nn, f"ConvTranspose{n}d")(4, 6, (3, 2, 3)[:n], **options)
        LAYERS += [(conv, (2, 4, *image)), (conv, (4, *image))]
    for options in (
        {"kernel_size": 2},
        {"kernel_size": 3, "stride": 2, "padding": 1},
        {"kernel_size": 3, "stride": 2, "ceil_mode": True},
    ):
        pool = lambda nn, n=n, options=options: getattr(nn, f"MaxPool{n}d")(**options)
        mean = lambda nn, n=n, options=options: getattr(nn, f"AvgPool{n}d")(**options)
        part = lambda nn, n=n, options=options: getattr(nn, f"AvgPool{n}d")(count_include_pad=False, **options)
        LAYERS += [(pool, (2, 3, *image)), (pool, (3, *image)), (mean, (2, 3, *image)), (part, (2, 3, *image))]
    for mode in ("zeros", "reflect", "replicate", "circular"):
        conv = lambda nn, n=n, mode=mode: getattr(nn, f"Conv{n}d")(4, 2, 3, padding=(2, 1, 1)[:n], padding_mode=mode)
        LAYERS.append((conv, (2, 4, *image)))
    for kind in ("ReflectionPad", "ReplicationPad", "CircularPad", "ZeroPad"):
        sides = (1, 2, 0, 1, 2, -1)[: 2 * n]
        LAYERS.append((lambda nn, n=n, kind=kind, sides=sides: getattr(nn, f"{kind}{n}d")(sides), (2, 3, *image)))
    LAYERS.append((lambda nn, n=n: getattr(nn, f"ConstantPad{n}d")(2, 3.5), (3, *image)))
    for size in (1, 3, 5):
        LAYERS.append((lambda nn, n=n, size=size: getattr(nn, f"AdaptiveAvgPool{n}d")(size), (2, 3, *image)))
    for options in ({}, {"momentum": None}, {"affine": False}, {"track_running_stats": False}):
        LAYERS.append((lambda nn, n=n, options=options: getattr(nn, f"BatchNorm{n}d")(3, **options), (4, 3, *image)))


for kind in ("LSTM", "GRU", "RNN"):
    for options in ({}, {"num_layers": 2, "bidirectional": True, "bias": False}, {"batch_first": True}):
        recurrent = lambda nn, kind=kind, options=options: getattr(nn, kind)(3, 4, **options)
        LAYERS += [(recurrent, (5, 2, 3)), (recurrent, (5, 3))]
    LAYERS.append((lambda nn, kind=kind: getattr(nn, kind)(3, 4, 3, dropout=0.4), (5, 2, 3)))
    LAYERS.append((lambda nn, kind=kind: getattr(nn, kind + "Cell")(3, 4), (2, 3)))
for options in ({}, {"norm_first": True, "bias": False}, {"dropout": 0.3, "activation": "gelu"}):
    shared = {"dim_feedforward": 12, "dropout": 0.0, **options}
    LAYERS += [
        (lambda nn, options=shared: nn.TransformerEncoderLayer(8, 2, **options), (5, 2, 8)),
        (lambda nn, options=shared: nn.TransformerDecoderLayer(8, 2, **options), (5, 2, 8), (4, 2, 8)),
    ]
LAYERS += [
    (lambda nn: nn.MultiheadAttention(8, 2), (5, 2, 8), (4, 2, 8), (4, 2, 8)),
    (lambda nn: nn.MultiheadAttention(8, 2, dropout=0.3, add_bias_kv=True), (5, 2, 8), (4, 2, 8), (4, 2, 8)),
    (lambda nn: nn.MultiheadAttention(8, 2, kdim=3, vdim=4, bias=False), (5, 8), (4, 3), (4, 4)),
    (lambda nn: nn.Transformer(8, 2, 1, 1, 12, 0.2, batch_first=True), (2, 4, 8), (2, 5, 8)),
]
LAYERS.append((lambda nn: nn.LSTM(3, 5, 2, bidirectional=True, proj_size=2), (5, 2, 3)))
LAYERS.append((lambda nn: nn.RNN(3, 5, nonlinearity="relu"), (5, 2, 3)))
LAYERS.append((lambda nn: nn.RNNCell(3, 5, nonlinearity="relu"), (2, 3)))


LAYERS += [
    (lambda nn: nn.RReLU(), (3, 40)),
    (lambda nn: nn.RMSNorm(4), (2, 3, 4)),
    (lambda nn: nn.RMSNorm((3, 4), eps=1e-3, elementwise_affine=False), (2, 3, 4)),
    (lambda nn: nn.LocalResponseNorm(3, alpha=0.1), (2, 5, 4, 3)),
    (lambda nn: nn.PixelShuffle(2), (2, 8, 3, 4)),
    (lambda nn: nn.PixelUnshuffle(2), (2, 2, 6, 4)),
    (lambda nn: nn.ChannelShuffle(2), (2, 6, 3, 4)),
    (lambda nn: nn.Unfold((2, 3), 1, (0, 1), (2, 1)), (2, 3, 7, 8)),
    (lambda nn: nn.Fold((5, 4), 2), (2, 8, 12)),
    (lambda nn: nn.Upsample(scale_factor=2.5), (2, 3, 4, 5)),
    (lambda nn: nn.Upsample(7, mode="nearest-exact"), (2, 3, 4)),
    (lambda nn: nn.Upsample(7, mode="linear"), (2, 3, 4)),
    (lambda nn: nn.Upsample((3, 9), mode="bilinear", align_corners=True), (2, 3, 4, 5)),
    (lambda nn: nn.Upsample(scale_factor=(0.7, 1.6), mode="bicubic"), (2, 3, 4, 5)),
    (lambda nn: nn.Upsample(5, mode="trilinear"), (2, 3, 4, 5, 3)),
    (lambda nn: nn.Upsample(2, mode="area"), (2, 3, 4, 5)),
    (lambda nn: nn.UpsamplingBilinear2d(scale_factor=2), (1, 2, 3, 4)),
    (lambda nn: nn.UpsamplingNearest2d(5), (1, 2, 3, 4)),
    (lambda nn: nn.FractionalMaxPool2d(2, output_size=3), (2, 3, 7, 6)),
    (lambda nn: nn.FractionalMaxPool3d(2, output_ratio=0.6), (3, 7, 6, 5)),
    (lambda nn: nn.LPPool1d(2, 3), (2, 3, 9)),
    (lambda nn: nn.LPPool2d(1.5, 2, 1, True), (2, 3, 5, 6)),
    (lambda nn: nn.SyncBatchNorm(3), (4, 3, 5)),
    (lambda nn: nn.LazyLinear(4), (2, 3)),
    (lambda nn: nn.LazyConv2d(4, 3, bias=False), (2, 3, 5, 5)),
    (lambda nn: nn.LazyConvTranspose1d(4, 3, groups=2), (2, 6, 5)),
    (lambda nn: nn.LazyBatchNorm1d(), (4, 3)),
    (lambda nn: nn.LazyInstanceNorm2d(), (2, 3, 4, 5)),
    (lambda nn: nn.DataParallel(nn.Linear(3, 2)), (4, 3)),
]
for n in (1, 2, 3):
    LAYERS.append((lambda nn, n=n: getattr(nn, f"AdaptiveMaxPool{n}d")(4), (2, 3, *IMAGES[n])))
    LAYERS.append((lambda nn, n=n: getattr(nn, f"InstanceNorm{n}d")(3), (2, 3, *IMAGES[n])))
    LAYERS.append(
        (lambda nn, n=n: getattr(nn, f"InstanceNorm{n}d")(3, affine=True, track_running_stats=True), (3, *IMAGES[n]))
    )


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("case", LAYERS, ids=lambda case: repr(case[0](torch.nn)).replace("\n", ""))
def test_layers(case, train):
    check(layer(*case, train=train), 2e-5)


@pytest.mark.parametrize(
    "kind", ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"]
)
@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_dropout_drops_the_same(kind, p):
    shape = {"Dropout1d": (2, 3, 4), "Dropout3d": (2, 3, 4, 5, 6)}.get(kind, (2, 3, 4, 5))
    check(layer(lambda nn: getattr(nn, kind)(p), shape))
    check(lambda t: getattr(t.nn, kind)(p)(t.ones(shape).transpose(0, 1)))


RANDOM = [
    lambda t, x: t.nn.functional.dropout(x, 0.3),
    lambda t, x: t.nn.functional.alpha_dropout(x, 0.3, True),
    lambda t, x: t.nn.functional.feature_alpha_dropout(x.reshape(-1, 3, 4), 0.7, True),
    lambda t, x: t.nn.functional.dropout1d(x.reshape(-1, 3, 4), 0.5),
    lambda t, x: t.nn.functional.dropout2d(x.reshape(1, -1, 3, 4), 0.5),
    lambda t, x: t.nn.functional.dropout3d(x.reshape(-1, 3, 2, 2, 1), 0.5),
    lambda t, x: t.nn.functional.rrelu(x, training=True),
    lambda t, x: t.nn.functional.fractional_max_pool2d(x.reshape(1, -1, 12), 3, output_ratio=(0.5, 0.6)),
    lambda t, x: t.nn.functional.fractional_max_pool3d(x.reshape(1, -1, 4, 4), 2, output_size=2),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [8, 300])
@pytest.mark.parametrize("case", range(len(RANDOM)))
def test_random_layers_are_equal_bit_for_bit(case, count, dtype):
    check(lambda t: RANDOM[case](t, t.randn(count * 12, dtype=getattr(t, dtype))), 0)


@pytest.mark.parametrize("options", [{}, {"padding_idx": 1}, {"max_norm": 1.0}, {"scale_grad_by_freq": True}], ids=str)
def test_embedding(options):
    def program(t):
        module = t.nn.Embedding(5, 3, **options)
        output = module(t.tensor([[0, 1, 1], [4, 4, 4]]))
        (output * output).sum().backward()
        return [output, module.weight.grad, module.weight]

    check(program)


def scores(t):
    return t.randn(4, 5)


def shares(t):
    return t.rand(4, 5)


def signs(t):
    return t.randint(0, 2, (4, 5)).to(t.float32) * 2 - 1


def classes(t):
    return t.randint(0, 5, (4,))


def weights(t):
    return t.rand(5)


LOSSES = [
    ("L1Loss", scores, scores),
    ("MSELoss", scores, scores),
    ("SmoothL1Loss", scores, scores, {"beta": 0.3}),
    ("SmoothL1Loss", scores, scores, {"beta": 0.0}),
    ("HuberLoss", scores, scores, {"delta": 0.3}),
    ("BCELoss", shares, shares, {"weight": weights}),
    ("BCEWithLogitsLoss", scores, shares, {"pos_weight": weights, "weight": weights}),
    ("KLDivLoss", scores, shares),
    ("KLDivLoss", scores, scores, {"log_target": True}),
    ("PoissonNLLLoss", scores, shares),
    ("PoissonNLLLoss", shares, lambda t: shares(t) * 4, {"log_input": False, "full": True}),
    ("SoftMarginLoss", scores, signs),
    ("HingeEmbeddingLoss", scores, signs, {"margin": 0.3}),
    ("CrossEntropyLoss", scores, classes),
    ("CrossEntropyLoss", scores, classes, {"weight": weights, "label_smoothing": 0.1}),
    ("CrossEntropyLoss", scores, classes, {"ignore_index": 2}),
    ("CrossEntropyLoss", scores, classes, {"ignore_index": 2, "label_smoothing": 0.1}),
    ("CrossEntropyLoss", scores, lambda t: t.softmax(scores(t), 1), {"label_smoothing": 0.1, "weight": weights}),
    ("CrossEntropyLoss", lambda t: t.randn(2, 5, 3), lambda t: t.randint(0, 5, (2, 3)), {"weight": weights}),
    ("CrossEntropyLoss", lambda t: t.randn(5), lambda t: t.tensor(2)),
    ("NLLLoss", scores, classes, {"weight": weights}),
    ("NLLLoss", lambda t: t.randn(2, 5, 3, 2), lambda t: t.randint(0, 5, (2, 3, 2)), {"ignore_index": 1}),
    ("GaussianNLLLoss", scores, scores, {"full": True}, shares),
    ("MarginRankingLoss", scores, scores, {"margin": 0.2}, signs),
    ("CosineEmbeddingLoss", scores, scores, {"margin": 0.1}, lambda t: signs(t)[:, 0]),
    ("TripletMarginLoss", scores, scores, {"swap": True}, scores),
    ("TripletMarginLoss", scores, scores, {"p": 1.0}, scores),
]


LOSSES += [
    ("MultiMarginLoss", scores, classes, {"p": 2, "margin": 0.7, "weight": weights}),
    ("MultiMarginLoss", lambda t: t.randn(5), lambda t: t.tensor(2)),
    ("MultiLabelMarginLoss", scores, lambda t: t.tensor([[1, 0, -1, 2, 0], [-1] * 5, [4, 4, 1, -1, 0], [0] * 5])),
    ("MultiLabelSoftMarginLoss", scores, lambda t: t.randint(0, 2, (4, 5)).to(t.float32), {"weight": weights}),
    ("TripletMarginWithDistanceLoss", scores, scores, {"swap": True, "margin": 0.5}, scores),
]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("case", LOSSES, ids=lambda case: case[0])
def test_losses(case, reduction):
    name, first, second, options, *rest = (*case, {}) if len(case) == 3 else case

    def program(t):
        made = {key: value(t) if callable(value) else value for key, value in options.items()}
        loss = getattr(t.nn, name)(reduction=reduction, **made)
        inputs = [make(t) for make in (first, second, *rest)]
        inputs[0].requires_grad_()
        output = loss(*inputs)
        output.sum().backward()
        return [output, inputs[0].grad]

    check(program, 1e-5)


BAD = [
    lambda t: t.nn.functional.interpolate(t.ones(1, 2, 4, 4), 8, mode="linear"),
    lambda t: t.nn.functional.interpolate(t.ones(1, 2, 4, 4), 8, mode="odd"),
    lambda t: t.nn.functional.interpolate(t.ones(1, 2, 4, 4), 8, 2),
    lambda t: t.nn.functional.interpolate(t.ones(1, 2, 4, 4)),
    lambda t: t.nn.functional.interpolate(t.ones(1, 2, 4, 4), (8,)),
    lambda t: t.nn.functional.interpolate(t.ones(1, 2, 4, 4), 0),
    lambda t: t.nn.functional.interpolate(t.ones(1, 2, 4, 4), 8, align_corners=True),
    lambda t: t.nn.functional.interpolate(t.ones(1, 2, 4, 4), 8, antialias=True),
    lambda t: t.nn.functional.interpolate(t.ones(1, 2, 4, 4, dtype=t.int64), 8),
    lambda t: t.nn.functional.grid_sample(t.ones(1, 2, 4, 4), t.ones(2, 3, 3, 2)),
    lambda t: t.nn.functional.grid_sample(t.ones(1, 2, 4, 4), t.ones(1, 3, 3, 2), mode="odd"),
    lambda t: t.nn.functional.grid_sample(t.ones(1, 2, 4, 4), t.ones(1, 3, 3, 3)),
    lambda t: t.nn.functional.affine_grid(t.ones(1, 2, 3), (1, 1, 0, 3)),
    lambda t: t.nn.functional.affine_grid(t.ones(1, 2, 3), (1, 1, 3)),
    lambda t: t.nn.functional.unfold(t.ones(1, 2, 4, 4), 5),
    lambda t: t.nn.functional.unfold(t.ones(1, 2, 4, 4), 2, 0),
    lambda t: t.nn.functional.fold(t.ones(1, 8, 9), 5, 2),
    lambda t: t.nn.functional.fold(t.ones(1, 7, 9), 4, 2),
    lambda t: t.nn.functional.embedding_bag(t.tensor([0, 9]), t.ones(5, 2), t.tensor([0])),
    lambda t: t.nn.functional.embedding_bag(t.tensor([0, 1]), t.ones(5, 2), t.tensor([1])),
    lambda t: t.nn.functional.embedding_bag(t.tensor([0, 1]), t.ones(5, 2)),
    lambda t: t.nn.functional.embedding_bag(t.tensor([0, 1]), t.ones(5, 2), t.tensor([0]), mode="odd"),
    lambda t: t.nn.functional.pixel_shuffle(t.ones(1, 2, 4, 4), 3),
    lambda t: t.nn.functional.channel_shuffle(t.ones(1, 2, 4, 4), 3),
    lambda t: t.nn.functional.max_unpool2d(t.ones(1, 1, 2, 2), t.full((1, 1, 2, 2), 99), 2),
    lambda t: t.nn.functional.max_unpool2d(t.ones(1, 1, 2, 2), t.zeros(1, 1, 2, 2), 2),
    lambda t: t.nn.functional.fractional_max_pool2d(t.ones(1, 1, 4, 4), 2),
    lambda t: t.nn.functional.adaptive_max_pool2d(t.ones(1, 1, 4, 4), (2, 2, 2)),
    lambda t: t.nn.functional.ctc_loss(t.ones(5, 2, 4), t.ones(2, 2, dtype=t.int64), (6, 5), (2, 2)),
    lambda t: t.nn.functional.ctc_loss(t.ones(5, 2, 4), t.ones(2, 2, dtype=t.int64), (5, 5), (2, 3)),
    lambda t: t.nn.functional.ctc_loss(t.ones(5, 2, 4), t.ones(2, 2, dtype=t.int64), (5, 5), (2, 2), blank=4),
    lambda t: t.nn.functional.multi_margin_loss(t.ones(2, 3), t.tensor([0, 3])),
    lambda t: t.nn.functional.multi_margin_loss(t.ones(2, 3), t.tensor([0, 1]), p=3),
    lambda t: t.nn.functional.multilabel_margin_loss(t.ones(2, 3), t.zeros(2, 2, dtype=t.int64)),
    lambda t: t.pdist(t.ones(2)),
    lambda t: t.pdist(t.ones(2, 2), -1.0),
    lambda t: t.nn.LazyLinear(3).weight + 1,
    lambda t: t.nn.LazyLinear(3).weight.shape,
    lambda t: t.nn.LazyConv2d(3, 2)(t.ones(1, 2)),
    lambda t: t.nn.InstanceNorm2d(3)(t.ones(2, 3)),
    lambda t: t.nn.InstanceNorm1d(3)(t.ones(2, 3, 1)),
    lambda t: t.nn.AdaptiveLogSoftmaxWithLoss(5, 10, [4, 2]),
    lambda t: t.nn.utils.stateless.functional_call(t.nn.Linear(2, 2), {"weight": t.ones(2, 2)}, t.ones(2), strict=True),
    lambda t: t.nn.utils.stateless.functional_call(t.nn.Linear(2, 2), {"weight": 3}, t.ones(2)),
    lambda t: t.nn.Linear(3, 4)(t.ones(2, 5)),
    lambda t: t.nn.Conv2d(3, 4, 3)(t.ones(2, 5, 8, 8)),
    lambda t: t.nn.Conv2d(3, 4, 3)(t.ones(8, 8)),
    lambda t: t.nn.Conv2d(3, 4, 9)(t.ones(1, 3, 4, 4)),
    lambda t: t.nn.Conv2d(3, 4, 3, groups=2),
    lambda t: t.nn.Conv2d(3, 4, 3, padding="half"),
    lambda t: t.nn.Conv2d(3, 4, 3, stride=2, padding="same"),
    lambda t: t.nn.functional.conv2d(t.ones(1, 1, 3, 3), t.ones(1, 1, 2, 2), t.ones(3)),
    lambda t: t.nn.functional.conv2d(t.ones(1, 1, 3, 3).double(), t.ones(1, 1, 2, 2)),
    lambda t: t.nn.functional.conv2d(t.ones(1, 1, 3, 3), t.ones(1, 1, 2, 2), stride=0),
    lambda t: t.nn.ConvTranspose2d(2, 3, 3)(t.ones(1, 2, 4, 4), output_size=[9, 9]),
    lambda t: t.nn.BatchNorm2d(3)(t.ones(2, 3)),
    lambda t: t.nn.BatchNorm1d(3)(t.ones(1, 3)),
    lambda t: t.nn.BatchNorm1d(3)(t.ones(2, 4)),
    lambda t: t.nn.LayerNorm(4)(t.ones(2, 3)),
    lambda t: t.nn.GroupNorm(2, 3),
    lambda t: t.nn.CrossEntropyLoss()(t.ones(2, 3), t.tensor([0, 5])),
    lambda t: t.nn.CrossEntropyLoss()(t.ones(2, 3), t.tensor([0, -1])),
    lambda t: t.nn.CrossEntropyLoss()(t.ones(2, 3), t.tensor([0])),
    lambda t: t.nn.CrossEntropyLoss()(t.ones(2, 3), t.ones(2)),
    lambda t: t.nn.CrossEntropyLoss(reduction="most")(t.ones(2, 3), t.tensor([0, 1])),
    lambda t: t.nn.CrossEntropyLoss(weight=t.ones(2))(t.ones(2, 3), t.tensor([0, 1])),
    lambda t: t.nn.NLLLoss()(t.ones(2, 3), t.ones(2)),
    lambda t: t.nn.BCELoss()(t.ones(2) * 2, t.ones(2)),
    lambda t: t.nn.BCELoss()(t.ones(2), t.ones(3)),
    lambda t: t.nn.Dropout(2),
    lambda t: t.nn.functional.dropout(t.ones(2), -1),
    lambda t: t.nn.MaxPool2d(2)(t.ones(3, 3)),
    lambda t: t.nn.MaxPool2d(5)(t.ones(1, 3, 3)),
    lambda t: t.nn.MaxPool2d(2, padding=2)(t.ones(1, 3, 3)),
    lambda t: t.nn.MaxPool2d(0)(t.ones(1, 3, 3)),
    *(
        lambda t, pad=pad, mode=mode: t.nn.functional.pad(t.ones(1, 2, 3, 4), pad, mode)
        for pad, mode in (
            ((1,), "constant"),
            ((1,) * 10, "constant"),
            ((-5, 0), "constant"),
            ((4, 0), "reflect"),
            ((4, 0, 0, 0), "reflect"),
            ((1, 1, 1, 1), "mirror"),
            ((5, 0, 0, 0), "circular"),
        )
    ),
    lambda t: t.nn.functional.pad(t.ones(4), (1, 1), "reflect"),
    lambda t: t.nn.Embedding(3, 2)(t.tensor([5])),
    lambda t: t.nn.functional.one_hot(t.tensor([5]), 3),
    lambda t: t.nn.functional.prelu(t.ones(2, 3), t.ones(2)),
    lambda t: t.nn.functional.glu(t.ones(3)),
    lambda t: t.nn.functional.softshrink(t.ones(3), -1.0),
    lambda t: t.nn.Hardtanh(2, 1),
    lambda t: t.nn.Softmax2d()(t.ones(2)),
]


@pytest.mark.parametrize("program", BAD)
def test_errors_have_the_same_type(program):
    check(lambda t: [program(t)] and "no error")


INITS = [
    ("uniform_", {}),
    ("normal_", {"mean": 1.0, "std": 2.0}),
    ("trunc_normal_", {}),
    ("trunc_normal_", {"mean": 1.0, "std": 0.5, "a": 1.9, "b": 3.0}),
    ("xavier_uniform_", {"gain": 2.0}),
    ("xavier_normal_", {}),
    ("kaiming_uniform_", {"a": 0.3}),
    ("kaiming_normal_", {"mode": "fan_out", "nonlinearity": "relu"}),
    ("orthogonal_", {"gain": 2}),
    ("sparse_", {"sparsity": 0.3}),
    ("eye_", {}),
]


@pytest.mark.parametrize(("name", "options"), INITS)
@pytest.mark.parametrize("shape", [(4, 6), (6, 4)])
def test_initial_values_are_the_same(name, options, shape):
    check(lambda t: [getattr(t.nn.init, name)(t.empty(*shape), **options), t.rand(1)])


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("options", [{}, {"padding_idx": 1}, {"max_norm": 1.0}, {"include_last_offset": True}], ids=str)
def test_embedding_bag(mode, options):
    def program(t):
        module = t.nn.EmbeddingBag(5, 3, mode=mode, **options)
        output = module(t.tensor([0, 1, 1, 4, 2]), t.tensor([0, 0, 3, 5]))
        (output * output).sum().backward()
        return [output, module.weight.grad, module.weight, repr(module)]

    check(program)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align_corners", [True, False])
def test_grids(mode, padding, align_corners):
    def program(t):
        grids = []
        for n in (2, 3)[: 1 if mode == "bicubic" else 2]:
            image = t.randn(2, 3, *(5, 6, 4)[:n], dtype=t.float64, requires_grad=True)
            grid = (1.4 * t.randn(2, 70, *(1,) * (n - 1), n, dtype=t.float64)).requires_grad_()
            output = t.nn.functional.grid_sample(image, grid, mode, padding, align_corners)
            (output * t.randn(output.shape, dtype=t.float64)).sum().backward()
            theta = t.randn(2, n, n + 1)
            affine = t.nn.functional.affine_grid(theta, (2, 3, *(4, 5, 3)[:n]), align_corners)
            grids += [output, image.grad, grid.grad, affine]
        return grids

    check(program, 1e-6)


@pytest.mark.parametrize("zero_infinity", [True, False])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_ctc(reduction, zero_infinity):
    def program(t):
        scores = t.randn(7, 3, 5, dtype=t.float64, requires_grad=True)
        inputs, targets = t.tensor([7, 5, 2]), t.tensor([3, 2, 2])
        labels = t.tensor([[1, 1, 2], [3, 4, 0], [2, 2, 0]])
        loss = t.nn.functional.ctc_loss(scores.log_softmax(2), labels, inputs, targets, 0, reduction, zero_infinity)
        loss.sum().backward()
        joined = t.nn.functional.ctc_loss(
            scores.detach().log_softmax(2), t.tensor([1, 1, 2, 3, 4, 2, 2]), inputs, targets, 0, reduction
        )
        return [t.nan_to_num(part, posinf=-1) for part in (loss, scores.grad, joined)]

    check(program)


def test_adaptive_softmax():
    def program(t):
        module = t.nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 6], div_value=2.0, head_bias=True)
        x = t.randn(6, 8, requires_grad=True)
        output, loss = module(x, t.tensor([0, 4, 11, 2, 7, 5]))
        loss.backward()
        return [output, loss, x.grad, module.log_prob(x), module.predict(x), repr(module)]

    check(program)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_maxima_go_back(n):
    def program(t):
        pool = getattr(t.nn, f"MaxPool{n}d")(2, 2, return_indices=True)
        unpool = getattr(t.nn, f"MaxUnpool{n}d")(2, 2)
        x = t.randn(2, 3, *IMAGES[n], requires_grad=True)
        values, indices = pool(x)
        output = unpool(values, indices, output_size=x.shape)
        (output * output).sum().backward()
        return [output, x.grad, unpool(values, indices), repr(unpool)]

    check(program)


OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("Adam", {"weight_decay": 0.1}),
    ("Adam", {"amsgrad": True, "maximize": True, "betas": (0.5, 0.7)}),
    ("AdamW", {}),
    ("ASGD", {"lambd": 0.1, "t0": 2, "weight_decay": 0.1}),
    ("Adadelta", {"weight_decay": 0.1}),
    ("Adafactor", {"lr": 0.1, "weight_decay": 0.1}),
    ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.1}),
    ("Adamax", {"weight_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"betas": (0.5, 0.6), "weight_decay": 0.1}),
    ("RMSprop", {"momentum": 0.9, "centered": True}),
    ("Rprop", {}),
]


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_optimizers(name, options):
    def program(t):
        params = [t.nn.Parameter(t.randn(3, 4)) for _ in range(3)]
        optimizer = getattr(t.optim, name)(params, **options)
        for step in range(4):
            for i, p in enumerate(params):
                p.grad = None if i == 2 and step < 2 else t.randn(3, 4)
            optimizer.step()
        state = optimizer.state_dict()
        values = [[*s.values()] for s in state["state"].values()]
        return [
            params,
            values,
            repr([[*s] for s in state["state"].values()]),
            repr(state["param_groups"]),
            repr(optimizer),
        ]

    check(program)


def test_state_dicts_are_exchanged():
    def model(nn):
        return nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(48, 2))

    theirs = model(torch.nn)
    ours = model(rushlight.nn)
    ours.load_state_dict({name: rushlight.from_numpy(value.numpy()) for name, value in theirs.state_dict().items()})
    image = np.random.default_rng(0).normal(size=(2, 1, 6, 6)).astype(np.float32)
    a, b = ours(rushlight.from_numpy(image)), theirs(torch.from_numpy(image))
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-6)
    theirs.load_state_dict({name: torch.from_numpy(value.numpy()) for name, value in ours.state_dict().items()})


LOADERS = [
    lambda d, data: {},
    lambda d, data: {"shuffle": True, "batch_size": 5},
    lambda d, data: {"shuffle": True, "batch_size": 5, "drop_last": True},
    lambda d, data: {"sampler": d.SubsetRandomSampler(range(5))},
    lambda d, data: {"sampler": d.WeightedRandomSampler([1.0, 2.0, 3.0], 7), "batch_size": 3},
    lambda d, data: {"sampler": d.RandomSampler(data, True, 70), "batch_size": 7},
    lambda d, data: {"batch_size": None, "shuffle": True},
    lambda d, data: {"batch_size": 5, "shuffle": True, "num_workers": 2},
]


@pytest.mark.parametrize("options", LOADERS)
def test_loaders_draw_the_same(options):
    def program(t):
        d = t.utils.data
        whole = d.TensorDataset(t.arange(74.0).reshape(37, 2), t.arange(37))
        seen = []
        for data in (whole, d.random_split(whole, [30, 7])[0], d.ConcatDataset([whole, whole])):
            loader = d.DataLoader(data, **options(d, data))
            seen += [len(loader), [list(batch) for _ in range(2) for batch in loader], t.rand(1)]
        return seen

    check(program)


# -- the first 20 losses of training: initialisation, shuffling, dropout and updates from one seed


class Words:
    """Module of what is done to sequences: an embedding, a body, and a score for each class."""

    @staticmethod
    def of(t, body):
        class Classifier(t.nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding = t.nn.Embedding(20, 16)
                self.body = body(t.nn)
                self.head = t.nn.Linear(16, 4)

            def forward(self, tokens):
                output = self.body(self.embedding(tokens))
                output = output[0] if isinstance(output, tuple) else output
                return self.head(output.mean(1))

        return Classifier()


def mlp(t):
    nn = t.nn
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 10))


def lenet(t):
    nn = t.nn
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2),
        nn.Conv2d(6, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout2d(0.25),
        nn.Flatten(), nn.Linear(16, 24), nn.Tanh(), nn.Dropout(0.5), nn.Linear(24, 10),
    )  # fmt: skip


def lstm(t):
    return Words.of(t, lambda nn: nn.LSTM(16, 16, 2, batch_first=True, dropout=0.3))


def transformer(t):
    return Words.of(
        t, lambda nn: nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, 0.1, batch_first=True), 2)
    )


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
@pytest.mark.parametrize("network", [mlp, lenet, lstm, transformer])
def test_training_takes_the_same_course(network, optimizer):
    def program(t):
        model = network(t)
        if network in (mlp, lenet):
            data = t.utils.data.TensorDataset(t.randn(70, 1, 8, 8), t.randint(0, 10, (70,)))
        else:
            data = t.utils.data.TensorDataset(t.randint(0, 20, (70, 9)), t.randint(0, 4, (70,)))
        options = {"momentum": 0.9} if optimizer == "SGD" else {}
        steps = getattr(t.optim, optimizer)(model.parameters(), lr=0.01, **options)
        losses = []
        for _ in range(4):
            for inputs, labels in t.utils.data.DataLoader(data, batch_size=16, shuffle=True):
                steps.zero_grad()
                loss = t.nn.functional.cross_entropy(model(inputs), labels)
                loss.backward()
                steps.step()
                losses.append(loss)
        return losses

    assert len(run(rushlight, program)) == 20
    check(program, 1e-4)


AUTOCAST = [
    lambda t, x: x(3, 3) @ t.randn(3, 3),
    lambda t, x: t.addmv(t.randn(3), t.randn(3, 3), t.randn(3)),
    lambda t, x: t.inner(x(3), x(3)),
    lambda t, x: t.einsum("ij,jk->ik", x(3, 3), t.randn(3, 3)),
    lambda t, x: t.nn.functional.linear(x(2, 3), t.randn(4, 3), t.randn(4)),
    lambda t, x: t.nn.functional.bilinear(t.randn(2, 3), t.randn(2, 3), t.randn(2, 3, 3)),
    lambda t, x: t.nn.Conv2d(2, 3, 3)(x(1, 2, 5, 5)),
    lambda t, x: t.nn.LSTM(3, 4)(x(5, 2, 3))[0],
    lambda t, x: t.nn.RNN(3, 4)(x(5, 2, 3))[0],
    lambda t, x: t.nn.GRUCell(3, 4)(t.randn(2, 3)),
    lambda t, x: t.nn.MultiheadAttention(4, 2)(x(3, 2, 4), x(3, 2, 4), x(3, 2, 4))[0],
    lambda t, x: t.nn.TransformerEncoderLayer(4, 2, 8, 0.0)(x(3, 2, 4)),
    lambda t, x: t.nn.BatchNorm1d(3)(x(4, 3)),
    lambda t, x: t.softmax(x(3, 3), 1),
    lambda t, x: t.nn.functional.l1_loss(x(3), x(3)),
    lambda t, x: t.nn.functional.cross_entropy(x(3, 4), t.tensor([0, 1, 2])),
    lambda t, x: t.nn.functional.cosine_embedding_loss(x(3, 4), x(3, 4), t.ones(3)),
    lambda t, x: t.stack([x(3), t.randn(3)]),
    lambda t, x: t.stack([x(3), x(3)]),
    lambda t, x: t.fft.rfft(x(8)),
    lambda t, x: t.linalg.inv(x(3, 3)),
    lambda t, x: x(3).prod(),
]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("case", range(len(AUTOCAST)))
def test_autocast_picks_the_same_dtypes(case, dtype):
    def program(t):
        with t.autocast("cpu", dtype=t.bfloat16):
            result = AUTOCAST[case](t, lambda *shape: t.randn(*shape).to(getattr(t, dtype)))
        return [str(result.dtype), t.view_as_real(result) if result.is_complex() else result.float()]

    check(program, 0.02)
