"""assert_close and the makers of test tensors."""

import re

import numpy as np
import pytest

import rushlight as torch
from rushlight.testing import Maker, assert_allclose, assert_close, make_non_contiguous, make_tensor


def message_of(*args, kind=AssertionError, **kwargs):
    with pytest.raises(kind) as caught:
        assert_close(*args, **kwargs)
    return str(caught.value)


def test_messages_of_tensors():
    # The texts are those that PyTorch 2.13 prints for the same calls.
    assert message_of(torch.tensor([1.0, 2, 3]), torch.tensor([1.0, 2, 4])) == (
        "Tensor-likes are not close!\n\nMismatched elements: 1 / 3 (33.3%)\n"
        "Greatest absolute difference: 1.0 at index (2,) (up to 1e-05 allowed)\n"
        "Greatest relative difference: 0.25 at index (2,) (up to 1.3e-06 allowed)"
    )
    assert message_of(torch.tensor([1, 2, 3]), torch.tensor([1, 2, 4])) == (
        "Tensor-likes are not equal!\n\nMismatched elements: 1 / 3 (33.3%)\n"
        "Greatest absolute difference: 1 at index (2,)\nGreatest relative difference: 0.25 at index (2,)"
    )
    nan = torch.tensor([[1.0, 2], [float("nan"), 4]])
    assert message_of(nan, nan) == (
        "Tensor-likes are not close!\n\nMismatched elements: 1 / 4 (25.0%)\n"
        "Greatest absolute difference: nan at index (1, 0) (up to 1e-05 allowed)\n"
        "Greatest relative difference: nan at index (1, 0) (up to 1.3e-06 allowed)"
    )
    assert message_of(torch.tensor([1.0, 3, 3]), torch.tensor([0.0, 0, 3]), rtol=0, atol=0.5) == (
        "Tensor-likes are not close!\n\nMismatched elements: 2 / 3 (66.7%)\n"
        "Greatest absolute difference: 3.0 at index (1,) (up to 0.5 allowed)\n"
        "Greatest relative difference: inf at index (0,) (up to 0 allowed)"
    )
    half = torch.tensor([1.0, 2.0], dtype=torch.bfloat16)
    assert "difference: 0.1015625 at index (0,)" in message_of(half, torch.tensor([1.1, 2.0], dtype=torch.bfloat16))
    assert "Greatest absolute difference: 1 at index (0,)" in message_of(torch.tensor([True]), torch.tensor([False]))


def test_messages_of_scalars():
    expected = (
        "Scalars are not close!\n\nExpected 2.0 but got 1.0.\n"
        "Absolute difference: 1.0 (up to {0} allowed)\nRelative difference: 0.5 (up to {1} allowed)"
    )
    assert message_of(1.0, 2.0) == expected.format(1e-07, 1e-07)
    assert message_of(torch.tensor(1.0), torch.tensor(2.0)) == expected.format(1e-05, 1.3e-06)
    assert message_of(1, 2) == (
        "Scalars are not equal!\n\nExpected 2 but got 1.\nAbsolute difference: 1\nRelative difference: 0.5"
    )
    assert message_of(torch.tensor(0, dtype=torch.uint8), torch.tensor(255, dtype=torch.uint8)).endswith(
        "Expected 255 but got 0.\nAbsolute difference: 255\nRelative difference: 1.0"
    )
    assert "Absolute difference: 1\n" in message_of(torch.tensor(2**62), torch.tensor(2**62 + 1))


@pytest.mark.parametrize(
    ("actual", "expected", "message"),
    [
        ([torch.tensor(1.0)], [torch.tensor(1.0)] * 2, "The length of the sequences mismatch: 1 != 2"),
        (
            {"a": 1},
            {"b": 1},
            "The keys of the mappings do not match:\nMissing keys in the actual mapping: ['b']\n"
            "Additional keys in the actual mapping: ['a']",
        ),
        (None, 1, "None mismatch: None is not 1"),
        (True, False, "Booleans mismatch: True is not False"),
        (1.0, 1, "The (d)types do not match: <class 'float'> != <class 'int'>."),
    ],
)
def test_messages_of_other_values(actual, expected, message):
    assert message_of(actual, expected) == message


def test_message_says_where_in_a_container():
    one, two = torch.tensor(1.0), torch.tensor(2.0)
    assert message_of([[one], [one]], [[one], [two]]).endswith("\n\nThe failure occurred for item [1][0]")
    assert message_of({"a": one}, {"a": two}).endswith("\n\nThe failure occurred for item ['a']")


def test_attributes():
    x = torch.ones(2)
    assert "attribute 'shape' do not match" in message_of(x, torch.ones(3))
    assert message_of(x, x.to(torch.float64)) == (
        "The values for attribute 'dtype' do not match: torch.float32 != torch.float64."
    )
    assert message_of(x.to("meta"), x) == "The values for attribute 'device' do not match: meta != cpu."
    assert message_of(torch.ones(2, 3), torch.ones(3, 2).t(), check_stride=True) == (
        "The values for attribute 'stride()' do not match: (3, 1) != (1, 2)."
    )
    assert_close(x, x.to(torch.float64), check_dtype=False)
    assert_close(x.to("meta"), x.to("meta"))
    assert_close(torch.ones(2, 3), torch.ones(3, 2).t())


def test_own_message():
    assert message_of(1.0, 2.0, msg="mine") == "mine"
    assert message_of(1.0, 2.0, msg=lambda text: "mine: " + text).startswith("mine: Scalars are not close!")


def test_types_that_cannot_be_compared():
    pattern = "No comparison pair was able to handle inputs of type <class '{}'> and <class '{}'>."
    assert message_of("a", "a", kind=TypeError) == pattern.format("str", "str")
    assert message_of(torch.tensor(1.0), 1.0, kind=TypeError) == pattern.format("rushlight.Tensor", "float")
    assert message_of(np.ones(1), torch.ones(1), kind=TypeError) == pattern.format("numpy.ndarray", "rushlight.Tensor")
    assert message_of(1, True, kind=TypeError) == pattern.format("int", "bool")


def test_tolerances():
    assert_close(torch.tensor(0.0), torch.tensor(1e-7))
    assert_close(float("inf"), float("inf"))
    assert_close(torch.tensor(float("nan")), torch.tensor(float("nan")), equal_nan=True)
    assert_close(torch.tensor([1, 2, 3]), torch.tensor([1, 2, 4]), rtol=0, atol=2)
    assert "got no atol" in message_of(1.0, 2.0, rtol=1e-3, kind=ValueError)
    assert "must not be negative" in message_of(1.0, 2.0, rtol=-1, atol=0, kind=ValueError)
    message_of(float("inf"), 1.0)
    message_of(1.0, float("inf"))


def test_numpy_arrays_and_empty_tensors():
    assert_close(np.ones(2), np.ones(2))
    message_of(np.ones(2), np.zeros(2))
    assert_close(torch.empty(0), torch.empty(0))


def test_assert_allclose_ignores_dtype():
    assert_allclose(torch.tensor([1.0, float("nan")]), [1.0, float("nan")])
    with pytest.raises(AssertionError, match="not close"):
        assert_allclose(torch.tensor([1.0]), torch.tensor([2.0], dtype=torch.float64))


@pytest.mark.parametrize("dtype", torch.testing.get_all_dtypes(), ids=str)
def test_make_tensor(dtype):
    x = make_tensor(3, 400, dtype=dtype, low=-5 if dtype.is_signed else 0, high=5)
    assert (tuple(x.shape), x.dtype) == ((3, 400), dtype)
    values = x.to(torch.complex128).numpy()
    assert abs(values.real).max() <= 5
    assert len(np.unique(values)) > 1


def test_make_tensor_options():
    assert (make_tensor((2, 50), dtype=torch.int64, exclude_zero=True).numpy() != 0).all()
    assert not make_tensor(2, 3, dtype=torch.float32, noncontiguous=True).is_contiguous()
    assert make_tensor(dtype=torch.float32).shape == ()
    with pytest.raises(ValueError, match=re.escape("make_tensor: low must be below high, got low=2, high=1.")):
        make_tensor(2, dtype=torch.float32, low=2, high=1)


def test_maker_repeats_itself():
    first, second = (Maker(torch.float32, seed=5) for _ in range(2))
    assert_close([first(2, 3), first(4, low=0, high=1)], [second(2, 3), second(4, low=0, high=1)], rtol=0, atol=0)


def test_make_non_contiguous_keeps_values():
    x = torch.arange(6).reshape(2, 3)
    y = make_non_contiguous(x)
    assert_close(x, y)
    assert not y.is_contiguous()
