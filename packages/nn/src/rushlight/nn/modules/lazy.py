"""Layers that learn the size of their input from the first one."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight.nn.parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Makes a layer of uninitialized parameters that takes their shapes from its first input.

    Put it before a `Module` class and write ``initialize_parameters(*args)``, which gets the arguments of the first
    call. That call turns the layer into `cls_to_become`.

    Attributes:
        cls_to_become: The class of the layer once its parameters have shapes; None keeps the class.
    """

    cls_to_become: type[Any] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)  # type: ignore[attr-defined]
        self._initialize_hook = self.register_forward_pre_hook(  # type: ignore[attr-defined]
            self._infer_parameters, with_kwargs=True
        )

    def _members(self) -> list[tuple[str, Any]]:
        state = self.__dict__
        transient = state.get("_non_persistent_buffers_set", ())
        buffers = [(name, buffer) for name, buffer in state["_buffers"].items() if name not in transient]
        return [(name, tensor) for name, tensor in (*state["_parameters"].items(), *buffers) if tensor is not None]

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, tensor in self._members():
            destination[prefix + name] = tensor if is_lazy(tensor) or keep_vars else tensor.detach()

    def _lazy_load_hook(self, state_dict: Any, prefix: str, *_: Any) -> None:
        """Gives parameters the shapes that they have in a state dict."""
        for name, tensor in self._members():
            value = state_dict.get(prefix + name)
            if value is not None and is_lazy(tensor) and not is_lazy(value):
                with rl.no_grad():
                    tensor.materialize(value.shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Gives the parameters their shapes; every lazy layer writes its own."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer of this layer has no shape yet."""
        state = self.__dict__
        return any(is_lazy(tensor) for tensor in (*state["_parameters"].values(), *state["_buffers"].values()))

    def _infer_parameters(self, module: Any, args: Any, kwargs: Any = None) -> None:
        """The hook before the first call."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")  # type: ignore[attr-defined]
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become
