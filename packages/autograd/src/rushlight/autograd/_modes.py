"""Decorator form of the grad modes: functions, generators and coroutines that run in a mode."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Mode(AbstractContextManager[Any], Protocol):
    """A grad mode."""

    def clone(self) -> Mode:
        """A new object: threads and calls within calls each have one of their own."""
        ...


def decorate(mode: Mode, fn: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `fn` so that its body runs inside `mode`.

    A generator or coroutine leaves the mode whenever it is suspended.

    Args:
        mode: A grad mode.
        fn: Function, generator function, coroutine function, or a class, whose `__init__` is wrapped.
    """
    if isinstance(fn, type):
        fn.__init__ = decorate(mode, fn.__init__)  # type: ignore[misc]
        return fn
    if inspect.isasyncgenfunction(fn):
        return functools.wraps(fn)(lambda *args, **kwargs: _drive_async_generator(mode, fn(*args, **kwargs)))
    if inspect.iscoroutinefunction(fn):

        @functools.wraps(fn)
        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            return await _Driven(mode, fn(*args, **kwargs))

        return coroutine
    if inspect.isgeneratorfunction(fn):

        @functools.wraps(fn)
        def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            return (yield from _drive(mode, fn(*args, **kwargs)))

        return generator

    @functools.wraps(fn)
    def function(*args: Any, **kwargs: Any) -> Any:
        with mode.clone():
            return fn(*args, **kwargs)

    return function


def _drive(mode: Mode, steps: Any) -> Generator[Any, Any, Any]:
    # The body runs in the mode, whoever holds the generator does not.
    resume: Callable[[], Any] = (
        functools.partial(next, steps) if hasattr(steps, "__next__") else functools.partial(steps.send, None)
    )
    while True:
        try:
            with mode.clone():
                value = resume()
        except StopIteration as stop:
            return stop.value
        try:
            sent = yield value
        except GeneratorExit:
            with mode.clone():
                steps.close()
            raise
        except BaseException as error:
            resume = functools.partial(steps.throw, error)
        else:
            resume = functools.partial(steps.send, sent)


class _Driven:
    """Awaits a coroutine in a mode."""

    def __init__(self, mode: Mode, coroutine: Coroutine[Any, Any, Any]) -> None:
        self.mode, self.coroutine = mode, coroutine

    def __await__(self) -> Generator[Any, Any, Any]:
        return _drive(self.mode, self.coroutine)


async def _drive_async_generator(mode: Mode, steps: AsyncGenerator[Any, Any]) -> AsyncGenerator[Any, Any]:
    step: Callable[[], Any] = steps.__anext__
    while True:
        try:
            value = await _Driven(mode, step())
        except StopAsyncIteration:
            return
        try:
            sent = yield value
        except GeneratorExit:
            await _Driven(mode, steps.aclose())
            raise
        except BaseException as error:
            step = functools.partial(steps.athrow, error)
        else:
            step = functools.partial(steps.asend, sent)
