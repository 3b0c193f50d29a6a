"""Conversions: identity where nothing changes, and memory formats."""

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
