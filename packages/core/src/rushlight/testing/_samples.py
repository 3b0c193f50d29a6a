"""Sample inputs of operators, and tensors with random values for tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import rushlight

from ._dtypes import numpy_dtype


class Maker:
    """Makes the tensors of an operator's samples: the same values on every device and in every run.

    A samples function gets one as its first argument::

        def lerp_samples(make, dtype):
            yield Sample((make(2, 3), make(2, 3), 0.5))
            yield Sample((make(3), make(2, 1), make(3, low=0, high=1)))

    Args:
        dtype: Dtype of the tensors, unless a call says otherwise.
        device: Where they live.
        requires_grad: Whether the floating-point and complex ones require gradients.
        seed: Where the values start.
        leaves: Tensors to give instead of those that would require gradients, in order: an operator's samples as a
            function of what they are made from.

    Attributes:
        leaves: The tensors so far that require gradients, unless they were given.
    """

    def __init__(
        self,
        dtype: Any,
        device: Any = "cpu",
        requires_grad: bool = False,
        seed: int = 0,
        leaves: Sequence[Any] | None = None,
    ) -> None:
        self.dtype, self.device, self.requires_grad = dtype, rushlight.device(device), requires_grad
        self.leaves = [] if leaves is None else list(leaves)
        self._given = None if leaves is None else iter(leaves)
        self._random = np.random.default_rng(seed)

    def __call__(
        self,
        *shape: int | Sequence[int],
        dtype: Any = None,
        low: float | None = None,
        high: float | None = None,
        noncontiguous: bool = False,
        exclude_zero: bool = False,
        requires_grad: bool | None = None,
    ) -> Any:
        """A tensor of this shape, see `make_tensor`."""
        dtype = dtype or self.dtype
        if requires_grad is None:
            requires_grad = self.requires_grad and (dtype.is_floating_point or dtype.is_complex)
        values = _values(self._random, _shape(shape), dtype, low, high, exclude_zero)
        if requires_grad and self._given is not None:
            return next(self._given)
        tensor = _tensor(values, dtype, self.device, noncontiguous, requires_grad)
        if requires_grad:
            self.leaves.append(tensor)
        return tensor

    def mask(self, *shape: int) -> Any:
        """A tensor of random bools."""
        return self(*shape, dtype=rushlight.bool)

    def tensor(self, values: Any) -> Any:
        """A tensor of given values, int64 for integers."""
        host = rushlight.from_numpy(np.asarray(values))
        return _tensor(host.numpy(), host.dtype, self.device, False, False)


def make_tensor(
    *shape: int | Sequence[int],
    dtype: Any,
    device: Any = "cpu",
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
) -> Any:
    """A tensor with uniformly random values, drawn after `rushlight.manual_seed`.

    Args:
        shape: Sizes, loose or as one sequence.
        dtype: Dtype.
        device: Where it lives.
        low: Least value; by default -9, and 0 for uint8 and bool. Of complex numbers each part is in the range.
        high: Bound above all values; by default 9, 10 for integers, 2 for bool.
        requires_grad: Whether it records gradients.
        noncontiguous: Whether its elements lie apart in memory; nothing changes below two elements.
        exclude_zero: Whether zeros become the smallest positive number, or 1 for integers.

    Returns:
        The tensor, of shape `shape`.

    Raises:
        ValueError: `low` is not below `high`.
    """
    random = np.random.default_rng(int(rushlight.randint(2**62, ())))
    values = _values(random, _shape(shape), dtype, low, high, exclude_zero)
    return _tensor(values, dtype, device, noncontiguous, requires_grad)


def _shape(shape: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else shape


def _values(
    random: np.random.Generator, shape: tuple[int, ...], dtype: Any, low: Any, high: Any, exclude_zero: bool
) -> np.ndarray:
    is_inexact = dtype.is_floating_point or dtype.is_complex
    unsigned = dtype in (rushlight.uint8, rushlight.bool)
    low = (0 if unsigned else -9) if low is None else low
    high = (9 if is_inexact else 2 if dtype == rushlight.bool else 10) if high is None else high
    if not low < high:
        raise ValueError(f"make_tensor: low must be below high, got low={low}, high={high}.")
    if not is_inexact:
        low = math.ceil(low)
        whole = random.integers(low, max(math.ceil(high), low + 1), shape)
        return np.where(whole == 0, 1, whole) if exclude_zero else whole
    values: np.ndarray = random.uniform(low, high, shape)
    if dtype.is_complex:
        values = values + 1j * random.uniform(low, high, shape)
    return np.where(values == 0, rushlight.finfo(dtype).tiny, values) if exclude_zero else values


def _tensor(values: np.ndarray, dtype: Any, device: Any, noncontiguous: bool, requires_grad: bool) -> Any:
    host = rushlight.from_numpy(np.asarray(values).astype(numpy_dtype(dtype)))
    tensor = host if device == host.device else rushlight.empty(host.shape, dtype=dtype, device=device).copy_(host)
    if noncontiguous:
        tensor = make_non_contiguous(tensor)
    return tensor.requires_grad_() if requires_grad else tensor


def make_non_contiguous(tensor: Any) -> Any:
    """A copy whose elements lie apart in memory; of less than two elements just a copy."""
    if tensor.numel() < 2:
        return tensor.clone()
    apart = rushlight.empty((*tensor.shape, 2), dtype=tensor.dtype, device=tensor.device)[..., 0]
    apart.copy_(tensor)
    return apart
