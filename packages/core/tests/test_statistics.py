"""Covariance and correlation: errors, degenerate input, and the identities between them."""

import numpy as np
import pytest

import rushlight as torch


def test_corrcoef_is_the_normalised_covariance():
    x = torch.rand(3, 20, dtype=torch.float64)
    covariance = torch.cov(x)
    spread = covariance.diagonal().sqrt()
    assert torch.allclose(torch.corrcoef(x), covariance / torch.outer(spread, spread))
    assert torch.corrcoef(x).abs().max().item() <= 1


def test_frequency_weights_repeat_observations():
    x, times = torch.rand(2, 4, dtype=torch.float64), torch.tensor([1, 3, 2, 1])
    assert torch.allclose(torch.cov(x, fweights=times), torch.cov(x.repeat_interleave(times, 1)))


def test_complex_covariance():
    x = torch.randn(3, 7, dtype=torch.complex128)
    np.testing.assert_allclose(torch.cov(x).numpy(), np.cov(x.numpy()))


def test_too_few_observations_warn():
    with pytest.warns(UserWarning, match="degrees of freedom"):
        assert torch.cov(torch.tensor([[1.0], [2.0]])).isnan().all()


@pytest.mark.parametrize(
    ("keywords", "match"),
    [
        ({"fweights": torch.tensor([1.0, 2, 3])}, "integral"),
        ({"fweights": torch.tensor([1, 2])}, "same numel"),
        ({"fweights": torch.tensor([[1, 2, 3]])}, "one or fewer"),
        ({"fweights": torch.tensor([1, -2, 3])}, "negative"),
        ({"aweights": torch.tensor([1, 2, 3])}, "floating point"),
        ({"aweights": torch.zeros(3)}, "sum to zero"),
    ],
)
def test_weights_that_do_not_fit(keywords, match):
    with pytest.raises(RuntimeError, match=match):
        torch.cov(torch.ones(2, 3), **keywords)


@pytest.mark.parametrize("function", [torch.cov, torch.corrcoef])
def test_inputs_that_do_not_fit(function):
    with pytest.raises(RuntimeError, match="two or fewer"):
        function(torch.ones(2, 2, 2))
    with pytest.raises(RuntimeError, match="bool"):
        function(torch.tensor([True, False]))
