"""The order in which samples are drawn."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import rushlight as rl
from rushlight import Tensor

if TYPE_CHECKING:
    from rushlight import Generator

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

T = TypeVar("T", covariant=True)


class Sampler(Generic[T]):
    """Yields indices; a subclass writes ``__iter__``, and ``__len__`` where the number is known."""

    def __init__(self, data_source: Sized | None = None) -> None:
        pass

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError("Subclasses of Sampler should implement __iter__.")


class SequentialSampler(Sampler[int]):
    """All indices in order.

    Args:
        data_source: The dataset.
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


def _check_count(num_samples: Any) -> None:
    if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
        raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")


class RandomSampler(Sampler[int]):
    """All indices in random order, or random indices with replacement.

    Args:
        data_source: The dataset.
        replacement: Whether an index may come again before all others came.
        num_samples: How many are drawn. Default: the length of the dataset.
        generator: Where the order comes from. Default: one that is seeded from the global generator each time.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        _check_count(self.num_samples)

    @property
    def num_samples(self) -> int:
        """How many indices are drawn; the dataset may change its length between iterations."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, wanted, generator = len(self.data_source), self.num_samples, self.generator
        if generator is None:
            generator = rl.Generator()
            generator.manual_seed(int(rl.empty((), dtype=rl.int64).random_().item()))
        if self.replacement:
            for size in itertools.chain(itertools.repeat(32, wanted // 32), (wanted % 32,)):
                yield from rl.randint(high=n, size=(size,), dtype=rl.int64, generator=generator).tolist()
        else:
            for _ in range(wanted // n):
                yield from rl.randperm(n, generator=generator).tolist()
            yield from rl.randperm(n, generator=generator).tolist()[: wanted % n]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given indices in random order.

    Args:
        indices: The indices.
        generator: Where the order comes from. Default: the global generator.
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in rl.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with given probabilities.

    Args:
        weights: For each index; they need not sum to 1.
        num_samples: How many are drawn.
        replacement: Whether an index may come again.
        generator: Where the randomness comes from. Default: the global generator.
    """

    def __init__(
        self,
        weights: Sequence[float] | Tensor,
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        _check_count(num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        tensor = rl.as_tensor(weights, dtype=rl.float64)
        if tensor.dim() != 1:
            raise ValueError(f"weights should be a 1d sequence but given weights have shape {tuple(tensor.shape)}")
        self.weights = tensor
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = rl.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of indices of another sampler.

    Args:
        sampler: Yields single indices.
        batch_size: How many make a list.
        drop_last: Whether a last, shorter list is left out.
    """

    def __init__(self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        full, rest = divmod(len(self.sampler), self.batch_size)  # type: ignore[arg-type]
        return full + (rest > 0 and not self.drop_last)
