"""Optimisers: algorithms that change parameters by their gradients; schedulers of their learning rate."""

from rushlight.optim import lr_scheduler as lr_scheduler, swa_utils as swa_utils
from rushlight.optim.adadelta import Adadelta as Adadelta
from rushlight.optim.adafactor import Adafactor as Adafactor
from rushlight.optim.adagrad import Adagrad as Adagrad
from rushlight.optim.adam import Adam as Adam
from rushlight.optim.adamax import Adamax as Adamax
from rushlight.optim.adamw import AdamW as AdamW
from rushlight.optim.asgd import ASGD as ASGD
from rushlight.optim.lbfgs import LBFGS as LBFGS
from rushlight.optim.muon import Muon as Muon
from rushlight.optim.nadam import NAdam as NAdam
from rushlight.optim.optimizer import Optimizer as Optimizer
from rushlight.optim.radam import RAdam as RAdam
from rushlight.optim.rmsprop import RMSprop as RMSprop
from rushlight.optim.rprop import Rprop as Rprop
from rushlight.optim.sgd import SGD as SGD
from rushlight.optim.sparse_adam import SparseAdam as SparseAdam
