"""Storages: the memory that tensors share, as bytes (`UntypedStorage`) or as elements of one dtype (`TypedStorage`)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pickle import PickleBuffer
from typing import Any

from . import _C
from ._shared_memory import MappedFile
from ._tensor import named_type

__all__ = ["TypedStorage", "UntypedStorage"]

_NAMES = {
    "byte": _C.uint8,
    "char": _C.int8,
    "short": _C.int16,
    "int": _C.int32,
    "long": _C.int64,
    "half": _C.float16,
    "bfloat16": _C.bfloat16,
    "float": _C.float32,
    "double": _C.float64,
    "complex_float": _C.complex64,
    "complex_double": _C.complex128,
    "bool": _C.bool,
}


class _Common:
    """What both kinds of storage do alike."""

    __slots__ = ()
    device: Any
    nbytes: Callable[[], int]
    element_size: Callable[[], int]

    def _all(self) -> Any:
        """A tensor over all elements."""
        raise NotImplementedError

    def tolist(self) -> list[Any]:
        """The elements as Python numbers."""
        return self._all().tolist()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __repr__(self) -> str:
        rows = "".join(f" {element}\n" for element in self.tolist()) if str(self.device) != "meta" else "...\n"
        return rows + self._title()

    def _title(self) -> str:
        return f"[torch.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is on a CUDA device."""
        return self.device.type == "cuda"

    def get_device(self) -> int | None:
        """The index of the device, None on the CPU."""
        index: int | None = self.device.index
        return index

    is_sparse = is_sparse_csr = False


class UntypedStorage(_Common, _C.StorageBase):
    """Memory that tensors share, as bytes.

    `Tensor.untyped_storage()` is how one usually comes by it. A storage is alive as long as a tensor or another object
    uses it; the storages of two tensors are the same object when the tensors share memory.

    Args:
        data: Size in bytes, or the bytes themselves as a sequence of integers. New memory of a given size is arbitrary.
        device: Where the memory is; the CPU by default.

    Raises:
        RuntimeError: The size is negative or beyond all memory.

    Example:
        >>> storage = rushlight.arange(3, dtype=rushlight.uint8).untyped_storage()
        >>> len(storage), storage[1], storage.tolist()
        (3, 1, [0, 1, 2])
    """

    def __new__(cls, data: int | Sequence[int] = 0, *, device: Any = None) -> UntypedStorage:
        if isinstance(data, int) and not isinstance(data, bool):
            return super().__new__(cls, data, device)
        if isinstance(data, bool) or not hasattr(data, "__iter__"):
            raise RuntimeError(f"torch.UntypedStorage(): Expected a sequence type, but got {type(data).__name__}")
        elements = list(data)
        for element in elements:
            if not isinstance(element, int):
                raise RuntimeError(
                    f"torch.UntypedStorage(): tried to construct a storage from a sequence ({type(data).__name__}), "
                    f"but one of the items was of type {type(element).__name__} instead of int"
                )
        self = super().__new__(cls, len(elements), device)
        self._all().copy_(_C.tensor(elements, dtype=_C.int64))
        return self

    @classmethod
    def from_buffer(
        cls, buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0, *, dtype: Any
    ) -> UntypedStorage:
        """A storage with a copy of the elements in an object with the buffer protocol.

        Args:
            buffer: Bytes, an array, a memory map.
            byte_order: "little", "big" or "native": how elements of more than one byte are stored in the buffer.
            count: How many elements; all by default.
            offset: Bytes of the buffer before the first element.
            dtype: The dtype of the elements.

        Raises:
            ValueError: The buffer does not hold that many whole elements.
        """
        size = dtype.itemsize
        if byte_order is None and size > 1:
            raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
        if byte_order not in (None, "native", "little", "big"):
            raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
        memory = memoryview(buffer).cast("B")
        if not 0 <= offset <= len(memory):
            raise ValueError(
                f"offset must be non-negative and no greater than buffer length ({len(memory)}) , but got {offset}"
            )
        have = len(memory) - offset
        if count < 0:
            if have % size:
                raise ValueError(f"buffer size ({have}) must be a multiple of element size ({size})")
            count = have // size
        if count * size > have:
            raise ValueError(
                f"buffer has only {have // size} elements after offset {offset}, but specified a size of {count}"
            )
        self = cls(count * size)
        memoryview(self)[:] = memory[offset : offset + count * size]
        if byte_order not in (None, "native", sys.byteorder):
            self.byteswap(dtype)
        return self

    @classmethod
    def from_file(cls, filename: str, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The bytes of a file, mapped into memory.

        Args:
            filename: Path of the file.
            shared: Whether writing to the storage writes to the file, which is made or made longer as needed. Otherwise
                changes stay in memory.
            nbytes: Size of the storage.

        Raises:
            RuntimeError: The file cannot be opened, or is shorter than `nbytes` and not shared.
        """
        if nbytes <= 0:
            return cls(nbytes)
        return cls._from_buffer(MappedFile.open(filename, shared, nbytes))

    def _all(self) -> Any:
        return self._tensor(_C.uint8)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is supported")
            if self.device.type != "cpu":
                return self._all()[start:stop].clone().untyped_storage()
            return type(self)._from_buffer(memoryview(self)[start : max(start, stop)])
        return self._all()[self._checked(index)].item()

    def __setitem__(self, index: int | slice, value: int) -> None:
        if isinstance(index, slice):
            self[index].fill_(value)
        else:
            self._all()[self._checked(index)] = value & 255

    def _checked(self, index: Any) -> int:
        if not hasattr(index, "__index__"):
            raise TypeError(f"can't index a torch.UntypedStorage with {type(index).__name__}")
        index = index.__index__()
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} out of range for storage of size {len(self)}")
        return index

    def __bytes__(self) -> bytes:
        return self.cpu()._all().numpy().tobytes()

    def __sizeof__(self) -> int:
        return super().__sizeof__() + len(self)

    def element_size(self) -> int:
        """1: the elements are bytes."""
        return 1

    def fill_(self, value: int) -> UntypedStorage:
        """Sets every byte."""
        self._all().fill_(value & 255)
        return self

    def copy_(self, source: UntypedStorage, non_blocking: bool = False) -> UntypedStorage:
        """Copies all bytes of a storage of the same size.

        Raises:
            RuntimeError: The sizes differ.
        """
        if len(self) != len(source):
            raise RuntimeError(f"size does not match, self was {len(self)} bytes but src was {len(source)} bytes")
        self._all().copy_(source._all())
        return self

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        return self.clone()  # deepcopy() itself remembers it, so that tensors that share it still do

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        host = self.cpu()
        return restore, (PickleBuffer(host) if protocol >= 5 else bytes(host), str(self.device))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and self._cdata == other._cdata

    def __hash__(self) -> int:
        return hash(self._cdata)

    def new(self) -> UntypedStorage:
        """An empty storage on the same device."""
        return type(self)(device=self.device)

    def untyped(self) -> UntypedStorage:
        """The storage itself."""
        return self

    def byteswap(self, dtype: Any) -> None:
        """Turns around the bytes of every element of `dtype`, or of both halves of a complex one."""
        size = dtype.to_real().itemsize if dtype.is_complex else dtype.itemsize
        if size > 1:
            rows = self._all().numpy()[: len(self) // size * size].view(f"u{size}")
            rows.byteswap(inplace=True)

    # -- other places

    def to(self, *, device: Any, non_blocking: bool = False) -> UntypedStorage:
        """The storage on another device: itself where it is there already, else a copy."""
        device = _C.device(device)
        if device.type == self.device.type and device.index in (None, self.device.index):
            return self
        return type(self)(len(self), device=device).copy_(self)

    def cpu(self) -> UntypedStorage:
        """The storage in host memory."""
        return self.to(device="cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """The storage on a CUDA device, by default the current one."""
        return self.to(
            device="cuda" if device is None else _C.device("cuda", device) if isinstance(device, int) else device
        )

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the storage's type, or the storage converted to another type of storage."""
        if dtype is None:
            return f"torch.storage.{type(self).__name__}"
        return TypedStorage(wrap_storage=self, dtype=_C.uint8)._as(_C.uint8).type(dtype)

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the memory is page-locked for a CUDA device."""
        return self._all().is_pinned()

    def pin_memory(self, device: Any = None) -> UntypedStorage:
        """A copy in page-locked memory, from which copies to a CUDA device are fast."""
        return self._all().pin_memory().untyped_storage()

    # -- memory of several processes

    def is_shared(self) -> bool:
        """Whether other processes can share the memory."""
        return self.is_cuda or isinstance(self._mapped(), MappedFile)

    def _mapped(self) -> Any:
        return getattr(self._owner, "obj", None)

    @property
    def filename(self) -> str | None:
        """The file whose memory this is, when it was mapped with `shared=True`."""
        mapped = self._mapped()
        return mapped.filename if isinstance(mapped, MappedFile) else None

    def share_memory_(self) -> UntypedStorage:
        """Moves the memory to where other processes can share it, for this storage and all tensors over it.

        A tensor whose memory is shared goes through a `multiprocessing` queue or pipe without a copy.

        Raises:
            RuntimeError: There is not enough shared memory.
        """
        if self.device.type == "cpu" and not self.is_shared():
            shared = type(self)._from_buffer(memoryview(MappedFile.anonymous(len(self)))[: len(self)])
            self._move(shared.copy_(self))
        return self


def _conversion(name: str, dtype: Any) -> Any:
    def convert(self: Any) -> TypedStorage:
        return TypedStorage(wrap_storage=self.untyped(), dtype=getattr(self, "dtype", _C.uint8))._as(dtype)

    convert.__name__ = name
    convert.__doc__ = f"A storage of {dtype} with the elements converted."
    return convert


for _name, _dtype in _NAMES.items():
    setattr(UntypedStorage, _name, _conversion(_name, _dtype))


def restore(data: Any, device: str) -> UntypedStorage:
    """A storage of the bytes that `UntypedStorage.__reduce_ex__` kept; writable memory is taken over."""
    memory = memoryview(data)
    if memory.readonly:
        storage = UntypedStorage(memory.nbytes)
        memoryview(storage)[:] = memory
    else:
        storage = UntypedStorage._from_buffer(memory)
    return storage.to(device=device)


class TypedStorage(_Common):
    """Memory that tensors share, as elements of one dtype: `UntypedStorage` with a dtype.

    Args:
        *args: A size in elements, or a sequence of numbers.
        wrap_storage: The storage to look at, instead of new memory.
        dtype: The dtype of the elements; the default dtype where there is no `wrap_storage`.
        device: Where new memory is; the CPU by default.

    Example:
        >>> rushlight.tensor([1.5, 2.5]).storage().tolist()
        [1.5, 2.5]
    """

    __slots__ = ("__weakref__", "_untyped_storage", "dtype")

    def __init__(
        self, *args: Any, wrap_storage: UntypedStorage | None = None, dtype: Any = None, device: Any = None
    ) -> None:
        if len(args) > 1:
            raise TypeError(f"TypedStorage: takes a size or a sequence, got {len(args)} arguments.")
        if wrap_storage is not None:
            if args or device is not None or dtype is None or not isinstance(wrap_storage, UntypedStorage):
                raise RuntimeError(
                    "TypedStorage: with wrap_storage=UntypedStorage give dtype and nothing else, "
                    f"got wrap_storage={type(wrap_storage).__name__}, dtype={dtype}, device={device}."
                )
            self.dtype, self._untyped_storage = dtype, wrap_storage
            return
        self.dtype = dtype or _C.get_default_dtype()
        if args and (isinstance(args[0], _C.Tensor) or is_storage(args[0])):
            raise TypeError(
                f"TypedStorage: takes a size or a sequence of numbers, got {type(args[0]).__name__}. "
                "Pass wrap_storage=, or use tensor.storage()."
            )
        if not args or isinstance(args[0], int):
            self._untyped_storage = UntypedStorage((args or (0,))[0] * self.dtype.itemsize, device=device)
        else:
            self._untyped_storage = _C.tensor(args[0], dtype=self.dtype, device=device).untyped_storage()

    @classmethod
    def from_buffer(cls, buffer: Any, *args: Any, dtype: Any = None, **kwargs: Any) -> TypedStorage:
        """See `UntypedStorage.from_buffer`."""
        dtype = dtype or cls._dtype()
        return cls._over(UntypedStorage.from_buffer(buffer, *args, dtype=dtype, **kwargs), dtype)

    @classmethod
    def from_file(cls, filename: str, shared: bool = False, size: int = 0) -> TypedStorage:
        """See `UntypedStorage.from_file`; `size` counts elements."""
        dtype = cls._dtype()
        return cls._over(UntypedStorage.from_file(filename, shared, size * dtype.itemsize), dtype)

    @classmethod
    def _dtype(cls) -> Any:
        return _C.get_default_dtype()

    @classmethod
    def _over(cls, untyped: UntypedStorage, dtype: Any) -> TypedStorage:
        return typed(untyped, dtype)

    def _all(self) -> Any:
        return self._untyped_storage._tensor(self.dtype)

    def _as(self, dtype: Any) -> TypedStorage:
        return self if dtype is self.dtype else self._over(self._all().to(dtype).untyped_storage(), dtype)

    def _with(self, untyped: UntypedStorage) -> TypedStorage:
        return self if untyped is self._untyped_storage else self._over(untyped, self.dtype)

    def __len__(self) -> int:
        return self.size()

    def __getitem__(self, index: int) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._all()[self._checked(index)].item()

    def __setitem__(self, index: int | slice, value: Any) -> None:
        self._all()[index if isinstance(index, slice) else self._checked(index)] = value

    def _checked(self, index: Any) -> int:
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a <class 'torch.storage.TypedStorage'> with {type(index)}")
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} out of range for storage of size {len(self)}")
        return index

    def _title(self) -> str:
        return f"[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}]"

    @property
    def device(self) -> Any:
        """Where the memory is."""
        return self._untyped_storage.device

    @property
    def filename(self) -> str | None:
        """See `UntypedStorage.filename`."""
        return self._untyped_storage.filename

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return self._untyped_storage

    def element_size(self) -> int:
        """Bytes per element."""
        return self.dtype.itemsize

    def size(self) -> int:
        """The number of elements."""
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    def nbytes(self) -> int:
        """The size in bytes."""
        return self._untyped_storage.nbytes()

    def data_ptr(self) -> int:
        """The address of the memory."""
        return self._untyped_storage.data_ptr()

    def resizable(self) -> bool:
        """See `UntypedStorage.resizable`."""
        return self._untyped_storage.resizable()

    def resize_(self, size: int) -> TypedStorage:
        """Changes the number of elements; tensors over the storage follow, new elements are arbitrary."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)
        return self

    def fill_(self, value: Any) -> TypedStorage:
        """Sets every element."""
        self._all().fill_(value)
        return self

    def copy_(self, source: TypedStorage, non_blocking: bool = False) -> TypedStorage:
        """Copies, and converts, all elements of a storage of as many elements."""
        if len(self) != len(source):
            raise RuntimeError(f"size does not match, self has {len(self)} elements but src has {len(source)}")
        self._all().copy_(source._all())
        return self

    def clone(self) -> TypedStorage:
        """A storage with a copy of the elements."""
        return self._over(self._untyped_storage.clone(), self.dtype)

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        from copy import deepcopy

        return self._over(deepcopy(self._untyped_storage, memo), self.dtype)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return typed, (self._untyped_storage, self.dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self.dtype is other.dtype and self._cdata == other._cdata

    def __hash__(self) -> int:
        return hash(self._cdata)

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """The storage on another device: itself where it is there already, else a copy."""
        return self._with(self._untyped_storage.to(device=device))

    def cpu(self) -> TypedStorage:
        """The storage in host memory."""
        return self._with(self._untyped_storage.cpu())

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """The storage on a CUDA device, by default the current one."""
        return self._with(self._untyped_storage.cuda(device))

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the storage's legacy type, as "torch.FloatStorage", or the elements converted to another type."""
        if dtype is None:
            return f"torch.{'' if self.device.type == 'cpu' else self.device.type + '.'}{_TYPE_NAMES[self.dtype]}"
        device_type = getattr(dtype, "device_type", self.device.type)
        if isinstance(dtype, str):
            dtype, device_type = named_type(dtype, LEGACY)
        converted = self._as(dtype.dtype)
        return converted if device_type == self.device.type else converted.to(device=device_type)

    def pickle_storage_type(self) -> str:
        """The name of the legacy type, as "FloatStorage"."""
        return _TYPE_NAMES[self.dtype]

    def is_pinned(self, device: Any = None) -> bool:
        """See `UntypedStorage.is_pinned`."""
        return self._untyped_storage.is_pinned(device)

    def pin_memory(self, device: Any = None) -> TypedStorage:
        """See `UntypedStorage.pin_memory`."""
        return self._with(self._untyped_storage.pin_memory(device))

    def is_shared(self) -> bool:
        """See `UntypedStorage.is_shared`."""
        return self._untyped_storage.is_shared()

    def share_memory_(self) -> TypedStorage:
        """See `UntypedStorage.share_memory_`."""
        self._untyped_storage.share_memory_()
        return self


for _name, _dtype in _NAMES.items():
    setattr(TypedStorage, _name, _conversion(_name, _dtype))


def typed(untyped: UntypedStorage, dtype: Any) -> TypedStorage:
    """`TypedStorage(wrap_storage=untyped, dtype=dtype)` without its checks."""
    self = object.__new__(TypedStorage)
    self._untyped_storage, self.dtype = untyped, dtype
    return self


class _LegacyType(type):
    """Types as `FloatStorage`: calling makes a TypedStorage, isinstance asks for dtype and device type."""

    dtype: Any
    device_type: str

    def __call__(cls, *args: Any, wrap_storage: Any = None, device: Any = None) -> TypedStorage:
        if wrap_storage is None and cls.device_type != "cpu":
            device = device or cls.device_type
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls.dtype, device=device)

    def __instancecheck__(cls, instance: Any) -> bool:
        typed = isinstance(instance, TypedStorage) and instance.dtype is cls.dtype
        return typed and instance.device.type == cls.device_type


_TYPE_NAMES = {
    dtype: "".join(part.capitalize() for part in name.split("_")).replace("Bfl", "BFl") + "Storage"
    for name, dtype in _NAMES.items()
}


def _legacy_type(name: str, dtype: Any, device_type: str, module: str) -> Any:
    namespace = {
        "__slots__": (),
        "dtype": dtype,
        "device_type": device_type,
        "_dtype": classmethod(lambda cls: cls.dtype),
        "__module__": module,
        "__doc__": f"Makes storages of {dtype} on {device_type}.",
    }
    return _LegacyType(name, (TypedStorage,), namespace)


def legacy_storages(device_type: str = "cpu", module: str = "rushlight") -> dict[str, Any]:
    """`FloatStorage`, `LongStorage` and their kin by name."""
    return {name: _legacy_type(name, dtype, device_type, module) for dtype, name in _TYPE_NAMES.items()}


LEGACY = legacy_storages()
"""`FloatStorage` and its kin by name, on the CPU."""

globals().update(LEGACY)


def is_storage(obj: Any) -> bool:
    """Whether an object is a storage, typed or not."""
    return isinstance(obj, UntypedStorage | TypedStorage)


def from_file(
    filename: str,
    shared: bool | None = None,
    size: int = 0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """A 1-d tensor over a file that is mapped into memory.

    Args:
        filename: Path of the file.
        shared: Whether writing to the tensor writes to the file, which is made or made longer as needed. Otherwise
            changes stay in memory.
        size: The number of elements.
        dtype: Their dtype; the default dtype where it is left out.
        layout: `rushlight.strided`.
        device: The CPU.
        pin_memory: Whether the memory is page-locked; see `Tensor.pin_memory`.
        requires_grad: Whether gradients are recorded.

    Returns:
        A tensor of shape `(size,)`.

    Raises:
        RuntimeError: The file cannot be opened, or is too short and not shared.
    """
    dtype = dtype or _C.get_default_dtype()
    if device is not None and _C.device(device).type != "cpu":
        raise RuntimeError(f"from_file: a file is mapped on the CPU, got device={device}. Move the tensor with to().")
    if size < 0:
        raise RuntimeError(f"from_file: the size must not be negative, got size={size}.")
    tensor = UntypedStorage.from_file(filename, bool(shared), size * dtype.itemsize)._tensor(dtype)
    if pin_memory:
        tensor = tensor.pin_memory()
    return tensor.requires_grad_() if requires_grad else tensor
