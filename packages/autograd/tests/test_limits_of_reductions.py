"""Gradients of norms, distances and other reductions at zeros and where squares leave the range, by mathematics."""

import math

import numpy as np
import pytest

import rushlight as torch
from rushlight.autograd import grad
from rushlight.autograd.functional import hessian
from rushlight.plugin import plugins, require

require("autograd", "rushlight.autograd")
INF = math.inf
needs_nn = pytest.mark.skipif(all(p.name != "nn" for p in plugins()), reason="needs rushlight-nn")


def gradient(function, values):
    x = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    return grad(function(x).sum(), x)[0].tolist()


def over(function):
    return lambda x: function(x, 0)


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        (torch.norm, [5e-324], [1]),
        (torch.norm, [0.0, -5e-324], [0, -1]),
        (torch.norm, [0.0, 0.0], [0, 0]),
        (lambda x: torch.norm(x) * 1e-300, [3e200, 4e200], [0.6e-300, 0.8e-300]),
        (lambda x: torch.norm(x, 3), [5e-324], [1]),
        (lambda x: torch.norm(x, 1.5), [0.0, 5e-324], [0, 1]),
        (lambda x: torch.norm(x, INF), [5e-324, 0.0], [1, 0]),
        (lambda x: x.expand(4, 2).sum() * 1e-200, [1e-200, 0.0], [4e-200, 4e-200]),
        (torch.prod, [1e-200, 1e-200, 1e200], [1, 1, 0]),
        (torch.var, [1e200, 3e200], [-2e200, 2e200]),
        (torch.std, [1e100, 3e100], [-math.sqrt(0.5), math.sqrt(0.5)]),
        (over(torch.logsumexp), [800.0, 0.0], [1, 0]),
        (over(torch.logsumexp), [-INF, -800.0], [0, 1]),
        (over(torch.logcumsumexp), [-1000.0, 0.0, 1000.0], [1, 1, 1]),
    ],
)
def test_gradients(function, values, expected):
    np.testing.assert_allclose(gradient(function, values), expected, rtol=1e-14)


def hessian_of_norm(x, p):
    """(p - 1) / r (diag((|x_i| / r)^(p - 2)) - s s^T) with the slopes s_i = sign(x_i) (|x_i| / r)^(p - 1)."""
    x = np.array(x)
    scale = np.abs(x).max()
    r = (np.abs(x / scale) ** p).sum() ** (1 / p)
    ratio = np.abs(x / scale) / r
    slopes = np.sign(x) * ratio ** (p - 1)
    return (p - 1) * (np.diag(ratio ** (p - 2)) - np.outer(slopes, slopes)) / r / scale


@pytest.mark.parametrize("p", [2, 3, 1.5])
@pytest.mark.parametrize("values", [[3e-200, 4e-200], [3.0, -4.0, 1.0], [3e200, 4e200]])
def test_second_derivatives_of_norms(p, values):
    expected = hessian_of_norm(values, p)
    found = hessian(lambda x: torch.norm(x, p), torch.tensor(values, dtype=torch.float64)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15 * np.abs(expected).max())
    if 1e-100 < abs(values[0]) < 1e100:  # the squares of distances do leave the range
        found = hessian(lambda x: torch.cdist(x[None], torch.zeros_like(x)[None], p).sum(), torch.tensor(values))
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, INF])
def test_second_derivatives_at_the_kink_of_norms(p):
    point = torch.zeros(2, dtype=torch.float64)
    assert hessian(lambda x: torch.norm(x, p), point).tolist() == [[0, 0], [0, 0]]
    assert hessian(lambda x: torch.cdist(x[None], torch.zeros_like(x)[None], p).sum(), point).tolist() == [
        [0, 0],
        [0, 0],
    ]
    assert np.isfinite(hessian(lambda x: torch.norm(x, p), torch.tensor([0.0, 2.0]).double()).numpy()).all()


@needs_nn
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e200])
def test_cosines(size):
    f = torch.nn.functional
    for cosine in (
        lambda a, b: f.cosine_similarity(a, b, 0),
        lambda a, b: 1 - f.cosine_embedding_loss(a, b, torch.ones((), dtype=torch.float64)),
    ):
        a = torch.tensor([3 * size, 4 * size], dtype=torch.float64, requires_grad=True)
        b = torch.tensor([2.0, 0.0], dtype=torch.float64, requires_grad=True)
        value = cosine(a, b)
        by_a, by_b = (g.numpy() for g in grad(value, (a, b)))
        tolerance = {"rtol": 1e-6 if size < 1 else 1e-11}  # 1e-12 is added to squares
        assert value.item() == pytest.approx(0.6, rel=tolerance["rtol"])
        np.testing.assert_allclose(by_a * size, [(1 - 0.36) / 5, -0.48 / 5], **tolerance)
        np.testing.assert_allclose(by_b, [0, 0.4], **tolerance, atol=1e-7 if size < 1 else 1e-12)
