"""Discrete Fourier transforms; their records are in `rushlight.ops._fft`."""

from .ops import _fft

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

fft = _fft.fft.operator
fft2 = _fft.fft2.operator
fftfreq = _fft.fftfreq.operator
fftn = _fft.fftn.operator
fftshift = _fft.fftshift.operator
hfft = _fft.hfft.operator
hfft2 = _fft.hfft2.operator
hfftn = _fft.hfftn.operator
ifft = _fft.ifft.operator
ifft2 = _fft.ifft2.operator
ifftn = _fft.ifftn.operator
ifftshift = _fft.ifftshift.operator
ihfft = _fft.ihfft.operator
ihfft2 = _fft.ihfft2.operator
ihfftn = _fft.ihfftn.operator
irfft = _fft.irfft.operator
irfft2 = _fft.irfft2.operator
irfftn = _fft.irfftn.operator
rfft = _fft.rfft.operator
rfft2 = _fft.rfft2.operator
rfftfreq = _fft.rfftfreq.operator
rfftn = _fft.rfftn.operator
