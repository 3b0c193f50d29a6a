"""Batches of gradients in one pass; test_rules.py has every operator."""

import numpy as np
import pytest

import rushlight as torch
from rushlight.autograd import Function, _batching, grad
from rushlight.autograd._batching import map_batch
from rushlight.autograd.functional import hessian, jacobian
from rushlight.plugin import plugins


def test_a_batch_runs_once(monkeypatch):
    monkeypatch.setattr(_batching, "_each", lambda call: pytest.fail(f"{call.record.name} ran entry by entry"))
    rng = np.random.default_rng(0)
    weight, x = (torch.from_numpy(rng.standard_normal(shape)) for shape in ((6, 5), (4, 5)))

    def network(x):
        y = torch.tanh(x @ weight.t() + x[:, :1]).reshape(2, 12).softmax(1)
        return torch.cat([y.cumsum(1), y.permute(1, 0).reshape(2, 12)]).transpose(0, 1)[1::2].pow(2).sum(0)

    found = jacobian(network, x, vectorize=True)
    forward = jacobian(network, x, vectorize=True, strategy="forward-mode")
    out = network(x.requires_grad_())
    rows = torch.stack([grad(o, x, retain_graph=True)[0] for o in out])
    np.testing.assert_allclose(found, rows, rtol=1e-10)
    np.testing.assert_allclose(forward, rows, rtol=1e-10)


@pytest.mark.skipif(all(p.name != "nn" for p in plugins()), reason="needs rushlight-nn")
def test_a_batch_runs_once_through_a_network(monkeypatch):
    f = torch.nn.functional
    torch.manual_seed(0)
    x, weight, image = torch.randn(2, 3, 6, 6), torch.randn(4, 3, 3, 3), torch.randn(2, 5, 4)

    def convolutions(x, weight):
        y = f.relu(f.conv2d(x, weight, padding=1))
        y = f.avg_pool2d(f.max_pool2d(y, 2), 2) + f.adaptive_avg_pool2d(y, 1)
        return f.interpolate(f.batch_norm(y, None, None, training=True), scale_factor=2, mode="bilinear")[:, 0, 0]

    def attention(q):
        y = f.layer_norm(f.scaled_dot_product_attention(q, q, q), (4,))
        return f.cross_entropy(y.sum(1), torch.tensor([1, 3]), reduction="none")

    for function, inputs in ((convolutions, (x, weight)), (attention, (image,))):
        rows = jacobian(function, inputs)
        with monkeypatch.context() as patch:
            patch.setattr(_batching, "_each", lambda call: pytest.fail(f"{call.record.name} ran entry by entry"))
            together = jacobian(function, inputs, vectorize=True)
        for found, expected in zip(together, rows, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


SELECTIONS = {
    "take": lambda x: x.take(torch.tensor([[0, -1], [5, 5]])),
    "put": lambda x: x.put(torch.tensor([0, -1]), x[0, :2] * 3),
    "put_accumulate": lambda x: x.put(torch.tensor([0, 0]), x[0, :2] * 3, accumulate=True),
    "masked_select": lambda x: x.masked_select(torch.tensor([True, False, True])) ** 2,
    "masked_scatter": lambda x: x.masked_scatter(torch.tensor([True, False, True]), x.flip(0) * 2),
    "as_strided_scatter": lambda x: torch.as_strided_scatter(x * x, x[0, :2] * 3, (2,), (3,), 1),
    "roll": lambda x: (x * x).roll(2),
    "select": lambda x: (x * x)[:, 1],
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_selections_of_all_entries_at_once(name, monkeypatch):
    x = torch.arange(6, dtype=torch.float64).reshape(2, 3) + 1
    rows = jacobian(SELECTIONS[name], x)
    monkeypatch.setattr(_batching, "_each", lambda call: pytest.fail(f"{call.record.name} ran entry by entry"))
    for strategy in ("reverse-mode", "forward-mode"):
        np.testing.assert_array_equal(jacobian(SELECTIONS[name], x, vectorize=True, strategy=strategy), rows)


@pytest.mark.skipif(all(p.name != "linalg" for p in plugins()), reason="needs rushlight-linalg")
def test_solutions_of_all_entries_at_once(monkeypatch):
    a = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 3, 3)))
    b, symmetric = a[0, :, :2].clone(), a + a.mT
    factors = torch.linalg.lu_factor(a)
    diagonal = torch.linalg.ldl_factor(symmetric)
    reflectors, tau = torch.geqrf(a)
    calls = {
        "lu": lambda b: torch.linalg.lu_solve(*factors, b),
        "ldl": lambda b: torch.linalg.ldl_solve(*diagonal, b),
        "ormqr": lambda b: torch.ormqr(reflectors, tau, b.expand(2, 3, 2)),
        "solve": lambda b: torch.linalg.solve(a, b),
    }
    for call in calls.values():
        rows = jacobian(call, b)
        with monkeypatch.context() as patch:
            patch.setattr(_batching, "_each", lambda call: pytest.fail(f"{call.record.name} ran entry by entry"))
            np.testing.assert_allclose(jacobian(call, b, vectorize=True), rows, atol=1e-12)


def test_a_batch_has_no_truth_value():
    for ask in (bool, float, lambda x: x.item()):
        with pytest.raises(RuntimeError, match=r"calling \.item\(\) on a Tensor.*batch of 4 tensors"):
            map_batch(lambda v, ask=ask: ask((v > 0).any()), torch.ones(4, 2))


def test_derivatives_of_a_batch_of_gradients(leaf):
    x = leaf([0.5, 1.0, 2.0])
    (rows,) = grad((x**3).exp(), x, torch.eye(3, dtype=x.dtype), create_graph=True, is_grads_batched=True)
    (second,) = grad(rows.sum(), x)
    v = x.detach().numpy()
    np.testing.assert_allclose(second, np.exp(v**3) * (9 * v**4 + 6 * v), rtol=1e-10)
    for outer in ("reverse-mode", "forward-mode"):
        found = hessian(lambda x: (x**3).sum(), x.detach(), vectorize=True, outer_jacobian_strategy=outer)
        np.testing.assert_allclose(found, np.diag(6 * v), rtol=1e-10)


def test_writes_to_views(leaf):
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1
    y[1:].mul_(x[:2])
    y.as_strided((2,), (2,)).sin_()
    single = [grad(y, x, unit, retain_graph=True)[0] for unit in torch.eye(3, dtype=x.dtype)]
    (together,) = grad(y, x, torch.eye(3, dtype=x.dtype), is_grads_batched=True)
    np.testing.assert_allclose(together, torch.stack(single), rtol=1e-12)


class ThroughNumPy(Function):
    @staticmethod
    def forward(ctx, x):
        return torch.from_numpy(x.detach().numpy() * 3)

    @staticmethod
    def backward(ctx, g):
        return torch.from_numpy(g.numpy() * 3)


def test_functions_of_users_run_entry_by_entry(leaf):
    x = leaf([1.0, 2.0])
    (found,) = grad(ThroughNumPy.apply(x * x), x, torch.eye(2, dtype=x.dtype), is_grads_batched=True)
    np.testing.assert_allclose(found, [[6, 0], [0, 12]])


def test_nested_batches():
    def outer(v):
        (inner,) = map_batch(lambda w: (w * v,), torch.arange(3.0))
        return (inner.sum(), inner[1] * 2)

    total, twice = map_batch(outer, torch.tensor([1.0, 10.0]))
    assert (total.tolist(), twice.tolist()) == ([3, 30], [2, 20])


def test_promotion_of_entries_without_dimensions():
    wide = torch.ones((), dtype=torch.float64).expand(2)
    (product,) = map_batch(lambda w: (w * torch.ones(3),), wide)
    assert product.dtype == torch.float32


def test_empty_batches_and_misuse(leaf):
    x = leaf([1.0, 2.0, 3.0])
    y = x * x
    assert grad(y, x, torch.ones(0, 3), is_grads_batched=True, retain_graph=True)[0].shape == (0, 3)
    for wrong in (torch.ones(2, 4), torch.ones(3), torch.tensor(1.0)):
        with pytest.raises(RuntimeError, match="interpret the first dimension of each grad_output as the batch"):
            grad(y, x, wrong, is_grads_batched=True)
    with pytest.raises(ValueError, match=r"same size in the mapped dimension, got sizes \[2, 3\]"):
        grad((y, y), x, (torch.ones(2, 3), torch.ones(3, 3)), is_grads_batched=True)
    with pytest.raises(RuntimeError, match=r"add_\(self, \*extra_args\) is not possible"):
        map_batch(lambda v: (torch.zeros(2).add_(v),), torch.ones(4, 2))
    with pytest.raises(TypeError, match="batched"):
        map_batch(lambda v: (torch.from_numpy(v.numpy()),), torch.ones(4, 2))
