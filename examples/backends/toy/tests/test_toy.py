"""The toy device behind its wall, beside a plugin that is broken on purpose."""

import warnings

import numpy as np
import pytest

import rushlight as torch
from rushlight.testing import assert_close


@pytest.fixture(autouse=True, scope="module")
def _loaded():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", torch.plugin.PluginWarning)  # rushlight-toy-broken, where it is installed
        torch.device("toy")


def test_values_cross_the_wall_by_copies_only():
    x = torch.arange(6.0, device="toy").reshape(2, 3)
    assert x.device == torch.device("toy", 0)
    assert_close((x * 2 + 1).sum(0).cpu(), torch.tensor([8.0, 12.0, 16.0]))
    with pytest.raises(TypeError):
        x.numpy()
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        x + torch.ones(2, 3)


def test_arrays_hide_from_numpy():
    array = torch.plugin.backend("toy").from_host(np.ones(3), 0)
    for leak in (np.asarray, np.sin, lambda x: x + np.ones(3), memoryview):
        with pytest.raises(TypeError):
            leak(array)


def test_views_share_memory():
    x = torch.zeros(2, 3, device="toy")
    x[:, 1].add_(5)
    assert_close(x.cpu(), torch.tensor([[0.0, 5, 0], [0, 5, 0]]))


def test_kernels_reach_arrays_and_make_tensors_of_them():
    x = torch.arange(3.0, device="toy")
    array = torch.plugin.to_array(x)
    assert isinstance(array, type(torch.plugin.backend("toy").from_host(np.ones(1), 0)))
    array[1] = 5
    assert_close(torch.plugin.from_array(array * 2, x.device).cpu(), torch.tensor([0.0, 10.0, 4.0]))


def test_operator_of_the_plugin():
    x = torch.linspace(-3, 3, 7)
    expected = (x + (x * x + 4).sqrt()) / 2
    assert_close(torch.ops.toy.squareplus(x), expected)
    assert_close(torch.ops.toy.squareplus(x.to("toy")).cpu(), expected)


def test_gradient_of_the_operator():
    autograd = pytest.importorskip("rushlight.autograd", exc_type=ImportError)
    x = torch.linspace(-3, 3, 7, dtype=torch.float64, requires_grad=True)
    assert autograd.gradcheck(torch.ops.toy.squareplus, (x,))
    y = x.detach().to("toy").requires_grad_()
    torch.ops.toy.squareplus(x).sum().backward()
    torch.ops.toy.squareplus(y).sum().backward()
    assert_close(y.grad.cpu(), x.grad)
