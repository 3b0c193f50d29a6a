"""Seeds and states of the GPUs' random numbers: each GPU has a Philox generator of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._C import Generator, Tensor
from ._device import current_device, device_count, index_of, is_available, open_backend


def generators() -> tuple[Generator, ...]:
    """The generator of each GPU; none where there is no GPU."""
    return open_backend().generators if is_available() else ()


def manual_seed(seed: int) -> None:
    """Seeds the current GPU's random generator; nothing happens where there is no GPU."""
    if is_available():
        generators()[current_device()].manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seeds the random generators of all GPUs; nothing happens where there is none."""
    for generator in generators():
        generator.manual_seed(int(seed))


def seed() -> None:
    """Seeds the current GPU's random generator from the system's entropy; nothing happens where there is no GPU."""
    if is_available():
        generators()[current_device()].seed()


def seed_all() -> None:
    """Seeds the random generators of all GPUs with one number from the system's entropy."""
    if is_available():
        manual_seed_all(generators()[0].seed())


def initial_seed() -> int:
    """The seed that the current GPU's random numbers started from."""
    return open_backend().generators[current_device()].initial_seed()


def get_rng_state(device: Any = "cuda") -> Tensor:
    """The state of a GPU's generator: a uint8 tensor of the host with seed and offset, in PyTorch's format."""
    backend = open_backend()
    return backend.generators[index_of(device)].get_state()


def get_rng_state_all() -> list[Tensor]:
    """The states of all GPUs; none where there is no GPU."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Goes on from a state that `get_rng_state` returned; nothing happens where there is no GPU."""
    if is_available():
        generators()[index_of(device)].set_state(new_state)


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Goes on from the states that `get_rng_state_all` returned."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
