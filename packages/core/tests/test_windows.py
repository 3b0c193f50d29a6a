"""Windows: against SciPy where it is installed, their ends, errors."""

import numpy as np
import pytest

import rushlight as torch
from rushlight.signal import windows

SCIPY = {
    "bartlett": {},
    "blackman": {},
    "cosine": {},
    "exponential": {"tau": 2.5},
    "gaussian": {"std": 1.5},
    "general_cosine": {"a": [0.4, 0.3, 0.2]},
    "general_hamming": {"alpha": 0.7},
    "hamming": {},
    "hann": {},
    "kaiser": {"beta": 5.0},
    "nuttall": {},
}


@pytest.mark.parametrize("name", windows.__all__)
@pytest.mark.parametrize("sym", [True, False])
@pytest.mark.parametrize("n", [0, 1, 2, 9, 10])
def test_windows_are_those_of_scipy(name, sym, n):
    reference = getattr(pytest.importorskip("scipy.signal").windows, name)
    window = getattr(windows, name)(n, sym=sym, dtype=torch.float64, **SCIPY[name])
    np.testing.assert_allclose(window.numpy(), reference(n, sym=sym, **SCIPY[name]), rtol=1e-10, atol=1e-14)


def test_options():
    assert torch.signal.windows.hann(5).dtype is torch.float32
    assert windows.exponential(5, center=1, sym=False)[1].item() == 1


def test_window_requires_grad():
    pytest.importorskip("rushlight.autograd", exc_type=ImportError)
    assert torch.signal.windows.hann(5, requires_grad=True).requires_grad


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: windows.hann(-1), ValueError),
        (lambda: windows.hann(4.5), TypeError),
        (lambda: windows.hann(4, dtype=torch.float16), ValueError),
        (lambda: windows.hann(4, layout=torch.sparse_coo), ValueError),
        (lambda: windows.exponential(4, tau=-1), ValueError),
        (lambda: windows.exponential(4, center=1), ValueError),
        (lambda: windows.gaussian(4, std=0), ValueError),
        (lambda: windows.kaiser(4, beta=-1), ValueError),
        (lambda: windows.general_cosine(4, a=[]), ValueError),
        (lambda: windows.general_cosine(4, a=1), TypeError),
        (lambda: torch.hann_window(-1), RuntimeError),
        (lambda: torch.kaiser_window(4, dtype=torch.int64), RuntimeError),
    ],
)
def test_errors(call, error):
    with pytest.raises(error):
        call()


def test_periodic_windows_add_up_to_one():
    hann = torch.hann_window(8, dtype=torch.float64)
    assert torch.allclose(hann[:4] + hann[4:], torch.ones(4, dtype=torch.float64))
    assert torch.hann_window(4, dtype=torch.float16).tolist() == [0, 0.5, 1, 0.5]
