"""A share of a dataset for each process."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sized

import rushlight as rl
from rushlight.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th index, beginning with the `rank`-th, of an order that all processes share.

    Call `set_epoch` before each epoch, so that the order differs from the last one.

    Args:
        dataset: The dataset, of the same length in all processes.
        num_replicas: How many processes take part. Default: the size of the process group.
        rank: The number of this process. Default: that in the process group.
        shuffle: Whether the order is random.
        seed: Seed of the random order, the same in all processes.
        drop_last: Whether samples are left out, not repeated, where they do not divide evenly.
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None:
            num_replicas = rl.distributed.get_world_size()
        if rank is None:
            rank = rl.distributed.get_rank()
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        n = len(dataset)
        self.num_samples = n // num_replicas if drop_last else math.ceil(n / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        n = len(self.dataset)
        if self.shuffle:
            generator = rl.Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = rl.randperm(n, generator=generator).tolist()
        else:
            indices = list(range(n))
        while n and len(indices) < self.total_size:
            indices += indices[: self.total_size - len(indices)]
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Sets the number of the epoch, which takes part in the seed."""
        self.epoch = epoch
