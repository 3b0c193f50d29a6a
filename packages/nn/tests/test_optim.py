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
        tolerance = 1e-12 if dtype is torch.float64 else 1e-5
        np.testing.assert_allclose(p.detach().to(torch.float64).numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("cls", [optim.SGD, optim.Adam, optim.AdamW])
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
    assert late.tolist()[0] == pytest.approx(0.9, abs=2e-3)


def test_complex_parameters_step_like_their_parts():
    z = nn.Parameter(torch.tensor([1 + 2j, 3 - 1j]))
    parts = nn.Parameter(torch.tensor([[1.0, 2.0], [3.0, -1.0]]))
    both = optim.Adam([z], lr=0.1), optim.Adam([parts], lr=0.1)
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
