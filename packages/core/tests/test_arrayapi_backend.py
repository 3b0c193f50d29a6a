"""Devices of array libraries that follow the array API standard: memory, writes, indices, dtypes, what is missing."""

import types

import numpy as np
import pytest

import rushlight as torch
from rushlight import _registry
from rushlight.plugin import backend, from_array, to_array
from rushlight.testing import arrayapi_backend, assert_close


def sealed():
    """NumPy as a namespace whose arrays cannot be written to."""

    def seal(function):
        def sealing(*args, **kwargs):
            result = function(*args, **kwargs)
            for each in result if isinstance(result, (tuple, list)) else (result,):
                if isinstance(each, np.ndarray):
                    each.flags.writeable = False
            return result

        return sealing

    library = types.ModuleType("sealed")
    for name in dir(np):
        value = getattr(np, name)
        plain = callable(value) and not isinstance(value, type)
        setattr(library, name, seal(value) if plain and name != "__array_namespace_info__" else value)
    library.asarray = lambda x, **options: seal(np.array)(x, dtype=options.get("dtype"))
    return library


for _name, _library in (("sealed", sealed()), ("strict", "array_api_strict"), ("absent", "no_such_library.arrays")):
    _registry.commit(_registry.CORE, _registry.Contributions(backends=[arrayapi_backend(_name, _library)]))


@pytest.fixture(params=["sealed", "strict"])
def device(request):
    if request.param == "strict":
        pytest.importorskip("array_api_strict")
    return request.param


DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128, torch.bool, torch.uint8, torch.int8]
DTYPES += [torch.int16, torch.int32, torch.int64]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_copies_keep_every_element(device, dtype):
    host = torch.tensor([[0, 1, 0], [1, 1, 100]]).to(dtype)
    assert_close(host.to(device).cpu(), host)
    assert_close(host.t().to(device).t().contiguous().cpu(), host)
    assert_close(torch.empty(0, 3, dtype=dtype, device=device).cpu(), torch.empty(0, 3, dtype=dtype))


def test_the_host_array_is_copied(device):
    host = torch.ones(3)
    x = host.to(device)
    host.zero_()
    assert x.tolist() == [1, 1, 1]


def test_views_share_memory(device):
    x, expected = torch.zeros(4, 6, device=device), torch.zeros(4, 6)
    for each in (x, expected):
        each[1:, ::2].t()[1].add_(5)
        each.narrow(1, 3, 1).fill_(7)
        each.diagonal().mul_(2).add_(1)
        each[2].copy_(each[1])
        each[:, 3:3].copy_(each[:, :0])
        each.as_strided((2, 2), (7, 1), 3).sub_(1)
    assert_close(x.cpu(), expected)


def test_results_have_memory_of_their_own(device):
    x = torch.ones(2, 3, device=device)
    for y in (x.clone(), x + 0, torch.cat([x]), x.reshape(3, 2).contiguous().clone(), x.flip(0)):
        y.zero_()
    assert x.sum().item() == 6


def test_memory_reads_as_another_dtype(device):
    x = torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex64).to(device)
    x.real.mul_(10)
    torch.view_as_real(x)[1, 1] = 5
    assert x.tolist() == [10 + 2j, 30 + 5j]
    bits = torch.tensor([1.0, -2.0]).to(device).view(torch.int32)
    assert bits.tolist() == torch.tensor([1.0, -2.0]).view(torch.int32).tolist()


@pytest.mark.parametrize(
    "key",
    [
        [2, 0],
        (slice(None), [0, 3]),
        ([[0], [1]], [3, 1]),
        (slice(None, None, 2), None, -1),
        (..., [1, -1]),
        (0, [1, -1]),
        ([0, 2], None, [1, 3]),
        (None, [True, False, True]),
        (slice(3, 1), [0]),
    ],
)
def test_indices(device, key):
    host = torch.arange(12.0).reshape(3, 4)
    x = host.to(device)
    assert_close(x[key].cpu(), host[key])
    x[key], host[key] = 9, 9
    assert_close(x.cpu(), host)


def test_masks(device):
    host = torch.arange(-6.0, 6).reshape(3, 4)
    x = host.to(device)
    assert_close(x[x > 0].cpu(), host[host > 0])
    x[x < 0], host[host < 0] = 0, 0
    assert_close(x.cpu(), host)
    assert x[x > 10].shape == (0,)
    for scalar in (True, False):
        mask = torch.tensor(scalar)
        assert_close(x[mask.to(device)].cpu(), host[mask])


def test_indices_outside_raise(device):
    x = torch.zeros(3, 4, device=device)
    for index in (3, -4):
        with pytest.raises(IndexError):
            x[torch.tensor([index], device=device)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.int8, torch.complex64], ids=str)
def test_equal_places_add_up(device, dtype):
    generator = np.random.default_rng(1)
    index, values = generator.integers(0, 7, 100), generator.integers(-3, 4, 100)
    expected = np.zeros(9, np.int64)
    np.add.at(expected, index, values)
    x = torch.zeros(9, dtype=dtype, device=device)
    x.index_add_(0, torch.from_numpy(index).to(device), torch.from_numpy(values).to(dtype).to(device))
    assert_close(x.cpu(), torch.from_numpy(expected).to(dtype))


def test_the_last_of_several_values_stays(device):
    x = torch.zeros(3, device=device)
    x[torch.tensor([1, 2, 1], device=device)] = torch.tensor([5.0, 6.0, 7.0], device=device)
    assert x.tolist() == [0, 7, 6]


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.uint8], ids=str)
def test_integers_without_a_quotient_or_shift_do_not_end_the_process(device, dtype):
    values = [0, 7, 100] if dtype is torch.uint8 else [7, -7, torch.iinfo(dtype).min]
    x = torch.tensor(values, dtype=dtype).to(device)
    for number in (0, 255 if dtype is torch.uint8 else -1):
        other = torch.full_like(x, number)
        for operator in (torch.floor_divide, torch.remainder, torch.fmod):
            operator(x, other).cpu()
    array = to_array(x)
    for count in (100, 64):
        assert (array << count).astype("int64").sum().item() == 0
        assert (array >> count).astype("int64").sum().item() == (0 if dtype is torch.uint8 else -2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ufuncs_beyond_the_standard(device, dtype):
    xp = backend(torch.empty(0, device=device).device.type).xp
    x = np.array([0, -0.0, 1, -1.5, 5.25, 1e-30, -7e30, np.inf, -np.inf, np.nan], dtype)
    y = np.array([2, -3, 0.1, np.inf, np.nan], dtype)
    left, right = np.meshgrid(x, y)
    for name in ("fmod", "fmax", "fmin", "heaviside", "remainder", "hypot", "copysign"):
        arrays = [to_array(torch.from_numpy(each.copy()).to(device)) for each in (left, right)]
        with np.errstate(all="ignore"):
            expected, result = getattr(np, name)(left, right), getattr(xp, name)(*arrays)
        np.testing.assert_allclose(backend(device).to_host(result), expected, rtol=1e-6, err_msg=name)
    finite = x[np.isfinite(x)]
    tiny = np.append(finite, np.array([np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max], dtype))
    parts = xp.frexp(to_array(torch.from_numpy(tiny).to(device)))
    for part, expected in zip(parts, np.frexp(tiny), strict=True):
        np.testing.assert_array_equal(backend(device).to_host(part), expected)
    a, b = np.array([12, -18, 0, 0, 7]), np.array([18, 12, 5, 0, -7])
    for name in ("gcd", "lcm"):
        result = getattr(xp, name)(*(to_array(torch.from_numpy(each).to(device)) for each in (a, b)))
        np.testing.assert_array_equal(backend(device).to_host(result), getattr(np, name)(a, b))


def test_running_results(device):
    host = torch.rand(4, 5)
    for run in (lambda x: x.logcumsumexp(1), lambda x: x.cumsum(0), lambda x: x.cumprod(1), lambda x: x.cummax(0)[0]):
        assert_close(run(host.to(device)).cpu(), run(host))


def test_what_is_missing_says_so(device):
    with pytest.raises(NotImplementedError, match=rf"{device}.*not implemented for the dtype float16"):
        torch.ones(2, dtype=torch.float16, device=device)
    xp = backend(device).xp
    with pytest.raises(NotImplementedError, match=f'{device}: "nanpercentile" not implemented for'):
        xp.nanpercentile
    with pytest.raises(NotImplementedError, match=r'"linalg\.eig_banded" not implemented for'):
        xp.linalg.eig_banded
    with pytest.raises(TypeError, match="array of the host"):
        xp.asarray(np.ones(2))
    with pytest.raises(RuntimeError, match=r"no_such_library is not installed"):
        torch.ones(1, device="absent")


def test_arrays_hide_from_numpy(device):
    array = to_array(torch.ones(3, device=device))
    for leak in (np.asarray, np.sin, lambda x: x + np.ones(3)):
        with pytest.raises(TypeError):
            leak(array)
    assert from_array(array + 1, device).cpu().tolist() == [2, 2, 2]


def test_absurd_sizes_raise(device):
    with pytest.raises((RuntimeError, MemoryError)):
        torch.zeros(1 << 50, device=device)
