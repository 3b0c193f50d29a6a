"""Parameters that are computed from others: a module on each, which runs whenever the parameter is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn.modules.container import ModuleDict, ModuleList
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_caching = 0  # how many blocks of `cached` are open
_cache: dict[tuple[int, str], Tensor] = {}


@contextmanager
def cached() -> Iterator[None]:
    """While the block runs, each parametrized tensor is computed once, when it is first read.

    Example:
        >>> import rushlight as torch
        >>> from rushlight.nn.utils import parametrizations, parametrize
        >>> layer = parametrizations.weight_norm(torch.nn.Linear(2, 2))
        >>> with parametrize.cached():
        ...     layer.weight is layer.weight
        True
    """
    global _caching
    _caching += 1
    try:
        yield
    finally:
        _caching -= 1
        if not _caching:
            _cache.clear()


def _own(original: Any, value: Tensor) -> None:
    """Gives a tensor that optimisers may hold another value, of whatever shape."""
    original.data = value.detach() if value is not original else value.data


def _check_same(what: str, before: Tensor, after: Any) -> None:
    """Raises unless a parametrization kept dtype and shape."""
    if not isinstance(after, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(after).__name__}.")
    for name, old, new in (("dtype", before.dtype, after.dtype), ("shape", before.shape, after.shape)):
        if old != new:
            raise ValueError(
                f"{what} may not change the {name} of the tensor, unless the `unsafe` flag is enabled.\n"
                f"unparametrized {name}: {old}\nparametrized {name}: {new}"
            )


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in the order in which they run, and what the first one runs on.

    Attributes:
        original: What the tensor is computed from; ``original0``, ``original1``, ... where the first parametrization
            takes several tensors.
        is_tensor: Whether it is one tensor.

    Args:
        modules: The parametrizations.
        original: The tensor so far. It is taken back through each ``right_inverse`` that there is.
        unsafe: Whether the parametrizations may change dtype and shape.

    Raises:
        ValueError: There is no parametrization, or dtype or shape change.
    """

    original: Tensor

    def __init__(self, modules: Sequence[Module], original: Any, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape_before = original.detach().clone() if not unsafe else original.detach()
        new: Any = original
        with rl.no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with suppress(NotImplementedError):  # the method is there, but not for these options
                        new = module.right_inverse(new)
        if not isinstance(new, Tensor) and not isinstance(new, Sequence):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if isinstance(new, Tensor):
            if original.dtype != new.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {new.dtype}"
                )
            _own(original, new)
            _register(self, "original", original)
        else:
            for i, part in enumerate(new):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                        f"Got element {i} of the sequence with type {type(part).__name__}."
                    )
                part = part.detach()
                if isinstance(original, Parameter):
                    part = Parameter(part.clone(), original.requires_grad)
                _register(self, f"original{i}", part)
        if not unsafe:
            _check_same("Registering a parametrization", shape_before, self())

    def _originals(self) -> list[Any]:
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def forward(self) -> Tensor:
        """The parametrized tensor."""
        first, *rest = self
        value: Tensor = first(*self._originals())
        for module in rest:
            value = module(value)
        return value

    def right_inverse(self, value: Tensor) -> None:
        """Sets what the tensor is computed from so that it becomes `value`, as far as the parametrizations allow.

        Raises:
            RuntimeError: A parametrization has no ``right_inverse``.
            ValueError: The dtype changes, or the number of tensors.
        """
        new: Any = value
        with rl.no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                new = module.right_inverse(new)
        parts = [new] if isinstance(new, Tensor) else new
        if isinstance(new, Tensor) != self.is_tensor or not isinstance(parts, Sequence) or len(parts) != self.ntensors:
            raise ValueError(
                "'right_inverse' must return what it did when it was registered: "
                f"{self.ntensors} tensors, got {type(new).__name__}."
            )
        for i, (part, original) in enumerate(zip(parts, self._originals(), strict=True)):
            if not isinstance(part, Tensor) or part.dtype != original.dtype:
                raise ValueError(
                    f"Tensor {i} returned by `right_inverse` has dtype {getattr(part, 'dtype', None)} while "
                    f"`original{'' if self.is_tensor else i}` has dtype {original.dtype}"
                )
            _own(original, part.clone() if part is value else part)


def _register(module: Module, name: str, tensor: Any) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _property(name: str) -> property:
    def get(self: Any) -> Tensor:
        if not _caching:
            return self.parametrizations[name]()
        key = id(self), name
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def set(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, set)


def _reduce(module: Any, protocol: Any) -> tuple[Any, ...]:
    return _rebuild, (type_before_parametrizations(module), tuple(module.parametrizations)), module.__dict__


def _rebuild(base: type[Module], names: tuple[str, ...]) -> Module:
    """An empty module of the parametrized class, for pickles and copies."""
    module = base.__new__(base)
    _make_class(module)
    for name in names:
        setattr(type(module), name, _property(name))
    return module


def _make_class(module: Module) -> None:
    """Gives a module a class of its own, in which tensors can be properties."""
    base = type(module)
    module.__class__ = type(
        f"Parametrized{base.__name__}", (base,), {"__reduce_ex__": _reduce, "__module__": base.__module__}
    )


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Makes a tensor of a module the output of another module.

    From then on ``module.weight`` is ``parametrization(module.parametrizations.weight.original)``, and assigning to it
    calls ``parametrization.right_inverse`` if there is one. Several may be registered, one after another.

    Args:
        module: The module, whose class becomes a subclass of its own.
        tensor_name: Name of a parameter or buffer of it.
        parametrization: Computes the tensor. Its ``right_inverse``, if any, may return several tensors, which it takes.
        unsafe: Whether it may change dtype and shape.

    Returns:
        `module`.

    Raises:
        ValueError: There is no such tensor, or its dtype or shape change.

    Example:
        >>> import rushlight as torch
        >>> from rushlight.nn.utils import parametrize
        >>> class Symmetric(torch.nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).T
        >>> layer = parametrize.register_parametrization(torch.nn.Linear(3, 3), "weight", Symmetric())
        >>> torch.equal(layer.weight, layer.weight.T)
        True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        parts: Any = module.parametrizations[tensor_name]
        if not unsafe:
            before = getattr(module, tensor_name)
            after = parametrization(before)
            _check_same("Registering a parametrization", before, after)
            if hasattr(parametrization, "right_inverse"):
                try:
                    back = parametrization.right_inverse(after)
                except NotImplementedError:
                    pass
                else:
                    _check_same("The right_inverse of a parametrization", before, back)
        parts.append(parametrization)
        parts.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        parts = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _make_class(module)
            module.parametrizations = ModuleDict()
        setattr(type(module), tensor_name, _property(tensor_name))
        module.parametrizations[tensor_name] = parts
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a tensor of a module is parametrized; without a name, whether any is."""
    parts = module._modules.get("parametrizations")
    if not isinstance(parts, ModuleDict):
        return False
    return len(parts) > 0 if tensor_name is None else tensor_name in parts


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Makes a parametrized tensor an ordinary one again.

    Args:
        module: The module.
        tensor_name: Name of the tensor.
        leave_parametrized: Whether it keeps its present value, else that from which it was computed.

    Returns:
        `module`, of its former class if nothing else is parametrized.

    Raises:
        ValueError: The tensor is not parametrized, or is computed from several and `leave_parametrized` is False.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parts: Any = module.parametrizations[tensor_name]
    if not parts.is_tensor and not leave_parametrized:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    if parts.is_tensor:
        tensor = parts.original
        if leave_parametrized:
            with rl.no_grad():
                _own(tensor, parts().clone())
    else:
        value = parts()
        tensor = Parameter(value.detach().clone()) if value.requires_grad else value
    cls: Any = type(module)
    delattr(cls, tensor_name)
    del module.parametrizations[tensor_name]
    if not len(module.parametrizations):
        delattr(module, "parametrizations")
        module.__class__ = cls.__bases__[0]
    _register(module, tensor_name, tensor)
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of a module without regard to its parametrizations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Gives a module the parametrizations of another one, and the tensors that they compute from.

    Args:
        from_module: The module whose parametrizations are shared.
        to_module: The module that gets them.
        tensor_name: One tensor, else all that are parametrized.

    Returns:
        `to_module`.
    """
    names = [tensor_name] if tensor_name is not None else list(getattr(from_module, "parametrizations", ()))
    for name in names:
        if not is_parametrized(from_module, name):
            setattr(to_module, name, getattr(from_module, name))
            continue
        parts: Any = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            _register(to_module, name, Parameter(getattr(from_module, name).detach().clone()))
        for parametrization in parts:
            register_parametrization(to_module, name, parametrization, unsafe=parts.unsafe)
        for original, given in zip(to_module.parametrizations[name]._originals(), parts._originals(), strict=True):
            _own(original, given.detach().clone())
    return to_module
