"""What code in a loading process can learn about it."""

from __future__ import annotations

from typing import Any, NamedTuple


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
