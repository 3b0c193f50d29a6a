"""Fourier transforms: identities, sizes of every kind against NumPy, arguments that do not fit, stft and istft."""

import numpy as np
import pytest

import rushlight as torch
from rushlight import fft
from rushlight._op import operators

SIZES = [*range(1, 34), 36, 49, 60, 64, 97, 100, 121, 128, 143, 210, 256, 262, 500, 512, 997, 1000, 1024, 1331, 2048]
TOLERANCE = {torch.complex64: 3e-6, torch.complex128: 1e-13}


def error(result, expected):
    """The largest difference relative to the root of the mean square."""
    return np.abs(result.numpy() - expected).max() / np.sqrt(np.mean(np.abs(expected) ** 2))


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("n", SIZES)
def test_every_size(n, dtype):
    x = torch.randn(3, n, dtype=torch.complex128)
    wide = x.numpy()
    assert error(fft.fft(x.to(dtype)), np.fft.fft(wide)) < TOLERANCE[dtype]
    assert error(fft.ifft(x.to(dtype)), np.fft.ifft(wide)) < TOLERANCE[dtype]
    assert error(fft.rfft(x.real.to(dtype.to_real())), np.fft.rfft(wide.real)) < TOLERANCE[dtype]
    half = np.fft.rfft(wide.real)
    assert error(fft.irfft(torch.from_numpy(half).to(dtype), n), np.fft.irfft(half, n)) < TOLERANCE[dtype]


@pytest.mark.parametrize("shape", [(5, 4), (3, 1, 6), (2, 3, 4, 5), (64, 48), (7, 33, 2)])
def test_several_dimensions(shape):
    x = torch.randn(shape, dtype=torch.float64)
    for layout in (x, x.transpose(0, -1).contiguous().transpose(0, -1), x.repeat_interleave(2, -1)[..., ::2]):
        assert error(fft.fftn(layout), np.fft.fftn(x.numpy())) < 1e-13
        assert error(fft.rfftn(layout), np.fft.rfftn(x.numpy())) < 1e-13
        assert error(fft.fftn(layout, dim=0), np.fft.fft(x.numpy(), axis=0)) < 1e-13
    assert torch.allclose(fft.irfftn(fft.rfftn(x), s=shape), x)
    assert torch.allclose(fft.hfftn(fft.ihfftn(x), s=shape), x)


def test_a_long_prime_and_a_large_batch():
    x = torch.randn(2, 10007, dtype=torch.complex128)
    assert error(fft.fft(x), np.fft.fft(x.numpy())) < 1e-12
    x = torch.randn(300, 120, 8, dtype=torch.complex128)
    assert error(fft.fft(x, dim=1), np.fft.fft(x.numpy(), axis=1)) < 1e-13


@pytest.mark.parametrize("n", [2048, 2100, 4096, 5000, 5001, 6561, 65536, 100_000, 2**17 + 2**16])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_long_signals(n, dtype):
    x = torch.randn(n, dtype=torch.complex128)
    assert error(fft.fft(x.to(dtype)), np.fft.fft(x.numpy())) < TOLERANCE[dtype]
    assert error(fft.ifft(x.to(dtype)), np.fft.ifft(x.numpy())) < TOLERANCE[dtype]
    x = torch.randn(n, 2, dtype=torch.complex128)
    assert error(fft.fft(x.to(dtype), dim=0), np.fft.fft(x.numpy(), axis=0)) < TOLERANCE[dtype]
    signal = x.real[:, 0].contiguous()
    spectrum = np.fft.fft(signal.numpy())
    assert error(fft.rfft(signal.to(dtype.to_real())), spectrum[: n // 2 + 1]) < TOLERANCE[dtype]
    assert error(fft.fft(signal.to(dtype.to_real())), spectrum) < TOLERANCE[dtype]
    assert error(fft.irfft(torch.from_numpy(spectrum[: n // 2 + 1]).to(dtype), n), signal.numpy()) < TOLERANCE[dtype]
    half = fft.rfft(x.real.to(dtype.to_real()), dim=0)
    assert error(half, np.fft.rfft(x.real.numpy(), axis=0)) < TOLERANCE[dtype]


def test_result_does_not_depend_on_threads():
    x = torch.randn(64, 360)
    before = torch.get_num_threads()
    try:
        results = []
        for threads in (1, 3):
            torch.set_num_threads(threads)
            results.append(fft.fft2(x))
        assert torch.equal(*results)
    finally:
        torch.set_num_threads(before)


def test_parseval():
    x = torch.randn(1000, dtype=torch.complex128)
    assert fft.fft(x, norm="ortho").norm().item() == pytest.approx(x.norm().item())


def test_dtypes():
    assert fft.fft(torch.ones(3, dtype=torch.int64)).dtype is torch.complex64
    assert fft.rfft(torch.ones(3, dtype=torch.float64)).dtype is torch.complex128
    assert fft.irfft(torch.ones(3, dtype=torch.bool)).dtype is torch.float32
    assert fft.fftn(torch.tensor(2.0)).item() == 2
    assert fft.fft(torch.empty(0, 4)).shape == (0, 4)


@pytest.mark.parametrize(
    ("call", "kind", "match"),
    [
        (lambda: fft.fft(torch.tensor(1.0)), IndexError, "no dimensions"),
        (lambda: fft.fft(torch.ones(3), n=0), RuntimeError, "data points"),
        (lambda: fft.fft(torch.ones(0)), RuntimeError, "data points"),
        (lambda: fft.fft(torch.ones(3), dim=3), IndexError, "out of range"),
        (lambda: fft.fft(torch.ones(3), norm="x"), RuntimeError, "normalization mode"),
        (lambda: fft.fft(torch.ones(3).half()), RuntimeError, "Unsupported dtype Half"),
        (lambda: fft.rfft(torch.ones(3) + 1j), RuntimeError, "real input"),
        (lambda: fft.irfft(torch.ones(1)), RuntimeError, "data points"),
        (lambda: fft.rfftn(torch.ones(3), dim=()), RuntimeError, "at least one axis"),
        (lambda: fft.fftn(torch.ones(3, 3), s=(2, 3, 3)), RuntimeError, "only has 2 dimensions"),
        (lambda: fft.fftn(torch.ones(3, 3), s=(2, 3), dim=(0,)), RuntimeError, "same length"),
        (lambda: fft.fftn(torch.ones(3, 3), dim=(0, -2)), RuntimeError, "unique"),
        (lambda: fft.fft(torch.ones(3), out=torch.empty(3)), RuntimeError, "can't be cast"),
        (lambda: fft.fftfreq(-1), RuntimeError, "negative"),
        (lambda: fft.fftfreq(3, dtype=torch.int64), RuntimeError, "floating point"),
    ],
)
def test_errors(call, kind, match):
    with pytest.raises(kind, match=match):
        call()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("_fft_c2c", (torch.ones(3), (0,), 0, True)),
        ("_fft_c2c", (torch.ones((), dtype=torch.complex64), (0,), 0, True)),
        ("_fft_c2c", (torch.ones(3, dtype=torch.complex64), (0,), 7, True)),
        ("_fft_r2c", (torch.ones(3), (), 0, True)),
        ("_fft_c2r", (torch.ones(3, dtype=torch.complex64), (0,), 0, 100)),
        ("_fft_c2r", (torch.ones(3, dtype=torch.complex64), (0,), 0, -1)),
    ],
)
def test_what_the_three_operators_refuse(name, arguments):
    with pytest.raises(RuntimeError):
        operators[name](*arguments)


def test_shifts_undo_each_other():
    x = torch.rand(4, 5)
    assert torch.equal(fft.ifftshift(fft.fftshift(x)), x)
    assert fft.fftshift(fft.fftfreq(5)).diff().min().item() > 0


# -- stft, istft


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_istft_undoes_stft(dtype, normalized, center):
    x = torch.randn(2, 100, dtype=dtype)
    window = torch.hamming_window(16, dtype=torch.float64)
    spectrum = torch.stft(
        x, 16, 4, window=window, center=center, normalized=normalized, return_complex=True, pad_mode="circular"
    )
    options = {"window": window, "center": center, "normalized": normalized, "return_complex": dtype.is_complex}
    assert torch.allclose(torch.istft(spectrum, 16, 4, **options), x)


def test_a_short_window_stands_in_the_middle():
    x, window = torch.arange(12.0), torch.tensor([1.0, 2.0])
    options = {"hop_length": 2, "win_length": 2, "window": window, "center": False, "return_complex": True}
    assert torch.stft(x, 4, **options)[0].real.tolist() == [5, 11, 17, 23, 29]
    assert torch.stft(x, 4, align_to_window=True, **options)[0].real.tolist() == [2, 8, 14, 20, 26, 32]


def test_old_form_of_stft():
    x = torch.randn(30)
    spectrum = torch.stft(x, 8, return_complex=True)
    assert torch.equal(torch.stft(x, 8, return_complex=False), torch.view_as_real(spectrum))
    with pytest.raises(RuntimeError, match="return_complex"):
        torch.stft(x, 8)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular", "constant"])
def test_padding(mode):
    x = torch.arange(1.0, 7)
    padded = np.pad(x.numpy(), 2, {"replicate": "edge", "circular": "wrap"}.get(mode, mode))
    frames = torch.stft(x, 4, 1, pad_mode=mode, return_complex=True)
    expected = np.fft.rfft(np.lib.stride_tricks.sliding_window_view(padded, 4)).T
    np.testing.assert_allclose(frames.numpy(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("keywords", "match"),
    [
        ({"n_fft": 40}, "Padding size"),
        ({"n_fft": 40, "center": False}, "n_fft"),
        ({"n_fft": 0}, "n_fft"),
        ({"n_fft": 4, "hop_length": 0}, "hop_length"),
        ({"n_fft": 4, "win_length": 8}, "win_length"),
        ({"n_fft": 4, "window": torch.ones(3)}, "window"),
        ({"n_fft": 4, "pad_mode": "x"}, "padding mode"),
        ({"n_fft": 4, "window": torch.ones(4) + 0j, "onesided": True}, "onesided"),
    ],
)
def test_stft_errors(keywords, match):
    with pytest.raises(RuntimeError, match=match):
        torch.stft(torch.ones(10), return_complex=True, **keywords)


def test_istft_errors_and_lengths():
    spectrum = torch.stft(torch.ones(10), 4, return_complex=True)
    assert torch.istft(spectrum, 4, length=5).tolist() == pytest.approx([1] * 5)
    with pytest.warns(UserWarning, match="padded with zeros"):
        assert torch.istft(spectrum, 4, length=20).shape == (20,)
    for keywords, match in (
        ({"window": torch.zeros(4)}, "overlap add"),
        ({"onesided": False}, "frequency dimension"),
        ({"hop_length": 5, "win_length": 3}, "hop_length"),
        ({"return_complex": True}, "onesided"),
        ({"window": torch.ones(3)}, "Invalid window shape"),
    ):
        with pytest.raises(RuntimeError, match=match):
            torch.istft(spectrum, 4, **keywords)
    with pytest.raises(RuntimeError, match="complex-valued"):
        torch.istft(torch.view_as_real(spectrum), 4)
