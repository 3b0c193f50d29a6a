"""Initial values: their range and moments, and the draws they are made of."""

import math

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import init


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def numbers(tensor):
    return tensor.detach().numpy()


@pytest.mark.parametrize(
    ("fill", "low", "high"),
    [
        (lambda t: init.uniform_(t, -2, 3), -2, 3),
        (lambda t: init.xavier_uniform_(t, gain=2), -2 * math.sqrt(6 / 300), 2 * math.sqrt(6 / 300)),
        (lambda t: init.kaiming_uniform_(t, a=math.sqrt(5)), -0.1, 0.1),
        (lambda t: init.kaiming_uniform_(t, mode="fan_out", nonlinearity="relu"), -math.sqrt(0.03), math.sqrt(0.03)),
    ],
)
def test_uniform_values_fill_their_range(fill, low, high):
    values = numbers(fill(torch.empty(200, 100)))
    assert low <= values.min() < low + 0.01 * (high - low)
    assert high - 0.01 * (high - low) < values.max() <= high
    assert abs(values.mean() - (low + high) / 2) < 0.01 * (high - low)


@pytest.mark.parametrize(
    ("fill", "mean", "std"),
    [
        (lambda t: init.normal_(t, 1, 3), 1, 3),
        (lambda t: init.xavier_normal_(t), 0, math.sqrt(2 / 300)),
        (lambda t: init.kaiming_normal_(t, nonlinearity="linear"), 0, 0.1),
        (lambda t: init.kaiming_normal_(t, 0.1, "fan_out"), 0, math.sqrt(2 / 1.01 / 200)),
    ],
)
def test_normal_values_have_their_moments(fill, mean, std):
    values = numbers(fill(torch.empty(200, 100)))
    assert abs(values.mean() - mean) < 0.03 * std
    assert abs(values.std() / std - 1) < 0.03


@pytest.mark.parametrize(("mean", "std", "a", "b"), [(0, 1, -2, 2), (0, 1, 2, 3), (1, 0.5, 0, 1.2)])
def test_truncated_normal_stays_inside(mean, std, a, b):
    if b < mean - 2 * std or a > mean + 2 * std:
        pytest.skip("warns")
    values = numbers(init.trunc_normal_(torch.empty(20000), mean, std, a, b))
    assert a <= values.min()
    assert values.max() <= b
    grid = np.linspace(a, b, 20001)
    density = np.exp(-(((grid - mean) / std) ** 2) / 2)
    assert abs(values.mean() - (grid * density).sum() / density.sum()) < 0.03 * std


def test_constant_values():
    assert init.ones_(torch.empty(2)).tolist() == [1, 1]
    assert init.zeros_(torch.empty(2)).tolist() == [0, 0]
    assert init.constant_(torch.empty(2), 4).tolist() == [4, 4]
    assert init.eye_(torch.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    with pytest.raises(ValueError, match="Only tensors with 2 dimensions"):
        init.eye_(torch.empty(2))


@pytest.mark.parametrize("groups", [1, 2])
def test_dirac_passes_channels_on(groups):
    weight = init.dirac_(torch.empty(4, 2, 3, 3), groups)
    image = torch.randn(1, 2 * groups, 5, 5)
    out = nn.functional.conv2d(image, weight, padding=1, groups=groups)
    for group in range(groups):
        for channel in range(2):
            np.testing.assert_allclose(
                numbers(out)[0, group * 4 // groups + channel], numbers(image)[0, group * 2 + channel]
            )
    with pytest.raises(ValueError, match="divisible by groups"):
        init.dirac_(torch.empty(3, 2, 3), 2)
    with pytest.raises(ValueError, match="Only tensors with 3, 4, or 5"):
        init.dirac_(torch.empty(3, 2))


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 2, 2)])
def test_orthogonal(shape):
    q = numbers(init.orthogonal_(torch.empty(shape, dtype=torch.float64), gain=2)).reshape(shape[0], -1)
    product = q @ q.T if q.shape[0] <= q.shape[1] else q.T @ q
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-12)


def test_sparse():
    values = numbers(init.sparse_(torch.empty(10, 4), 0.25))
    assert ((values == 0).sum(0) == 3).all()


def test_gains():
    assert init.calculate_gain("conv2d") == init.calculate_gain("sigmoid") == 1
    assert init.calculate_gain("leaky_relu", 0) == init.calculate_gain("relu") == math.sqrt(2)
    with pytest.raises(ValueError, match="Unsupported nonlinearity foo"):
        init.calculate_gain("foo")
    with pytest.raises(ValueError, match="not a valid number"):
        init.calculate_gain("leaky_relu", True)


def test_bad_arguments():
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        init.xavier_uniform_(torch.empty(3))
    with pytest.raises(ValueError, match="Mode fan not supported"):
        init.kaiming_normal_(torch.empty(3, 3), mode="fan")
    with pytest.warns(UserWarning, match="zero-element tensors is a no-op"):
        init.kaiming_uniform_(torch.empty(0, 3))


def test_old_names_warn():
    with pytest.warns(FutureWarning, match=r"`nn.init.constant` is now deprecated in favor of `nn.init.constant_`"):
        assert init.constant(torch.empty(1), 2).item() == 2


def test_parameters_keep_their_flags():
    p = nn.Parameter(torch.empty(2, 2))
    assert init.normal_(p) is p
    assert p.requires_grad
    assert p.is_leaf


def test_a_generator_decides():
    a, b = (init.uniform_(torch.empty(5), generator=torch.Generator().manual_seed(1)) for _ in range(2))
    assert a.tolist() == b.tolist()
