"""Optimisers against the formulas of their papers in NumPy, and their groups, state dicts and hooks."""

import copy
import pickle

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn, optim


def parameters(*shapes, dtype=torch.float64):
    values = np.random.default_rng(0)
    return [nn.Parameter(torch.from_numpy(values.normal(size=shape)).to(dtype)) for shape in shapes]


def gradients(params, step):
    values = np.random.default_rng(step + 1)
    return [values.normal(size=tuple(p.shape)) for p in params]


def sgd(p, steps, lr, momentum=0, dampening=0, weight_decay=0, nesterov=False, maximize=False):
    buffer = None
    for g in steps:
        g = (-g if maximize else g) + weight_decay * p
        if momentum:
            buffer = g.copy() if buffer is None else momentum * buffer + (1 - dampening) * g
            g = g + momentum * buffer if nesterov else buffer
        p = p - lr * g
    return p


def adam(
    p, steps, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, maximize=False, decoupled=False
):
    m = v = greatest = np.zeros_like(p)
    for t, g in enumerate(steps, 1):
        g = -g if maximize else g
        if decoupled:
            p = p * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        greatest = np.maximum(greatest, v)
        second = greatest if amsgrad else v
        p = p - lr * (m / (1 - betas[0] ** t)) / (np.sqrt(second / (1 - betas[1] ** t)) + eps)
    return p


def rmsprop(p, steps, lr=0.01, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False, maximize=False):
    square = mean = buffer = np.zeros_like(p)
    for g in steps:
        g = (-g if maximize else g) + weight_decay * p
        square = alpha * square + (1 - alpha) * g * g
        mean = alpha * mean + (1 - alpha) * g
        buffer = momentum * buffer + g / (np.sqrt(square - centered * mean * mean) + eps)
        p = p - lr * buffer
    return p


def adagrad(p, steps, lr=0.01, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10, maximize=False):
    total = np.full_like(p, initial_accumulator_value)
    for t, g in enumerate(steps):
        g = (-g if maximize else g) + weight_decay * p
        total = total + g * g
        p = p - lr / (1 + t * lr_decay) * g / (np.sqrt(total) + eps)
    return p


def adadelta(p, steps, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, maximize=False):
    square = change = np.zeros_like(p)
    for g in steps:
        g = (-g if maximize else g) + weight_decay * p
        square = rho * square + (1 - rho) * g * g
        delta = np.sqrt(change + eps) / np.sqrt(square + eps) * g
        change = rho * change + (1 - rho) * delta * delta
        p = p - lr * delta
    return p


def adamax(p, steps, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, maximize=False):
    m = top = np.zeros_like(p)
    for t, g in enumerate(steps, 1):
        g = (-g if maximize else g) + weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        top = np.maximum(betas[1] * top, np.abs(g) + eps)
        p = p - lr / (1 - betas[0] ** t) * m / top
    return p


def nadam(p, steps, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, momentum_decay=4e-3,
          decoupled_weight_decay=False, maximize=False):  # fmt: skip
    m = v = np.zeros_like(p)
    product = 1
    for t, g in enumerate(steps, 1):
        g = -g if maximize else g
        if decoupled_weight_decay:
            p = p * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * p
        mu, following = (betas[0] * (1 - 0.5 * 0.96 ** (s * momentum_decay)) for s in (t, t + 1))
        product *= mu
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        mean = following * m / (1 - product * following) + (1 - mu) * g / (1 - product)
        p = p - lr * mean / (np.sqrt(v / (1 - betas[1] ** t)) + eps)
    return p


def radam(p, steps, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, decoupled_weight_decay=False,
          maximize=False):  # fmt: skip
    m = v = np.zeros_like(p)
    longest = 2 / (1 - betas[1]) - 1
    for t, g in enumerate(steps, 1):
        g = -g if maximize else g
        if decoupled_weight_decay:
            p = p * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        length = longest - 2 * t * betas[1] ** t / (1 - betas[1] ** t)
        mean = m / (1 - betas[0] ** t)
        if length > 5:
            r = np.sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length))
            mean = mean * r * np.sqrt(1 - betas[1] ** t) / (np.sqrt(v) + eps)
        p = p - lr * mean
    return p


def rprop(p, steps, lr=0.01, etas=(0.5, 1.2), step_sizes=(1e-6, 50), maximize=False):
    size, before = np.full_like(p, lr), np.zeros_like(p)
    for g in steps:
        g = -g if maximize else g
        agree = g * before
        size = np.clip(size * np.select([agree > 0, agree < 0], etas[::-1], 1.0), *step_sizes)
        before = np.where(agree < 0, 0, g)
        p = p - np.sign(before) * size
    return p


def asgd(p, steps, lr=0.01, lambd=1e-4, alpha=0.75, weight_decay=0, maximize=False):
    eta = lr
    for t, g in enumerate(steps, 1):
        g = (-g if maximize else g) + weight_decay * p
        p = p * (1 - lambd * eta) - eta * g
        eta = lr / (1 + lambd * lr * t) ** alpha
    return p


SGD = [
    {"lr": 0.1},
    {"lr": 0.1, "momentum": 0.9},
    {"lr": 0.1, "momentum": 0.9, "dampening": 0.2, "weight_decay": 0.1},
    {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    {"lr": 0.1, "maximize": True},
]
ADAM = [
    {},
    {"weight_decay": 0.1},
    {"amsgrad": True, "betas": (0.5, 0.6)},
    {"lr": 0.1, "eps": 0.01, "maximize": True},
]
CASES = [
    *((optim.SGD, sgd, options) for options in SGD),
    *((optim.Adam, adam, options) for options in ADAM),
    *((optim.AdamW, lambda p, steps, **kw: adam(p, steps, decoupled=True, **kw), options) for options in ADAM[1:]),
    *(
        (cls, formula, {**base, **options})
        for cls, formula, variants in (
            (optim.RMSprop, rmsprop, [{}, {"momentum": 0.9}, {"centered": True}, {"momentum": 0.5, "centered": True}]),
            (optim.Adagrad, adagrad, [{}, {"lr_decay": 0.1, "initial_accumulator_value": 0.3}]),
            (optim.Adadelta, adadelta, [{}, {"rho": 0.5, "lr": 0.1}]),
            (optim.Adamax, adamax, [{}, {"betas": (0.5, 0.6)}]),
            (optim.NAdam, nadam, [{}, {"decoupled_weight_decay": True}, {"momentum_decay": 0.1}]),
            (optim.RAdam, radam, [{}, {"betas": (0.5, 0.6)}, {"betas": (0.5, 0.6), "decoupled_weight_decay": True}]),
            (optim.ASGD, asgd, [{}, {"lambd": 0.1, "alpha": 0.5}]),
        )
        for options in variants
        for base in ({}, {"weight_decay": 0.1, "maximize": True})
    ),
    *((optim.Rprop, rprop, options) for options in ({}, {"etas": (0.3, 1.5), "lr": 0.1, "maximize": True})),
]


@pytest.mark.parametrize(("cls", "formula", "options"), CASES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_steps_follow_the_formula(cls, formula, options, dtype):
    params = parameters((3, 4), (5,), (), (0, 2), dtype=dtype)
    before = [p.detach().to(torch.float64).numpy().copy() for p in params]
    optimizer = cls(params, **options)
    for step in range(4):
        for p, g in zip(params, gradients(params, step), strict=True):
            p.grad = torch.from_numpy(np.asarray(g)).to(dtype)
        optimizer.step()
    if cls is optim.AdamW:
        options = {"weight_decay": 0.01, **options}
    for i, (p, start) in enumerate(zip(params, before, strict=True)):
        expected = formula(start, [gradients(params, step)[i] for step in range(4)], **options)
        # ASGD and NAdam keep a factor of the step in float32, for a parameter as a whole.
        tolerance = 1e-12 if dtype is torch.float64 and cls not in (optim.ASGD, optim.NAdam) else 1e-5
        np.testing.assert_allclose(p.detach().to(torch.float64).numpy(), expected, rtol=tolerance, atol=tolerance)


ELEMENTWISE = [
    optim.ASGD, optim.Adadelta, optim.Adagrad, optim.Adam, optim.AdamW, optim.Adamax, optim.NAdam, optim.RAdam,
    optim.RMSprop, optim.Rprop, optim.SGD,
]  # fmt: skip


@pytest.mark.parametrize("cls", ELEMENTWISE)
def test_parameters_without_gradient_and_strided_ones(cls):
    options = {"momentum": 0.9} if cls is optim.SGD else {}
    plain = nn.Parameter(torch.arange(12.0).reshape(3, 4))
    strided = nn.Parameter(torch.arange(12.0).reshape(3, 4).t().contiguous().t())
    late = nn.Parameter(torch.ones(2))
    optimizer = cls([plain, strided, late], lr=0.1, **options)
    for step in range(3):
        plain.grad = torch.arange(12.0).reshape(3, 4) - step
        strided.grad = (torch.arange(12.0).reshape(3, 4) - step).t().contiguous().t()
        late.grad = torch.ones(2) if step == 2 else None
        optimizer.step()
        assert plain.tolist() == strided.tolist()
    assert late.tolist()[0] < 1


@pytest.mark.parametrize("cls", ELEMENTWISE)
def test_complex_parameters_step_like_their_parts(cls):
    z = nn.Parameter(torch.tensor([1 + 2j, 3 - 1j]))
    parts = nn.Parameter(torch.tensor([[1.0, 2.0], [3.0, -1.0]]))
    both = cls([z], lr=0.1), cls([parts], lr=0.1)
    for _ in range(3):
        z.grad, parts.grad = torch.tensor([1 - 1j, 2 + 3j]), torch.tensor([[1.0, -1.0], [2.0, 3.0]])
        for optimizer in both:
            optimizer.step()
    np.testing.assert_allclose(torch.view_as_real(z.detach()).numpy(), parts.detach().numpy(), rtol=1e-6)


def test_a_step_bumps_the_version_and_keeps_no_history():
    w = nn.Parameter(torch.ones(2))
    optimizer = optim.SGD([w], lr=0.1)
    loss = (w * w).sum()
    (w * w).sum().backward()
    optimizer.step()
    assert w.is_leaf
    assert w.requires_grad
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("cls", ELEMENTWISE)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_parameters_step_like_floats(cls, dtype):
    half, single = nn.Parameter(torch.tensor([1.0, -2.0]).to(dtype)), nn.Parameter(torch.tensor([1.0, -2.0]))
    both = cls([half], lr=0.1), cls([single], lr=0.1)
    for step in range(3):
        single.grad = torch.tensor([0.5, step - 1.0])
        half.grad = single.grad.to(dtype)
        for optimizer in both:
            optimizer.step()
    assert half.dtype is dtype
    np.testing.assert_allclose(half.detach().float().numpy(), single.detach().numpy(), atol=0.05)


@pytest.mark.parametrize("cls", [cls for cls in ELEMENTWISE if cls is not optim.AdamW])
def test_differentiable_steps(cls):
    def end(grad):
        p = torch.tensor([1.0, 2.0], dtype=torch.float64).clone()
        optimizer = cls([p], lr=0.1, differentiable=True)
        p.grad = grad
        optimizer.step()
        return p

    grad = torch.tensor([0.3, -0.4], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(end, grad)


def test_a_differentiable_step_reaches_the_learning_rate():
    lr = torch.tensor(0.1, requires_grad=True)
    p = torch.ones(2, requires_grad=True).clone()
    optimizer = optim.SGD([p], lr=lr, differentiable=True)
    p.grad = torch.tensor([1.0, 2.0])
    optimizer.step()
    p.sum().backward()
    assert lr.grad.item() == -3


def test_a_learning_rate_may_be_a_tensor():
    p = nn.Parameter(torch.ones(1))
    optimizer = optim.Adam([p], lr=torch.tensor(0.5))
    p.grad = torch.ones(1)
    optimizer.step()
    assert p.item() == pytest.approx(0.5)
    with pytest.raises(ValueError, match="Tensor lr must be 1-element"):
        optim.SGD([p], lr=torch.ones(2))


def test_state_dicts_of_old_hold_numbers():
    p = nn.Parameter(torch.ones(1))
    optimizer = optim.NAdam([p])
    p.grad = torch.ones(1)
    optimizer.step()
    state = optimizer.state_dict()
    state["state"][0].update(step=1, mu_product=state["state"][0]["mu_product"].item())
    for name in ("maximize", "foreach", "capturable", "differentiable", "decoupled_weight_decay"):
        del state["param_groups"][0][name]
    optimizer.load_state_dict(state)
    optimizer.step()
    assert optimizer.state[p]["step"].item() == 2


@pytest.mark.parametrize("cls", [cls for cls in ELEMENTWISE if cls not in (optim.Adagrad, optim.SGD)])
def test_sparse_gradients_are_refused(cls):
    p = nn.Parameter(torch.ones(2))
    p.grad = torch.tensor([1.0, 0.0]).to_sparse()
    with pytest.raises(RuntimeError, match="does not support sparse gradients"):
        cls([p]).step()


def test_adagrad_of_sparse_gradients():
    dense, sparse = (nn.Parameter(torch.ones(4, 2)) for _ in range(2))
    both = [optim.Adagrad([p], lr=0.1, lr_decay=0.1, maximize=True) for p in (dense, sparse)]
    for step in range(3):
        dense.grad = torch.zeros(4, 2)
        dense.grad[step : step + 2] = step + 1.0
        sparse.grad = dense.grad.to_sparse()
        for optimizer in both:
            optimizer.step()
    np.testing.assert_allclose(sparse.detach().numpy(), dense.detach().numpy(), rtol=1e-6)


def test_asgd_averages():
    p = nn.Parameter(torch.tensor([4.0], dtype=torch.float64))
    optimizer, seen = optim.ASGD([p], lr=0.1, lambd=0, t0=0), []
    for g in (1.0, 3.0, -2.0):
        p.grad = torch.tensor([g], dtype=torch.float64)
        optimizer.step()
        seen.append(p.item())
    assert optimizer.state[p]["ax"].item() == pytest.approx(np.mean(seen[1:]), rel=1e-6)


@pytest.mark.parametrize("shape", [(4, 3), (5,), ()])
def test_adafactor(shape):
    (p,) = parameters(shape)
    x, (grad, *_) = p.detach().numpy().copy(), gradients([p], 0)
    optimizer = optim.Adafactor([p], lr=0.05, weight_decay=0.1)
    p.grad = torch.from_numpy(np.asarray(grad))
    optimizer.step()
    # One step: the weight of the first gradient in the second mean is 1.
    rms = lambda a: np.sqrt(np.mean(a * a))
    square = np.asarray(grad * grad)
    if len(shape) == 2:
        square = square.mean(1, keepdims=True) * square.mean(0, keepdims=True) / square.mean()
    update = grad / np.sqrt(square)
    expected = x * (1 - 0.05 * 0.1) - max(1e-3, rms(x)) * 0.05 / max(1, rms(update)) * update
    np.testing.assert_allclose(p.detach().numpy(), expected, rtol=1e-10)


def test_muon_steps_are_nearly_orthogonal():
    p = nn.Parameter(torch.zeros(6, 4))
    p.grad = torch.from_numpy(np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32))
    optim.Muon([p], lr=1.0, weight_decay=0.0).step()
    u, _, v = np.linalg.svd(p.grad.numpy(), full_matrices=False)
    update = -p.detach().numpy() / np.sqrt(6 / 4)
    assert np.all(np.abs(np.linalg.svd(update, compute_uv=False) - 1) < 0.4)
    np.testing.assert_allclose(update, u @ v, atol=0.35)
    with pytest.raises(ValueError, match="Muon only supports 2D parameters"):
        optim.Muon([nn.Parameter(torch.ones(3))])


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_solves_a_quadratic(search):
    values = np.random.default_rng(0)
    root, b = values.normal(size=(5, 5)), values.normal(size=5)
    a = root @ root.T + np.eye(5)
    x = nn.Parameter(torch.zeros(5, dtype=torch.float64))
    optimizer = optim.LBFGS([x], max_iter=100, line_search_fn=search, tolerance_grad=1e-10, tolerance_change=1e-14)

    def closure():
        optimizer.zero_grad()
        loss = 0.5 * x @ torch.from_numpy(a) @ x - torch.from_numpy(b) @ x
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 0
    np.testing.assert_allclose(x.detach().numpy(), np.linalg.solve(a, b), rtol=1e-6)
    state = optimizer.state_dict()["state"][0]
    assert state["func_evals"] >= state["n_iter"] > 5
    with pytest.raises(ValueError, match="per-parameter options"):
        optim.LBFGS([{"params": [x]}, {"params": [nn.Parameter(torch.ones(1))]}])


def test_lbfgs_of_complex_and_of_unused_parameters():
    z, unused = nn.Parameter(torch.tensor([1 + 2j])), nn.Parameter(torch.ones(2))
    optimizer = optim.LBFGS([z, unused], line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = ((z - (3 - 1j)).abs() ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    np.testing.assert_allclose(z.detach().numpy(), [3 - 1j], rtol=1e-5)
    assert unused.tolist() == [1, 1]


def test_closure_runs_with_gradients():
    w = nn.Parameter(torch.ones(1))
    optimizer = optim.SGD([w], lr=0.25)

    def closure():
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        assert optimizer.step(closure).item() == 1
    assert w.item() == 0.5


def test_zero_grad():
    w = nn.Parameter(torch.ones(1))
    optimizer = optim.SGD([w], lr=0.1)
    w.grad = torch.ones(1)
    grad = w.grad
    optimizer.zero_grad(set_to_none=False)
    assert w.grad is grad
    assert grad.item() == 0
    optimizer.zero_grad()
    assert w.grad is None


# -- groups


def test_groups_have_their_own_options():
    a, b = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    optimizer = optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.1)
    a.grad = b.grad = torch.ones(1)
    optimizer.step()
    assert (a.item(), b.item()) == (pytest.approx(0.9), 0.5)
    optimizer.param_groups[0]["lr"] = 0
    optimizer.step()
    assert (a.item(), b.item()) == (pytest.approx(0.9), 0)
    assert repr(optimizer).startswith("SGD (\nParameter Group 0\n    dampening: 0\n")


def test_named_parameters():
    model = nn.Linear(2, 1)
    optimizer = optim.Adam(model.named_parameters())
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    with pytest.raises(ValueError, match="with/without names"):
        optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))]})


W = nn.Parameter(torch.ones(1))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: optim.SGD([], lr=1), ValueError, "empty parameter list"),
        (lambda: optim.SGD(W, lr=1), TypeError, "should be an iterable of Tensors or dicts"),
        (lambda: optim.SGD([3], lr=1), TypeError, "can only optimize Tensors, but one of the params is int"),
        (lambda: optim.SGD([W * 2], lr=1), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda: optim.SGD([{"params": {W}}], lr=1), TypeError, "ordered collections"),
        (lambda: optim.SGD([{"params": [W]}, {"params": [W]}], lr=1), ValueError, "more than one parameter group"),
        (lambda: optim.SGD([W], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda: optim.SGD([W], momentum=-1), ValueError, "Invalid momentum value: -1"),
        (lambda: optim.SGD([W], nesterov=True), ValueError, "Nesterov momentum requires a momentum"),
        (lambda: optim.Adam([W], betas=(0.9, 1.0)), ValueError, "Invalid beta parameter at index 1: 1.0"),
        (lambda: optim.Adam([W], eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda: optim.SGD([W]).add_param_group(3), TypeError, "param_group must be a dict"),
    ],
)
def test_bad_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()


# -- state dicts and hooks


def trained(cls, params, **options):
    optimizer = cls(params, **options)
    for p, g in zip(params, gradients(params, 0), strict=True):
        p.grad = torch.from_numpy(g).to(p.dtype)
    optimizer.step()
    return optimizer


def test_state_dict_has_numbers_for_parameters():
    optimizer = trained(optim.Adam, parameters((2,), (3,)), amsgrad=True)
    state = optimizer.state_dict()
    assert list(state) == ["state", "param_groups"]
    assert state["param_groups"][0]["params"] == [0, 1]
    assert list(state["state"][1]) == ["step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"]
    assert state["state"][1]["step"].item() == 1
    assert state["state"][1]["step"].dtype == torch.float32


@pytest.mark.parametrize(("cls", "options"), [(optim.SGD, {"lr": 0.1, "momentum": 0.9}), (optim.AdamW, {})])
def test_training_goes_on_from_a_state_dict(cls, options):
    a, b = parameters((2, 3)), parameters((2, 3))
    first = trained(cls, a, **options)
    second = cls(b, **options)
    with torch.no_grad():
        b[0].copy_(a[0])
    second.load_state_dict(pickle.loads(pickle.dumps(first.state_dict())))
    for p in (*a, *b):
        p.grad = torch.ones(2, 3, dtype=torch.float64)
    first.step()
    second.step()
    assert a[0].tolist() == b[0].tolist()


def test_loaded_state_takes_the_dtype_of_its_parameter():
    state = trained(optim.Adam, parameters((2,))).state_dict()
    optimizer = optim.Adam(parameters((2,), dtype=torch.float32))
    optimizer.load_state_dict(state)
    loaded = optimizer.state[optimizer.param_groups[0]["params"][0]]
    assert loaded["exp_avg"].dtype == torch.float32
    for groups, message in (
        ([], "different number of parameter groups"),
        ([{"params": [0, 1]}], "doesn't match the size"),
    ):
        with pytest.raises(ValueError, match=message):
            optimizer.load_state_dict({"state": {}, "param_groups": groups})


def test_copies():
    optimizer = trained(optim.SGD, parameters((2,)), lr=0.1, momentum=0.9)
    other = copy.deepcopy(optimizer)
    param = other.param_groups[0]["params"][0]
    assert param is not optimizer.param_groups[0]["params"][0]
    assert list(other.state) == [param]


def test_hooks():
    (w,) = parameters((1,))
    optimizer, seen = optim.SGD([w], lr=0.1), []
    handle = optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append("pre"))
    optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append("post"))
    optimizer.step()
    assert seen == ["pre", "post"]
    handle.remove()
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "more": 1})
    assert optimizer.state_dict()["more"] == 1
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
    optimizer.load_state_dict(optimizer.state_dict())
    assert seen[-1] == "loaded"


def test_a_subclass_writes_step():
    class Halve(optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {})

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.mul_(0.5)

    w = nn.Parameter(torch.ones(1))
    optimizer, seen = Halve([w]), []
    optimizer.register_step_post_hook(lambda *args: seen.append(1))
    optimizer.step()
    assert w.item() == 0.5
    assert seen == [1]


def sparse_loss(rows, padding_idx=None):
    torch.manual_seed(0)
    table = nn.Embedding(6, 3, padding_idx=padding_idx, sparse=True, dtype=torch.float64)
    return table, lambda: (table(torch.tensor(rows)) ** 2).sum().backward()


@pytest.mark.parametrize("options", [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}, {"maximize": True}])
def test_sgd_of_sparse_gradients(options):
    table, backward = sparse_loss([[1, 2, 4], [4, 5, 2]], padding_idx=2)
    start = table.weight.detach().numpy().copy()
    optimizer = optim.SGD(table.parameters(), lr=0.1, **options)
    steps = []
    for _ in range(3):
        optimizer.zero_grad()
        backward()
        assert table.weight.grad.is_sparse
        steps.append(table.weight.grad.to_dense().numpy())
        assert not steps[-1][[0, 2, 3]].any()
        optimizer.step()
    np.testing.assert_allclose(table.weight.detach().numpy(), sgd(start, steps, 0.1, **options))


def test_sparse_adam():
    table, backward = sparse_loss([1, 4, 4])
    start = table.weight.detach().numpy().copy()
    optimizer = optim.SparseAdam(table.parameters(), lr=0.1, eps=1e-14)  # added at another place than Adam's
    steps = []
    for _ in range(3):
        optimizer.zero_grad()
        backward()
        steps.append(table.weight.grad.to_dense().numpy()[[1, 4]])
        optimizer.step()
    expected = adam(start[[1, 4]], steps, 0.1, eps=1e-14)
    np.testing.assert_allclose(table.weight.detach().numpy()[[1, 4]], expected)
    np.testing.assert_array_equal(table.weight.detach().numpy()[[0, 2, 3, 5]], start[[0, 2, 3, 5]])
    with pytest.raises(RuntimeError, match="Adam does not support sparse gradients"):
        optim.Adam(table.parameters()).step()
    table.weight.grad = torch.ones(6, 3, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        optimizer.step()


def test_embedding_refuses_scaled_sparse_gradients():
    with pytest.raises(RuntimeError, match="scale_grad_by_freq not supported with sparse"):
        nn.functional.embedding(torch.tensor([0]), torch.ones(2, 3), scale_grad_by_freq=True, sparse=True)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_anomaly_mode_names_the_step_that_overwrote_a_parameter(count):
    params = [torch.ones(3, requires_grad=True) for _ in range(count)]
    optimizer = torch.optim.SGD(params, 0.1)
    with torch.autograd.detect_anomaly():
        loss = sum((param**2).sum() for param in params)
        loss.backward(retain_graph=True)
        for _ in range(20):
            optimizer.step()
        with pytest.raises(RuntimeError, match=r"sgd_step_ at .*test_optim\.py"):
            loss.backward()
