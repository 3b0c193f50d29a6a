"""Methods of Tensor that are not operators: legacy construction, storages, copying, pickling."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _C, _registry

_LEGACY_NAMES = {
    _C.uint8: "Byte",
    _C.int8: "Char",
    _C.int16: "Short",
    _C.int32: "Int",
    _C.int64: "Long",
    _C.float16: "Half",
    _C.bfloat16: "BFloat16",
    _C.float32: "Float",
    _C.float64: "Double",
    _C.complex64: "ComplexFloat",
    _C.complex128: "ComplexDouble",
    _C.bool: "Bool",
}
_LEGACY_DTYPES = {f"{name}Tensor": dtype for dtype, name in _LEGACY_NAMES.items()}


def legacy_dtype(name: str) -> Any:
    """The dtype of a legacy type by its name, as "FloatTensor"; None where there is none."""
    return _LEGACY_DTYPES.get(name)


def legacy_tensor(*args: Any, dtype: Any = None, device: Any = None) -> Any:
    """`Tensor(2, 3)` is an uninitialised tensor of that shape, `Tensor([1, 2])` one of these values, both float32.

    Raises:
        TypeError: The argument is no size, sequence, array or tensor.
    """
    from . import empty

    dtype = dtype or _C.get_default_dtype()
    if len(args) != 1 or isinstance(args[0], int):
        return empty(args or (0,), dtype=dtype, device=device)
    (data,) = args
    if isinstance(data, _C.Tensor):
        if data.dtype is not dtype:
            raise TypeError(f"expected {dtype} (got {data.dtype}): Tensor(tensor) shares memory and does not convert.")
        return data.detach()
    if isinstance(data, _C.StorageBase) or hasattr(data, "_untyped_storage"):
        return empty(0, dtype=dtype, device=device).set_(data)
    if isinstance(data, _C.Size):
        return empty(data, dtype=dtype, device=device)
    if isinstance(data, str | bytes):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if not hasattr(data, "__len__"):
        raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
    return _C.tensor(data, dtype=dtype, device=device)


class _LegacyType(type):
    """Types as `FloatTensor`: calling makes a tensor, isinstance asks for dtype and device type."""

    dtype: Any
    device_type: str

    def __call__(cls, *args: Any, device: Any = None) -> Any:
        answer = _registry.probe(cls.device_type)
        if not answer:
            raise TypeError(f"type torch.{cls.device_type}.{cls.__name__} not available. {answer.reason}.")
        return legacy_tensor(*args, dtype=cls.dtype, device=device or cls.device_type)

    def __instancecheck__(cls, instance: Any) -> bool:
        strided = isinstance(instance, _C.Tensor) and instance.layout is _C.strided
        return strided and instance.dtype is cls.dtype and instance.device.type == cls.device_type


def legacy_types(device_type: str = "cpu", module: str = "rushlight") -> dict[str, type]:
    """`FloatTensor`, `LongTensor` and their kin by name."""
    return {
        name: _LegacyType(
            name,
            (),
            {
                "dtype": dtype,
                "device_type": device_type,
                "__module__": module,
                "__doc__": f"Makes tensors of {dtype} on {device_type}.",
            },
        )
        for name, dtype in _LEGACY_DTYPES.items()
    }


def new(self: Any, *args: Any, device: Any = None) -> Any:
    """A tensor as `Tensor(...)` makes it, with the dtype and device of this one."""
    return legacy_tensor(*args, dtype=self.dtype, device=self.device if device is None else device)


def new_tensor(self: Any, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """`rushlight.tensor(data)` with the dtype and device of this tensor, unless given."""
    dtype, device = dtype or self.dtype, self.device if device is None else device
    return _C.tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)


def named_type(name: str, known: Mapping[str, Any]) -> tuple[Any, str]:
    """What a table has for the last part of a name as "torch.cuda.FloatTensor", and the device type in it."""
    place, _, last = name.rpartition(".")
    if last not in known:
        raise ValueError(f"invalid type: '{name}'. Known are torch.{', torch.'.join(sorted(known))}.")
    return known[last], place.partition(".")[2] or "cpu"


def type_(self: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The legacy name of the type, as "torch.FloatTensor"; with `dtype` the tensor converted to it."""
    if dtype is None and self.is_sparse:
        return f"torch.sparse.{_LEGACY_NAMES[self.dtype]}Tensor"
    if dtype is None:
        place = "" if self.is_cpu else f"{self.device.type}."
        return f"torch.{place}{_LEGACY_NAMES[self.dtype]}Tensor"
    device_type = getattr(dtype, "device_type", self.device.type)
    if isinstance(dtype, str):
        dtype, device_type = named_type(dtype, _LEGACY_DTYPES)
    device = self.device if device_type == self.device.type else device_type
    return self.to(device, getattr(dtype, "dtype", dtype))


def get_device(self: Any) -> int:
    """The index of the device that the tensor is on, -1 on the CPU."""
    return -1 if self.is_cpu else (self.device.index or 0)


def where(self: Any, condition: Any, other: Any) -> Any:
    """This tensor where `condition` holds, else `other`."""
    from .ops._pointwise import where as op

    return op.operator(condition, self, other)


# -- Python functions for every element: slow, for PyTorch's sake


def apply_(self: Any, function: Any) -> Any:
    """Replaces every element by what a Python function makes of it, on the CPU. Slow.

    Raises:
        RuntimeError: The tensor requires a gradient.
        TypeError: The tensor is not on the CPU, or the function does not return a number.
    """
    return _mapped("apply_", self, (), function)


def map_(self: Any, tensor: Any, function: Any) -> Any:
    """Replaces every element by what a Python function makes of it and that of another tensor, on the CPU. Slow.

    The other tensor has the same dtype and broadcasts to this one; the function takes two numbers and returns one.

    Raises:
        RuntimeError: A tensor requires a gradient.
        TypeError: The dtypes differ, a tensor is not on the CPU, or the function does not return a number.
    """
    return _mapped("map_", self, (tensor,), function)


def map2_(self: Any, x: Any, y: Any, function: Any) -> Any:
    """As `map_`, with a function of three numbers and two other tensors."""
    return _mapped("map2_", self, (x, y), function)


def _mapped(name: str, self: Any, others: tuple[Any, ...], function: Any) -> Any:
    for tensor in (self, *others):
        if tensor.requires_grad:
            raise RuntimeError(
                f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead."
            )
        if not tensor.is_cpu:
            raise TypeError(f"{name} is only implemented on CPU tensors, got a tensor on {tensor.device}.")
        if tensor.dtype is not self.dtype:
            raise TypeError(f"{name}: expected {type_(self)} for 'other' (got {type_(tensor)})")
    columns = [self, *(tensor.expand(self.shape) for tensor in others)]
    values = [function(*each) for each in zip(*(c.reshape(-1).tolist() for c in columns), strict=True)]
    for value in values:
        if not isinstance(value, int | float | complex):
            raise TypeError(f"{name}: the function must return a real number, not {type(value).__name__}")
    return self.copy_(_C.tensor(values, dtype=self.dtype).reshape(self.shape))


def reverse(self: Any) -> Any:
    """The tensor with the first dimension in reverse order: what `reversed` goes through."""
    return self.flip(0) if self.ndim else self


def cpu(self: Any, memory_format: Any = _C.preserve_format) -> Any:
    """The tensor in host memory: itself when it is there already."""
    return self.to("cpu", memory_format=memory_format)


def cuda(self: Any, device: Any = None, non_blocking: bool = False, memory_format: Any = _C.preserve_format) -> Any:
    """The tensor on a CUDA device, by default the current one."""
    return self.to("cuda" if device is None else device, non_blocking=non_blocking, memory_format=memory_format)


def array_wrap(self: Any, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
    """What a NumPy function made of tensors, as a tensor: `numpy.sin(tensor)` is one."""
    return _C.from_numpy(np.asarray(array))


# -- storages


def storage(self: Any) -> Any:
    """The TypedStorage over the tensor's memory: all of it, also where the tensor is a part."""
    from rushlight.storage import typed

    return typed(self.untyped_storage(), self.dtype)


def storage_type(self: Any) -> Any:
    """The legacy type of the tensor's storage, as `FloatStorage`."""
    from .storage import LEGACY

    return LEGACY[self.storage().pickle_storage_type()]


def is_shared(self: Any) -> bool:
    """Whether other processes can share the tensor's memory."""
    return self.untyped_storage().is_shared()


def share_memory_(self: Any) -> Any:
    """Moves the memory to where other processes can share it: see `UntypedStorage.share_memory_`."""
    self.untyped_storage().share_memory_()
    return self


def is_pinned(self: Any, device: Any = None) -> bool:
    """Whether the memory is page-locked: see `pin_memory`."""
    backend: Any = _registry.opened.get("cuda")
    return backend is not None and self.device.type == "cpu" and backend.is_pinned(self.untyped_storage().data_ptr())


def pin_memory(self: Any, device: Any = None) -> Any:
    """A copy in page-locked memory of the host, from which `to("cuda", non_blocking=True)` copies in the background.

    Raises:
        RuntimeError: There is no accelerator to lock memory for, or the tensor is not on the CPU.
    """
    from . import cuda

    if not cuda.is_available():
        raise RuntimeError("Cannot access accelerator device when none is available: pin_memory() needs one.")
    if self.device.type != "cpu":
        raise RuntimeError(f"cannot pin '{self.type()}' only dense CPU tensors can be pinned")
    if is_pinned(self):
        return self
    memory: Any = _registry.open_backend("cuda")
    pinned = _C.from_numpy(memory.pin(max(self.nbytes, 1)))[: self.nbytes]
    return pinned.view(self.dtype).reshape(self.shape).copy_(self)


def array_namespace(self: Any, *, api_version: str | None = None) -> Any:
    """The functions of the Python array API standard for this tensor: the module `rushlight.array_api`.

    Raises:
        ValueError: `api_version` is later than the one that it follows, or none.
    """
    from . import array_api

    if api_version not in (None, "2021.12", "2022.12", "2023.12", array_api.__array_api_version__):
        raise ValueError(
            f"__array_namespace__: unknown version of the standard, got api_version={api_version!r}. "
            f"{array_api.__array_api_version__} and older ones are known."
        )
    return array_api


def to_device(self: Any, device: Any, /, *, stream: Any = None) -> Any:
    """The tensor on a device, by the array API standard; `stream` must be None: copies are ordered by the device."""
    if stream is not None:
        raise ValueError(f"to_device: streams are not passed on, got stream={stream!r}. Pass None.")
    return self.to(device)


# -- copies and pickles


def _with_state(tensor: Any, like: Any) -> Any:
    cls = type(like)
    if cls is not _C.Tensor:
        tensor = tensor.as_subclass(cls)
    if like.requires_grad:
        tensor.requires_grad_()
    return tensor


def _forward(tensor: Any) -> Any:
    """The tensor, or a copy of one that goes backwards through memory, which neither PyTorch nor its files have."""
    return tensor.contiguous() if any(step < 0 for step in tensor.stride()) else tensor


def reduce(self: Any, protocol: int) -> tuple[Any, ...]:
    """What pickle keeps of a tensor: its storage and geometry, so that sharing survives; not its history."""
    from rushlight import _rebuild

    if self._payload is not None:
        from .sparse import reduce as reduce_sparse

        return reduce_sparse(self)
    attributes, cls = self._attributes, type(self)
    if self.is_meta:
        make: Any = _rebuild.rebuild_meta_tensor
        arguments: tuple[Any, ...] = (self.dtype, tuple(self.shape), self.stride(), self.requires_grad)
    else:
        make = _rebuild.rebuild_tensor_v2
        plain = _forward(self.detach())
        geometry = (plain.storage_offset(), tuple(plain.shape), plain.stride())
        arguments = (
            _rebuild.typed(plain.untyped_storage(), self.dtype),
            *geometry,
            self.requires_grad,
            _rebuild.NoHooks(),
        )
    if cls is _C.Tensor and not attributes:
        return make, arguments
    return _rebuild.rebuild_from_type, (make, cls, arguments, attributes or {})


def copy(self: Any) -> Any:
    """A new tensor object over the same memory."""
    result = _with_state(self.detach(), self)
    if attributes := self._attributes:
        vars(result).update(attributes)
    return result


def deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    """A leaf over a copy of the storage, which copies of tensors that share it share again; and of the gradient."""
    if id(self) in memo:
        return memo[id(self)]
    if self.requires_grad and not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment, "
            f"got grad_fn={self.grad_fn}. Call detach() first."
        )
    from copy import deepcopy as deep

    if self._payload is not None or any(step < 0 for step in self.stride()):
        plain = self.detach().clone()
    else:
        storage = deep(self.untyped_storage(), memo)
        plain = storage._tensor(self.dtype, self.storage_offset(), self.shape, self.stride())
    result = memo[id(self)] = _with_state(plain, self)
    if attributes := self._attributes:
        vars(result).update(deep(attributes, memo))
    if self.requires_grad and self.grad is not None:
        result.grad = deep(self.grad, memo)
    return result


class _MultiprocessingHook:
    """First on sys.meta_path until `multiprocessing` is in use, which then learns to send storages without a copy."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.startswith("multiprocessing.") and hasattr(
            sys.modules.get("multiprocessing.reduction"), "ForkingPickler"
        ):
            sys.meta_path.remove(self)
            from . import _shared_memory

            _shared_memory.register()


def install() -> None:
    """Gives Tensor the methods of this file and C++ the functions that it calls."""
    _C.set_hook("legacy_new", legacy_tensor)
    _C.set_hook("reduce", reduce)
    methods = {
        "get_device": get_device,
        "new": new,
        "new_tensor": new_tensor,
        "type": type_,
        "cpu": cpu,
        "cuda": cuda,
        "apply_": apply_,
        "map_": map_,
        "map2_": map2_,
        "where": where,
        "__reversed__": reverse,
        "to_device": to_device,
        "__array_namespace__": array_namespace,
        "__array_wrap__": array_wrap,
        "__array_priority__": 1000,  # above ndarray's: NumPy leaves operators and the type of results to Tensor
        "storage": storage,
        "storage_type": storage_type,
        "is_shared": is_shared,
        "share_memory_": share_memory_,
        "is_pinned": is_pinned,
        "pin_memory": pin_memory,
        "__copy__": copy,
        "__deepcopy__": deepcopy,
    }
    for name, method in methods.items():
        _C.add_method(name, method)
    sys.meta_path.insert(0, _MultiprocessingHook())
