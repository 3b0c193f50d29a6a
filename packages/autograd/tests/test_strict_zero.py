"""Strict-zero mode: what `where` leaves out has gradient 0; finite gradients are in test_rules.py."""

import numpy as np
import pytest

import rushlight as torch
from rushlight.autograd import grad, strict_zero
from rushlight.plugin import operators, require

require("autograd", "rushlight.autograd")
POINTS = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 1e300, np.inf, -np.inf, np.nan]
UNARY = [
    op
    for _, op in sorted(operators().items())
    if op.family.name == "pointwise" and op.differentiable and op.schema.partition(") ->")[0].endswith("(Tensor self")
]


def gradients(function, *values):
    leaves = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in values]
    with strict_zero():
        return [g.tolist() for g in grad(function(*leaves), leaves)]


@pytest.mark.parametrize("record", UNARY, ids=lambda r: r.name)
def test_branches_left_out_have_gradient_zero(record):
    def masked(x):
        values = record.operator(x)
        return torch.where(torch.zeros(len(POINTS), dtype=torch.bool), values, 0.0).sum()

    result = record.operator(torch.tensor(POINTS, dtype=torch.float64, requires_grad=True))
    if not result.requires_grad or result.is_complex():
        pytest.skip("its result has no real gradient")
    assert gradients(masked, POINTS)[0] == [0] * len(POINTS)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: torch.where(x > 0, x.sqrt(), 0.0).sum(), [0, 0.25]),
        (lambda x: torch.where(x > 0, 1 / x, x).sum(), [1, -1 / 16]),
        (lambda x: torch.where(x > 0, torch.atan2(x, x * 0), 0.0).sum(), [0, 0]),
        (lambda x: (x / 0).softmax(0)[:0].sum() + x.sum(), [1, 1]),
        (lambda x: (x.norm() * 0 / 0)[None][:0].sum() + x[0], [1, 0]),
        (lambda x: (x[:, None] @ torch.tensor([[np.inf, 2.0]]).double())[:, 1].sum(), [2, 2]),
        (lambda x: (torch.tensor([[np.inf, np.nan], [2.0, 1.0]]).double() @ x)[1], [2, 1]),
        (lambda x: (x[:, None] @ torch.tensor([[np.inf, 2.0]]).double()).sum(), [np.inf, np.inf]),
        (lambda x: torch.dot(x, torch.tensor([np.inf, -np.inf]).double()), [np.inf, -np.inf]),
        (lambda x: (x * torch.tensor([np.inf, np.nan]).double()).sum(), [np.inf, np.nan]),
    ],
)
def test_only_zeros_are_strict(function, expected):
    np.testing.assert_array_equal(gradients(function, [0.0, 4.0])[0], expected)


def test_complex_products():
    z = torch.tensor([1 + 1j, 2 - 1j], requires_grad=True)
    factor = torch.tensor([[complex(np.inf, 0), 1], [3, 1j]])
    with strict_zero():
        np.testing.assert_array_equal(grad((factor @ z)[1].real, z)[0], [3, -1j])


def test_second_derivatives():
    x = torch.tensor([0.0, 4.0], dtype=torch.float64, requires_grad=True)
    with strict_zero():
        (first,) = grad(torch.where(x > 0, x.sqrt(), 0.0).sum(), x, create_graph=True)
        (second,) = grad(first.sum(), x)
    np.testing.assert_allclose(second, [0, -1 / 32])
    # Products with the Jacobian differentiate by a vector of zeros.
    with strict_zero():
        _, product = torch.autograd.functional.jvp(lambda x: x.exp(), x.detach(), torch.ones(2, dtype=x.dtype))
    np.testing.assert_allclose(product, np.exp([0, 4]))


def test_writes_to_views():
    def written(x):
        y = x * 1
        y[:1].log_()
        return torch.where(torch.isfinite(y), y, 0.0).sum()

    assert gradients(written, [0.0, 4.0])[0] == [0, 1]


def test_the_mode_ends():
    x = torch.tensor([0.0], requires_grad=True)
    y = torch.where(x > 0, x.sqrt(), 0.0)
    with strict_zero(), strict_zero(False):
        assert grad(y, x, retain_graph=True)[0].isnan()
    assert grad(y, x)[0].isnan()
