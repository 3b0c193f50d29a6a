"""cdist in all norms and ways, its gradients, renorm, and what they refuse."""

import math

import numpy as np
import pytest

import rushlight as torch

MODES = ["use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist", "use_mm_for_euclid_dist_if_necessary"]


def by_definition(a, b, p):
    size = np.abs(a[:, None] - b[None])
    if p == 0:
        return (size != 0).sum(-1)
    return size.max(-1) if p == math.inf else (size**p).sum(-1) ** (1 / p)


@pytest.mark.parametrize("p", [0, 0.5, 1, 1.5, 2, 3, math.inf])
@pytest.mark.parametrize(("rows", "others", "m"), [(1, 1, 1), (3, 70, 5), (40, 130, 17), (5, 64, 3)])
def test_norms(p, rows, others, m):
    a, b = (torch.randn(n, m, dtype=torch.float64) for n in (rows, others))
    np.testing.assert_allclose(torch.cdist(a, b, p).numpy(), by_definition(a.numpy(), b.numpy(), p), rtol=1e-9)
    result = torch.cdist(a.float(), b.float(), p, "donot_use_mm_for_euclid_dist")
    np.testing.assert_allclose(result.numpy(), by_definition(a.numpy(), b.numpy(), p), rtol=3e-4)


@pytest.mark.parametrize("mode", MODES)
def test_modes_agree(mode):
    a, b = torch.randn(30, 8, dtype=torch.float64), torch.randn(2, 40, 8, dtype=torch.float64)
    expected = (a.unsqueeze(1) - b.unsqueeze(1)).norm(dim=-1)
    assert torch.allclose(torch.cdist(a, b, compute_mode=mode), expected)


def test_nan_and_equal_points():
    a = torch.tensor([[0.0, 1.0], [math.nan, 0.0]])
    for p in (1, 2, 3, math.inf):
        distances = torch.cdist(a, a, p)
        assert distances[0, 0].item() == 0
        assert distances[1].isnan().all()


@pytest.mark.parametrize("p", [0, 0.7, 1, 1.5, 2, 3, math.inf])
@pytest.mark.parametrize("mode", MODES[:2])
def test_gradients(p, mode):
    autograd = pytest.importorskip("rushlight.autograd")
    a, b = (torch.randn(n, 3, dtype=torch.float64, requires_grad=True) for n in (4, 5))
    assert autograd.gradcheck(lambda a, b: torch.cdist(a, b, p, mode), (a, b))
    if p != 0:
        assert autograd.gradgradcheck(lambda a, b: torch.cdist(a, b, p, mode), (a, b))


def test_gradient_of_equal_points_is_zero():
    pytest.importorskip("rushlight.autograd")
    a = torch.ones(2, 3, requires_grad=True)
    for mode in MODES:
        torch.cdist(a, a.detach(), compute_mode=mode).sum().backward()
        assert (a.grad == 0).all()


def test_result_does_not_depend_on_threads():
    a, b = torch.randn(200, 20), torch.randn(300, 20)
    before = torch.get_num_threads()
    try:
        results = []
        for threads in (1, 3):
            torch.set_num_threads(threads)
            results.append(torch.cdist(a, b, 3))
        assert torch.equal(*results)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: torch.cdist(torch.ones(3), torch.ones(3, 2)), RuntimeError, "at least 2D"),
        (lambda: torch.cdist(torch.ones(3, 2), torch.ones(3, 1)), RuntimeError, "same number of columns"),
        (lambda: torch.cdist(torch.ones(3, 2), torch.ones(3, 2), -1), RuntimeError, "non-negative"),
        (lambda: torch.cdist(torch.ones(3, 2), torch.ones(3, 2), math.nan), RuntimeError, "non-negative"),
        (lambda: torch.cdist(torch.ones(3, 2).int(), torch.ones(3, 2)), RuntimeError, "floating-point"),
        (lambda: torch.cdist(torch.ones(3, 2), torch.ones(3, 2).double()), RuntimeError, "expected scalar type"),
        (lambda: torch.cdist(torch.ones(3, 2), torch.ones(3, 2), compute_mode="x"), ValueError, "compute_mode"),
        (lambda: torch.cdist(torch.ones(2, 3, 2), torch.ones(3, 3, 2)), RuntimeError, "broadcast"),
        (lambda: torch.renorm(torch.ones(3), 2, 0, 1.0), RuntimeError, "at least 2"),
        (lambda: torch.renorm(torch.ones(3, 3), 0, 0, 1.0), RuntimeError, "non-positive-norm"),
        (lambda: torch.renorm(torch.ones(3, 3), 2, 0, -1.0), RuntimeError, "maxnorm"),
    ],
)
def test_errors(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_renorm_bounds_norms_and_leaves_the_rest():
    x = torch.tensor([[3.0, 4.0], [0.1, 0.2]])
    assert torch.renorm(x, 2, 0, 1.0).norm(dim=1)[0].item() == pytest.approx(1)
    assert x.renorm_(2, 0, 1.0)[1].tolist() == pytest.approx([0.1, 0.2])
