"""What pickles of tensors call, and the names by which PyTorch's files know it."""

from __future__ import annotations

import copyreg
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pickle import UnpicklingError
from typing import Any

from . import _C
from .storage import LEGACY, TypedStorage, UntypedStorage, typed as typed


def rebuild_tensor(storage: TypedStorage, offset: int, size: Sequence[int], stride: Sequence[int]) -> Any:
    """A tensor over part of a storage.

    Raises:
        RuntimeError: The tensor would leave the storage.
    """
    return storage._untyped_storage._tensor(storage.dtype, offset, size, stride)


def rebuild_tensor_v2(
    storage: TypedStorage,
    offset: int,
    size: Sequence[int],
    stride: Sequence[int],
    requires_grad: bool,
    backward_hooks: Any,
    metadata: dict[str, bool] | None = None,
) -> Any:
    """`rebuild_tensor`, and whether gradients are recorded. `metadata` tells of a lazy conjugate or negative."""
    return _finished(rebuild_tensor(storage, offset, size, stride), requires_grad, metadata)


def rebuild_tensor_v3(
    storage: TypedStorage,
    offset: int,
    size: Sequence[int],
    stride: Sequence[int],
    requires_grad: bool,
    backward_hooks: Any,
    dtype: Any,
    metadata: dict[str, bool] | None = None,
) -> Any:
    """`rebuild_tensor_v2` of an untyped storage."""
    return _finished(storage.untyped()._tensor(dtype, offset, size, stride), requires_grad, metadata)


def _finished(tensor: Any, requires_grad: bool, metadata: dict[str, bool] | None) -> Any:
    if metadata and (metadata.get("conj") or metadata.get("neg")):
        if tensor.nbytes > tensor.untyped_storage().nbytes():
            raise RuntimeError(
                "load: a lazy conjugate of a tensor that repeats its elements cannot be read, "
                f"got size={list(tensor.shape)}, stride={list(tensor.stride())}. Save a clone()."
            )
        tensor = tensor.conj() if metadata.get("conj") else tensor
        tensor = -tensor if metadata.get("neg") else tensor
    if requires_grad:
        try:
            tensor.requires_grad_()
        except AttributeError as error:
            raise RuntimeError(f"load: a tensor of the file records gradients, but {error}.") from error
    return tensor


def rebuild_meta_tensor(dtype: Any, size: Sequence[int], stride: Sequence[int], requires_grad: bool) -> Any:
    """A tensor without memory."""
    from . import empty_strided

    return _finished(empty_strided(size, stride, dtype=dtype, device="meta"), requires_grad, None)


def rebuild_parameter(data: Any, requires_grad: bool, backward_hooks: Any) -> Any:
    """A Parameter over a tensor."""
    from .nn.parameter import Parameter

    return Parameter(data, requires_grad)


def rebuild_parameter_with_state(data: Any, requires_grad: bool, backward_hooks: Any, state: Any) -> Any:
    """A Parameter with attributes."""
    return set_state(rebuild_parameter(data, requires_grad, backward_hooks), state)


def rebuild_from_type(make: Callable[..., Any], cls: type, args: Sequence[Any], state: Any) -> Any:
    """A tensor of a subclass, or with attributes."""
    result = make(*args)
    if type(result) is not cls:
        result = result.as_subclass(cls)
    if hasattr(cls, "__setstate__"):
        result.__setstate__(state)
        return result
    return set_state(result, state)


def set_state(target: Any, state: Any) -> Any:
    """Gives an object the attributes that pickle kept: a dict, or a dict and one for slots."""
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    for part in (attributes, slots):
        for name, value in (part or {}).items():
            setattr(target, name, value)
    return target


def rebuild_sparse_tensor(layout: Any, data: Sequence[Any], requires_grad: bool = False) -> Any:
    """A sparse tensor of its parts, which are checked: indices, values and size, or those of a compressed layout."""
    from .sparse import rebuild

    return rebuild(layout, data, requires_grad)


def get_layout(name: str) -> Any:
    """The layout of a name, as "torch.sparse_coo"."""
    layout = getattr(_C, name.rpartition(".")[2], None)
    if not isinstance(layout, _C.layout):
        raise RuntimeError(f"load: no such layout, got {name!r}.")
    return layout


class NoHooks:
    """Pickles as an empty OrderedDict, quicker than one: where PyTorch's files have the hooks that it does not save."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return OrderedDict, ()


copyreg.pickle(_C.layout, lambda layout: (get_layout, (str(layout),)))


def load_from_bytes(data: bytes) -> Any:
    """What plain pickles that PyTorch made of storages call: the bytes are a file of their own."""
    from io import BytesIO

    from .serialization import load

    return load(BytesIO(data), weights_only=False)


SAFE: dict[str, Any] = {
    "torch._utils._rebuild_tensor": rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": rebuild_tensor_v2,
    "torch._utils._rebuild_tensor_v3": rebuild_tensor_v3,
    "torch._utils._rebuild_meta_tensor_no_storage": rebuild_meta_tensor,
    "torch._utils._rebuild_parameter": rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": rebuild_parameter_with_state,
    "torch._utils._rebuild_sparse_tensor": rebuild_sparse_tensor,
    "torch._tensor._rebuild_from_type_v2": rebuild_from_type,
    "torch.serialization._get_layout": get_layout,
    "torch.Size": _C.Size,
    "torch.Tensor": _C.Tensor,
    "torch.device": _C.device,
    "torch.storage.UntypedStorage": UntypedStorage,
    **{f"torch.{name}": cls for name, cls in LEGACY.items()},
    **{str(cls.dtype): cls.dtype for cls in LEGACY.values()},
}
"""What files may always name, by PyTorch's path: it makes tensors and nothing else."""


_TRUSTED = {
    "torch.storage._load_from_bytes": load_from_bytes,
    # Where PyTorch's functions and methods are, for getattr.
    "torch._C._VariableFunctionsClass": sys.modules[_C.__name__.rpartition(".")[0]],
    "torch._C.TensorBase": _C.Tensor,
}
_NATIVE = {
    "torch._C._nn": "rushlight.nn.functional",
    "torch._C._linalg": "rushlight.linalg",
    "torch._C._special": "rushlight.special",
}
"""Modules of functions whose names start with the area's."""


def find(module: str, name: str) -> Any:
    """The object that a global of a pickle stands for; PyTorch's names stand for ours.

    Raises:
        UnpicklingError: There is none.
    """
    path = f"{module}.{name}"
    if path in SAFE:
        return SAFE[path]
    if path in _TRUSTED:
        return _TRUSTED[path]
    if module in _NATIVE:
        module, name = _NATIVE[module], name.removeprefix(module.rpartition("_")[2] + "_")
    elif path.startswith("torch."):
        module = "rushlight" + module[len("torch") :]
    try:
        __import__(module)
        value: Any = sys.modules[module]
        for part in name.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError) as error:
        raise UnpicklingError(f"load: the file needs {path}, which is not here: {error}") from error
    return value
