"""Seeds and states of the random number generators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from . import _registry
from ._C import Generator, Tensor, default_generator

__all__ = [
    "Generator",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


def manual_seed(seed: int) -> Generator:
    """Seeds the default generator and the generators of all devices in use.

    Args:
        seed: From -2**63 to 2**64 - 1; a negative seed stands for `2**64 + seed`.

    Returns:
        The default generator.

    Example:
        >>> _ = rushlight.manual_seed(0)
        >>> rushlight.rand(2)
        tensor([0.4963, 0.7682])
    """
    seed = int(seed)
    for backend in list(_registry.opened.values()):
        backend.manual_seed(seed)
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seeds the default generator from the system's entropy and returns the seed."""
    chosen = default_generator.seed()
    for backend in list(_registry.opened.values()):
        backend.manual_seed(chosen)
    return chosen


def initial_seed() -> int:
    """The seed that the default generator started from."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator, a uint8 tensor in PyTorch's format."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Makes the default generator go on from a state that `get_rng_state` returned."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(devices: Iterable[int] | None = None, enabled: bool = True) -> Iterator[None]:
    """Gives the default generator, and those of GPUs, their present states back on leaving.

    Args:
        devices: Indices of GPUs; all of them by default. Other devices without a generator of their own draw from the
            default one.
        enabled: False does nothing.
    """
    if not enabled:
        yield
        return
    state, states = get_rng_state(), {}
    if devices is not None or "cuda" in _registry.opened:
        from . import cuda

        states = {
            index: cuda.get_rng_state(index) for index in (range(cuda.device_count()) if devices is None else devices)
        }
    try:
        yield
    finally:
        set_rng_state(state)
        for index, kept in states.items():
            cuda.set_rng_state(kept, index)
