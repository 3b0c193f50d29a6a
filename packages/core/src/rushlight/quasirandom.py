"""Quasi-random sequences: points that fill a cube evenly."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from . import _C

__all__ = ["SobolEngine"]


@cache
def _table() -> tuple[np.ndarray, np.ndarray]:
    """Primitive polynomials and initial numbers of S. Joe and F. Y. Kuo (new-joe-kuo-6.21201), a row a dimension."""
    try:
        file = resources.files("scipy") / "stats" / "_sobol_direction_numbers.npz"
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "SobolEngine takes the direction numbers of Joe and Kuo from SciPy, which is not installed "
            "(pip install scipy)",
            name="scipy",
        ) from None
    with file.open("rb") as opened, np.load(opened) as arrays:
        return arrays["poly"], arrays["vinit"]


def _directions(dimension: int, bits: int) -> np.ndarray:
    """Direction numbers (dimension, bits), integers below 2**bits (P. Bratley and B. L. Fox, Algorithm 659, 1988)."""
    polynomials, initial = (rows[:dimension] for rows in _table())
    degrees = np.array([int(polynomial).bit_length() - 1 for polynomial in polynomials])
    numbers = np.ones((dimension, bits), dtype=np.int64)
    for degree in np.unique(degrees[degrees > 0]):
        rows = degrees == degree
        m, polynomial = numbers[rows], polynomials[rows]
        m[:, :degree] = initial[rows, :degree]
        for k in range(degree, bits):
            m[:, k] = m[:, k - degree]
            for i in range(1, degree + 1):
                m[:, k] ^= (polynomial >> (degree - i) & 1) * m[:, k - i] << i
        numbers[rows] = m
    return numbers << np.arange(bits)[::-1]


class SobolEngine:
    """Points of a Sobol sequence, plain or scrambled, the same as PyTorch's.

    Needs SciPy's table of direction numbers.

    Args:
        dimension: Coordinates of a point, 1 to 21201.
        scramble: Whether to scramble by random lower triangular matrices and shifts (J. Matousek, 1998), which keeps
            the evenness and takes the pattern out.
        seed: Seed of the scrambling; random where it is None.

    Raises:
        ValueError: `dimension` is out of range.
        ModuleNotFoundError: SciPy is not installed.

    Example:
        >>> rushlight.quasirandom.SobolEngine(dimension=2).draw(3)
        tensor([[0.0000, 0.0000],
                [0.5000, 0.5000],
                [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}], got dimension={dimension}."
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        directions = _directions(dimension, self.MAXBIT)
        shift = np.zeros(dimension, dtype=np.int64)
        if scramble:
            directions, shift = self._scrambled(directions)
        self.sobolstate, self.shift = _C.from_numpy(directions), _C.from_numpy(shift)
        self.reset()

    def _scrambled(self, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        from . import randint

        generator = _C.Generator()
        generator.seed() if self.seed is None else generator.manual_seed(self.seed)
        bits, places = self.MAXBIT, np.arange(self.MAXBIT)
        shift = randint(2, (self.dimension, bits), generator=generator).numpy() @ (1 << places)
        lower = np.tril(randint(2, (self.dimension, bits, bits), generator=generator).numpy(), -1) + np.eye(bits)
        digits = (directions[:, :, None] >> places[::-1] & 1).astype(np.float32)  # the highest first
        mixed = lower.astype(np.float32) @ digits.transpose(0, 2, 1)
        return np.ascontiguousarray((1 << places[::-1]) @ (mixed.astype(np.int64) & 1)), shift

    def draw(self, n: int = 1, out: Any = None, dtype: Any = None) -> Any:
        """The next points.

        Args:
            n: How many.
            out: Tensor to write them to.
            dtype: float32 or float64, by default the default dtype.

        Returns:
            Tensor (n, dimension) with elements in [0, 1).

        Raises:
            RuntimeError: `n` is negative.
            ValueError: The sequence has 2**30 points, and `n` goes beyond them.
            NotImplementedError: Another dtype.
        """
        dtype = dtype or (_C.get_default_dtype() if out is None else out.dtype)
        if dtype not in (_C.float32, _C.float64):
            raise NotImplementedError(f"SobolEngine.draw: the dtype is float32 or float64, got dtype={dtype}.")
        total = self._total(n)
        points = self._points(self.num_generated, total).astype(str(dtype).rpartition(".")[2])
        self._move_to(total)
        points *= 2.0**-self.MAXBIT
        drawn = _C.from_numpy(points)
        return drawn if out is None else out.resize_(drawn.shape).copy_(drawn)

    def draw_base2(self, m: int, out: Any = None, dtype: Any = None) -> Any:
        """The next `2**m` points, if they complete a power of two of them.

        Raises:
            ValueError: They do not, so that they would not be balanced.
        """
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1) != 0:
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: n={self.num_generated}+2**{m}="
                f"{total}. If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n, out, dtype)

    def reset(self) -> SobolEngine:
        """Goes back to the first point and returns the engine."""
        self._move_to(0)
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skips `n` points and returns the engine."""
        self._move_to(self._total(n))
        return self

    def _total(self, n: int) -> int:
        if n < 0:
            raise RuntimeError(f"SobolEngine: the number of points is not negative, got n={n}.")
        total = self.num_generated + n
        if total > 2**self.MAXBIT:
            raise ValueError(
                f"SobolEngine: the sequence has 2**{self.MAXBIT} points, {self.num_generated} were drawn, got n={n}. "
                "Call reset(), or make another engine with scramble=True."
            )
        return total

    def _move_to(self, generated: int) -> None:
        self.num_generated = generated
        self.quasi = _C.from_numpy(self._point(max(generated, 1) - 1))  # the last one drawn

    def _point(self, i: int) -> np.ndarray:
        """Point number `i` as integers: the sum without carry of the directions at the ones of its Gray code."""
        used = [place for place in range(self.MAXBIT) if (i ^ i >> 1) >> place & 1]
        return np.bitwise_xor.reduce(self.sobolstate.numpy()[:, used], axis=1) ^ self.shift.numpy()

    def _points(self, start: int, end: int) -> np.ndarray:
        """Points number start to end - 1 as integers (end - start, dimension)."""
        points = np.empty((end - start, self.dimension), dtype=np.int32)
        size = 1 << max(end - start - 1, 0).bit_length()
        bases = range(start // size * size, end, size)
        # Gray codes are linear: blocks of a power of two at multiples of it differ by one constant.
        block = self._first_points(max((min(end - base, size) for base in bases), default=0))
        for base in bases:
            low, high = max(start, base), min(end, base + size)
            points[low - start : high - start] = block[low - base : high - base] ^ self._point(base).astype(np.int32)
        return points

    def _first_points(self, n: int) -> np.ndarray:
        """Points number 0 to n - 1 without the shift: each power of two of them goes back with one direction added."""
        directions = self.sobolstate.numpy().T.astype(np.int32)
        points = np.zeros((n, self.dimension), dtype=np.int32)
        for k in range(max(n - 1, 0).bit_length()):
            done = 1 << k
            more = min(done, n - done)
            np.bitwise_xor(points[done - more : done][::-1], directions[k], out=points[done : done + more])
        return points

    def __repr__(self) -> str:
        options = ["", ", scramble=True"][self.scramble] + ("" if self.seed is None else f", seed={self.seed}")
        return f"SobolEngine(dimension={self.dimension}{options})"
