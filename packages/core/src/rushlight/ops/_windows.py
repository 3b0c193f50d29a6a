"""Windows of spectral analysis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _C
from .._op import FACTORY, Op, Sample
from ._factory import empty

_OPTIONS = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"

# -- formulas: the window of n points, symmetric, in double precision


def general_cosine(n: int, coefficients: Sequence[float]) -> np.ndarray:
    """Sum of cosines: `a[0] - a[1] cos(x) + a[2] cos(2 x) - ...` for x from 0 to 2 pi."""
    x = np.linspace(0, 2 * np.pi, n)
    return sum((-1) ** k * a * np.cos(k * x) for k, a in enumerate(coefficients)) + np.zeros(n)


def bartlett(n: int) -> np.ndarray:
    """A triangle that is zero at both ends."""
    return 1 - np.abs(np.linspace(-1, 1, n))


def kaiser(n: int, beta: float) -> np.ndarray:
    """`I0(beta sqrt(1 - x^2)) / I0(beta)` for x from -1 to 1 (Kaiser and Schafer, 1980)."""
    x = np.linspace(-1, 1, n)
    return np.i0(beta * np.sqrt(1 - x * x)) / np.i0(beta)


BLACKMAN = (0.42, 0.5, 0.08)


def periodic_or_not(formula: Callable[[int], np.ndarray], n: int, periodic: bool) -> np.ndarray:
    """The window of n points; a periodic one is a longer symmetric one without its last point."""
    if n < 2:
        return np.ones(n)
    empty.operator(n, dtype=_C.float64, device="meta")  # absurd lengths raise what they raise in every factory
    return formula(n + 1)[:-1] if periodic else formula(n)


# -- operators


def _window(name: str, formula: Callable[..., np.ndarray], doc: str, **parameters: float) -> Op:
    def make_window(window_length: int, periodic: bool, *shape: float, dtype: Any, device: Any, **_: Any) -> Any:
        dtype = dtype or _C.get_default_dtype()
        if not dtype.is_floating_point:
            raise RuntimeError(f"{name} expects floating point dtypes, got: dtype={dtype}.")
        if window_length < 0:
            raise RuntimeError(f"{name} requires non-negative window_length, got window_length={window_length}")
        points = periodic_or_not(lambda n: formula(n, *shape), window_length, periodic)
        return _C.tensor(points, dtype=dtype, device=device)

    extra = "".join(f"float {parameter}={value}, " for parameter, value in parameters.items())
    names = "".join(f"\n            {parameter}: Of the formula." for parameter in parameters)
    return (
        Op(
            f"{name}(int window_length, bool periodic=True, {extra}{_OPTIONS}) -> Tensor",
            family=FACTORY,
            method=False,
            differentiable=False,
            out=False,
            doc=f"""{doc}

        Args:
            window_length: Number of points; a window of one is 1.
            periodic: Whether the window is one point short of symmetric, as Fourier transforms want it.{names}
            dtype: Floating-point dtype, by default the default one.
            device: Where it lives, by default the default device.

        Returns:
            Vector of `window_length` elements.

        Raises:
            RuntimeError: The length is negative or the dtype is not a floating-point one.

        Example:
            >>> rushlight.{name}(4).shape
            torch.Size([4])
        """,
        )
        .composite(make_window)
        .samples(
            lambda make, dtype: (
                Sample((n, periodic), {"dtype": dtype, "device": make.device})
                for n in (0, 1, 2, 7)
                for periodic in (True, False)
                if dtype.is_floating_point
            ),
            lambda n, periodic, dtype, device: periodic_or_not(lambda n: formula(n, *parameters.values()), n, periodic),
        )
    )


bartlett_window = _window("bartlett_window", bartlett, "Bartlett's window, a triangle that is zero at both ends.")
blackman_window = _window(
    "blackman_window", lambda n: general_cosine(n, BLACKMAN), "Blackman's window `0.42 - 0.5 cos(x) + 0.08 cos(2 x)`."
)
hamming_window = _window(
    "hamming_window",
    lambda n, alpha, beta: general_cosine(n, (alpha, beta)),
    "Hamming's window `alpha - beta cos(x)`.",
    alpha=0.54,
    beta=0.46,
)
hann_window = _window("hann_window", lambda n: general_cosine(n, (0.5, 0.5)), "Hann's window `0.5 - 0.5 cos(x)`.")
kaiser_window = _window("kaiser_window", kaiser, "Kaiser's window, of Bessel functions.", beta=12.0)
