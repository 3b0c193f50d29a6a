"""Seeds and states of the GPUs' random numbers: every device draws from the default generator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import random
from .._C import Tensor, default_generator
from ._device import device_count, index_of, is_available, open_backend

default_generators: tuple[Any, ...] = ()
"""A generator a GPU in PyTorch; empty here, since all devices draw from `rushlight.default_generator`."""


def manual_seed(seed: int) -> None:
    """Seeds the current GPU's random generator; nothing happens where there is no GPU."""
    if is_available():
        open_backend().manual_seed(seed)


manual_seed_all = manual_seed


def seed() -> None:
    """Seeds from the system's entropy; nothing happens where there is no GPU."""
    if is_available():
        random.seed()


seed_all = seed


def initial_seed() -> int:
    """The seed that the random numbers started from."""
    open_backend()
    return default_generator.initial_seed()


def get_rng_state(device: Any = "cuda") -> Tensor:
    """The state of the generator that a GPU draws from, a uint8 tensor."""
    open_backend()
    index_of(device)
    return default_generator.get_state()


def get_rng_state_all() -> list[Tensor]:
    """The states of all GPUs; none where there is no GPU."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Goes on from a state that `get_rng_state` returned; nothing happens where there is no GPU."""
    if is_available():
        index_of(device)
        default_generator.set_state(new_state)


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Goes on from the states that `get_rng_state_all` returned."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
