"""Differences, derivatives and integrals: identities and errors."""

import numpy as np
import pytest

import rushlight as torch


def test_diff_inverts_cumsum():
    x = torch.rand(4, 6, dtype=torch.float64)
    assert torch.allclose(x.cumsum(1).diff(dim=1, prepend=torch.zeros(4, 1, dtype=torch.float64)), x)


def test_diff_of_bools_tells_changes():
    assert torch.diff(torch.tensor([True, True, False])).tolist() == [False, True]


def test_diff_of_order_zero_is_the_input_alone():
    x = torch.arange(6.0).view(2, 3)
    same = torch.diff(x, 0, -1, torch.ones(2, 1), torch.ones(2, 2))
    assert same.tolist() == x.tolist()
    assert same.data_ptr() != x.data_ptr()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((torch.tensor(1.0),), RuntimeError),
        ((torch.ones(3), -1), RuntimeError),
        ((torch.ones(3), 1, 2), IndexError),
        ((torch.ones(3, 3), 1, -1, torch.ones(2, 2)), RuntimeError),
        ((torch.ones(3, 3), 1, -1, torch.ones(3)), RuntimeError),
    ],
)
def test_diff_errors(arguments, error):
    with pytest.raises(error):
        torch.diff(*arguments)


def test_gradient_of_a_parabola_is_exact():
    points = torch.tensor([0.0, 0.5, 2.0, 3.0, 7.0], dtype=torch.float64)
    (slope,) = torch.gradient(points**2, spacing=(points,), edge_order=2)
    assert torch.allclose(slope, 2 * points)


def test_gradient_of_a_plane():
    x, y = torch.meshgrid(torch.arange(4.0), torch.arange(5.0), indexing="ij")
    along_x, along_y = torch.gradient(2 * x - 3 * y)
    assert torch.equal(along_x, torch.full((4, 5), 2.0))
    assert torch.equal(along_y, torch.full((4, 5), -3.0))


@pytest.mark.parametrize(
    ("keywords", "match"),
    [
        ({"edge_order": 3}, "edge_order"),
        ({"dim": (0, 0)}, "multiple times"),
        ({"spacing": [1.0, 2.0], "dim": 0}, "same length"),
        ({"spacing": [1.0]}, "list of length equal"),
        ({"spacing": (torch.ones(3, 1), torch.ones(3))}, "one dimension"),
    ],
)
def test_gradient_errors(keywords, match):
    with pytest.raises(RuntimeError, match=match):
        torch.gradient(torch.ones(3, 3), **keywords)


def test_trapezoid_is_exact_for_lines():
    x = torch.tensor([0.0, 1.0, 4.0, 5.0], dtype=torch.float64)
    assert torch.trapezoid(3 * x + 1, x).item() == pytest.approx(3 * 25 / 2 + 5)
    assert torch.trapz(3 * x + 1, x).item() == pytest.approx(3 * 25 / 2 + 5)
    assert torch.cumulative_trapezoid(3 * x + 1, x)[-1].item() == pytest.approx(3 * 25 / 2 + 5)


def test_trapezoid_of_integers_and_of_nothing():
    assert torch.trapezoid(torch.tensor([1, 2, 3])).item() == 4.0
    assert torch.trapezoid(torch.ones(3, 0)).tolist() == [0, 0, 0]
    assert torch.cumulative_trapezoid(torch.ones(3, 0)).shape == (3, 0)


def test_trapezoid_rounds_halves_once():
    y = torch.rand(1000).half()
    expected = np.trapezoid(y.double().numpy())
    assert torch.trapezoid(y).item() == np.float16(expected)


@pytest.mark.parametrize(
    ("arguments", "keywords", "error"),
    [
        ((torch.tensor(1.0),), {}, IndexError),
        ((torch.tensor([True, False]),), {}, RuntimeError),
        ((torch.ones(3, 3), torch.ones(2)), {}, RuntimeError),
        ((torch.ones(3),), {"dx": 1j}, RuntimeError),
        ((torch.ones(3), torch.ones(3)), {"dx": 2}, TypeError),
    ],
)
def test_trapezoid_errors(arguments, keywords, error):
    with pytest.raises(error):
        torch.trapezoid(*arguments, **keywords)


def test_gradient_at_coordinates_of_more_digits():
    x, points = torch.arange(4.0).bfloat16(), torch.tensor([0.0, 1.0, 1.5, 4.0])
    assert torch.gradient(x, spacing=(points,))[0].dtype == torch.float32
    assert torch.gradient(x, spacing=(points.bfloat16(),))[0].dtype == torch.bfloat16
