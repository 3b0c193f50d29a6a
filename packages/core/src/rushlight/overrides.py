"""`__torch_function__`: how subclasses and other libraries' objects take over the functions of rushlight.

An object whose type defines `__torch_function__(cls, func, types, args, kwargs)` is asked first whenever it is an
argument of an operator. A `TorchFunctionMode` is asked for every call inside its `with` block.

Tensor defines it as well, so PyTorch asks it in turn: a function of PyTorch that is given tensors of this library, by
code that has it as a default or in a table, runs the function of the same name here.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Iterable
from types import FunctionType, TracebackType
from typing import Any

from . import _C

__all__ = [
    "DisableTorchFunction",
    "TorchFunctionMode",
    "get_overridable_functions",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "wrap_torch_function",
]


class DisableTorchFunction:
    """Context in which `__torch_function__` of argument types is not called, in this thread.

    Example:
        >>> with rushlight.overrides.DisableTorchFunction():
        ...     rushlight.add(rushlight.ones(1), 1)
        tensor([2.])
    """

    def __enter__(self) -> None:
        self._previous = _C.set_override_enabled(False)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        _C.set_override_enabled(self._previous)


class TorchFunctionMode:
    """Base class of contexts that see every call of an operator in this thread.

    Example:
        >>> class Names(rushlight.overrides.TorchFunctionMode):
        ...     def __torch_function__(self, func, types, args=(), kwargs=None):
        ...         print(func.__name__)
        ...         return func(*args, **(kwargs or {}))
        >>> with Names():
        ...     x = rushlight.ones(2) + 1
        ones
        add
    """

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))

    def __enter__(self) -> TorchFunctionMode:
        _C.push_mode(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        _C.pop_mode()


def is_tensor_like(x: Any) -> bool:
    """Whether `x` is a Tensor or its type defines `__torch_function__`."""
    return isinstance(x, _C.Tensor) or hasattr(type(x), "__torch_function__")


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of the arguments overrides `__torch_function__`."""
    return any(_overrides(x) for x in relevant_args)


def has_torch_function_unary(x: Any) -> bool:
    """Whether an argument overrides `__torch_function__`."""
    return _overrides(x)


def has_torch_function_variadic(*args: Any) -> bool:
    """Whether one of the arguments overrides `__torch_function__`."""
    return has_torch_function(args)


def get_overridable_functions() -> dict[Any, list[Any]]:
    """What `__torch_function__` sees, by the module or class that it is an attribute of.

    Returns:
        The functions of `rushlight` and of its areas that are operators or were made by `wrap_torch_function`, and
        the methods and attributes of `Tensor`.
    """
    found: dict[Any, list[Any]] = {}
    for path, module in sorted(sys.modules.items()):
        if path == "rushlight" or (path.startswith("rushlight.") and "._" not in path):
            functions = [
                value
                for name, value in sorted(vars(module).items())
                if not name.startswith("_")
                and (
                    isinstance(value, _C.Operator)
                    or (isinstance(value, FunctionType) and "_overridable" in vars(value))
                )
            ]
            if functions:
                found[module] = functions
    hidden = {"__class__", "__dict__", "__doc__", "__module__", "__new__", "__torch_function__", "__weakref__"}
    found[_C.Tensor] = [value for name, value in vars(_C.Tensor).items() if name not in hidden and value is not None]
    return found


def _overrides(x: Any) -> bool:
    if type(x) is _C.Tensor:
        return False
    function = getattr(type(x), "__torch_function__", None)
    return function is not None and not getattr(function, "_rushlight_disabled", False)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Asks the overriding arguments of a Python function to compute it.

    Args:
        public_api: The function that was called.
        relevant_args: Its arguments that may override it.
        *args: All its positional arguments.
        **kwargs: All its keyword arguments.

    Raises:
        TypeError: Every one of them returned NotImplemented.
    """
    overriding: list[Any] = []
    for x in relevant_args:
        if _overrides(x) and type(x) not in map(type, overriding):
            at = next((i for i, y in enumerate(overriding) if issubclass(type(x), type(y))), len(overriding))
            overriding.insert(at, x)
    types = tuple(map(type, overriding))
    for x in overriding:
        result = x.__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = f"{public_api.__module__}.{public_api.__name__}"
    raise TypeError(f"no implementation found for '{name}' on types that implement __torch_function__: {list(types)}")


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator that makes a Python function overridable; `dispatcher` returns its relevant arguments."""

    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return fn(*args, **kwargs)

        wrapped._overridable = True  # type: ignore[attr-defined]
        return wrapped

    return decorate


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether `func` is an attribute of Tensor."""
    return any(value is func for value in vars(_C.Tensor).values())


def _torch_function(cls: type, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """The default of Tensor: computes as for plain tensors and makes the results instances of the subclass."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    namesake = _namesake(func)
    if namesake is not None:
        return namesake(*args, **(kwargs or {}))
    if cls is _C.Tensor:
        return NotImplemented  # the class itself is asked by other libraries alone
    with DisableTorchFunction():
        return _as_class(func(*args, **(kwargs or {})), cls)


def _namesake(func: Callable[..., Any]) -> Callable[..., Any] | None:
    """The function here of the name that `func` has in PyTorch; None for what is not PyTorch's or not here."""
    peer: Any = sys.modules.get("torch.overrides")
    name = peer.resolve_name(func) if hasattr(peer, "resolve_name") else None
    if name is None:
        return None
    path = name.removeprefix("torch.").removeprefix("functional.")  # torch.functional.split is torch.split
    try:
        return operator.attrgetter(path)(sys.modules[__package__])
    except AttributeError:
        return None


def _as_class(value: Any, cls: type) -> Any:
    if isinstance(value, _C.Tensor) and not isinstance(value, cls):
        return value.as_subclass(cls)
    if isinstance(value, tuple | list) and not isinstance(value, _C.Size):  # results with names too
        return type(value)(_as_class(item, cls) for item in value)
    return value


def _disabled(cls: type, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """For subclasses whose results are plain tensors: `__torch_function__ = _C._disabled_torch_function_impl`."""
    return NotImplemented


_disabled._rushlight_disabled = True  # type: ignore[attr-defined]
_C._disabled_torch_function_impl = classmethod(_disabled)
_C.add_method("__torch_function__", classmethod(_torch_function))
