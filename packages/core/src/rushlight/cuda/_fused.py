"""Array kernels over CuPy in which what is computed element by element becomes one kernel, compiled by NVRTC.

An array kernel gets `Deferred` arrays and a `Namespace`. Elementwise functions build expressions
(`rushlight.plugin.source`); whatever else is asked for is CuPy's, on arrays that are computed by then.
"""

from __future__ import annotations

import importlib
import math
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple, Self

import numpy as np

from ..plugin.source import (
    ALIASES,
    CUDA,
    ELEMENTWISE,
    EXPRESSIONS,
    SPECIAL,
    Expression,
    Node,
    apply,
    c_type,
    fold_of,
    store,
    store_lines,
)

LARGEST = 128
"""Nodes of an expression, at most; larger ones are computed in parts."""

PLANS = 4096
"""Plans that are kept, at most."""

LINE, FEW_LINES = 1 << 14, 64
"""Where lines are longer and as few, a group of threads for each is too few threads: CuPy reduces them."""

FOLDS = {"sum": "add", "prod": "multiply", "max": "maximum", "amax": "maximum", "min": "minimum", "amin": "minimum"}
"""Reductions that kernels compute on the way, and how."""

UFUNCS = {name: name for name in EXPRESSIONS.keys() - SPECIAL.keys()} | ALIASES


class Launcher:
    """Starts generated kernels on the current GPU and stream; CuPy keeps what is compiled in memory and on disk.

    Args:
        cupy: CuPy.
    """

    def __init__(self, cupy: Any) -> None:
        self.cupy = cupy
        self.plans: dict[Any, Plan] = {}
        self._kernels: dict[str, Any] = {}

    def run(self, source: str, arguments: Sequence[Any], size: Sequence[int], group: Sequence[int]) -> None:
        """Starts the kernel `run` of a source.

        Args:
            source: C over the names of `rushlight.plugin.source`.
            arguments: CuPy's arrays, NumPy's numbers, and NumPy's arrays for structs, in the order of the parameters.
            size: Threads; rounded up to whole blocks, so that kernels must check their place.
            group: Threads of a block.
        """
        kernel = self._kernels.get(source)
        if kernel is None:
            kernel = self._kernels[source] = self.cupy.RawKernel(CUDA + source, "run", options=("--std=c++17",))
        kernel((-(-size[0] // group[0]),), tuple(group), tuple(arguments))


class Plan(NamedTuple):
    """One launch that an array kernel comes to, for arguments of the same shapes, strides, dtypes and numbers.

    Attributes:
        results: Shape and dtype of each.
        several: Whether they make a tuple.
        source: As in `Launcher.run`.
        arguments: Numbers and structs, None in the place of an array.
        places: For each array its place in `arguments`, and which argument of the array kernel it is; -1 is the first
            result, -2 the second.
        size: As in `Launcher.run`.
        group: As in `Launcher.run`.
    """

    results: tuple[tuple[tuple[int, ...], np.dtype], ...]
    several: bool
    source: str
    arguments: tuple[Any, ...]
    places: tuple[tuple[int, int], ...]
    size: Sequence[int]
    group: Sequence[int]

    def run(self, launcher: Launcher, args: Sequence[Any]) -> Any:
        """Launches it for other arrays; returns the results."""
        results = tuple(launcher.cupy.empty(shape, dtype) for shape, dtype in self.results)
        arguments = list(self.arguments)
        for place, which in self.places:
            arguments[place] = results[-1 - which] if which < 0 else args[which]
        launcher.run(self.source, arguments, self.size, self.group)
        return results if self.several else results[0]


class Session:
    """One run of an array kernel.

    Attributes:
        cupy: CuPy.
        launcher: What its kernels run on.
        pending: What may not be computed yet.
        launches: The kernels that it started, with what `Launcher.run` takes.
        looked: Whether anything but expressions was made, so that values may have decided what comes next.
    """

    __slots__ = ("cupy", "launcher", "launches", "looked", "pending")

    def __init__(self, launcher: Launcher) -> None:
        self.cupy = launcher.cupy
        self.launcher = launcher
        self.pending: list[weakref.ref[Deferred]] = []
        self.launches: list[tuple[Any, ...]] = []
        self.looked = False

    def run(self, *launch: Any) -> None:
        """`Launcher.run`, remembered."""
        self.launches.append(launch)
        self.launcher.run(*launch)

    def settle(self) -> None:
        """Computes all expressions, before memory is written that they may read."""
        for each in self.pending:
            found = each()
            if found is not None:
                found.array()
        self.pending.clear()

    def wrap(self, value: Any) -> Any:
        """CuPy's arrays as `Deferred`s, in tuples and lists too."""
        if isinstance(value, self.cupy.ndarray):
            return Deferred(self, value)
        if isinstance(value, (tuple, list)):
            fields = map(self.wrap, value)
            return type(value)(*fields) if hasattr(value, "_fields") else type(value)(fields)
        return value

    def call(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A function of CuPy, of and to `Deferred`s."""
        self.looked = True
        return self.wrap(fn(*map(computed, args), **{name: computed(value) for name, value in kwargs.items()}))


def computed(value: Any) -> Any:
    """`Deferred`s as CuPy's arrays, in tuples, lists and slices too."""
    if isinstance(value, Deferred):
        return value.array()
    if isinstance(value, (tuple, list)):
        fields = map(computed, value)
        return type(value)(*fields) if hasattr(value, "_fields") else type(value)(fields)
    if isinstance(value, slice):
        return slice(computed(value.start), computed(value.stop), computed(value.step))
    return value


class Deferred(Expression):
    """An array of CuPy, or an expression over such that is computed when it is needed.

    Args:
        session: To which it belongs.
        array: CuPy's array; None for an expression.
    """

    __slots__ = ("_array", "depth", "dtype", "line", "node", "session", "shape")

    offset = 0
    line: tuple[tuple[int, ...], tuple[int, ...]] | None
    """Over which dimensions its expression reduces, of which shape; None where it does not."""

    def __init__(self, session: Session, array: Any) -> None:
        self.session = session
        self._array = array
        self.node = None
        self.line = None
        self.depth = 0
        if array is not None:
            self.shape, self.dtype = array.shape, array.dtype

    @classmethod
    def of(cls, session: Session, shape: tuple[int, ...], dtype: np.dtype, node: Node) -> Self:
        """An expression that `node` computes, which may have no array among its arguments."""
        result = cls(session, None)
        result.shape, result.dtype, result.node = shape, dtype, node
        return result

    @classmethod
    def put_off(cls, shape: tuple[int, ...], dtype: np.dtype, node: Node) -> Self:
        arrays = [each for each in node.arguments if isinstance(each, Deferred)]
        lines = {each.line for each in arrays if each.line}
        if len(lines) > 1 or not all(_follows(shape, *line) for line in lines):
            for each in arrays:
                if each.line:
                    each.array()
            lines = set()
        result = cls.of(arrays[0].session, shape, dtype, node)
        result.line = lines.pop() if lines else None
        result.depth = 1 + sum(array.depth for array in arrays)
        result.session.pending.append(weakref.ref(result))
        if result.depth > LARGEST:
            result.array()
        return result

    @staticmethod
    def ufunc(name: str, *arguments: Any) -> Any:
        try:
            return apply(name, *arguments)
        except NotImplementedError:  # CuPy computes it
            session = next(each.session for each in arguments if isinstance(each, Deferred))
            return session.call(getattr(special() if name in SPECIAL else session.cupy, name), *arguments)

    def array(self) -> Any:
        """CuPy's array."""
        self.session.looked = True
        if self._array is None:
            compute_together([self])
        return self._array

    def fold(self, name: str, axes: tuple[int, ...]) -> Deferred:
        """Its elements combined over dimensions, which stay with the size 1, by a ufunc."""
        line = (axes, self.shape)
        if self.line not in (None, line):
            self.array()
        node = Node("{0}", (self,), (self.dtype,), self.dtype, fold=fold_of(name, self.dtype))
        result = self.of(self.session, tuple(1 if d in axes else n for d, n in enumerate(self.shape)), self.dtype, node)
        result.line, result.depth = line, self.depth + 1
        self.session.pending.append(weakref.ref(result))
        return result

    # -- what kernels read of it

    def _runs_back(self) -> bool:
        return any(step < 0 for step in self.array().strides)

    @property
    def buffer(self) -> Any:
        return self.session.cupy.ascontiguousarray(self.array()) if self._runs_back() else self.array()

    @property
    def device(self) -> Any:
        return self.session

    @property
    def strides(self) -> Any:  # type: ignore[override]
        if self._runs_back():  # kernels read a copy
            return tuple(math.prod(self.shape[d + 1 :]) for d in range(self.ndim))
        return tuple(step // self.dtype.itemsize for step in self.array().strides)

    # -- as an array

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def real(self) -> Any:
        return ELEMENTWISE["real"](self)

    @property
    def imag(self) -> Any:
        return ELEMENTWISE["imag"](self)

    @property
    def special(self) -> Any:
        return Special(self)

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        return self if not copy and self.dtype == dtype else super().astype(dtype)

    def conj(self) -> Any:
        return self.ufunc("conjugate", self)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.array(), name)
        if not callable(found):
            return self.session.wrap(found)

        def method(*args: Any, **kwargs: Any) -> Any:
            self.session.settle()  # it may write
            return self.session.call(found, *args, **kwargs)

        return method

    def __getitem__(self, key: Any) -> Any:
        return self.session.wrap(self.array()[computed(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        value = computed(value)
        self.session.settle()
        self.array()[computed(key)] = value

    def __matmul__(self, other: Any) -> Any:
        return self.session.call(self.session.cupy.matmul, self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return self.session.call(self.session.cupy.matmul, other, self)

    def __len__(self) -> int:
        return len(self.array())

    def __bool__(self) -> bool:
        return bool(self.array())

    def __int__(self) -> int:
        return int(self.array())

    def __float__(self) -> float:
        return float(self.array())

    def __complex__(self) -> complex:
        return complex(self.array())

    def __index__(self) -> int:
        return int(self.array().__index__())

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise TypeError("cuda: this array lives on the GPU. Copy it to the host first.")


def _follows(shape: tuple[int, ...], axes: tuple[int, ...], space: tuple[int, ...]) -> bool:
    """Whether an array of a shape has an element for each element, or for each line along `axes`, of a space."""
    return shape in (space, tuple(1 if d in axes else n for d, n in enumerate(space)))


def compute_together(values: Sequence[Deferred]) -> None:
    """Computes expressions, in one kernel those that reduce over the same lines."""
    by_line: dict[Any, list[Deferred]] = {}
    for each in values:
        if each.node is not None:
            by_line.setdefault(each.line or id(each), []).append(each)
    for group in by_line.values():
        targets = [Deferred(each.session, each.session.cupy.empty(each.shape, each.dtype)) for each in group]
        line = group[0].line
        if line:
            store_lines(targets, group, *line)
        else:
            store(targets[0], group[0])
        for target, value in zip(targets, group, strict=True):
            value._array, value.node, value.line, value.depth = target._array, None, None, 0


def special() -> Any:
    """CuPy's special functions."""
    return importlib.import_module("cupyx.scipy.special")


class Special:
    """SciPy's special functions of a `Deferred`: fused where C has them, else CuPy's."""

    def __init__(self, array: Deferred) -> None:
        self._array = array

    def __getattr__(self, name: str) -> Any:
        if name in SPECIAL:
            return partial(Deferred.ufunc, name)
        return getattr(Namespace(self._array.session, special()), name)


class Ufunc:
    """One of NumPy's ufuncs on `Deferred`s; its methods are CuPy's."""

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs or not any(isinstance(each, Deferred) for each in args):
            return self._session.call(getattr(self._session.cupy, self._name), *args, **kwargs)
        return Deferred.ufunc(self._name, *args)

    def __getattr__(self, name: str) -> Any:
        method = getattr(getattr(self._session.cupy, self._name), name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self._session.settle()  # `at` writes
            return self._session.call(method, *args, **kwargs)

        return call


class Namespace:
    """CuPy's functions on `Deferred`s: what array kernels call `xp`.

    Args:
        session: To which their results belong.
        module: CuPy, or a module of it.
    """

    def __init__(self, session: Session, module: Any) -> None:
        self._session = session
        self._module = module

    def __getattr__(self, name: str) -> Any:
        session = self._session
        if self._module is session.cupy:
            if name in UFUNCS:
                return Ufunc(session, UFUNCS[name])
            if name in ELEMENTWISE:
                return self._elementwise(name)
            if name in FOLDS or name == "mean":
                return self._folded(name)
        found = getattr(self._module, name, None)
        if found is None:
            raise NotImplementedError(f'cuda: CuPy has no "{name}". Compute it on the CPU.')
        if isinstance(found, ModuleType):
            return Namespace(session, found)
        if not callable(found) or isinstance(found, type):
            return found
        return lambda *args, **kwargs: session.call(found, *args, **kwargs)

    def _elementwise(self, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            fused = ELEMENTWISE[name]
            if any(isinstance(each, Deferred) for each in args):
                try:
                    return fused(*args, **kwargs)
                except NotImplementedError:  # CuPy computes it
                    pass
            return self._session.call(getattr(self._session.cupy, name), *args, **kwargs)

        return call

    def _folded(self, name: str) -> Any:
        def call(x: Any, axis: Any = None, keepdims: bool = False, **kwargs: Any) -> Any:
            axes = _axes_of(x, axis) if isinstance(x, Deferred) and not kwargs else ()
            if not axes or (x.node is None and not keepdims):
                return self._session.call(getattr(self._session.cupy, name), x, axis=axis, keepdims=keepdims, **kwargs)
            result = x.fold(FOLDS.get(name, "add"), axes)
            if name == "mean":
                result = (result / math.prod(x.shape[d] for d in axes)).astype(x.dtype)
            if keepdims:
                return result
            return self._session.wrap(result.array().reshape([n for d, n in enumerate(x.shape) if d not in axes]))

        return call


def _axes_of(x: Deferred, axis: Any) -> tuple[int, ...]:
    """The dimensions of an axis, where a kernel of lines is the way to reduce them; else none."""
    if x.dtype.kind not in "fV" or not x.size or not x.ndim or axis is None:
        return ()
    axes = tuple(sorted(d % x.ndim for d in (axis if isinstance(axis, tuple) else (axis,))))
    length = math.prod(x.shape[d] for d in axes)
    return () if length > LINE and x.size < FEW_LINES * length else axes


def compute(launcher: Launcher, kernel: Callable[..., Any], *args: Any) -> Any:
    """Runs an array kernel with CuPy's arrays, on their GPU; `Backend.compute` says how."""
    array = first_array(args, launcher.cupy.ndarray)
    if array is None or array.device.id == launcher.cupy.cuda.runtime.getDevice():
        return _computed_here(launcher, kernel, args)
    with array.device:
        return _computed_here(launcher, kernel, args)


def _computed_here(launcher: Launcher, kernel: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    kind = launcher.cupy.ndarray
    key: Any = (kernel, *[_key_of(each, kind) for each in args])
    try:
        plan = launcher.plans.get(key)
    except TypeError:  # an argument that does not hash, as a list of sizes
        plan = key = None
    if plan is not None:
        return plan.run(launcher, args)
    session = Session(launcher)
    result = kernel(Namespace(session, launcher.cupy), *session.wrap(args))
    results = [each for each in (result if isinstance(result, tuple) else (result,)) if isinstance(each, Deferred)]
    planned = key is not None and not session.looked and results and all(each.node is not None for each in results)
    compute_together(results)
    found = computed(result)
    if planned and len(session.launches) == 1:
        _remember(launcher, key, session.launches[0], args, found)
    return found


def _key_of(value: Any, kind: type) -> Any:
    """What of an argument of an array kernel decides which kernels it comes to; `kind` is the class of arrays."""
    if isinstance(value, kind):
        return value.shape, value.strides, value.dtype  # type: ignore[attr-defined]
    # -0.0 is equal to 0.0, and True to 1.
    return type(value), repr(value) if isinstance(value, (float, complex, np.generic)) else value


def _remember(launcher: Launcher, key: Any, launch: tuple[Any, ...], args: Sequence[Any], result: Any) -> None:
    source, given, size, group = launch
    results = result if isinstance(result, tuple) else (result,)
    arguments, places = list(given), []
    for place, value in enumerate(given):
        if isinstance(value, launcher.cupy.ndarray):
            which = [-1 - k for k, each in enumerate(results) if each is value]
            which = which or [k for k, arg in enumerate(args) if arg is value]
            if len(which) != 1:  # a copy that the run made, or one array twice, which need not be so the next time
                return
            arguments[place] = None
            places.append((place, which[0]))
    if len(launcher.plans) >= PLANS:
        launcher.plans.clear()
    kinds = tuple((each.shape, each.dtype) for each in results)
    several = isinstance(result, tuple)
    launcher.plans[key] = Plan(kinds, several, source, tuple(arguments), tuple(places), size, group)


def first_array(values: Sequence[Any], kind: type) -> Any:
    """The first array in nested sequences; None where there is none."""
    for value in values:
        found = first_array(value, kind) if isinstance(value, (tuple, list)) else value
        if isinstance(found, kind):
            return found
    return None


def cast(launcher: Launcher, array: Any, dtype: np.dtype) -> Any:
    """A new array with the elements in another dtype, in one kernel; complex to real keeps the real part."""
    c_type(array.dtype)
    return Deferred(Session(launcher), array).astype(dtype).array()
