"""Scans and sorting where samples do not look: special values, stability, unique, quantiles, errors."""

import numpy as np
import pytest

import rushlight as torch

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("n", [10, 300, 20_000])
@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.float16, torch.float32, torch.float64])
def test_sort_is_stable_both_ways(n, dtype):
    x = torch.randint(-20, 20, (n,)).to(dtype)
    order = np.argsort(x.numpy(), kind="stable")
    assert x.argsort().tolist() == order.tolist()
    down = (n - 1 - np.argsort(x.numpy()[::-1], kind="stable"))[::-1]
    assert x.sort(descending=True).indices.tolist() == down.tolist()


def test_nan_is_last_and_zeros_are_equal():
    x = torch.tensor([NAN, 0.0, -0.0, -INF, INF, -NAN])
    assert x.argsort().tolist() == [3, 1, 2, 4, 0, 5]
    assert x.argsort(descending=True).tolist() == [0, 5, 4, 1, 2, 3]
    assert x.topk(1, largest=False).indices.tolist() == [3]


def test_medians():
    x = torch.tensor([3.0, NAN, 1.0, 2.0])
    assert x.median().isnan()
    assert x.nanmedian() == 2
    assert x.median(0).indices == 1
    assert torch.tensor([4, 1, 3, 2]).median() == 2
    assert torch.empty(0).median().isnan()


def test_running_extremes_take_the_last_of_equals():
    values, indices = torch.tensor([1.0, 1.0, NAN, 5.0]).cummax(0)
    assert indices.tolist() == [0, 1, 2, 2]
    assert values[3].isnan()


def test_long_sums_accumulate_in_double():
    x = torch.full((1_000_000,), 0.1)
    assert x.cumsum(0)[-1].item() == pytest.approx(np.float32(0.1) * 1e6, rel=1e-7)


@pytest.mark.parametrize("dim", [None, 0, 1])
def test_unique(dim):
    x = np.random.default_rng(0).integers(0, 3, (12, 2))
    values, inverse, counts = torch.unique(torch.from_numpy(x), return_inverse=True, return_counts=True, dim=dim)
    expected = np.unique(x, return_inverse=True, return_counts=True, axis=dim)
    np.testing.assert_array_equal(values.numpy(), expected[0])
    np.testing.assert_array_equal(inverse.numpy().ravel(), expected[1].ravel())
    np.testing.assert_array_equal(counts.numpy(), expected[2])


def test_unique_consecutive():
    x = torch.tensor([1, 1, 2, 2, 2, 1])
    values, inverse, counts = x.unique_consecutive(return_inverse=True, return_counts=True)
    assert values.tolist() == [1, 2, 1]
    assert inverse.tolist() == [0, 0, 1, 1, 1, 2]
    assert counts.tolist() == [2, 3, 1]


@pytest.mark.parametrize("how", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("dim", [None, 0, 1])
def test_quantiles(how, dim):
    x, q = np.random.default_rng(0).random((5, 7)), np.array([0.1, 0.5, 1.0])
    result = torch.quantile(torch.from_numpy(x), torch.from_numpy(q), dim, interpolation=how)
    np.testing.assert_allclose(result.numpy(), np.quantile(x, q, axis=dim, method=how))


def test_cumprod_gradient_with_zeros():
    pytest.importorskip("rushlight.autograd", exc_type=ImportError)
    for values in ([2.0, 0.0, 3.0, 4.0], [0.0, 0.0, 1.0], [1.0, 2.0, 0.0]):
        x = torch.tensor(values, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(lambda x: x.cumprod(0), (x,))
        assert torch.autograd.gradcheck(lambda x: x.prod(), (x,))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x.bool().topk(1), RuntimeError, "topk does not support bool"),
        (lambda x: x.topk(4), RuntimeError, "selected index k out of range"),
        (lambda x: x.kthvalue(0), RuntimeError, "selected number k out of range for dimension 1"),
        (lambda x: x.sort(3), IndexError, "Dimension out of range"),
        (lambda x: x.to(torch.complex64).sort(), RuntimeError, "does not support complex"),
        (lambda x: x.to(torch.complex64).cummax(0), NotImplementedError, "cummax_cpu"),
        (lambda x: x.to(torch.int64).logcumsumexp(0), NotImplementedError, "logcumsumexp_out_cpu"),
        (lambda x: torch.bincount(x[0]), NotImplementedError, "bincount_cpu"),
        (lambda x: torch.bincount(torch.tensor([-1])), RuntimeError, "1-d non-negative integral inputs"),
        (lambda x: torch.searchsorted(x, x[:1]), RuntimeError, "first N-1 dimensions"),
        (lambda x: torch.searchsorted(x[0], x, side="middle"), RuntimeError, "side can only be 'left' or 'right'"),
        (lambda x: x.quantile(2.0), RuntimeError, r"in the range \[0, 1\]"),
        (lambda x: x[:, :0].median(1), IndexError, "non-zero size"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(torch.ones(2, 3))


@pytest.mark.parametrize("n", [500, 1000, 9000, 20000])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8", "float16", "bool"])
def test_selection_out_of_many_is_that_of_a_sort(n, dtype):
    rng = np.random.default_rng(n)
    x = rng.normal(size=(3, n)) * 50
    x = x > 0 if dtype == "bool" else np.abs(x).astype(dtype) if dtype == "uint8" else x.astype(dtype)
    if dtype.startswith("float"):
        x[0, ::7], x[1, 3], x[2, ::11] = np.nan, np.inf, -0.0
    t = torch.from_numpy(x)
    for largest in (True, False):
        wanted = t.sort(dim=-1, descending=largest).values.numpy()
        for k in (1, 10, 60, n // 8, n) if dtype != "bool" else ():
            for in_order in (True, False):
                found = t.topk(k, largest=largest, sorted=in_order)
                assert_selected(t, found, wanted[:, :k], in_order)
    for k in (1, n // 3, n):
        found = t.kthvalue(k, keepdim=True)
        assert_selected(t, found, t.sort(dim=-1).values.numpy()[:, k - 1 : k])


def assert_selected(t, found, wanted, in_order=True):
    """The values are the wanted ones, the indices are different places that hold them."""
    values = found.values.numpy()
    np.testing.assert_array_equal(np.sort(values), np.sort(wanted))
    if in_order:
        np.testing.assert_array_equal(values, wanted)
    np.testing.assert_array_equal(t.gather(-1, found.indices).numpy(), values)
    assert all(len(set(row)) == len(row) for row in found.indices.tolist())


def test_selection_among_equals_is_that_of_the_standard_library():
    x = torch.zeros(10)
    assert x.topk(5).indices.tolist() == [8, 6, 7, 5, 9]
    assert x.topk(10).indices.tolist() == [5, 9, 8, 7, 6, 3, 1, 2, 0, 4]
    assert [x.kthvalue(k).indices.item() for k in range(1, 11)] == [4, 6, 8, 7, 0, 5, 3, 1, 2, 9]
    assert x.sort().indices.tolist() == x.sort(descending=True).indices.tolist() == list(range(10))


def test_selection_ends_soon_whatever_the_order():
    n = 200_000  # a killer of the median of three, and a pair of equals
    x = torch.arange(n)
    x[1::2] = torch.arange(n // 2, n)
    x[0::2] = torch.arange(n // 2)
    x[3] = x[5]
    assert x.kthvalue(n // 2).values.item() == x.sort().values[n // 2 - 1].item()


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "int8"])
def test_unique_of_integers_near_and_far(dtype):
    rng = np.random.default_rng(0)
    limits = np.iinfo(dtype)
    for x in (rng.integers(0, 100, (40, 50)), np.array([limits.min, limits.max, 3, 3]), np.array([5]), np.array([])):
        x = x.astype(dtype)
        found = torch.unique(torch.from_numpy(x), return_inverse=True, return_counts=True)
        wanted = np.unique(x, return_inverse=True, return_counts=True)
        for a, b in zip(found, wanted, strict=True):
            assert np.array_equal(a.numpy(), b.reshape(a.shape))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.int64])
@pytest.mark.parametrize("n", [511, 512, 1000, 9000])
@pytest.mark.parametrize("k", [1, 16, 17])
@pytest.mark.parametrize("kind", ["few values", "many values", "not a number"])
def test_topk_finds_the_best_wherever_they_are(dtype, n, k, kind):
    generator = np.random.default_rng(0)
    x = generator.integers(-3, 3, (3, n)) if kind == "few values" else generator.integers(-100, 100, (3, n))
    x = x.astype(dtype)
    if kind == "not a number" and x.dtype.kind == "f":
        x[0], x[1, ::2], x[2] = np.nan, np.nan, np.inf
    for largest in (True, False):
        expected = np.sort(x)[:, ::-1][:, :k] if largest else np.sort(x)[:, :k]
        assert_selected(torch.from_numpy(x), torch.from_numpy(x).topk(k, largest=largest), expected)


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@pytest.mark.parametrize("kind", ["near", "far", "steps", "one far"])
def test_sort_of_64_bits_is_stable(dtype, kind):
    rng = np.random.default_rng(0)
    x = rng.integers(-50, 50, (2, 3000))
    if kind == "far":
        x = rng.integers(-(2**62), 2**62, (2, 3000))
    if kind == "steps":  # equal in the upper half of the bits
        x = x + (rng.integers(0, 3, (2, 3000)) << 40)
    x = x.astype(dtype)
    if kind == "one far":
        x[1, 7] = np.iinfo(np.int64).min if dtype == np.int64 else np.nan
    for descending in (False, True):
        found = torch.from_numpy(x).sort(dim=1, descending=descending)
        order = np.argsort(x[:, ::-1], axis=1, kind="stable")[:, ::-1] if descending else np.argsort(x, kind="stable")
        assert np.array_equal(found.indices.numpy(), x.shape[1] - 1 - order if descending else order)
        assert np.array_equal(found.values.numpy(), np.take_along_axis(x, found.indices.numpy(), 1), equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("kind", ["random", "sorted", "equal", "mostly equal", "periodic", "with NaN"])
def test_medians_of_many(kind, dtype):
    rng = np.random.default_rng(0)
    values = {
        "random": rng.random(70_000) * 200,
        "sorted": np.linspace(0, 200, 70_000),
        "equal": np.full(70_000, 7.0),
        "mostly equal": np.where(rng.random(70_000) < 0.6, 3, rng.random(70_000) * 200),
        "periodic": np.arange(70_000) % 64 * 3.0,
        "with NaN": np.where(rng.random(70_000) < 0.3, np.nan, rng.random(70_000) * 200),
    }[kind]
    x = torch.tensor(np.repeat(values, 2)).to(dtype)[::2]
    known = x.double().numpy()
    order = np.argsort(known, kind="stable")
    nans = int(np.isnan(known).sum())
    assert x.median(0).indices.item() == order[x.numel() - nans if nans else (x.numel() - 1) // 2]
    assert x.nanmedian(0).indices.item() == order[(x.numel() - nans - 1) // 2]
    assert x.kthvalue(60_000).values.equal(x[order[59_999]]) or nans > 10_000
