"""Calls: parsing by schema, out=, in-place, version counters, refused writes, overrides and modes."""

import contextlib
import gc
import sys
import types
import weakref

import numpy as np
import pytest

import rushlight as torch
from rushlight import _C
from rushlight._op import Op, pointwise
from rushlight.overrides import TorchFunctionMode


def ones(*shape, dtype=torch.float32):
    return torch.ones(*shape, dtype=dtype)


# -- arguments


def test_wrong_type_names_argument_position_and_types():
    with pytest.raises(TypeError, match=r"add\(\): argument 'other' \(position 2\) must be Tensor, not str"):
        torch.add(ones(2), "x")


def test_missing_argument_is_named():
    with pytest.raises(TypeError, match='missing 1 required positional arguments: "other"'):
        torch.add(ones(2))


def test_unknown_keyword_is_named():
    with pytest.raises(TypeError, match="unexpected keyword argument 'beta'"):
        torch.mul(ones(2), ones(2), beta=1)


def test_an_argument_given_twice_is_refused():
    with pytest.raises(TypeError, match="multiple values for argument 'other'"):
        torch.add(ones(2), ones(2), other=ones(2))


def test_overloads_are_all_listed():
    with pytest.raises(TypeError, match=r"pow\(\) received an invalid combination of arguments - got \(Tensor, str\)"):
        torch.pow(ones(2), "x")


def test_numpy_spellings():
    assert torch.sum(input=ones(2, 3), axis=0, keepdims=True).shape == (1, 3)


def test_loose_sizes():
    assert torch.zeros(2, 3).shape == torch.zeros((2, 3)).shape == torch.zeros([2, 3]).shape == (2, 3)


def test_an_int_beyond_64_bits():
    with pytest.raises(OverflowError, match="without overflow"):
        ones(2) + 2**70
    with pytest.raises(RuntimeError, match="without overflow"):
        ones(2) + 2**63
    with pytest.raises(ValueError, match="Overflow when unpacking"):
        ones(2).sum(2**70)


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.ones(True),
        lambda: torch.ones((True,)),
        lambda: torch.ones(2, 2).flip((True,)),
        lambda: ~torch.ones(2),
        lambda: format(torch.ones(2), ".2f"),
        lambda: torch.is_complex(3),
    ],
)
def test_arguments_of_a_wrong_type(call):
    with pytest.raises(TypeError):
        call()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda i: torch.add(i, i, alpha=1.5), "argument alpha must not be a floating point number"),
        (lambda i: torch.sub(i, i, alpha=1.5), "argument alpha must not be a floating point number"),
        (lambda i: torch.rsub(i, i, alpha=1.5), "argument alpha must not be a floating point number"),
        (lambda i: torch.addr(torch.ones(3, 3, dtype=torch.int64), i, i, beta=0.5), "argument beta must not be"),
        (lambda i: torch.add(i, i, alpha=True), "Boolean alpha only"),
        (lambda i: torch.add(i.float(), i.float(), alpha=1j), "argument alpha must not be a complex number"),
        (lambda i: torch.addcdiv(i.float(), i, i), "Integer division"),
        (lambda i: torch.heaviside(i.float(), torch.tensor(1)), "different dtypes"),
        (lambda i: i**-1, "Integers to negative integer powers"),
        (lambda i: torch.full((2,), -1.0, dtype=torch.uint8), "without overflow"),
        (lambda i: torch.full((2,), 255.9, dtype=torch.uint8), "without overflow"),
        (lambda i: torch.tensor([-0.5], dtype=torch.uint8), "without overflow"),
        (lambda i: torch.hann_window(2**62), "."),
    ],
)
def test_values_that_do_not_fit(call, words):
    with pytest.raises(RuntimeError, match=words):
        call(torch.arange(3))


def test_channels_last_tensors_are_joined_in_their_format():
    a = torch.arange(120.0).reshape(2, 3, 4, 5)
    b = a.contiguous(memory_format=torch.channels_last)
    for dim in range(4):
        joined = torch.cat([b, b], dim)
        assert joined.is_contiguous(memory_format=torch.channels_last)
        assert (joined == torch.cat([a, a], dim)).all()
    assert torch.cat([a, b]).is_contiguous()


def test_a_number_is_sought_in_a_dtype_that_holds_it():
    x = torch.zeros(2, dtype=torch.uint8)
    assert not torch.isin(x, 256).any()
    assert torch.isin(x, 0.0).all()


def test_numpy_scalars_are_numbers():
    assert (ones(2) * np.float32(3)).tolist() == [3, 3]
    assert (ones(2, dtype=torch.int64) + np.int32(3)).tolist() == [4, 4]


# -- targets


def test_out_is_written_and_returned():
    out = torch.empty(2)
    assert torch.add(ones(2), 1, out=out) is out
    assert out.tolist() == [2, 2]


def test_out_of_another_dtype_is_converted_within_the_category():
    assert torch.add(ones(2), 1, out=torch.empty(2, dtype=torch.float64)).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        torch.add(ones(2), 1, out=torch.empty(2, dtype=torch.int64))


def test_out_is_resized_with_a_warning_unless_empty():
    assert torch.add(ones(2), 1, out=torch.empty(0)).shape == (2,)
    with pytest.warns(UserWarning, match="was resized"):
        torch.add(ones(2), 1, out=torch.empty(3))


def test_in_place_returns_self_and_bumps_the_version():
    x = ones(2)
    assert x.add_(1) is x
    assert x._version == 1
    x += 1
    assert (x.tolist(), x._version) == ([3, 3], 2)


def test_views_share_the_version_and_data_does_not():
    x = ones(4)
    view = x[1:]
    view.add_(1)
    assert x._version == view._version == 1
    x.data.add_(1)
    assert (x._version, x.tolist()) == (1, [2, 3, 3, 3])


def test_in_place_keeps_the_shape_and_dtype():
    with pytest.raises(RuntimeError, match=r"output with shape \[1\] doesn't match the broadcast shape \[3\]"):
        ones(1).add_(ones(3))
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        ones(2, dtype=torch.int64).add_(1.5)


def test_writes_to_memory_that_elements_share_are_refused():
    expanded = ones(1).expand(3)
    overlapping = torch.as_strided(ones(4), (2, 3), (1, 1))
    for target in (expanded, overlapping):
        for write in (
            lambda t: t.add_(1),
            lambda t: t.fill_(1),
            lambda t: t.copy_(ones(*t.shape)),
            lambda t: torch.exp(ones(*t.shape), out=t),
        ):
            with pytest.raises(
                RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"
            ):
                write(target)


def test_strides_that_interleave_without_meeting_are_fine():
    x = torch.zeros(8)
    torch.as_strided(x, (2, 3), (3, 2)).add_(1)
    assert x.tolist() == [1, 0, 1, 1, 1, 1, 0, 1]


def test_partial_overlap_with_an_input_is_refused():
    x = ones(5)
    with pytest.raises(
        RuntimeError,
        match="some elements of the input tensor and the written-to tensor refer to a single memory location",
    ):
        torch.add(x[:-1], 1, out=x[1:])


def test_interleaved_columns_do_not_overlap():
    x = torch.zeros(3, 2)
    torch.add(x[:, 0], 1, out=x[:, 1])
    assert x.tolist() == [[0, 1], [0, 1], [0, 1]]


def test_copy_between_overlapping_views_is_exact():
    x = torch.arange(6)
    x[1:].copy_(x[:-1])
    assert x.tolist() == [0, 0, 1, 2, 3, 4]


def test_read_only_memory_is_refused():
    array = np.ones(3)
    array.flags.writeable = False
    x = torch.from_numpy(array)
    with pytest.raises(RuntimeError, match="read-only"):
        x.add_(1)


# -- absurd sizes


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(2**62, 8),
        lambda: torch.zeros(2**40, 2**40),
        lambda: torch.ones(-1),
        lambda: torch.empty(2**61),
        lambda: torch.empty_strided((2, 2), (2**62, 1)),
        lambda: torch.arange(0, 1e30),
    ],
)
def test_absurd_sizes_raise(make):
    with pytest.raises(RuntimeError):
        make()


def test_broadcast_mismatch_shows_both_shapes():
    with pytest.raises(
        RuntimeError,
        match=r"The size of tensor a \(3\) must match the size of tensor b \(4\) at non-singleton dimension 1",
    ):
        ones(2, 3) + ones(2, 4)


def test_integer_division_by_zero():
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.arange(3) // torch.zeros(3, dtype=torch.int64)


# -- overrides


class Logged(torch.Tensor):
    calls: list = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs)


def test_subclass_sees_calls_and_results_are_of_it():
    x = ones(2).as_subclass(Logged)
    Logged.calls.clear()
    assert type(x + 1) is type(torch.exp(x)) is Logged
    assert Logged.calls == ["add", "exp"]


def test_an_object_that_is_no_tensor_takes_over():
    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, types

    assert torch.add(Duck(), 1) == ("add", (Duck,))
    assert torch.mul(ones(2), Duck()) == ("mul", (Duck,))


def test_not_implemented_everywhere_is_a_type_error():
    class No:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(
        TypeError, match="no implementation found for 'add.Tensor' on types that implement __torch_function__"
    ):
        torch.add(ones(2), No())


def test_modes_nest_and_see_defaults_left_out():
    seen = []

    class Mode(TorchFunctionMode):
        def __init__(self, name):
            self.name = name

        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append((self.name, func.__name__, len(args), kwargs))
            return func(*args, **(kwargs or {}))

    with Mode("outer"), Mode("inner"):
        torch.add(ones(2), 1)
    assert [entry[:2] for entry in seen] == [("inner", "ones"), ("outer", "ones"), ("inner", "add"), ("outer", "add")]
    assert seen[-1][2:] == (2, {})
    seen.clear()
    torch.add(ones(2), 1)
    assert not seen


# -- lifetime


def test_attributes_weak_references_and_cycles():
    x = ones(2)
    x.note = [x]
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None


def test_an_ndarray_keeps_the_memory_and_shares_it():
    x = ones(3)
    array = x.numpy()
    x.add_(1)
    del x
    assert array.tolist() == [2, 2, 2]


def test_calls_leak_nothing():
    x, y = ones(3, 4), ones(4)
    out = torch.empty(3, 4)

    def work():
        for _ in range(200):
            torch.add(x, y, out=out)
            x * 2 + y
            out.add_(1).clone()
            with contextlib.suppress(TypeError):
                torch.add(x, "y")
            x.numpy()

    work()
    before = sys.getallocatedblocks(), _C.memory_stats()["allocated_bytes"]
    work()
    assert sys.getallocatedblocks() - before[0] < 50
    assert _C.memory_stats()["allocated_bytes"] == before[1]


# -- records


def test_a_malformed_schema_says_where():
    with pytest.raises(ValueError, match="expected a known type at column"):
        Op("broken(Tensr x) -> Tensor").define()


def test_a_name_is_registered_once():
    with pytest.raises(ValueError, match=r"the operator 'add.Tensor' is registered already"):
        Op("add.Tensor(Tensor self, Tensor other) -> Tensor", family=pointwise()).define()


@pytest.mark.parametrize(
    "call",
    [
        lambda x, out: torch.gather(x, 0, torch.tensor([0, 1]), out=out),
        lambda x, out: torch.neg(x, out=out),
        lambda x, out: torch.where(x > 0, x, x, out=out),
        lambda x, out: torch.take(x, torch.tensor([0, 1]), out=out),
        lambda x, out: torch.sort(x, out=(out, torch.empty(2, dtype=torch.int64))),
        lambda x, out: torch.abs(x, out=out),
        lambda x, out: torch.heaviside(x, x, out=out),
        lambda x, out: torch.cross(torch.ones(2, 3), torch.ones(2, 3), out=out),
        lambda x, out: torch.narrow_copy(x, 0, 0, 1, out=out),
        lambda x, out: torch.normal(x, x, out=out),
        lambda x, out: torch.renorm(torch.ones(2, 2), 2, 0, 1, out=out),
    ],
)
def test_out_of_another_dtype_is_refused(call):
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float32, but got float64 instead"):
        call(torch.ones(2), torch.empty(2, dtype=torch.float64))


@pytest.mark.parametrize(
    "call",
    [
        lambda x, out: torch.add(x, x, out=out),
        lambda x, out: torch.cat([x[:1], x[1:]], out=out),
        lambda x, out: torch.stack([x[0], x[1]], out=out),
    ],
)
def test_out_of_another_dtype_is_cast_to(call):
    out = torch.empty(2, dtype=torch.float64)
    assert call(torch.ones(2), out) is out
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        call(torch.ones(2), torch.empty(2, dtype=torch.int64))


def test_out_stands_for_the_dtype_of_cumulative_ops():
    out = torch.empty(3, dtype=torch.int64)
    x = torch.tensor([1.5, 2.5, 3.5])
    assert torch.cumsum(x, 0, out=out) is out
    assert out.tolist() == [1, 3, 6]
    assert torch.cumprod(x, 0, out=out).tolist() == [1, 2, 6]


def test_bernoulli_writes_every_dtype():
    for dtype in (torch.bool, torch.uint8, torch.int64, torch.float64):
        assert torch.bernoulli(torch.tensor([0.0, 1.0]), out=torch.empty(2, dtype=dtype)).tolist() == [0, 1]


def test_a_library_that_answers_by_the_same_call_is_told_so():
    class Endless:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with pytest.raises(TypeError, match="no implementation found for 'add.Tensor' on types that implement"):
        torch.add(torch.ones(2), Endless())
    assert torch.Tensor.__torch_function__(len, (torch.Tensor,), (torch.ones(2),)) is NotImplemented


def test_functions_of_pytorch_run_their_namesakes(monkeypatch):
    def foreign(name):
        def function(*args, **kwargs):  # as PyTorch's do: they ask the types of their arguments
            return torch.Tensor.__torch_function__(function, (torch.Tensor,), args, kwargs)

        function.resolved = name
        return function

    peer = types.SimpleNamespace(resolve_name=lambda function: getattr(function, "resolved", None))
    monkeypatch.setitem(sys.modules, "torch.overrides", peer)
    x = torch.tensor([3.0, 4.0])
    assert foreign("torch.add")(x, x, alpha=2).tolist() == [9.0, 12.0]
    assert foreign("torch.functional.norm")(x).item() == 5.0
    assert foreign("torch.Tensor.neg")(x).tolist() == [-3.0, -4.0]
    assert foreign("torch.quantize_everything")(x) is NotImplemented
    assert foreign(None)(x) is NotImplemented
