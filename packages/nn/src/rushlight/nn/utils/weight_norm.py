"""Weight normalisation by a hook: the predecessor of `rushlight.nn.utils.parametrizations.weight_norm`."""

from __future__ import annotations

import warnings
from typing import Any, TypeVar

from rushlight import Tensor
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]

M = TypeVar("M", bound=Module)


def norm_except(weight: Tensor, dim: int) -> Tensor:
    """The norms of the slices at each index of `dim`, with all other dimensions as size 1; -1: one norm of all."""
    if dim == -1:
        return weight.norm()
    others = [d for d in range(weight.dim()) if d != dim % weight.dim()]
    return weight.norm(2, others, True) if others else weight.abs()


def normalized(direction: Tensor, length: Tensor, dim: int) -> Tensor:
    """``length * direction / |direction|``; where the direction is 0, so is the result."""
    norm = norm_except(direction, dim)
    return direction * (length / norm.where(norm != 0, 1.0))


class WeightNorm:
    """The hook that computes a weight from its length and direction before each forward.

    Args:
        name: Name of the weight.
        dim: The dimension whose slices have a length each; None: one length for all.
    """

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Any) -> Tensor:
        """The weight."""
        return normalized(getattr(module, f"{self.name}_v"), getattr(module, f"{self.name}_g"), self.dim)

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Replaces a weight by its length ``<name>_g`` and its direction ``<name>_v`` (Salimans and Kingma, 2016).

    Deprecated in favour of `rushlight.nn.utils.parametrizations.weight_norm`.

    Args:
        module: The module.
        name: Name of the weight.
        dim: The dimension whose slices have a length each; None: one length for all.

    Returns:
        `module`.

    Raises:
        RuntimeError: The weight is normalised already.
    """
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    if find_hook(module, WeightNorm, name) is not None:
        raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
    hook = WeightNorm(name, dim)
    weight = getattr(module, name)
    delattr(module, name)
    module.register_parameter(f"{name}_g", Parameter(norm_except(weight, hook.dim).detach()))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    hook(module, None)
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Makes a weight with `weight_norm` an ordinary parameter again.

    Raises:
        ValueError: It has none.
    """
    key = find_hook(module, WeightNorm, name)
    if key is None:
        raise ValueError(f"weight_norm of '{name}' not found in {module}")
    weight = module._forward_pre_hooks.pop(key).compute_weight(module)
    for part in (name, f"{name}_g", f"{name}_v"):
        delattr(module, part)
    module.register_parameter(name, Parameter(weight.detach()))
    return module


def find_hook(module: Module, kind: type, name: str) -> int | None:
    """The key of the forward pre-hook of a class that is for the tensor of that name."""
    for key, hook in module.__dict__.get("_forward_pre_hooks", {}).items():
        if isinstance(hook, kind) and hook.name == name:  # type: ignore[attr-defined]
            return int(key)
    return None
