"""Modules as functions of their parameters."""

import numpy as np
import pytest

import rushlight as rl
from rushlight import func, nn


def test_parameters_and_buffers_in_two_dicts():
    norm = nn.BatchNorm1d(2).eval()
    params = {"weight": rl.tensor([2.0, 3.0]), "bias": rl.tensor([0.5, 1.0])}
    buffers = {"running_mean": rl.ones(2), "running_var": rl.full((2,), 4.0)}
    x = np.array([[3.0, 5.0], [1.0, -1.0]], dtype=np.float32)
    y = func.functional_call(norm, (params, buffers), (rl.from_numpy(x),))
    expected = (x - 1) / np.sqrt(4 + norm.eps) * [2, 3] + [0.5, 1]
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-6)
    assert norm.running_mean.tolist() == [0, 0]


def test_gradients_reach_the_given_tensors():
    layer, weight = nn.Linear(2, 1, bias=False), rl.ones(1, 2, requires_grad=True)
    func.functional_call(layer, {"weight": weight}, rl.tensor([3.0, 4.0])).sum().backward()
    assert weight.grad.tolist() == [[3, 4]]
    assert layer.weight.grad is None


def test_a_name_in_two_dicts_is_refused():
    with pytest.raises(ValueError, match="weight appears in multiple dictionaries"):
        func.functional_call(nn.Linear(1, 1), ({"weight": rl.ones(1, 1)}, {"weight": rl.ones(1, 1)}), rl.ones(1))
    with pytest.raises(RuntimeError, match="bias"):
        func.functional_call(nn.Linear(1, 1), {"weight": rl.ones(1, 1)}, rl.ones(1), strict=True)


def test_stacked_state():
    models = [nn.BatchNorm1d(3) for _ in range(2)]
    models[1].running_mean.fill_(5)
    params, buffers = func.stack_module_state(models)
    assert params["weight"].shape == (2, 3)
    assert params["weight"].requires_grad
    assert params["weight"].is_leaf
    assert buffers["running_mean"][:, 0].tolist() == [0, 5]


def test_what_does_not_stack():
    layers = [nn.Linear(2, 2), nn.Linear(2, 2)]
    with pytest.raises(RuntimeError, match="at least one model"):
        func.stack_module_state([])
    with pytest.raises(RuntimeError, match="same class"):
        func.stack_module_state([layers[0], nn.ReLU()])
    layers[1].bias.requires_grad_(False)
    with pytest.raises(RuntimeError, match="bias parameter to have the same"):
        func.stack_module_state(layers)
    layers[1].eval()
    with pytest.raises(RuntimeError, match="same training/eval mode"):
        func.stack_module_state(layers)
