"""Conversions: identity where nothing changes, and memory formats."""

import numpy as np
import pytest

import rushlight as torch


def test_nothing_changes():
    x = torch.zeros(2, 3)
    for same in (x.to(torch.float32), x.float(), x.to("cpu"), x.cpu(), x.to(x), x.type_as(x), x.contiguous()):
        assert same is x
    assert x.to(torch.float32, copy=True) is not x


def test_by_name():
    x = torch.tensor([0, 2])
    for name, dtype in (
        ("double", torch.float64),
        ("half", torch.float16),
        ("int", torch.int32),
        ("bool", torch.bool),
        ("cfloat", torch.complex64),
    ):
        assert getattr(x, name)().dtype is dtype
    assert x.to(dtype=torch.float64, device="cpu").dtype is torch.float64
    assert x.to("meta").device.type == "meta"


def test_casts_round_as_c_does():
    x = torch.tensor([1.9, -1.9, 300.0])
    assert x.long().tolist() == [1, -1, 300]
    assert x.bool().tolist() == [True, True, True]
    assert torch.tensor([1 + 2j]).real.tolist() == [1]


def test_channels_last():
    x = torch.arange(2 * 3 * 4 * 5).view(2, 3, 4, 5)
    y = x.contiguous(memory_format=torch.channels_last)
    assert y.stride() == (60, 1, 15, 3)
    assert y.is_contiguous(memory_format=torch.channels_last)
    assert not y.is_contiguous()
    assert y.tolist() == x.tolist()
    assert y.clone().stride() == y.stride()
    assert torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).stride() == y.stride()
    assert torch.zeros_like(y, memory_format=torch.contiguous_format).is_contiguous()
    with pytest.raises(RuntimeError, match="required rank 4 tensor"):
        torch.zeros(2, 3).to(memory_format=torch.channels_last)


def test_names_of_formats_and_layouts():
    assert repr(torch.channels_last) == "torch.channels_last"
    assert torch.zeros(1).layout is torch.strided


FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
EDGES = [
    *(0.0, -0.0, 0.5, -0.99, 1.5, -1.5, 127.0, 127.5, 128.0, -128.9, -129.0, 255.9, 256.0, -1e-3, 300.0),
    *(32767.0, 32768.0, -32769.0, 65504.0, 2.0**31 - 1, 2.0**31, -(2.0**31), -(2.0**31) - 1, 2.0**32),
    *(2.0**63, -(2.0**63), -9.3e18, 1e19, 2.0**64, 1e30, -1e30, float("inf"), float("-inf"), float("nan")),
]


@pytest.mark.filterwarnings("ignore:.*imaginary part")
@pytest.mark.parametrize("integer", INTEGERS, ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats_beyond_the_range_saturate_whatever_the_layout(dtype, integer):
    edges = torch.tensor(EDGES, dtype=torch.float64).to(dtype)
    low, high = torch.iinfo(integer).min, torch.iinfo(integer).max
    rounded = edges.real.tolist() if dtype.is_complex else edges.tolist()
    expected = [0 if x != x else low if x <= low else high if x >= high else int(x) for x in rounded]
    for n in range(71):
        places = [(7 * i + n) % len(EDGES) for i in range(n)]
        source, wanted = edges[torch.tensor(places, dtype=torch.int64)], [expected[i] for i in places]
        apart = torch.zeros(2 * n, dtype=dtype)[::2].copy_(source)
        target = torch.zeros(2 * n, dtype=integer)[1::2]
        target[:] = source
        results = [
            source.to(integer),
            apart.to(integer),
            source.flip(0)[::-1].to(integer),
            torch.empty(n, dtype=integer).copy_(apart),
            source.expand(3, n).to(integer)[2],
            torch.stack([source, source], 1).T.to(integer)[1],
            torch.as_tensor(source, dtype=integer),
            target,
        ]
        for i, result in enumerate(results):
            assert result.tolist() == wanted, (n, i)


@pytest.mark.parametrize("to", INTEGERS, ids=str)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_beyond_the_range_wrap(dtype, to):
    edges = np.array([0, 1, -1, 127, 128, 255, 256, -129, 2**31, -(2**31), 2**63 - 1, -(2**63)])
    edges = edges.astype(str(dtype)[6:])
    for n in range(71):
        source = np.resize(edges, n)
        assert torch.from_numpy(source).to(to).tolist() == source.astype(str(to)[6:]).tolist()
