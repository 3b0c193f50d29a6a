"""Kernels in place of the records' own on CUDA: random numbers that the GPU draws itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..plugin.interface import Kernel
from ..plugin.source import Node, store
from ._device import open_backend
from ._fused import Deferred, Session

if TYPE_CHECKING:
    from .._C import Tensor

INT64 = np.dtype("int64")
WORDS = 4
"""Words of a generator that one number takes: a block of Philox."""


def draw(law: str, shape: tuple[int, ...], dtype: np.dtype, index: int, generator: Any = None) -> Any:
    """Numbers of a Philox generator, by default that of a GPU, in one kernel on that GPU.

    Args:
        law: "uniform" for [0, 1), or "normal" for mean 0 and variance 1.
        shape: Sizes.
        dtype: float32 or float64.
        index: The GPU.
        generator: A generator of the algorithm philox4x32-10, which goes on after the numbers drawn.
    """
    backend = open_backend()
    generator = backend.generators[index] if generator is None else generator
    block = -(-generator.get_offset() // WORDS)
    with backend.xp.cuda.Device(index):
        session = Session(backend.launcher)
        target = Deferred(session, backend.xp.empty(shape, dtype))
        # Seeds are unsigned in Philox; the kernel takes them as signed numbers of the same bits.
        seed = np.array(generator.initial_seed() % 2**64, np.uint64).view(np.int64)[()]
        node = Node(f"${law}($philox({{0}}, {{1}} + i))", (seed, block), (INT64, INT64), dtype)
        store(target, Deferred.of(session, shape, dtype, node))
    generator.set_offset((block + target.array().size) * WORDS)
    return target.array()


def _drawn(name: str, law: str, finish: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def kernel(self: Tensor, *args: Any, generator: Any = None) -> Tensor:
        from .. import empty, float64
        from .._C import from_array

        getattr(empty(0, dtype=self.dtype), name)(*args)  # checks the arguments
        if self.is_complex() or (generator is not None and generator.algorithm != "philox4x32-10"):
            host = empty(self.shape, dtype=self.dtype)  # a stream of the host
            return self.copy_(getattr(host, name)(*args, generator=generator))
        dtype = np.dtype("float64" if self.dtype == float64 else "float32")
        values = draw(law, tuple(self.shape), dtype, self.device.index or 0, generator)
        return self.copy_(finish(from_array(values, self.device), *args))

    return kernel


def _scaled(x: Tensor, low: float = 0.0, high: float = 1.0) -> Tensor:
    return x if (low, high) == (0, 1) else x * (high - low) + low


def _shifted(x: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    return x if (mean, std) == (0, 1) else x * std + mean


def _sized(fill: str) -> Callable[..., Tensor]:
    def kernel(size: Any, *, generator: Any = None, dtype: Any = None, device: Any = None, **rest: Any) -> Tensor:
        from .. import empty

        return getattr(empty(size, dtype=dtype, device=device), fill)(generator=generator)

    return kernel


def _like(fill: str) -> Callable[..., Tensor]:
    def kernel(self: Tensor, *, generator: Any = None, **options: Any) -> Tensor:
        from .. import empty_like

        return getattr(empty_like(self, **options), fill)(generator=generator)

    return kernel


def kernels() -> list[Kernel]:
    """What replaces the records' own kernels on GPUs."""
    return [
        Kernel("uniform_", _drawn("uniform_", "uniform", _scaled)),
        Kernel("normal_", _drawn("normal_", "normal", _shifted)),
        Kernel("rand", _sized("uniform_")),
        Kernel("randn", _sized("normal_")),
        Kernel("rand_like", _like("uniform_")),
        Kernel("randn_like", _like("normal_")),
        Kernel("bernoulli_.float", _drawn("bernoulli_", "uniform", lambda x, p=0.5: x < p)),
    ]
