"""Neural networks: modules, their parameters, and the functions they are made of."""

from importlib import import_module as _import_module

from rushlight.plugin import require as _require

_require("nn", "rushlight.nn")  # the operators, of which the modules below take hold

from rushlight.nn import functional as functional, init as init, modules as modules, parameter as parameter
from rushlight.nn.modules import *
from rushlight.nn.modules import Module as Module
from rushlight.nn.parameter import (
    Buffer as Buffer,
    Parameter as Parameter,
    UninitializedBuffer as UninitializedBuffer,
    UninitializedParameter as UninitializedParameter,
    factory_kwargs as factory_kwargs,
)

utils = _import_module("rushlight.nn.utils")  # in the place of rushlight.nn.modules.utils, which * brings
