"""Type promotion: a lattice of dtypes, and categories of operands."""

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st

import rushlight as torch

DTYPES = [
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
    torch.float64, torch.complex64, torch.complex128, torch.bool,
]  # fmt: skip
NUMPY = [d for d in DTYPES if d is not torch.bfloat16]
dtypes = st.sampled_from(DTYPES)


def numpy_name(dtype):
    return str(dtype).split(".")[1]


@given(dtypes, dtypes)
def test_commutes(a, b):
    assert torch.promote_types(a, b) is torch.promote_types(b, a)


@given(dtypes)
def test_is_idempotent_and_bool_is_the_bottom(a):
    assert torch.promote_types(a, a) is a
    assert torch.promote_types(a, torch.bool) is a


@given(dtypes, dtypes)
def test_result_holds_both(a, b):
    result = torch.promote_types(a, b)
    assert torch.can_cast(a, result)
    assert torch.can_cast(b, result)


@pytest.mark.parametrize(
    ("a", "b"), [*itertools.combinations([d for d in NUMPY if not (d.is_floating_point or d.is_complex)], 2)]
)
def test_integers_promote_as_numpy_does(a, b):
    assert numpy_name(torch.promote_types(a, b)) == np.promote_types(numpy_name(a), numpy_name(b)).name


@pytest.mark.parametrize("integer", [torch.bool, torch.uint8, torch.int64])
@pytest.mark.parametrize("inexact", [torch.float16, torch.bfloat16, torch.float32, torch.complex64])
def test_an_inexact_dtype_wins_over_any_integer(integer, inexact):
    assert torch.promote_types(integer, inexact) is inexact


def test_the_half_types_meet_in_float32():
    assert torch.promote_types(torch.float16, torch.bfloat16) is torch.float32


def tensor(dtype, *shape):
    return torch.zeros(shape, dtype=dtype)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (tensor(torch.float32, 2), tensor(torch.float64), torch.float32),  # a 0-d tensor of the same category yields
        (tensor(torch.int64, 2), tensor(torch.float32), torch.float32),  # of a higher one it does not
        (tensor(torch.float32), tensor(torch.float64), torch.float64),
        (tensor(torch.uint8, 2), 300, torch.uint8),  # numbers yield within a category
        (tensor(torch.int32, 2), 1.5, torch.float32),
        (tensor(torch.bool, 2), 1, torch.int64),
        (tensor(torch.float64, 2), 1j, torch.complex128),
        (tensor(torch.float32, 2), 1j, torch.complex64),
        (tensor(torch.float16, 2), 1.5, torch.float16),
        (tensor(torch.int8), 1, torch.int8),
        (1, 1.5, torch.float32),
        (True, 1, torch.int64),
    ],
)
def test_categories(a, b, expected):
    assert torch.result_type(a, b) is expected
    if isinstance(a, torch.Tensor):
        assert (a + b).dtype is expected


def test_the_default_dtype_decides_for_numbers():
    torch.set_default_dtype(torch.float64)
    try:
        assert (torch.ones(2, dtype=torch.int32) + 1.5).dtype is torch.float64
        assert torch.ones(2).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_default_dtype_must_be_floating():
    with pytest.raises(TypeError, match="only floating-point types are supported as the default type"):
        torch.set_default_dtype(torch.int64)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (torch.int64, torch.uint8, True),
        (torch.float64, torch.int64, False),
        (torch.int8, torch.bool, False),
        (torch.complex64, torch.float64, False),
        (torch.bool, torch.float16, True),
        (torch.float64, torch.float16, True),
    ],
)
def test_can_cast_follows_the_category(a, b, expected):
    assert torch.can_cast(a, b) is expected


def test_differential():
    peer = pytest.importorskip("torch")
    name = lambda dtype: str(dtype).split(".")[1]
    for a, b in itertools.product(DTYPES, DTYPES):
        assert name(torch.promote_types(a, b)) == name(
            peer.promote_types(getattr(peer, name(a)), getattr(peer, name(b)))
        )
        assert torch.can_cast(a, b) == peer.can_cast(getattr(peer, name(a)), getattr(peer, name(b)))
        for sa, sb in itertools.product([(), (2,)], repeat=2):
            ours = torch.result_type(tensor(a, *sa), tensor(b, *sb))
            theirs = peer.result_type(
                peer.zeros(sa, dtype=getattr(peer, name(a))), peer.zeros(sb, dtype=getattr(peer, name(b)))
            )
            assert name(ours) == name(theirs), (a, sa, b, sb)


@pytest.mark.parametrize(
    "mixed", [lambda b: b - 1, lambda b: 1.5 - b, lambda b: b - torch.ones(1), lambda b: torch.rsub(b, 2)]
)
def test_bool_has_no_minus(mixed):
    with pytest.raises(RuntimeError, match="Subtraction, the `-` operator, with a bool tensor is not supported"):
        mixed(torch.tensor([True]))
    with pytest.raises(RuntimeError, match="Subtraction, the `-` operator, with a bool tensor is not supported"):
        torch.tensor([1]) - True
    with pytest.raises(RuntimeError, match="with two bool tensors is not supported"):
        torch.tensor([True]) - torch.tensor([True])
    with pytest.raises(RuntimeError, match="Negation, the `-` operator, on a bool tensor is not supported"):
        -torch.tensor([True])
    assert torch.rsub(torch.tensor([1]), 3).tolist() == [2]
