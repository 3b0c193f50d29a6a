"""Storages: what tensors share, and who else can."""

import copy
import errno
import multiprocessing
import os
import weakref

import numpy as np
import pytest

import rushlight as torch

DTYPES = [
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
    torch.float64, torch.complex64, torch.complex128, torch.bool,
]  # fmt: skip


def test_untyped_storage_is_one_object_per_memory():
    a = torch.arange(6.0)
    storage = a.untyped_storage()
    assert storage is a[2:].untyped_storage() is a.view(torch.int32).untyped_storage() is a.data.untyped_storage()
    assert (len(storage), storage.nbytes(), storage.size(), storage.device) == (24, 24, 24, torch.device("cpu"))
    assert storage.data_ptr() == a.data_ptr()
    assert storage != a.clone().untyped_storage()
    assert weakref.ref(storage)() is storage
    del a
    assert storage.tolist() == list(np.arange(6, dtype="f4").tobytes())


def test_bytes_are_read_and_written():
    a = torch.zeros(2, dtype=torch.int16)
    storage = a.untyped_storage()
    storage[0], storage[-1] = 1, 2
    assert a.tolist() == [1, 512]
    part = storage[2:4]
    part[0] = 3
    assert a[1].item() == 515  # a slice shares
    assert storage.fill_(255) is storage
    assert a.tolist() == [-1, -1]
    storage.copy_(torch.UntypedStorage([1, 0, 2, 0]))
    assert a.tolist() == [1, 2]
    assert bytes(storage) == b"\1\0\2\0" == memoryview(storage).tobytes()
    with pytest.raises(IndexError, match="index 4 out of range for storage of size 4"):
        storage[4]
    with pytest.raises(TypeError, match="can't index"):
        storage["0"]
    with pytest.raises(RuntimeError, match="only a step of 1"):
        storage[::2]
    with pytest.raises(RuntimeError, match="size does not match, self was 4 bytes but src was 5 bytes"):
        storage.copy_(torch.UntypedStorage(5))


def test_making_storages():
    assert torch.UntypedStorage([1, 2]).tolist() == [1, 2]
    assert len(torch.UntypedStorage()) == 0
    assert torch.UntypedStorage(4, device="meta").device.type == "meta"
    for size in (-1, 2**63 - 1):
        with pytest.raises((RuntimeError, MemoryError)):
            torch.UntypedStorage(size)
    with pytest.raises(RuntimeError, match="one of the items was of type str instead of int"):
        torch.UntypedStorage("ab")


def test_from_buffer():
    data = np.arange(4, dtype=">f4").tobytes()
    assert torch.FloatStorage.from_buffer(data, "big").tolist() == [0, 1, 2, 3]
    assert torch.FloatStorage.from_buffer(data, "big", 2, 4).tolist() == [1, 2]
    assert torch.UntypedStorage.from_buffer(data, dtype=torch.uint8).tolist() == list(data)
    with pytest.raises(RuntimeError, match="byte_order"):
        torch.FloatStorage.from_buffer(data)
    with pytest.raises(ValueError, match="must be a multiple of element size"):
        torch.FloatStorage.from_buffer(data[:-1], "big")
    with pytest.raises(ValueError, match="buffer has only 3 elements after offset 4, but specified a size of 9"):
        torch.FloatStorage.from_buffer(data, "big", 9, 4)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_typed_storage(dtype):
    a = torch.tensor([0, 1, 1]).to(dtype)
    storage = a.storage()
    assert storage.dtype is dtype
    assert storage.tolist() == a.tolist() == list(storage)
    assert (len(storage), storage.nbytes(), storage.element_size()) == (3, a.nbytes, a.itemsize)
    assert storage[1] == a[1].item()
    storage[0] = 1
    assert bool(a[0] == 1)
    assert type(storage).__name__ == "TypedStorage"
    legacy = getattr(torch, storage.pickle_storage_type())
    assert a.storage_type() is legacy
    assert isinstance(storage, legacy)
    assert storage.type() == f"torch.{storage.pickle_storage_type()}"
    assert legacy(3).dtype is dtype
    assert legacy([1, 0]).tolist() == torch.tensor([1, 0]).to(dtype).tolist()
    assert storage.float().tolist() == a.to(torch.float32).real.tolist()
    with pytest.raises(RuntimeError, match="slices are only supported"):
        storage[1:]


def test_tensors_follow_a_resized_storage():
    a = torch.arange(4.0)
    part, data, array = a[1:3], a.data, a.numpy()
    storage = a.untyped_storage().resize_(4000)
    assert storage.nbytes() == 4000
    a[1] = 7
    assert part[0] == data[1] == 7
    assert a.tolist() == [0, 7, 2, 3]
    assert array.tolist() == [0, 1, 2, 3]  # NumPy keeps what it saw
    storage.resize_(0)
    assert storage.nbytes() == 0
    assert a.tolist() == [0, 7, 2, 3]
    with pytest.raises(RuntimeError, match="not resizable"):
        torch.from_numpy(np.zeros(2)).untyped_storage().resize_(100)


def test_resize_reaches_views():
    a = torch.ones(2)
    view = a[:1]
    a.resize_(100)
    a[0] = 9
    assert view.item() == 9
    assert torch.empty(2, device="meta").resize_(10**6).untyped_storage().nbytes() == 4 * 10**6


def test_tensors_with_gradients_keep_their_memory():
    pytest.importorskip("rushlight.autograd", exc_type=ImportError)
    b = torch.ones(3, requires_grad=True)
    for tensor in (b, b * 2):
        with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
            tensor.resize_(4)
    assert b.detach().resize_(2).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        b.set_(torch.ones(2))
    with torch.no_grad():
        assert b.set_(torch.zeros(2)).tolist() == [0, 0]


def test_set_makes_a_tensor_another_name():
    a = torch.arange(6.0)
    b = torch.empty(0)
    assert b.set_(a).is_set_to(a)
    assert b.set_(a.untyped_storage()).tolist() == b.set_(a.storage()).tolist() == a.tolist()
    assert b.set_(a.untyped_storage(), 1, (2, 2)).tolist() == [[1, 2], [3, 4]]
    assert b.set_(a, 1, (2, 2), (2, 1)).tolist() == [[1, 2], [3, 4]]
    assert not b.is_set_to(a)
    b[0, 0] = 9
    assert a[1] == 9
    assert b.set_().shape == (0,)
    assert a.tolist() == [0, 9, 2, 3, 4, 5]
    assert b.set_(a.untyped_storage(), 4, (4,)).shape == (4,)  # grows it
    assert a.untyped_storage().nbytes() == 32
    for source, error in [(torch.ones(2, dtype=torch.int32), RuntimeError), (1, TypeError), (None, TypeError)]:
        with pytest.raises(error):
            b.set_(source)
    with pytest.raises(RuntimeError, match="invalid storage offset -1"):
        b.set_(a.untyped_storage(), -1, (1,), (1,))
    with pytest.raises(RuntimeError, match="unequal size length"):
        b.set_(a.untyped_storage(), 0, (1, 1), (1,))
    with pytest.raises(RuntimeError, match="overflow"):
        b.set_(a.untyped_storage(), 0, (2**40, 2**40))
    assert b.shape == (4,)


def test_is_storage():
    a = torch.ones(1)
    assert torch.is_storage(a.storage())
    assert torch.is_storage(a.untyped_storage())
    assert not torch.is_storage(a)


def test_copies_of_storages():
    a = torch.arange(3)
    for clone in (copy.copy(a.storage()), copy.deepcopy(a.storage()), a.storage().clone()):
        assert clone.tolist() == [0, 1, 2]
        assert clone.data_ptr() != a.data_ptr()


def test_from_file(tmp_path):
    path = str(tmp_path / "numbers")
    shared = torch.from_file(path, shared=True, size=3, dtype=torch.int32)
    shared.copy_(torch.tensor([1, 2, 3]))
    assert np.fromfile(path, "i4").tolist() == [1, 2, 3]
    assert shared.is_shared()
    assert shared.untyped_storage().filename == path
    private = torch.from_file(path, size=3, dtype=torch.int32)
    private.zero_()
    assert not private.is_shared()
    assert np.fromfile(path, "i4").tolist() == [1, 2, 3]
    assert torch.IntStorage.from_file(path, False, 2).tolist() == [1, 2]
    assert torch.from_file(path).shape == (0,)
    with pytest.raises(RuntimeError, match="smaller than the required mapping size"):
        torch.from_file(path, size=100)
    with pytest.raises(RuntimeError, match="unable to open file"):
        torch.from_file(str(tmp_path / "absent"), size=1)
    with pytest.raises(RuntimeError):
        torch.from_file(path, size=-1)


def test_pinned_memory_needs_a_gpu():
    assert not torch.ones(1).is_pinned()
    with pytest.raises(RuntimeError, match="accelerator"):
        torch.ones(1).pin_memory()


# -- several processes


def test_shared_memory_moves_all_tensors():
    a = torch.arange(4.0)
    view = a[1:]
    assert not a.is_shared()
    assert a.share_memory_() is a
    assert a.is_shared()
    assert view.is_shared()
    a[1] = 8
    assert view.tolist() == [8, 2, 3]
    assert torch.empty(0).share_memory_().is_shared()
    meta = torch.empty(2, device="meta")
    assert meta.share_memory_() is meta


def test_without_room_nothing_moves(monkeypatch):
    def full(fd, offset, length):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    a = torch.arange(4.0)
    with pytest.raises(RuntimeError, match="no room for 16 bytes of shared memory"):
        a.share_memory_()
    assert a.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_process_writes_to_shared_memory(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"the system cannot {method}")
    context = multiprocessing.get_context(method)
    a = torch.arange(4.0).share_memory_()
    # An operator, since a child that is spawned cannot import the module of a test.
    process = context.Process(target=torch.mul, args=(a[1:], 2), kwargs={"out": a[1:]})
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert a.tolist() == [0, 2, 4, 6]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="descriptors are sent by sockets of the system")
def test_a_queue_carries_memory_not_bytes():
    queue = multiprocessing.get_context("fork").SimpleQueue()
    a = torch.zeros(3)
    queue.put((a, a[1:]))
    whole, part = queue.get()
    part[0] = 5
    assert whole.tolist() == a.tolist() == [0, 5, 0]
