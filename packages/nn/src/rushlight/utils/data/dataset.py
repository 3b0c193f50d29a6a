"""Collections of samples, by index or as a stream."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import rushlight as rl
from rushlight import Tensor

if TYPE_CHECKING:
    from rushlight import Generator

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

T = TypeVar("T", covariant=True)


class Dataset(Generic[T]):
    """Samples by index: a subclass writes ``__getitem__``, and ``__len__`` where the number is known.

    It may also write ``__getitems__(indices)``, which returns a list of samples at once.
    """

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[T]) -> ConcatDataset[T]:
        return ConcatDataset([self, other])

    def _collated(self, indices: Sequence[int]) -> Any:
        """The batch that `default_collate` would make of these samples, or None where only the samples tell."""
        return None


class IterableDataset(Dataset[T]):
    """Samples as a stream: a subclass writes ``__iter__``."""

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other: Dataset[T]) -> ChainDataset[T]:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Tensors with a common first dimension; a sample is a tuple of one entry of each.

    Args:
        *tensors: (N, *) each.
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensor.size(0) != tensors[0].size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)

    def _collated(self, indices: Sequence[int]) -> Any:
        if type(self).__getitem__ is not TensorDataset.__getitem__ or hasattr(self, "__getitems__"):
            return None
        index = rl.tensor(indices)
        return [tensor[index] for tensor in self.tensors]


class StackDataset(Dataset[Any]):
    """Datasets side by side; a sample is a tuple, or a dict, of one sample of each.

    Args:
        *args: Datasets of one length, for samples that are tuples.
        **kwargs: Datasets of one length by name, for samples that are dicts.

    Raises:
        ValueError: Both kinds are given, or none, or the lengths differ.

    Example:
        >>> from rushlight.utils.data import StackDataset
        >>> StackDataset(image=["a", "b"], label=[0, 1])[1]
        {'image': 'b', 'label': 1}
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or ``dict``- (via ``kwargs``) like input/output, but both "
                f"types are given: {len(args)} args and kwargs={sorted(kwargs)}. Name all datasets or none."
            )
        self.datasets: Any = args or kwargs
        if not self.datasets:
            raise ValueError("At least one dataset should be passed")
        lengths = [len(dataset) for dataset in args or kwargs.values()]
        if min(lengths) != max(lengths):
            raise ValueError(
                f"Size mismatch between datasets, got lengths={lengths}. Take a Subset of the longer ones."
            )
        self._length = lengths[0]

    def _samples(self, parts: Any) -> Any:
        return tuple(parts) if isinstance(self.datasets, tuple) else dict(zip(self.datasets, parts, strict=True))

    @property
    def _parts(self) -> Iterable[Any]:
        return self.datasets if isinstance(self.datasets, tuple) else self.datasets.values()

    def __getitem__(self, index: Any) -> Any:
        return self._samples(dataset[index] for dataset in self._parts)

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """A list of samples.

        Raises:
            ValueError: The ``__getitems__`` of a dataset gives another number of samples.
        """
        columns = []
        for dataset in self._parts:
            many = getattr(dataset, "__getitems__", None)
            columns.append(many(indices) if callable(many) else [dataset[i] for i in indices])
            if len(columns[-1]) != len(indices):
                raise ValueError(
                    f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(columns[-1])}"
                )
        return [self._samples(row) for row in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T]):
    """Datasets one after another.

    Args:
        datasets: They have a length each.
    """

    datasets: list[Dataset[T]]
    cumulative_sizes: list[int]

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """The sums of lengths up to each dataset."""
        return list(itertools.accumulate(map(len, sequence)))

    def __init__(self, datasets: Iterable[Dataset[T]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T:
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - self.cumulative_sizes[which - 1] if which else index]


class ChainDataset(IterableDataset[T]):
    """Streams one after another.

    Args:
        datasets: Instances of `IterableDataset`.
    """

    def __init__(self, datasets: Iterable[Dataset[T]]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[T]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield from dataset

    def __len__(self) -> int:
        return sum(map(len, self.datasets))  # type: ignore[arg-type]


class Subset(Dataset[T]):
    """Some samples of a dataset.

    Args:
        dataset: The whole.
        indices: Which of its samples, in order.
    """

    def __init__(self, dataset: Dataset[T], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[T]:
        """A list of samples."""
        chosen = [self.indices[i] for i in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.dataset.__getitems__(chosen)  # type: ignore[attr-defined]
        return [self.dataset[i] for i in chosen]

    def __len__(self) -> int:
        return len(self.indices)

    def _collated(self, indices: Sequence[int]) -> Any:
        cls = type(self)
        if cls.__getitem__ is not Subset.__getitem__ or cls.__getitems__ is not Subset.__getitems__:
            return None
        collated = getattr(self.dataset, "_collated", None)
        return None if collated is None else collated([self.indices[i] for i in indices])


def random_split(
    dataset: Dataset[T], lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset[T]]:
    """Splits a dataset at random into parts that do not overlap.

    Args:
        dataset: The whole.
        lengths: Lengths that sum to the whole, or fractions that sum to 1.
        generator: Where the random order comes from. Default: the global generator.

    Raises:
        ValueError: A fraction is outside [0, 1], a length is negative, or they do not sum to the whole.
    """
    whole = len(dataset)  # type: ignore[arg-type]
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for i, share in enumerate(lengths):
            if share < 0 or share > 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        sizes = [math.floor(whole * share) for share in lengths]
        for i in range(whole - sum(sizes)):
            sizes[i % len(sizes)] += 1
        lengths = sizes
    if any(length < 0 for length in lengths):
        raise ValueError(f"random_split: lengths must not be negative, got lengths={list(lengths)}.")
    if sum(lengths) != whole:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = iter(rl.randperm(whole, generator=generator).tolist())
    return [Subset(dataset, list(itertools.islice(order, int(length)))) for length in lengths]
