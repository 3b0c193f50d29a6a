"""Module, the base of every layer and model."""

from __future__ import annotations

import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import rushlight as rl
from rushlight import Tensor
from rushlight.nn._C import (
    ModuleBase,
    is_plain_state,
    set_global_hooks,
    set_member_types,
    set_plain_class,
    write_states,
)
from rushlight.nn.modules._backward_hooks import BackwardHooks
from rushlight.nn.parameter import Buffer, Parameter, is_lazy
from rushlight.utils.hooks import RemovableHandle

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

T = TypeVar("T", bound="Module")
Hooks = OrderedDict[int, Callable[..., Any]]

set_member_types(Parameter, Buffer)

_EXTRA_STATE = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What `Module.load_state_dict` found missing and superfluous."""

    __slots__ = ()

    def __repr__(self) -> str:
        return super().__repr__() if self.missing_keys or self.unexpected_keys else "<All keys matched successfully>"

    __str__ = __repr__


class _OnFirstUse:
    """An instance attribute made when it is first read: few modules have hooks, so `Module.__init__` makes none."""

    def __init__(self, factory: Callable[[], Any]) -> None:
        self._factory = factory

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        return instance.__dict__.setdefault(self._name, self._factory())


class _CallHooks(_OnFirstUse):
    """Hooks that run in calls. Touching them leaves the mark for which ModuleBase looks before each call."""

    def __init__(self) -> None:
        super().__init__(OrderedDict)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is not None:
            instance.__dict__["_hooked"] = True
        return super().__get__(instance, owner)

    def __set__(self, instance: Any, hooks: Any) -> None:
        instance.__dict__.update({self._name: hooks, "_hooked": True})


class _ModuleHook:
    """A state-dict hook with the module it was registered on in front of its arguments."""

    def __init__(self, hook: Callable[..., Any], module: Module) -> None:
        self.hook, self.module = hook, weakref.ref(module)

    def __call__(self, *args: Any) -> Any:
        module = self.module()
        if module is None:
            raise RuntimeError("load_state_dict: the module of this hook is gone. Remove the hook with the module.")
        return self.hook(module, *args)

    def __getstate__(self) -> dict[str, Any]:
        return {"hook": self.hook, "module": self.module()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["hook"], state["module"])  # type: ignore[misc]


# Hooks on every module of the process.
_global_forward_pre_hooks: Hooks = OrderedDict()
_global_forward_hooks: Hooks = OrderedDict()
_global_backward_pre_hooks: Hooks = OrderedDict()
_global_backward_hooks: Hooks = OrderedDict()
_global_parameter_hooks: Hooks = OrderedDict()
_global_buffer_hooks: Hooks = OrderedDict()
_global_module_hooks: Hooks = OrderedDict()
_global_forward_with_kwargs: OrderedDict[int, bool] = OrderedDict()
_global_forward_always: OrderedDict[int, bool] = OrderedDict()
_global_backward_full = False


def _add(hooks: Hooks, hook: Callable[..., Any], *flags: dict[int, bool], prepend: bool = False) -> RemovableHandle:
    """Adds a hook, marks it in every dict of `flags`, and returns the handle that takes it out of all of them."""
    handle = RemovableHandle(hooks, extra_dict=list(flags))
    hooks[handle.id] = hook
    for flag in flags:
        flag[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Runs ``hook(module, args)`` before the forward of every module; a result replaces the arguments."""
    set_global_hooks(True)
    return _add(_global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Runs ``hook(module, args, output)`` after the forward of every module; a result replaces the output.

    Args:
        hook: Called as ``hook(module, args, kwargs, output)`` if `with_kwargs`.
        with_kwargs: Whether the hook gets the keyword arguments too.
        always_call: Whether the hook runs also when forward raises.
    """
    set_global_hooks(True)
    return _add(
        _global_forward_hooks,
        hook,
        *([_global_forward_with_kwargs] if with_kwargs else []),
        *([_global_forward_always] if always_call else []),
    )


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Runs ``hook(module, grad_input, grad_output)`` in the backward of every module (see the full hook instead)."""
    return _add_global_backward(hook, full=False)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Runs ``hook(module, grad_input, grad_output)`` in the backward of every module; a result replaces grad_input."""
    return _add_global_backward(hook, full=True)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Runs ``hook(module, grad_output)`` before the backward of every module; a result replaces grad_output."""
    set_global_hooks(True)
    return _add(_global_backward_pre_hooks, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Runs ``hook(module, name, parameter)`` at each registration of a parameter; a result is registered instead."""
    return _add(_global_parameter_hooks, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Runs ``hook(module, name, buffer)`` at each registration of a buffer; a result is registered instead."""
    return _add(_global_buffer_hooks, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Runs ``hook(module, name, submodule)`` at each registration of a submodule; a result is registered instead."""
    return _add(_global_module_hooks, hook)


def _add_global_backward(hook: Callable[..., Any], full: bool) -> RemovableHandle:
    global _global_backward_full
    if _global_backward_hooks and _global_backward_full != full:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
            "Please use only one of them."
        )
    _global_backward_full = full
    set_global_hooks(True)
    return _add(_global_backward_hooks, hook)


_PLAIN_ERRORS = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError, AssertionError)


def _brief(value: object) -> str:
    if isinstance(value, Tensor):
        return f"{str(value.dtype).rpartition('.')[2]} {list(value.shape)}"
    return type(value).__name__


def _typename(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")


def _indent(text: str) -> str:
    return text.replace("\n", "\n  ")


class Module(ModuleBase):
    """The base of all layers and models: a tree of submodules that owns parameters and buffers.

    Assign submodules, `Parameter` and `Buffer` as attributes in ``__init__`` after ``super().__init__()``, and write
    the computation in ``forward``. Calling the module runs ``forward`` and its hooks.

    Attributes:
        training: Whether the module is in training mode (see `train`).

    Example:
        >>> import rushlight as torch
        >>> class Double(torch.nn.Module):
        ...     def forward(self, x):
        ...         return 2 * x
        >>> Double()(torch.ones(2))
        tensor([2., 2.])
    """

    _version: int = 1  # of the state dict; a subclass that changes its state raises it
    dump_patches: bool = False
    call_super_init: bool = False
    training: bool
    T_destination = TypeVar("T_destination", bound=dict[str, Any])

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _is_full_backward_hook: bool | None = None

    _non_persistent_buffers_set = _OnFirstUse(set)
    _forward_hooks = _CallHooks()
    _forward_hooks_with_kwargs = _OnFirstUse(OrderedDict)
    _forward_hooks_always_called = _OnFirstUse(OrderedDict)
    _forward_pre_hooks = _CallHooks()
    _forward_pre_hooks_with_kwargs = _OnFirstUse(OrderedDict)
    _backward_hooks = _CallHooks()
    _backward_pre_hooks = _CallHooks()
    _state_dict_hooks = _OnFirstUse(OrderedDict)
    _state_dict_pre_hooks = _OnFirstUse(OrderedDict)
    _load_state_dict_pre_hooks = _OnFirstUse(OrderedDict)
    _load_state_dict_post_hooks = _OnFirstUse(OrderedDict)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (args or kwargs):
            what = f"an unexpected keyword argument '{next(iter(kwargs))}'" if kwargs else f"{len(args) + 1} arguments"
            raise TypeError(f"{type(self).__name__}.__init__() got {what}. Module.__init__ takes none.")
        state = self.__dict__
        state["training"] = True
        state["_parameters"] = {}
        state["_buffers"] = {}
        state["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *input: Any) -> Any:
        """Computes the output; every subclass writes its own. Call the module instead, so that hooks run."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    # -- members

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _set_member(self, name: str, value: Any) -> None:
        """Assignment where the value, or what the name stands for, is a parameter, buffer or submodule."""
        if isinstance(value, Parameter):
            self._set_new("parameters", "_parameters", name)
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            # Unlike add_module it does not look whether the name is taken: __getattr__ of a wrapper may not work yet.
            self._set_new("module", "_modules", name)
            self._modules[name] = _replaced(_global_module_hooks, self, name, value)
        elif isinstance(value, Buffer):
            self._set_new("buffers", "_buffers", name)
            self.register_buffer(name, value, value.persistent)
        else:
            self._set_registered(name, value)

    def _set_new(self, kind: str, members: str, name: str) -> None:
        """Frees a name that something of another kind has."""
        state = self.__dict__
        if members not in state:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if name in state[members]:
            return
        for others in (state, state["_parameters"], state["_buffers"], state["_modules"]):
            if name in others:
                del others[name]
                state.get("_non_persistent_buffers_set", set()).discard(name)

    def _set_registered(self, name: str, value: Any) -> None:
        """Assignment of what is no member to the name of one: None keeps the name, a tensor may replace a buffer."""
        members: Any  # one of three dicts
        if name in self._parameters:
            members, expected = self._parameters, f"parameter '{name}' (torch.nn.Parameter or None expected)"
        elif name in self._modules:
            members, expected = self._modules, f"child module '{name}' (torch.nn.Module or None expected)"
        else:
            members, expected = self._buffers, f"buffer '{name}' (torch.nn.Buffer, torch.Tensor or None expected)"
            value = _replaced(_global_buffer_hooks, self, name, value)
        if value is not None and not (members is self._buffers and isinstance(value, Tensor)):
            raise TypeError(f"cannot assign '{_typename(value)}' as {expected}")
        members[name] = value

    def _del_member(self, name: str) -> None:
        self._non_persistent_buffers_set.discard(name)
        for members in (self._parameters, self._buffers, self._modules):
            if name in members:
                del members[name]
                return

    def __dir__(self) -> list[str]:
        names = {*super().__dir__(), *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[0].isdigit())

    def _check_name(self, kind: str, members: str, name: str) -> None:
        if members not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {_typename(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in self.__dict__[members] and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter under a name; None reserves the name."""
        self._check_name("parameter", "_parameters", name)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{_typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. "
                f"To express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        self._parameters[name] = _replaced(_global_parameter_hooks, self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is state but not trained, as batch norm's running mean.

        Args:
            name: The attribute that it becomes.
            tensor: Its value; None reserves the name.
            persistent: Whether ``state_dict()`` holds it.
        """
        self._check_name("buffer", "_buffers", name)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{_typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = _replaced(_global_buffer_hooks, self, name, tensor)
        if not persistent:
            self._non_persistent_buffers_set.add(name)
        elif "_non_persistent_buffers_set" in self.__dict__:
            self._non_persistent_buffers_set.discard(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a submodule under a name; None reserves the name."""
        self._check_name("module", "_modules", name)
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_typename(module)} is not a Module subclass")
        self._modules[name] = _replaced(_global_module_hooks, self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Adds a submodule: `add_module` by another name."""
        self.add_module(name, module)

    def get_submodule(self, target: str) -> Module:
        """The submodule at a path such as ``"net.0.conv"``; the empty path is the module itself.

        Raises:
            AttributeError: There is no such attribute, or it is no module.
        """
        module = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts a module at a path.

        Args:
            target: The path, as in `get_submodule`.
            module: What stands there from now on.
            strict: Whether it must replace an existing submodule.

        Raises:
            ValueError: The path is empty, or `module` is no module.
            AttributeError: A module on the path does not exist, or with `strict` the last one.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path such as ``"net.0.weight"``.

        Raises:
            AttributeError: There is no such attribute, or it is no parameter.
        """
        value = self._get_tensor(target)
        if not isinstance(value, Parameter):
            raise AttributeError(f"`{target.rpartition('.')[2]}` is not an nn.Parameter")
        return value

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path such as ``"net.1.running_mean"``.

        Raises:
            AttributeError: There is no such attribute, or it is no buffer.
        """
        path, _, name = target.rpartition(".")
        value = self._get_tensor(target)
        if name not in self.get_submodule(path)._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return value

    def _get_tensor(self, target: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        return getattr(module, name)

    # -- walks over the tree

    def children(self) -> Iterator[Module]:
        """The direct submodules, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct submodules with their names, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """The module itself and all below it, parents first, each once unless `remove_duplicate` is False."""
        return iter([module for _, module in self.named_modules(remove_duplicate=remove_duplicate)])

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """The module itself (as `prefix`) and all below it with their paths, parents first.

        Args:
            memo: Modules to leave out; those that are found are added.
            prefix: Put in front of the paths.
            remove_duplicate: Whether a module that is used in two places appears once.
        """
        found: list[tuple[str, Module]] = []
        _collect(self, set() if memo is None else memo, prefix, remove_duplicate, found)
        return iter(found)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once; those of the module alone unless `recurse`."""
        return iter([parameter for _, parameter in self.named_parameters(recurse=recurse)])

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their paths.

        Args:
            prefix: Put in front of the paths.
            recurse: Whether those of submodules are included.
            remove_duplicate: Whether a parameter that is used in two places appears once.
        """
        return self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once; those of the module alone unless `recurse`."""
        return iter([buffer for _, buffer in self.named_buffers(recurse=recurse)])

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their paths; arguments as in `named_parameters`."""
        return self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        found: list[tuple[str, Any]] = []
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, member in get_members_fn(module):
                if member is not None and id(member) not in seen:
                    if remove_duplicate:
                        seen.add(id(member))
                    found.append((f"{path}.{name}" if path else name, member))
        return iter(found)

    # -- changes of the whole tree

    def apply(self: T, fn: Callable[[Module], None]) -> T:
        """Calls `fn` on every module of the tree, children first, and returns the module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self: T, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> T:
        """Replaces the data of every parameter, gradient and buffer by `fn` of it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is None:
                continue
            with rl.no_grad():
                data = fn(parameter)
                gradient = None if parameter.grad is None else fn(parameter.grad)
            if data.is_meta == parameter.is_meta:
                if gradient is not None:
                    gradient.requires_grad_(parameter.grad.requires_grad)
                parameter.grad = None
                parameter.data = data
            else:  # `data` cannot change between a device with memory and one without
                self._parameters[name] = parameter = Parameter(data, parameter.requires_grad)
            parameter.grad = gradient
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self: T, *args: Any, **kwargs: Any) -> T:
        """Moves and casts parameters and buffers in place: ``to(device, dtype)``, ``to(dtype)``, ``to(tensor)``.

        Args:
            *args: A device, a floating-point or complex dtype, or a tensor whose device and dtype are taken.
            **kwargs: The same as ``device=``, ``dtype=``, with ``non_blocking=`` and ``memory_format=`` (for 4-d
                parameters and buffers).

        Returns:
            The module itself.
        """
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)

        def convert(tensor: Tensor) -> Tensor:
            to_dtype = dtype if tensor.is_floating_point() or tensor.is_complex() else None
            options = {} if memory_format is None or tensor.dim() not in (4, 5) else {"memory_format": memory_format}
            return tensor.to(device or tensor.device, to_dtype or tensor.dtype, non_blocking, **options)

        return self._apply(convert)

    def to_empty(self: T, *, device: Any, recurse: bool = True) -> T:
        """Moves parameters and buffers to a device without copying their values."""
        return self._apply(lambda tensor: rl.empty_like(tensor, device=device), recurse)

    def type(self: T, dst_type: Any) -> T:
        """Casts all parameters and buffers to a dtype."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def float(self: T) -> T:
        """Casts floating-point parameters and buffers to float32."""
        return self._cast(rl.float32)

    def double(self: T) -> T:
        """Casts floating-point parameters and buffers to float64."""
        return self._cast(rl.float64)

    def half(self: T) -> T:
        """Casts floating-point parameters and buffers to float16."""
        return self._cast(rl.float16)

    def bfloat16(self: T) -> T:
        """Casts floating-point parameters and buffers to bfloat16."""
        return self._cast(rl.bfloat16)

    def _cast(self: T, dtype: Any) -> T:
        return self._apply(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)

    def cpu(self: T) -> T:
        """Moves parameters and buffers to the CPU."""
        return self._apply(lambda tensor: tensor.cpu())

    def cuda(self: T, device: Any = None) -> T:
        """Moves parameters and buffers to a CUDA device, the current one by default."""
        return self._apply(lambda tensor: tensor.cuda(device))

    def share_memory(self: T) -> T:
        """Moves parameters and buffers into memory that processes share."""
        return self._apply(lambda tensor: tensor.share_memory_())

    def train(self: T, mode: bool = True) -> T:
        """Switches training mode for the whole tree, which dropout and batch norm heed, and returns the module."""
        if not isinstance(mode, bool):
            raise ValueError(f"training mode is expected to be boolean, got mode={mode!r}. Pass True or False.")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: T) -> T:
        """Switches to evaluation mode: ``train(False)``."""
        return self.train(False)

    def requires_grad_(self: T, requires_grad: bool = True) -> T:
        """Sets whether gradients are recorded for the parameters, and returns the module."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients of all parameters, or sets them to zero in place if not `set_to_none`."""
        for parameter in self.parameters():
            grad = parameter.grad
            if grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    # -- calls and their hooks

    def _explain_error(self, error: BaseException, args: tuple[Any, ...]) -> None:
        """Adds to the message of an error that a layer's forward raised what layer it is and what it was given."""
        ours = getattr(type(self).forward, "__module__", "").startswith("rushlight.nn.")
        if not ours or type(error) not in _PLAIN_ERRORS or len(error.args) != 1:
            return
        message, name = error.args[0], self._name_in_errors()
        if isinstance(message, str) and name and name not in message:
            given = ", ".join(_brief(value) for value in args)
            error.args = (f"{message} [{name} was given {given or 'nothing'}]",)

    def _name_in_errors(self) -> str:
        """The layer and its configuration; of what is made of layers nothing, since the one that failed says it."""
        return "" if self.__dict__.get("_modules", True) else repr(self)

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        """A call with hooks; ModuleBase.__call__ goes straight to forward where there are none."""
        always = {**_global_forward_always, **self.__dict__.get("_forward_hooks_always_called", {})}
        done: set[int] = set()
        try:
            return self._call_hooked(args, kwargs, done)
        except Exception:
            for id_, hook in [*_global_forward_hooks.items(), *self._forward_hooks.items()]:
                if id_ in always and id_ not in done:
                    self._run_forward_hook(id_, hook, args, kwargs, None)
            raise

    def _call_hooked(self, args: tuple[Any, ...], kwargs: dict[str, Any], done: set[int]) -> Any:
        pre_hooks = [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]
        full: list[Callable[..., Any]] = list(_global_backward_hooks.values()) if _global_backward_full else []
        old: list[Callable[..., Any]] = [] if _global_backward_full else list(_global_backward_hooks.values())
        (full if self._is_full_backward_hook else old).extend(self._backward_hooks.values())

        for hook in list(_global_forward_pre_hooks.values()):
            args = _pre_hook_args(hook(self, args), args)
        for id_, hook in list(self._forward_pre_hooks.items()):
            if id_ in self._forward_pre_hooks_with_kwargs:
                args, kwargs = _pre_hook_args_kwargs(hook(self, args, kwargs), args, kwargs)
            else:
                args = _pre_hook_args(hook(self, args), args)

        backward = BackwardHooks(self, pre_hooks, full) if full or pre_hooks else None
        try:
            output = self.forward(*(backward.wrap_inputs(args) if backward else args), **kwargs)
        except Exception as error:
            self._explain_error(error, args)
            raise
        for id_, hook in [*_global_forward_hooks.items(), *self._forward_hooks.items()]:
            done.add(id_)
            changed = self._run_forward_hook(id_, hook, args, kwargs, output)
            if changed is not None:
                output = changed
        if backward:
            output = backward.wrap_output(output)
        if old:
            tensor = _first_tensor(output)
            if tensor is not None and tensor.grad_fn is not None:
                for hook in old:
                    tensor.grad_fn.register_hook(lambda *grads, hook=hook: hook(self, *grads))
        return output

    def _run_forward_hook(self, id_: int, hook: Callable[..., Any], args: Any, kwargs: Any, output: Any) -> Any:
        if id_ in _global_forward_with_kwargs or id_ in self._forward_hooks_with_kwargs:
            return hook(self, args, kwargs, output)
        return hook(self, args, output)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Runs a hook before each forward.

        Args:
            hook: ``hook(module, args)``, whose result, a value or tuple, replaces the positional arguments unless it
                is None; with `with_kwargs` ``hook(module, args, kwargs)`` that returns None or ``(args, kwargs)``.
            prepend: Whether it runs before the hooks that are there already.
            with_kwargs: Whether it gets the keyword arguments too.

        Returns:
            A handle whose ``remove()`` takes the hook away.
        """
        flags = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []
        return _add(self._forward_pre_hooks, hook, *flags, prepend=prepend)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Runs a hook after each forward.

        Args:
            hook: ``hook(module, args, output)``, whose result replaces the output unless it is None; with
                `with_kwargs` ``hook(module, args, kwargs, output)``.
            prepend: Whether it runs before the hooks that are there already.
            with_kwargs: Whether it gets the keyword arguments too.
            always_call: Whether it runs, with output None, also when forward raises.

        Returns:
            A handle whose ``remove()`` takes the hook away.
        """
        flags = [self._forward_hooks_with_kwargs] if with_kwargs else []
        if always_call:
            flags.append(self._forward_hooks_always_called)
        return _add(self._forward_hooks, hook, *flags, prepend=prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Runs ``hook(module, grad_output)`` before the gradients of the module; a result replaces grad_output."""
        return _add(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Runs ``hook(module, grad_input, grad_output)`` at each backward; a result replaces grad_input."""
        self._set_backward_kind(full=True)
        return _add(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Runs a hook in the backward of the last function of the module (see `register_full_backward_hook`)."""
        self._set_backward_kind(full=False)
        return _add(self._backward_hooks, hook)

    def _set_backward_kind(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. "
                "Please use only one of them."
            )
        self._is_full_backward_hook = full

    # -- state dicts

    def get_extra_state(self) -> Any:
        """What ``state_dict()`` holds beside tensors; a subclass that has such state overrides this."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called. "
            f"{type(self).__name__} overrides set_extra_state alone; override both."
        )

    def set_extra_state(self, state: Any) -> None:
        """Takes back what `get_extra_state` gave; a subclass that has such state overrides this."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called. "
            f"{type(self).__name__} overrides get_extra_state alone; override both."
        )

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """All parameters and persistent buffers of the tree by path, in an ordered dict that shares their memory.

        Args:
            *args: `destination`, `prefix` and `keep_vars` by position (deprecated).
            destination: The dict that is filled. Default: a new one.
            prefix: Put in front of the paths.
            keep_vars: Whether the tensors keep their autograd history instead of being detached.

        Returns:
            `destination`, whose attribute ``_metadata`` holds the version of each module.
        """
        if args:
            given: list[Any] = [*args, *[destination, prefix, keep_vars][len(args) :]]
            destination, prefix, keep_vars = given
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = getattr(destination, "_metadata", None)
        if is_plain_state(self):
            write_states(self, destination, metadata, prefix, keep_vars, True)
            return destination
        state = self.__dict__
        local = {"version": self._version}
        if metadata is not None:
            metadata[prefix[:-1]] = local
        if "_state_dict_pre_hooks" in state:
            for hook in self._state_dict_pre_hooks.values():
                hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        write_states(self, destination, metadata, prefix, keep_vars, False)
        if "_state_dict_hooks" in state:
            for hook in self._state_dict_hooks.values():
                changed = hook(self, destination, prefix, local)
                if changed is not None:
                    if getattr(hook, "_returns_none", False):
                        raise RuntimeError("state_dict post-hook must return None")
                    destination = changed
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Writes the parameters and persistent buffers of this module alone."""
        state = self.__dict__
        for name, parameter in state["_parameters"].items():
            if parameter is not None:
                destination[prefix + name] = parameter if keep_vars else parameter.detach()
        if state["_buffers"]:
            transient = state.get("_non_persistent_buffers_set", ())
            for name, buffer in state["_buffers"].items():
                if buffer is not None and name not in transient:
                    destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if type(self).get_extra_state is not Module.get_extra_state:
            destination[f"{prefix}{_EXTRA_STATE}"] = self.get_extra_state()

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copies parameters and buffers from a state dict into this module and its submodules.

        Args:
            state_dict: Tensors by path, as `state_dict` gives them.
            strict: Whether the paths must be exactly those of ``state_dict()``.
            assign: Whether the given tensors replace those of the module instead of being copied into them.

        Returns:
            A named tuple ``(missing_keys, unexpected_keys)``.

        Raises:
            TypeError: `state_dict` is no mapping.
            RuntimeError: A shape differs, a value is no tensor, or with `strict` a path is missing or unexpected; all
                of them are listed.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        entries = OrderedDict(state_dict)
        if metadata is not None:
            entries._metadata = metadata  # type: ignore[attr-defined]
        incompatible = _IncompatibleKeys(missing, unexpected)

        def load(module: Module, entries: Any, prefix: str) -> None:
            local = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local["assign_to_params_buffers"] = True
            module._load_from_state_dict(entries, prefix, local, True, missing, unexpected, errors)
            for name, child in module._modules.items():
                if child is not None:
                    path = f"{prefix}{name}."
                    load(child, {k: v for k, v in entries.items() if k.startswith(path)}, path)
            for hook in module.__dict__.get("_load_state_dict_post_hooks", {}).values():
                if hook(module, incompatible) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                        "values; if incompatible_keys need to be modified, it should be done inplace."
                    )

        load(self, entries, "")
        if strict:
            for kind, keys in (("Unexpected", unexpected), ("Missing", missing)):
                if keys:
                    listed = ", ".join(f'"{key}"' for key in keys)
                    errors.insert(0, f"{kind} key(s) in state_dict: {listed}. ")
        if errors:
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(errors))
        return incompatible

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Reads this module's own entries; what does not fit is added to the three lists."""
        for hook in self.__dict__.get("_load_state_dict_pre_hooks", {}).values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        transient = self.__dict__.get("_non_persistent_buffers_set", ())
        buffers = {name: buffer for name, buffer in self._buffers.items() if name not in transient}
        own = {name: tensor for name, tensor in {**self._parameters, **buffers}.items() if tensor is not None}
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, tensor in own.items():
            key = prefix + name
            if key in state_dict:
                error = self._load_tensor(name, tensor, key, state_dict[key], assign)
                if error:
                    error_msgs.append(error)
            elif strict:
                missing_keys.append(key)

        extra = prefix + _EXTRA_STATE
        if type(self).set_extra_state is not Module.set_extra_state:
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    name, *rest = key.removeprefix(prefix).split(".", 1)
                    if name not in (self._modules if rest else own):
                        unexpected_keys.append(key)

    def _load_tensor(self, name: str, tensor: Tensor, key: str, value: Any, assign: bool) -> str | None:
        """Copies one value into a parameter or buffer, or puts it in its place; the error text if it does not fit."""
        if not isinstance(value, Tensor):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                f"checkpoint but received {type(value)}"
            )
        lazy = is_lazy(tensor)
        if not lazy and tensor.dim() == 0 and value.dim() == 1 and value.numel() == 1:  # scalars had one dimension once
            value = value[0]
        if not lazy and value.shape != tensor.shape:
            return (
                f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
                f"the shape in current model is {tensor.shape}."
            )
        try:
            with rl.no_grad():
                if not assign:
                    tensor.copy_(value)
                elif not isinstance(tensor, Parameter):
                    setattr(self, name, value)
                elif isinstance(value, Parameter):
                    setattr(self, name, value.requires_grad_(tensor.requires_grad))
                else:
                    setattr(self, name, Parameter(value, tensor.requires_grad))
        except Exception as error:
            return (
                f'While copying the parameter named "{key}", whose dimensions in the model are {tensor.size()} and '
                f"whose dimensions in the checkpoint are {value.size()}, an exception occurred : {error.args}."
            )
        return None

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Runs ``hook(module, prefix, keep_vars)`` before `state_dict` reads this module."""
        return _add(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Runs ``hook(module, state_dict, prefix, local_metadata)`` after `state_dict`; it edits in place."""
        hook._returns_none = True  # type: ignore[attr-defined]
        return _add(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """As `register_state_dict_post_hook`, but a result that is not None replaces the state dict."""
        if getattr(hook, "_returns_none", False):
            raise RuntimeError("_register_state_dict_hook: the hook was given to register_state_dict_post_hook before.")
        return _add(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Runs a hook before `load_state_dict` reads this module.

        Args:
            hook: ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                error_msgs)``; it edits them in place.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        return _add(self._load_state_dict_pre_hooks, _ModuleHook(hook, self) if with_module else hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Runs ``hook(module, incompatible_keys)`` after `load_state_dict`; it edits the lists of keys in place."""
        return _add(self._load_state_dict_post_hooks, hook)

    # -- printing

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What the printed form shows between the parentheses, beside the submodules."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        children = [f"({name}): {_indent(repr(module))}" for name, module in self._modules.items()]
        if len(extra_lines) == 1 and not children:
            return f"{self._get_name()}({extra})"
        lines = extra_lines + children
        return f"{self._get_name()}(" + ("\n  " + "\n  ".join(lines) + "\n" if lines else "") + ")"


set_plain_class(Module)


def _collect(module: Module, memo: set[Module], path: str, once: bool, found: list[tuple[str, Module]]) -> None:
    """Adds a module and all below it to `found`, without those in `memo`."""
    if module in memo:
        return
    if once:
        memo.add(module)
    found.append((path, module))
    for name, child in module._modules.items():
        if child is not None:
            _collect(child, memo, f"{path}.{name}" if path else name, once, found)


def _replaced(hooks: Hooks, module: Module, name: str, value: Any) -> Any:
    """The value after the registration hooks of every module, each of which may replace it."""
    for hook in hooks.values():
        changed = hook(module, name, value)
        if changed is not None:
            value = changed
    return value


def _pre_hook_args(result: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    if result is None:
        return args
    return result if isinstance(result, tuple) else (result,)


def _pre_hook_args_kwargs(result: Any, args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if result is None:
        return args, kwargs
    if isinstance(result, tuple) and len(result) == 2:
        return result
    raise RuntimeError(f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {result}.")


def _first_tensor(value: Any) -> Tensor | None:
    """The first tensor of an output, as tuples and dicts nest it."""
    while not isinstance(value, Tensor):
        if isinstance(value, dict):
            value = list(value.values())
        if not isinstance(value, (tuple, list)) or not value:
            return None
        value = value[0]
    return value


def _parse_to(
    *args: Any,
    device: Any = None,
    dtype: Any = None,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> tuple[Any, Any, bool, Any]:
    """The arguments of `Module.to`: (device, dtype, tensor or none of them, then non_blocking)."""
    rest = list(args)
    if rest and isinstance(rest[0], Tensor):
        tensor = rest.pop(0)
        device, dtype = tensor.device, tensor.dtype
    else:
        if rest and (rest[0] is None or isinstance(rest[0], (str, int, rl.device))):
            device = rest.pop(0)
        if rest and (rest[0] is None or isinstance(rest[0], rl.dtype)):
            dtype = rest.pop(0)
    if rest and isinstance(rest[0], bool):
        non_blocking = rest.pop(0)
    if rest:
        raise TypeError(
            f"to() received an invalid combination of arguments, got args={args}. Pass a device, a dtype or a tensor."
        )
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}")
    return None if device is None else rl.device(device), dtype, non_blocking, memory_format
