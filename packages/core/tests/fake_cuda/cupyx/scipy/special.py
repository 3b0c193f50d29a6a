"""SciPy's special functions on arrays of the device."""

import scipy.special
from cupy import Module

_functions = Module(scipy.special)


def __getattr__(name):
    return getattr(_functions, name)
