"""Batches of a dataset, one after another."""

from __future__ import annotations

import math
import multiprocessing
import warnings
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.context import BaseContext
from typing import TYPE_CHECKING, Any

import rushlight as rl
from rushlight.utils.data._collate import default_collate, default_convert, pinned
from rushlight.utils.data._fetch import fetcher
from rushlight.utils.data.dataset import IterableDataset
from rushlight.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

if TYPE_CHECKING:
    from rushlight import Generator

__all__ = ["DataLoader", "default_collate", "default_convert"]


class _InfiniteConstantSampler(Sampler[None]):
    """Stands for the sampler of a stream, which has no indices."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader:
    """Iterates over a dataset in batches.

    Args:
        dataset: Samples by index, or an `IterableDataset`.
        batch_size: Samples in a batch; None: single samples, not collated.
        shuffle: Whether the order is random, anew in each iteration.
        sampler: Yields the indices instead.
        batch_sampler: Yields lists of indices instead.
        num_workers: Loading processes; with 0 the process that iterates loads the samples.
        collate_fn: Makes a batch of a list of samples. Default: `default_collate`.
        pin_memory: Whether batches are copied into page-locked memory, for `to("cuda", non_blocking=True)`; without a
            GPU they stay as they are, with a warning.
        drop_last: Whether a last, smaller batch is left out.
        timeout: Seconds to wait for a batch of a loading process; 0: for ever.
        worker_init_fn: Called in each loading process with its number.
        multiprocessing_context: How loading processes are started: ``"fork"``, ``"spawn"``, ``"forkserver"`` or a
            context of `multiprocessing`. Default: as `multiprocessing` does.
        generator: Where the random order comes from. Default: the global generator.
        prefetch_factor: Batches that each loading process prepares. Default: 2.
        persistent_workers: Whether loading processes outlive an iteration.
        pin_memory_device: The device for `pin_memory`.
        in_order: Whether batches of loading processes come in the order of the indices.

    Raises:
        ValueError: Options exclude each other or are out of range.
        RuntimeError: While it iterates: a loading process died, or gave nothing for `timeout` seconds. What it raised
            is raised again, with its traceback in the message.

    Example:
        >>> import rushlight as torch
        >>> from rushlight.utils.data import DataLoader, TensorDataset
        >>> for (x,) in DataLoader(TensorDataset(torch.arange(5)), batch_size=2):
        ...     print(x)
        tensor([0, 1])
        tensor([2, 3])
        tensor([4])
    """

    _iterator: Any = None  # with persistent workers, their iterator
    _fixed = frozenset({"batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"})

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        self._check_workers(num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context)
        if pin_memory and not rl.cuda.is_available():
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
                "used.",
                stacklevel=2,
            )
        streams = isinstance(dataset, IterableDataset)
        if streams:
            for name, value in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
                if value is not None:
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
                    )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if streams:
                sampler = _InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)  # type: ignore[arg-type]
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate

        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self._initialized = True

    @staticmethod
    def _check_workers(num_workers: int, timeout: float, prefetch: Any, persistent: bool, context: Any) -> None:
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers > 0:
            if prefetch is not None and prefetch < 1:
                raise ValueError("prefetch_factor option should be at least 1")
            if isinstance(context, str) and context not in multiprocessing.get_all_start_methods():
                raise ValueError(
                    "multiprocessing_context option should specify a valid start method in "
                    f"{multiprocessing.get_all_start_methods()}, but got multiprocessing_context={context!r}"
                )
            if not (context is None or isinstance(context, (str, BaseContext))):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying the start "
                    f"method, but got multiprocessing_context={context}"
                )
            return
        if prefetch is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing."
                "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
            )
        if persistent:
            raise ValueError("persistent_workers option needs num_workers > 0")
        if context is not None:
            raise ValueError(
                "multiprocessing_context can only be used with multi-process loading (num_workers > 0), "
                f"but got num_workers={num_workers}"
            )

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._fixed and "_initialized" in self.__dict__:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        from rushlight.utils.data._processes import MultiProcessIterator

        if not self.persistent_workers:
            return MultiProcessIterator(self)
        if self._iterator is None or self._iterator.closed:
            self._iterator = MultiProcessIterator(self)
        else:
            self._iterator.restart()
        return self._iterator

    def _finished(self, batch: Any) -> Any:
        return pinned(batch) if self.pin_memory and rl.cuda.is_available() else batch

    def __len__(self) -> int:
        if not isinstance(self.dataset, IterableDataset):
            return len(self._index_sampler)
        samples = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return samples
        return samples // self.batch_size if self.drop_last else math.ceil(samples / self.batch_size)


class _SingleProcessDataLoaderIter:
    """One pass over a loader, in the process that iterates."""

    def __init__(self, loader: DataLoader) -> None:
        if loader.timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        self._loader = loader
        self._indices = iter(loader._index_sampler)
        # The seed of loading processes. It is drawn without them too, so that their number changes no random stream.
        self._base_seed = rl.empty((), dtype=rl.int64).random_(generator=loader.generator).item()
        self._fetch = fetcher(loader.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._loader._finished(self._fetch(next(self._indices)))

    def __len__(self) -> int:
        return len(self._loader)
