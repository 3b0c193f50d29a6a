"""Windows of spectral analysis, symmetric by default.

All take the number of points M and, by keyword, `sym` (False for a periodic window, one point short of symmetric),
`dtype` (float32 or float64), `layout`, `device` and `requires_grad`. They raise ValueError for what they do not take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .. import _C
from ..ops import _windows

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _make(
    name: str,
    formula: Callable[[int], np.ndarray],
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = _C.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    dtype = dtype or _C.get_default_dtype()
    if isinstance(M, bool) or not isinstance(M, int):
        raise TypeError(f"{name}: M is the number of points, an integer, got M={M!r}.")
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not _C.strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype not in (_C.float32, _C.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    points = _windows.periodic_or_not(formula, M, not sym)
    return _C.tensor(points, dtype=dtype, device=device, requires_grad=requires_grad)


def bartlett(M: int, **options: Any) -> Any:
    """A triangle that is zero at both ends."""
    return _make("bartlett", _windows.bartlett, M, **options)


def general_cosine(M: int, *, a: Iterable[float], **options: Any) -> Any:
    """A sum of cosines, `a[0] - a[1] cos(x) + a[2] cos(2 x) - ...` for x from 0 to 2 pi."""
    if not isinstance(a, list | tuple):
        raise TypeError(f"Coefficients must be a list/tuple, got a={a!r}.")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    return _make("general_cosine", lambda n: _windows.general_cosine(n, a), M, **options)


def blackman(M: int, **options: Any) -> Any:
    """Blackman's window, `0.42 - 0.5 cos(x) + 0.08 cos(2 x)`."""
    return general_cosine(M, a=_windows.BLACKMAN, **options)


def nuttall(M: int, **options: Any) -> Any:
    """Nuttall's window of four terms with the least side lobes (Nuttall, 1981)."""
    return general_cosine(M, a=(0.3635819, 0.4891775, 0.1365995, 0.0106411), **options)


def general_hamming(M: int, *, alpha: float = 0.54, **options: Any) -> Any:
    """`alpha - (1 - alpha) cos(x)`."""
    return general_cosine(M, a=(alpha, 1 - alpha), **options)


def hamming(M: int, **options: Any) -> Any:
    """Hamming's window, `0.54 - 0.46 cos(x)`."""
    return general_hamming(M, **options)


def hann(M: int, **options: Any) -> Any:
    """Hann's window, `0.5 - 0.5 cos(x)`."""
    return general_hamming(M, alpha=0.5, **options)


def cosine(M: int, **options: Any) -> Any:
    """Half a period of a sine, sampled at the middles of M equal parts."""
    return _make("cosine", lambda n: np.sin(np.pi / n * (np.arange(n) + 0.5)), M, **options)


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **options: Any) -> Any:
    """`exp(-|n - center| / tau)`, centred in the middle where `center` is None, as it has to be for `sym`."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError(f"Center must be None for symmetric windows, got center={center}.")
    middle = lambda n: (n - 1) / 2 if center is None else center
    formula = lambda n: np.exp(-np.abs(np.arange(n) - middle(n)) / tau)
    return _make("exponential", formula, M, sym=sym, **options)


def gaussian(M: int, *, std: float = 1.0, **options: Any) -> Any:
    """`exp(-((n - center) / std)^2 / 2)`."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    formula = lambda n: np.exp(-(((np.arange(n) - (n - 1) / 2) / std) ** 2) / 2)
    return _make("gaussian", formula, M, **options)


def kaiser(M: int, *, beta: float = 12.0, **options: Any) -> Any:
    """Kaiser's window, of Bessel functions; `beta` trades the width of the main lobe for the height of the others."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return _make("kaiser", lambda n: _windows.kaiser(n, beta), M, **options)
