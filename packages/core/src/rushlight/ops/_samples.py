"""Sample generators that records share: calls with the shapes, strides and broadcasts that find faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .._op import Sample

SHAPES = ((), (5,), (3, 4), (2, 1, 3), (0,), (2, 0, 3))
PAIRS = (((), ()), ((4,), (4,)), ((3, 4), (4,)), ((3, 1), (1, 4)), ((2, 3, 4), (3, 1)), ((0,), (1,)), ((2, 3), ()))

Sampler = Callable[[Any, Any], Iterator[Sample]]


def unary(low: float | None = None, high: float | None = None, *extra: Any, **kwargs: Any) -> Sampler:
    """One tensor with values in [low, high), contiguous and not, then `extra` arguments."""

    def samples(make: Any, dtype: Any) -> Iterator[Sample]:
        for shape in SHAPES:
            yield Sample((make(*shape, low=low, high=high), *extra), kwargs)
        yield Sample((make(4, 3, low=low, high=high).t(), *extra), kwargs)
        yield Sample((make(6, 4, low=low, high=high)[::2, 1:], *extra), kwargs)

    return samples


def binary(low: float | None = None, high: float | None = None, number: Any = 2, **kwargs: Any) -> Sampler:
    """Two tensors that broadcast, with values in [low, high), and one tensor with a number."""

    def samples(make: Any, dtype: Any) -> Iterator[Sample]:
        for a, b in PAIRS:
            yield Sample((make(*a, low=low, high=high), make(*b, low=low, high=high)), kwargs)
        yield Sample((make(4, 3, low=low, high=high).t(), make(3, 4, low=low, high=high)), kwargs)
        if number is not None:
            yield Sample((make(3, 4, low=low, high=high), number), kwargs)

    return samples


def ternary(low: float | None = None, high: float | None = None, **kwargs: Any) -> Sampler:
    """Three tensors that broadcast."""

    def samples(make: Any, dtype: Any) -> Iterator[Sample]:
        for a, b, c in (((3, 4), (3, 4), (3, 4)), ((2, 1, 4), (3, 1), (4,)), ((), (), ()), ((0,), (1,), ())):
            yield Sample(tuple(make(*shape, low=low, high=high) for shape in (a, b, c)), kwargs)

    return samples
