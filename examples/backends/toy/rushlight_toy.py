"""The toy device: NumPy behind a wall, and the operator squareplus."""

from types import ModuleType

import numpy as np

from rushlight.plugin import Backend, Op, Sample, pointwise


class Array:
    """An array of the device. Functions of the device reach its elements; NumPy must not."""

    __array_ufunc__ = None  # np.float64(2) * array asks the array

    def __init__(self, hidden):
        self._hidden = hidden

    def __array__(self, *args, **kwargs):
        raise TypeError("toy: this array lives on the device. Copy it to the host first.")

    def __getattr__(self, name):
        if name.startswith("__array"):  # the ways in which NumPy would look behind the wall
            raise AttributeError(name)
        return lift(getattr(self._hidden, name))


class Lifted:
    """A namespace or function of NumPy that takes and returns arrays of the device."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return lift(getattr(self._inner, name))

    def __call__(self, *args, **kwargs):
        with np.errstate(all="ignore"):
            return lift(self._inner(*lower(args), **lower(kwargs)))


def lift(value):
    """From NumPy's world to the device's."""
    if isinstance(value, (np.ndarray, np.generic)):
        return Array(np.asarray(value))
    if isinstance(value, tuple):
        return tuple(map(lift, value))
    if isinstance(value, ModuleType) or (callable(value) and not isinstance(value, type)):
        return Lifted(value)
    return value


def lower(value):
    """From the device's world to NumPy's."""
    if isinstance(value, Array):
        return value._hidden
    if isinstance(value, np.ndarray):
        raise TypeError("toy: got an array of the host. Copy it to the device first.")
    if isinstance(value, (tuple, list)):
        return type(value)(map(lower, value))
    if isinstance(value, dict):
        return {name: lower(item) for name, item in value.items()}
    return value


def method(name):
    return lambda self, *args: Lifted(getattr(np.ndarray, name))(self, *args)


BINARY = "add sub mul matmul truediv floordiv mod pow and or xor lshift rshift"
OTHER = "eq ne lt le gt ge neg pos abs invert getitem setitem len bool int float complex index"
NAMES = [f"__{form}{name}__" for name in BINARY.split() for form in ("", "r", "i")]
for name in NAMES + [f"__{name}__" for name in OTHER.split()]:
    setattr(Array, name, method(name))


class Toy(Backend):
    """One device; the base class does the rest through the namespace."""

    name = "toy"
    xp = Lifted(np)

    def from_host(self, array, index):
        return Array(array.copy())

    def to_host(self, array):
        return array._hidden.copy()


def squareplus_samples(make, dtype):
    yield Sample((make(2, 3),))
    yield Sample((make(), 1.0))


squareplus = (
    Op("toy::squareplus(Tensor self, float b=4.0) -> Tensor", family=pointwise("float"), method=False)
    .array(lambda xp, x, b: (x + xp.sqrt(x * x + b)) / 2)
    .grad(self="grad * conj(1 + self / sqrt(self * self + b)) / 2")
    .samples(squareplus_samples, lambda x, b=4.0: (x + np.sqrt(x * x + b)) / 2)
)


def rushlight_register_backends():
    return [Toy]


def rushlight_register_ops():
    return [squareplus]
