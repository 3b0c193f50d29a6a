"""Datasets, samplers, collation and the loader."""

from collections import namedtuple

import numpy as np
import pytest

import rushlight as torch
from rushlight.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    get_worker_info,
    random_split,
)


class Numbers(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return i


class Stream(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))


def pairs(n=10):
    return TensorDataset(torch.arange(2 * n).reshape(n, 2), torch.arange(n))


# -- datasets


def test_tensor_dataset():
    data = pairs()
    assert len(data) == 10
    assert [t.tolist() for t in data[3]] == [[6, 7], 3]
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        TensorDataset(torch.ones(2), torch.ones(3))


def test_datasets_side_by_side():
    rows = StackDataset(Subset(Numbers(9), [4, 5, 6]), "abc")
    assert (len(rows), rows[-1], rows[0]) == (3, (6, "c"), (4, "a"))
    assert rows.__getitems__([2, 0]) == [(6, "c"), (4, "a")]
    named = StackDataset(x=torch.arange(3.0), pair=pairs(3))
    (batch,) = DataLoader(named, 3)
    assert batch["x"].tolist() == [0.0, 1.0, 2.0]
    assert [part.tolist() for part in batch["pair"]] == [[[0, 1], [2, 3], [4, 5]], [0, 1, 2]]


@pytest.mark.parametrize(
    ("args", "kwargs", "match"),
    [
        ((), {}, "At least one dataset"),
        (("ab",), {"x": "ab"}, "both types are given"),
        (("ab", "abc"), {}, r"Size mismatch between datasets, got lengths=\[2, 3\]"),
    ],
)
def test_datasets_that_cannot_stand_side_by_side(args, kwargs, match):
    with pytest.raises(ValueError, match=match):
        StackDataset(*args, **kwargs)


def test_concatenation_and_chains():
    data = Numbers(3) + Numbers(2)
    assert [data[i] for i in range(-5, 5)] == [0, 1, 2, 0, 1] * 2
    assert data.cumulative_sizes == [3, 5]
    with pytest.raises(ValueError, match="absolute value of index"):
        data[-6]
    with pytest.raises(AssertionError, match="should not be an empty iterable"):
        ConcatDataset([])
    with pytest.raises(AssertionError, match="does not support IterableDataset"):
        ConcatDataset([Stream(1)])
    assert list(Stream(2) + Stream(1)) == [0, 1, 0]
    with pytest.raises(AssertionError, match="only supports IterableDataset"):
        list(ChainDataset([Numbers(1)]))


def test_random_split_covers_everything_once():
    parts = random_split(Numbers(10), [0.5, 0.3, 0.2], torch.Generator().manual_seed(1))
    assert [len(part) for part in parts] == [5, 3, 2]
    assert sorted(i for part in parts for i in part) == list(range(10))
    assert [len(part) for part in random_split(Numbers(10), [0.33, 0.33, 0.34])] == [4, 3, 3]
    with pytest.raises(ValueError, match="lengths must not be negative"):
        random_split(Numbers(10), [-1, 11])
    assert [len(part) for part in random_split(Numbers(5), [5, 0])] == [5, 0]
    with pytest.raises(ValueError, match="Sum of input lengths"):
        random_split(Numbers(10), [3, 3])
    with pytest.raises(ValueError, match="Fraction at index 0"):
        random_split(Numbers(10), [-0.5, 1.5])


def test_subset():
    part = Subset(Subset(Numbers(10), [9, 8, 7]), [2, 0])
    assert [part[0], part[1], len(part)] == [7, 9, 2]
    assert part.__getitems__([1, 0]) == [9, 7]


# -- samplers


def test_samplers_yield_what_they_promise():
    data = Numbers(7)
    assert list(SequentialSampler(data)) == list(range(7))
    assert sorted(RandomSampler(data)) == list(range(7))
    drawn = list(RandomSampler(data, num_samples=17))
    assert len(drawn) == 17
    assert all(drawn.count(i) in (2, 3) for i in range(7))
    drawn = list(RandomSampler(data, replacement=True, num_samples=50))
    assert len(drawn) == 50
    assert set(drawn) <= set(range(7))
    assert sorted(SubsetRandomSampler([5, 3, 4])) == [3, 4, 5]
    assert set(WeightedRandomSampler([0.0, 1.0, 3.0], 100)) == {1, 2}
    assert sorted(WeightedRandomSampler([1.0, 1.0, 3.0], 3, replacement=False)) == [0, 1, 2]


def test_seeds_determine_the_order():
    def order(seed):
        torch.manual_seed(seed)
        return list(RandomSampler(Numbers(100)))

    assert order(0) == order(0)
    assert order(0) != order(1)
    generator = torch.Generator().manual_seed(3)
    first = list(RandomSampler(Numbers(20), generator=generator))
    assert first != list(RandomSampler(Numbers(20), generator=generator))


def test_batches():
    assert list(BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    assert list(BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert [len(BatchSampler(range(5), 2, drop)) for drop in (False, True)] == [3, 2]


def test_distributed_shares_are_disjoint_and_even():
    shares = [list(DistributedSampler(Numbers(10), 3, rank, shuffle=False)) for rank in range(3)]
    assert shares == [[0, 3, 6, 9], [1, 4, 7, 0], [2, 5, 8, 1]]
    assert list(DistributedSampler(Numbers(10), 3, 0, shuffle=False, drop_last=True)) == [0, 3, 6]
    sampler = DistributedSampler(Numbers(10), 2, 0)
    first = list(sampler)
    sampler.set_epoch(1)
    assert list(sampler) != first
    with pytest.raises(ValueError, match="Invalid rank 3"):
        DistributedSampler(Numbers(10), 3, 3)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: RandomSampler(Numbers(3), replacement=1), TypeError, "replacement should be a boolean"),
        (lambda: RandomSampler(Numbers(0)), ValueError, "num_samples should be a positive integer"),
        (lambda: BatchSampler([1], 0, False), ValueError, "batch_size should be a positive integer value"),
        (lambda: BatchSampler([1], 1, 3), ValueError, "drop_last should be a boolean"),
        (lambda: WeightedRandomSampler([1.0], 0), ValueError, "num_samples should be a positive integer"),
        (lambda: WeightedRandomSampler([[1.0]], 1), ValueError, "weights should be a 1d sequence"),
    ],
)
def test_bad_arguments_of_samplers(make, error, message):
    with pytest.raises(error, match=message):
        make()


# -- collation


def test_collate_follows_the_samples():
    Point = namedtuple("Point", "x y")
    batch = default_collate(
        [{"a": 1, "b": (2.5, "x"), "c": Point(1, [2])}, {"a": 3, "b": (4.5, "y"), "c": Point(5, [6])}]
    )
    assert batch["a"].tolist() == [1, 3]
    assert batch["b"][0].dtype == torch.float64
    assert batch["b"][1] == ("x", "y")
    assert batch["c"].x.tolist() == [1, 5]
    assert batch["c"].y[0].tolist() == [2, 6]
    arrays = default_collate([np.zeros(2, np.float32), np.ones(2, np.float32)])
    assert arrays.tolist() == [[0, 0], [1, 1]]
    assert default_collate([np.float32(1), np.float32(2)]).dtype == torch.float32
    assert default_collate([True, False]).tolist() == [True, False]
    assert default_collate([torch.ones(2), torch.zeros(2)]).shape == (2, 2)


def test_collate_refuses_what_does_not_stack():
    with pytest.raises(TypeError, match="default_collate: batch must contain tensors"):
        default_collate([object()])
    with pytest.raises(TypeError, match="found <U1"):
        default_collate([np.array(["a"])])
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        default_collate([[1], [1, 2]])
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        default_collate([torch.ones(2), torch.ones(3)])


def test_convert():
    assert default_convert({"a": np.ones(2), "b": "text"})["a"].tolist() == [1, 1]
    assert default_convert((np.float32(2), 3))[1] == 3


# -- the loader


def test_batches_come_in_order():
    batches = list(DataLoader(pairs(), batch_size=4))
    assert [b[1].tolist() for b in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert batches[0][0].tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert type(batches[0]) is list
    loader = DataLoader(pairs(), batch_size=4, drop_last=True)
    assert len(loader) == len(list(loader)) == 2


def test_a_batch_has_memory_of_its_own():
    data = pairs()
    for x, _ in DataLoader(data, batch_size=5):
        x.fill_(0)
    assert data.tensors[0][1].tolist() == [2, 3]


def test_shuffling_draws_anew_each_time():
    loader = DataLoader(pairs(50), batch_size=50, shuffle=True)
    first, second = (next(iter(loader))[1].tolist() for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second


@pytest.mark.parametrize(
    "wrap", [lambda d: d, lambda d: Subset(d, list(range(9, -1, -1))), lambda d: ConcatDataset([d, d])]
)
def test_batches_equal_their_collated_samples(wrap):
    data = wrap(pairs())
    for batch, indices in zip(DataLoader(data, batch_size=3), BatchSampler(range(len(data)), 3, False), strict=True):
        expected = default_collate([data[i] for i in indices])
        assert [t.tolist() for t in batch] == [t.tolist() for t in expected]


def test_an_overridden_getitem_is_heeded():
    class Negative(TensorDataset):
        def __getitem__(self, i):
            return tuple(-t for t in super().__getitem__(i))

    (batch,) = DataLoader(Negative(torch.arange(3)), batch_size=3)
    assert batch[0].tolist() == [0, -1, -2]


def test_other_collation_and_samplers():
    assert list(DataLoader(Numbers(5), batch_size=2, collate_fn=list)) == [[0, 1], [2, 3], [4]]
    assert list(DataLoader(Numbers(3), batch_size=None)) == [0, 1, 2]
    assert [b.tolist() for b in DataLoader(Numbers(5), sampler=[4, 0])] == [[4], [0]]
    assert [b.tolist() for b in DataLoader(Numbers(5), batch_sampler=[[4, 0], [1]])] == [[4, 0], [1]]


def test_getitems_loads_a_batch_at_once():
    class AtOnce(Numbers):
        def __getitems__(self, indices):
            return [10 * i for i in indices]

    assert [b.tolist() for b in DataLoader(AtOnce(3), batch_size=2)] == [[0, 10], [20]]


def test_streams():
    assert [b.tolist() for b in DataLoader(Stream(5), batch_size=2)] == [[0, 1], [2, 3], [4]]
    assert [b.tolist() for b in DataLoader(Stream(5), batch_size=2, drop_last=True)] == [[0, 1], [2, 3]]
    assert list(DataLoader(Stream(3), batch_size=None)) == [0, 1, 2]
    assert list(DataLoader(Stream(0), batch_size=2)) == []
    with pytest.raises(TypeError, match="no len"):
        len(DataLoader(Stream(3)))


def test_no_worker_in_this_process():
    assert get_worker_info() is None


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"batch_size": 0}, ValueError, "batch_size should be a positive integer value"),
        ({"num_workers": -1}, ValueError, "num_workers option should be non-negative"),
        ({"timeout": -1}, ValueError, "timeout option should be non-negative"),
        ({"shuffle": True, "sampler": [0]}, ValueError, "sampler option is mutually exclusive with shuffle"),
        ({"batch_sampler": [[0]], "batch_size": 2}, ValueError, "batch_sampler option is mutually exclusive"),
        ({"batch_size": None, "drop_last": True}, ValueError, "batch_size=None option disables auto-batching"),
        ({"prefetch_factor": 2}, ValueError, "prefetch_factor option could only be specified"),
        ({"persistent_workers": True}, ValueError, "persistent_workers option needs num_workers > 0"),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        DataLoader(Numbers(3), **options)


def test_streams_have_no_order():
    for options in ({"shuffle": True}, {"sampler": [0]}, {"batch_sampler": [[0]]}):
        with pytest.raises(ValueError, match="DataLoader with IterableDataset: expected unspecified"):
            DataLoader(Stream(3), **options)


def test_options_are_fixed_after_the_start():
    loader = DataLoader(Numbers(3))
    with pytest.raises(ValueError, match="batch_size attribute should not be set after DataLoader is initialized"):
        loader.batch_size = 2
    loader.collate_fn = list
