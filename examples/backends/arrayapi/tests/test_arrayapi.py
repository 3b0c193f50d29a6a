"""The devices of array libraries, each where its library is installed and has a device."""

import numpy as np
import pytest

import rushlight as torch
from rushlight.testing import assert_close


@pytest.fixture(params=["strict", "dpnp"])
def device(request):
    torch.plugin.load("arrayapi")
    try:
        torch.empty(1, device=request.param)
    except RuntimeError as error:
        if "is not installed" not in str(error) and "does not open" not in str(error):
            raise
        pytest.skip(str(error))
    return request.param


def test_results_are_those_of_the_cpu(device):
    torch.manual_seed(0)
    x = torch.rand(3, 4)
    for run in (
        lambda x: torch.softmax(x @ x.T, 1),
        lambda x: x.sort(1).values,
        lambda x: x[x > 0.5],
        lambda x: x.var(0),
    ):
        assert_close(run(x.to(device)).cpu(), run(x))


def test_training(device):
    autograd = pytest.importorskip("rushlight.autograd", exc_type=ImportError)
    x, y = torch.linspace(-1, 1, 20).reshape(-1, 1), torch.linspace(-3, 1, 20).reshape(-1, 1)
    weight = torch.zeros(1, 1, device=device).requires_grad_()
    bias = torch.zeros(1, device=device).requires_grad_()
    x, y = x.to(device), y.to(device)
    for _ in range(100):
        loss = ((x @ weight + bias - y) ** 2).mean()
        for leaf, grad in zip((weight, bias), autograd.grad(loss, (weight, bias)), strict=True):
            leaf.detach().sub_(grad, alpha=0.5)
    assert_close(
        torch.cat([weight.detach().flatten(), bias.detach()]).cpu(), torch.tensor([2.0, -1.0]), rtol=1e-3, atol=1e-3
    )


def test_arrays_hide_from_numpy(device):
    with pytest.raises(TypeError, match="Copy it to the host"):
        np.asarray(torch.plugin.to_array(torch.ones(2, device=device)))
