"""User-defined differentiable functions."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from rushlight import Tensor

from . import _C
from ._C import FunctionCtx as FunctionCtx

__all__ = ["Function", "FunctionCtx", "once_differentiable"]


class _FunctionMeta(type):
    forward: Callable[..., Any]

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        cls._backward_cls = type(f"{name}Backward", (FunctionCtx,), {"_forward_cls": cls})
        own = [vars(base) for base in cls.__mro__ if isinstance(base, _FunctionMeta) and base.__name__ != "Function"]
        cls._has_setup_context = any("setup_context" in names for names in own)
        named = [any(way in names for names in own) for way in ("backward", "vjp")]
        if all(named):
            raise RuntimeError(
                f"{name}: Implementing both 'backward' and 'vjp' for a custom Function is not allowed. "
                "You should only implement one of them."
            )
        cls._backward_name = "vjp" if named[1] else "backward"
        cls._signature = None  # of forward, where apply may leave arguments out or name them
        if cls._has_setup_context:
            cls._signature = inspect.signature(cls.forward)


class Function(metaclass=_FunctionMeta):
    """Base of functions that bring their own backward.

    A subclass defines the static methods `forward(ctx, *args)` and `backward(ctx, *grads)`, or `forward(*args)` with
    `setup_context(ctx, inputs, output)`. `ctx` takes `save_for_backward(...)`, `mark_dirty(...)`,
    `mark_non_differentiable(...)`, `set_materialize_grads(...)` and any attribute; it has `saved_tensors` and
    `needs_input_grad`. `backward` (or `vjp`, its other name) returns one gradient, or None, for each argument of
    `apply`. For forward mode there is `jvp(ctx, *tangents)`, with tensors from `save_for_forward`.

    Example:
        >>> class Cube(rushlight.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x * x
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         (x,) = ctx.saved_tensors
        ...         return 3 * x * x * grad
        >>> x = rushlight.tensor(2.0, requires_grad=True)
        >>> Cube.apply(x).backward()
        >>> x.grad
        tensor(12.)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            f"{type(self).__name__} should not be instantiated. Methods on autograd functions are all static, "
            "so you should invoke them on the class itself."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Calls `forward` and records `backward` where an argument requires grad.

        Args:
            *args: The arguments of `forward`; those left out take their defaults.
            **kwargs: Arguments by name, where the class has `setup_context`.
        """
        if cls._signature is not None and (kwargs or len(args) != len(cls._signature.parameters)):
            bound = cls._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        if kwargs:
            raise TypeError(f"{cls.__name__}.apply: takes no keyword arguments, got {', '.join(kwargs)}.")
        return _C.apply_function(cls, *args)

    @staticmethod
    def forward(*args: Any) -> Any:
        """Computes the results; operators inside are not recorded."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple[Any, ...], output: Any) -> None:
        """Leaves in `ctx` what backward needs, where `forward` does not take `ctx`."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Any) -> Any:
        """Gradients of the arguments from those of the results."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function "
            "to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: FunctionCtx, *tangents: Any) -> Any:
        """Tangents of the results from those of the arguments."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )


class _TwiceDifferentiated(Function):
    """The identity, whose backward is an error."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor) -> Tensor:
        return x.detach()

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Any) -> Any:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a `backward` that is not made of differentiable operators: differentiating its result is an error."""

    @functools.wraps(fn)
    def wrapper(ctx: FunctionCtx, *grads: Any) -> Any:
        with _C.no_grad():
            outputs = fn(ctx, *grads)
        if not _C.is_grad_enabled() or not any(isinstance(g, Tensor) and g.requires_grad for g in grads):
            return outputs
        several = isinstance(outputs, tuple)
        guarded = tuple(
            _TwiceDifferentiated.apply(o.detach().requires_grad_()) if isinstance(o, Tensor) else o
            for o in (outputs if several else (outputs,))
        )
        return guarded if several else guarded[0]

    return wrapper
