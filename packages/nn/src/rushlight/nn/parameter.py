"""Tensors that a module owns: parameters and buffers."""

from __future__ import annotations

from typing import Any, cast

import rushlight as rl
from rushlight import Tensor
from rushlight._C import _disabled_torch_function_impl
from rushlight.overrides import DisableTorchFunction


class UninitializedTensorMixin:
    """What parameters and buffers share whose shape is not known yet: every operation but a few is refused."""

    _becomes: type[Tensor]
    _allowed = frozenset((
        "__hash__", "bfloat16", "copy_", "cpu", "cuda", "double", "float", "get_device", "half", "is_complex",
        "is_floating_point", "long", "requires_grad_", "size", "to",
    ))  # fmt: skip

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Makes this a tensor of a shape, with memory that is not initialized.

        Args:
            shape: Its shape.
            device: Where it is. Default: where this is.
            dtype: Its type. Default: that of this.
        """
        tensor = cast(Tensor, self)
        options = {"device": device or tensor.device, "dtype": dtype or tensor.dtype}
        with DisableTorchFunction():
            tensor.data = rl.empty(shape, **options)
        self.__class__ = self._becomes  # type: ignore[assignment]

    @property
    def shape(self) -> Any:
        """Not known yet.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self) -> Any:
        """Refused: there is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        tensor = cast(Tensor, self)
        return _uninitialized, (type(self), tensor.requires_grad, tensor.device, tensor.dtype)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs what needs no elements, as moves to other devices and types."""
        name = getattr(func, "__name__", "")
        if name in cls._allowed or name.startswith(("__get", "__set")):
            with DisableTorchFunction():
                return func(*args, **(kwargs or {}))
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using a "
            "`LazyModule` or explicitly manipulating `torch.nn.parameter.UninitializedParameter` objects. When using "
            "LazyModules Call `forward` with a dummy batch to initialize the parameters before calling torch functions"
        )


def _uninitialized(cls: Any, requires_grad: bool, device: Any, dtype: Any) -> Any:
    return cls(requires_grad, device, dtype)


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)


def _as_member(cls: type[Tensor], data: Tensor | None, requires_grad: bool) -> Any:
    if data is None:
        data = rl.empty(0)
    elif not isinstance(data, Tensor):
        raise TypeError(
            f"{cls.__name__}: data must be a Tensor, got data={type(data).__name__}. Use torch.as_tensor(data)."
        )
    return Tensor._make_subclass(cls, data, requires_grad)


class Parameter(Tensor):
    """A tensor that a `Module` trains: assigned as an attribute of one, it joins ``parameters()``.

    Args:
        data: The values, which the parameter shares. Default: an empty tensor.
        requires_grad: Whether gradients are recorded. Default: True.

    Example:
        >>> import rushlight as torch
        >>> torch.nn.Parameter(torch.zeros(2))
        Parameter containing:
        tensor([0., 0.], requires_grad=True)
    """

    __torch_function__ = _disabled_torch_function_impl  # results of operators are plain tensors
    _prints_as_tensor = True

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        return _as_member(cls, data, requires_grad)

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        if type(self) is not Parameter:
            return cast(tuple[Any, ...], super().__reduce_ex__(protocol))
        from rushlight._rebuild import NoHooks, rebuild_parameter, rebuild_parameter_with_state

        arguments = (self.detach(), self.requires_grad, NoHooks())
        if self._attributes:
            return rebuild_parameter_with_state, (*arguments, self._attributes)
        return rebuild_parameter, arguments


class Buffer(Tensor):
    """A tensor that a `Module` keeps but does not train: assigned as an attribute of one, it joins ``buffers()``.

    Args:
        data: The values, which the buffer shares. Default: an empty tensor.
        persistent: Whether ``state_dict()`` holds it. Default: True.
    """

    __torch_function__ = _disabled_torch_function_impl
    _prints_as_tensor = True
    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        buffer = _as_member(cls, data, False if data is None else data.requires_grad)
        buffer.persistent = persistent
        return buffer


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet, see `rushlight.nn.LazyLinear`.

    Args:
        requires_grad: Whether gradients will be recorded.
        device: Where it will be made.
        dtype: Its type.
    """

    _becomes = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> UninitializedParameter:
        return _as_member(cls, rl.empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedParameter:
        return memo.setdefault(id(self), type(self)(self.requires_grad, self.device, self.dtype))


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A buffer whose shape is not known yet.

    Args:
        requires_grad: Whether gradients will be recorded.
        device: Where it will be made.
        dtype: Its type.
        persistent: Whether ``state_dict()`` holds it.
    """

    _becomes = Buffer

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> UninitializedBuffer:
        buffer = _as_member(cls, rl.empty(0, device=device, dtype=dtype), requires_grad)
        buffer.persistent = persistent
        return buffer

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedBuffer:
        return memo.setdefault(id(self), type(self)(self.requires_grad, self.device, self.dtype, self.persistent))


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """The arguments that factories such as `rushlight.empty` take, from those of a layer.

    Args:
        kwargs: ``device``, ``dtype`` and ``memory_format``, and ``factory_kwargs``, a dict of them.

    Raises:
        TypeError: There are others, or one is given twice.
    """
    if kwargs is None:
        return {}
    simple = {"device", "dtype", "memory_format"}
    unexpected = kwargs.keys() - simple - {"factory_kwargs"}
    if unexpected:
        raise TypeError(f"unexpected kwargs {unexpected}")
    options = dict(kwargs.get("factory_kwargs", {}))
    for key in simple & kwargs.keys():
        if key in options:
            raise TypeError(f"{key} specified twice, in **kwargs and in factory_kwargs")
        options[key] = kwargs[key]
    return options
