"""Divisors, exponents, neighbours and double powers where samples do not look."""

import itertools
import math

import numpy as np
import pytest

import rushlight as torch

INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
NUMPY = {torch.float16: np.float16, torch.float32: np.float32, torch.float64: np.float64}


@pytest.mark.parametrize("dtype", INTEGERS)
def test_gcd_and_lcm_of_extremes(dtype):
    info = torch.iinfo(dtype)
    values = [0, 1, 6, info.max, info.max - 1, info.min, info.min + 1]
    pairs = [(x, y) for x in values for y in values]
    a, b = (torch.tensor(each, dtype=dtype) for each in zip(*pairs, strict=True))
    wrapped = lambda n: n if n <= info.max else info.min  # the magnitude of the smallest integer
    assert torch.gcd(a, b).tolist() == [wrapped(math.gcd(x, y)) for x, y in pairs]
    fits = [(x, y) for x, y in pairs if math.lcm(x, y) <= info.max]
    a, b = (torch.tensor(each, dtype=dtype) for each in zip(*fits, strict=True))
    assert torch.lcm(a, b).tolist() == [math.lcm(x, y) for x, y in fits]


def test_gcd_in_place_and_out():
    x = torch.tensor([12, 18])
    out = torch.empty(0, dtype=torch.int64)
    assert torch.gcd(x, torch.tensor(8), out=out) is out
    assert out.tolist() == [4, 2]
    assert x.lcm_(torch.tensor([8, 4])).tolist() == [24, 36]


@pytest.mark.parametrize("dtype", [torch.bool, torch.float32])
def test_gcd_wants_integers(dtype):
    x = torch.ones(2, dtype=dtype)
    with pytest.raises(NotImplementedError, match="gcd"):
        torch.gcd(x, x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_nextafter(dtype):
    tiny = np.nextafter(NUMPY[dtype](0), NUMPY[dtype](1))
    values = np.array([0.0, -0.0, 1, -1, tiny, -tiny, np.inf, -np.inf, np.nan, 2.5], NUMPY[dtype])
    a, b = (x.ravel() for x in np.meshgrid(values, values))
    result = torch.nextafter(torch.from_numpy(a), torch.from_numpy(b)).numpy()
    expected = np.nextafter(a, b)
    np.testing.assert_array_equal(result, expected)
    different = a != b  # of equal zeros NumPy's halves give the first, C the second
    np.testing.assert_array_equal(np.signbit(result)[different], np.signbit(expected)[different])


def test_nextafter_of_bfloat16():
    x = torch.tensor([1.0, 0.0, -2.0], dtype=torch.bfloat16)
    step = torch.nextafter(x, torch.tensor(math.inf, dtype=torch.bfloat16)).double() - x.double()
    assert step.tolist() == [2.0**-7, 2.0**-133, 2.0**-7]


def test_frexp_puts_numbers_together_again():
    x = torch.tensor([0.0, -1.5, 3e38, 1e-40, 1024.0])
    mantissa, exponent = torch.frexp(x)
    assert exponent.dtype is torch.int32
    assert torch.equal(torch.ldexp(mantissa.double(), exponent.double()).float(), x)
    assert ((mantissa.abs() >= 0.5) & (mantissa.abs() < 1) | (x == 0)).all()
    assert torch.frexp(torch.tensor([math.inf, math.nan])).exponent.tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="floating-point"):
        torch.frexp(torch.ones(2, dtype=torch.int64))


def test_ldexp_dtypes():
    half = torch.ones(2, dtype=torch.float16)
    assert torch.ldexp(half, torch.tensor([1, 2])).dtype is torch.float16
    assert torch.ldexp(torch.tensor([1, 2]), torch.tensor([1, 2])).tolist() == [2.0, 8.0]
    with pytest.raises(TypeError):
        torch.ldexp(half, 2)


def test_float_power_is_double():
    assert torch.float_power(torch.tensor([3]), 2).dtype is torch.float64
    assert torch.float_power(2, torch.tensor([1j])).dtype is torch.complex128
    x = torch.tensor([3.0], dtype=torch.float64)
    assert x.float_power_(2) is x
    assert x.item() == 9
    with pytest.raises(RuntimeError, match="dtype float64"):
        torch.ones(1).float_power_(2)
    with pytest.raises(RuntimeError, match="dtype float64"):
        torch.float_power(x, 2, out=torch.empty(1))


def test_isreal():
    assert torch.isreal(torch.tensor([1, 1j, 2 + 0j])).tolist() == [True, False, True]
    assert torch.isreal(torch.tensor([math.nan])).tolist() == [True]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("number", [0.1, 1.7])
def test_half_times_a_number_is_rounded_once(dtype, number):
    x = torch.linspace(-30, 30, 4001).to(dtype)
    wide, n = x.float().numpy(), np.float32(number)
    expect = lambda values: torch.from_numpy(values).to(dtype)
    for actual, reference in [
        (x * number, wide * n),
        (number * x, n * wide),
        (x * torch.tensor(number), wide * n),
        (x.clone().mul_(number), wide * n),
        (x.t() * number, wide * n),
        (x / number, wide / n),
        (torch.div(x, number, rounding_mode="trunc"), np.trunc(wide / n)),
        (x // number, np.floor_divide(wide, n)),
    ]:
        assert torch.equal(actual, expect(reference))
    assert torch.equal((number / x)[x != 0], expect(n / wide[wide != 0]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_clamp_between_tensors_of_special_values(dtype):
    values = [float("nan"), -float("inf"), float("inf"), 0.0, 1.0, -1.0]
    x, low, high = (torch.tensor(v, dtype=dtype) for v in zip(*itertools.product(values, repeat=3), strict=True))
    expected = np.minimum(np.maximum(x.double().numpy(), low.double().numpy()), high.double().numpy())
    np.testing.assert_array_equal(torch.clamp(x, low, high).double().numpy(), expected)


@pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.complex128]
)
def test_inputs_that_lie_transposed(dtype):
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(0, 50, shape) for shape in ((3, 70, 150), (3, 150, 70), (150, 70, 3)))
    x, y, z = (torch.tensor(v).to(dtype) for v in (a, b, c))
    yt, zt = y.transpose(1, 2), z.permute(2, 1, 0)
    expected = a + b.transpose(0, 2, 1) + c.transpose(2, 1, 0)
    assert (x + yt + zt).to(torch.int64).tolist() == expected.tolist()
    assert torch.where(yt.real > 25, x, zt).to(torch.int64).tolist() == (
        np.where(b.transpose(0, 2, 1) > 25, a, c.transpose(2, 1, 0)).tolist()
    )
    assert torch.addcmul(x, yt, zt, value=0).equal(x)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_ranges_of_integers_reach_the_whole_part_of_their_ends(dtype):
    assert torch.linspace(0.9, 9.9, 4, dtype=dtype).tolist() == [0, 3, 6, 9]
    assert torch.logspace(0.5, 2.9, 3, dtype=dtype).tolist() == [1, 10, 100]
