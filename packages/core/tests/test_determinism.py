"""Deterministic mode: its switches, memory that is known, results for any number of threads and any batch."""

import numpy as np
import pytest

import rushlight as torch
from rushlight.plugin import Op


@pytest.fixture(autouse=True)
def restored():
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(False)
    torch.utils.deterministic.fill_uninitialized_memory = True


def test_switches():
    assert not torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    assert torch.are_deterministic_algorithms_enabled()
    assert torch.is_deterministic_algorithms_warn_only_enabled()
    for text, number in (("default", 0), ("warn", 1), ("error", 2)):
        for mode in (text, number):
            torch.set_deterministic_debug_mode(mode)
            assert torch.get_deterministic_debug_mode() == number


@pytest.mark.parametrize(
    ("mode", "error"), [("x", RuntimeError), (7, RuntimeError), (-1, RuntimeError), (1.5, TypeError)]
)
def test_debug_mode_refuses(mode, error):
    with pytest.raises(error, match="debug_mode"):
        torch.set_deterministic_debug_mode(mode)


def test_mode_is_a_bool():
    with pytest.raises(TypeError, match="'mode'.*must be bool, not str"):
        torch.use_deterministic_algorithms("x")


@pytest.mark.parametrize(
    ("dtype", "value"),
    [(torch.float32, "nan"), (torch.bfloat16, "nan"), (torch.complex64, "nan"), (torch.uint8, 255),
     (torch.int32, 2**31 - 1), (torch.int64, 2**63 - 1), (torch.bool, True)],
)  # fmt: skip
def test_memory_is_known(dtype, value):
    torch.use_deterministic_algorithms(True)
    made = [
        torch.empty(3, dtype=dtype),
        torch.empty_like(torch.ones(2, 2, dtype=dtype)),
        torch.ones(2).new_empty(2, dtype=dtype),
        torch.empty_strided((2, 2), (3, 1), dtype=dtype),
        torch.zeros(1, dtype=dtype).resize_(4)[1:],
    ]
    for x in made:
        assert x.isnan().all() if value == "nan" else (x == value).all()
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.zeros(1, dtype=dtype).resize_(4)  # nothing to see, but it runs


def test_operators_that_the_order_of_threads_decides():
    twice = (
        Op("twice_unordered(Tensor self) -> Tensor", doc="Twice.").array(lambda xp, x: x + x).nondeterministic("cpu")
    )
    twice.define()
    x = torch.ones(2)
    assert torch.twice_unordered(x).tolist() == [2, 2]
    torch.use_deterministic_algorithms(True)
    with pytest.raises(RuntimeError, match="twice_unordered does not have a deterministic implementation"):
        torch.twice_unordered(x)
    torch.use_deterministic_algorithms(True, warn_only=True)
    with pytest.warns(UserWarning, match="twice_unordered"):
        torch.twice_unordered(x)


def test_report():
    report = torch.deterministic_report("cpu")
    assert "add.Tensor" in report.deterministic
    assert "bernoulli" in report.seeded
    assert not set(report.nondeterministic) - {"twice_unordered"}
    assert "index_add" in torch.deterministic_report("cuda").nondeterministic
    assert "nondeterministic" in str(report)


def bits(result):
    results = result if isinstance(result, tuple) else (result,)
    return b"".join(r.contiguous().numpy().tobytes() for r in results)


def number_of_threads_cases():
    torch.manual_seed(0)
    long, x, y = torch.randn(200_003), torch.randn(300, 900), torch.randn(900, 400)
    index, values, to = torch.randint(0, 700, (100_000,)), torch.randn(100_000), torch.zeros(700)
    return {
        "sum": lambda: long.sum(),
        "std": lambda: long.std(),
        "prod": lambda: (1 + long * 1e-4).prod(),
        "norm": lambda: long.norm(),
        "mean": lambda: x.mean(0),
        "logsumexp": lambda: x.logsumexp(1),
        "softmax": lambda: x.softmax(0),
        "cumsum": lambda: long.cumsum(0),
        "matmul": lambda: x @ y,
        "dot": lambda: long @ long,
        "index_add": lambda: to.index_add(0, index, values),
        "index_put": lambda: to.index_put((index,), values),
        "index_put_accumulate": lambda: to.index_put((index,), values, accumulate=True),
        "index_copy": lambda: to.index_copy(0, index, values),
        "put": lambda: to.put(index, values),
        "scatter": lambda: to.scatter(0, index, values),
        "scatter_add": lambda: to.scatter_add(0, index, values),
        "scatter_reduce": lambda: to.scatter_reduce(0, index, values, "mean"),
        "index_reduce": lambda: to.index_reduce(0, index, values, "prod"),
        "bincount": lambda: torch.bincount(index, values),
        "sort": lambda: long.sort(),
        "topk": lambda: long.topk(100),
        "fft": lambda: torch.fft.fft(x),
        "cdist": lambda: torch.cdist(x, x),
    }


@pytest.mark.parametrize("name", number_of_threads_cases())
def test_any_number_of_threads(name):
    case, found = number_of_threads_cases()[name], set()
    for threads in (1, 2, 3, 8, 2):
        torch.set_num_threads(threads)
        found.add(bits(case()))
    assert len(found) == 1


@pytest.mark.parametrize("length", [7, 64, 900])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: x @ w,
        lambda x, w: x @ w[:, :1],
        lambda x, w: x @ w[:, 0],
        lambda x, w: torch.addmm(w[0], x, w),
        lambda x, w: x @ w.t().contiguous().t(),
        lambda x, w: x.sum(-1),
        lambda x, w: x.mean(-1),
        lambda x, w: x.var(-1),
        lambda x, w: x.softmax(-1),
        lambda x, w: x.log_softmax(-1),
        lambda x, w: x.logsumexp(-1),
        lambda x, w: x.cumsum(-1),
        lambda x, w: torch.view_as_real(torch.fft.fft(x)),
        lambda x, w: torch.view_as_real(torch.fft.rfft(x)),
        lambda x, w: x.exp(),
    ],
)
def test_any_batch(function, length):
    torch.use_deterministic_algorithms(True, batch_invariant=True)
    torch.manual_seed(0)
    x, w = torch.randn(300, length), torch.randn(length, 40)
    whole = function(x, w).numpy()
    for rows in (1, 2, 3, 7, 16, 33, 100):
        assert np.array_equal(function(x[:rows], w).numpy(), whole[:rows])
