"""Optimisers: algorithms that change parameters by their gradients."""

from rushlight.optim.adam import Adam as Adam
from rushlight.optim.adamw import AdamW as AdamW
from rushlight.optim.optimizer import Optimizer as Optimizer
from rushlight.optim.sgd import SGD as SGD
from rushlight.optim.sparse_adam import SparseAdam as SparseAdam
