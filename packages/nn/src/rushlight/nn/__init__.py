"""Neural networks: modules, their parameters, and the functions they are made of."""

# ruff: noqa: E402

from rushlight import _registry

_registry.require("nn", "rushlight.nn")  # the operators, of which the modules below take hold

from rushlight.nn import functional as functional
from rushlight.nn import init as init
from rushlight.nn import modules as modules
from rushlight.nn import parameter as parameter
from rushlight.nn.modules import *
from rushlight.nn.modules import Module as Module
from rushlight.nn.parameter import Buffer as Buffer
from rushlight.nn.parameter import Parameter as Parameter
