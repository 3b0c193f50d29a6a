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
LAYERS.append((lambda nn: nn.LSTM(3, 5, 2, bidirectional=True, proj_size=2), (5, 2, 3)))
LAYERS.append((lambda nn: nn.RNN(3, 5, nonlinearity="relu"), (5, 2, 3)))
LAYERS.append((lambda nn: nn.RNNCell(3, 5, nonlinearity="relu"), (2, 3)))


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


OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("Adam", {"weight_decay": 0.1}),
    ("Adam", {"amsgrad": True, "maximize": True, "betas": (0.5, 0.7)}),
    ("AdamW", {}),
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


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_training_takes_the_same_course(name):
    def program(t):
        nn = t.nn
        model = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Dropout(0.25),
            nn.Linear(64, 10),
        )
        data = t.utils.data.TensorDataset(t.randn(64, 1, 8, 8), t.randint(0, 10, (64,)))
        optimizer = getattr(t.optim, name)(model.parameters(), lr=0.01)
        losses = []
        for _ in range(5):
            for images, labels in t.utils.data.DataLoader(data, batch_size=16, shuffle=True):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(images), labels)
                loss.backward()
                optimizer.step()
                losses.append(loss)
        return losses

    check(program, 1e-4)


def test_training_of_an_lstm_takes_the_same_course():
    def program(t):
        lstm, head = t.nn.LSTM(8, 16, 2, dropout=0.2), t.nn.Linear(16, 4)
        optimizer = t.optim.Adam([*lstm.parameters(), *head.parameters()], lr=0.01)
        x, y = t.randn(12, 6, 8), t.randint(0, 4, (6,))
        losses = []
        for _ in range(20):
            optimizer.zero_grad()
            loss = t.nn.functional.cross_entropy(head(lstm(x)[0][-1]), y)
            loss.backward()
            optimizer.step()
            losses.append(loss)
        return losses

    check(program, 1e-4)
