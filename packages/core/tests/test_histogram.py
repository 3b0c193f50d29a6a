"""Histograms against NumPy where samples do not look: weights, default ranges, edges, errors."""

import numpy as np
import pytest

import rushlight as torch


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("density", [False, True])
def test_histogram(dtype, density):
    x = torch.randn(500, dtype=dtype)
    weight = torch.rand(500, dtype=dtype)
    for bins in (7, torch.tensor([-1.0, 0.0, 0.25, 3.0], dtype=dtype)):
        result = torch.histogram(x, bins, weight=weight, density=density)
        edges = np.asarray(result.bin_edges)
        expected, _ = np.histogram(x.numpy(), edges, weights=weight.double().numpy(), density=density)
        assert result.hist.dtype == result.bin_edges.dtype == dtype
        np.testing.assert_allclose(result.hist.numpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(x.histogram(7).bin_edges.numpy(), np.histogram_bin_edges(x.numpy(), 7), atol=1e-6)


@pytest.mark.parametrize("bins", [3, (2, 3, 4)])
def test_grid(bins):
    x = torch.rand(4, 50, 3, dtype=torch.float64)
    weight = torch.rand(4, 50, dtype=torch.float64)
    hist, edges = torch.histogramdd(x, bins, weight=weight, density=True)
    expected, expected_edges = np.histogramdd(
        x.reshape(-1, 3).numpy(), bins, weights=weight.flatten().numpy(), density=True
    )
    np.testing.assert_allclose(hist.numpy(), expected)
    for edge, expected_edge in zip(edges, expected_edges, strict=True):
        np.testing.assert_allclose(edge.numpy(), expected_edge)


def test_edges_belong_to_the_bin_on_their_right_except_the_last():
    x = torch.tensor([0.0, 1.0, 2.0, 2.5, -1.0, float("nan")])
    assert torch.histogram(x, torch.tensor([0.0, 1.0, 2.0])).hist.tolist() == [1, 2]


def test_empty_and_equal_elements():
    assert torch.histogram(torch.tensor([]), 2).bin_edges.tolist() == [0, 0.5, 1]
    hist, edges = torch.histogram(torch.tensor([2.0, 2.0]), 2)
    assert hist.tolist() == [0, 2]
    assert edges.tolist() == [1.5, 2, 2.5]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x.histogram(0), RuntimeError, "bins must be > 0, but got 0 for dimension 0"),
        (lambda x: x.long().histogram(2), NotImplementedError, "histogramdd.* not implemented for"),
        (lambda x: (x / 0).histogram(2), RuntimeError, "is not finite"),
        (lambda x: x.histogram(2, range=(3.0, 1.0)), RuntimeError, "min should not exceed max"),
        (lambda x: x.histogram(2, range=(3.0,)), RuntimeError, "range should have 2 elements, but got 1"),
        (lambda x: x.histogram(torch.ones(1, 2)), RuntimeError, "bins tensor should have one dimension"),
        (lambda x: x.histogram(torch.ones(2).double()), RuntimeError, "should have the same dtype"),
        (lambda x: x.histogram(2, weight=torch.ones(1)), RuntimeError, "same shape as the input tensor"),
        (lambda x: x.histogram(2, weight=torch.ones(2).double()), RuntimeError, "weight tensor should have the same"),
        (lambda x: torch.histogramdd(x, [2]), RuntimeError, "at least 2 dimensions"),
        (lambda x: torch.histogramdd(x[None], [2, 2, 2]), RuntimeError, "The size of bins must be equal"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(torch.tensor([1.0, 2.0]))


@pytest.mark.parametrize("n", [0, 5, (1 << 14) - 1, 1 << 14, 200_003])
@pytest.mark.parametrize("bins", [1, 100, 5000])
def test_bincount(n, bins):
    x = np.random.default_rng(n).integers(0, bins, n)
    np.testing.assert_array_equal(torch.bincount(torch.tensor(x), minlength=7).numpy(), np.bincount(x, minlength=7))
    with pytest.raises(RuntimeError, match="overflows"):
        torch.bincount(torch.tensor([*x, 2**63 - 1]))
