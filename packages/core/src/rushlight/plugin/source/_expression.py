"""Arrays that are not computed yet: NumPy's elementwise functions and operators build expressions of C."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Self

import numpy as np

from ._kernel import Node
from ._scalar import BFLOAT16, BOOL, FLOAT32, SPECIAL, c_type, expression, real_of


class Expression:
    """An array that may not be computed yet. An array type inherits operators and elementwise functions from it.

    Attributes:
        dtype: NumPy's dtype.
        shape: Sizes.
        node: How it follows from other arrays; None where it is in memory.
        strides: In memory, elements from one to the next in each dimension, not negative.
        offset: Elements before the first one.
        buffer: The memory, as the argument of a kernel.
        device: What runs kernels, by `run(source, arguments, size, group)`, see `Source.run`.
    """

    __slots__ = ("__weakref__",)
    __array_ufunc__ = None  # np.float64(2) * array asks the array
    __hash__ = object.__hash__

    dtype: np.dtype
    shape: tuple[int, ...]
    node: Node | None
    strides: tuple[int, ...]
    offset: int
    buffer: Any
    device: Any

    @classmethod
    def put_off(cls, shape: tuple[int, ...], dtype: np.dtype, node: Node) -> Self:
        """An array that `node` will compute. To be overridden."""
        raise NotImplementedError

    @staticmethod
    def empty(shape: Any, dtype: Any, device: Any = None) -> Any:
        """A contiguous array in memory, contents arbitrary. To be overridden."""
        raise NotImplementedError

    @staticmethod
    def ufunc(name: str, *arguments: Any) -> Any:
        """What Python's operators call, by the name of the ufunc; a type may have another way where this has none."""
        return apply(name, *arguments)

    @property
    def special(self) -> Any:
        """SciPy's special functions for arrays of this type, by name."""
        return Special(self)

    def astype(self, dtype: Any) -> Self:
        """The elements in another dtype."""
        dtype = np.dtype(dtype)
        c_type(dtype)
        return self.put_off(self.shape, dtype, Node("{0}", (self,), (dtype,), dtype))


class Special:
    """SciPy's special functions of an array, by name.

    Args:
        array: Any array of the type.
    """

    def __init__(self, array: Expression) -> None:
        self._array = array

    def __getattr__(self, name: str) -> Any:
        if name in SPECIAL:
            return partial(self._array.ufunc, name)
        raise NotImplementedError(f'"{name}" not implemented for arrays of this device. Compute it on the CPU.')


def _operators() -> None:
    names = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide"}
    names |= {"mod": "remainder", "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}
    names |= {"lshift": "left_shift", "rshift": "right_shift"}
    compared = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater"}
    compared |= {"ge": "greater_equal"}
    for name, ufunc in (names | compared).items():
        setattr(Expression, f"__{name}__", lambda a, b, ufunc=ufunc: a.ufunc(ufunc, a, b))
    for name, ufunc in names.items():
        setattr(Expression, f"__r{name}__", lambda a, b, ufunc=ufunc: a.ufunc(ufunc, b, a))
    for name, ufunc in {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}.items():
        setattr(Expression, f"__{name}__", lambda a, ufunc=ufunc: a.ufunc(ufunc, a))


_operators()

_TRUTH = ("logical_and", "logical_or", "logical_xor", "logical_not")
_NUMBERS: dict[type, Any] = {bool: BOOL, int: int, float: float, complex: complex}


@cache
def _loop(name: str, dtypes: tuple[Any, ...]) -> tuple[str, tuple[np.dtype, ...], np.dtype]:
    """The expression of a ufunc for argument dtypes, the dtypes that it computes in, and that of its result."""
    if name in _TRUTH:
        return expression(name, BOOL), (BOOL,) * len(dtypes), BOOL
    if BFLOAT16 in dtypes:
        dtypes = tuple(FLOAT32 if each == BFLOAT16 else each for each in dtypes)
    *inputs, output = getattr(np, name, np.exp).resolve_dtypes((*dtypes, None))
    return expression(name, inputs[0]), tuple(inputs), output


def apply(name: str, *arguments: Any) -> Any:
    """A NumPy ufunc of arrays, at least one, and numbers, as an expression; dtypes follow NumPy's rules.

    Raises:
        NotImplementedError: No expression computes it for these dtypes.
        TypeError: An argument is an array of the host.
    """
    array: Expression | None = None
    key, shapes = [], []
    for each in arguments:
        if isinstance(each, Expression):
            array = each
            shapes.append(each.shape)
        elif isinstance(each, np.ndarray) and each.ndim:
            raise TypeError(f"{name} got an array of the host. Copy it to the device first.")
        key.append(getattr(each, "dtype", None) or _NUMBERS[type(each)])
    assert array is not None
    code, inputs, output = _loop(name, tuple(key))
    shape = shapes[0] if shapes[1:] == shapes[:-1] else np.broadcast_shapes(*shapes)
    return array.put_off(shape, output, Node(code, arguments, inputs, inputs[0]))


def where(condition: Any, x: Any, y: Any) -> Any:
    """`x` where the condition holds, else `y`, as an expression."""
    kinds = [each.dtype if isinstance(each, (Expression, np.generic)) else each for each in (x, y)]
    dtype = np.result_type(*kinds)
    arrays = [each for each in (condition, x, y) if isinstance(each, Expression)]
    node = Node("({0} ? {1} : {2})", (condition, x, y), (BOOL, dtype, dtype), dtype)
    return arrays[0].put_off(np.broadcast_shapes(*(each.shape for each in arrays)), dtype, node)


def clip(x: Any, low: Any = None, high: Any = None) -> Any:
    """`x`, no less than `low` and no more than `high`."""
    x = x if low is None else apply("maximum", x, low)
    return x if high is None else apply("minimum", x, high)


def round(x: Any, decimals: int = 0) -> Any:
    """To the nearest number of so many decimals, halves to the even one."""
    if x.dtype.kind in "biu" and decimals >= 0:
        return +x if x.dtype != BOOL else x.astype(BOOL)
    if not decimals:
        return apply("rint", x)
    up, down = ("multiply", "divide") if decimals > 0 else ("divide", "multiply")
    scale = 10.0 ** abs(decimals)
    return apply(down, apply("rint", apply(up, x, scale)), scale).astype(x.dtype)


def sinc(x: Any) -> Any:
    """`sin(pi x) / (pi x)`."""
    angle = x * math.pi
    return where(x == 0, 1, apply("sin", angle) / where(angle == 0, 1, angle))


def angle(x: Any) -> Any:
    """Of complex numbers, in radians."""
    if x.dtype.kind == "c":
        return apply("arctan2", imag(x), real(x))
    return where(x != x, x, where(x < 0, math.pi, 0.0) + x * 0)


def real(x: Any) -> Any:
    """The real part."""
    return _part(x, "x") if x.dtype.kind == "c" else x


def imag(x: Any) -> Any:
    """The imaginary part."""
    return _part(x, "y") if x.dtype.kind == "c" else where(x != x, 0, 0).astype(x.dtype)


def _part(x: Any, which: str) -> Any:
    part = real_of(x.dtype)
    return x.put_off(x.shape, part, Node(f"{{0}}.{which}", (x,), (x.dtype,), part))


def isposinf(x: Any) -> Any:
    """Whether elements are positive infinity."""
    return x == math.inf if x.dtype.kind == "f" else x != x


def isneginf(x: Any) -> Any:
    """Whether elements are negative infinity."""
    return x == -math.inf if x.dtype.kind == "f" else x != x


def frexp(x: Any) -> tuple[Any, Any]:
    """Mantissa in [0.5, 1) and exponent, int32."""
    int32 = np.dtype("int32")
    code = "(isfinite({0}) && {0} != 0 ? ilogb({0}) + 1 : 0)"
    exponent = x.put_off(x.shape, int32, Node(code, (x,), (x.dtype,), x.dtype))
    return x.put_off(x.shape, x.dtype, Node("ldexp({0}, -{1})", (x, exponent), (x.dtype, int32), x.dtype)), exponent


ALIASES = {"abs": "absolute", "true_divide": "divide", "conj": "conjugate", "bitwise_not": "invert", "pow": "power"}
"""Further names of ufuncs."""

ELEMENTWISE: dict[str, Callable[..., Any]] = {
    each.__name__: each for each in (where, clip, round, sinc, angle, real, imag, isposinf, isneginf, frexp)
}
"""NumPy's functions of single elements that are no ufuncs."""
