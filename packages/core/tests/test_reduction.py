"""Reductions where samples do not look: special values, accuracy, large sizes, dtypes, errors."""

import numpy as np
import pytest

import rushlight as torch


def test_result_does_not_depend_on_threads():
    x = torch.rand(300_001)
    before = torch.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            results.append([x.sum().item(), x.std().item(), x.norm(3).item(), x[::3].sum().item()])
    finally:
        torch.set_num_threads(before)
    assert results[0] == results[1] == results[2]


def test_sum_is_accurate():
    x = np.random.default_rng(0).random(1_000_000, dtype=np.float32)
    exact = x.astype(np.float64).sum()
    assert abs(torch.from_numpy(x).sum().item() / exact - 1) < 2e-7
    assert abs(torch.from_numpy(x.reshape(1000, 1000)).sum(0).sum().item() / exact - 1) < 2e-7


def test_variance_does_not_cancel():
    x = torch.tensor([1e8 + 1, 1e8 + 2, 1e8 + 3], dtype=torch.float64)
    assert x.var().item() == 1
    x = 1e4 + torch.arange(10_000, dtype=torch.float32) % 2
    assert abs(x.var().item() - 0.25) < 1e-4


def test_norm_does_not_leave_the_range():
    assert torch.tensor([3e30, 4e30]).norm().item() == pytest.approx(5e30)
    scales = torch.tensor([[1e200], [1e154], [1e-150], [1e-200], [1e-307], [1.0]], dtype=torch.float64)
    rows = torch.tensor([[3.0, 4.0]], dtype=torch.float64) * scales
    assert rows.norm(dim=1).tolist() == pytest.approx((5 * scales[:, 0]).tolist(), rel=1e-15)
    assert (rows + 0j).norm(dim=1).tolist() == pytest.approx((5 * scales[:, 0]).tolist(), rel=1e-15)
    assert torch.zeros(3, dtype=torch.float64).norm().item() == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("n", [1, 7, 16, 33, 64, 1000, 1025, 5000])
def test_norms_of_rows_of_every_size(dtype, n):
    scales = [1, 0, 1e-30, 1e30, 1e-42, 1, 3e36, 1e-19, np.nan, np.inf] * 4
    with np.errstate(invalid="ignore"):
        rows = (np.random.default_rng(0).random((40, n)) * np.asarray(scales)[:, None]).astype(str(dtype)[-7:])
    expected = np.sqrt((rows.astype(np.longdouble) ** 2).sum(1)).astype(rows.dtype)
    np.testing.assert_allclose(torch.from_numpy(rows).norm(dim=1).numpy(), expected, rtol=1e-6, atol=2e-45)
    each = [torch.from_numpy(row).norm().item() for row in rows]
    np.testing.assert_allclose(each, expected, rtol=1e-6, atol=2e-45)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_norms_take_the_magnitudes_of_abs(dtype):
    # The gradient of the largest magnitude looks for the elements that are equal to it.
    x = torch.randn(999, 7, dtype=dtype) * torch.tensor(10.0) ** torch.randint(-20, 15, (999, 7))
    for part in (x, x[:, ::3], x.T):
        for dim in (0, 1):
            assert torch.equal(part.norm(float("inf"), dim), part.abs().amax(dim))
            assert torch.equal(part.norm(-float("inf"), dim), part.abs().amin(dim))


@pytest.mark.parametrize("n", [3, 70, 5000, 100_000])
def test_nan_wins_and_the_first_of_equals(n):
    x = torch.full((n,), 1.0)
    assert x.argmax() == 0
    assert x.max(0).indices == 0
    x[n // 2] = x[n - 1] = float("nan")
    assert x.argmax() == x.argmin() == x.max(0).indices == n // 2
    assert x.amax().isnan()
    assert x.amin().isnan()
    assert x.nansum() == n - 2


def test_integers_and_bool_sum_in_int64():
    x = torch.full((1000,), 200, dtype=torch.uint8)
    assert (x.sum().dtype, x.sum().item()) == (torch.int64, 200_000)
    assert x.sum(dtype=torch.int32).dtype is torch.int32
    assert torch.ones(300, dtype=torch.bool).sum() == 300
    assert torch.ones(3, dtype=torch.bool).prod().dtype is torch.int64


def test_truth_of_uint8_is_uint8():
    x = torch.tensor([[0, 2], [0, 0]], dtype=torch.uint8)
    assert x.any(1).dtype is torch.uint8
    assert x.any(1).tolist() == [1, 0]
    assert x.to(torch.int32).all(0).dtype is torch.bool


def test_no_dims_of_any_means_every_element():
    x = torch.tensor([0.0, 1.0])
    assert x.any(()).tolist() == [False, True]
    assert x.sum(()).item() == 1


def test_empty():
    x = torch.empty(2, 0)
    assert x.sum(1).tolist() == [0, 0]
    assert x.prod(1).tolist() == [1, 1]
    assert x.mean(1).isnan().all()
    assert x.all(1).tolist() == [True, True]
    assert x.amax(0).shape == (0,)


def test_named_results():
    x = torch.tensor([[1.0, 5.0], [7.0, 3.0]])
    result = x.max(1)
    assert (result.values.tolist(), result.indices.tolist()) == ([5, 7], [1, 0])
    assert type(result).__name__ == "max"
    assert type(x.sort()) is type(x.sort(stable=True))


def test_complex_variance_is_that_of_both_parts():
    z = np.array([1 + 2j, 3 - 1j, -2 + 5j])
    var, mean = torch.var_mean(torch.from_numpy(z))
    assert var.item() == pytest.approx(z.var(ddof=1))
    assert mean.item() == pytest.approx(z.mean())


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x.sum(5), IndexError, r"expected to be in range of \[-2, 1\], but got 5"),
        (lambda x: x.sum((0, 0)), RuntimeError, "dim 0 appears multiple times"),
        (lambda x: x.to(torch.int64).mean(), RuntimeError, "could not infer output dtype. Input .* Got: Long"),
        (lambda x: x.to(torch.int64).std(), RuntimeError, "only support floating point"),
        (lambda x: x[:, :0].amax(), RuntimeError, "Specify the reduction dim"),
        (lambda x: x[:, :0].max(1), IndexError, "Expected reduction dim 1 to have non-zero size"),
        (lambda x: x[:, :0].argmax(), IndexError, "Expected reduction dim to be specified"),
        (lambda x: x.to(torch.complex64).argmax(), RuntimeError, "does not support complex"),
        (lambda x: x.to(torch.bool).argmax(), RuntimeError, "does not support bool"),
        (lambda x: x[:, :0].norm(float("inf")), RuntimeError, "does not have an identity"),
        (lambda x: x.to(torch.int64).norm(), RuntimeError, "Expected a floating point or complex tensor"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(torch.ones(2, 3))


def test_softmax_of_special_values():
    inf, nan = float("inf"), float("nan")
    assert torch.tensor([1000.0, 0.0]).log_softmax(0).tolist() == [0, -1000]
    assert torch.tensor([-inf, 1.0]).softmax(0).tolist() == [0, 1]
    for values in ([inf, 1.0], [-inf, -inf], [nan, 1.0]):
        assert torch.tensor(values).softmax(0).isnan().all()
    assert torch.tensor([-inf, -inf]).logsumexp(0).item() == -inf
    assert torch.tensor([inf, 1.0]).logsumexp(0).item() == inf
    assert torch.empty(2, 0).logsumexp(1).tolist() == [-inf, -inf]
