"""Loading processes: order, seeds, failures, and that nothing of them is left behind."""

import gc
import multiprocessing
import os
import random
import signal
import sys
import threading
import time

import numpy as np
import pytest

import rushlight as torch
from rushlight.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    pytest.mark.skipif(sys.platform == "win32", reason="the tests send POSIX signals"),
]

# Other methods import the module of what they are given, and this one has no name in a new process.
needs_fork = pytest.mark.skipif(multiprocessing.get_start_method() != "fork", reason="the datasets are of this module")
METHODS = multiprocessing.get_all_start_methods()


@pytest.fixture(autouse=True)
def nothing_left():
    shared = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    descriptors = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    yield
    gc.collect()
    assert not multiprocessing.active_children()
    if os.path.isdir("/dev/shm"):
        assert not {name for name in set(os.listdir("/dev/shm")) - shared if name.startswith("rushlight")}
    if descriptors:  # starting processes may open a few of multiprocessing's own, once
        assert len(os.listdir("/proc/self/fd")) <= descriptors + 4


class Numbers(Dataset):
    """A sample is its index; at some of them something happens."""

    def __init__(self, n, **events):
        self.n, self.events = n, events

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        for event, at in self.events.items():
            if i == at:
                globals()[event]()
        return i


class Broken(Exception):
    def __init__(self, one, two):
        super().__init__(one, two)


def fail():
    raise ValueError("no such sample")


def fail_by_key():
    raise KeyError("lost")


def stop():
    raise StopIteration("no more")


def fail_strangely():
    raise Broken(1, 2)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def leave():
    os._exit(3)


def lose(batch):
    raise OSError("lost")


def hang():
    time.sleep(600)


class Ranges(IterableDataset):
    """Every process has a stream of its own, the first one a shorter one."""

    def __iter__(self):
        worker = get_worker_info()
        return iter(range(10)) if worker is None else iter(range(10 * worker.id, 10 * worker.id + 5 + 3 * worker.id))


class Random(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        worker = get_worker_info()
        assert worker.dataset is self
        return worker.id, worker.seed, torch.rand(()), np.random.rand(), random.random()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("in_order", [True, False])
def test_batches_of_a_map(method, in_order):
    data = list(range(10))
    loader = DataLoader(data, batch_size=3, num_workers=2, multiprocessing_context=method, in_order=in_order)
    batches = [batch.tolist() for batch in loader]
    assert (batches if in_order else sorted(batches)) == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]


def test_tensors_large_and_small():
    torch.manual_seed(0)
    data = TensorDataset(
        torch.randn(64, 1000), torch.arange(64), torch.zeros(64, 0), torch.randn(64).to(torch.bfloat16)
    )
    for expected, got in zip(
        DataLoader(data, batch_size=30), DataLoader(data, batch_size=30, num_workers=2), strict=True
    ):
        assert len(expected) == len(got)
        for a, b in zip(expected, got, strict=True):
            assert a.dtype is b.dtype
            assert torch.equal(a, b)
            b.zero_()  # the memory is the batch's own


def test_many_long_requests_and_answers_in_flight():
    data = list(range(30_000))
    loader = DataLoader(
        data, batch_sampler=[list(range(3000, 6000))] * 400, num_workers=1, prefetch_factor=300, collate_fn=tuple
    )
    assert sum(batch == tuple(range(3000, 6000)) for batch in loader) == 400


class Views(Dataset):
    def __init__(self):
        self.whole = torch.arange(1 << 20).reshape(1 << 10, 1 << 10)

    def __len__(self):
        return 4

    def __getitem__(self, i):
        leaf = torch.ones(2, requires_grad=True)
        return {
            "row": self.whole[i],
            "column": self.whole[:, i],
            "leaf": leaf,
            "array": np.arange(3) + i,
            "name": f"{i}",
        }


@needs_fork
def test_samples_that_are_not_collated():
    for i, sample in enumerate(DataLoader(Views(), batch_size=None, num_workers=1)):
        assert sample["row"][0] == i << 10
        assert sample["column"][1] == i + (1 << 10)
        assert sample["row"].untyped_storage().nbytes() < 1 << 16  # of a view only the view is sent
        assert sample["leaf"].requires_grad
        assert (sample["array"].tolist(), sample["name"]) == ([i, i + 1, i + 2], str(i))


@needs_fork
def test_streams_of_processes_alternate_until_they_end():
    loader = DataLoader(Ranges(), batch_size=2, num_workers=2)
    batches = [batch.tolist() for batch in loader]
    assert batches == [[0, 1], [10, 11], [2, 3], [12, 13], [4], [14, 15], [16, 17]]
    assert list(DataLoader(Ranges(), batch_size=None, num_workers=2))[:4] == [0, 10, 1, 11]


@needs_fork
def test_seeds_differ_by_process_and_repeat_with_the_global_seed():
    def drawn():
        torch.manual_seed(3)
        return [[float(x) for x in sample] for sample in DataLoader(Random(), batch_size=None, num_workers=2)]

    first = drawn()
    assert [sample[0] for sample in first] == [0, 1] * 4
    assert first[1][1] == first[0][1] + 1
    assert len({sample[2] for sample in first}) == len({sample[3] for sample in first}) == 8
    assert drawn() == first


class Process(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return os.getpid()


@needs_fork
@pytest.mark.parametrize("persistent", [True, False])
def test_persistent_processes_serve_many_passes(persistent):
    loader = DataLoader(Process(), batch_size=None, num_workers=2, persistent_workers=persistent)
    first, second = set(loader), set(loader)
    assert len(first) == len(second) == 2
    assert (first == second) == persistent
    next(iter(loader))  # a pass that is left early
    assert len(list(loader)) == 4


@needs_fork
def test_init_function():
    seen = multiprocessing.get_context("fork").Array("i", 2)

    def init(number):
        seen[number] = 1 + number

    assert len(list(DataLoader(Numbers(4), num_workers=2, worker_init_fn=init, multiprocessing_context="fork"))) == 4
    assert list(seen) == [1, 2]
    with pytest.raises(TypeError, match="Caught TypeError in DataLoader worker process 0"):
        list(DataLoader(Numbers(4), num_workers=1, worker_init_fn=len))


@needs_fork
@pytest.mark.parametrize("persistent", [True, False])
def test_errors_come_with_their_traceback(persistent):
    options = {"num_workers": 2, "persistent_workers": persistent}
    with pytest.raises(ValueError, match=r"(?s)^Caught ValueError in DataLoader worker process 1\.\nOriginal Trace.*"
                                         r"in fail\n.*no such sample"):  # fmt: skip
        list(DataLoader(Numbers(8, fail=5), **options))
    with pytest.raises(KeyError) as caught:
        list(DataLoader(Numbers(8, fail_by_key=0), **options))
    assert "Original Traceback (most recent call last):\n" in str(caught.value)
    with pytest.raises(RuntimeError, match="Caught Broken in DataLoader"):
        list(DataLoader(Numbers(8, fail_strangely=0), **options))
    for workers in (0, 1):
        with pytest.raises(RuntimeError, match="the dataset raised StopIteration"):
            list(DataLoader(Numbers(8, stop=3), num_workers=workers))
    with pytest.raises(AttributeError, match=r"(?s)Caught AttributeError in DataLoader.*pickle local object"):
        list(DataLoader([lambda: 0], batch_size=None, num_workers=1))
    with pytest.raises(OSError, match="lost") as lost:
        list(DataLoader(Numbers(8), collate_fn=lose, **options))
    assert "in DataLoader worker process 0" in str(lost.value)
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf"):
        list(DataLoader([torch.ones(1, requires_grad=True) * 2], batch_size=None, num_workers=1))


@needs_fork
@pytest.mark.parametrize(("event", "how"), [("die", "killed by signal 9"), ("leave", "ended with exit code 3")])
def test_death_is_reported(event, how):
    loader = DataLoader(Numbers(8, **{event: 3}), num_workers=2)
    with pytest.raises(RuntimeError, match=rf"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly: it (was )?{how}"):
        list(loader)


@pytest.mark.parametrize("method", METHODS)
def test_death_at_the_start_is_reported(method):
    with pytest.raises(RuntimeError, match="exited unexpectedly: it ended with exit code 0"):
        list(DataLoader([1, 2], num_workers=1, worker_init_fn=os._exit, multiprocessing_context=method))


@needs_fork
@pytest.mark.parametrize("in_order", [True, False])
def test_hanging_is_reported(in_order, monkeypatch):
    from rushlight.utils.data import _processes

    monkeypatch.setattr(_processes, "_GRACE", 0.2)
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.5 seconds"):
        list(DataLoader(Numbers(8, hang=3), num_workers=2, timeout=0.5, in_order=in_order))


@needs_fork
def test_an_interrupt_ends_the_processes(monkeypatch):
    from rushlight.utils.data import _processes

    monkeypatch.setattr(_processes, "_GRACE", 0.2)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        list(DataLoader(Numbers(8, hang=3), num_workers=2))
    timer.join()
    signal.signal(signal.SIGINT, before)


@needs_fork
@pytest.mark.parametrize("persistent", [True, False])
def test_an_error_of_the_loop_ends_the_processes(persistent):
    loader = DataLoader(Numbers(100), num_workers=2, persistent_workers=persistent)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            [1 / 0 for _ in loader]
    assert len(list(loader)) == 100


@needs_fork
def test_an_error_of_the_sampler_ends_the_processes():
    def indices():
        yield 0
        raise OSError("no index")

    with pytest.raises(OSError, match="no index"):
        list(DataLoader(Numbers(4), sampler=indices(), num_workers=2))


def test_what_cannot_be_sent_to_a_process_is_named():
    with pytest.raises((AttributeError, TypeError), match="pickle"):
        list(DataLoader([1], collate_fn=lambda batch: batch, num_workers=1, multiprocessing_context="spawn"))


@needs_fork
def test_an_iterator_that_is_dropped_ends_its_processes():
    iterator = iter(DataLoader(Numbers(1000), num_workers=2))
    next(iterator)
    del iterator


def test_bad_options():
    data = Numbers(2)
    for options, error, message in (
        ({"num_workers": -1}, ValueError, "should be non-negative"),
        ({"num_workers": 1, "prefetch_factor": 0}, ValueError, "prefetch_factor"),
        ({"num_workers": 0, "prefetch_factor": 2}, ValueError, "prefetch_factor option could only be specified"),
        ({"persistent_workers": True}, ValueError, "persistent_workers option needs num_workers > 0"),
        ({"multiprocessing_context": "fork"}, ValueError, "can only be used with multi-process loading"),
        ({"num_workers": 1, "multiprocessing_context": "thread"}, ValueError, "valid start method"),
        ({"num_workers": 1, "multiprocessing_context": 3}, TypeError, "valid context object"),
        ({"num_workers": 1, "timeout": -1}, ValueError, "timeout option should be non-negative"),
    ):
        with pytest.raises(error, match=message):
            DataLoader(data, **options)
