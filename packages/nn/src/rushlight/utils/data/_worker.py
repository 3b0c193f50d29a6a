"""The loading process, and what code in it can learn about it."""

from __future__ import annotations

import random
import sys
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import rushlight as rl
from rushlight.utils.data._channel import Channel
from rushlight.utils.data._fetch import fetcher


class WorkerInfo(NamedTuple):
    """The loading process that code runs in.

    Attributes:
        id: Its number, from 0.
        num_workers: How many there are.
        seed: The seed of its random numbers.
        dataset: Its copy of the dataset.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """The loading process that this code runs in, or None in the process that iterates."""
    return _worker_info


class Failure(NamedTuple):
    """An exception of a loading process on its way to the process that iterates."""

    kind: type[BaseException]
    text: str

    @classmethod
    def caught(cls, where: str) -> Failure:
        """The exception that is being handled."""
        kind, value, trace = sys.exc_info()
        assert kind is not None
        text = "".join(traceback.format_exception(kind, value, trace))
        return cls(kind, f"Caught {kind.__name__} {where}.\nOriginal {text}")

    def reraise(self) -> None:
        """Raises the exception again, with the traceback that it had for its message."""
        if issubclass(self.kind, KeyError):
            raise self.kind(_Verbatim(self.text))
        try:
            error = self.kind(self.text)
        except Exception:  # a type that takes other arguments
            raise RuntimeError(self.text) from None
        raise error


class _Verbatim(str):
    """The message of a KeyError, which prints its repr."""

    def __repr__(self) -> str:
        return str(self)


class Ended:
    """The answer of a stream that has no more batches."""


class Restart:
    """The request to begin the dataset again."""


def run(
    number: int,
    num_workers: int,
    base_seed: int,
    channel: Channel,
    inherited: list[Channel],
    dataset: Any,
    batched: bool,
    collate: Callable[[Any], Any],
    drop_last: bool,
    init: Callable[[int], None] | None,
) -> None:
    """The loop of a loading process: each request is an index, or a list of them, and has one answer.

    Args:
        number: Of this process, from 0.
        num_workers: How many there are.
        base_seed: From which all their seeds derive.
        channel: Where requests come from.
        inherited: Ends of channels that belong to the process that iterates, which a fork has copied.
        dataset: Where samples come from.
        batched: Whether requests are lists.
        collate: Makes a batch.
        drop_last: Whether a smaller batch at the end of a stream is left out.
        init: Called once with `number`.
    """
    for end in inherited:
        end.close()
    global _worker_info
    seed = base_seed + number
    _worker_info = WorkerInfo(number, num_workers, seed, dataset)
    where = f"in DataLoader worker process {number}"
    fetch: Callable[[Any], Any] | None = None
    failure: Failure | None = None
    try:
        rl.set_num_threads(1)
        _seed_everything(seed, base_seed, number)
        if init is not None:
            init(number)
        fetch = fetcher(dataset, batched, collate, drop_last)
    except Exception:
        failure = Failure.caught(where)
    try:
        while True:
            request = channel.receive()
            if isinstance(request, Restart):
                fetch = fetcher(dataset, batched, collate, drop_last)
                continue
            answer: Any
            try:
                answer = failure or fetch(request)  # type: ignore[misc]
            except StopIteration:
                answer = Ended()
            except Exception:
                answer = Failure.caught(where)
            try:
                channel.send(answer)
            except OSError:
                raise
            except Exception:  # the batch cannot be pickled
                channel.send(Failure.caught(where))
    except (EOFError, OSError, KeyboardInterrupt):
        pass  # nobody asks any more


def _seed_everything(seed: int, base_seed: int, number: int) -> None:
    random.seed(seed)
    rl.manual_seed(seed)
    import numpy as np

    entropy = [number, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    np.random.seed(np.random.SeedSequence(entropy).generate_state(4))
