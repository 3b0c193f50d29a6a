"""repr of tensors, against what PyTorch prints."""

import math

import pytest

import rushlight as torch
from rushlight._printing import get_printoptions, printoptions

nan, inf = math.nan, math.inf


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (1.0, "tensor(1.)"),
        ([1.0, 2.5], "tensor([1.0000, 2.5000])"),
        ([0.0, nan], "tensor([0., nan])"),
        ([10.5, inf, -inf], "tensor([10.5000,     inf,    -inf])"),
        ([1e-5, 1.0], "tensor([1.0000e-05, 1.0000e+00])"),
        ([1e9, 1.0], "tensor([1.0000e+09, 1.0000e+00])"),
        ([100.0, -1.0], "tensor([100.,  -1.])"),
        ([1, 10, -100], "tensor([   1,   10, -100])"),
        ([True, False], "tensor([ True, False])"),
        ([1 + 2j, 0.5 - 1j], "tensor([1.0000+2.j, 0.5000-1.j])"),
        ([[1, 2], [3, 4]], "tensor([[1, 2],\n        [3, 4]])"),
        ([[[1], [2]], [[3], [4]]], "tensor([[[1],\n         [2]],\n\n        [[3],\n         [4]]])"),
        ([], "tensor([])"),
    ],
    ids=repr,
)
def test_values(data, text):
    assert repr(torch.tensor(data)) == text


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: torch.zeros(2, dtype=torch.float64), "tensor([0., 0.], dtype=torch.float64)"),
        (lambda: torch.ones(2, dtype=torch.int32), "tensor([1, 1], dtype=torch.int32)"),
        (lambda: torch.ones(1, dtype=torch.bfloat16), "tensor([1.], dtype=torch.bfloat16)"),
        (lambda: torch.zeros(2, 0), "tensor([], size=(2, 0))"),
        (lambda: torch.zeros(0, dtype=torch.int64), "tensor([], dtype=torch.int64)"),
        (lambda: torch.zeros(2, 3, device="meta"), "tensor(..., device='meta', size=(2, 3))"),
    ],
)
def test_suffixes(make, text):
    assert repr(make()) == text


def test_long_tensors_show_their_edges():
    assert repr(torch.arange(1001)) == "tensor([   0,    1,    2,  ...,  998,  999, 1000])"
    lines = repr(torch.zeros(100, 100)).split("\n")
    assert lines[0] == "tensor([[0., 0., 0.,  ..., 0., 0., 0.],"
    assert lines[3] == "        ...,"
    assert len(lines) == 7


def test_lines_wrap():
    assert repr(torch.arange(30)) == (
        "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])"
    )


def test_options():
    x = torch.tensor([math.pi, 1000.0])
    with printoptions(precision=2):
        assert repr(x) == "tensor([   3.14, 1000.00])"
    with printoptions(sci_mode=True):
        assert repr(x) == "tensor([3.1416e+00, 1.0000e+03])"
    with printoptions(threshold=3, edgeitems=1):
        assert repr(torch.arange(5)) == "tensor([0,  ..., 4])"
    with printoptions(profile="short"):
        assert get_printoptions()["precision"] == 2
    assert get_printoptions()["precision"] == 4
    with pytest.raises(ValueError, match="profile must be one of"):
        torch.set_printoptions(profile="wide")


def test_format_of_a_number():
    assert f"{torch.tensor(1.5):.2f}" == "1.50"
    assert str(torch.tensor([1])) == "tensor([1])"
