"""Spectral normalisation by a hook: the predecessor of `rushlight.nn.utils.parametrizations.spectral_norm`."""

from __future__ import annotations

from typing import Any, TypeVar

import rushlight as rl
from rushlight import Tensor
from rushlight.nn.functional import normalize
from rushlight.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.nn.utils.weight_norm import find_hook

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]

M = TypeVar("M", bound=Module)


def output_dim(module: Module) -> int:
    """The dimension of a layer's weight that its outputs are numbered by."""
    return 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """A weight as a matrix with a row for each index of `dim`."""
    return weight.movedim(dim, 0).flatten(1)


def divided(weight: Tensor, matrix: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """A weight divided by its greatest singular value, of which the vectors are given; a weight of zeros stays."""
    sigma = rl.vdot(u, matrix.mv(v))
    return weight / sigma.where(sigma != 0, 1.0)


class SpectralNorm:
    """The hook that divides a weight by its greatest singular value before each forward.

    Args:
        name: Name of the weight.
        n_power_iterations: Iterations of the power method in each forward in training mode.
        dim: The dimension that outputs are numbered by.
        eps: The least norm that vectors are divided by.
    """

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Tensor:
        """The weight; with `do_power_iteration` the estimate of the singular vectors is improved first."""
        weight = getattr(module, f"{self.name}_orig")
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            with rl.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(normalize(matrix.t().mv(u), dim=0, eps=self.eps))
                    u.copy_(normalize(matrix.mv(v), dim=0, eps=self.eps))
        return divided(weight, matrix, u.clone(), v.clone())  # backward may come after the next forward

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))


def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> M:
    """Divides a weight by its greatest singular value in each forward (Miyato et al., 2018).

    `rushlight.nn.utils.parametrizations.spectral_norm` is its successor.

    Args:
        module: The module.
        name: Name of the weight.
        n_power_iterations: Iterations of the power method in each forward in training mode.
        eps: The least norm that vectors are divided by.
        dim: The dimension that outputs are numbered by. Default: 0, for transposed convolutions 1.

    Returns:
        `module`.

    Raises:
        RuntimeError: The weight is normalised already.
    """
    if find_hook(module, SpectralNorm, name) is not None:
        raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
    hook = SpectralNorm(name, n_power_iterations, output_dim(module) if dim is None else dim, eps)
    weight = module._parameters[name]
    if weight is None:
        raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
    with rl.no_grad():
        matrix = as_matrix(weight, hook.dim)
        u = normalize(matrix.new_empty(matrix.size(0)).normal_(0, 1), dim=0, eps=eps)
        v = normalize(matrix.new_empty(matrix.size(1)).normal_(0, 1), dim=0, eps=eps)
    delattr(module, name)
    module.register_parameter(f"{name}_orig", weight)
    setattr(module, name, weight.detach())  # a plain attribute, not a parameter
    module.register_buffer(f"{name}_u", u)
    module.register_buffer(f"{name}_v", v)
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Makes a weight with `spectral_norm` an ordinary parameter again.

    Raises:
        ValueError: It has none.
    """
    key = find_hook(module, SpectralNorm, name)
    if key is None:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    with rl.no_grad():
        weight = module._forward_pre_hooks.pop(key).compute_weight(module, do_power_iteration=False)
    for part in (name, f"{name}_u", f"{name}_v", f"{name}_orig"):
        delattr(module, part)
    module.register_parameter(name, Parameter(weight.detach()))
    return module
