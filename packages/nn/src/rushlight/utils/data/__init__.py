"""Datasets, the order in which their samples are drawn, and batches of them."""

from rushlight.plugin import claim as _claim
from rushlight.utils.data._collate import default_collate as default_collate, default_convert as default_convert
from rushlight.utils.data._worker import get_worker_info as get_worker_info
from rushlight.utils.data.dataloader import DataLoader as DataLoader
from rushlight.utils.data.dataset import (
    ChainDataset as ChainDataset,
    ConcatDataset as ConcatDataset,
    Dataset as Dataset,
    IterableDataset as IterableDataset,
    StackDataset as StackDataset,
    Subset as Subset,
    TensorDataset as TensorDataset,
    random_split as random_split,
)
from rushlight.utils.data.distributed import DistributedSampler as DistributedSampler
from rushlight.utils.data.sampler import (
    BatchSampler as BatchSampler,
    RandomSampler as RandomSampler,
    Sampler as Sampler,
    SequentialSampler as SequentialSampler,
    SubsetRandomSampler as SubsetRandomSampler,
    WeightedRandomSampler as WeightedRandomSampler,
)

_claim(globals())

for _function in (default_collate, default_convert, get_worker_info):
    _function.__module__ = __name__
