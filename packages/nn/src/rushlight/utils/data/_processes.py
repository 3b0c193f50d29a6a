"""Batches that other processes load."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import weakref
from collections import deque
from collections.abc import Iterator
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn

import rushlight as rl
from rushlight.utils.data._channel import Channel
from rushlight.utils.data._worker import Ended, Failure, Restart, run

if TYPE_CHECKING:
    from rushlight.utils.data.dataloader import DataLoader

_GRACE = 5.0  # seconds that a loading process has to end by itself

_own_ends: weakref.WeakSet[Channel] = weakref.WeakSet()
"""The ends of this process. A fork copies them, and a copy left open would hide that they were closed here."""


class _Worker:
    """A loading process, and the requests that it has not answered yet."""

    def __init__(self, loader: DataLoader, context: Any, number: int, base_seed: int) -> None:
        self.channel, other = Channel.pair()
        _own_ends.add(self.channel)
        self.pending = 0
        self._early: deque[Any] = deque()  # answers that had to be received to make room for a request
        self.has_ended = False  # a stream that has no more batches
        inherited = list(_own_ends) if context.get_start_method() == "fork" else []
        self.process = context.Process(
            target=run,
            args=(
                number,
                loader.num_workers,
                base_seed,
                other,
                inherited,
                loader.dataset,
                loader._auto_collation,
                loader.collate_fn,
                loader.drop_last,
                loader.worker_init_fn,
            ),
            daemon=True,
        )
        try:
            self.process.start()
        except BaseException:
            self.channel.close()
            raise
        finally:
            other.close()

    def request(self, index: Any) -> None:
        while not self.channel.may_send():
            self._early.append(self._receive())
        try:
            self.channel.send(index)
        except OSError:
            self._report_death()
        self.pending += 1

    def answer(self, timeout: float) -> Any:
        """Waits for the next answer, `timeout` seconds where that is not 0."""
        if not self._early and not self.channel.has_message(timeout or None):
            raise RuntimeError(
                f"DataLoader timed out after {timeout} seconds, waiting for the loading process {self.process.pid}. "
                "Raise timeout, or look why the dataset is so slow."
            )
        self.pending -= 1
        return self._early.popleft() if self._early else self._receive()

    def _receive(self) -> Any:
        try:
            return self.channel.receive()
        except (EOFError, OSError):
            self._report_death()

    def is_ready(self) -> bool:
        return bool(self._early) or self.channel.has_message()

    def _report_death(self) -> NoReturn:
        self.process.join(_GRACE)
        code = self.process.exitcode
        how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
        raise RuntimeError(
            f"DataLoader worker (pid(s) {self.process.pid}) exited unexpectedly: it {how}. "
            "Look at what it printed; a process that is killed may have used too much memory."
        )


def _shut_down(workers: list[_Worker]) -> None:
    """Ends loading processes: they notice the closed channel, and who does not is terminated, then killed."""
    for worker in workers:
        worker.channel.close()
    deadline = monotonic() + _GRACE
    for stop in (None, "terminate", "kill"):
        for worker in workers:
            if stop is not None and worker.process.is_alive():
                getattr(worker.process, stop)()
            worker.process.join(max(0.0, deadline - monotonic()) if stop is None else 1.0)
    for worker in workers:
        worker.process.close()
    workers.clear()


class MultiProcessIterator:
    """One pass over a loader with loading processes, or with `persistent_workers` one after another.

    The batches are asked of the processes in turn, and taken in that order.

    Attributes:
        closed: Whether the processes have ended.
    """

    def __init__(self, loader: DataLoader) -> None:
        self._loader = loader
        self._indices = iter(loader._index_sampler)
        base_seed = rl.empty((), dtype=rl.int64).random_(generator=loader.generator).item()
        context = loader.multiprocessing_context
        if context is None or isinstance(context, str):
            context = multiprocessing.get_context(context)
        self._workers: list[_Worker] = []
        self._finalizer = weakref.finalize(self, _shut_down, self._workers)
        try:
            for number in range(loader.num_workers):
                self._workers.append(_Worker(loader, context, number, base_seed))
            self._begin()
        except BaseException:
            self._finalizer()
            raise

    @property
    def closed(self) -> bool:
        """Whether the processes have ended."""
        return not self._finalizer.alive

    def restart(self) -> None:
        """Begins another pass with the same processes."""
        try:
            for worker in self._workers:
                while worker.pending:  # of a pass that was left early
                    worker.answer(self._loader.timeout)
                worker.channel.send(Restart())
                worker.has_ended = False
            self._indices = iter(self._loader._index_sampler)
            self._begin()
        except BaseException:
            self._finalizer()
            raise

    def _begin(self) -> None:
        self._asked: deque[_Worker] = deque()
        self._turn = 0
        for _ in range((self._loader.prefetch_factor or 1) * len(self._workers)):
            self._ask()

    def _ask(self) -> None:
        """Asks the process whose turn it is for the next batch, if there is one."""
        n = len(self._workers)
        for step in range(n):
            worker = self._workers[(self._turn + step) % n]
            if not worker.has_ended:
                break
        else:
            return
        try:
            index = next(self._indices)
        except StopIteration:
            return
        self._turn = (self._turn + step + 1) % n
        worker.request(index)
        self._asked.append(worker)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __len__(self) -> int:
        return len(self._loader)

    def __next__(self) -> Any:
        try:
            while self._asked:
                worker = self._next_worker()
                answer = worker.answer(self._loader.timeout)
                if isinstance(answer, Ended):
                    worker.has_ended = True
                    self._ask()
                    continue
                self._ask()
                if isinstance(answer, Failure):
                    answer.reraise()
                return self._loader._finished(answer)
        except BaseException:
            # Also with persistent workers: requests that are still on their way would be answered in the next pass.
            self._finalizer()
            self._asked.clear()
            raise
        if not self._loader.persistent_workers:
            self._finalizer()
        raise StopIteration

    def _next_worker(self) -> _Worker:
        """The process whose answer is taken next, no longer among those that were asked."""
        if not self._loader.in_order:
            ends: list[Any] = list({worker.channel for worker in self._asked})
            if not any(worker.is_ready() for worker in self._asked):
                multiprocessing.connection.wait(ends, self._loader.timeout or None)
            for worker in self._asked:
                if worker.is_ready():
                    self._asked.remove(worker)
                    return worker
        return self._asked.popleft()
