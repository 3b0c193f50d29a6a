"""Tensors from Python data, arrays, buffers and DLPack."""

import array
import copy
import pickle
import threading

import numpy as np
import pytest

import rushlight as torch


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (1, torch.int64, ()),
        (1.5, torch.float32, ()),
        (True, torch.bool, ()),
        (1j, torch.complex64, ()),
        ([], torch.float32, (0,)),
        ([[], []], torch.float32, (2, 0)),
        ([1, 2.5], torch.float32, (2,)),
        ([True, 2], torch.int64, (2,)),
        ([1, 2j], torch.complex64, (2,)),
        (range(3), torch.int64, (3,)),
        ((1, (2,))[0:1], torch.int64, (1,)),
        (np.float32(1), torch.float32, ()),
        ([np.float64(1), 2], torch.float64, (2,)),
        ([np.ones(2), np.zeros(2)], torch.float64, (2, 2)),
        (np.ones((2, 2), np.int32), torch.int32, (2, 2)),
        (np.arange(3)[::-1], torch.int64, (3,)),
        (array.array("d", [1.0, 2.0]), torch.float32, (2,)),
    ],
    ids=repr,
)
def test_dtype_and_shape(data, dtype, shape):
    x = torch.tensor(data)
    assert x.dtype is dtype
    assert tuple(x.shape) == shape
    assert x.tolist() == np.asarray(data).tolist()


@pytest.mark.parametrize(
    ("data", "options", "error", "message"),
    [
        ([[1, 2], [3]], {}, ValueError, r"expected sequence of length 2 at dim 1 \(got 1\)"),
        ([[1, 2], [3, 4, 5]], {}, ValueError, r"expected sequence of length 2 at dim 1 \(got 3\)"),
        ([[1, 2], 3], {}, TypeError, "not a sequence"),
        ([1, [2]], {}, TypeError, "'list' object cannot be interpreted as an integer"),
        ("x", {}, TypeError, "invalid data type 'str'"),
        (["x"], {}, ValueError, "too many dimensions 'str'"),
        (None, {}, RuntimeError, "Could not infer dtype of NoneType"),
        ({}, {}, RuntimeError, "Could not infer dtype of dict"),
        ([2**63], {}, ValueError, "Overflow when unpacking long long"),
        ([300], {"dtype": torch.uint8}, RuntimeError, "value cannot be converted to type uint8 without overflow"),
        ([70000], {"dtype": torch.int16}, RuntimeError, "value cannot be converted to type int16 without overflow"),
        ([float("nan")], {"dtype": torch.int64}, RuntimeError, "value cannot be converted to type int64"),
        (1j, {"dtype": torch.float32}, TypeError, "must be real number, not complex"),
        ([1], {"dtype": "float"}, TypeError, "argument 'dtype' must be torch.dtype"),
        ([1], {"foo": 1}, TypeError, "unexpected keyword argument 'foo'"),
        ([1], {"device": "nowhere"}, RuntimeError, "nowhere"),
        (np.array(["a"]), {}, TypeError, "can't convert np.ndarray of type"),
    ],
    ids=repr,
)
def test_errors(data, options, error, message):
    with pytest.raises(error, match=message):
        torch.tensor(data, **options)


def test_bottomless_data():
    data = []
    data.append(data)
    with pytest.raises(ValueError, match="too many dimensions 'list'"):
        torch.tensor(data)


def test_data_that_change_while_they_are_read():
    class Shrinking(list):
        pass

    data = Shrinking([1.0, 2.0])

    class Evil:
        def __index__(self):
            data.clear()
            return 1

    data.append(Evil())
    with pytest.raises((ValueError, RuntimeError)):
        torch.tensor(data, dtype=torch.int64)


def test_numbers_that_wrap_or_round():
    assert torch.tensor([-1], dtype=torch.uint8).tolist() == [255]
    assert torch.tensor([2.9, -2.9], dtype=torch.int64).tolist() == [2, -2]
    assert torch.tensor([1e39], dtype=torch.float32).tolist() == [float("inf")]
    assert torch.tensor([0.5, float("nan"), 0.0], dtype=torch.bool).tolist() == [True, True, False]


def test_tensor_copies_and_as_tensor_shares():
    source = np.zeros(3, np.float32)
    copied, shared = torch.tensor(source), torch.as_tensor(source)
    source[0] = 1
    assert copied.tolist() == [0, 0, 0]
    assert shared.tolist() == [1, 0, 0]
    assert torch.as_tensor(shared) is shared
    assert torch.as_tensor(shared, dtype=torch.float64).dtype is torch.float64
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        assert torch.tensor(shared) is not shared


def test_asarray_copies_as_asked():
    source = np.zeros(3)
    assert torch.asarray(source).data_ptr() == source.ctypes.data
    assert torch.asarray(source, copy=True).data_ptr() != source.ctypes.data
    with pytest.raises(ValueError, match="copy=False"):
        torch.asarray([1, 2], copy=False)


def test_read_only_arrays_are_protected():
    source = np.zeros(3)
    source.flags.writeable = False
    x = torch.from_numpy(source)
    with pytest.raises(RuntimeError, match="read-only"):
        x[0] = 1
    with pytest.raises(RuntimeError, match="read-only"):
        x += 1


def test_frombuffer():
    memory = bytearray(b"abcdefgh")
    x = torch.frombuffer(memory, dtype=torch.uint8, offset=1, count=2)
    assert x.tolist() == [98, 99]
    x[0] = 65
    assert memory[1] == 65
    for arguments, message in (
        ({"dtype": torch.int64, "offset": 1}, "must be a multiple of element size"),
        ({"dtype": torch.uint8, "count": 9}, "must not be greater than actual buffer length"),
        ({"dtype": torch.uint8, "offset": 8}, "must be non-negative and no greater than buffer length"),
        ({"dtype": torch.uint8, "count": 0}, "must not be 0"),
    ):
        with pytest.raises(ValueError, match=message):
            torch.frombuffer(memory, **arguments)
    with pytest.raises(ValueError, match="does not implement Python buffer protocol"):
        torch.frombuffer(3, dtype=torch.uint8)


def test_dlpack_shares_memory_both_ways():
    x = torch.arange(6).view(2, 3)
    there = np.from_dlpack(x.t())
    back = torch.from_dlpack(there)
    back[0, 1] = 9
    assert x[1, 0].item() == 9
    assert there[0, 1] == 9


def test_dlpack_edges():
    reverse = torch.from_dlpack(np.arange(3)[::-1])
    assert reverse.tolist() == [2, 1, 0]
    assert reverse.stride() == (-1,)
    capsule = torch.zeros(2).__dlpack__()
    torch.from_dlpack(capsule)
    with pytest.raises(RuntimeError, match="consumed only once"):
        torch.from_dlpack(capsule)
    with pytest.raises(AttributeError, match="__dlpack__"):
        torch.from_dlpack([1])
    with pytest.raises(BufferError, match="no memory"):
        torch.zeros(2, device="meta").__dlpack__()
    assert torch.zeros(2).__dlpack_device__() == (1, 0)
    backwards = torch.arange(3)[::-1]
    assert np.from_dlpack(backwards).tolist() == [2, 1, 0]
    assert np.from_dlpack(backwards).strides == (8,)  # a copy: not every consumer knows negative strides
    with pytest.raises(BufferError, match="negative strides"):
        backwards.__dlpack__(copy=False)


def test_legacy_constructors():
    assert torch.Tensor(2, 3).shape == (2, 3)
    assert torch.Tensor([1, 2]).tolist() == [1.0, 2.0]
    assert torch.LongTensor([1.5]).tolist() == [1]
    assert isinstance(torch.zeros(1, dtype=torch.int64), torch.LongTensor)
    assert torch.zeros(1).type() == "torch.FloatTensor"
    assert torch.zeros(1).type("torch.DoubleTensor").dtype is torch.float64
    with pytest.raises(TypeError, match="data must be a sequence"):
        torch.Tensor(2.5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64, torch.bool])
def test_copies_and_pickles(dtype):
    x = torch.tensor([[0, 1], [1, 0]]).to(dtype).t()
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y.dtype is dtype and y.float().tolist() == x.float().tolist() if dtype is not torch.complex64 else True
        assert y.data_ptr() != x.data_ptr()
    assert copy.copy(x).data_ptr() == x.data_ptr()
    same = copy.deepcopy([x, x])
    assert same[0] is same[1]


def test_a_device_as_a_context_is_the_default():
    meta, elsewhere = torch.device("meta"), []
    with meta as device:
        assert device is meta
        made = (torch.ones(2), torch.tensor([1.0]), torch.arange(3), torch.randn(2), torch.empty(1))
        assert {x.device.type for x in made} == {"meta"}
        assert torch.ones(2, device="cpu").device.type == "cpu"
        with torch.device("cpu"):
            assert torch.ones(2).device.type == "cpu"
        thread = threading.Thread(target=lambda: elsewhere.append(torch.ones(2).device.type))
        thread.start()
        thread.join()
        assert torch.ones(2).device.type == "meta"
    assert torch.ones(2).device.type == "cpu"
    assert elsewhere == ["cpu"]
    with pytest.raises(KeyError), meta:
        raise KeyError
    assert torch.ones(2).device.type == "cpu"
    with pytest.raises(RuntimeError, match="no context of a device is open"):
        meta.__exit__(None, None, None)
