"""The extension for Fourier transforms: rushlight.fft with the standard's names of parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rushlight import fft as _fft
from rushlight._public import claim as _claim


def _named(function: Callable[..., Any], op: Any, doc: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = op.__name__.removeprefix("fft_")
    function.__doc__ = doc
    return function


def _along_axis(op: Any, doc: str) -> Callable[..., Any]:
    def function(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
        return op(x, n, axis, norm)

    return _named(function, op, f"{doc} along an axis, cut or padded to `n` elements.")


def _along_axes(op: Any, doc: str) -> Callable[..., Any]:
    def function(
        x: Any, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
    ) -> Any:
        return op(x, s, axes, norm)

    return _named(function, op, f"{doc} along axes, cut or padded to the sizes `s`.")


def _shift(op: Any, doc: str) -> Callable[..., Any]:
    def function(x: Any, /, *, axes: int | Sequence[int] | None = None) -> Any:
        return op(x, axes)

    return _named(function, op, doc)


def _frequencies(op: Any, doc: str) -> Callable[..., Any]:
    def function(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
        return op(n, d, dtype=dtype, device=device)

    return _named(function, op, doc)


fft = _along_axis(_fft.fft, "Fourier transform")
ifft = _along_axis(_fft.ifft, "Inverse Fourier transform")
rfft = _along_axis(_fft.rfft, "Fourier transform of real numbers, its first half,")
irfft = _along_axis(_fft.irfft, "Inverse of `rfft`")
hfft = _along_axis(_fft.hfft, "Fourier transform of numbers that are Hermitian, of which the first half is given,")
ihfft = _along_axis(_fft.ihfft, "Inverse of `hfft`")
fftn = _along_axes(_fft.fftn, "Fourier transform")
ifftn = _along_axes(_fft.ifftn, "Inverse Fourier transform")
rfftn = _along_axes(_fft.rfftn, "Fourier transform of real numbers, half of it,")
irfftn = _along_axes(_fft.irfftn, "Inverse of `rfftn`")
fftshift = _shift(_fft.fftshift, "The frequencies in rising order, zero in the middle.")
ifftshift = _shift(_fft.ifftshift, "Inverse of `fftshift`.")
fftfreq = _frequencies(_fft.fftfreq, "The frequencies of `fft` of `n` samples that are `d` apart.")
rfftfreq = _frequencies(_fft.rfftfreq, "The frequencies of `rfft` of `n` samples that are `d` apart.")

_claim(globals())
