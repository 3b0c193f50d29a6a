"""Batches from a dataset, in whichever process loads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.utils.data._collate import default_collate
from rushlight.utils.data.dataset import IterableDataset


def fetcher(dataset: Any, batched: bool, collate: Callable[[Any], Any], drop_last: bool) -> Callable[[Any], Any]:
    """The function that makes a batch of what an index sampler yields; it raises StopIteration where a stream ends."""
    fetch = _StreamFetcher if isinstance(dataset, IterableDataset) else _MapFetcher
    return fetch(dataset, batched, collate, drop_last)


class _MapFetcher:
    """Batches of a dataset with indices."""

    def __init__(self, dataset: Any, batched: bool, collate: Callable[[Any], Any], drop_last: bool) -> None:
        self._dataset, self._batched, self._collate = dataset, batched, collate
        whole = getattr(dataset, "_collated", None)
        self._whole = whole if batched and collate is default_collate else None

    def __call__(self, index: Any) -> Any:
        try:
            return self._load(index)
        except StopIteration as error:  # would end the pass without a word
            raise RuntimeError(f"DataLoader: the dataset raised StopIteration, got index={index}.") from error

    def _load(self, index: Any) -> Any:
        if self._whole is not None:
            batch = self._whole(index)
            if batch is not None:
                return batch
        if not self._batched:
            return self._collate(self._dataset[index])
        if getattr(self._dataset, "__getitems__", None):
            return self._collate(self._dataset.__getitems__(index))
        return self._collate([self._dataset[i] for i in index])


class _StreamFetcher:
    """Batches of a stream; an index says only how many samples are wanted."""

    def __init__(self, dataset: Any, batched: bool, collate: Callable[[Any], Any], drop_last: bool) -> None:
        self._stream, self._batched, self._collate, self._drop_last = iter(dataset), batched, collate, drop_last
        self._ended = False

    def __call__(self, index: Any) -> Any:
        if self._ended:
            raise StopIteration
        if not self._batched:
            return self._collate(next(self._stream))
        samples: list[Any] = []
        for _ in index:
            try:
                samples.append(next(self._stream))
            except StopIteration:
                self._ended = True
                break
        if not samples or (self._drop_last and len(samples) < len(index)):
            raise StopIteration
        return self._collate(samples)
